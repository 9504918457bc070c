"""A model call in a durable run: recorded once, refused and tried again, failed and caught, inside of steps."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from jupyter_durable import durable, errors, step
from jupyter_durable.client import find_run
from jupyter_durable.client import steps as listed
from jupyter_durable.log import open_log


class Boom(Exception):
    """What ends a cell in these tests."""


def steps_of(tmp_path, name="agent"):
    log = open_log(str(tmp_path / "log"))
    return listed(log, find_run(log, name))


def test_a_recorded_answer_is_handed_out_and_not_bought(run, ask, requests_made):
    with run():
        first = ask("hello")
    with run():
        assert ask("hello") == first

    assert requests_made() == 1


def test_outside_of_a_run_every_call_is_made(ask, requests_made):
    assert ask("hello") != ask("hello")
    assert requests_made() == 2


def test_equal_calls_are_kept_apart(run, ask, requests_made):
    with run():
        answers = [ask("hello"), ask("hello")]
    with run():
        assert [ask("hello"), ask("hello")] == answers

    assert answers[0] != answers[1]
    assert requests_made() == 2


def test_what_the_sdk_tries_again_is_one_step_with_attempts(run, ask, patient, provider, requests_made, tmp_path):
    provider.desk.fail_next(2, 500, retry_after_ms="1")
    with run():
        answer = ask("hello", patient)
    with run():
        assert ask("hello", patient) == answer

    assert requests_made() == 3
    assert [(each.name, each.status, each.attempts) for each in steps_of(tmp_path)] == [
        ("chat.completions", "completed", 3)
    ]


def test_a_call_that_the_users_own_loop_repeats_is_a_step_of_its_own(run, ask, provider, requests_made, tmp_path):
    def until_it_works():
        failures = 0
        while True:
            try:
                return failures, ask("hello")
            except openai.InternalServerError:
                failures += 1

    provider.desk.fail_next(2, 500)
    with run():
        live = until_it_works()
    with run():
        assert until_it_works() == live

    assert live[0] == 2
    assert requests_made() == 3
    assert [each.status for each in steps_of(tmp_path)] == ["failed", "failed", "completed"]


def test_a_refusal_that_the_program_caught_is_raised_again(run, ask, provider, requests_made):
    @step
    def fallback():
        return "cached"

    def answer():
        try:
            return ask("hello")
        except openai.RateLimitError as error:
            assert error.status_code == 429
            return fallback()

    provider.desk.fail_next(1, 429)
    with pytest.raises(Boom), run():
        assert answer() == "cached"
        raise Boom
    with run():
        assert answer() == "cached"

    assert requests_made() == 1


def test_a_final_refusal_is_replayed_without_waiting_for_the_sdks_retries(run, ask, patient, provider, requests_made):
    @step
    def note(text):
        return text

    def answer():
        try:
            return ask("hello", patient)
        except openai.InternalServerError:
            return note("gave up")

    provider.desk.fail_next(3, 500, retry_after_ms="1")
    with run():
        assert answer() == "gave up"
    with run():
        assert answer() == "gave up"

    assert requests_made() == 3


def test_a_refusal_that_ended_the_cell_is_tried_again(run, ask, provider, requests_made):
    provider.desk.fail_next(1, 401)
    with pytest.raises(openai.AuthenticationError), run():
        ask("hello")
    with run():
        ask("hello")

    assert requests_made() == 2


def test_a_connection_that_broke_and_was_caught_is_broken_on_replay_too(run, ask, provider, requests_made):
    @step
    def note(text):
        return text

    def answer():
        try:
            return ask("hello")
        except openai.APIConnectionError:
            return note("no connection")

    provider.desk.hang_up_next()
    with run():
        assert answer() == "no connection"
    with run():
        assert answer() == "no connection"

    assert requests_made() == 1


def test_retries_of_a_step_and_of_its_sdk_are_said_to_multiply_once(
    run, ask, patient, provider, requests_made, tmp_path
):
    """Case G24."""

    @step(retries=3, backoff=0.001)
    def asked():
        return ask("hello", patient)

    provider.desk.fail_next(12, 500, retry_after_ms="1")
    with pytest.raises(openai.InternalServerError), run() as begun:
        asked()
    notices = [notice for notice in begun.execution.stats.notices if "max_retries" in notice]

    assert requests_made() == 12
    assert len(notices) == 1
    inner = next(each for each in steps_of(tmp_path) if each.name == "chat.completions")
    assert inner.attempts == 12


def test_retry_after_of_a_rate_limit_is_respected_by_a_steps_own_retry(run, ask, provider, monkeypatch):
    from jupyter_durable import clock

    slept = []
    monkeypatch.setattr(clock, "sleep", slept.append)

    @step(retries=1, backoff=0.001)
    def asked():
        return ask("hello")

    provider.desk.fail_next(1, 429, retry_after="7")
    with run():
        asked()

    assert len(slept) == 1
    assert 7 <= slept[0] < 10  # a part of it is added at random, never taken away


def test_a_new_attempt_of_a_step_asks_the_model_anew_and_keeps_its_finished_steps(run, ask, requests_made):
    looked_up = []

    @step(key=lambda: "look up")
    def look_up():
        looked_up.append(1)
        return "facts"

    @step(retries=1, backoff=0.001, key=lambda: "agent")  # else what it carries along would count, and that changes
    def agent():
        look_up()
        answer = ask("hello")
        if answer.split()[1] == "000001":
            raise ValueError("not that one")
        return answer

    with run():
        answer = agent()
    with run():
        assert agent() == answer

    assert (len(looked_up), requests_made()) == (1, 2)


def test_an_attempt_that_was_cut_keeps_the_answers_inside_it(run, ask, requests_made):
    cut = [True]

    @step(key=lambda: "agent")
    def agent():
        answers = [ask("one"), ask("two")]
        if cut.pop():
            raise KeyboardInterrupt
        return answers

    with pytest.raises(KeyboardInterrupt), run():
        agent()
    cut.append(False)
    with run():
        agent()

    assert requests_made() == 2


async def test_identical_prompts_after_random_awaits_each_get_their_own_answer_back(run, provider, requests_made):
    async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-test-1") as client:

        async def one(index):
            for _ in range((index * 7) % 5):
                await asyncio.sleep(0)
            message = {"role": "user", "content": "the same"}
            answer = await client.chat.completions.create(model="gpt-4o-mini", messages=[message])
            return index, answer.choices[0].message.content

        async with run():
            live = await asyncio.gather(*map(one, range(20)))
        async with run():
            assert await asyncio.gather(*map(one, range(20))) == live

    assert len({text for _, text in live}) == 20
    assert requests_made() == 20


def test_calls_in_threads_are_recorded(run, ask, requests_made):
    with run(), ThreadPoolExecutor(4) as pool:
        live = list(pool.map(ask, map(str, range(8))))
    with run(), ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, map(str, range(8)))) == live

    assert requests_made() == 8


def test_a_call_after_the_end_of_the_run_is_refused(run, ask, requests_made):
    go, raised = threading.Event(), []

    def late():
        go.wait(20)
        try:
            ask("too late")
        except BaseException as error:
            raised.append(error)

    with run():
        thread = threading.Thread(target=late)
        thread.start()
    go.set()
    thread.join(20)

    assert isinstance(raised[0], errors.RunStopped)
    assert isinstance(raised[0].error, errors.RunEnded)
    assert requests_made() == 0


def test_replay_only_buys_nothing(run, ask, requests_made):
    with run():
        ask("hello")
    with run(replay_only=True):
        ask("hello")
    with pytest.raises(errors.ReplayOnlyError), run(replay_only=True):
        ask("hello")
        ask("another")

    assert requests_made() == 1


def test_a_clock_in_a_prompt_is_named_with_its_path(run, ask, requests_made):
    with pytest.raises(Boom), run():
        ask("It is 10:45.")
        raise Boom
    with (
        pytest.raises(
            errors.NondeterminismError, match=r"`messages\[0\]\.content` \(from character 7 on: a date or time\)"
        ) as caught,
        run(),
    ):
        ask("It is 11:02.")

    assert "11:02" not in str(caught.value)
    assert requests_made() == 1


def test_an_sdk_does_not_take_our_errors_for_a_broken_connection(run, ask, patient, requests_made):
    with pytest.raises(Boom), run():
        ask("one", patient)
        raise Boom
    with pytest.raises(errors.NondeterminismError), run():
        try:
            ask("two", patient)
        except Exception:
            pytest.fail("an `except Exception` must not catch it")

    assert requests_made() == 1


def test_telemetry_and_other_requests_are_left_alone(run, provider, tmp_path):
    import httpx2

    with run(), httpx2.Client(base_url=provider.url) as http:
        http.post("/v1/traces/ingest", json={"data": []})
        http.get("/plain")

    assert steps_of(tmp_path) == []


def test_a_host_that_the_user_names_is_captured(run, provider, tmp_path):
    import httpx2

    durable.capture(hosts=["127.0.0.1"], paths=["^/plain"])
    with run(), httpx2.Client(base_url=provider.url) as http:
        first = http.post("/plain", json={"q": 1}).text
    with run(), httpx2.Client(base_url=provider.url) as http:
        assert http.post("/plain", json={"q": 1}).text == first

    assert [each.name for each in steps_of(tmp_path)] == ["POST 127.0.0.1"]


def test_an_excluded_host_is_left_alone(run, ask, requests_made):
    durable.capture(hosts=["127.0.0.1"], exclude=True)
    with run():
        ask("hello")
    with run():
        ask("hello")

    assert requests_made() == 2


def test_the_idempotency_key_is_sent_where_it_is_asked_for_and_equal_on_every_attempt(run, ask, patient, provider):
    durable.capture(idempotency_header="Idempotency-Key")
    provider.desk.fail_next(1, 500, retry_after_ms="1")
    with run():
        ask("hello", patient)
    sent = [seen.headers.get("idempotency-key") for seen in provider.desk.seen()]

    assert len(sent) == 2
    assert sent[0]
    assert sent[0] == sent[1]


def test_an_interrupt_waits_while_an_answer_is_written_down_and_not_while_it_is_awaited(run, ask, monkeypatch):
    import sys

    from jupyter_durable.capture import httpx_client, recording
    from jupyter_durable.kernel.interrupt import writing

    seen = {}
    write, flush = recording.payloads.write, httpx_client.Exchange.flush

    def writes(*args):
        seen["writing"] = writing(sys._getframe())
        return write(*args)

    def waits(exchange):
        flush(exchange)
        seen["waiting"] = writing(sys._getframe(1))

    monkeypatch.setattr(recording.payloads, "write", writes)
    monkeypatch.setattr(httpx_client.Exchange, "flush", waits)
    with run():
        ask("hello")

    assert seen == {"writing": True, "waiting": False}


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_a_transport_of_the_users_own_that_answers_at_once_is_captured(run, library):
    """A mock, a cache or an application in the same process gives answers that are read already."""
    http = pytest.importorskip(library)
    asked = []

    def answer(request):
        asked.append(request)
        return http.Response(200, json={"number": len(asked)})

    def ask_it():
        with http.Client(transport=http.MockTransport(answer)) as client:
            return client.post("https://api.example.com/v1/chat/completions", json={"model": "m"}).json()

    with run():
        first = ask_it()
    with run():
        assert ask_it() == first == {"number": 1}

    assert len(asked) == 1


async def test_an_asynchronous_transport_that_answers_at_once_is_captured(run):
    import httpx2

    asked = []

    async def answer(request):
        asked.append(request)
        return httpx2.Response(200, json={"number": len(asked)})

    async def ask_it():
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
            return (await client.post("https://api.example.com/v1/chat/completions", json={"model": "m"})).json()

    async with run():
        first = await ask_it()
    async with run():
        assert await ask_it() == first

    assert len(asked) == 1


async def test_a_call_that_was_on_its_way_when_the_cell_failed_is_in_doubt_and_asked_again(
    run, provider, requests_made, tmp_path
):
    provider.desk.hold(1)
    failing = [True, False]

    @step(key=lambda: "fails")
    async def fails():
        if failing.pop(0):
            await asyncio.to_thread(provider.desk.wait_open, 1)
            raise Boom

    async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-test-1", max_retries=0) as client:

        def asked():
            message = {"role": "user", "content": "hello"}
            return client.chat.completions.create(model="gpt-4o-mini", messages=[message])

        with pytest.raises(Boom):
            async with run():
                await asyncio.gather(asked(), fails())
        provider.desk.release()
        async with run():
            answer, _ = await asyncio.gather(asked(), fails())

    assert answer.choices[0].message.content
    assert requests_made() == 2


def test_an_api_that_cannot_read_a_call_does_not_break_it(run, tmp_path, provider):
    """A plugin with faults, or an answer of a shape that nobody has seen: the call is recorded, its use unknown."""
    import httpx2

    from jupyter_durable.capture.providers import finding
    from jupyter_durable.capture.providers.base import Api
    from jupyter_durable.log.query import connect

    class Broken(Api):
        name = "broken"

        def recognises(self, ask):
            return ask.path == "/plain"

        def is_pure(self, ask):
            raise KeyError("shape")

        most_output = streams = model = provider_of = usage = is_over = is_pure

    finding.add(Broken())
    try:
        with run() as begun, httpx2.Client() as http:
            first = http.post(f"{provider.url}/plain", json={"q": 1}).text
        with run(), httpx2.Client() as http:
            assert http.post(f"{provider.url}/plain", json={"q": 1}).text == first
    finally:
        finding.forget()

    assert any("the use of a call of `broken` could not be told" in said for said in begun.execution.stats.notices)
    with connect(tmp_path / "log") as log:
        assert log.sql("SELECT name, input, output FROM llm_calls").fetchall() == [("broken", None, None)]


def test_an_answer_that_broke_off_and_that_the_sdk_asked_for_again_is_one_step_with_two_attempts(run, tmp_path):
    """The body ends early, the SDK retries by itself, and the run completes: a replay gives the second answer."""
    import httpx2

    bodies = [b'{"id": "c', b'{"id": "chat-2", "object": "chat.completion", "created": 1, "model": "m", "choices": []}']

    class Cut(httpx2.SyncByteStream):
        def __init__(self, body, whole):
            self.body, self.whole = body, whole

        def __iter__(self):
            yield self.body
            if not self.whole:
                raise httpx2.RemoteProtocolError("peer closed connection")

    def answer(request):
        body = bodies.pop(0)
        return httpx2.Response(200, headers={"content-type": "application/json"}, stream=Cut(body, not bodies))

    def ask_it():
        http = httpx2.Client(transport=httpx2.MockTransport(answer))
        with openai.OpenAI(base_url="https://api.example.com/v1", api_key="sk-test-1", http_client=http) as client:
            messages = [{"role": "user", "content": "hello"}]
            return client.chat.completions.create(model="m", messages=messages).id

    with run():
        assert ask_it() == "chat-2"
    with run():
        assert ask_it() == "chat-2"

    assert [(each.status, each.attempts) for each in steps_of(tmp_path)] == [("completed", 2)]


async def test_a_deadline_that_ended_the_cell_is_tried_again(run, provider, requests_made):
    """Nobody has caught it and gone on, so it is no end of the call; the same holds for a cut sibling."""
    provider.desk.hold(1)
    async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-test-1", max_retries=0) as client:

        def asked():
            message = {"role": "user", "content": "hello"}
            return client.chat.completions.create(model="gpt-4o-mini", messages=[message])

        async def deadline():
            await asyncio.to_thread(provider.desk.wait_open, 1)

        async def until(event):
            task = asyncio.ensure_future(asked())
            await event
            task.cancel()
            return await task

        with pytest.raises(asyncio.CancelledError):
            async with run():
                await until(deadline())
        provider.desk.release()
        async with run():
            answer = await asked()

    assert answer.choices[0].message.content
    assert requests_made() == 2


def test_the_time_out_of_a_step_is_not_taken_for_one_of_the_sdk(run, patient, ask, provider, requests_made):
    provider.desk.hold(1, 2, 3)

    @step(timeout=0.5, key=lambda: "slow")
    def slow():
        return ask("hello", patient)

    with pytest.raises(errors.StepTimeout), run():
        slow()
    provider.desk.release()

    assert requests_made() == 1


def test_hints_name_the_run(run, ask):
    with run("my report"):
        ask("hello")
    with pytest.raises(errors.UsageError, match="`nothing yet` has no history yet"), run("nothing yet", from_step="5"):
        pytest.fail("nothing may run")
    with pytest.raises(errors.StreamNotRecorded, match=r'`%%durable "a stream" --from \d+`'):
        _read_on(run, ask)


def _read_on(run, ask):
    import httpx2

    pieces = [b"data: 1\n\n", b"data: 2\n\n"]
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=iter(pieces)))
    body = {"model": "m", "stream": True}
    for all_of_it in (False, True):
        url = "https://api.example.com/v1/chat/completions"
        with (
            run("a stream"),
            httpx2.Client(transport=transport) as http,
            http.stream("POST", url, json=body) as response,
        ):
            for _ in response.iter_raw():
                if not all_of_it:
                    break


def test_what_stopped_a_run_is_told_whatever_code_has_caught_it(run, ask):
    with run():
        ask("one")
    with pytest.raises(errors.ReplayOnlyError), run(replay_only=True):
        for text in ("two", "three"):
            with contextlib.suppress(BaseException):
                ask(text)
