"""What random programs have found, each as the smallest program that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_durable import answering, client, clock
from tests.engine.cells import Kernel
from tests.engine.harness import MortalLog, World
from tests.programs.language import Call, Fn, Many, Map, Program
from tests.programs.lives import MortalLocal, MortalMemory
from tests.programs.outside import StoryClock
from tests.programs.story import Story, Telling

SETUP = """
from tests.programs.outside import Boom
@step
def inner(fails):
    if world.hit("inner") <= fails:
        raise Boom("inner")
    return "in"
@step
def outer(fails):
    world.hit("outer")
    return inner(fails) + " out"
@step
async def late(name, turns):
    world.hit(name)
    for _ in range(turns):
        await asyncio.sleep(0)
    return name
"""


@pytest.fixture
def log() -> MortalLog:
    """A log in memory."""
    return MortalLog()


def test_a_failure_that_a_step_lets_through_is_tried_again_in_both(log: MortalLog) -> None:
    """The outer step was replayed as a failure that somebody had caught, for ever."""
    world = World()
    errors = [Kernel(log, world, SETUP).durable("outer(2)").error for _ in range(2)]

    assert all(errors)
    assert Kernel(log, world, SETUP).durable("outer(2)").value == "in out"
    assert world.effects == ["outer", "inner"] * 3


def test_a_failure_that_a_retried_step_lets_through_is_tried_again_two_steps_down(log: MortalLog) -> None:
    world = World()
    kernel = Kernel(log, world, SETUP)
    kernel.plain("@step(retries=3, backoff=0)\ndef outermost():\n    return outer(3)")

    assert kernel.durable("outermost()").value == "in out"
    assert world.effects.count("inner") == 4


def test_all_items_of_a_map_that_failed_together_are_tried_again() -> None:
    """Two lives served each other's failures in turn, and neither was tried."""
    program = Program((Fn(fails=2),), (Map(0, (0, 1, 1), 3),))

    Telling(Story(program), MortalMemory()).tell()


def test_a_forked_branch_replays_in_the_order_of_its_ends(log: MortalLog) -> None:
    """It replayed in whatever order its tasks happened to be made."""
    cell = """
    parts = [late(name, turns) for name, turns in (("a", 30), ("b", 20), ("c", 10), ("d", 1))]
    [await each for each in asyncio.as_completed(parts)]
    """
    world = World()
    Kernel(log, world, SETUP).durable(cell)
    client.fork(log, client.find_run(log, "p"), "late")
    first = Kernel(log, world, SETUP).durable(cell)
    again = [Kernel(log, world, SETUP).durable(cell) for _ in range(5)]

    assert len(client.views_of(log)[client.find_run(log, "p")]) == 2
    assert sorted(first.value) == list("abcd")
    assert [each.live for each in again] == [0] * 5
    assert [each.value for each in again] == [again[0].value] * 5


def test_a_replay_does_not_wait_for_what_lies_inside_a_caught_failure(log: MortalLog) -> None:
    """It waited half a second for each, and then gave up the order."""
    program = Program(
        (Fn(awaits=True), Fn(awaits=True, fails=1, inside=(Call(0, 1),))),
        (Many("gather", ((Call(1, 0, caught=True),), (Call(0, 2),))),),
        awaits=True,
    )
    world = World()
    kernel = Kernel(log, world)
    kernel.plain("from tests.programs.outside import Boom, World\nworld = World()\n" + program.setup)
    first = kernel.durable(program.source)

    again = kernel.durable(program.source)

    assert again.value == first.value
    assert again.live == 0
    assert again.execution is not None
    assert not again.execution.order.turnstile.relaxed


def test_a_step_that_is_retried_on_a_fork_takes_what_it_has_taken_over_already(log: MortalLog) -> None:
    """Its second attempt was called nondeterminism."""
    kernel = Kernel(log, World(), SETUP)
    kernel.plain("""
    @step(retries=1, backoff=0)
    def pair():
        out = [inner(0), inner(0)]
        if world.hit("pair") == 2:
            raise Boom("pair")
        return out
    """)
    kernel.durable("pair()")
    client.fork(log, client.find_run(log, "p"), "inner#1")

    forked = kernel.durable("pair()")

    assert forked.value == ["in", "in"]
    assert kernel.namespace["world"].effects.count("inner") == 3


@pytest.mark.filterwarnings("ignore:(?s)Exception in thread:pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_outlives_its_cell_and_cannot_write_lets_the_branch_go(log: MortalLog) -> None:
    """The next execution in the process waited for it for ever."""
    kernel = Kernel(log, World(), SETUP)
    kernel.plain("""
    import threading
    begun, go = threading.Event(), threading.Event()
    @step
    def slow(i):
        begun.set()
        go.wait()
        return i
    async def fails():
        while not begun.is_set():
            await asyncio.sleep(0.01)
        raise ValueError
    """)
    first = kernel.durable("await asyncio.gather(durable.map(slow, [1]), fails())")  # and its writer is closed then
    assert first.execution is not None
    assert first.execution.draining

    kernel.namespace["go"].set()

    assert first.execution.wait_closed(30)
    assert kernel.durable("slow(1)").value == 1


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_a_clock_that_was_put_back_hides_no_execution_and_no_branch(tmp_path: Path, kind: str) -> None:
    """Nothing could continue the branch until the clock had caught up; signals went to the branch that was forked."""
    log = MortalMemory() if kind == "memory" else MortalLocal(tmp_path / ".durable")
    with clock.use(StoryClock()) as now:
        assert isinstance(now, StoryClock)
        kernel = Kernel(log, World(), SETUP)  # type: ignore[arg-type]
        cell = "inner(0)\ndurable.wait_for('paid')"
        for _ in range(3):
            assert "Parked" in repr(kernel.durable(cell, grace="0s").error)
            now.at -= 3600
        run = client.find_run(log, "p")
        forked = client.fork(log, run, "inner")
        now.at -= 3600
        kernel.durable(cell, grace="0s")

        assert client.find_branch(log, run).branch == forked.branch
        assert answering.send(log, "p", "paid", 3)
        assert kernel.durable(cell, grace="0s").value == 3
        assert client.runs(log)[0].branch == forked.name
