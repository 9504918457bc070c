"""The OpenAI Agents SDK, with its tracing on: traces are sent to the fake provider, and are no model calls."""

from __future__ import annotations

from typing import Any

from tests.capture.scenarios import CHAT, OPENAI_KEY, RESPONSES_MODEL, scenario


def _tracing_to(url: str) -> Any:
    """Export traces to the provider; returns what sends them at once."""
    from agents import set_trace_processors
    from agents.tracing.processors import BackendSpanExporter, BatchTraceProcessor

    exporter = BackendSpanExporter(api_key=OPENAI_KEY, endpoint=f"{url}/v1/traces/ingest")
    processor = BatchTraceProcessor(exporter)
    set_trace_processors([processor])
    return processor


def _agent(url: str, *, responses: bool = False) -> Any:
    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, function_tool
    from openai import AsyncOpenAI

    @function_tool
    def weather(city: str) -> str:
        """Tell the weather of a city."""
        return f"sunny in {city}"

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key=OPENAI_KEY, max_retries=0)
    model = OpenAIResponsesModel(RESPONSES_MODEL, client) if responses else OpenAIChatCompletionsModel(CHAT, client)
    return Agent(name="forecaster", instructions="Be brief.", model=model, tools=[weather])


def _seen(result: Any) -> Any:
    usage = result.context_wrapper.usage
    items = [type(item).__name__ for item in result.new_items]
    return [result.final_output, items, usage.requests, usage.input_tokens, usage.output_tokens]


@scenario("agents", 2)
def agents_run_sync(url: str) -> Any:
    from agents import Runner

    processor = _tracing_to(url)
    result = Runner.run_sync(_agent(url), "the weather?")
    processor.force_flush()
    return _seen(result)


@scenario("agents", 2)
async def agents_run(url: str) -> Any:
    from agents import Runner

    processor = _tracing_to(url)
    result = await Runner.run(_agent(url), "the weather?")
    processor.force_flush()
    return _seen(result)


@scenario("agents", 2)
async def agents_run_streamed(url: str) -> Any:
    from agents import Runner

    processor = _tracing_to(url)
    result = Runner.run_streamed(_agent(url), "the weather?")
    kinds = [event.type for event in [event async for event in result.stream_events()]]
    processor.force_flush()
    return [kinds, _seen(result)]


@scenario("agents", 2)
async def agents_run_with_responses(url: str) -> Any:
    from agents import Runner

    processor = _tracing_to(url)
    result = await Runner.run(_agent(url, responses=True), "the weather?")
    processor.force_flush()
    return _seen(result)


@scenario("agents", 2)
async def agents_run_streamed_with_responses(url: str) -> Any:
    from agents import Runner

    processor = _tracing_to(url)
    result = Runner.run_streamed(_agent(url, responses=True), "the weather?")
    kinds = [event.type for event in [event async for event in result.stream_events()]]
    processor.force_flush()
    return [kinds, _seen(result)]
