"""Amazon Bedrock, as HTTP clients and Anthropic's SDK call it: ``/model/NAME/invoke`` and ``/model/NAME/converse``.

Streams are frames of Amazon's binary format. Their checksums are not looked at: TLS guards the bytes, and a frame that
is no frame ends the reading.
"""

from __future__ import annotations

import binascii
import re
import struct
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import msgspec

from jupyter_durable.capture.providers import counts
from jupyter_durable.capture.providers.anthropic import message_usage, streamed_usage
from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.event_data import Usage

_MODEL = re.compile(r"/model/([^/]+)/")


def frames(body: bytes) -> Iterator[Any]:
    """The JSON payloads of a stream of frames, as far as they are whole; what ``bytes`` wraps is unwrapped."""
    place = 0
    while place + 16 <= len(body):
        length, headers = struct.unpack_from(">II", body, place)
        if length < 16 + headers or place + length > len(body):
            return
        payload = body[place + 12 + headers : place + length - 4]
        place += length
        try:
            event = msgspec.json.decode(payload)
            inner = counts.at(event, "bytes")
            yield msgspec.json.decode(binascii.a2b_base64(inner)) if isinstance(inner, str) else event
        except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error, ValueError):
            continue


class BedrockApi(Api):
    """What requests to Bedrock have in common: the model stands in the path."""

    provider = "aws"

    def recognises(self, ask: Ask) -> bool:
        """The path is enough, at Amazon's hosts and at private endpoints."""
        return ask.method in self.methods and self.path.search(ask.path) is not None

    def model(self, ask: Ask) -> str:
        """Of the path; the ARN of a profile stays whole."""
        found = _MODEL.search(ask.path)
        return unquote(found[1]) if found else ""

    def streams(self, ask: Ask) -> bool:
        """By the path."""
        return ask.path.endswith("-stream")


class Invoke(BedrockApi):
    """``invoke`` and ``invoke-with-response-stream``: bodies are those of each maker of models."""

    name = "invoke"
    path = re.compile(r"/model/[^/]+/invoke(?:-with-response-stream)?$")

    def most_output(self, ask: Ask) -> int | None:
        """Under the name that the maker gave it."""
        limit = counts.count(ask.json, "max_tokens", "max_gen_len", "max_tokens_to_sample", "maxTokens")
        if limit is None:
            limit = counts.count(ask.get("textGenerationConfig"), "maxTokenCount")
        return counts.count(ask.get("inferenceConfig"), "max_new_tokens", "maxTokens") if limit is None else limit

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Of the body, of the metrics at the end of a stream, or of the headers that Bedrock adds."""
        if self.streams(ask):
            events = list(frames(answer.body))
            _, told = streamed_usage(events)
            metrics: Any = None
            for event in events:
                metrics = counts.at(event, "amazon-bedrock-invocationMetrics") or metrics
            if told["input"] is None:
                told["input"] = counts.count(metrics, "inputTokenCount")
            if told["output"] is None:
                told["output"] = counts.count(metrics, "outputTokenCount")
        else:
            told = message_usage(counts.at(answer.json, "usage"))
            if told["input"] is None:
                told["input"] = _header(answer, "x-amzn-bedrock-input-token-count")
            if told["output"] is None:
                told["output"] = _header(answer, "x-amzn-bedrock-output-token-count")
        return Usage(provider=self.provider, model=self.model(ask), **told)

    def is_over(self, tail: bytes) -> bool:
        """The frame with the metrics is hidden in base64; the last frame of a stream is told by its ending alone."""
        return False


class Converse(BedrockApi):
    """``converse`` and ``converse-stream``: one shape for all models."""

    name = "converse"
    path = re.compile(r"/model/[^/]+/converse(?:-stream)?$")

    def most_output(self, ask: Ask) -> int | None:
        """``inferenceConfig.maxTokens``."""
        return counts.count(ask.get("inferenceConfig"), "maxTokens")

    def is_pure(self, ask: Ask) -> bool:
        """False with tools of Amazon's, which run there."""
        tools = counts.at(ask.get("toolConfig"), "tools")
        whole = tools if isinstance(tools, list) else []
        return not any(isinstance(tool, dict) and "systemTool" in tool for tool in whole)

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Of the answer, or of the event ``metadata``, the last."""
        told: Any = None
        for event in frames(answer.body) if self.streams(ask) else [answer.json]:
            told = counts.at(event, "usage") or counts.at(event, "metadata", "usage") or told
        new = counts.count(told, "inputTokens")
        read, written = counts.count(told, "cacheReadInputTokens"), counts.count(told, "cacheWriteInputTokens")
        return Usage(
            provider=self.provider,
            model=self.model(ask),
            input=None if new is None else counts.total(new, read, written),
            output=counts.count(told, "outputTokens"),
            cached=read,
            cache_write=written,
        )

    def is_over(self, tail: bytes) -> bool:
        """The frame ``metadata`` with its counts."""
        return b":event-type" in tail and b"metadata" in tail and b'"totalTokens"' in tail


def _header(answer: Answer, name: str) -> int | None:
    value = answer.headers.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else None


APIS: tuple[Api, ...] = (Invoke(), Converse())
