"""Ollama's own API: chats and texts as JSON lines, and embeddings. Its OpenAI side is read in openai.py."""

from __future__ import annotations

import re

import msgspec

from jupyter_durable.capture.providers import counts, hosts
from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.event_data import Usage


class OllamaApi(Api):
    """A request below ``/api/``. Any web service may have such paths: the port, or a place nearby, and a body that
    names a model must agree.
    """

    provider = "ollama"

    def recognises(self, ask: Ask) -> bool:
        """At its own port, in the own network, or at ollama.com."""
        if ask.method not in self.methods or self.path.search(ask.path) is None:
            return False
        near = ask.port == 11434 or hosts.is_local(ask.host) or hosts.provider_at(ask.host) == "ollama"
        return near and isinstance(ask.get("model"), str)

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Of the last line; ``prompt_eval_count`` is missing where the whole prompt was in the cache."""
        last = None
        for event in counts.objects(answer):
            last = event
        done = counts.at(last, "done")
        return Usage(
            provider=self.provider,
            model=counts.text(counts.at(last, "model"), self.model(ask)),
            input=counts.count(last, "prompt_eval_count"),
            output=counts.count(last, "eval_count") if done else None,
        )


class Generate(OllamaApi):
    """``/api/chat`` and ``/api/generate``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = re.compile(rf"^/api/{name}$")

    def streams(self, ask: Ask) -> bool:
        """Unless told otherwise."""
        return ask.get("stream") is not False

    def most_output(self, ask: Ask) -> int | None:
        """``options.num_predict``; negative numbers mean no limit."""
        return counts.count(ask.get("options"), "num_predict")

    def is_over(self, tail: bytes) -> bool:
        """The line that says so, whole."""
        try:
            last = msgspec.json.decode(tail.rstrip().rpartition(b"\n")[2])
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Older answers end with numbers that stand for the conversation, and may be longer than the tail.
            return re.search(rb'"eval_duration":\s*\d+\}\s*\Z', tail) is not None
        return counts.at(last, "done") is True


class Embed(OllamaApi):
    """``/api/embed`` and, before it, ``/api/embeddings``."""

    name = "embed"
    path = re.compile(r"^/api/embed(?:dings)?$")

    def streams(self, ask: Ask) -> bool:
        """Never."""
        return False

    def most_output(self, ask: Ask) -> int | None:
        """None at all."""
        return 0


APIS: tuple[Api, ...] = (Generate("chat"), Generate("generate"), Embed())
