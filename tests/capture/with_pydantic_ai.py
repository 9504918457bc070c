"""Pydantic AI agents over OpenAI's SDK."""

from __future__ import annotations

from typing import Any

from tests.capture.scenarios import CHAT, OPENAI_KEY, RESPONSES_MODEL, scenario
from tests.capture.with_openai import city_type


def _agent(url: str, *, responses: bool = False, **more: Any) -> Any:
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key=OPENAI_KEY, max_retries=0)
    provider = OpenAIProvider(openai_client=client)
    if responses:
        return Agent(OpenAIResponsesModel(RESPONSES_MODEL, provider=provider), **more)
    return Agent(OpenAIChatModel(CHAT, provider=provider), **more)


def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


def _seen(result: Any) -> Any:
    usage = result.usage
    usage = usage() if callable(usage) else usage
    kinds = [[type(part).__name__ for part in message.parts] for message in result.all_messages()]
    return [type(result).__name__, kinds, usage.requests, usage.input_tokens, usage.output_tokens]


@scenario("pydantic_ai", 2)
def pydantic_ai_run_sync(url: str) -> Any:
    result = _agent(url, tools=[weather]).run_sync("the weather?")
    return [result.output, _seen(result)]


@scenario("pydantic_ai", 2)
async def pydantic_ai_run(url: str) -> Any:
    result = await _agent(url, tools=[weather]).run("the weather?")
    return [result.output, _seen(result)]


@scenario("pydantic_ai")
async def pydantic_ai_without_tools(url: str) -> Any:
    result = await _agent(url).run("no tools")
    return [result.output, _seen(result)]


@scenario("pydantic_ai", 2)
async def pydantic_ai_run_stream(url: str) -> Any:
    async with _agent(url, tools=[weather]).run_stream("the weather?") as result:
        texts = [text async for text in result.stream_text(debounce_by=None)]
        return [texts, _seen(result)]


@scenario("pydantic_ai")
async def pydantic_ai_structured(url: str) -> Any:
    result = await _agent(url, output_type=city_type()).run("structured")
    return [result.output.model_dump(), _seen(result)]


@scenario("pydantic_ai", 2)
async def pydantic_ai_responses(url: str) -> Any:
    result = await _agent(url, responses=True, tools=[weather]).run("the weather?")
    return [result.output, _seen(result)]


@scenario("pydantic_ai")
async def pydantic_ai_model_by_name(url: str) -> Any:
    import os

    from pydantic_ai import Agent

    os.environ["OPENAI_BASE_URL"] = f"{url}/v1"
    try:
        result = await Agent(f"openai-chat:{CHAT}").run("by name")
    finally:
        del os.environ["OPENAI_BASE_URL"]
    return [result.output, _seen(result)]
