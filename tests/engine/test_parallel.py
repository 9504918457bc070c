"""Parallel steps: keys do not depend on who finishes first, and the recorded order comes back on replay."""

from __future__ import annotations

import asyncio
import queue
import random
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import anyio
import pytest

from jupyter_durable import clock, step
from tests.engine.harness import MortalLog, Result, World, play

world = World()


@pytest.fixture(autouse=True)
def new_world() -> None:
    """Each test starts with a world in which nothing has happened."""
    world.clear()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


async def jitter() -> None:
    """Let other tasks go first, now and then."""
    for _ in range(random.randrange(4)):
        await asyncio.sleep(0)


@step
async def price(symbol: str) -> str:
    await jitter()
    world.hit(f"price {symbol}")
    return f"price of {symbol}"


@step
async def news(symbol: str) -> str:
    await jitter()
    world.hit(f"news {symbol}")
    return f"news of {symbol}"


@step
async def sample(prompt: str) -> str:
    """The same call again and again, each time another answer."""
    await jitter()
    return f"answer {world.hit('sample')}"


@step
def embed(i: int) -> int:
    world.hit(f"embed {i}")
    return i * 10


def every_death(program: Any, check: Any) -> None:
    """Let a program die after each of its events, resume it, and check the result of the resumed execution."""
    whole = play(program, MortalLog())
    assert whole.error is None, whole.error
    for at in range(whole.events):
        world.clear()
        log = MortalLog()
        died = play(program, log, die_after=at)
        assert died.died, at
        effects = list(world.effects)
        resumed = play(program, log)
        assert resumed.error is None, (at, resumed.error)
        check(resumed, effects, at)


def test_gathered_steps_keep_their_results_whatever_finishes_first() -> None:
    """Case G06, killed after each event."""

    async def program() -> Any:
        return await asyncio.gather(price("ACME"), news("ACME"), price("BLUE"))

    def check(result: Result, before: list[str], at: int) -> None:
        assert result.value == ["price of ACME", "news of ACME", "price of BLUE"]

    every_death(program, check)


def test_two_chains_do_not_mix() -> None:
    async def chain(symbol: str) -> str:
        first = await price(symbol)
        await jitter()
        return first + ", " + await news(symbol)

    async def program() -> Any:
        return await asyncio.gather(*(chain(s) for s in "ABC"))

    def check(result: Result, before: list[str], at: int) -> None:
        assert result.value == [f"price of {s}, news of {s}" for s in "ABC"]

    for _ in range(5):
        every_death(program, check)


@pytest.mark.parametrize("kind", ["gather", "TaskGroup", "anyio", "create_task"])
def test_twenty_identical_calls_each_get_their_own_answer_back(kind: str) -> None:
    async def ask(i: int) -> tuple[int, str]:
        await jitter()
        return i, await sample("same prompt")

    async def program() -> Any:
        if kind == "gather":
            return await asyncio.gather(*(ask(i) for i in range(20)))
        if kind == "create_task":
            tasks = [asyncio.create_task(ask(i)) for i in range(20)]
            return [await task for task in tasks]
        found: dict[int, str] = {}

        async def keep(i: int) -> None:
            found[i] = (await ask(i))[1]

        if kind == "TaskGroup":
            async with asyncio.TaskGroup() as group:
                for i in range(20):
                    group.create_task(keep(i))
        else:
            async with anyio.create_task_group() as any_group:
                for i in range(20):
                    any_group.start_soon(keep, i)
        return sorted(found.items())

    for _ in range(5):
        log = MortalLog()
        first, second = play(program, log), play(program, log)
        assert first.value == second.value
        assert second.live == 0


def test_as_completed_replays_in_the_order_of_the_first_run() -> None:
    async def program() -> Any:
        order = []
        for future in asyncio.as_completed([price(s) for s in "ABCDEF"]):
            order.append(await future)
            order.append(await sample(f"after {len(order)} comes {order[-1]}"))
        return order

    for _ in range(20):
        log = MortalLog()
        first, second = play(program, log), play(program, log)
        assert second.error is None, second.error
        assert first.value == second.value
        assert second.live == 0


def test_queues_between_tasks_replay_in_the_order_of_the_first_run() -> None:
    async def program() -> Any:
        box: asyncio.Queue[str | None] = asyncio.Queue()
        out: list[str] = []

        async def producer(name: str) -> None:
            for i in range(3):
                await box.put(await price(f"{name}{i}"))
            await box.put(None)

        async def consumer() -> None:
            open_producers = 3
            while open_producers:
                got = await box.get()
                if got is None:
                    open_producers -= 1
                else:
                    out.append(await news(f"{len(out)}:{got}"))

        await asyncio.gather(producer("a"), producer("b"), producer("c"), consumer())
        return out

    for _ in range(20):
        log = MortalLog()
        first, second = play(program, log), play(program, log)
        assert second.error is None, second.error
        assert first.value == second.value
        assert second.live == 0


def test_sleeps_of_glue_keep_their_place_in_the_order() -> None:
    """Rule 14: a recorded sleep is not waited for again, and the order around it comes back."""

    async def poll(name: str, delay: float, out: list[str]) -> None:
        for i in range(3):
            await asyncio.sleep(delay * random.random())
            out.append(await sample(f"{len(out)} {name}{i}"))

    async def program() -> Any:
        out: list[str] = []
        await asyncio.gather(poll("a", 0.01, out), poll("b", 0.01, out), poll("c", 0.01, out))
        return out

    for _ in range(10):
        log = MortalLog()
        first, second = play(program, log), play(program, log)
        assert second.error is None, second.error
        assert first.value == second.value
        assert second.live == 0


def test_tasks_made_from_a_set_find_their_places_again(log: MortalLog) -> None:
    async def program() -> Any:
        async def work(i: int) -> str:
            await jitter()
            return await price(str(i)) + await news(str(i))

        return sorted([await f for f in asyncio.as_completed({work(i) for i in range(6)})])

    first, second = play(program, log), play(program, log)

    assert second.error is None
    assert first.value == second.value
    assert second.live == 0


@pytest.mark.parametrize("kind", ["map", "submit", "thread", "to_thread", "run_in_executor", "anyio"])
def test_steps_in_threads_are_recorded_and_paired_right(kind: str) -> None:
    """Case G17: whatever became of the context in the thread."""

    async def program() -> Any:
        if kind == "map":
            with ThreadPoolExecutor(4) as pool:
                return list(pool.map(embed, range(8)))
        if kind == "submit":
            with ThreadPoolExecutor(4) as pool:
                return sorted(f.result() for f in as_completed([pool.submit(embed, i) for i in range(8)]))
        if kind == "thread":
            box: queue.Queue[int] = queue.Queue()
            threads = [threading.Thread(target=lambda i=i: box.put(embed(i))) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return sorted(box.get() for _ in range(8))
        if kind == "to_thread":
            return await asyncio.gather(*(asyncio.to_thread(embed, i) for i in range(8)))
        if kind == "anyio":
            return await asyncio.gather(*(anyio.to_thread.run_sync(embed, i) for i in range(8)))
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(4) as pool:
            return await asyncio.gather(*(loop.run_in_executor(pool, embed, i) for i in range(8)))

    def check(result: Result, before: list[str], at: int) -> None:
        assert result.value == [i * 10 for i in range(8)]

    log = MortalLog()
    assert play(program, log).value == [i * 10 for i in range(8)]
    second = play(program, log)
    assert second.value == [i * 10 for i in range(8)]
    assert second.live == 0
    assert len(world.effects) == 8


def test_equal_jobs_in_threads_each_get_their_own_answer_back() -> None:
    """Case G27."""

    @step
    def echo(i: int) -> int:
        return world.hit("echo") * 1000 + i

    def worker(name: int) -> list[int]:
        return [echo(i) for i in range(25)]

    async def program() -> Any:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(worker, range(4)))

    log = MortalLog()
    first, second = play(program, log), play(program, log)
    assert first.value == second.value
    assert [[v % 1000 for v in one] for one in first.value] == [list(range(25))] * 4
    assert second.live == 0


def test_a_step_cut_by_a_deadline_times_out_again_without_the_wait(log: MortalLog) -> None:
    """Rule 13: cancelled by the program is an end; on replay the same deadline cuts it, at once."""

    @step
    async def slow() -> str:
        world.hit("slow")
        await asyncio.get_running_loop().create_future()
        return "never"

    async def program() -> Any:
        seen = []
        try:
            await asyncio.wait_for(slow(), 0.2)
        except TimeoutError:
            seen.append("wait_for")
        try:
            async with asyncio.timeout(0.2):
                await slow()
        except TimeoutError:
            seen.append("timeout")
        return [*seen, await price("A")]

    first = play(program, log)
    begun = clock.monotonic()
    second = play(program, log)
    took = clock.monotonic() - begun

    assert first.value == second.value == ["wait_for", "timeout", "price of A"]
    assert world.effects.count("slow") == 2
    assert second.live == 0
    assert took < 0.2


def test_a_step_cancelled_by_a_failing_sibling_is_cancelled_again(log: MortalLog) -> None:
    @step
    async def hang() -> str:
        world.hit("hang")
        await asyncio.get_running_loop().create_future()
        return "never"

    @step
    async def fail() -> str:
        world.hit("fail")
        raise ValueError("no")

    async def program() -> Any:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(hang())
                group.create_task(fail())
        except* ValueError:
            pass
        return await price("A")

    first, second = play(program, log), play(program, log)

    assert first.value == second.value == "price of A"
    assert world.effects.count("hang") == 1
    assert second.live == 0


def test_one_flush_serves_all_steps_that_begin_together(monkeypatch: pytest.MonkeyPatch, log: MortalLog) -> None:
    """Group commit: a hundred intents, one flush."""
    flushes = []
    from jupyter_durable.log.memory import MemoryWriter

    monkeypatch.setattr(MemoryWriter, "flush", lambda self: flushes.append(1))

    async def program() -> Any:
        return await asyncio.gather(*(sample(str(i)) for i in range(100)))

    play(program, log)

    assert 1 <= len(flushes) <= 5


def test_an_unfinished_thread_keeps_the_run_open_until_it_has_recorded(log: MortalLog) -> None:
    """Rule 15: bodies already started finish, and a re-run joins them."""
    begun, gate = threading.Event(), threading.Event()

    @step(key=lambda: 0)
    def slow() -> str:
        world.hit("slow")
        begun.set()
        gate.wait(10)
        return "late"

    async def program() -> Any:
        thread = threading.Thread(target=slow)
        thread.start()
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, 10)
        raise ValueError("the cell fails while the thread runs")

    async def again() -> Any:
        thread = threading.Thread(target=slow)
        thread.start()
        thread.join()

    first = play_open(program, log)
    assert first.execution is not None
    assert first.execution.draining
    gate.set()
    assert first.execution.wait_closed(10)

    second = play(again, log)
    assert world.effects == ["slow"]
    assert second.live == 0


def play_open(program: Any, log: MortalLog) -> Result:
    """Like `play`, without closing the log behind the execution's back."""
    from jupyter_durable.running import RunContext

    async def main() -> Result:
        result = Result()
        context = RunContext("p", log)
        try:
            async with context:
                result.execution = context.execution
                await program()
        except ValueError as error:
            result.error = error
        return result

    return asyncio.run(main())


def test_threads_that_fill_one_dict_find_their_places_again() -> None:
    """An argument that others change meanwhile is no part of a thread's place."""

    async def program() -> Any:
        found: dict[int, int] = {}

        def work(i: int, into: dict[int, int]) -> None:
            into[i] = embed(i)

        threads = [threading.Thread(target=work, args=(i, found)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(found.items())

    for _ in range(5):
        world.clear()
        log = MortalLog()
        first, second = play(program, log), play(program, log)
        assert first.value == second.value == [(i, i * 10) for i in range(6)]
        assert second.live == 0
        assert len(world.effects) == 6


def test_threads_that_take_work_from_a_queue_replay_whoever_takes_what() -> None:
    async def program() -> Any:
        work: queue.Queue[int] = queue.Queue()
        found: list[int] = []
        for i in range(8):
            work.put(i)

        def take() -> None:
            while True:
                try:
                    i = work.get_nowait()
                except queue.Empty:
                    return
                threading.Event().wait(random.random() / 200)
                found.append(embed(i))

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(found)

    for _ in range(10):
        world.clear()
        log = MortalLog()
        first, second = play(program, log), play(program, log)
        assert first.value == second.value == [i * 10 for i in range(8)]
        assert second.live == 0
        assert len(world.effects) == 8
