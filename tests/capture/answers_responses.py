"""OpenAI's responses protocol as the fake provider speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.capture.answers_openai import chosen_tool
from tests.capture.invented import CREATED, answer_text, mark, pieces, plain_text, tokens_of, value_for

Json = dict[str, Any]


def _items(body: Json) -> list[Json]:
    given = body.get("input")
    return given if isinstance(given, list) else [{"role": "user", "content": given}]


def _output(body: Json, number: int) -> Json:
    items = _items(body)
    asked = max((at for at, item in enumerate(items) if item.get("role") == "user"), default=0)
    returned = any(item.get("type") == "function_call_output" for item in items[asked:])
    tool = None if returned else chosen_tool(body.get("tools") or [], body.get("tool_choice"))
    if tool:
        return {
            "type": "function_call",
            "id": f"fc_{mark(number)}",
            "call_id": f"call_{mark(number)}",
            "name": tool["name"],
            "arguments": json.dumps(value_for(tool.get("parameters", {}), number)),
            "status": "completed",
        }
    wanted = (body.get("text") or {}).get("format") or {}
    if wanted.get("type") == "json_schema":
        text = json.dumps(value_for(wanted["schema"], number))
    else:
        text = answer_text(plain_text(items[-1]), number)
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "type": "message",
        "id": f"msg_{mark(number)}",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def response(body: Json, number: int) -> Json:
    """A completed response."""
    item = _output(body, number)
    used = 4 + tokens_of(plain_text(_items(body))) + tokens_of(body.get("instructions") or "")
    made = tokens_of(plain_text(item) or str(item.get("arguments")))
    return {
        **_frame(body, number),
        "status": "completed",
        "output": [item],
        "usage": {
            "input_tokens": used,
            "input_tokens_details": {"cached_tokens": 1},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": used + made,
        },
    }


def _frame(body: Json, number: int) -> Json:
    return {
        "id": f"resp_{mark(number)}",
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": body["model"],
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def response_events(body: Json, number: int) -> Iterator[str]:
    """The same as server-sent events."""
    whole, frame = response(body, number), _frame(body, number)
    item = whole["output"][0]
    sequence = 0

    def event(kind: str, **fields: Any) -> str:
        nonlocal sequence
        data = {"type": kind, "sequence_number": sequence, **fields}
        sequence += 1
        return f"event: {kind}\ndata: {json.dumps(data)}\n\n"

    place = {"item_id": item["id"], "output_index": 0}
    yield event("response.created", response=frame)
    yield event("response.in_progress", response=frame)
    if item["type"] == "function_call":
        yield event(
            "response.output_item.added", output_index=0, item={**item, "arguments": "", "status": "in_progress"}
        )
        for piece in pieces(item["arguments"], 3):
            yield event("response.function_call_arguments.delta", delta=piece, **place)
        yield event("response.function_call_arguments.done", arguments=item["arguments"], name=item["name"], **place)
    else:
        part = item["content"][0]
        place["content_index"] = 0
        yield event("response.output_item.added", output_index=0, item={**item, "content": [], "status": "in_progress"})
        yield event("response.content_part.added", part={**part, "text": ""}, **place)
        for piece in pieces(part["text"]):
            yield event("response.output_text.delta", delta=piece, logprobs=[], **place)
        yield event("response.output_text.done", text=part["text"], logprobs=[], **place)
        yield event("response.content_part.done", part=part, **place)
    yield event("response.output_item.done", output_index=0, item=item)
    yield event("response.completed", response=whole)
