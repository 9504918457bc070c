"""What the protocols of models have in common: the model's name, refusals, and the messages of a body."""

from __future__ import annotations

import json
from typing import Any

MODEL = "counting-model-1"


class BadRequest(ValueError):
    """The body of a request is not what the protocol asks for."""


def model() -> dict[str, Any]:
    """The one model there is."""
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": "jupyter_durable"}


def error(message: str) -> dict[str, Any]:
    """A refusal, in a form that the SDKs of OpenAI and Anthropic both read."""
    return {
        "type": "error",
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": None},
    }


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
        elif message.get("tool_calls"):
            content = f"{content}\n{json.dumps(message['tool_calls'], sort_keys=True)}"
        read.append((str(message.get("role", "user")), str(content)))
    return read


def objects(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """A field that is a list of objects; empty if it is not there.

    Raises:
        BadRequest: it is something else.
    """
    found = body.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BadRequest(f"`{name}` is a list of JSON objects.")
    return found
