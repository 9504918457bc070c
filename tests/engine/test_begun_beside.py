"""Steps that are called, begun and ended in different orders, and a death in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jupyter_durable import step
from tests.engine.harness import MortalLog, World, play

world = World()


@pytest.fixture(autouse=True)
def new_world() -> None:
    """Each test starts with a world in which nothing has happened."""
    world.clear()


@step
async def price(symbol: str) -> str:
    world.hit(f"price {symbol}")
    return f"price of {symbol}"


@step
async def fail(symbol: str) -> str:
    world.hit(f"fail {symbol}")
    raise ValueError(symbol)


def test_a_step_that_was_called_first_and_not_begun_is_no_nondeterminism() -> None:
    """Steps are called in one order and begun in another; the log of a dead run may hold only the second one."""

    async def program() -> Any:
        first, second = price("A"), price("B")
        try:
            return [await second, await first]
        finally:
            first.close()  # whoever dies in between has not awaited it

    for at in range(7):
        world.clear()
        log = MortalLog()
        play(program, log, die_after=at)

        assert play(program, log).value == ["price of B", "price of A"]
        assert len(world.effects) <= 3


def test_an_order_that_asyncio_chooses_is_no_nondeterminism() -> None:
    """``as_completed`` makes its tasks from a set, in another order in each process."""
    names = list("ABCDEFG")

    async def program() -> Any:
        return sorted([await done for done in asyncio.as_completed([price(name) for name in names])])

    for at in range(16):
        log = MortalLog()
        play(program, log, die_after=at)

        assert play(program, log).value == [f"price of {name}" for name in names]


def test_another_step_than_the_recorded_one_still_stops_before_any_effect() -> None:
    names = ["A"]

    async def program() -> Any:
        return [await price(names[0]), await price("last")]

    log = MortalLog()
    play(program, log, die_after=2)
    names[0] = "B"
    world.clear()

    stopped = play(program, log)

    assert type(stopped.error).__name__ == "NondeterminismError"
    assert world.effects == []


def test_what_ended_beside_a_failure_needs_nobody_to_decide() -> None:
    """A failure that nobody had caught when the process died is tried again; its sibling began before it failed."""

    async def program() -> Any:
        one, two = await asyncio.gather(fail("A"), price("B"), return_exceptions=True)
        return [str(one), two, await price("C")]

    for at in range(7):
        log = MortalLog()
        play(program, log, die_after=at)

        again = play(program, log)
        assert again.error is None
        assert again.value == ["A", "price of B", "price of C"]
