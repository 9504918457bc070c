"""``POST /v1/chat/completions`` as OpenAI has it: what a request says, and the objects that answer it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from jupyter_durable.demo import protocol
from jupyter_durable.demo.bill import Request
from jupyter_durable.demo.conversation import Conversation, Tool, since_the_user_spoke
from jupyter_durable.demo.protocol import BadRequest

_CHOICES: dict[str, Literal["auto", "none", "required"]] = {"none": "none", "required": "required"}
_PIECE = 12
"""Characters of a call's arguments in one chunk of a stream."""


def conversation(body: dict[str, Any]) -> Conversation:
    """What a body says.

    Raises:
        BadRequest: it is not what the protocol asks for.
    """
    messages = protocol.messages(body.get("messages"))
    if body.get("n", 1) not in {1, None}:
        raise BadRequest("This endpoint gives one choice: leave `n` out.")
    choice = body.get("tool_choice") or "auto"
    forced = _function(choice).get("name", "") if isinstance(choice, dict) else ""
    tools = tuple(map(_tool, protocol.objects(body, "tools")))
    if forced and forced not in {tool.name for tool in tools}:
        raise BadRequest(f"`tool_choice` names the tool {forced}, which is not offered.")
    given = body["messages"]
    recent = since_the_user_spoke((message.get("role", "user"), message) for message in given)
    calls = [call for message in recent for call in protocol.objects(message, "tool_calls")]
    names = {call.get("id"): str(_function(call).get("name", "")) for call in calls}
    results = tuple(
        (names.get(message.get("tool_call_id"), "tool"), text)
        for message, (_, text) in zip(given[-len(recent) :], messages[-len(recent) :], strict=True)
        if message.get("role") == "tool"
    )
    return Conversation(
        messages=tuple(messages),
        tools=tools,
        called=tuple(names.values()),
        results=results if recent else (),
        choice=_CHOICES.get(choice, "auto") if isinstance(choice, str) else "auto",
        forced=forced,
        parallel=body.get("parallel_tool_calls") is not False,
    )


def _tool(offered: dict[str, Any]) -> Tool:
    function = _function(offered)
    if not isinstance(function.get("name"), str):
        raise BadRequest('A tool is {"type": "function", "function": {"name": ..., "parameters": ...}}.')
    return Tool(function["name"], function.get("parameters") or {}, json.dumps(offered, sort_keys=True))


def _function(holder: dict[str, Any]) -> dict[str, Any]:
    found = holder.get("function")
    return found if isinstance(found, dict) else {}


def answer(request: Request, name: str) -> dict[str, Any]:
    """The answer of a request, plain."""
    message: dict[str, Any] = {"role": "assistant", "content": request.answer or None, "refusal": None}
    if request.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in request.calls
        ]
    return _head(request, name, "chat.completion") | {
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(request), "logprobs": None}],
        "usage": _usage(request),
    }


def chunks(request: Request, name: str, *, usage_wanted: bool) -> Iterator[dict[str, Any]]:
    """The same, cut into the chunks of a stream: one a word, and the usage last if it is wanted."""
    head = _head(request, name, "chat.completion.chunk")
    if usage_wanted:
        head["usage"] = None  # as the protocol has it: every chunk but the last says null

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]}

    yield chunk({"role": "assistant", "content": None if request.calls else ""})
    for place, call in enumerate(request.calls):
        begun = {"index": place, "id": call.id, "type": "function"}
        yield chunk({"tool_calls": [begun | {"function": {"name": call.name, "arguments": ""}}]})
        for piece in pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    for word in words(request.answer):
        yield chunk({"content": word})
    yield chunk({}, _finish(request))
    if usage_wanted:
        yield head | {"choices": [], "usage": _usage(request)}


def words(text: str) -> list[str]:
    """A text in the pieces of a stream.

    >>> words("so it is")
    ['so', ' it', ' is']
    """
    return [f" {word}" if place else word for place, word in enumerate(text.split(" "))] if text else []


def pieces(text: str) -> list[str]:
    """The JSON of a call's arguments in the pieces of a stream."""
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def _finish(request: Request) -> str:
    return "tool_calls" if request.calls else "stop"


def _usage(request: Request) -> dict[str, int]:
    return {
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": request.completion_tokens,
        "total_tokens": request.tokens,
    }


def _head(request: Request, name: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{request.id:04d}", "object": kind, "created": int(request.at), "model": name}
