"""OpenAI's protocol as the fake provider speaks it: chat completions, embeddings and the smaller endpoints."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterator
from typing import Any

from tests.capture.invented import CREATED, answer_text, mark, pieces, plain_text, tokens_of, value_for, vector_for

Json = dict[str, Any]


def chosen_tool(tools: list[Json], choice: Any) -> Json | None:
    """The function that an answer calls: the one that is asked for, else the first; ``None`` if there is none."""
    functions = [tool.get("function", tool) for tool in tools if tool.get("type", "function") in {"function", "custom"}]
    if choice == "none" or not functions:
        return None
    wanted = choice.get("function", choice).get("name") if isinstance(choice, dict) else None
    return next((function for function in functions if function["name"] == wanted), functions[0])


def _tool_for(body: Json) -> Json | None:
    messages = body.get("messages") or []
    asked = max((at for at, message in enumerate(messages) if message["role"] == "user"), default=0)
    if any(message["role"] == "tool" for message in messages[asked:]):
        return None  # the result has come back: now the text
    return chosen_tool(body.get("tools") or [], body.get("tool_choice"))


def _message(body: Json, number: int) -> tuple[Json, str]:
    tool = _tool_for(body)
    if tool:
        arguments = json.dumps(value_for(tool.get("parameters", {}), number))
        call = {
            "id": f"call_{mark(number)}",
            "type": "function",
            "function": {"name": tool["name"], "arguments": arguments},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None}, "tool_calls"
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        text = json.dumps(value_for(wanted["json_schema"]["schema"], number))
    elif wanted.get("type") == "json_object":
        text = json.dumps({"answer": mark(number)})
    else:
        text = answer_text(plain_text(body["messages"][-1].get("content")), number)
    return {"role": "assistant", "content": text, "refusal": None, "annotations": []}, "stop"


def _usage(body: Json, message: Json) -> Json:
    prompt = sum(4 + tokens_of(plain_text(message.get("content"))) for message in body["messages"])
    completion = tokens_of(message["content"] or json.dumps(message.get("tool_calls")))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 1,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def chat(body: Json, number: int) -> Json:
    """A chat completion."""
    message, reason = _message(body, number)
    return {
        "id": f"chatcmpl-{mark(number)}",
        "object": "chat.completion",
        "created": CREATED,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": _usage(body, message),
        "service_tier": "default",
        "system_fingerprint": "fp_fake",
    }


def chat_events(body: Json, number: int) -> Iterator[str]:
    """The same as server-sent events; usage comes last, if it is asked for."""
    message, reason = _message(body, number)
    asked_usage = bool((body.get("stream_options") or {}).get("include_usage"))

    def event(choices: list[Json], usage: Json | None = None) -> str:
        chunk: Json = {
            "id": f"chatcmpl-{mark(number)}",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": body["model"],
            "system_fingerprint": "fp_fake",
            "choices": choices,
        }
        if asked_usage:
            chunk["usage"] = usage
        return f"data: {json.dumps(chunk)}\n\n"

    def delta(part: Json, reason: str | None = None) -> str:
        return event([{"index": 0, "delta": part, "logprobs": None, "finish_reason": reason}])

    if message.get("tool_calls"):
        call = message["tool_calls"][0]
        opening = {**call, "index": 0, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield delta({"role": "assistant", "content": None, "tool_calls": [opening]})
        for piece in pieces(call["function"]["arguments"], 3):
            yield delta({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    else:
        yield delta({"role": "assistant", "content": "", "refusal": None})
        for piece in pieces(message["content"]):
            yield delta({"content": piece})
    yield delta({}, reason)
    if asked_usage:
        yield event([], _usage(body, message))
    yield "data: [DONE]\n\n"


def embeddings(body: Json, number: int) -> Json:
    """Vectors, as floats or in base64 as the SDK asks for them; the model's name carries the number."""
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]

    def vector(text: Any) -> list[float] | str:
        floats = vector_for(str(text))
        if body.get("encoding_format") != "base64":
            return floats
        return base64.b64encode(struct.pack(f"<{len(floats)}f", *floats)).decode()

    tokens = sum(tokens_of(str(text)) for text in texts)
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(texts)],
        "model": f"{body['model']}-{mark(number)}",
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def transcription(form: bytes, number: int) -> Json:
    """The text of a multipart upload; it tells the size of the file that arrived."""
    found = re.search(rb'name="file".*?\r\n\r\n(.*?)\r\n--', form, re.DOTALL)
    size = len(found[1]) if found else -1
    return {
        "text": f"Transcript {mark(number)} of {size} bytes",
        "usage": {
            "type": "tokens",
            "input_tokens": 14,
            "input_token_details": {"text_tokens": 0, "audio_tokens": 14},
            "output_tokens": 6,
            "total_tokens": 20,
        },
    }


def moderation(body: Json, number: int) -> Json:
    """Nothing is ever flagged."""
    return {
        "id": f"modr-{mark(number)}",
        "model": body.get("model", "omni-moderation-latest"),
        "results": [
            {
                "flagged": False,
                "categories": {"violence": False},
                "category_scores": {"violence": 0.125},
                "category_applied_input_types": {"violence": ["text"]},
            }
        ],
    }


def image(body: Json, number: int) -> Json:
    """An image of no pixels whose bytes are the number."""
    return {
        "created": CREATED,
        "data": [{"b64_json": base64.b64encode(mark(number).encode()).decode(), "revised_prompt": body["prompt"]}],
        "usage": {
            "input_tokens": 5,
            "input_tokens_details": {"text_tokens": 5, "image_tokens": 0},
            "output_tokens": 16,
            "total_tokens": 21,
        },
    }
