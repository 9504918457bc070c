"""Services that run many models, or one kind of them: Hugging Face, Replicate, Cloudflare, rerankers, voices.

They are paid by time, by search or by second, and most answers tell no tokens; where one does, it is read.
"""

from __future__ import annotations

import re

from jupyter_durable.capture.providers import counts, hosts
from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.event_data import Usage


class Rerank(Api):
    """``/rerank`` of Voyage, Jina, Together and local servers; Cohere's is read in ``cohere.py``."""

    name = "rerank"
    path = re.compile(r"/rerank$")

    def recognises(self, ask: Ask) -> bool:
        """By a body that compares documents with a query."""
        if ask.method not in self.methods or self.path.search(ask.path) is None:
            return False
        if hosts.provider_at(ask.host) == "cohere":
            return False
        return isinstance(ask.get("query"), str | dict) and isinstance(ask.get("documents", ask.get("texts")), list)

    def provider_of(self, ask: Ask) -> str:
        """By the host."""
        return hosts.provider_behind(ask.host, self.model(ask))

    def most_output(self, ask: Ask) -> int | None:
        """None at all."""
        return 0

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Total tokens, all of them input."""
        told = counts.at(answer.json, "usage")
        return Usage(
            provider=self.provider_of(ask),
            model=counts.text(counts.at(answer.json, "model"), self.model(ask)),
            input=counts.count(told, "total_tokens", "prompt_tokens"),
        )


class HuggingFace(Api):
    """Models of Hugging Face in its own protocol: the router, the older inference API, and endpoints of one's own."""

    provider = "huggingface"
    name = "inference"
    hosts = ("api-inference.huggingface.co", "router.huggingface.co", "endpoints.huggingface.cloud")
    path = re.compile(r"/models/[^/]+(?:/[^/]+)?(?:/pipeline/[\w-]+)?$|^/$|/generate(?:_stream)?$")

    def recognises(self, ask: Ask) -> bool:
        """At its hosts; an endpoint of one's own is asked at its root."""
        if not super().recognises(ask) or ask.path.startswith("/api/"):
            return False
        return "/models/" in ask.path or ask.get("inputs") is not None

    def model(self, ask: Ask) -> str:
        """Of the path."""
        found = re.search(r"/models/([^/]+(?:/[^/]+)?)", ask.path)
        return found[1].removesuffix("/pipeline") if found else ""

    def streams(self, ask: Ask) -> bool:
        """By a field, or by the path."""
        return ask.get("stream") is True or ask.path.endswith("_stream")

    def most_output(self, ask: Ask) -> int | None:
        """``parameters.max_new_tokens``."""
        return counts.count(ask.get("parameters"), "max_new_tokens")

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Only the output is told, in the details."""
        output = None
        for event in counts.objects(answer):
            one = event[0] if isinstance(event, list) and event else event
            found = counts.count(counts.at(one, "details"), "generated_tokens")
            output = found if found is not None else output
        return Usage(provider=self.provider, model=self.model(ask), output=output)


class Replicate(Api):
    """Predictions of Replicate: begun, then looked at until they are there."""

    provider = "replicate"
    name = "predictions"
    methods = ("POST", "GET")
    path = re.compile(r"/v1/(?:models/[^/]+/[^/]+/|deployments/[^/]+/[^/]+/)?predictions(?:/|$)")
    hosts = ("api.replicate.com",)

    def model(self, ask: Ask) -> str:
        """Of the path, or the version in the body."""
        found = re.search(r"/(?:models|deployments)/([^/]+/[^/]+)/predictions", ask.path)
        return found[1] if found else counts.text(ask.get("version"))

    def is_billed(self, ask: Ask) -> bool:
        """Beginning one is."""
        return ask.method == "POST" and not ask.path.endswith("/cancel")

    def is_pure(self, ask: Ask) -> bool:
        """The answer is what is there so far."""
        return False


class Cloudflare(Api):
    """``/ai/run/NAME`` of Workers AI."""

    provider = "cloudflare"
    name = "run"
    path = re.compile(r"/ai/run/(.+)$")
    hosts = ("api.cloudflare.com",)

    def model(self, ask: Ask) -> str:
        """Of the path."""
        found = self.path.search(ask.path)
        return found[1] if found else ""

    def most_output(self, ask: Ask) -> int | None:
        """``max_tokens``."""
        return counts.count(ask.json, "max_tokens")

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """In ``result``, or in the last event of a stream."""
        told = None
        for event in counts.objects(answer):
            told = counts.at(event, "result", "usage") or counts.at(event, "usage") or told
        return Usage(
            provider=self.provider,
            model=self.model(ask),
            input=counts.count(told, "prompt_tokens"),
            output=counts.count(told, "completion_tokens"),
        )

    def is_over(self, tail: bytes) -> bool:
        """``data: [DONE]``."""
        return counts.OVER.search(tail) is not None


class Voice(Api):
    """Speech made or understood, paid by character or second."""

    def __init__(self, provider: str, host: str, name: str, path: str) -> None:
        self.provider = provider
        self.hosts = (host,)
        self.name = name
        self.path = re.compile(path)

    def model(self, ask: Ask) -> str:
        """In the body, the form or the query."""
        form = counts.form_field(ask, "model_id") if counts.is_form(ask) else ""
        return counts.text(ask.get("model_id"), ask.get("model"), form, dict(ask.query).get("model"))

    def most_output(self, ask: Ask) -> int | None:
        """No tokens at all."""
        return 0


APIS: tuple[Api, ...] = (
    Rerank(),
    HuggingFace(),
    Replicate(),
    Cloudflare(),
    Voice("elevenlabs", "elevenlabs.io", "text-to-speech", r"/v1/text-to-speech/"),
    Voice("elevenlabs", "elevenlabs.io", "speech-to-text", r"/v1/speech-to-text$"),
    Voice("deepgram", "api.deepgram.com", "listen", r"/v1/listen$"),
    Voice("deepgram", "api.deepgram.com", "speak", r"/v1/speak$"),
)
