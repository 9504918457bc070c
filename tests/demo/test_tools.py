"""The counting endpoint calls tools, plain and streamed, as OpenAI and Anthropic have it; its bill stays true."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import openai
import pytest

from jupyter_durable.demo.bill import tokens_of
from jupyter_durable.demo.conversation import arguments_for
from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.demo.protocol import MODEL

QUESTION = {"role": "user", "content": "How many pages has 'Emma', and who sells 3 of it?"}


def offer(name: str, **properties: dict) -> dict:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": f"Does {name}.", "parameters": parameters}}


TOOLS = [
    offer("pages_of", title={"type": "string"}),
    offer("sellers", title={"type": "string"}, copies={"type": "integer"}),
    offer("today"),
]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An endpoint of the test's own, so that its numbers begin at 1."""
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def client(endpoint: Endpoint) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=endpoint.url, api_key="any", max_retries=0) as client:
        yield client


def result_of(call) -> dict:
    return {"role": "tool", "tool_call_id": call.id, "content": f"{call.function.name} found 474"}


def plain(client: openai.OpenAI, messages: list, **options):
    answer = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS, **options)
    return answer.choices[0].message, answer.usage


def streamed(client: openai.OpenAI, messages: list, **options):
    with client.chat.completions.stream(
        model=MODEL, messages=messages, tools=TOOLS, stream_options={"include_usage": True}, **options
    ) as stream:
        for _ in stream:
            pass
        answer = stream.get_final_completion()
    return answer.choices[0].message, answer.usage


def conversation(client: openai.OpenAI, ask, **options) -> tuple[list[list[str]], str, list]:
    """The tools of each turn, the final text, and the usage of each turn."""
    messages: list = [QUESTION]
    turns, used = [], []
    while True:
        message, usage = ask(client, messages, **options)
        used.append(usage)
        if not message.tool_calls:
            return turns, message.content, used
        turns.append([call.function.name for call in message.tool_calls])
        messages += [message.model_dump(exclude_none=True), *map(result_of, message.tool_calls)]


@pytest.mark.parametrize("ask", [plain, streamed])
def test_every_tool_is_called_once_over_several_turns_and_the_answer_tells_their_results(client, endpoint, ask):
    turns, text, used = conversation(client, ask)

    assert turns == [["pages_of", "sellers"], ["today"]]
    assert "How many pages has 'Emma'" in text
    assert all(f"{tool} says '{tool} found 474'" in text for tool in ("pages_of", "sellers", "today"))
    bill = endpoint.bill.summary()
    assert (bill["requests"], bill["cut"]) == (3, 0)
    assert bill["total_tokens"] == sum(usage.total_tokens for usage in used)
    assert [entry["state"] for entry in bill["list"]] == ["completed"] * 3


def test_a_stream_says_what_a_plain_answer_says(client, endpoint):
    one, _ = plain(client, [QUESTION])
    other, _ = streamed(client, [QUESTION])

    def said(message) -> list:
        return [(call.function.name, call.function.arguments) for call in message.tool_calls]

    assert said(one) == said(other)
    assert [call.id for call in one.tool_calls] == ["call_0001_1", "call_0001_2"]
    assert [call.id for call in other.tool_calls] == ["call_0002_1", "call_0002_2"]


def test_a_stream_sends_arguments_in_pieces_and_ends_with_the_reason(client):
    chunks = list(client.chat.completions.create(model=MODEL, messages=[QUESTION], tools=TOOLS, stream=True))

    deltas = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert [delta.function.name for delta in deltas if delta.id] == ["pages_of", "sellers"]
    assert len([delta for delta in deltas if delta.index == 1]) > 2
    assert "".join(d.function.arguments for d in deltas if d.index == 1) == '{"title": "Emma", "copies": 3}'
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_the_bill_counts_offers_and_calls_by_the_stated_rule(client):
    message, usage = plain(client, [QUESTION])

    offered = sum(tokens_of(json.dumps(tool, sort_keys=True)) for tool in TOOLS)
    assert usage.prompt_tokens == 4 + tokens_of(QUESTION["content"]) + offered
    assert usage.completion_tokens == sum(
        tokens_of(call.function.name) + tokens_of(call.function.arguments) for call in message.tool_calls
    )


def test_the_same_conversation_costs_the_same_whatever_its_numbers(client):
    first = [usage.total_tokens for usage in conversation(client, plain)[2]]
    second = [usage.total_tokens for usage in conversation(client, plain)[2]]

    assert first == second


@pytest.mark.parametrize(
    ("options", "turns"),
    [
        ({"tool_choice": "none"}, []),
        ({"parallel_tool_calls": False}, [["pages_of"], ["sellers"], ["today"]]),
    ],
)
def test_what_a_request_says_about_tools_is_kept_to(client, options, turns):
    assert conversation(client, plain, **options)[0] == turns


def test_a_tool_that_is_demanded_is_called(client):
    demanded = {"type": "function", "function": {"name": "today"}}
    named, _ = plain(client, [QUESTION], tool_choice=demanded)
    done = [QUESTION, named.model_dump(exclude_none=True), result_of(named.tool_calls[0])]
    again, _ = plain(client, done, tool_choice="required")

    assert [call.function.name for call in named.tool_calls] == ["today"]
    assert [call.function.name for call in again.tool_calls] == ["pages_of"]


def test_a_new_question_calls_the_tools_again(client):
    messages = [QUESTION, {"role": "assistant", "content": "474."}, {"role": "user", "content": "And 'Persuasion'?"}]
    message, _ = plain(client, messages)

    assert json.loads(message.tool_calls[0].function.arguments) == {"title": "Persuasion"}


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"properties": {"n": {"type": "integer", "minimum": 5, "maximum": 9}}}, {"n": 5}),
        ({"properties": {"unit": {"enum": ["kg", "pages"]}}}, {"unit": "pages"}),
        ({"properties": {"all": {"type": "boolean"}, "why": {"type": ["null", "number"]}}}, {"all": True, "why": 3.0}),
        ({"properties": {"xs": {"type": "array", "items": {"$ref": "#/$defs/X"}}}, "$defs": {"X": {"type": "string"}}},
         {"xs": ["Emma"]}),
        ({"properties": {"a": {"anyOf": [{"type": "null"}, {"const": 4}]}, "b": {}}, "required": ["a"]}, {"a": 4}),
        ({"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"$ref": "#/$defs/X"}}}, {"x": "Emma"}),
        ({}, {}),
    ],
)  # fmt: skip
def test_arguments_fit_their_schema(schema, made):
    assert arguments_for(schema, QUESTION["content"]) == made


def call(endpoint: Endpoint, path: str, body: object) -> tuple[int, dict]:
    connection = http.client.HTTPConnection(urlsplit(endpoint.url).netloc, timeout=10)
    try:
        connection.request("POST", path, json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "more", "word"),
    [
        ("/v1/chat/completions", {"tools": "all"}, "tools"),
        ("/v1/chat/completions", {"tools": [{"type": "function"}]}, "function"),
        ("/v1/chat/completions", {"tools": [TOOLS[2]], "tool_choice": {"function": {"name": "no"}}}, "no"),
        ("/v1/messages", {}, "max_tokens"),
        ("/v1/messages", {"max_tokens": 5, "tools": [{"type": "x"}]}, "input_schema"),
    ],
)
def test_what_no_tool_can_be_is_refused_and_not_billed(endpoint, path, more, word):
    status, answer = call(endpoint, path, {"model": MODEL, "messages": [QUESTION], **more})

    assert status == 400
    assert word in answer["error"]["message"]
    assert endpoint.bill.summary()["requests"] == 0


@pytest.fixture
def claude(endpoint: Endpoint):
    anthropic = pytest.importorskip("anthropic")
    with anthropic.Anthropic(base_url=endpoint.url.removesuffix("/v1"), api_key="any", max_retries=0) as client:
        yield client


ANTHROPIC_TOOLS = [{"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]} for tool in TOOLS]


def ask_plain(claude, messages):
    return claude.messages.create(
        model=MODEL, max_tokens=500, system="Be brief.", messages=messages, tools=ANTHROPIC_TOOLS
    )


def ask_streamed(claude, messages):
    with claude.messages.stream(
        model=MODEL, max_tokens=500, system="Be brief.", messages=messages, tools=ANTHROPIC_TOOLS
    ) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("ask", [ask_plain, ask_streamed])
def test_anthropics_protocol_is_spoken_too(claude, endpoint, ask):
    messages: list = [QUESTION]
    turns, used = [], 0
    while True:
        answer = ask(claude, messages)
        used += answer.usage.input_tokens + answer.usage.output_tokens
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            break
        assert answer.stop_reason == "tool_use"
        turns.append([call.name for call in calls])
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": f"{call.name} found {call.input}"}
            for call in calls
        ]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]

    assert turns == [["pages_of", "sellers"], ["today"]]
    assert answer.stop_reason == "end_turn"
    text = answer.content[0].text
    assert "How many pages has 'Emma'" in text
    assert "sellers says" in text
    assert endpoint.bill.wait_ended(3, 10) == "completed"
    assert endpoint.bill.summary()["total_tokens"] == used
