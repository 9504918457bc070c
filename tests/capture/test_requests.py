"""Model calls through requests: recorded as they go by, handed out again without a request."""

from __future__ import annotations

import io
import json
import re
import types

import pytest

from jupyter_durable import durable, errors
from jupyter_durable.capture import requests_adapter
from tests.capture.loopback import (
    ASK,
    EVENTS,
    Loopback,
    QuickLog,
    cut_stream,
    gated_stream,
    gzip_stream,
    json_answer,
    stream,
)

requests = pytest.importorskip("requests")

WHOLE = b"".join(EVENTS)
KEY = "sk-secret-of-the-test-0123456789"


@pytest.fixture
def server():
    with Loopback() as server:
        yield server


@pytest.fixture
def log(tmp_path):
    return QuickLog(tmp_path)


@pytest.fixture
def twice(server, log):
    """Runs a program recorded and replayed; returns both results and how many requests each made."""

    def run(program):
        results, counts = [], []
        for _ in range(2):
            before = len(server.seen)
            with durable.run("job", log=log):
                results.append(program())
            counts.append(len(server.seen) - before)
        return results, counts

    return run


WAYS = {
    "content": lambda r: r.content,
    "text": lambda r: r.text.encode(),
    "iter_lines": lambda r: list(r.iter_lines()),
    "iter_lines_text": lambda r: list(r.iter_lines(decode_unicode=True)),
    "iter_content_1": lambda r: b"".join(r.iter_content()),
    "iter_content_7": lambda r: b"".join(r.iter_content(7)),
    "iter_content_none": lambda r: list(r.iter_content(None)),
    "iteration": b"".join,
    "raw_lines": lambda r: list(r.raw),
    "raw_stream": lambda r: b"".join(r.raw.stream(5, decode_content=True)),
    "raw_readline": lambda r: (r.raw.readline(), r.raw.readline(), r.raw.read(decode_content=True)),
    "raw_file": lambda r: io.BufferedReader(r.raw).read(),
}


@pytest.mark.parametrize("answer", [stream, gzip_stream], ids=["plain", "gzip"])
@pytest.mark.parametrize("way", [pytest.param(way, id=name) for name, way in WAYS.items()])
def test_every_way_to_read_a_stream_gives_what_it_gives_without_capture(server, twice, way, answer):
    if answer is gzip_stream and way in (WAYS["raw_readline"], WAYS["raw_file"]):
        pytest.skip("without capture these give the compressed bytes")
    server.on_chat(answer)

    def program():
        with requests.post(server.chat, json={**ASK, "stream": True}, stream=True, timeout=20) as response:
            return way(response), response.status_code, response.url, response.encoding

    plain = program()
    results, counts = twice(program)

    assert results == [plain, plain]
    assert counts == [1, 0]


def test_a_file_read_in_blocks_gives_full_blocks_whose_encoding_is_undone_once(server, twice):
    server.on_chat(gzip_stream)

    def program():
        with requests.post(server.chat, json={**ASK, "stream": True}, stream=True, timeout=20) as response:
            return [response.raw.read(40), response.raw.read(), "content-encoding" in response.headers]

    results, counts = twice(program)

    assert results == [[WHOLE[:40], WHOLE[40:], False]] * 2
    assert counts == [1, 0]


def test_a_stream_is_shown_while_it_arrives_in_equal_pieces(server, twice):
    server.on_chat(gated_stream)

    def program():
        server.gate.clear()
        pieces = []
        with requests.post(server.chat, json={**ASK, "stream": True}, stream=True, timeout=20) as response:
            for piece in response.iter_content(512):
                pieces.append(piece)
                server.gate.set()  # the rest is sent after the first piece was seen
        return pieces

    results, counts = twice(program)

    assert results == [EVENTS, EVENTS]
    assert counts == [1, 0]


def test_a_plain_answer_is_that_of_the_session_again(server, twice):
    server.on_chat(lambda h: h.send(b'{"n": 1}', content_type="application/json", set_cookie="visitor=7"))
    hooked = []

    def program():
        with requests.Session() as session:
            session.hooks["response"].append(lambda response, **_: hooked.append(response.status_code))
            response = session.post(server.chat, json=ASK, timeout=20)
            assert response.elapsed.total_seconds() >= 0
            assert response.raw.closed or not response.raw.read()
            sent = response.request
            return [response.json(), response.reason, response.ok, response.url, sent.method, json.loads(sent.body)]

    results, counts = twice(program)

    assert results[0] == results[1] == [{"n": 1}, "OK", True, server.chat, "POST", ASK]
    assert hooked == [200, 200]
    assert counts == [1, 0]


def test_cookies_reach_the_session_on_the_first_run(server, log):
    server.on_chat(lambda h: h.send(b"{}", content_type="application/json", set_cookie="visitor=7"))

    with durable.run("job", log=log), requests.Session() as session:
        session.post(server.chat, json=ASK, timeout=20)

        assert session.cookies["visitor"] == "7"


def test_a_multipart_body_with_its_random_boundary_is_the_same_call(server, twice):
    server.routes["/v1/audio/transcriptions"] = json_answer

    def program():
        files = {"file": ("talk.wav", io.BytesIO(b"RIFF" * 9), "audio/wav")}
        url = f"{server.url}/v1/audio/transcriptions"
        return requests.post(url, files=files, data={"model": "whisper-1"}, timeout=20).json()

    results, counts = twice(program)

    assert results[0] == results[1]
    assert counts == [1, 0]
    assert b"RIFF" * 9 in server.seen[0][3]


def _generator():
    yield json.dumps(ASK).encode()[:10]
    yield json.dumps(ASK).encode()[10:]


class _OnlyRead:
    def __init__(self):
        self.read = io.BytesIO(json.dumps(ASK).encode()).read


@pytest.mark.parametrize(
    "made",
    [_generator, lambda: io.BytesIO(json.dumps(ASK).encode()), lambda: json.dumps(ASK), _OnlyRead],
    ids=["generator", "file", "text", "read_only"],
)
def test_a_body_of_any_kind_is_sent_whole_and_known_again(server, twice, made):
    server.on_chat(json_answer)
    if made is _OnlyRead:
        made = lambda: iter([_OnlyRead().read()])

    results, counts = twice(lambda: requests.post(server.chat, data=made(), timeout=20).json())

    assert results[0] == results[1]
    assert counts == [1, 0]
    assert json.loads(server.seen[0][3]) == ASK


def test_the_body_of_a_request_that_is_no_model_call_is_not_read_before_it_is_sent(server, log):
    server.routes["/upload"] = json_answer
    arrived = []

    def parts():
        yield b"one"
        arrived.append(len(server.seen))
        yield b"two"

    with durable.run("job", log=log):
        response = requests.post(f"{server.url}/upload", data=parts(), timeout=20)

    assert response.json()["n"] == 1
    assert isinstance(response.request.body, types.GeneratorType)
    assert server.seen[0][3] == b"onetwo"


def test_an_answer_of_400_is_raised_again_without_asking(server, twice):
    server.on_chat(lambda h: h.send(b'{"error": "no"}', status=400, content_type="application/json"))

    def program():
        response = requests.post(server.chat, json=ASK, timeout=20)
        with pytest.raises(requests.HTTPError) as caught:
            response.raise_for_status()
        return response.json(), str(caught.value), caught.value.response.status_code, b"".join(response.iter_content(4))

    results, counts = twice(program)

    assert results[0] == results[1]
    assert results[0][2:] == (400, b'{"error": "no"}')
    assert counts == [1, 0]


def test_the_body_of_a_refusal_can_be_read_raw(server, twice):
    server.on_chat(lambda h: h.send(b"no such model", status=404))

    def program():
        with requests.post(server.chat, json=ASK, stream=True, timeout=20) as response:
            return response.raw.read()

    assert twice(program) == ([b"no such model"] * 2, [1, 0])


def test_a_connection_that_fails_raises_the_same_error_again_and_its_request_is_not_in_the_log(server, twice, log):
    server.on_chat(lambda h: h.hang_up())

    def program():
        headers = {"Authorization": f"Bearer {KEY}"}
        with pytest.raises(requests.ConnectionError) as caught:
            requests.post(server.chat, json=ASK, headers=headers, timeout=20)
        return type(caught.value), str(caught.value), caught.value.request.headers["Authorization"]

    results, counts = twice(program)

    assert results[0] == results[1]
    assert counts == [1, 0]
    assert not log.holds(KEY)


def test_a_stream_that_breaks_off_breaks_off_again_in_the_same_place(server, twice):
    server.on_chat(cut_stream)

    def program():
        pieces = []
        with (
            requests.post(server.chat, json={**ASK, "stream": True}, stream=True, timeout=20) as response,
            pytest.raises(requests.exceptions.ChunkedEncodingError) as caught,
        ):
            pieces.extend(response.iter_content(512))
        return pieces, str(caught.value)

    results, counts = twice(program)

    assert results[0] == results[1]
    assert counts == [1, 0]


@pytest.mark.parametrize("close", [True, False], ids=["closed", "left"])
def test_of_a_stream_that_is_left_replay_has_what_was_read_and_says_so_when_more_is_asked(server, log, close):
    server.on_chat(stream)
    kept = []

    def program(*, further):
        response = requests.post(server.chat, json={**ASK, "stream": True}, stream=True, timeout=20)
        kept.append(response)
        found = []
        for piece in response.iter_content(512):
            found.append(piece)
            if not further:
                break
        if close:
            response.close()
        return found

    for _ in range(2):
        with durable.run("job", log=log):
            assert program(further=False) == EVENTS[:1]
    with pytest.raises(errors.StreamNotRecorded), durable.run("job", log=log):
        program(further=True)

    assert len(server.seen) == 1


def test_a_redirect_is_followed_again(server, twice):
    server.on_chat(lambda h: h.send(b"", status=307, location="/v2/chat/completions"))
    server.routes["/v2/chat/completions"] = json_answer

    def program():
        response = requests.post(server.chat, json=ASK, timeout=20)
        return response.json(), response.url, [each.status_code for each in response.history]

    results, counts = twice(program)

    assert results[0] == results[1]
    assert results[0][1:] == (f"{server.url}/v2/chat/completions", [307])
    assert counts == [2, 0]


def test_an_error_answer_below_an_adapter_with_retries_is_one_attempt(server, twice):
    from urllib3 import Retry

    answers = [lambda h: h.send(b"{}", status=503), json_answer]
    server.on_chat(lambda h: answers.pop(0)(h))  # noqa: PLW0108 - another one each time

    def program():
        with requests.Session() as session:
            retry = Retry(total=8, status_forcelist=[503], allowed_methods=None, backoff_factor=0)
            session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
            return session.post(server.chat, json=ASK, timeout=20).json()

    results, counts = twice(program)

    assert results[0] == results[1]
    assert counts == [2, 0]


def test_outside_of_a_run_nothing_is_touched(server):
    server.on_chat(stream)

    response = requests.post(server.chat, json=ASK, timeout=20)

    assert type(response.raw).__module__ == "urllib3.response"
    assert response.content == WHOLE


def test_an_adapter_that_is_not_as_it_was_known_is_left_as_it_is():
    class HTTPAdapter:
        def send(self, request): ...

        def build_response(self, req, resp): ...

    before = HTTPAdapter.send

    with pytest.raises(errors.CannotHook, match="NOT recorded"):
        requests_adapter.install(types.SimpleNamespace(HTTPAdapter=HTTPAdapter))
    assert HTTPAdapter.send is before


def test_requests_that_urllib3_repeats_below_the_adapter_are_told_about(provider, tmp_path):
    """Case G24: the log shows every attempt, or says that there were more."""
    from urllib3.util.retry import Retry

    provider.desk.fail_next(2, 500)
    retry = Retry(total=8, status_forcelist=[500], allowed_methods=None, backoff_factor=0)
    with durable.run("repeated", log=str(tmp_path / "log")) as begun, requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
        body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        assert session.post(f"{provider.url}/v1/chat/completions", json=body).status_code == 200

    [notice] = begun.execution.stats.notices
    assert re.search(r"\d more requests failed before, repeated by the session", notice)
