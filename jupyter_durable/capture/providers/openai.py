"""OpenAI's protocol, which many providers, gateways and local servers speak.

Paths that no other service has (``/chat/completions``) count at any host; ``/responses``, ``/completions`` and
``/embeddings`` count anywhere if the body is such a request. What providers keep is in ``openai_stored.py``.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec

from jupyter_durable.capture.providers import counts, hosts, openai_stored
from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.capture.providers.openai_words import openai_usage, provider_of, told_cost
from jupyter_durable.event_data import Usage

ALLOWS_USAGE = {
    "api.openai.com",
    "openai.azure.com",
    "cognitiveservices.azure.com",
    "services.ai.azure.com",
    "api.deepseek.com",
    "api.together.xyz",
    "dashscope.aliyuncs.com",
    "dashscope-intl.aliyuncs.com",
}
"""Hosts, or their ends, that accept ``stream_options.include_usage``. Others may refuse a field that they do not know,
and a request that the user wrote well would fail by our fault; those that send usage unasked need none. Capture's
configuration adds hosts of the user's.
"""

NOT_ALONE = re.compile(r"search|sonar|(?:^|/)(?:groq/)?compound|:online$")
"""Models that search or run code by themselves, so that the answer depends on the day."""

_DEPLOYMENT = re.compile(r"/(?:openai/)?(?:deployments|serving-endpoints)/([^/]+)/")
_OLD_AZURE = re.compile(r"20(?:2[0-3]|24-0[1-8])")


class OpenAIApi(Api):
    """What requests of the protocol have in common."""

    evidence: ClassVar[tuple[str, ...]] = ()
    """Fields of the body, one of which shows that a request at an unknown host is of this kind; empty: the path can."""

    def recognises(self, ask: Ask) -> bool:
        """By the path, and at unknown hosts also by the body."""
        if ask.method not in self.methods or self.path.search(ask.path) is None:
            return False
        if not self.evidence or hosts.provider_at(ask.host) or _DEPLOYMENT.search(ask.path):
            return True
        return isinstance(ask.get("model"), str) and any(ask.get(name) is not None for name in self.evidence)

    def provider_of(self, ask: Ask) -> str:
        """By the host, else by a qualified name of the model; empty where nobody can tell."""
        return provider_of(ask, self.model(ask))

    def model(self, ask: Ask) -> str:
        """Of the body, else the deployment in the path, as Azure has it."""
        named = counts.text(ask.get("model")) or (counts.form_field(ask, "model") if counts.is_form(ask) else "")
        if named:
            return named
        found = _DEPLOYMENT.search(ask.path)
        return found[1] if found else ""

    def streams(self, ask: Ask) -> bool:
        """A field of the JSON or of the form."""
        if counts.is_form(ask):
            return counts.form_field(ask, "stream").lower() == "true"
        return ask.get("stream") is True

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """The last ``usage`` of the answer, plain or streamed."""
        told = counts.last_with(answer, "usage")
        named = told
        if told is None:
            named = next((event for event in counts.objects(answer) if counts.at(event, "model")), None)
        provider = self.provider_of(ask)
        return Usage(
            provider=provider,
            model=counts.text(counts.at(named, "model"), self.model(ask)),
            **openai_usage(counts.at(told, "usage")),
            **told_cost(provider, counts.at(told, "usage")),
        )

    def is_over(self, tail: bytes) -> bool:
        """``data: [DONE]``."""
        return counts.OVER.search(tail) is not None


class Completions(OpenAIApi):
    """``/completions``, the older one: a text goes on."""

    name = "completions"
    path = re.compile(r"(?<!/chat)(?<!/fim)(?<!/agents)/completions$")
    evidence: ClassVar[tuple[str, ...]] = ("prompt",)

    def most_output(self, ask: Ask) -> int | None:
        """The limit for one choice, times the choices that are made."""
        limit = counts.count(ask.json, "max_completion_tokens", "max_tokens")
        choices = max(counts.count(ask.json, "n") or 1, counts.count(ask.json, "best_of") or 1)
        # A list of prompts gets its choices for each of them.
        prompt = ask.get("prompt")
        prompts = len(prompt) if isinstance(prompt, list) and prompt and isinstance(prompt[0], str | list) else 1
        return None if limit is None else limit * choices * prompts

    def is_pure(self, ask: Ask) -> bool:
        """False where the provider searches or runs something."""
        if ask.method != "POST" or NOT_ALONE.search(self.model(ask).lower()):
            return False
        # Empty options of a search still search.
        if any(ask.get(name) is not None for name in ("web_search_options", "search_parameters")):
            return False
        if ask.get("plugins") or ask.get("mcp_servers"):
            return False
        tools = counts.asked_tools(ask)
        return all(counts.at(tool, "type") in {"function", "custom"} for tool in tools)

    def with_usage(self, ask: Ask) -> bytes | None:
        """The body with ``stream_options.include_usage``, all else of it as it was."""
        options = ask.get("stream_options")
        if not self.streams(ask) or not self._allows_usage(ask) or "include_usage" in (options or {}):
            return None
        if isinstance(options, dict):
            return msgspec.json.encode(ask.json | {"stream_options": options | {"include_usage": True}})
        if "stream_options" in ask.json:
            return msgspec.json.encode(ask.json | {"stream_options": {"include_usage": True}})
        return ask.body.rstrip()[:-1] + b',"stream_options":{"include_usage":true}}'

    @staticmethod
    def _allows_usage(ask: Ask) -> bool:
        if not any(ask.host == host or ask.host.endswith("." + host) for host in ALLOWS_USAGE):
            return False
        # Azure's API versions before September 2024 do not know the field.
        return _OLD_AZURE.match(dict(ask.query).get("api-version", "")) is None

    def is_usage_only(self, event: Any) -> bool:
        """A chunk without choices that tells usage."""
        return counts.at(event, "choices") == [] and isinstance(counts.at(event, "usage"), dict)


class Chat(Completions):
    """``/chat/completions``."""

    name = "chat.completions"
    path = re.compile(r"/chat/completions$")
    evidence: ClassVar[tuple[str, ...]] = ()

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """As everywhere; Groq has it in ``x_groq`` when streaming."""
        found = super().usage(ask, answer)
        if found.input is None and (groq := counts.last_with(answer, "x_groq")) is not None:
            return msgspec.structs.replace(found, **openai_usage(counts.at(groq, "x_groq", "usage")))
        return found


class DatabricksChat(Chat):
    """``/serving-endpoints/NAME/invocations`` of Databricks, whose bodies are those of chat."""

    path = re.compile(r"/serving-endpoints/[^/]+/invocations$")
    hosts = ("cloud.databricks.com", "azuredatabricks.net", "gcp.databricks.com")

    def recognises(self, ask: Ask) -> bool:
        """Only at its hosts, and only chats."""
        return Api.recognises(self, ask) and isinstance(ask.get("messages"), list)


class WithoutOutput(OpenAIApi):
    """Requests whose answers hold no tokens that are billed."""

    def most_output(self, ask: Ask) -> int | None:
        """None at all."""
        return 0

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Only the side that there is; some name only the total."""
        told = counts.at(answer.json, "usage")
        return Usage(
            provider=self.provider_of(ask),
            model=counts.text(counts.at(answer.json, "model"), self.model(ask)),
            input=counts.count(told, "prompt_tokens", "input_tokens", "total_tokens"),
        )


class Embeddings(WithoutOutput):
    """``/embeddings``."""

    name = "embeddings"
    path = re.compile(r"/(?:contextualized|multimodal)?embeddings$")
    evidence: ClassVar[tuple[str, ...]] = ("input", "inputs")

    def recognises(self, ask: Ask) -> bool:
        """Not Ollama's own, which looks alike."""
        return not ask.path.endswith("/api/embeddings") and super().recognises(ask)


class Moderations(WithoutOutput):
    """``/moderations``: costs nothing."""

    name = "moderations"
    path = re.compile(r"/moderations$")
    evidence: ClassVar[tuple[str, ...]] = ("input",)

    def is_billed(self, ask: Ask) -> bool:
        """Free at OpenAI, the one who has it."""
        return False


class Images(OpenAIApi):
    """``/images/generations``, ``edits`` and ``variations``."""

    name = "images"
    path = re.compile(
        r"/v\d+/images/(?:generations|edits|variations)$|/deployments/[^/]+/images/(?:generations|edits)$"
    )
    evidence: ClassVar[tuple[str, ...]] = ("prompt",)

    def recognises(self, ask: Ask) -> bool:
        """Edits are forms, whose fields are no evidence that is cheap to read; the path is long enough."""
        return super().recognises(ask) or (
            ask.method == "POST" and counts.is_form(ask) and self.path.search(ask.path) is not None
        )

    def is_over(self, tail: bytes) -> bool:
        """The whole image, which may be longer than the tail: then its usage, at the end, tells."""
        return counts.OVER.search(tail) is not None or (
            b'"usage"' in tail and tail.endswith((b"}\n\n", b"}\r\n\r\n")) and b".partial_image" not in tail
        )


class Audio(OpenAIApi):
    """``/audio/speech``, ``transcriptions`` and ``translations``."""

    name = "audio"
    path = re.compile(r"/audio/(?:speech|transcriptions|translations)$")

    def is_over(self, tail: bytes) -> bool:
        """The event that ends a transcript or a speech."""
        return re.search(rb'\{\s*"type":\s*"(?:transcript\.text|speech\.audio)\.done"[^\n]*\}\r?\n', tail) is not None


APIS: tuple[Api, ...] = (
    Chat(),
    Embeddings(),
    Completions(),
    DatabricksChat(),
    Images(),
    Audio(),
    Moderations(),
    *openai_stored.APIS,
)
"""Responses come in ``openai_responses.py``."""
