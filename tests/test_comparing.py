"""Two branches side by side: what a model has said, and what tells values apart."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from jupyter_durable.comparing import digest, text_of
from jupyter_durable.event_data import Payload
from jupyter_durable.spoken import said


def answer(body: Any, **more: Any) -> bytes:
    """An answer as it is recorded."""
    text = body if isinstance(body, str) else json.dumps(body)
    return json.dumps({"status": 200, "headers": [["date", "now"]], "body": text, **more}).encode()


def stream(*events: Any) -> str:
    """The body of a stream of server-sent events."""
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


CALL = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"q":1}'}}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"id": "a", "choices": [{"message": {"role": "assistant", "content": "Yes."}}]}, "Yes."),
        ({"choices": [{"message": {"content": None, "tool_calls": [CALL]}}]}, 'find {"q":1}'),
        ({"id": "r", "output": [{"type": "message", "content": [{"type": "output_text", "text": "Yes."}]}]}, "Yes."),
        ({"content": [{"type": "text", "text": "Yes."}], "usage": {"input_tokens": 1}}, "Yes."),
        ({"content": [{"type": "tool_use", "id": "t", "name": "find", "input": {"q": 1}}]}, 'find {"q":1}'),
        ({"candidates": [{"content": {"parts": [{"text": "Yes."}]}}]}, "Yes."),
        ({"message": {"role": "assistant", "content": "Yes."}, "done": True}, "Yes."),
        (stream({"choices": [{"delta": {"content": "Ye"}}]}, {"choices": [{"delta": {"content": "s."}}]}), "Yes."),
        (
            stream(
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Ye"}},
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "s."}},
            ),
            "Yes.",
        ),
        (
            stream(
                {"type": "response.output_text.delta", "delta": "Yes."},
                {"type": "response.completed", "response": {"output": [{"content": [{"text": "Yes."}]}]}},
            ),
            "Yes.",
        ),
        ('{"message":{"content":"Ye"}}\n{"message":{"content":"s."}}\n', "Yes."),
        ({"data": [{"embedding": [0.5]}]}, ""),
        ("out of order", ""),
        ("{" * 100_000, ""),
    ],
)
def test_what_a_model_said_is_found_in_every_form(body: Any, text: str) -> None:
    assert said(answer(body)) == text


def test_a_deep_body_of_a_stranger_is_left_where_it_is_too_deep() -> None:
    deep = '{"content":' * 200 + '"x"' + "}" * 200

    assert said(answer(deep)) == ""


def test_models_that_say_the_same_with_other_ids_are_equal() -> None:
    one, other, different = (
        Payload(data=msgspec.Raw(answer({"id": name, "choices": [{"message": {"content": text}}]})))
        for name, text in (("a", "Yes."), ("b", "Yes."), ("a", "No."))
    )

    assert digest(one, "model") == digest(other, "model") != digest(different, "model")
    assert digest(one) != digest(other)
    assert text_of(one, kind="model") == "Yes."
    assert text_of(one).startswith('{"status": 200')


def test_a_model_call_without_words_is_told_apart_by_its_answer() -> None:
    one, other = (Payload(data=msgspec.Raw(answer({"data": [{"embedding": [x]}]}))) for x in (0.5, 0.25))

    assert digest(one, "model") != digest(other, "model")
