"""Anthropic's protocol as the fake provider speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.capture.invented import answer_text, counting, mark, pieces, plain_text, tokens_of, value_for

Json = dict[str, Any]


def _tool_for(body: Json) -> Json | None:
    tools, choice = body.get("tools") or [], body.get("tool_choice") or {}
    last = body["messages"][-1]["content"]
    returned = isinstance(last, list) and any(part.get("type") == "tool_result" for part in last)
    if not tools or returned or choice.get("type") == "none":
        return None
    return next((tool for tool in tools if tool["name"] == choice.get("name")), tools[0])


def _schema_for(body: Json) -> Json | None:
    wanted = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    return wanted.get("schema") if wanted.get("type") == "json_schema" else None


def _block(body: Json, number: int) -> Json:
    tool, schema = _tool_for(body), _schema_for(body)
    if tool:
        made = value_for(tool.get("input_schema", {}), number)
        return {"type": "tool_use", "id": f"toolu_{mark(number)}", "name": tool["name"], "input": made}
    if schema is not None:
        return {"type": "text", "text": json.dumps(value_for(schema, number))}
    return {"type": "text", "text": answer_text(plain_text(body["messages"][-1]["content"]), number)}


def _input_tokens(body: Json) -> int:
    texts = [plain_text(body.get("system") or ""), *(plain_text(one["content"]) for one in body["messages"])]
    return sum(4 + tokens_of(text) for text in texts if text)


def message(body: Json, number: int) -> Json:
    """A whole message."""
    block = _block(body, number)
    return {
        "id": f"msg_{mark(number)}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [block],
        "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": _input_tokens(body),
            "output_tokens": tokens_of(block.get("text") or json.dumps(block.get("input"))),
            "cache_read_input_tokens": 2,
            "cache_creation_input_tokens": 1,
            "service_tier": "standard",
        },
    }


def message_events(body: Json, number: int) -> Iterator[str]:
    """The same as server-sent events: input tokens come first, output tokens last."""
    whole = message(body, number)
    block = whole["content"][0]

    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield event("message_start", message=begun)
    if block["type"] == "tool_use":
        yield event("content_block_start", index=0, content_block={**block, "input": {}})
        deltas = [
            {"type": "input_json_delta", "partial_json": piece} for piece in pieces(json.dumps(block["input"]), 3)
        ]
    else:
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    yield event("ping")
    for delta in deltas:
        yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ending, usage={"output_tokens": whole["usage"]["output_tokens"]})
    yield event("message_stop")


def count_tokens(body: Json, number: int) -> Json:
    """How many tokens a prompt would have. Nothing but the count is told, so the count is the request's number."""
    return {"input_tokens": counting(number)}
