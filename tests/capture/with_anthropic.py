"""The Anthropic SDK, synchronous and asynchronous."""

from __future__ import annotations

from typing import Any

from tests.capture.scenarios import ANTHROPIC_KEY, CLAUDE, asks, at_desk, scenario, shown
from tests.capture.with_openai import WEATHER, city_type


def client_of(url: str, **more: Any) -> Any:
    """A client of the test's own."""
    from anthropic import Anthropic

    return Anthropic(base_url=url, api_key=ANTHROPIC_KEY, **{"max_retries": 0, **more})


def async_client_of(url: str, **more: Any) -> Any:
    """The same, asynchronous."""
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(base_url=url, api_key=ANTHROPIC_KEY, **{"max_retries": 0, **more})


def _call(text: str, **more: Any) -> dict[str, Any]:
    return {"model": CLAUDE, "max_tokens": 64, "messages": asks(text), **more}


@scenario("anthropic")
def anthropic_plain(url: str) -> Any:
    return shown(client_of(url).messages.create(**_call("plain", system="Be brief.")))


@scenario("anthropic")
def anthropic_stream(url: str) -> Any:
    return [shown(event) for event in client_of(url).messages.create(**_call("stream", stream=True))]


@scenario("anthropic")
def anthropic_stream_helper(url: str) -> Any:
    with client_of(url).messages.stream(**_call("helper")) as stream:
        return [list(stream.text_stream), shown(stream.get_final_message())]


@scenario("anthropic")
def anthropic_stream_helper_left_by_break(url: str) -> Any:
    texts = []
    with client_of(url).messages.stream(**_call("left early")) as stream:
        for text in stream.text_stream:
            texts.append(text)
            if len(texts) == 2:
                break
    return texts


@scenario("anthropic")
def anthropic_parse(url: str) -> Any:
    made = client_of(url).messages.parse(**_call("parse", output_format=city_type()))
    return [type(made).__name__, shown(made.parsed_output), made.usage.model_dump()]


@scenario("anthropic")
def anthropic_beta(url: str) -> Any:
    return shown(client_of(url).beta.messages.create(**_call("beta", betas=["context-1m-2025-08-07"])))


@scenario("anthropic")
def anthropic_with_raw_response(url: str) -> Any:
    raw = client_of(url).messages.with_raw_response.create(**_call("raw"))
    return [type(raw).__name__, raw.headers["request-id"], shown(raw.parse())]


@scenario("anthropic")
def anthropic_count_tokens(url: str) -> Any:
    return shown(client_of(url).messages.count_tokens(model=CLAUDE, messages=asks("count me")))


@scenario("anthropic", 2)
def anthropic_tool_use_and_its_result(url: str) -> Any:
    client = client_of(url)
    tools = [{"name": "weather", "description": "Tells it.", "input_schema": WEATHER}]
    messages: list[Any] = asks("the weather?")
    first = client.messages.create(model=CLAUDE, max_tokens=64, messages=messages, tools=tools)
    result = {"type": "tool_result", "tool_use_id": first.content[0].id, "content": "sunny"}
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = client.messages.create(model=CLAUDE, max_tokens=64, messages=messages, tools=tools)
    return [shown(first), shown(second)]


@scenario("anthropic")
def anthropic_gzip(url: str) -> Any:
    return shown(client_of(url).messages.create(**{**_call("gzip"), "model": "gzip-claude"}))


@scenario("anthropic", 2, faulty=True)
def anthropic_retried_after_529(url: str) -> Any:
    at_desk(url, "fail_next", status=529, retry_after_ms="1")
    return shown(client_of(url, max_retries=2).messages.create(**_call("overloaded")))


@scenario("anthropic")
async def anthropic_async_plain(url: str) -> Any:
    async with async_client_of(url) as client:
        return shown(await client.messages.create(**_call("async")))


@scenario("anthropic")
async def anthropic_async_stream(url: str) -> Any:
    async with async_client_of(url) as client:
        return [shown(event) async for event in await client.messages.create(**_call("async", stream=True))]


@scenario("anthropic")
async def anthropic_async_stream_helper(url: str) -> Any:
    async with async_client_of(url) as client, client.messages.stream(**_call("async helper")) as stream:
        return [[text async for text in stream.text_stream], shown(await stream.get_final_message())]


@scenario("anthropic")
async def anthropic_async_parse(url: str) -> Any:
    async with async_client_of(url) as client:
        return shown((await client.messages.parse(**_call("parse", output_format=city_type()))).parsed_output)


@scenario("anthropic")
async def anthropic_async_with_raw_response(url: str) -> Any:
    async with async_client_of(url) as client:
        raw = await client.messages.with_raw_response.create(**_call("async raw"))
        return [type(raw).__name__, raw.headers["request-id"], shown(await raw.parse())]


@scenario("anthropic")
async def anthropic_async_over_aiohttp(url: str) -> Any:
    from anthropic import DefaultAioHttpClient

    async with async_client_of(url, http_client=DefaultAioHttpClient()) as client:
        return shown(await client.messages.create(**_call("over aiohttp")))
