"""The counting endpoint speaks the protocol of the official SDK, and its bill is true."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import openai
import pytest

from jupyter_durable.demo.bill import answer_to, tokens_of
from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.demo.protocol import MODEL

PROMPT = [{"role": "user", "content": "Why does a database keep a log?"}]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An endpoint of the test's own, so that its numbers begin at 1."""
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def client(endpoint: Endpoint) -> Iterator[openai.OpenAI]:
    """The official client, which tries nothing twice by itself."""
    with openai.OpenAI(base_url=endpoint.url, api_key="any", max_retries=0) as client:
        yield client


def raw(endpoint: Endpoint) -> http.client.HTTPConnection:
    """A bare connection, to send what no SDK sends."""
    return http.client.HTTPConnection(urlsplit(endpoint.url).netloc, timeout=10)


def call(endpoint: Endpoint, verb: str, path: str, body: object = None) -> tuple[int, dict]:
    connection = raw(endpoint)
    try:
        connection.request(verb, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def open_request(endpoint: Endpoint) -> socket.socket:
    """Send a chat request and read nothing, as a process does that is about to die."""
    body = json.dumps({"model": MODEL, "messages": PROMPT}).encode()
    address = urlsplit(endpoint.url)
    connection = socket.create_connection((address.hostname, address.port))
    connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    return connection


def test_a_chat_call_answers_and_bills_by_the_stated_rule(endpoint, client):
    answer = client.chat.completions.create(model="gpt-5-mini", messages=PROMPT)

    text = answer.choices[0].message.content
    assert text == answer_to([("user", PROMPT[0]["content"])], 1)
    assert answer.model == "gpt-5-mini"
    assert answer.usage.prompt_tokens == 4 + tokens_of(PROMPT[0]["content"])
    assert answer.usage.completion_tokens == tokens_of(text)
    bill = endpoint.bill.summary()
    assert (bill["requests"], bill["cut"], bill["in_flight"]) == (1, 0, 0)
    assert bill["total_tokens"] == answer.usage.total_tokens
    assert bill["list"][0]["state"] == "completed"


def test_the_same_prompt_gets_another_answer_at_the_same_price(endpoint, client):
    first, second = (client.chat.completions.create(model=MODEL, messages=PROMPT) for _ in range(2))

    assert first.choices[0].message.content != second.choices[0].message.content
    assert first.usage == second.usage
    one, two = endpoint.bill.requests()
    assert one.prompt == two.prompt


def test_a_prompt_that_quotes_an_answer_costs_the_same_whatever_its_number(client):
    def price(number: int) -> tuple[int, int]:
        quoting = [{"role": "user", "content": f"Go on from: {answer_to([('user', 'Hello')], number)}"}]
        usage = client.chat.completions.create(model=MODEL, messages=quoting).usage
        return usage.prompt_tokens, usage.completion_tokens

    assert price(1) == price(7)


def test_a_stream_carries_the_text_and_its_usage(endpoint, client):
    stream = client.chat.completions.create(
        model=MODEL, messages=PROMPT, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == answer_to([("user", PROMPT[0]["content"])], 1)
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == endpoint.bill.summary()["total_tokens"]
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-2].choices[0].finish_reason == "stop"


def test_a_stream_without_the_option_carries_no_usage(endpoint, client):
    chunks = list(client.chat.completions.create(model=MODEL, messages=PROMPT, stream=True))

    assert all(chunk.usage is None and chunk.choices for chunk in chunks)
    assert endpoint.bill.wait_ended(1, 10) == "completed"


async def test_async_calls_at_once_are_all_billed_and_all_answered(endpoint):
    import asyncio

    async with openai.AsyncOpenAI(base_url=endpoint.url, api_key="any", max_retries=0) as client:
        answers = await asyncio.gather(
            *(client.chat.completions.create(model=MODEL, messages=PROMPT) for _ in range(20))
        )
        stream = await client.chat.completions.create(model=MODEL, messages=PROMPT, stream=True)
        streamed = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    texts = {answer.choices[0].message.content for answer in answers} | {streamed}
    assert texts == {answer_to([("user", PROMPT[0]["content"])], number) for number in range(1, 22)}
    assert endpoint.bill.wait_ended(21, 10) == "completed"
    assert endpoint.bill.summary()["requests"] == 21


def test_the_responses_api_answers_and_bills_alike(endpoint, client):
    answer = client.responses.create(model=MODEL, input="Why a log?", instructions="Be brief.")

    expected = [("developer", "Be brief."), ("user", "Why a log?")]
    assert answer.output_text == answer_to(expected, 1)
    assert answer.usage.input_tokens == sum(4 + tokens_of(text) for _, text in expected)
    assert answer.usage.total_tokens == endpoint.bill.summary()["total_tokens"]


def test_models_are_listed_and_not_billed(endpoint, client):
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL
    assert call(endpoint, "GET", "/_bill")[1]["requests"] == 0


def test_many_requests_use_one_connection(endpoint):
    connection = raw(endpoint)
    body = json.dumps({"model": MODEL, "messages": PROMPT, "stream": True})
    sockets = set()
    for _ in range(3):
        connection.request("POST", "/v1/chat/completions", body)
        sockets.add(connection.sock)
        assert connection.getresponse().read().endswith(b"data: [DONE]\n\n")
        connection.request("GET", "/_bill")
        assert json.loads(connection.getresponse().read())["requests"]
    connection.close()

    assert len(sockets) == 1


def test_a_held_request_is_in_flight_until_it_is_released(endpoint, client):
    call(endpoint, "POST", "/_hold", {"requests": [2]})
    client.chat.completions.create(model=MODEL, messages=PROMPT)
    answers = []
    caller = threading.Thread(
        target=lambda: answers.append(client.chat.completions.create(model=MODEL, messages=PROMPT))
    )
    caller.start()

    assert call(endpoint, "GET", "/_wait?in_flight=2&timeout=10") == (200, {"in_flight": 2})
    bill = call(endpoint, "GET", "/_bill")[1]
    assert (bill["requests"], bill["in_flight"], answers) == (2, 1, [])
    assert bill["list"][1]["completion_tokens"] > 0, "it is billed when it is received"
    call(endpoint, "POST", "/_release")
    caller.join(10)
    assert len(answers) == 1
    assert endpoint.bill.wait_ended(2, 10) == "completed"


def test_waiting_for_a_request_that_has_ended_or_never_comes_says_so(endpoint, client):
    client.chat.completions.create(model=MODEL, messages=PROMPT)
    assert endpoint.bill.wait_ended(1, 10) == "completed"

    assert call(endpoint, "GET", "/_wait?in_flight=1")[0] == 409
    assert call(endpoint, "GET", "/_wait?in_flight=9&timeout=0.05")[0] == 504
    assert call(endpoint, "GET", "/_wait")[0] == 400


def test_a_request_whose_client_is_gone_is_billed_and_marked_as_cut(endpoint):
    endpoint.bill.hold(1)
    connection = open_request(endpoint)
    assert endpoint.bill.wait_in_flight(1, 10) == "in_flight"

    connection.close()

    assert endpoint.bill.wait_ended(1, 10) == "cut"
    bill = endpoint.bill.summary()
    assert (bill["requests"], bill["cut"], bill["in_flight"]) == (1, 1, 0)
    assert bill["total_tokens"] > 0


def test_a_client_that_is_gone_during_the_delay_is_noticed_before_the_delay_is_over():
    with Endpoint(delay=60) as endpoint:
        open_request(endpoint).close()

        assert endpoint.bill.wait_ended(1, 10) == "cut"


def test_a_process_killed_in_the_middle_of_a_call_is_noticed(endpoint):
    endpoint.bill.hold(1)
    code = (
        "import sys, openai\n"
        f"openai.OpenAI(base_url=sys.argv[1], api_key='any').chat.completions.create(model='m', messages={PROMPT!r})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, endpoint.url])
    assert endpoint.bill.wait_in_flight(1, 60) == "in_flight"

    process.send_signal(signal.SIGKILL)
    process.wait()

    assert endpoint.bill.wait_ended(1, 10) == "cut"


def test_a_delay_is_kept():
    with Endpoint(delay=0.2) as endpoint, openai.OpenAI(base_url=endpoint.url, api_key="any") as client:
        began = time.monotonic()
        client.chat.completions.create(model=MODEL, messages=PROMPT)

        assert time.monotonic() - began >= 0.2


def test_closing_the_endpoint_ends_what_it_holds():
    endpoint = Endpoint().start()
    endpoint.bill.hold(1)
    connection = open_request(endpoint)
    assert endpoint.bill.wait_in_flight(1, 10) == "in_flight"

    endpoint.close()
    endpoint.close()

    assert connection.recv(100) == b""
    connection.close()
    assert endpoint.bill.requests()[0].state == "cut"


@pytest.mark.parametrize(
    ("path", "body", "status", "word"),
    [
        ("/v1/chat/completions", {"model": MODEL}, 400, "messages"),
        ("/v1/chat/completions", {"messages": ["hello"]}, 400, "message"),
        ("/v1/chat/completions", {"messages": PROMPT, "n": 2}, 400, "`n`"),
        ("/v1/chat/completions", [1], 400, "object"),
        ("/v1/responses", {"input": "x", "stream": True}, 400, "stream"),
        ("/v1/embeddings", {"input": "x"}, 404, "/v1/embeddings"),
    ],
)
def test_what_the_protocol_does_not_allow_is_refused_in_words_and_not_billed(endpoint, path, body, status, word):
    code, answer = call(endpoint, "POST", path, body)

    assert code == status
    assert word in answer["error"]["message"]
    assert endpoint.bill.summary()["requests"] == 0


def test_a_refusal_keeps_the_connection_in_step(endpoint):
    connection = raw(endpoint)
    connection.request("POST", "/v1/chat/completions", "{not json")
    assert connection.getresponse().read()
    connection.request("GET", "/v1/models")
    assert connection.getresponse().status == 200
    connection.close()


def test_text_parts_and_tool_results_count_as_prompt(endpoint, client):
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": parts}])

    assert endpoint.bill.requests()[0].prompt_tokens > 4 + tokens_of("Look:")


def test_as_a_command_it_says_when_it_is_ready_and_holds_what_it_was_told():
    command = [sys.executable, "-m", "jupyter_durable.demo.endpoint", "--port", "0", "--hold", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        word, url = process.stdout.readline().split()
        assert word == "ready"
        with openai.OpenAI(base_url=url, api_key="any", max_retries=0, timeout=0.3) as client:
            with pytest.raises(openai.APITimeoutError):
                client.chat.completions.create(model=MODEL, messages=PROMPT)
            assert client.chat.completions.create(model=MODEL, messages=PROMPT).choices[0].message.content
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=10)
    assert output == ""
    assert process.returncode == 0
