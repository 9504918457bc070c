"""Anthropic's messages, at Anthropic, at gateways, on Vertex AI; its batches and files.

Input tokens come in three parts that do not overlap: new ones, those read from the cache, and those written to it.
`Usage.input` is their sum. A stream tells the input first and the output last, so one that was cut has a known input
and no known output: the count in its first event is that of the first token alone.
"""

from __future__ import annotations

import re
from typing import Any

from jupyter_durable.capture.providers import counts, hosts
from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.event_data import Usage

PURE_TOOLS = ("bash_", "text_editor_", "memory_", "tool_search_tool_")
"""Beginnings of the types of tools that run with the caller, or only look through the request itself. What is not here
searches, fetches or runs at the provider, or may."""

_OVER = re.compile(
    rb'\{\s*"type":\s*"message_stop"[^\n]*\}\r?\n|(?:\A|[\r\n])event: ?message_stop\r?\ndata:[^\n]*\}\r?\n'
)
_VERTEX = re.compile(r"/publishers/anthropic/models/([^/:]+):")


def message_usage(told: Any) -> dict[str, Any]:
    """Fields of a `Usage` from a ``usage`` object.

    >>> message_usage({"input_tokens": 7, "cache_read_input_tokens": 2, "output_tokens": 5})
    {'input': 9, 'output': 5, 'cached': 2, 'cache_write': None, 'reasoning': None}
    """
    new = counts.count(told, "input_tokens")
    read = counts.count(told, "cache_read_input_tokens")
    written = counts.count(told, "cache_creation_input_tokens")
    return {
        "input": None if new is None else counts.total(new, read, written),
        "output": counts.count(told, "output_tokens"),
        "cached": read,
        "cache_write": written,
        "reasoning": counts.count(counts.at(told, "output_tokens_details"), "thinking_tokens"),
    }


def streamed_usage(events: Any) -> tuple[str, dict[str, Any]]:
    """Model and counts of a stream of events: the last number told for each field, the output only from its end on."""
    model = ""
    told: dict[str, Any] = {}
    for event in events:
        kind = counts.at(event, "type")
        if kind == "message_start":
            message = counts.at(event, "message")
            model = counts.text(counts.at(message, "model"), model)
            usage = counts.at(message, "usage")
            if isinstance(usage, dict):
                told |= {name: value for name, value in usage.items() if not name.startswith("output_tokens")}
        elif kind == "message_delta":
            usage = counts.at(event, "usage")
            if isinstance(usage, dict):
                told |= {name: value for name, value in usage.items() if value is not None}
    return model, message_usage(told)


class Messages(Api):
    """``POST /v1/messages``."""

    provider = "anthropic"
    name = "messages"
    path = re.compile(r"/v\d+/messages$")

    def recognises(self, ask: Ask) -> bool:
        """At unknown hosts only with a body that asks a model; many services have messages."""
        if ask.method not in self.methods or self.path.search(ask.path) is None:
            return False
        if hosts.provider_at(ask.host) == "anthropic":
            return True
        return isinstance(ask.get("model"), str) and isinstance(ask.get("messages"), list)

    def provider_of(self, ask: Ask) -> str:
        """Anthropic behind gateways too; nobody behind a local server."""
        return hosts.provider_behind(ask.host, self.model(ask), self.provider)

    def most_output(self, ask: Ask) -> int | None:
        """``max_tokens``, thoughts included."""
        return counts.count(ask.json, "max_tokens", "max_tokens_to_sample")

    def is_pure(self, ask: Ask) -> bool:
        """False with containers, remote servers, and tools that run at the provider."""
        if ask.method != "POST" or ask.get("container") or ask.get("mcp_servers"):
            return False
        for tool in counts.asked_tools(ask):
            kind = counts.at(tool, "type") or "custom"
            if kind != "custom" and not str(kind).startswith(PURE_TOOLS):
                return False
        return True

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Of the message, or of the events that begin and end it."""
        plain = answer.json if isinstance(answer.json, dict) else None
        if plain is not None and "usage" in plain:
            model, told = counts.text(plain.get("model")), message_usage(plain["usage"])
        else:
            model, told = streamed_usage(answer.events())
        return Usage(provider=self.provider_of(ask), model=model or self.model(ask), **told)

    def is_over(self, tail: bytes) -> bool:
        """``message_stop``."""
        return _OVER.search(tail) is not None


class Complete(Messages):
    """``POST /v1/complete``, from before there were messages; tells no usage."""

    name = "complete"
    path = re.compile(r"/v1/complete$")
    hosts = ("anthropic.com",)
    recognises = Api.recognises

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Only the model."""
        return Usage(
            provider=self.provider_of(ask), model=counts.text(counts.at(answer.json, "model"), self.model(ask))
        )

    def is_over(self, tail: bytes) -> bool:
        """The reason for stopping."""
        return re.search(rb'"stop_reason":\s*"', tail) is not None


class CountTokens(Messages):
    """``POST /v1/messages/count_tokens``: free."""

    name = "messages.count_tokens"
    path = re.compile(r"/v\d+/messages/count_tokens$")

    def most_output(self, ask: Ask) -> int | None:
        """None at all."""
        return 0

    def is_billed(self, ask: Ask) -> bool:
        """Free."""
        return False

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """It uses nothing that is told."""
        return Usage(provider=self.provider_of(ask), model=self.model(ask))


class OnVertex(Messages):
    """``.../publishers/anthropic/models/NAME:rawPredict`` and ``streamRawPredict`` of Vertex AI."""

    path = re.compile(r"/publishers/anthropic/models/[^/:]+:(?:rawPredict|streamRawPredict)$")
    recognises = Api.recognises

    def model(self, ask: Ask) -> str:
        """Of the path; a version stands behind ``@``."""
        found = _VERTEX.search(ask.path)
        return found[1].replace("%40", "@") if found else ""

    def streams(self, ask: Ask) -> bool:
        """By the body, as at Anthropic; the path says it too."""
        return ask.path.endswith(":streamRawPredict")


class Stored(Api):
    """Batches, files, skills and agents that Anthropic keeps."""

    provider = "anthropic"
    methods = ("POST", "GET", "DELETE")
    hosts = ("anthropic.com",)

    def __init__(self, kind: str) -> None:
        self.name = kind.replace("/", ".")
        self.path = re.compile(rf"/v\d+/{kind}(?:/|$)")

    def is_billed(self, ask: Ask) -> bool:
        """A batch costs what its parts cost, which no answer to these tells."""
        return False

    def is_pure(self, ask: Ask) -> bool:
        """Never: the provider's state is what it is about."""
        return False


APIS: tuple[Api, ...] = (
    Messages(),
    CountTokens(),
    OnVertex(),
    Complete(),
    *(Stored(kind) for kind in ("messages/batches", "files", "skills", "agents", "sessions", "environments")),
)
