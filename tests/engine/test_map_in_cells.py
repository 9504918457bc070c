"""``durable.map`` beside what waits, and after edits of the cell."""

from __future__ import annotations

import pytest

from jupyter_durable import answering, client
from jupyter_durable.errors import DecisionNeeded, Parked
from tests.engine.cells import Kernel
from tests.engine.harness import MortalLog, Result, World

SETUP = """
@step
def load(n):
    world.hit(f"load {n}")
    return n * 10

@step
async def fetch(n):
    await asyncio.sleep(0.01 * (n % 3))
    world.hit(f"fetch {n}")
    return n * 10

@step
def send(total):
    world.hit("send")
    return f"sent {total}"

@step
def close():
    world.hit("close")
    return "closed"
"""


@pytest.fixture
def world() -> World:
    """What lies outside of the program."""
    return World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


@pytest.fixture
def kernel(log: MortalLog, world: World) -> Kernel:
    """A process with the step functions defined."""
    return Kernel(log, world, SETUP)


def parked(result: Result) -> Parked:
    assert isinstance(result.error, Parked), result.error
    return result.error


# Beside what waits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fn", ["load", "fetch"])
def test_a_run_parks_when_a_map_beside_the_question_is_done(
    fn: str, kernel: Kernel, log: MortalLog, world: World
) -> None:
    cell = f'await asyncio.gather(durable.map({fn}, range(4), concurrency=2), durable.approve("Go?"))'

    parked(kernel.durable(cell, grace="0s"))
    assert sorted(world.effects) == [f"{fn} {n}" for n in range(4)]
    answering.answer(log, "", True)

    again = Kernel(log, world, SETUP).durable(cell, grace="0s")
    assert again.value == [[0, 10, 20, 30], True]
    assert len(world.effects) == 4


def test_a_map_after_an_answer_and_a_timer_before_a_map(kernel: Kernel, log: MortalLog, world: World) -> None:
    cell = """
    first = await durable.map(fetch, range(3))
    durable.heartbeat_details()
    if await durable.approve("Go on?", show=str(first)):
        await durable.sleep("20ms")
        first += await durable.map(load, first)
    first
    """
    parked(kernel.durable(cell, grace="0s"))
    answering.answer(log, "", True)
    second = Kernel(log, world, SETUP).durable(cell, grace="0s")
    third = Kernel(log, world, SETUP).durable(cell, grace="0s")

    assert second.value == third.value == [0, 10, 20, 0, 100, 200]
    assert third.live == 0


def test_a_wait_in_every_task_and_a_map_in_every_task(kernel: Kernel, log: MortalLog, world: World) -> None:
    cell = """
    async def handle(name):
        found = await durable.map(fetch, [f"{name}{n}".__len__() + n for n in range(3)], concurrency=2)
        return found if await durable.wait_for(f"go-{name}") else None
    await asyncio.gather(*[handle(name) for name in "ab"])
    """
    parked(kernel.durable(cell, grace="0s"))
    run = client.find_run(log, "p")
    answering.send(log, run, "go-a", True)
    parked(kernel.durable(cell, grace="0s"))
    answering.send(log, run, "go-b", True)

    assert kernel.durable(cell, grace="0s").value == [[20, 30, 40], [20, 30, 40]]
    assert len(world.effects) == 6


def test_inside_of_a_map_nothing_waits_for_a_person(kernel: Kernel) -> None:
    result = kernel.durable("def ask(n):\n    return durable.approve(str(n))\nawait durable.map(ask, [1])")

    assert type(result.error).__name__ == "UsageError"
    assert "inside the body of a step" in str(result.error)


# After edits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "effects"),
    [("[1, 2, 3, 4]", ["load 4"]), ("[0, 1, 2, 3]", ["load 0"]), ("[3, 2, 1]", []), ("[2, 3]", [])],
)
def test_after_an_edit_of_the_items_the_known_ones_are_kept(
    items: str, effects: list[str], kernel: Kernel, world: World
) -> None:
    cell = "await durable.map(load, {items}, concurrency=1)"
    kernel.durable(cell.format(items="[1, 2, 3]"))
    world.clear()

    edited = kernel.durable(cell.format(items=items))

    assert edited.error is None, edited.error
    assert edited.value == [n * 10 for n in eval(items)]
    assert world.effects == effects


@pytest.mark.parametrize("items", ["[1, 2, 3, 4]", "[1, 2]"])
def test_a_step_after_a_map_with_other_items_is_asked_about(items: str, kernel: Kernel, world: World) -> None:
    cell = "await durable.map(load, {items}, concurrency=1)\nclose()"
    kernel.durable(cell.format(items="[1, 2, 3]"))
    world.clear()

    edited = kernel.durable(cell.format(items=items))

    assert isinstance(edited.error, DecisionNeeded), edited.error
    assert "close" not in world.effects


def test_what_a_map_had_not_reached_when_it_was_killed_is_no_difference(
    kernel: Kernel, log: MortalLog, world: World
) -> None:
    kernel.durable("await durable.map(load, range(6), concurrency=1)\nclose()", die_after=4)
    assert world.effects == ["load 0", "load 1"]
    world.clear()

    edited = kernel.durable("await durable.map(load, range(6), concurrency=1)\nclose()\n1 + 1")

    assert edited.error is None, edited.error
    assert world.effects == ["load 2", "load 3", "load 4", "load 5", "close"]


def test_an_edited_body_asks_once_about_all_items(kernel: Kernel, world: World) -> None:
    cell = "await durable.map(load, range(4), concurrency=1)"
    kernel.durable(cell)
    kernel.plain(SETUP.replace("n * 10", "n * 100"))
    world.clear()

    asked = kernel.durable(cell)

    assert isinstance(asked.error, DecisionNeeded), asked.error
    assert world.effects == []
    assert kernel.durable(cell, reuse="none").value == [0, 100, 200, 300]
    assert len(world.effects) == 4
