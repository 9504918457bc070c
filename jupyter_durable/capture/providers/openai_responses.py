"""OpenAI's responses: asking, and polling one that was asked in the background."""

from __future__ import annotations

import re
from typing import Any

from jupyter_durable.capture.providers import counts, hosts
from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.capture.providers.openai import NOT_ALONE, OpenAIApi
from jupyter_durable.capture.providers.openai_words import openai_usage
from jupyter_durable.event_data import Usage

PURE_TOOLS = {"function", "custom", "namespace", "image_generation", "local_shell", "apply_patch"}
"""Tools that run with the caller, or that draw; every other one searches, runs code or reaches out at the provider, and
one that is not known yet may."""

_KEPT = ("conversation", "previous_response_id", "background")
"""Fields by which the answer depends on what the provider keeps."""

_ENDS = rb"response\.(?:completed|failed|incomplete)"
_OVER = re.compile(
    rb"(?:\A|[\r\n])event: ?" + _ENDS + rb'\r?\ndata:[^\n]*\n|\{\s*"type":\s*"' + _ENDS + rb'"[^\n]*\}\r?\n'
)
_LAST_USAGE = re.compile(rb'[^\\]"usage":\s*\{\s*"input_tokens"[^\n]*\}\r?\n\r?\n\Z')
"""The last event may be longer than the tail. Its usage stands near its end, and only there is usage not null; inside
of a text the quotes would be escaped."""


class Responses(OpenAIApi):
    """``POST /responses``."""

    name = "responses"
    path = re.compile(r"/responses$")
    evidence = ("input", "prompt", "previous_response_id", "conversation")

    def most_output(self, ask: Ask) -> int | None:
        """``max_output_tokens``, thoughts included."""
        return counts.count(ask.json, "max_output_tokens")

    def is_pure(self, ask: Ask) -> bool:
        """False with what the provider keeps, or does besides answering."""
        if ask.method != "POST" or NOT_ALONE.search(self.model(ask).lower()):
            return False
        if any(ask.get(name) for name in _KEPT):
            return False
        prompt = ask.get("prompt")
        # A stored prompt without a version is whatever it is today.
        if isinstance(prompt, dict) and not prompt.get("version"):
            return False
        return all(_is_pure_tool(tool) for tool in counts.asked_tools(ask))

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Of the response itself, or of the last event that holds one."""
        said: Any = None
        model = ""
        for event in counts.objects(answer):
            response = counts.at(event, "response") or event
            model = counts.text(counts.at(response, "model"), model)
            if isinstance(counts.at(response, "usage"), dict):
                said = response["usage"]
        return Usage(provider=self.provider_of(ask), model=model or self.model(ask), **openai_usage(said))

    def is_over(self, tail: bytes) -> bool:
        """``response.completed``, ``failed`` or ``incomplete``, whole."""
        return (
            _OVER.search(tail) is not None
            or _LAST_USAGE.search(tail) is not None
            or counts.OVER.search(tail) is not None
        )


def _is_pure_tool(tool: Any) -> bool:
    kind = counts.at(tool, "type")
    if kind == "shell":
        return bool(counts.at(tool, "environment", "type") == "local")
    return kind in PURE_TOOLS


class Polled(OpenAIApi):
    """A look at a response, its cancelling, its deletion; counting tokens: the answer changes, and costs nothing."""

    name = "responses.poll"
    methods = ("GET", "POST", "DELETE")
    path = re.compile(r"/responses/(?:[^/]+(?:/cancel|/input_items)?|input_tokens)$")

    def recognises(self, ask: Ask) -> bool:
        """At unknown hosts, only ids that look like those of responses."""
        if ask.method not in self.methods or self.path.search(ask.path) is None:
            return False
        if ask.path.endswith("/compact"):
            return False
        # Posting to an id itself is nothing that there is.
        if ask.method == "POST" and not ask.path.endswith(("/cancel", "/input_tokens")):
            return False
        return "/responses/resp_" in ask.path or bool(hosts.provider_at(ask.host))

    def is_billed(self, ask: Ask) -> bool:
        """What it cost was asked for when it was posted."""
        return False

    def is_pure(self, ask: Ask) -> bool:
        """Counting is; a poll is not."""
        return ask.method == "POST" and ask.path.endswith("/input_tokens")

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """That of the response that is looked at; the caller knows by `is_billed` that it is no new bill."""
        return Responses.usage(_RESPONSES, ask, answer)

    def is_over(self, tail: bytes) -> bool:
        """A poll can stream."""
        return _RESPONSES.is_over(tail)

    def streams(self, ask: Ask) -> bool:
        """``?stream=true``."""
        return dict(ask.query).get("stream") == "true"


class Compact(Responses):
    """``POST /responses/compact``: a conversation made shorter by a model."""

    name = "responses.compact"
    path = re.compile(r"/responses/compact$")


_RESPONSES = Responses()

APIS: tuple[Api, ...] = (_RESPONSES, Compact(), Polled())
