"""What a word gives inside a coroutine must be awaited, and says so when it is used in another way."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from jupyter_durable import answering, client, durable, step
from jupyter_durable.errors import Parked, Undigestable, UsageError
from tests.engine.harness import MortalLog, World

WORLD = World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory, and a new world."""
    WORLD.clear()
    return MortalLog()


@step
def pay(what: str) -> str:
    """An effect that can be counted."""
    WORLD.hit(what)
    return what


def played(log: MortalLog, program: Any) -> Any:
    """What a program gives as the run ``p``."""

    async def main() -> Any:
        async with durable.run("p", log=log, grace="0s"):
            return await program()

    return asyncio.run(main())


async def _truth(word: Any) -> None:
    if word:
        pay("without approval")


async def _compared(word: Any) -> None:
    if word == "yes":
        pay("without approval")


async def _item(word: Any) -> None:
    pay(word["sum"])


async def _argument(word: Any) -> None:
    pay(word)


@pytest.mark.parametrize("use", [_truth, _compared, _item, _argument])
def test_a_word_that_is_not_awaited_is_no_answer(log, use):
    refusal, said = (Undigestable, "no identity") if use is _argument else (UsageError, "without `await`: it is no ")

    async def program() -> None:
        await use(durable.approve("Pay?"))

    with pytest.raises(refusal, match=said):
        played(log, program)
    assert WORLD.effects == []
    assert client.runs(log)[0].status == "failed"


def test_one_that_was_never_awaited_ends_the_cell_with_its_word_and_line(log):
    async def program() -> None:
        pay("for all the others")
        durable.sleep("1h")
        durable.wait_for("go")

    line = inspect.getsourcelines(program)[1] + 2
    with pytest.raises(UsageError, match=rf"`durable.sleep` in line {line} of test_awaited.py \(`program`\), .*never"):
        played(log, program)
    assert client.runs(log)[0].status == "failed"
    assert answering.waiting(log) == []


def test_an_error_of_the_cells_own_goes_first(log):
    async def program() -> None:
        durable.sleep("1h")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        played(log, program)


async def _gathered() -> Any:
    return await asyncio.gather(*[durable.approve(f"{n}?") for n in range(2)])


async def _tasks() -> Any:
    return [await task for task in [asyncio.create_task(durable.approve(f"{n}?")) for n in range(2)]]


async def _in_time() -> Any:
    return [await asyncio.wait_for(durable.approve(f"{n}?"), 3600) for n in range(2)]


async def _within() -> Any:
    async with asyncio.timeout(3600), asyncio.TaskGroup() as group:
        tasks = [group.create_task(durable.approve(f"{n}?")) for n in range(2)]
    return [task.result() for task in tasks]


async def _one_by_one() -> Any:
    asked = [durable.approve(f"{n}?") for n in range(2)]
    return [await each for each in asked]


@pytest.mark.parametrize("program", [_gathered, _tasks, _in_time, _within, _one_by_one])
def test_it_is_awaited_in_every_way_of_asyncio(log, program):
    for _ in range(2):
        try:
            assert played(log, program) == [True, True]
            break
        except (Parked, BaseExceptionGroup):
            for wait in answering.waiting(log):
                answering.answer(log, wait.number, True)
    else:
        assert played(log, program) == [True, True]
    assert played(log, program) == [True, True]
    assert [each.scope for each in client.steps(log, client.find_run(log, "p"))] == ["", ""]


def test_a_map_is_awaited_too(log):
    async def program() -> Any:
        return durable.map(pay, ["a", "b"])

    with pytest.raises(UsageError, match=r"`durable.map` in line \d+ .* was never awaited"):
        played(log, program)
    assert WORLD.effects == []
