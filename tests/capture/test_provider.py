"""The fake provider: it is only worth what its counts and its faults are worth."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from tests.capture.invented import masked
from tests.capture.provider import Provider

ASK = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


@pytest.fixture
def http(provider):
    with httpx.Client(base_url=provider.url, timeout=20) as client:
        yield client


def ask(http: httpx.Client, **more):
    return http.post("/v1/chat/completions", json={**ASK, **more})


def test_every_answer_carries_the_number_of_its_request(provider, http):
    texts = [ask(http).json()["choices"][0]["message"]["content"] for _ in range(2)]

    assert [text.split()[1] for text in texts] == ["000001", "000002"]
    assert masked(texts[0]) == masked(texts[1])
    assert [one.state for one in provider.desk.seen()] == ["answered", "answered"]
    assert json.loads(provider.desk.seen()[0].body) == ASK


def test_a_prefix_of_a_gateway_does_not_matter(provider, http):
    assert http.post("/gateway/openai/v1/chat/completions", json=ASK).status_code == 200
    assert provider.desk.by_path() == {"/gateway/openai/v1/chat/completions": 1}


def test_requests_of_other_kinds_are_counted_apart(provider, http):
    ask(http)
    http.post("/v1/traces/ingest", json={})
    http.get("/plain/page")

    assert [(one.kind, one.number) for one in provider.desk.seen(None)] == [
        ("model", 1),
        ("telemetry", 1),
        ("plain", 1),
    ]
    assert http.get("/elsewhere").status_code == 404
    assert len(provider.desk.seen(None)) == 3


def test_it_refuses_as_it_is_told_and_then_answers(provider, http):
    provider.desk.fail_next(2, 429, retry_after="3")

    answers = [ask(http) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [429, 429, 200]
    assert answers[0].headers["retry-after"] == "3"
    assert [one.state for one in provider.desk.seen()] == ["refused", "refused", "answered"]


def test_it_hangs_up_without_an_answer(provider, http):
    provider.desk.hang_up_next()

    with pytest.raises(httpx.RemoteProtocolError):
        ask(http)

    assert ask(http).status_code == 200


def test_it_cuts_a_stream_after_some_events(provider, http):
    provider.desk.cut_next(after=2)
    lines = []

    with (
        pytest.raises(httpx.RemoteProtocolError),
        http.stream("POST", "/v1/chat/completions", json={**ASK, "stream": True}) as answer,
    ):
        lines.extend(answer.iter_lines())
    whole = ask(http, stream=True).text

    assert whole.endswith("data: [DONE]\n\n")
    assert [one.state for one in provider.desk.seen()] == ["cut", "answered"]


def test_usage_is_streamed_only_if_it_is_asked_for(http):
    def chunks(**more):
        lines = ask(http, stream=True, **more).text.split("\n\n")
        return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]

    assert all("usage" not in chunk and chunk["choices"] for chunk in chunks())
    last = chunks(stream_options={"include_usage": True})[-1]
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == ask(http).json()["usage"]["total_tokens"]


def test_a_gzip_model_answers_compressed_if_it_may(provider, http):
    packed = ask(http, model="gzip-model")
    plain = http.post(
        "/v1/chat/completions", json={**ASK, "model": "gzip-model"}, headers={"accept-encoding": "identity"}
    )

    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert masked(packed.json()) == masked(plain.json())


def test_what_is_held_is_open_until_it_is_released(provider, http):
    provider.desk.hold_from(1)
    answers = []
    caller = threading.Thread(target=lambda: answers.append(ask(http)))
    caller.start()

    assert provider.desk.wait_open(1)
    assert (answers, provider.desk.seen()[0].state) == ([], "open")
    provider.desk.release()
    caller.join(20)

    assert answers[0].status_code == 200


def test_it_is_a_process_of_its_own_as_well():
    program = Path(__file__).with_name("provider.py")
    process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().split()[1]
        httpx.post(f"{url}/_desk", json={"word": "fail_next", "status": 503})
        statuses = [httpx.post(f"{url}/v1/chat/completions", json=ASK).status_code for _ in range(2)]
        seen = httpx.get(f"{url}/_seen").json()
    finally:
        process.kill()
        process.communicate()

    assert statuses == [503, 200]
    assert [one["state"] for one in seen] == ["refused", "answered"]
