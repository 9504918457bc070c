"""``POST /v1/messages`` as Anthropic has it: what a request says, and the objects and events that answer it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from jupyter_durable.demo import protocol
from jupyter_durable.demo.bill import Request
from jupyter_durable.demo.chat import pieces, words
from jupyter_durable.demo.conversation import Conversation, Tool, since_the_user_spoke
from jupyter_durable.demo.protocol import BadRequest

_CHOICES: dict[Any, Literal["auto", "none", "required"]] = {"any": "required", "none": "none"}


def conversation(body: dict[str, Any]) -> Conversation:
    """What a body says.

    Raises:
        BadRequest: it is not what the protocol asks for.
    """
    if not isinstance(body.get("max_tokens"), int):
        raise BadRequest("`max_tokens` is needed.")
    read = protocol.messages(body.get("messages"))
    system = protocol.messages([{"role": "system", "content": body["system"]}]) if body.get("system") else []
    blocks = [(_speaker(message, block), block) for message in body["messages"] for block in _blocks(message)]
    said = [str(block.get("text", "")) for speaker, block in blocks if speaker == "user"]
    recent = since_the_user_spoke(blocks)
    names = {block.get("id"): str(block.get("name", "")) for block in recent if block.get("type") == "tool_use"}
    results = tuple(
        (names.get(block.get("tool_use_id"), "tool"), protocol.messages([block])[0][1])
        for block in recent
        if block.get("type") == "tool_result"
    )
    choice = body.get("tool_choice") or {}
    return Conversation(
        messages=(*system, *read),
        tools=tuple(map(_tool, protocol.objects(body, "tools"))),
        called=tuple(names.values()),
        results=results,
        choice=_CHOICES.get(choice.get("type"), "auto"),
        forced=str(choice.get("name") or ""),
        parallel=not choice.get("disable_parallel_tool_use"),
        tells=said[-1] if said else "",
    )


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, list):
        return [block for block in content if isinstance(block, dict)]
    return [{"type": "text", "text": str(content or "")}]


def _speaker(message: dict[str, Any], block: dict[str, Any]) -> str:
    """Who says a block: results of tools come in messages of the user."""
    return "tool" if block.get("type") == "tool_result" else str(message.get("role", "user"))


def _tool(offered: dict[str, Any]) -> Tool:
    if not isinstance(offered.get("name"), str):
        raise BadRequest('A tool is {"name": ..., "input_schema": ...}.')
    return Tool(offered["name"], offered.get("input_schema") or {}, json.dumps(offered, sort_keys=True))


def answer(request: Request, name: str) -> dict[str, Any]:
    """The answer of a request, plain."""
    content: list[dict[str, Any]] = [{"type": "text", "text": request.answer}] if request.answer else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in request.calls
    ]
    return _head(request, name) | {
        "content": content,
        "stop_reason": _stop(request),
        "usage": {"input_tokens": request.prompt_tokens, "output_tokens": request.completion_tokens},
    }


def events(request: Request, name: str) -> Iterator[dict[str, Any]]:
    """The same as the events of a stream, which name themselves in ``type``."""
    # As the protocol has it: the first event counts one token of output, the last one all of them.
    yield {
        "type": "message_start",
        "message": _head(request, name) | {"usage": {"input_tokens": request.prompt_tokens, "output_tokens": 1}},
    }
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if request.answer:
        deltas = [{"type": "text_delta", "text": word} for word in words(request.answer)]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for call in request.calls:
        begun = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(call.arguments)]
        blocks.append((begun, deltas))
    for place, (begun, deltas) in enumerate(blocks):
        yield {"type": "content_block_start", "index": place, "content_block": begun}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": place, "delta": delta}
        yield {"type": "content_block_stop", "index": place}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": _stop(request), "stop_sequence": None},
        "usage": {"output_tokens": request.completion_tokens},
    }
    yield {"type": "message_stop"}


def _stop(request: Request) -> str:
    return "tool_use" if request.calls else "end_turn"


def _head(request: Request, name: str) -> dict[str, Any]:
    return {
        "id": f"msg_{request.id:04d}",
        "type": "message",
        "role": "assistant",
        "model": name,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
