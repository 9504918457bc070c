"""Gemini's protocol as the fake provider speaks it. The model stands in the path, not in the body."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.capture.invented import answer_text, counting, mark, pieces, plain_text, tokens_of, value_for, vector_for

Json = dict[str, Any]


def _tool_for(body: Json) -> Json | None:
    declared = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
    last = body["contents"][-1].get("parts") or []
    returned = any("functionResponse" in part for part in last)
    return declared[0] if declared and not returned else None


def _part(body: Json, number: int) -> Json:
    tool = _tool_for(body)
    if tool:
        names = ("parametersJsonSchema", "parameters_json_schema", "parameters")  # the SDK sends the second one
        schema = next((tool[name] for name in names if name in tool), {})
        return {"functionCall": {"name": tool["name"], "args": value_for(schema, number)}}
    wanted = body.get("generationConfig") or {}
    schema = wanted.get("responseJsonSchema") or wanted.get("responseSchema")
    if schema:
        return {"text": json.dumps(value_for(schema, number))}
    return {"text": answer_text(plain_text(body["contents"][-1].get("parts")), number)}


def _answer(body: Json, number: int, model: str, part: Json, *, last: bool) -> Json:
    used, made = tokens_of(plain_text(body["contents"])), tokens_of(json.dumps(part))
    candidate: Json = {"content": {"parts": [part], "role": "model"}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": used,
            "candidatesTokenCount": made,
            "totalTokenCount": used + made,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": used}],
        },
        "modelVersion": model,
        "responseId": f"resp-{mark(number)}",
    }


def generated(body: Json, number: int, model: str) -> Json:
    """A whole answer."""
    return _answer(body, number, model, _part(body, number), last=True)


def generated_events(body: Json, number: int, model: str) -> Iterator[str]:
    """The same as server-sent events; the usage of the last one counts."""
    part = _part(body, number)
    parts = [{"text": piece} for piece in pieces(part["text"], 3)] if "text" in part else [part]
    for at, one in enumerate(parts, 1):
        yield f"data: {json.dumps(_answer(body, number, model, one, last=at == len(parts)))}\r\n\r\n"


def embedded(body: Json, number: int) -> Json:
    """One vector; the first value is the number, since there is nowhere else to put it."""
    return {"embedding": {"values": [float(counting(number)), *vector_for(plain_text(body["content"]))]}}


def embedded_batch(body: Json, number: int) -> Json:
    """A vector for each of several texts."""
    return {"embeddings": [embedded(one, number)["embedding"] for one in body["requests"]]}
