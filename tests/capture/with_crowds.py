"""Many calls at once: the same prompt in many tasks, different ones in threads, and deaths between them."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.capture import with_openai, with_openai_async
from tests.capture.scenarios import CHAT, asks, scenario, tell

MANY = 20


async def _stagger(steps: random.Random) -> None:
    """Give way a few times, so that tasks go on in another order than they began."""
    for _ in range(steps.randrange(12)):
        await asyncio.sleep(0)


async def _ask(client: Any, text: str, steps: random.Random) -> str:
    await _stagger(steps)
    made = await client.chat.completions.create(model=CHAT, messages=asks(text))
    return str(made.choices[0].message.content)


def _orders() -> random.Random:
    """Another order in each process; a seed would hide what is to be found."""
    return random.Random()


@scenario("crowds", MANY, one_by_one=False)
async def crowd_of_equal_calls_by_gather(url: str) -> Any:
    steps = _orders()
    async with with_openai_async.client_of(url) as client:
        return await asyncio.gather(*(_ask(client, "the same", steps) for _ in range(MANY)))


@scenario("crowds", MANY, one_by_one=False)
async def crowd_of_equal_calls_by_task_group(url: str) -> Any:
    steps = _orders()
    async with with_openai_async.client_of(url) as client:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_ask(client, "the same", steps)) for _ in range(MANY)]
        return [task.result() for task in tasks]


@scenario("crowds", MANY, one_by_one=False)
async def crowd_of_equal_calls_by_anyio(url: str) -> Any:
    import anyio

    steps, answers = _orders(), [""] * MANY

    async def fill(at: int) -> None:
        answers[at] = await _ask(client, "the same", steps)

    async with with_openai_async.client_of(url) as client, anyio.create_task_group() as group:
        for at in range(MANY):
            group.start_soon(fill, at)
    return answers


@scenario("crowds", MANY, one_by_one=False)
async def crowd_of_different_calls(url: str) -> Any:
    steps = _orders()
    async with with_openai_async.client_of(url) as client:
        return await asyncio.gather(*(_ask(client, f"number {at}", steps) for at in range(MANY)))


@scenario("crowds", 8, one_by_one=False)
async def crowd_of_streams(url: str) -> Any:
    steps = _orders()

    async def read(client: Any) -> list[Any]:
        await _stagger(steps)
        stream = await client.chat.completions.create(model=CHAT, messages=asks("same stream"), stream=True)
        return [chunk.choices[0].delta.content async for chunk in stream]

    async with with_openai_async.client_of(url) as client:
        return await asyncio.gather(*(read(client) for _ in range(8)))


@scenario("crowds", 8, one_by_one=False)
def threads_with_different_calls(url: str) -> Any:
    client = with_openai.client_of(url)

    def ask(at: int) -> str:
        made = client.chat.completions.create(model=CHAT, messages=asks(f"thread {at}"))
        return str(made.choices[0].message.content)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(ask, range(8)))


@scenario("crowds", 8, one_by_one=False)
def threads_with_equal_calls(url: str) -> Any:
    client = with_openai.client_of(url)

    def ask(_: int) -> str:
        made = client.chat.completions.create(model=CHAT, messages=asks("same in threads"))
        return str(made.choices[0].message.content)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(ask, range(8)))


@scenario("crowds", 6, one_by_one=False)
async def to_thread_with_different_calls(url: str) -> Any:
    client = with_openai.client_of(url)

    def ask(at: int) -> str:
        made = client.chat.completions.create(model=CHAT, messages=asks(f"to thread {at}"))
        return str(made.choices[0].message.content)

    return await asyncio.gather(*(asyncio.to_thread(ask, at) for at in range(6)))


@scenario("crowds", 8, one_by_one=False)
async def crowd_that_tells_how_far_it_came(url: str) -> Any:
    """Each task leaves a sign once it has its answer: a test knows what was finished when it kills."""

    async def ask(at: int) -> str:
        made = await client.chat.completions.create(model=CHAT, messages=asks("the same, told"))
        text = str(made.choices[0].message.content)
        await asyncio.to_thread(tell, url, f"has-answer-{at}")
        return text

    async with with_openai_async.client_of(url) as client:
        return await asyncio.gather(*(ask(at) for at in range(8)))
