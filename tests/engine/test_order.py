"""The recorded order on replay: queues and races go the same way again, for tasks, threads and open waits."""

from __future__ import annotations

import asyncio
import queue
from concurrent.futures import ThreadPoolExecutor, as_completed

import pytest

from jupyter_durable import answering, client, durable, step
from tests.engine.harness import MortalLog, World, play

WORLD = World()
DYING: list[MortalLog] = []


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    WORLD.clear()
    return MortalLog()


@step
async def load(n: int) -> int:
    """Something that takes a moment."""
    WORLD.hit(f"load {n}")
    await asyncio.sleep(0.002 * (n + 1))
    return n


@step
async def send(n: int, who: int) -> str:
    """Something else, that takes longer."""
    WORLD.hit(f"send {n}")
    await asyncio.sleep(0.005 + 0.003 * who)
    return f"{n} by {who}"


async def shop() -> list[str]:
    """One producer, two consumers, one queue."""
    items: asyncio.Queue[int | None] = asyncio.Queue()
    sent: list[str] = []

    async def produce() -> None:
        for n in range(5):
            await items.put(await load(n))
        for _ in range(2):
            await items.put(None)

    async def consume(who: int) -> None:
        while (item := await items.get()) is not None:
            sent.append(await send(item, who))

    await asyncio.gather(produce(), consume(0), consume(1))
    return sorted(sent)


def test_two_consumers_of_a_queue_get_the_same_items_again(log):
    first = play(shop, log)
    again = play(shop, log)

    assert again.value == first.value
    assert again.live == 0


def test_two_consumers_of_a_queue_go_on_after_a_death_at_any_event(log):
    for die_after in range(0, play(shop, log).events, 2):
        mortal = MortalLog()
        WORLD.clear()
        play(shop, mortal, die_after)
        resumed = play(shop, mortal)
        assert resumed.error is None
        assert play(shop, mortal).live == 0
        assert sorted(text.split()[0] for text in resumed.value) == list("01234")


def test_what_threads_put_into_a_queue_comes_in_the_same_order_again(log):
    import threading

    gates = [threading.Event() for _ in range(5)]
    gates[4].set()

    @step
    def work(n: int) -> int:
        WORLD.hit(f"work {n}")
        gates[n + 1].wait(5)  # the last one is the first to end
        return n

    @step
    def note(text: str) -> str:
        WORLD.hit(text)
        return text

    def program() -> list[str]:
        results: queue.Queue[int] = queue.Queue()

        def job(n: int) -> None:
            results.put(work(n))
            gates[n].set()

        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(job, n) for n in range(4)]
            noted = [note(f"{place}: {results.get()}") for place in range(4)]
            for done in as_completed(jobs):
                done.result()
        return noted

    def run() -> list[str]:
        with durable.run("threads", log=log):
            return program()
        raise AssertionError

    assert run() == ["0: 3", "1: 2", "2: 1", "3: 0"]
    effects = list(WORLD.effects)

    assert run() == ["0: 3", "1: 2", "2: 1", "3: 0"]
    assert effects == WORLD.effects


def test_threads_whose_order_cannot_be_kept_go_on_without_it(log):
    @step
    def work(n: int) -> int:
        WORLD.hit(f"work {n}")
        return n

    def run(threads: int, items: list[int]) -> list[int]:
        with durable.run("threads", log=log), ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, items))
        raise AssertionError

    assert run(1, [1, 2, 3]) == [1, 2, 3]
    assert run(1, [3, 2, 1]) == [3, 2, 1]
    assert len(WORLD.effects) == 3


@pytest.mark.parametrize("first", ["ask", "nap"])
def test_an_answer_that_comes_after_a_race_does_not_win_it_on_replay(log, first):
    @step
    async def note(what: str) -> str:
        if WORLD.hit(what) == 1 and what == "the race is over":
            DYING[0].left = 1  # its end is recorded, and nothing after it
        return what

    async def ask() -> str:
        return f"answer {await durable.wait_for('word')}"

    async def nap() -> str:
        await durable.sleep("10ms")
        return "timer"

    async def race() -> str:
        tasks = [asyncio.create_task(each()) for each in ([ask, nap] if first == "ask" else [nap, ask])]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        winner: str = done.pop().result()
        await note("the race is over")
        return await note(winner)

    DYING[:] = [log]
    first_life = play(race, log)
    assert first_life.died
    answering.send(log, "p", "word", "late")

    assert play(race, log).value == "timer"
    assert play(race, log).value == "timer"
    assert WORLD.effects == ["the race is over", "timer"]
    assert [branch.name for branch in client.views_of(log)[client.find_run(log, "p")]] == ["main"]
