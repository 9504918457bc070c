"""The shapes of the OpenAI protocol: what a request's body says, and the objects that answer it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jupyter_durable.demo.bill import Request

MODEL = "counting-model-1"


class BadRequest(ValueError):
    """The body of a request is not what the protocol asks for."""


def model() -> dict[str, Any]:
    """The one model there is."""
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": "jupyter_durable"}


def error(message: str) -> dict[str, Any]:
    """A refusal."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def inputs(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text of each message of a body of POST /v1/responses.

    Raises:
        BadRequest: it has neither a text nor a list of messages.
    """
    given = body.get("input")
    read = [("user", given)] if isinstance(given, str) else messages(given)
    return [("developer", str(body["instructions"])), *read] if body.get("instructions") else read


def messages(given: Any) -> list[tuple[str, str]]:
    """Role and text of each message; what is not text (images, tool calls) counts as its JSON.

    Raises:
        BadRequest: this is not a list of messages.
    """
    if not isinstance(given, list) or not given:
        raise BadRequest("A list of messages is needed.")
    read = []
    for message in given:
        if not isinstance(message, dict):
            raise BadRequest("A message is a JSON object.")
        content = message.get("content")
        if isinstance(content, list):
            content = "\n".join(
                str(part["text"]) if isinstance(part, dict) and "text" in part else json.dumps(part, sort_keys=True)
                for part in content
            )
        elif content is None:
            rest = {key: value for key, value in message.items() if key not in {"role", "content"}}
            content = json.dumps(rest, sort_keys=True) if rest else ""
        read.append((str(message.get("role", "user")), str(content)))
    return read


def _chat_usage(request: Request) -> dict[str, int]:
    return {
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": request.completion_tokens,
        "total_tokens": request.tokens,
    }


def _chat_head(request: Request, name: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{request.id:04d}", "object": kind, "created": int(request.at), "model": name}


def chat(request: Request, name: str) -> dict[str, Any]:
    """The answer of POST /v1/chat/completions."""
    message = {"role": "assistant", "content": request.answer, "refusal": None}
    return _chat_head(request, name, "chat.completion") | {
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": _chat_usage(request),
    }


def chat_chunks(request: Request, name: str, *, usage_wanted: bool) -> Iterator[dict[str, Any]]:
    """The same, cut into the chunks of a stream: one a word, and the usage last if it is wanted."""
    head = _chat_head(request, name, "chat.completion.chunk")
    if usage_wanted:
        head["usage"] = None  # as the protocol has it: every chunk but the last says null

    def chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]}

    yield chunk({"role": "assistant", "content": ""})
    for place, word in enumerate(request.answer.split(" ")):
        yield chunk({"content": f" {word}" if place else word})
    yield chunk({}, "stop")
    if usage_wanted:
        yield head | {"choices": [], "usage": _chat_usage(request)}


def response(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """The answer of POST /v1/responses."""
    text = {"type": "output_text", "text": request.answer, "annotations": []}
    return {
        "id": f"resp_{request.id:04d}",
        "object": "response",
        "created_at": int(request.at),
        "status": "completed",
        "model": body.get("model") or MODEL,
        "instructions": body.get("instructions"),
        "output": [
            {
                "id": f"msg_{request.id:04d}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [text],
            }
        ],
        "error": None,
        "incomplete_details": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": {
            "input_tokens": request.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": request.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": request.tokens,
        },
    }
