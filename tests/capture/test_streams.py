"""Streams: the same chunks with and without a log, left in the middle, broken off, cut by a death."""

from __future__ import annotations

import asyncio
import contextlib

import openai
import pytest

from jupyter_durable import durable, errors
from jupyter_durable.log.query import connect

MESSAGE = [{"role": "user", "content": "tell me"}]


@pytest.fixture
def stream(client):
    def stream(**more):
        return client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGE, stream=True, **more)

    return stream


def dumped(chunks) -> list[dict]:
    return [chunk.model_dump() for chunk in chunks]


def test_a_stream_has_the_same_chunks_live_and_on_replay(run, stream, requests_made):
    with run():
        live = dumped(stream())
    with run():
        assert dumped(stream()) == live

    assert requests_made() == 1


def test_a_stream_has_the_same_shape_as_without_a_run(run, stream):
    plain = dumped(stream())
    with run():
        live = dumped(stream())

    def shape(chunks):
        return [[choice["delta"].keys() for choice in chunk["choices"]] for chunk in chunks]

    assert shape(live) == shape(plain)


def test_a_raw_stream_keeps_the_bounds_of_its_chunks(run, provider):
    import httpx2

    def chunks():
        body = {"model": "gpt-4o-mini", "messages": MESSAGE, "stream": True}
        with httpx2.Client() as http, http.stream("POST", f"{provider.url}/v1/chat/completions", json=body) as answer:
            return list(answer.iter_raw())

    with run():
        live = chunks()
    with run():
        assert chunks() == live


def test_a_stream_that_was_left_keeps_what_was_read(run, stream, requests_made):
    def beginning():
        return next(iter(stream())).model_dump()

    with run():
        live = beginning()
    with run():
        assert beginning() == live

    assert requests_made() == 1


def test_reading_on_where_the_stream_was_left_is_our_own_error(run, stream, requests_made):
    class Edited(Exception):
        pass

    with pytest.raises(Edited), run():
        for _ in stream():
            raise Edited
    with pytest.raises(errors.StreamNotRecorded, match="--from"), run():
        list(stream())

    assert requests_made() == 1


def test_a_stream_that_was_read_to_its_last_event_is_whole(run, stream, requests_made):
    def until_stop():
        texts = []
        for chunk in stream():
            texts.append(chunk.choices[0].delta.content)
            if chunk.choices[0].finish_reason:
                break
        return texts

    with run():
        live = until_stop()
    with run():
        assert until_stop() == live

    assert requests_made() == 1


def test_a_stream_that_broke_off_breaks_off_at_the_same_place_on_replay(run, stream, provider, requests_made):
    def read():
        texts = []
        try:
            texts.extend(chunk.choices[0].delta.content for chunk in stream())
        except Exception as error:
            return texts, type(error).__name__, durable.step(str, "went on")
        pytest.fail("it was to break off")

    provider.desk.cut_next(after=3)
    with run():
        live = read()
    with run():
        assert read() == live

    assert len(live[0]) == 3
    assert requests_made() == 1


def test_a_stream_that_the_stop_button_cut_is_in_doubt_and_asked_again(run, stream, requests_made, tmp_path):
    with pytest.raises(KeyboardInterrupt), run() as begun:
        for _ in stream():
            begun.execution.interrupted = True  # what the cell does when the button is pressed
            raise KeyboardInterrupt
    with run():
        list(stream())

    assert requests_made() == 2
    with connect(tmp_path / "log") as log:
        assert log.sql("SELECT kind, reason FROM llm_calls ORDER BY seq").fetchall() == [
            ("wasted", "in doubt"),
            ("billed", ""),
        ]


async def test_an_asynchronous_stream_is_recorded_and_replayed(run, provider, requests_made):
    async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-test-1") as client:

        async def chunks():
            stream = await client.chat.completions.create(model="gpt-4o-mini", messages=MESSAGE, stream=True)
            return [chunk.model_dump() async for chunk in stream]

        async with run():
            live = await chunks()
        async with run():
            assert await chunks() == live

    assert requests_made() == 1


def test_usage_is_asked_for_where_it_is_allowed_and_hidden_from_the_user(run, stream, provider, tmp_path):
    plain = dumped(stream())
    durable.capture(hosts=["127.0.0.1"], include_usage=True)
    with run():
        live = dumped(stream())
    with run():
        assert dumped(stream()) == live

    assert all(chunk["choices"] for chunk in live)
    assert len(live) == len(plain)
    assert b"include_usage" in provider.desk.seen()[-1].body
    with connect(tmp_path / "log") as log:
        [(told_input, told_output)] = log.sql("SELECT input, output FROM llm_calls").fetchall()
    assert told_input > 0
    assert told_output > 0


def test_usage_that_the_user_asks_for_is_shown(run, stream):
    durable.capture(hosts=["127.0.0.1"], include_usage=True)
    with run():
        live = dumped(stream(stream_options={"include_usage": True}))

    assert live[-1]["usage"]["total_tokens"] > 0


def test_a_stream_of_a_host_that_may_not_know_it_is_of_unknown_use_not_nought(run, stream, tmp_path):
    with run():
        list(stream())

    with connect(tmp_path / "log") as log:
        assert log.sql("SELECT input, output, cost FROM llm_calls").fetchall() == [(None, None, None)]
        assert log.sql("SELECT sum(unknown) FROM spend").fetchall() == [(1,)]


@pytest.mark.parametrize("over", ["httpx2", "aiohttp"])
async def test_a_stream_whose_reader_was_cancelled_gives_what_was_read_and_is_cancelled_again(
    run, provider, requests_made, over
):
    """A consumer waits for the first piece and then cancels the reader; both must meet again on replay."""
    http = openai.DefaultAioHttpClient() if over == "aiohttp" else None
    async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-test-1", http_client=http) as client:

        async def program():
            seen, first = [], asyncio.Event()

            async def read():
                async for chunk in await client.chat.completions.create(
                    model="gpt-4o-mini", messages=MESSAGE, stream=True
                ):
                    seen.append(chunk.choices[0].delta.content)
                    first.set()
                    await asyncio.sleep(0)

            reader = asyncio.create_task(read())
            await first.wait()
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
            return seen

        async with run():
            live = await program()
        async with run():
            assert await program() == live

    assert live
    assert requests_made() == 1


def test_a_body_that_the_stop_button_closes_before_it_was_read_is_no_answer(run, provider, requests_made, tmp_path):
    import httpx2

    body = {"model": "gpt-4o-mini", "messages": MESSAGE}
    url = f"{provider.url}/v1/chat/completions"
    with pytest.raises(KeyboardInterrupt), run() as begun, httpx2.Client() as http:
        response = http.send(http.build_request("POST", url, json=body), stream=True)
        begun.execution.interrupted = True  # what the cell does when the button is pressed
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            response.close()  # as a client does whose reading was cut
            raise
    with run(), httpx2.Client() as http:
        assert http.post(url, json=body).json()["choices"]

    assert requests_made() == 2
