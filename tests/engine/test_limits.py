"""``@step(rate=..., concurrency=...)``: shared by all calls, asked for by live attempts only, in no loop's way."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable import clock, durable, step
from jupyter_durable.engine.limits import Bucket, Slots, parse_rate
from jupyter_durable.errors import UsageError
from tests.engine.harness import MortalLog, World, play

world = World()


@pytest.fixture(autouse=True)
def new_world() -> None:
    """Each test starts with a world in which nothing has happened."""
    world.clear()


class Slept(clock.SystemClock):
    """A clock that notes for how long it was slept, and moves on at once."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:  # type: ignore[override]
        return self.at

    def sleep(self, seconds: float) -> None:  # type: ignore[override]
        self.slept.append(round(seconds, 6))
        self.at += seconds


@given(st.integers(1, 7), st.lists(st.floats(0, 3), max_size=60))
def test_no_window_of_a_period_sees_more_than_the_tokens(tokens: int, pauses: list[float]) -> None:
    timer = Slept()
    with clock.use(timer):
        bucket = Bucket(tokens, 2.0)
        begun = []
        for pause in pauses:
            timer.at += pause
            begun.append(timer.at + bucket.take())

    assert begun == sorted(begun)
    for first, later in zip(begun, begun[tokens:], strict=False):
        assert later - first >= 2.0 - 1e-9


def test_the_first_ones_do_not_wait_and_the_next_one_does() -> None:
    @step(rate="3/min", name="limited-sync")
    def ask(n: int) -> int:
        return n

    def program() -> Any:
        return [ask(n) for n in range(7)]

    async def main() -> Any:
        return program()

    timer, log = Slept(), MortalLog()
    with clock.use(timer):
        assert play(main, log).value == list(range(7))
        assert timer.slept == [60.0, 60.0]
        timer.slept.clear()
        assert play(main, log).live == 0
        assert timer.slept == []  # a replay takes no token


def test_a_retry_takes_a_token_too() -> None:
    @step(rate="1/min", retries=2, backoff=0, name="limited-retry")
    def ask() -> int:
        if world.hit("ask") < 3:
            raise ConnectionError
        return 1

    async def main() -> Any:
        return ask()

    timer = Slept()
    with clock.use(timer):
        assert play(main, MortalLog()).value == 1
    assert [seconds for seconds in timer.slept if seconds] == [60.0, 60.0]


def test_an_asynchronous_step_waits_without_holding_the_loop_up() -> None:
    @step(rate="2/100ms", name="limited-async")
    async def ask(n: int) -> float:
        return clock.monotonic()

    async def main() -> Any:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        beating = asyncio.create_task(beat())
        found = await asyncio.gather(*(ask(n) for n in range(6)))
        beating.cancel()
        return found, beats

    found, beats = play(main, MortalLog()).value

    assert max(found) - min(found) > 0.19  # the first body is a moment behind its token
    assert beats > 20


def test_steps_of_one_name_share_the_limit_and_others_do_not() -> None:
    def made(name: str) -> Any:
        return step(rate="1/min", name=name)(lambda: world.hit(name))

    one, same, other = made("shared-limit"), made("shared-limit"), made("another-limit")

    async def main() -> Any:
        one()
        other()
        same()

    timer = Slept()
    with clock.use(timer):
        assert play(main, MortalLog()).error is None
    assert timer.slept == [60.0]


@pytest.mark.parametrize("kind", ["tasks", "threads", "map"])
def test_no_more_run_at_once_than_are_allowed(kind: str) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def begin() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)

    def end() -> None:
        nonlocal now
        with lock:
            now -= 1

    @step(concurrency=2, name=f"narrow-{kind}")
    def narrow(n: int) -> int:
        begin()
        threading.Event().wait(0.002)
        end()
        return n

    @step(concurrency=2, name=f"narrow-async-{kind}")
    async def narrow_async(n: int) -> int:
        begin()
        await asyncio.sleep(0.002)
        end()
        return n

    async def main() -> Any:
        if kind == "tasks":
            return await asyncio.gather(*(narrow_async(n) for n in range(10)))
        if kind == "map":
            return await durable.map(narrow, range(10))
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(narrow, range(10)))

    log = MortalLog()
    assert play(main, log).value == play(main, log).value == list(range(10))
    assert most == 2


def test_a_step_that_calls_itself_does_not_wait_for_itself() -> None:
    @step(concurrency=1, name="recursive")
    def count(n: int) -> int:
        return n if n == 0 else 1 + int(count(n - 1))

    async def main() -> Any:
        return count(4)

    assert play(main, MortalLog()).value == 4


def test_who_leaves_the_queue_takes_no_place() -> None:
    async def main() -> None:
        slots = Slots(1)
        await slots.take_async()
        first, second = asyncio.create_task(slots.take_async()), asyncio.create_task(slots.take_async())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        slots.free()
        await asyncio.wait_for(second, 5)
        with pytest.raises(asyncio.CancelledError):
            await first
        slots.free()
        slots.take()  # there is one place again, and it is free

    asyncio.run(main())


@pytest.mark.parametrize("rate", ["", "min", "0/min", "5", "5/0s", "5/fortnight", 5, "-1/s"])
def test_a_rate_that_cannot_be_meant_is_refused(rate: Any) -> None:
    with pytest.raises(UsageError):
        parse_rate(rate)


@pytest.mark.parametrize("places", [0, -1, 1.5, True, "4"])
def test_a_number_of_places_that_cannot_be_meant_is_refused(places: Any) -> None:
    with pytest.raises(UsageError):
        step(concurrency=places)(abs)


def test_a_step_that_is_refused_before_its_body_gives_its_place_back() -> None:
    @step(concurrency=1, name="refused-once")
    def once(n: int) -> int:
        return n

    async def main() -> Any:
        return once(1), once(2)

    for at in (0, 1):
        assert play(main, MortalLog(), die_after=at).died
    assert play(main, MortalLog()).value == (1, 2)
