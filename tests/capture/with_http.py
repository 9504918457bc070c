"""No SDK at all: model requests through the HTTP libraries themselves, and requests that are none."""

from __future__ import annotations

from typing import Any

from tests.capture.scenarios import CHAT, OPENAI_KEY, asks, scenario

HEADERS = {"Authorization": f"Bearer {OPENAI_KEY}"}


def _call(url: str, text: str, **more: Any) -> dict[str, Any]:
    body = {"model": CHAT, "messages": asks(text), **more}
    return {"url": f"{url}/v1/chat/completions", "json": body, "headers": HEADERS}


def _seen(answer: Any) -> Any:
    return [type(answer).__name__, answer.status_code, answer.headers["content-type"], answer.json()]


@scenario("http")
def httpx_post(url: str) -> Any:
    import httpx

    return _seen(httpx.post(**_call(url, "httpx")))


@scenario("http")
def httpx_stream(url: str) -> Any:
    import httpx

    with httpx.Client() as client, client.stream("POST", **_call(url, "httpx stream", stream=True)) as answer:
        return list(answer.iter_lines())


@scenario("http")
def httpx_gzip(url: str) -> Any:
    import httpx

    call = _call(url, "httpx gzip")
    call["json"]["model"] = "gzip-model"
    return _seen(httpx.post(**call))


@scenario("http")
def httpx2_post(url: str) -> Any:
    import httpx2

    return _seen(httpx2.post(**_call(url, "httpx2")))


@scenario("http")
def httpx2_stream(url: str) -> Any:
    import httpx2

    with httpx2.Client() as client, client.stream("POST", **_call(url, "httpx2 stream", stream=True)) as answer:
        return list(answer.iter_lines())


@scenario("http")
def httpx2_stream_read_raw(url: str) -> Any:
    import httpx2

    with httpx2.Client() as client, client.stream("POST", **_call(url, "httpx2 raw", stream=True)) as answer:
        return b"".join(answer.iter_raw()).decode()


@scenario("http")
def requests_post(url: str) -> Any:
    import requests

    return _seen(requests.post(timeout=30, **_call(url, "requests")))


@scenario("http", 2)
def requests_session(url: str) -> Any:
    import requests

    with requests.Session() as session:
        return [_seen(session.post(timeout=30, **_call(url, f"session {at}"))) for at in range(2)]


@scenario("http")
def requests_stream(url: str) -> Any:
    import requests

    with requests.post(stream=True, timeout=30, **_call(url, "requests stream", stream=True)) as answer:
        return [line.decode() for line in answer.iter_lines()]


@scenario("http")
def requests_gzip(url: str) -> Any:
    import requests

    call = _call(url, "requests gzip")
    call["json"]["model"] = "gzip-model"
    return _seen(requests.post(timeout=30, **call))


@scenario("http")
def requests_gzip_stream_read_raw(url: str) -> Any:
    import requests

    call = _call(url, "requests gzip raw", stream=True)
    call["json"]["model"] = "gzip-model"
    with requests.post(stream=True, timeout=30, **call) as answer:
        return answer.raw.read(decode_content=True).decode()


@scenario("http", 0)
def requests_that_are_no_model_calls(url: str) -> Any:
    """They are sent on every run; their answers carry numbers, so only their kinds are told."""
    import httpx
    import httpx2
    import requests

    answers = (
        httpx.post(f"{url}/plain/httpx", json={}),
        httpx2.post(f"{url}/plain/httpx2", json={}),
        requests.post(f"{url}/plain/requests", json={}, timeout=30),
        httpx.get(f"{url}/plain/get"),
        httpx2.post(f"{url}/v1/traces/ingest", json={"data": []}),
    )
    return [[answer.status_code, sorted(answer.json())] for answer in answers]


@scenario("http")
async def httpx_async_post(url: str) -> Any:
    import httpx

    async with httpx.AsyncClient() as client:
        return _seen(await client.post(**_call(url, "async httpx")))


@scenario("http")
async def httpx_async_stream(url: str) -> Any:
    import httpx

    async with (
        httpx.AsyncClient() as client,
        client.stream("POST", **_call(url, "async httpx stream", stream=True)) as answer,
    ):
        return [line async for line in answer.aiter_lines()]


@scenario("http")
async def httpx2_async_post(url: str) -> Any:
    import httpx2

    async with httpx2.AsyncClient() as client:
        return _seen(await client.post(**_call(url, "async httpx2")))


@scenario("http")
async def httpx2_async_stream(url: str) -> Any:
    import httpx2

    async with (
        httpx2.AsyncClient() as client,
        client.stream("POST", **_call(url, "async httpx2 stream", stream=True)) as answer,
    ):
        return [line async for line in answer.aiter_lines()]


@scenario("http")
async def aiohttp_post(url: str) -> Any:
    import aiohttp

    async with aiohttp.ClientSession() as session, session.post(**_call(url, "aiohttp")) as answer:
        found = [answer.status, answer.ok, answer.content_type, answer.method, str(answer.url.path)]
        return [type(answer).__name__, found, await answer.json()]


@scenario("http")
async def aiohttp_post_read_in_other_ways(url: str) -> Any:
    import aiohttp

    async with aiohttp.ClientSession(raise_for_status=True) as session:
        answer = await session.post(**_call(url, "aiohttp text"))
        text = await answer.text()
        return [text, (await answer.read()).decode() == text, await answer.json()]


@scenario("http")
async def aiohttp_stream(url: str) -> Any:
    import aiohttp

    async with (
        aiohttp.ClientSession() as session,
        session.post(**_call(url, "aiohttp stream", stream=True)) as answer,
    ):
        return [line.decode() async for line in answer.content]


@scenario("http")
async def aiohttp_gzip(url: str) -> Any:
    import aiohttp

    call = _call(url, "aiohttp gzip")
    call["json"]["model"] = "gzip-model"
    async with aiohttp.ClientSession() as session, session.post(**call) as answer:
        return await answer.json()
