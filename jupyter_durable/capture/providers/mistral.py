"""What Mistral has beside OpenAI's protocol: text in the middle, agents, documents, conversations that it keeps."""

from __future__ import annotations

import re

from jupyter_durable.capture.providers import counts
from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.capture.providers.openai import Chat
from jupyter_durable.event_data import Usage


class Fill(Chat):
    """``/fim/completions`` and ``/agents/completions``; usage comes unasked."""

    provider = "mistral"
    hosts = ("mistral.ai",)
    recognises = Api.recognises

    def __init__(self, name: str) -> None:
        self.name = f"{name}.completions"
        self.path = re.compile(rf"/{name}/completions$")

    def is_pure(self, ask: Ask) -> bool:
        """An agent is set up at the provider, and may change there."""
        return self.name != "agents.completions" and super().is_pure(ask)

    def with_usage(self, ask: Ask) -> bytes | None:
        """Not needed."""
        return None


class Ocr(Api):
    """``/ocr``: pages are paid for, not tokens."""

    provider = "mistral"
    name = "ocr"
    path = re.compile(r"/v1/ocr$")
    hosts = ("mistral.ai",)

    def most_output(self, ask: Ask) -> int | None:
        """No tokens at all."""
        return 0


class Conversations(Api):
    """``/conversations``: kept by Mistral, with tools that run there."""

    provider = "mistral"
    name = "conversations"
    methods = ("POST", "GET", "DELETE")
    path = re.compile(r"/v1/conversations(?:[/#]|$)")
    hosts = ("mistral.ai",)

    def is_billed(self, ask: Ask) -> bool:
        """Going on is; looking is not."""
        return ask.method == "POST"

    def is_pure(self, ask: Ask) -> bool:
        """Never: it is a conversation that the provider keeps."""
        return False

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """In the answer, or in the last event of a stream."""
        found = counts.at(counts.last_with(answer, "usage"), "usage")
        return Usage(
            provider=self.provider,
            model=self.model(ask),
            input=counts.total(counts.count(found, "prompt_tokens"), counts.count(found, "connector_tokens")),
            output=counts.count(found, "completion_tokens"),
        )

    def is_over(self, tail: bytes) -> bool:
        """Its last event, whole."""
        return re.search(rb'"type":\s*"conversation\.response\.(?:done|error)"[^\n]*\}\r?\n', tail) is not None


APIS: tuple[Api, ...] = (Fill("fim"), Fill("agents"), Ocr(), Conversations())
