"""``POST /v1/responses`` as OpenAI has it, without streams and tools."""

from __future__ import annotations

from typing import Any

from jupyter_durable.demo import protocol
from jupyter_durable.demo.bill import Request
from jupyter_durable.demo.conversation import Conversation
from jupyter_durable.demo.protocol import MODEL, BadRequest


def conversation(body: dict[str, Any]) -> Conversation:
    """What a body says.

    Raises:
        BadRequest: it has neither a text nor a list of messages, or asks for a stream.
    """
    if body.get("stream"):
        raise BadRequest("This endpoint streams /v1/chat/completions and /v1/messages only: leave `stream` out.")
    given = body.get("input")
    read = [("user", given)] if isinstance(given, str) else protocol.messages(given)
    before = [("developer", str(body["instructions"]))] if body.get("instructions") else []
    return Conversation((*before, *read))


def answer(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """The answer of a request."""
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
