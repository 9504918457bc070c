"""Which branch a signal is for: it is kept until it is used, whatever the run becomes meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from jupyter_durable import answering, client, durable, step
from jupyter_durable.errors import ContinuedAsNew, Parked, RunCancelled
from jupyter_durable.event_data import Signal
from tests.engine.harness import MortalLog, World

WORLD = World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory."""
    WORLD.clear()
    return MortalLog()


@step
def note(what: str) -> str:
    """An effect that can be counted."""
    WORLD.hit(what)
    return what


@step(name="draft")
def old_draft() -> str:
    """A step before it was edited."""
    return "old"


@step(name="draft")
def new_draft() -> str:
    """The same after that."""
    return "new" + ""


def go(log: MortalLog, program: Any, **flags: Any) -> Any:
    """Run a program as the run ``p`` until it ends or parks; what ends it is returned."""
    try:
        with durable.run("p", log=log, grace="0s", **flags):
            return program()
    except (Parked, ContinuedAsNew, RunCancelled) as ended:
        return ended


def loop() -> Any:
    """An endless loop, one signal a branch."""
    state = durable.state(seen=[])
    said = durable.wait_for("word")
    note(said)
    durable.continue_as_new(seen=[*state.seen, said])


def test_signals_that_came_together_are_used_one_by_one_by_the_branches_to_come(log):
    assert isinstance(go(log, loop), Parked)
    for word in ("one", "two", "three"):
        answering.send(log, "p", "word", word)

    ended = [type(go(log, loop)) for _ in range(4)]

    assert ended == [ContinuedAsNew, ContinuedAsNew, ContinuedAsNew, Parked]
    assert WORLD.effects == ["one", "two", "three"]


def test_a_signal_that_was_sent_before_the_run_was_there_is_used_once_over_all_branches(log):
    assert isinstance(go(log, loop), Parked)
    run = client.find_run(log, "p")
    log.post(Signal(id="early", run=run, name="word", value=msgspec.Raw(b'"early"')))

    assert isinstance(go(log, loop), ContinuedAsNew)
    assert isinstance(go(log, loop), Parked)
    assert WORLD.effects == ["early"]


def test_a_signal_that_nobody_used_is_there_after_an_edit(log):
    def program(draft: Any) -> Any:
        draft()
        durable.wait_for("go")
        return durable.wait_for("payment")

    assert isinstance(go(log, lambda: program(old_draft)), Parked)
    answering.send(log, "p", "payment", 40)
    assert isinstance(go(log, lambda: program(new_draft), reuse="none"), Parked)
    assert len(client.views_of(log)[client.find_run(log, "p")]) == 2
    answering.send(log, "p", "go", True)

    assert go(log, lambda: program(new_draft)) == 40


def test_a_fork_does_not_use_what_was_sent_to_the_branch_it_was_made_from(log):
    def program() -> Any:
        note("first")
        durable.wait_for("go")
        return durable.wait_for("payment")

    assert isinstance(go(log, program), Parked)
    answering.send(log, "p", "payment", 40)
    client.fork(log, client.find_run(log, "p"), "note")
    assert isinstance(go(log, program), Parked)
    answering.send(log, "p", "go", True)

    assert isinstance(go(log, program), Parked)


def test_a_run_that_was_cancelled_between_two_branches_does_not_go_on(log):
    assert isinstance(go(log, loop), Parked)
    answering.send(log, "p", "word", "one")
    assert isinstance(go(log, loop), ContinuedAsNew)

    client.cancel(log, client.find_run(log, "p"))

    assert isinstance(go(log, loop), RunCancelled)
    client.resume(log, client.find_run(log, "p"))
    assert isinstance(go(log, loop), Parked)


def test_a_cancel_that_a_continuing_run_had_not_seen_holds_for_the_branch_after_it(log):
    async def program() -> None:
        client.cancel(log, client.find_run(log, "p"))
        durable.continue_as_new()

    async def main() -> BaseException | None:
        try:
            async with durable.run("p", log=log):
                await program()
        except (ContinuedAsNew, RunCancelled) as ended:
            return ended
        return None

    assert isinstance(asyncio.run(main()), ContinuedAsNew)
    assert isinstance(asyncio.run(main()), RunCancelled)
