"""The programs that are killed: each a function that is the body of a run, with steps of one kind.

Every call of a step has a tag of its own, and every value that the program gets is shown by `saw`. What a program
returns is the same whenever it runs, except for the nonces of tickets and the numbers of answers.
"""

from __future__ import annotations

import asyncio
import datetime
import random
import threading
import zlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

from jupyter_durable import durable, step
from tests.crash.captured import captured_calls
from tests.crash.outside import ask, hit, saw, saw_value, slowly, times, wait_at_the_gate


@step
def work(tag: str) -> str:
    return hit(tag)


@step
def slow(tag: str) -> str:
    slowly()
    return hit(tag)


@step
async def fetch(tag: str) -> str:
    await asyncio.sleep(0)
    ticket = hit(tag)
    await asyncio.sleep(0)
    return ticket


@step
async def fetch_slowly(tag: str) -> str:
    slowly()
    return hit(tag)


def sync_steps() -> Any:
    """One after the other; some are slow, one is a function of a library, one a lambda."""
    seen = [saw(work(f"sync {number}")) for number in range(3)]
    seen.append(saw(slow("sync slow")))
    seen.append(saw(durable.step(hit, "sync library")))
    seen.append(saw(durable.step(lambda: hit("sync lambda"))))
    seen.append(saw(work("sync last")))
    return seen


async def async_steps() -> Any:
    """One after the other, some of them slow."""
    seen = [saw(await fetch(f"async {number}")) for number in range(3)]
    seen.append(saw(await fetch_slowly("async slow")))
    seen.append(saw(work("async and sync")))
    return seen


@step
def section(tag: str) -> list[str]:
    first = saw(work(f"{tag}/1"))
    own = hit(tag)
    return [own, first, saw(work(f"{tag}/2"))]


@step
def chapter(tag: str) -> list[Any]:
    return [hit(tag), [saw(ticket) for ticket in section(f"{tag}/s")], saw(work(f"{tag}/end"))]


@step
async def survey(tag: str) -> list[str]:
    own = hit(tag)
    found = await asyncio.gather(*(fetch(f"{tag}/{number}") for number in range(2)))
    return [own, *map(saw, found)]


async def nested_steps() -> Any:
    """Three floors of synchronous steps; an asynchronous one with steps side by side inside."""
    return [chapter("nested a"), await survey("nested b"), section("nested c")]


async def _chain(tag: str, length: int = 2) -> list[str]:
    return [saw(await fetch(f"{tag}.{number}")) for number in range(length)]


async def gathered_steps() -> Any:
    """Chains under ``gather`` and in a task group, as they are finished, with a slow one among them."""
    chains = await asyncio.gather(*(_chain(f"gather {name}") for name in "xyz"))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_chain(f"group {name}", 1)) for name in "uv"]
        tasks.append(group.create_task(_slow_chain("group slow")))
    finished = [saw(await done) for done in asyncio.as_completed([fetch("race 1"), fetch("race 2")])]
    return [chains, [task.result() for task in tasks], sorted(finished)]


async def _slow_chain(tag: str) -> list[str]:
    return [saw(await fetch_slowly(f"{tag} 1")), saw(await fetch_slowly(f"{tag} 2"))]


async def timed_steps() -> Any:
    """Sleeps of glue code between steps that run side by side."""

    async def later(tag: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return saw(await fetch(tag))

    return await asyncio.gather(later("timed a", 0.004), later("timed b", 0.001), later("timed c", 0.002))


def threaded_steps() -> Any:
    """Threads with chains of steps, and a pool."""
    found: dict[str, list[str]] = {}

    def chain(tag: str) -> None:
        found[tag] = [saw(work(f"{tag}.{number}")) for number in range(2)]

    threads = [threading.Thread(target=chain, args=(f"thread {number}",)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(2) as pool:
        pooled = [saw(ticket) for ticket in pool.map(work, [f"pool {number}" for number in range(3)])]
    return [found, pooled]


async def threads_of_a_loop() -> Any:
    """Steps that the loop hands to threads."""
    jobs = await asyncio.gather(*(asyncio.to_thread(work, f"to_thread {number}") for number in range(2)))
    return [*map(saw, jobs), saw(await fetch("back in the loop"))]


@step
def fails(tag: str) -> str:
    hit(tag)
    raise ValueError(f"{tag} cannot be done")


@step
async def fails_later(tag: str) -> str:
    hit(tag)
    await asyncio.sleep(0)
    raise KeyError(tag)


@step
def mends(tag: str) -> list[str]:
    try:
        fails(f"{tag}/broken")
    except ValueError:
        return [hit(tag), saw(work(f"{tag}/instead"))]
    return []


async def failing_steps() -> Any:
    """Steps that fail, are caught, and change the way that the program takes."""
    seen: list[Any] = []
    try:
        fails("fails first")
    except ValueError as error:
        seen.append(str(error))
    seen.append(saw(work("fails then")))
    seen.append(mends("fails inside"))
    one, two = await asyncio.gather(fails_later("fails async"), fetch("fails beside"), return_exceptions=True)
    seen += [type(one).__name__, saw(str(two))]
    try:
        fails("fails last")
    except ValueError as error:
        seen.append(type(error).__name__)
    return seen


@step(retries=3, backoff=0)
def flaky(tag: str) -> str:
    ticket = hit(tag)
    if times(tag) < 3:
        raise OSError(tag)
    return ticket


@step(retries=3, backoff=0)
async def flaky_later(tag: str) -> str:
    ticket = hit(tag)
    if times(tag) < 2:
        raise OSError(tag)
    return ticket


@step(retries=2, backoff=0)
def flaky_outside(tag: str) -> list[str]:
    inner = saw(work(f"{tag}/inner"))
    ticket = hit(tag)
    if times(tag) < 2:
        raise OSError(tag)
    return [ticket, inner, saw(work(f"{tag}/after"))]


async def retried_steps() -> Any:
    """Attempts that fail and are made again; one of them has finished steps inside."""
    return [saw(flaky("retry sync")), saw(await flaky_later("retry async")), flaky_outside("retry nested")]


@step
def stamped(tag: str, moment: datetime.datetime, chance: float, name: UUID) -> list[Any]:
    return [hit(tag), moment, chance, name]


async def helped_steps() -> Any:
    """The clock, chance and names of ``durable``, as arguments of steps and inside of them."""
    same = []
    for number in range(2):
        moment, chance, name = durable.now(), durable.random(), durable.uuid()
        saw_value(f"now {number}", moment)
        saw_value(f"random {number}", chance)
        saw_value(f"uuid {number}", name)
        ticket, *came_back = stamped(f"stamped {number}", moment, chance, name)
        saw(ticket)
        same.append([ticket, came_back == [moment, chance, name]])
    return [same, saw(await fetch("after the stamps"))]


@step
def large(tag: str, size: int) -> dict[str, Any]:
    ticket = hit(tag)
    return {"ticket": ticket, "text": tag[0] * size, "bytes": bytes(range(256)) * (size // 256)}


async def large_steps() -> Any:
    """Values that go into blobs, one of them as large as another, one so large that its digest is taken in a thread."""
    facts = []
    for tag, size in (("large 1", 70_000), ("large 2", 70_000), ("huge", 300_000)):
        value = large(tag, size)
        saw(value["ticket"])
        facts.append([value["ticket"], len(value["text"]), zlib.crc32(value["bytes"])])
    return [facts, saw(await fetch("small"))]


@step
def random_bytes(tag: str, size: int) -> list[Any]:
    return [hit(tag), random.Random(tag).randbytes(size)]


def incompressible_steps() -> Any:
    """A value that takes as much room on the disk as it has bytes."""
    before = saw(work("room before"))
    ticket, content = random_bytes("room", 100_000)
    return [before, saw(ticket), zlib.crc32(content)]


@step
async def hangs(tag: str) -> str:
    hit(tag)
    slowly(60)  # every deadline is over now; before, none can be, however slow this machine is
    await asyncio.get_running_loop().create_future()
    return "never"


async def cancelled_steps() -> Any:
    """Steps that a deadline or a failing sibling cancels: cancelled is an end."""
    seen = [saw(await fetch("cancel before"))]
    try:
        await asyncio.wait_for(hangs("cancel by wait_for"), 30)
    except TimeoutError:
        seen.append("wait_for")
    try:
        async with asyncio.timeout(30):
            await hangs("cancel by timeout")
    except TimeoutError:
        seen.append("timeout")
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(hangs("cancel by sibling"))
            group.create_task(fails_later("cancel cause"))
    except* KeyError:
        seen.append("sibling")
    seen.append(saw(await fetch("cancel after")))
    return seen


@step
def asks(tag: str, prompt: str) -> str:
    return ask(tag, prompt)


async def agent_steps() -> Any:
    """An agent: each prompt holds the answers before, so an answer that was paid twice changes all that follow."""
    answers = [asks("ask plan", "Make a plan.")]
    saw_value("ask plan", answers[0])
    for number in range(3):
        answers.append(asks(f"ask {number}", f"Question {number}, given: {answers[-1]}"))
        saw_value(f"ask {number}", answers[-1])
    return answers


@step(at_most_once=True)
def once(tag: str) -> str:
    return hit(tag)


def once_steps() -> Any:
    """Steps that nobody may execute twice, not even in doubt."""
    return [saw(once("once 1")), saw(work("once between")), saw(once("once 2"))]


@step
def held(tag: str) -> str:
    ticket = hit(tag)
    wait_at_the_gate()
    return ticket


def held_steps() -> Any:
    """One step before a step that can be held, one after it."""
    return [saw(work("held before")), saw(held("held")), saw(work("held after"))]


SYNC: dict[str, Callable[[], Any]] = {
    "sync": sync_steps,
    "threads": threaded_steps,
    "once": once_steps,
    "held": held_steps,
    "incompressible": incompressible_steps,
}
ASYNC: dict[str, Callable[[], Awaitable[Any]]] = {
    "async": async_steps,
    "nested": nested_steps,
    "gathered": gathered_steps,
    "timed": timed_steps,
    "to_thread": threads_of_a_loop,
    "failing": failing_steps,
    "retried": retried_steps,
    "helped": helped_steps,
    "large": large_steps,
    "cancelled": cancelled_steps,
    "agent": agent_steps,
    "captured": captured_calls,
}
SWEPT = [name for name in (*SYNC, *ASYNC) if name not in {"once", "held", "incompressible", "captured"}]
"""Programs that every kill is survived by alike."""
