"""Model calls through aiohttp: recorded as they go by, handed out again without a request."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import types

import pytest

from jupyter_durable import durable, errors
from jupyter_durable.capture import aiohttp_session
from jupyter_durable.events import StepStarted
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
from tests.capture.provider import Provider

aiohttp = pytest.importorskip("aiohttp")

KEY = "sk-secret-of-the-test-0123456789"
WHOLE = b"".join(EVENTS)
STREAM = {**ASK, "stream": True}


@pytest.fixture
def server():
    with Loopback() as server:
        yield server


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


@pytest.fixture
def log(tmp_path):
    return QuickLog(tmp_path)


@pytest.fixture
def twice(log, request):
    """Runs a program recorded and replayed; returns both results and how many requests each made."""

    async def run(program, times=2):
        server = request.getfixturevalue("provider" if "provider" in request.fixturenames else "server")
        seen = lambda: len(server.desk.seen() if isinstance(server, Provider) else server.seen)
        results, counts = [], []
        for _ in range(times):
            before = seen()
            async with durable.run("job", log=log):
                results.append(await program())
            counts.append(seen() - before)
        return results, counts

    return run


async def _all(iterator):
    return [item async for item in iterator]


async def _read(response):
    return await response.read(), await response.text()


async def _readany(response):
    found = []
    while data := await response.content.readany():
        found.append(data)
    return found


async def _mixed(response):
    content = response.content
    first = await content.readline(), await content.readuntil(b"}"), await content.readexactly(2)
    return first, await content.read(5), await content.read(), content.at_eof(), await content.read()


async def _more_than_is_there(response):
    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await response.content.readexactly(10_000)
    return caught.value.partial


WAYS = {
    "read": _read,
    "lines": lambda r: _all(r.content),
    "iter_chunked": lambda r: _all(r.content.iter_chunked(7)),
    "iter_any": lambda r: _all(r.content.iter_any()),
    "iter_chunks": lambda r: _all(r.content.iter_chunks()),
    "readany": _readany,
    "mixed": _mixed,
    "readexactly": _more_than_is_there,
}


@pytest.mark.parametrize("answer", [stream, gzip_stream], ids=["plain", "gzip"])
@pytest.mark.parametrize("way", [pytest.param(way, id=name) for name, way in WAYS.items()])
async def test_every_way_to_read_a_stream_gives_the_same_again(server, twice, way, answer):
    server.on_chat(answer)

    async def program():
        async with aiohttp.ClientSession() as session, session.post(server.chat, json=STREAM) as response:
            return await way(response), response.status, response.method, str(response.url)

    plain = await program()
    results, counts = await twice(program)

    assert results[0] == results[1]
    assert counts == [1, 0]
    if way in (WAYS["read"], WAYS["lines"], WAYS["mixed"], WAYS["readexactly"]):  # the others show packets
        assert results[0] == plain


async def test_a_stream_is_shown_while_it_arrives(server, twice):
    server.on_chat(gated_stream)

    async def program():
        server.gate.clear()
        pieces = []
        async with aiohttp.ClientSession() as session, session.post(server.chat, json=STREAM) as response:
            async for piece in response.content.iter_any():
                pieces.append(piece)
                server.gate.set()  # the rest is sent after the first piece was seen
        return pieces

    results, counts = await twice(program)

    assert results == [EVENTS, EVENTS]
    assert counts == [1, 0]


async def test_a_chunk_is_one_piece_in_however_many_packets_it_comes(server, twice):
    def in_two_packets(handler):
        handler.begin(content_type="text/event-stream", transfer_encoding="chunked")
        handler.wfile.write(b"a\r\ndata:")
        handler.wfile.flush()
        handler.wait()
        handler.wfile.write(b" one\n\r\n")
        handler.end()

    server.on_chat(in_two_packets)

    async def program():
        async with aiohttp.ClientSession() as session, session.post(server.chat, json=STREAM) as response:
            server.gate.set()
            return await _all(response.content.iter_chunks())

    results, _ = await twice(program)

    assert results == [[(b"data: one\n", True)]] * 2


async def test_a_response_tells_the_same_about_itself(server, twice):
    server.on_chat(lambda h: h.send(b'{"n": 1}', content_type="application/json", set_cookie="visitor=7"))

    async def program():
        async with aiohttp.ClientSession(base_url=server.url) as session:
            response = await session.post("/v1/chat/completions", params={"a": "b"}, json=ASK)
            told = [response.status, response.reason, response.ok, response.method, response.url, response.real_url]
            told += [
                response.host,
                response.content_type,
                response.request_info.url,
                response.history,
                response.version,
            ]
            return (
                type(response),
                told,
                await response.json(),
                await response.read(),
                await response.text(),
                repr(response),
            )

    results, counts = await twice(program)

    assert results[0][:-1] == results[1][:-1]
    assert counts == [1, 0]


async def test_cookies_reach_the_session_on_the_first_run(server, log):
    server.on_chat(lambda h: h.send(b"{}", content_type="application/json", set_cookie="visitor=7"))

    async with durable.run("job", log=log), aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        response = await session.post(server.chat, json=ASK)

        assert await response.json() == {}
        assert response.cookies["visitor"].value == "7"
        assert [cookie.value for cookie in session.cookie_jar] == ["7"]


def _form():
    form = aiohttp.FormData()
    form.add_field("model", "whisper-1")
    form.add_field("file", io.BytesIO(b"RIFF" * 9), filename="talk.wav", content_type="audio/wav")
    return form


async def test_a_form_with_its_random_boundary_is_sent_whole_and_is_the_same_call(server, twice):
    server.routes["/v1/audio/transcriptions"] = json_answer

    async def program():
        async with aiohttp.ClientSession() as session:
            response = await session.post(f"{server.url}/v1/audio/transcriptions", data=_form())
            return await response.json()

    await program()
    results, counts = await twice(program)

    assert results[0] == results[1]
    assert counts == [1, 0]
    plain, captured = ((*parts[2:],) for parts in server.seen)
    assert b"RIFF" * 9 in captured[1]
    assert len(plain[1]) == len(captured[1])


async def _generator():
    yield json.dumps(ASK).encode()[:10]
    yield json.dumps(ASK).encode()[10:]


@pytest.mark.parametrize(
    "made",
    [
        _generator,
        lambda: io.BytesIO(json.dumps(ASK).encode()),
        lambda: json.dumps(ASK),
        lambda: json.dumps(ASK).encode(),
    ],
    ids=["generator", "file", "text", "bytes"],
)
async def test_a_body_of_any_kind_is_sent_whole_and_known_again(server, twice, made):
    server.on_chat(json_answer)

    async def program():
        async with aiohttp.ClientSession() as session:
            response = await session.post(server.chat, data=made())
            return await response.json()

    results, counts = await twice(program)

    assert results[0] == results[1]
    assert counts == [1, 0]
    assert json.loads(server.seen[0][3]) == ASK


async def test_raise_for_status_raises_again_without_asking(server, twice):
    server.on_chat(lambda h: h.send(b'{"error": "no"}', status=400, content_type="application/json"))

    async def program():
        async with aiohttp.ClientSession(raise_for_status=True) as session:
            with pytest.raises(aiohttp.ClientResponseError) as caught:
                await session.post(server.chat, json=ASK)
            return caught.value.status, caught.value.message, str(caught.value)

    results, counts = await twice(program)

    assert results[0] == results[1]
    assert counts == [1, 0]


@pytest.mark.parametrize("way", [WAYS["read"], WAYS["lines"]], ids=["read", "lines"])
async def test_the_body_of_a_refusal_can_be_read(server, twice, way):
    server.on_chat(lambda h: h.send(b'{"error": "no"}', status=400, content_type="application/json"))

    async def program():
        async with aiohttp.ClientSession() as session, session.post(server.chat, json=ASK) as response:
            return response.status, response.ok, await way(response)

    results, counts = await twice(program)

    assert results[0] == results[1]
    assert counts == [1, 0]


async def test_a_connection_that_fails_raises_the_same_error_again(server, twice, log):
    server.on_chat(lambda h: h.hang_up())

    async def program():
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
            with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
                await session.post(server.chat, json=ASK)
            return type(caught.value), str(caught.value)

    results, counts = await twice(program)

    assert results[0] == results[1]
    assert counts == [1, 0]
    assert not log.holds(KEY)


async def test_a_port_that_nobody_listens_at_is_told_of_again(log):
    with Loopback() as gone:
        url = gone.chat
    context = ssl.create_default_context()  # cannot be written down

    async def program():
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await session.post(url, json=ASK, ssl=context)
            error = caught.value
            return type(error), error.strerror, error.host, error.port, error.errno, str(error), type(error.os_error)

    results = []
    for _ in range(2):
        async with durable.run("job", log=log):
            results.append(await program())

    assert results[0] == results[1]


async def test_a_stream_that_breaks_off_breaks_off_again_in_the_same_place(server, twice):
    server.on_chat(cut_stream)

    async def program():
        pieces = []
        async with aiohttp.ClientSession() as session, session.post(server.chat, json=STREAM) as response:
            with pytest.raises(aiohttp.ClientPayloadError) as caught:
                async for piece in response.content.iter_any():
                    pieces.append(piece)  # noqa: PERF401 - what came before the error is kept
        return pieces, str(caught.value)

    results, counts = await twice(program)

    assert results[0] == results[1]
    assert results[0][0] == EVENTS[:1]
    assert counts == [1, 0]


@pytest.mark.parametrize("close", [True, False], ids=["closed", "left"])
async def test_of_a_stream_that_is_left_replay_has_what_was_read_and_says_so_when_more_is_asked(server, log, close):
    server.on_chat(stream)

    kept = []

    async def program(*, further):
        async with aiohttp.ClientSession() as session:
            response = await session.post(server.chat, json=STREAM)
            kept.append(response)
            found = []
            async for piece in response.content.iter_any():
                found.append(piece)
                if not further:
                    break
            if close:
                response.close()
            return found

    for _ in range(2):
        async with durable.run("job", log=log):
            assert await program(further=False) == EVENTS[:1]
    with pytest.raises(errors.StreamNotRecorded):
        async with durable.run("job", log=log):
            await program(further=True)

    assert len(server.seen) == 1
    for response in kept:
        response.close()


async def test_a_call_that_is_cancelled_in_its_stream_is_cancelled_again_without_asking(server, twice):
    server.on_chat(gated_stream)

    async def program():
        async with aiohttp.ClientSession() as session:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2), session.post(server.chat, json=STREAM) as response:
                    await response.read()

    server.gate.clear()
    _, counts = await twice(program)

    assert counts == [1, 0]


async def test_a_timeout_of_the_session_is_raised_again_without_asking(server, twice):
    server.on_chat(gated_stream)

    async def program():
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.2)) as session:
            with pytest.raises(TimeoutError) as caught:
                async with session.post(server.chat, json=STREAM) as response:
                    await response.read()
            return type(caught.value)

    results, counts = await twice(program)

    assert results[0] is results[1]
    assert counts == [1, 0]


async def test_a_read_that_is_cancelled_loses_nothing(server, twice):
    server.on_chat(gated_stream)

    async def program():
        server.gate.clear()
        found = []
        async with aiohttp.ClientSession() as session, session.post(server.chat, json=STREAM) as response:
            found.append(await response.content.readany())
            read = asyncio.ensure_future(response.content.readany())
            for _ in range(3):
                await asyncio.sleep(0)
            if read.cancel():
                await asyncio.wait([read])
            else:
                found.append(read.result())
            server.gate.set()
            return found + await _readany(response)

    results, counts = await twice(program)

    assert results == [EVENTS, EVENTS]
    assert counts == [1, 0]


async def test_a_redirect_is_followed_again(server, twice):
    server.on_chat(lambda h: h.send(b"", status=307, location="/v2/chat/completions"))
    server.routes["/v2/chat/completions"] = json_answer

    async def program():
        async with aiohttp.ClientSession() as session, session.post(server.chat, json=ASK) as response:
            return await response.json(), str(response.url), [each.status for each in response.history]

    results, counts = await twice(program)

    assert results[0] == results[1]
    assert results[0][1:] == (f"{server.url}/v2/chat/completions", [307])
    assert counts == [2, 0]


async def test_middlewares_of_the_user_stand_outside(server, twice):
    server.on_chat(json_answer)
    asked = []

    async def with_key(request, handler):
        request.headers["Authorization"] = f"Bearer {KEY}"
        asked.append(request.url.path)
        return await handler(request)

    async def program():
        async with aiohttp.ClientSession(middlewares=(with_key,)) as session:
            one = await session.post(server.chat, json=ASK)
            two = await session.post(server.chat, json=STREAM, middlewares=(with_key,))
            return await one.json(), await two.json()

    results, counts = await twice(program)

    assert results[0] == results[1]
    assert counts == [2, 0]
    assert len(asked) == 4
    assert all(headers["authorization"] == f"Bearer {KEY}" for _, _, headers, _ in server.seen)


async def test_a_client_that_undoes_encodings_itself_gets_none(server, twice):
    server.on_chat(lambda h: (gzip_stream if "gzip" in h.headers["Accept-Encoding"] else stream)(h))

    async def program():
        async with aiohttp.ClientSession(auto_decompress=False) as session:
            response = await session.post(server.chat, json=STREAM)
            return "Content-Encoding" in response.headers, await response.read()

    results, counts = await twice(program)

    assert results == [(False, WHOLE)] * 2
    assert counts == [1, 0]


async def test_what_is_no_model_call_is_sent_each_time(server, twice):
    server.routes["/plain"] = json_answer

    async def program():
        async with aiohttp.ClientSession() as session, session.get(f"{server.url}/plain") as response:
            return await response.json()

    _, counts = await twice(program)

    assert counts == [1, 1]


async def test_a_client_of_openai_over_aiohttp_is_captured_once(provider, twice, log):
    openai = pytest.importorskip("openai")

    async def program():
        async with openai.AsyncOpenAI(
            api_key=KEY, base_url=f"{provider.url}/v1", http_client=openai.DefaultAioHttpClient()
        ) as client:
            whole = await client.chat.completions.create(**ASK)
            events = await client.chat.completions.create(**STREAM)
            return whole.model_dump(), [event.model_dump() async for event in events]

    results, counts = await twice(program)

    assert results[0] == results[1]
    assert counts == [2, 0]
    begun = [one for one in log.history(log.executions()[0].header.branch) if isinstance(one.event, StepStarted)]
    assert [one.event.kind for one in begun] == ["model", "model"]


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")  # its own
async def test_google_genai_over_aiohttp_is_captured(provider, twice):
    genai = pytest.importorskip("google.genai")

    async def program():
        client = genai.Client(api_key=KEY, http_options={"base_url": provider.url})
        try:
            whole = await client.aio.models.generate_content(model="gemini-2.5-flash", contents="hello")
            events = await client.aio.models.generate_content_stream(model="gemini-2.5-flash", contents="hello")
            return whole.text, [event.text async for event in events]
        finally:
            await client.aio.aclose()

    results, counts = await twice(program)

    assert results[0] == results[1]
    assert counts == [2, 0]


async def test_outside_of_a_run_nothing_is_touched(server):
    server.on_chat(stream)

    async with aiohttp.ClientSession() as session, session.post(server.chat, json=STREAM) as response:
        assert type(response.content) is aiohttp.StreamReader
        assert await response.read() == WHOLE


def test_a_version_that_is_not_as_it_was_known_is_left_as_it_is():
    import aiohttp.client as real

    class ClientSession:
        async def _request(self, method, url): ...

    changed = types.SimpleNamespace(**{**vars(real), "ClientSession": ClientSession})
    before = ClientSession._request

    with pytest.raises(errors.CannotHook, match=r"middlewares.*NOT recorded"):
        aiohttp_session.install(changed)
    assert ClientSession._request is before


def test_a_response_that_is_made_in_another_way_is_not_hooked():
    import aiohttp.client as real

    class ClientResponse(real.ClientResponse):
        def __init__(self, method, url, *, brand_new): ...

    changed = types.SimpleNamespace(**{**vars(real), "ClientResponse": ClientResponse})

    with pytest.raises(errors.CannotHook, match="brand_new"):
        aiohttp_session.install(changed)
