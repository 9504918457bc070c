"""Requests and answers of each provider as the same kind of conversation."""

from __future__ import annotations

import pytest

from jupyter_durable.server.messages import conversation, options, tools
from jupyter_durable.server.replies import events_of, reply
from jupyter_durable.server.shapes import Part

QUESTION = [("system", "text", "Be brief."), ("user", "text", "Weather?")]


def short(messages):
    """Role, kind and text of each part."""
    return [(message.role, part.kind, part.text) for message in messages for part in message.parts]


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Weather?"}]},
        {"system": "Be brief.", "messages": [{"role": "user", "content": [{"type": "text", "text": "Weather?"}]}]},
        {"instructions": "Be brief.", "input": "Weather?"},
        {
            "instructions": "Be brief.",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]}],
        },
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [{"role": "user", "parts": [{"text": "Weather?"}]}],
        },
        {"system": [{"text": "Be brief."}], "messages": [{"role": "user", "content": [{"text": "Weather?"}]}]},
        {"system": "Be brief.", "prompt": "Weather?"},
    ],
    ids=["chat", "anthropic", "responses", "responses-items", "google", "bedrock", "ollama"],
)
def test_every_provider_asks_in_the_same_form(body):
    assert short(conversation(body)) == QUESTION


CALL = ("assistant", "tool_call", '{"city":"Bern"}')


@pytest.mark.parametrize(
    "said",
    [
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": '{"city":"Bern"}'}}],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
            ]
        },
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bern"}}],
                },
                {"role": "tool", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "sunny"}]},
            ]
        },
        {
            "input": [
                {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Bern"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
            ]
        },
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": [{"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Bern"}}}],
                },
                {"role": "tool", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "sunny"}]}}]},
            ]
        },
        {
            "contents": [
                {
                    "role": "model",
                    "parts": [{"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Bern"}}}],
                },
                {
                    "role": "tool",
                    "parts": [{"functionResponse": {"id": "c1", "name": "weather", "response": "sunny"}}],
                },
            ]
        },
    ],
    ids=["chat", "anthropic", "responses", "bedrock", "google"],
)
def test_tool_calls_and_their_results_belong_together(said):
    found = conversation(said)

    assert short(found) == [CALL, ("tool", "tool_result", "sunny")]
    assert [part.id for message in found for part in message.parts] == ["c1", "c1"]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    ],
)
def test_an_image_in_the_request_is_an_image(part):
    (message,) = conversation({"messages": [{"role": "user", "content": [part]}]})

    assert message.parts == [Part(kind="image", media="image/png", data="aGk=")]


def test_the_address_of_an_image_is_text_and_nothing_else():
    part = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    (message,) = conversation({"messages": [{"role": "user", "content": [part]}]})

    assert message.parts == [Part(kind="image", text="https://example.org/a.png")]


ANSWER = [("assistant", "text", "Sunny.")]


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        ({"choices": [{"message": {"role": "assistant", "content": "Sunny."}, "finish_reason": "stop"}]}, "stop"),
        ({"choices": [{"text": "Sunny.", "finish_reason": "length"}]}, "length"),
        ({"role": "assistant", "content": [{"type": "text", "text": "Sunny."}], "stop_reason": "end_turn"}, "end_turn"),
        (
            {"status": "completed", "output": [{"role": "assistant", "content": [{"type": "x", "text": "Sunny."}]}]},
            "completed",
        ),
        (
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "Sunny."}]}, "finishReason": "STOP"}]},
            "STOP",
        ),
        ({"message": {"role": "assistant", "content": "Sunny."}, "done_reason": "stop"}, "stop"),
        (
            {"output": {"message": {"role": "assistant", "content": [{"text": "Sunny."}]}}, "stopReason": "end_turn"},
            "end_turn",
        ),
        (
            [
                {"choices": [{"index": 0, "delta": {"content": "Sun"}}]},
                {"choices": [{"index": 0, "delta": {"content": "ny."}, "finish_reason": "stop"}]},
            ],
            "stop",
        ),
        (
            [
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Sunny."}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            ],
            "end_turn",
        ),
        (
            [
                {"type": "response.output_text.delta", "delta": "Sun"},
                {"type": "response.output_text.delta", "delta": "ny."},
            ],
            "",
        ),
        (
            [
                {"candidates": [{"content": {"parts": [{"text": "Sun"}]}}]},
                {"candidates": [{"content": {"parts": [{"text": "ny."}]}, "finishReason": "STOP"}]},
            ],
            "STOP",
        ),
        ([{"message": {"content": "Sun"}}, {"message": {"content": "ny."}, "done_reason": "stop"}], "stop"),
    ],
)  # fmt: skip
def test_every_provider_answers_in_the_same_form_streamed_or_not(body, stop):
    found, why = reply(body)

    assert (short(found), why) == (ANSWER, stop)


def test_a_streamed_tool_call_is_put_together():
    pieces = [
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "weather"}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"Bern"}'}}]}}]},
    ]

    (message,) = reply(pieces)[0]

    assert message.parts == [Part(kind="tool_call", name="weather", id="c1", text='{"city":"Bern"}')]


def test_names_of_tools_and_the_other_options_are_told():
    body = {
        "model": "m",
        "messages": [],
        "tools": [
            {"function": {"name": "a"}},
            {"name": "b"},
            {"functionDeclarations": [{"name": "c"}]},
            {"type": "web"},
        ],
    }

    assert tools(body) == ["a", "b", "c", "web"]
    assert options(body) == {"model": "m"}


def test_a_stream_that_was_left_in_the_middle_of_an_event_is_read_up_to_there():
    assert events_of('data: {"a": 1}\n\ndata: {"b"') == [{"a": 1}]


@pytest.mark.parametrize(
    "strange",
    [
        None,
        3,
        "text",
        [],
        {"messages": 5},
        {"messages": [None, 3, {"content": {"x": 1}}, {"content": [None, 3, {"type": 5}]}]},
        {"input": {"role": 3, "content": [[1]]}},
        {"contents": [{"parts": [{"functionCall": 3, "functionResponse": []}]}]},
        {"messages": [{"role": "tool", "tool_call_id": 3, "content": {"a": 1}, "tool_calls": [3, {"function": 4}]}]},
        {"choices": [3, {"message": 4}, {"delta": 5}]},
        {"candidates": [3, {"content": 4}], "tools": [3, {"functionDeclarations": [3]}]},
        [{"choices": [{"delta": {"tool_calls": [{"function": 3}]}}]}],
        [{"type": "content_block_start", "content_block": {"name": 3}}],
        [{"message": {"tool_calls": 3}}],
        [{"candidates": 3}],
        {"messages": [{"type": [], "role": {}, "content": [{"type": {}}, {"type": [], "source": {"type": []}}]}]},
        [{"type": [], "index": {}, "delta": {"partial_json": 3}}, {"type": "content_block_delta", "index": []}],
        [{"choices": [{"index": [], "delta": {"tool_calls": [{"index": {}}]}}]}],
    ],
)  # fmt: skip
def test_what_nobody_understands_breaks_nothing(strange):
    conversation(strange)
    tools(strange)
    options(strange)
    reply(strange)
