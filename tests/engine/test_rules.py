"""Rules of replay that are easy to get wrong and have no room of their own elsewhere."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from jupyter_durable import durable, step
from jupyter_durable.running import RunContext
from tests.engine.cells import Kernel
from tests.engine.harness import MortalLog, World, play

world = World()


@pytest.fixture(autouse=True)
def new_world() -> None:
    """Each test starts with a world in which nothing has happened."""
    world.clear()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


@step
async def fetch(i: int) -> int:
    for _ in range(random.randrange(5)):
        await asyncio.sleep(0)
    world.hit(f"fetch {i}")
    return i


def test_an_order_that_cannot_be_kept_is_relaxed_and_nothing_is_executed(log: MortalLog) -> None:
    """Rule 17: a smaller semaphore than then; the replay goes on, and says that the order was not kept."""

    async def program() -> Any:
        gate = asyncio.Semaphore(1 if world.broken else 6)

        async def one(i: int) -> int:
            async with gate:
                return await fetch(i)

        return sorted(await asyncio.gather(*(one(i) for i in range(6))))

    for _ in range(20):
        first = play(program, log)
        assert first.error is None
        ends = [effect for effect in world.effects if effect.startswith("fetch")]
        if ends != sorted(ends):
            break
        log = MortalLog()  # by chance in order: try again
        world.clear()
    world.broken = True

    second = play(program, log)

    assert second.value == list(range(6))
    assert second.live == 0
    assert second.execution is not None
    assert second.execution.order.turnstile.relaxed


def test_a_task_that_the_run_did_not_begin_runs_its_steps_plainly(log: MortalLog) -> None:
    """Rule 6: strangers. An older background task is not the run's."""

    async def main() -> int:
        begin, seen = asyncio.Event(), asyncio.Event()

        async def stranger() -> None:
            await begin.wait()
            await fetch(7)
            seen.set()

        task = asyncio.create_task(stranger())
        async with RunContext("p", log) as run:
            begin.set()
            await seen.wait()
            await fetch(1)
        await task
        assert run.execution is not None
        return run.execution.stats.live

    assert asyncio.run(main()) == 1
    assert sorted(world.effects) == ["fetch 1", "fetch 7"]


def test_recorded_time_and_chance_are_kept_after_a_difference(log: MortalLog) -> None:
    """Rule 4: by place and occurrence, whatever came before."""
    setup = """
    @step(pure=True)
    def ask(q):
        return world.hit(q)
    """
    first = Kernel(log, world, setup).durable("ask('a')\n(durable.now(), durable.random(), durable.uuid())")

    second = Kernel(log, world, setup).durable("ask('b')\n(durable.now(), durable.random(), durable.uuid())")

    assert second.error is None, second.error
    assert second.value == first.value


def test_a_step_in_a_lost_context_is_recorded_all_the_same(log: MortalLog) -> None:
    """A thread of the run whose context is empty still belongs to it."""
    import contextvars
    import threading

    @step
    def embed(i: int) -> int:
        return world.hit("embed") * 10 + i

    async def program() -> Any:
        found: list[int] = []
        thread = threading.Thread(target=lambda: contextvars.Context().run(lambda: found.append(embed(3))))
        thread.start()
        thread.join()
        return found

    assert play(program, log).value == play(program, log).value == [13]
    assert world.effects == ["embed"]


def test_a_tasks_context_given_by_the_user_is_not_mixed_up(log: MortalLog) -> None:
    """Two tasks in one context still have places of their own."""
    import contextvars

    async def program() -> Any:
        shared = contextvars.copy_context()

        async def ask(i: int) -> int:
            for _ in range(random.randrange(4)):
                await asyncio.sleep(0)
            return await fetch(0)

        tasks = [asyncio.get_running_loop().create_task(ask(i), context=shared) for i in range(5)]
        return [await task for task in tasks]

    first, second = play(program, log), play(program, log)

    assert second.error is None
    assert first.value == second.value
    assert second.live == 0


def test_an_eager_task_factory_does_not_disturb(log: MortalLog) -> None:
    factory = getattr(asyncio, "eager_task_factory", None)

    async def program() -> Any:
        if factory is not None and asyncio.get_running_loop().get_task_factory() is None:
            asyncio.get_running_loop().set_task_factory(factory)
        return await asyncio.gather(*(fetch(i) for i in range(4)))

    assert play(program, log).value == play(program, log).value == [0, 1, 2, 3]


def test_values_of_helpers_differ_from_call_to_call(log: MortalLog) -> None:
    async def program() -> Any:
        return [durable.random() for _ in range(3)]

    assert len(set(play(program, log).value)) == 3
