"""The Google Gen AI SDK: synchronous over httpx2, asynchronous over aiohttp or httpx2."""

from __future__ import annotations

from typing import Any

from tests.capture.scenarios import GEMINI, GOOGLE_KEY, scenario, shown
from tests.capture.with_openai import city_type


def client_of(url: str, **http: Any) -> Any:
    """A client of the test's own."""
    from google import genai

    return genai.Client(api_key=GOOGLE_KEY, http_options={"base_url": url, **http})


def _over_httpx2(url: str) -> Any:
    import httpx2

    return client_of(url, httpx_async_client=httpx2.AsyncClient())


def _seen(answer: Any) -> Any:
    told = shown(answer)
    http = told["value"].pop("sdk_http_response")
    # The others are the server's own, such as its date.
    headers = {name.lower(): value for name, value in http["headers"].items()}
    return [told, headers["x-request-id"], headers["content-type"], answer.text]


@scenario("google")
def google_plain(url: str) -> Any:
    client = client_of(url)
    return _seen(client.models.generate_content(model=GEMINI, contents="plain"))


@scenario("google")
def google_stream(url: str) -> Any:
    client = client_of(url)
    return [_seen(part) for part in client.models.generate_content_stream(model=GEMINI, contents="stream")]


@scenario("google")
def google_structured(url: str) -> Any:
    config = {"response_mime_type": "application/json", "response_schema": city_type()}
    client = client_of(url)
    made = client.models.generate_content(model=GEMINI, contents="structured", config=config)
    return shown(made.parsed)


@scenario("google")
def google_embedding(url: str) -> Any:
    client = client_of(url)
    made = client.models.embed_content(model="gemini-embedding-001", contents="embed me")
    return [type(made).__name__, [one.values for one in made.embeddings]]


@scenario("google", 2)
def google_automatic_function_call(url: str) -> Any:
    def weather(city: str) -> str:
        """Tell the weather."""
        return "sunny"

    config = {"tools": [weather]}
    client = client_of(url)
    return _seen(client.models.generate_content(model=GEMINI, contents="the weather?", config=config))


@scenario("google", 2)
def google_chat(url: str) -> Any:
    client = client_of(url)
    chat = client.chats.create(model=GEMINI)
    return [_seen(chat.send_message("first")), _seen(chat.send_message("second"))]


@scenario("google")
def google_gzip(url: str) -> Any:
    client = client_of(url)
    return _seen(client.models.generate_content(model="gzip-gemini", contents="gzip"))


@scenario("google")
async def google_async_plain(url: str) -> Any:
    async with client_of(url).aio as client:
        return _seen(await client.models.generate_content(model=GEMINI, contents="async"))


@scenario("google")
async def google_async_stream(url: str) -> Any:
    async with client_of(url).aio as client:
        stream = await client.models.generate_content_stream(model=GEMINI, contents="async stream")
        return [_seen(part) async for part in stream]


@scenario("google")
async def google_async_gzip(url: str) -> Any:
    async with client_of(url).aio as client:
        return _seen(await client.models.generate_content(model="gzip-gemini", contents="async gzip"))


@scenario("google")
async def google_async_over_httpx2(url: str) -> Any:
    async with _over_httpx2(url).aio as client:
        return _seen(await client.models.generate_content(model=GEMINI, contents="over httpx2"))


@scenario("google")
async def google_async_stream_over_httpx2(url: str) -> Any:
    async with _over_httpx2(url).aio as client:
        stream = await client.models.generate_content_stream(model=GEMINI, contents="stream over httpx2")
        return [_seen(part) async for part in stream]
