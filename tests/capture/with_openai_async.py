"""The OpenAI SDK, asynchronous."""

from __future__ import annotations

from typing import Any

from tests.capture.scenarios import CHAT, OPENAI_KEY, RESPONSES_MODEL, asks, at_desk, scenario, shown
from tests.capture.with_openai import city_type
from tests.capture.with_openai_more import SOUND


def client_of(url: str, **more: Any) -> Any:
    """A client of the test's own."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=f"{url}/v1", api_key=OPENAI_KEY, **{"max_retries": 0, **more})


@scenario("openai_async")
async def openai_async_plain(url: str) -> Any:
    async with client_of(url) as client:
        return shown(await client.chat.completions.create(model=CHAT, messages=asks("async")))


@scenario("openai_async")
async def openai_async_stream(url: str) -> Any:
    async with client_of(url) as client:
        stream = await client.chat.completions.create(model=CHAT, messages=asks("async stream"), stream=True)
        return [type(stream).__name__, [[chunk.choices[0].delta.content, shown(chunk)] async for chunk in stream]]


@scenario("openai_async")
async def openai_async_stream_left_by_break(url: str) -> Any:
    async with client_of(url) as client:
        seen = []
        async for chunk in await client.chat.completions.create(model=CHAT, messages=asks("left"), stream=True):
            seen.append(shown(chunk))
            if len(seen) == 2:
                break
        return seen


@scenario("openai_async")
async def openai_async_stream_helper(url: str) -> Any:
    async with (
        client_of(url) as client,
        client.chat.completions.stream(model=CHAT, messages=asks("async helper")) as stream,
    ):
        events = [event.type async for event in stream]
        return [events, shown(await stream.get_final_completion())]


@scenario("openai_async")
async def openai_async_parse(url: str) -> Any:
    async with client_of(url) as client:
        made = await client.chat.completions.parse(model=CHAT, messages=asks("parse"), response_format=city_type())
        return [shown(made), shown(made.choices[0].message.parsed)]


@scenario("openai_async")
async def openai_async_with_raw_response(url: str) -> Any:
    async with client_of(url) as client:
        raw = await client.chat.completions.with_raw_response.create(model=CHAT, messages=asks("async raw"))
        return [type(raw).__name__, raw.headers["x-request-id"], shown(raw.parse())]


@scenario("openai_async")
async def openai_async_with_streaming_response(url: str) -> Any:
    async with client_of(url) as client:
        completions = client.chat.completions.with_streaming_response
        async with completions.create(model=CHAT, messages=asks("async streaming response")) as raw:
            return [type(raw).__name__, raw.headers["x-request-id"], shown(await raw.parse())]


@scenario("openai_async")
async def openai_async_responses(url: str) -> Any:
    async with client_of(url) as client:
        return shown(await client.responses.create(model=RESPONSES_MODEL, input="async responses"))


@scenario("openai_async")
async def openai_async_responses_stream(url: str) -> Any:
    async with client_of(url) as client:
        stream = await client.responses.create(model=RESPONSES_MODEL, input="async responses", stream=True)
        return [shown(event) async for event in stream]


@scenario("openai_async")
async def openai_async_responses_stream_helper(url: str) -> Any:
    async with client_of(url) as client, client.responses.stream(model=RESPONSES_MODEL, input="helper") as stream:
        return [[event.type async for event in stream], shown(await stream.get_final_response())]


@scenario("openai_async")
async def openai_async_responses_parse(url: str) -> Any:
    async with client_of(url) as client:
        made = await client.responses.parse(model=RESPONSES_MODEL, input="parse", text_format=city_type())
        return shown(made.output_parsed)


@scenario("openai_async")
async def openai_async_embeddings(url: str) -> Any:
    async with client_of(url) as client:
        return shown(await client.embeddings.create(model="text-embedding-3-small", input=["one", "two"]))


@scenario("openai_async")
async def openai_async_transcription(url: str) -> Any:
    async with client_of(url) as client:
        return shown(await client.audio.transcriptions.create(model="gpt-4o-transcribe", file=("a.wav", SOUND)))


@scenario("openai_async")
async def openai_async_gzip_stream(url: str) -> Any:
    async with client_of(url) as client:
        stream = await client.chat.completions.create(model="gzip-model", messages=asks("gzip"), stream=True)
        return [shown(chunk) async for chunk in stream]


@scenario("openai_async", 2, faulty=True)
async def openai_async_retried_after_500(url: str) -> Any:
    at_desk(url, "fail_next", status=500, retry_after_ms="1")
    async with client_of(url, max_retries=2) as client:
        return shown(await client.chat.completions.create(model=CHAT, messages=asks("retried")))


@scenario("openai_async")
async def openai_async_with_a_client_of_legacy_httpx(url: str) -> Any:
    import httpx

    async with httpx.AsyncClient(timeout=30) as http:
        client = client_of(url, http_client=http)
        return shown(await client.chat.completions.create(model=CHAT, messages=asks("legacy httpx")))


@scenario("openai_async")
async def openai_async_over_aiohttp(url: str) -> Any:
    from openai import DefaultAioHttpClient

    async with client_of(url, http_client=DefaultAioHttpClient()) as client:
        return shown(await client.chat.completions.create(model=CHAT, messages=asks("over aiohttp")))


@scenario("openai_async")
async def openai_async_stream_over_aiohttp(url: str) -> Any:
    from openai import DefaultAioHttpClient

    async with client_of(url, http_client=DefaultAioHttpClient()) as client:
        stream = await client.chat.completions.create(model=CHAT, messages=asks("over aiohttp"), stream=True)
        return [shown(chunk) async for chunk in stream]


@scenario("openai_async")
async def openai_async_gzip_over_aiohttp(url: str) -> Any:
    from openai import DefaultAioHttpClient

    async with client_of(url, http_client=DefaultAioHttpClient()) as client:
        return shown(await client.chat.completions.create(model="gzip-model", messages=asks("gzip aiohttp")))


@scenario("openai_async", 2)
async def openai_async_tool_call_and_its_result(url: str) -> Any:
    async with client_of(url) as client:
        tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
        messages: list[Any] = asks("the weather?")
        first = await client.chat.completions.create(model=CHAT, messages=messages, tools=tools)
        call = first.choices[0].message.tool_calls[0]
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        return [shown(first), shown(await client.chat.completions.create(model=CHAT, messages=messages))]
