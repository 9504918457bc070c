"""LiteLLM: it speaks OpenAI through their SDK, Anthropic over its own httpx clients."""

from __future__ import annotations

import re
from typing import Any

from tests.capture.scenarios import ANTHROPIC_KEY, CHAT, CLAUDE, OPENAI_KEY, asks, scenario


def _openai(url: str, text: str, **more: Any) -> dict[str, Any]:
    return {"model": f"openai/{CHAT}", "messages": asks(text), "api_base": f"{url}/v1", "api_key": OPENAI_KEY, **more}


def _anthropic(url: str, text: str, **more: Any) -> dict[str, Any]:
    named = {"model": f"anthropic/{CLAUDE}", "api_base": url, "api_key": ANTHROPIC_KEY, "max_tokens": 64}
    return {**named, "messages": asks(text), **more}


def _seen(answer: Any) -> Any:
    value = answer.model_dump(mode="json")
    if not re.fullmatch(r"chatcmpl-\d{6}", str(value.get("id", ""))):
        value.pop("id", None)  # litellm makes one up where it translates
    value.pop("created", None)  # the same
    return {"type": type(answer).__name__, "value": value}


@scenario("litellm")
def litellm_openai(url: str) -> Any:
    import litellm

    return _seen(litellm.completion(**_openai(url, "plain")))


@scenario("litellm")
def litellm_openai_stream(url: str) -> Any:
    import litellm

    return [_seen(chunk) for chunk in litellm.completion(**_openai(url, "stream", stream=True))]


@scenario("litellm")
def litellm_anthropic(url: str) -> Any:
    import litellm

    return _seen(litellm.completion(**_anthropic(url, "plain")))


@scenario("litellm")
def litellm_anthropic_stream(url: str) -> Any:
    import litellm

    return [_seen(chunk) for chunk in litellm.completion(**_anthropic(url, "stream", stream=True))]


@scenario("litellm")
def litellm_embedding(url: str) -> Any:
    import litellm

    model = "openai/text-embedding-3-small"
    return _seen(litellm.embedding(model=model, input=["one"], api_base=f"{url}/v1", api_key=OPENAI_KEY))


@scenario("litellm")
async def litellm_async_openai(url: str) -> Any:
    import litellm

    return _seen(await litellm.acompletion(**_openai(url, "async")))


@scenario("litellm")
async def litellm_async_openai_stream(url: str) -> Any:
    import litellm

    stream = await litellm.acompletion(**_openai(url, "async stream", stream=True))
    return [_seen(chunk) async for chunk in stream]


@scenario("litellm")
async def litellm_async_anthropic(url: str) -> Any:
    import litellm

    return _seen(await litellm.acompletion(**_anthropic(url, "async")))


@scenario("litellm")
async def litellm_async_anthropic_stream(url: str) -> Any:
    import litellm

    stream = await litellm.acompletion(**_anthropic(url, "async stream", stream=True))
    return [_seen(chunk) async for chunk in stream]


@scenario("litellm")
async def litellm_async_embedding(url: str) -> Any:
    import litellm

    model = "openai/text-embedding-3-small"
    return _seen(await litellm.aembedding(model=model, input=["two"], api_base=f"{url}/v1", api_key=OPENAI_KEY))
