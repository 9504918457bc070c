"""A program whose effects are model calls that nobody has declared to be steps; killed by `test_model_calls`."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx2

from jupyter_durable import step
from tests.crash.outside import ENDPOINT, saw_value


def _body(prompt: str, **more: Any) -> dict[str, Any]:
    return {"model": "counting-model-1", "messages": [{"role": "user", "content": prompt}], **more}


def _text(answer: Any) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def _url() -> str:
    return f"{os.environ[ENDPOINT]}/chat/completions"


def _ask(http: httpx2.Client, prompt: str) -> str:
    text = _text(http.post(_url(), json=_body(prompt)))
    saw_value(prompt, text)
    return text


async def _ask_later(http: httpx2.AsyncClient, prompt: str) -> str:
    text = _text(await http.post(_url(), json=_body(prompt)))
    saw_value(prompt, text)
    return text


@step
def researched(topic: str) -> list[str]:
    with httpx2.Client() as http:
        return [_ask(http, f"inside {topic} {number}") for number in range(2)]


async def captured_calls() -> Any:
    """One after the other, each given the answer before; inside of a step; a stream; side by side."""
    with httpx2.Client() as http:
        plan = _ask(http, "plan")
        found = [plan, _ask(http, f"next, given {plan}"), researched("water")]
        with http.stream("POST", _url(), json=_body("stream", stream=True)) as answer:
            streamed = b"".join(answer.iter_raw()).count(b"data:")
        saw_value("stream", streamed)
    async with httpx2.AsyncClient() as http:
        found.append(await asyncio.gather(*(_ask_later(http, f"side {number}") for number in range(3))))
    return [found, streamed]
