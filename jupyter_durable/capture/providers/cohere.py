"""Cohere's chats, embeddings and rerankings, first and second version of its API."""

from __future__ import annotations

import re
from typing import Any

from jupyter_durable.capture.providers import counts
from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.event_data import Usage

_OVER = re.compile(rb'"type":\s*"message-end"[^\n]*\}\r?\n|"is_finished":\s*true[^\n]*\}\r?\n')


def cohere_usage(told: Any) -> dict[str, Any]:
    """Fields of a `Usage`: the units that are billed, else the tokens.

    >>> cohere_usage({"billed_units": {"input_tokens": 5, "output_tokens": 3}, "tokens": {"input_tokens": 71}})
    {'input': 5, 'output': 3, 'cached': None}
    """
    billed, tokens = counts.at(told, "billed_units"), counts.at(told, "tokens")
    # The prompt around the user's text counts as tokens and is not billed.
    paid = counts.count(billed, "input_tokens")
    output = counts.count(billed, "output_tokens")
    return {
        "input": counts.count(tokens, "input_tokens") if paid is None else paid,
        "output": counts.count(tokens, "output_tokens") if output is None else output,
        "cached": counts.count(told, "cached_tokens"),
    }


class CohereApi(Api):
    """What Cohere's requests have in common."""

    provider = "cohere"
    hosts = ("cohere.com", "cohere.ai")

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Version 2 has ``usage``, version 1 ``meta``; streams have them in their last event."""
        told: Any = None
        for event in counts.objects(answer):
            for place in (
                event,
                counts.at(event, "delta"),
                counts.at(event, "response"),
            ):
                told = counts.at(place, "usage") or counts.at(place, "meta") or told
        return Usage(provider=self.provider, model=self.model(ask), **cohere_usage(told))


class Chat(CohereApi):
    """``/v2/chat``, ``/v1/chat`` and ``/v1/generate``."""

    name = "chat"
    path = re.compile(r"/v\d/(?:chat|generate)$")

    def most_output(self, ask: Ask) -> int | None:
        """``max_tokens``, times the generations that are made."""
        limit = counts.count(ask.json, "max_tokens")
        return None if limit is None else limit * (counts.count(ask.json, "num_generations") or 1)

    def is_pure(self, ask: Ask) -> bool:
        """False with connectors, which search, and with conversations that Cohere keeps."""
        return ask.method == "POST" and not ask.get("connectors") and not ask.get("conversation_id")

    def is_over(self, tail: bytes) -> bool:
        """The event that ends the message, whole."""
        return _OVER.search(tail) is not None


class WithoutOutput(CohereApi):
    """``/embed``, ``/rerank``, ``/classify``; ``/tokenize`` and ``/detokenize`` are free."""

    def __init__(self, name: str, *, billed: bool = True) -> None:
        self.name = name
        self.path = re.compile(rf"/v\d/{name}$")
        self._billed = billed

    def is_billed(self, ask: Ask) -> bool:
        """Splitting text into tokens is free."""
        return self._billed

    def most_output(self, ask: Ask) -> int | None:
        """None at all."""
        return 0


APIS: tuple[Api, ...] = (
    Chat(),
    WithoutOutput("embed"),
    WithoutOutput("rerank"),
    WithoutOutput("classify"),
    WithoutOutput("tokenize", billed=False),
    WithoutOutput("detokenize", billed=False),
)
