"""Cancelling a run from outside: when it takes effect, what is in doubt, how it goes on or does not."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from jupyter_durable import answering, client, durable, step
from jupyter_durable.engine import cancellation
from jupyter_durable.errors import ChildCancelled, Parked, RunCancelled, UsageError
from jupyter_durable.history import History
from tests.engine.harness import MortalLog, World, play

WORLD = World()


@pytest.fixture(autouse=True)
def world() -> World:
    """A new world for every test."""
    WORLD.clear()
    return WORLD


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


@step
async def work(what: str) -> str:
    """An effect that can be counted."""
    WORLD.hit(what)
    return f"did {what}"


BEGAN: list[asyncio.Event] = []


@step
async def hang() -> None:
    """A body that never ends by itself."""
    WORLD.hit("hang")
    BEGAN[0].set()
    await asyncio.get_running_loop().create_future()


def run_of(log: MortalLog) -> str:
    """Id of the one run."""
    return client.find_run(log, "p")


def status(log: MortalLog) -> str:
    """How it is listed."""
    return client.runs(log)[0].status


def parked(log: MortalLog, program: Any) -> None:
    """Play a program until it parks."""

    async def main() -> None:
        async with durable.run("p", log=log, grace="0s"):
            await program()

    with pytest.raises(Parked):
        asyncio.run(main())


async def ask_first() -> Any:
    """A step, a wait, a step."""
    await work("one")
    said = await durable.wait_for("word")
    return [said, await work("two")]


def test_a_parked_run_is_cancelled_at_once_and_does_not_go_on_when_its_cell_runs_again(log):
    parked(log, ask_first)

    done = client.cancel(log, run_of(log), reason="no longer needed", by="ada@desk")
    answering.send(log, "p", "word", "go")

    assert not done.alive
    assert status(log) == "cancelled"
    assert answering.waiting(log) == []
    with pytest.raises(RunCancelled) as caught:
        asyncio.run(_run(log, ask_first))
    assert caught.value.facts["by"] == "ada@desk"
    assert "no longer needed" in str(caught.value)
    assert "%durable resume p" in str(caught.value)
    assert WORLD.effects == ["one"]


async def _run(log: MortalLog, program: Any, **flags: Any) -> Any:
    async with durable.run("p", log=log, **flags):
        return await program()


def test_a_resumed_run_goes_on_from_where_it_was_cancelled(log):
    parked(log, ask_first)
    client.cancel(log, run_of(log))
    client.resume(log, run_of(log), by="bob@desk")
    assert status(log) == "parked"
    answering.send(log, "p", "word", "go")

    assert asyncio.run(_run(log, ask_first)) == ["go", "did two"]
    assert WORLD.effects == ["one", "two"]
    assert client.views_of(log)[run_of(log)][0].executions[-2].header.resumed == "bob@desk"


def test_a_fresh_branch_is_not_cancelled(log):
    parked(log, ask_first)
    client.cancel(log, run_of(log))
    answering.send(log, "p", "other", 1)

    async def short() -> Any:
        return await work("one")

    assert asyncio.run(_run(log, short, fresh=True)) == "did one"


def test_a_cancelled_run_can_be_looked_at_with_replay_only(log):
    async def one() -> Any:
        return await work("one")

    async def two() -> Any:
        await one()
        raise ValueError

    play(two, log)
    client.cancel(log, run_of(log))

    assert asyncio.run(_run(log, one, replay_only=True)) == "did one"
    assert status(log) == "cancelled"


def test_a_run_that_awaits_a_step_ends_and_the_step_is_in_doubt(log):
    async def main() -> None:
        began = asyncio.Event()
        BEGAN[:] = [began]

        async def outside() -> None:
            await began.wait()
            client.cancel(log, run_of(log))

        other = asyncio.get_running_loop().create_task(outside())
        try:
            async with durable.run("p", log=log):
                await hang()
        finally:
            await other

    with pytest.raises(RunCancelled):
        asyncio.run(main())

    assert status(log) == "cancelled"
    steps = client.steps(log, run_of(log))
    assert [s.status for s in steps] == ["in_doubt"]


def test_the_task_of_a_cancelled_run_can_go_on_with_other_things(log):
    async def main() -> str:
        try:
            async with durable.run("p", log=log):
                client.cancel(log, run_of(log))
                await asyncio.sleep(60)
        except RunCancelled:
            await asyncio.sleep(0.01)
            task = asyncio.current_task()
            assert task is not None
            return f"went on, {task.cancelling()} cancels pending"
        return "not cancelled"

    assert asyncio.run(main()) == "went on, 0 cancels pending"


def test_a_run_that_saw_the_cancel_at_a_step_leaves_its_task_alone_afterwards(log, monkeypatch):
    monkeypatch.setattr(cancellation, "EVERY", 0.0)

    async def main() -> str:
        try:
            async with durable.run("p", log=log):
                await work("one")
                client.cancel(log, run_of(log))
                await work("two")
        except RunCancelled:
            for _ in range(5):
                await asyncio.sleep(0)
            return "went on"
        return "not cancelled"

    assert asyncio.run(main()) == "went on"
    assert WORLD.effects == ["one"]


def test_a_parent_goes_on_after_a_child_that_saw_the_cancel_at_a_step(log, monkeypatch):
    monkeypatch.setattr(cancellation, "EVERY", 0.0)

    async def program() -> str:
        try:
            async with durable.run("ada"):
                await work("one")
                client.cancel(log, run_of(log), child="ada")
                await work("two")
        except ChildCancelled:
            await asyncio.sleep(0.001)
            return await work("instead")
        return "not cancelled"

    assert asyncio.run(_run(log, program)) == "did instead"
    assert WORLD.effects == ["one", "instead"]


def test_code_that_swallows_every_exception_executes_nothing_after_the_cancel(log):
    async def main() -> None:
        async with durable.run("p", log=log):
            client.cancel(log, run_of(log))
            for _ in range(3):
                try:
                    await asyncio.sleep(1)
                except BaseException:
                    WORLD.hit("swallowed")
                try:
                    await work("after")
                except Exception:
                    WORLD.hit("eaten")
                except BaseException:
                    WORLD.hit("swallowed")

    with pytest.raises(RunCancelled):
        asyncio.run(main())
    assert "after" not in WORLD.effects
    assert "eaten" not in WORLD.effects
    assert status(log) == "cancelled"


def test_a_synchronous_run_ends_at_its_next_step(log, monkeypatch):
    monkeypatch.setattr(cancellation, "EVERY", 0.0)

    @step
    def slow(n: int) -> int:
        WORLD.hit("slow")
        if n == 1:
            client.cancel(log, run_of(log))
        return n

    with pytest.raises(RunCancelled), durable.run("p", log=log):
        for n in range(5):
            slow(n)

    assert WORLD.effects == ["slow", "slow"]
    assert [s.status for s in client.steps(log, run_of(log))] == ["completed", "completed"]


def test_a_synchronous_wait_ends_when_its_run_is_cancelled(log):
    waits = threading.Event()

    def outside() -> None:
        waits.wait()
        client.cancel(log, run_of(log))

    other = threading.Thread(target=outside)
    other.start()
    with pytest.raises(RunCancelled), durable.run("p", log=log, grace="1h"):
        execution = _execution()
        execution.on_change = waits.set
        durable.wait_for("word")
    other.join()

    assert status(log) == "cancelled"


def _execution() -> Any:
    from jupyter_durable.engine.context import current

    frame = current()
    assert frame is not None
    return frame.execution


def test_a_run_can_cancel_itself(log):
    async def giving_up() -> None:
        await work("one")
        durable.cancel(reason="nothing to do")

    with pytest.raises(RunCancelled):
        asyncio.run(_run(log, giving_up))

    assert status(log) == "cancelled"
    cancelled = client.find_branch(log, run_of(log)).cancelled
    assert cancelled is not None
    assert (cancelled.reason, cancelled.via) == ("nothing to do", "cell")


def test_a_cancel_that_comes_after_the_death_of_the_kernel_holds(log):
    assert play(ask_first, log, die_after=1).died
    client.cancel(log, run_of(log))

    with pytest.raises(RunCancelled):
        asyncio.run(_run(log, ask_first))


def test_a_cancel_that_a_dying_kernel_did_not_take_any_more_holds(log):
    """The signal lies in the inbox: the run was alive when it was sent, and died before it looked."""

    async def dying() -> None:
        await work("one")
        client.cancel(log, run_of(log))
        await work("two")

    assert play(dying, log, die_after=2).died
    WORLD.clear()
    with pytest.raises(RunCancelled):
        asyncio.run(_run(log, dying))

    assert WORLD.effects == []
    assert status(log) == "cancelled"


def test_a_cancel_that_comes_too_late_does_not_touch_a_completed_run(log):
    async def quick() -> Any:
        found = await work("one")
        client.cancel(log, run_of(log))
        return found

    assert asyncio.run(_run(log, quick)) == "did one"
    assert status(log) == "completed"

    async def again() -> Any:
        return await work("one")

    assert asyncio.run(_run(log, again)) == "did one"
    assert WORLD.effects == ["one"]
    with pytest.raises(UsageError, match="has completed"):
        client.cancel(log, run_of(log))


def test_a_death_at_any_event_of_a_cancel_leaves_a_run_that_is_cancelled_or_can_be(log):
    async def program() -> None:
        await work("one")
        durable.cancel()

    whole = play(program, MortalLog()).events
    for die_after in range(whole):
        log = MortalLog()
        play(program, log, die_after)
        assert status(log) in ("interrupted", "cancelled")
        if status(log) == "interrupted":
            client.cancel(log, run_of(log))
        assert status(log) == "cancelled"


def test_cancelling_twice_and_resuming_what_runs_are_refused_with_a_sentence(log):
    parked(log, ask_first)
    with pytest.raises(UsageError, match="is not cancelled"):
        client.resume(log, run_of(log))
    client.cancel(log, run_of(log), by="ada@desk")
    with pytest.raises(UsageError, match="cancelled already: it was cancelled by ada@desk"):
        client.cancel(log, run_of(log))


def test_a_signal_cannot_have_a_name_of_the_product(log):
    parked(log, ask_first)

    with pytest.raises(UsageError, match="no name for a signal"):
        answering.send(log, "p", "durable.cancel")


def test_a_cancelled_run_keeps_its_history(log):
    parked(log, ask_first)
    branch = client.find_branch(log, run_of(log)).branch
    before = [r.event for r in log.history(branch)]
    client.cancel(log, run_of(log))

    assert [r.event for r in log.history(branch)][: len(before)] == before
    assert History(log.history(branch)).waits[0].waits
