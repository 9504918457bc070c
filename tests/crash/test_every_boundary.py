"""A process that is killed at any boundary between two events resumes: nothing twice, nothing lost, nothing wrong.

The kills are SIGKILL, sent by the process to itself from inside of the file layer at operation number k, for every k:
before the operation, after it, and with a part of the line written. No luck and no waiting is involved. After each,
a new process resumes and comes to the end, and another one replays. What must hold is told in `harness.Watch`.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from typing import Any, Literal

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.crash import programs
from tests.crash.harness import Reference, Watch, World, refer
from tests.crash.layers import Spec

NewWorld = Callable[[], World]
When = Literal["before", "after", "torn"]
WHEN: tuple[When, ...] = ("before", "after", "torn")


def die_and_resume(reference: Reference, world: World, layer: Spec, **fields: Any) -> bool:
    """One death, the resume, one replay; whether there was a death (threads may write fewer events this time)."""
    watch = Watch(reference, world)
    first = world.run(reference.program, layer, **fields)
    died = first.signal == signal.SIGKILL
    if died:
        watch.died()
        watch.finished(world.finish(reference.program, **fields))
    else:
        assert first.error == "", first.trace
    watch.replays(**fields)
    world.remove()
    return died


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("program", programs.SWEPT)
def test_a_kill_at_any_event_is_survived(new_world: NewWorld, program: str, when: When) -> None:
    """Completed steps executed twice: 0. Wrong values: 0. A step in doubt is executed once more, and no other.

    The last event is the end of the execution, so a kill at each of them covers every prefix of the history.
    """
    reference = refer(new_world(), program)

    died = [
        die_and_resume(reference, new_world(), Spec("kill", at=k, when=when, events=True))
        for k in range(reference.events)
    ]

    assert sum(died) >= len(died) - 2, "the kills must happen, else nothing is tested"
    assert all(died[:4])


@pytest.mark.parametrize("program", ["sync", "gathered", "large"])
def test_a_kill_before_any_file_operation_is_survived(new_world: NewWorld, program: str) -> None:
    """Not only events: making the log, the lock files, the lease, blobs, flushes of files and directories."""
    reference = refer(new_world(), program, local=True)

    died = [die_and_resume(reference, new_world(), Spec("kill", at=k), local=True) for k in range(len(reference.ops))]

    assert sum(died) >= len(died) - 2


def test_a_run_that_does_not_flush_survives_the_death_of_its_process_too(new_world: NewWorld) -> None:
    """``durability="process"``: the kernel has the bytes, whether or not the disk does."""
    reference = refer(new_world(), "nested", durability="process")

    for k in range(reference.events):
        layer = Spec("kill", at=k, when="after", events=True)
        assert die_and_resume(reference, new_world(), layer, durability="process")

    assert not any(op == "sync journal" for op in reference.ops[:-2])


@pytest.mark.parametrize("program", ["nested", "failing", "gathered"])
def test_a_fold_after_a_death_changes_nothing(new_world: NewWorld, program: str) -> None:
    """Somebody folds the killed run's journal; the run resumes, folds at its end, replays from the database, and
    each event lies in the database once.
    """
    reference = refer(new_world(), program)

    for k in range(2, reference.events, 6):
        world = new_world()
        watch = Watch(reference, world)
        assert world.run(program, Spec("kill", at=k, when="after", events=True)).signal == signal.SIGKILL
        watch.died()
        assert world.finish("").folded == k + 1
        watch.finished(world.finish(program, fold=True))
        watch.replays(fold=True)
        assert set(world.rows().values()) == {1}
        assert len(world.rows()) == world.history().events
        world.remove()


@pytest.mark.parametrize("program", programs.SWEPT)
def test_a_resume_that_is_killed_too_is_resumed(new_world: NewWorld, program: str) -> None:
    """Killed at k, killed again at j of the resume, then left alone: pairs chosen by a seeded generator."""
    reference = refer(new_world(), program)
    choose = random.Random(f"twice {program}")
    deaths = 0

    for _ in range(10):
        world = new_world()
        watch = Watch(reference, world)
        for _ in range(2):
            at, when = choose.randrange(reference.events - 1), choose.choice(WHEN)
            report = world.run(program, Spec("kill", at=at, when=when, events=True))
            watch.resumed()
            if report.signal:
                deaths += 1
                watch.died()
        watch.finished(world.finish(program))
        watch.replays()
        world.remove()

    assert deaths > 10


def test_many_deaths_in_a_row_are_survived(new_world: NewWorld) -> None:
    """Every execution is killed right after it has recorded one more end; the run comes to its end all the same."""
    reference = refer(new_world(), "nested")
    world = new_world()
    watch = Watch(reference, world)
    lives = 0

    while True:
        report = world.run("nested", Spec("kill", at=4, when="after", events=True))
        lives += 1
        if not report.signal:
            break
        watch.died()
        assert lives < 30

    watch.finished(report)
    watch.replays()
    assert lives > 3


def test_a_step_that_may_run_at_most_once_is_never_run_twice(new_world: NewWorld) -> None:
    """In doubt, such a step stops the run before any effect; else the run comes to its end."""
    reference = refer(new_world(), "once")
    stops = 0

    for when in WHEN:
        for k in range(reference.events):
            world = new_world()
            watch = Watch(reference, world)
            assert world.run("once", Spec("kill", at=k, when=when, events=True)).signal == signal.SIGKILL
            history = watch.died()
            in_doubt = any(step.name == "once" and step.state == "open" for step in history.steps.values())
            before = world.counts()
            report = world.run("once")
            if in_doubt:
                stops += 1
                assert report.error == "InDoubtError", report
                assert "`once`" in report.message
                assert world.counts() == before
            else:
                watch.finished(report)
            assert all(world.counts()[tag] <= 1 for tag in ("once 1", "once 2"))
            world.remove()

    assert stops == 2 * 3


def test_requests_are_billed_once(new_world: NewWorld, endpoint: Endpoint) -> None:
    """The endpoint's bill after a kill, a resume and a replay: one request a step, and one more for a step in doubt
    whose request had been sent.
    """
    reference = refer(new_world(), "agent")
    usual = sum(reference.counts.values())

    for when in WHEN:
        for k in range(reference.events):
            world = new_world()
            watch = Watch(reference, world)
            billed = endpoint.bill.summary()["requests"]
            world.run("agent", Spec("kill", at=k, when=when, events=True))
            watch.died()
            sent = sum(world.counts().values())
            assert endpoint.bill.summary()["requests"] - billed == sent
            wasted = sum(watch.doubts[tag] for tag in world.counts())
            watch.finished(world.finish("agent"))
            watch.replays()
            assert endpoint.bill.summary()["requests"] - billed == usual + wasted
            assert wasted <= 1
            world.remove()


def test_a_forked_life_is_like_one_in_a_python_of_its_own(new_world: NewWorld) -> None:
    """The same kills in processes that share nothing with a server: the same journals, event by event, are left."""
    reference = refer(new_world(), "nested")

    for k in (0, 7, 13):
        layer = Spec("kill", at=k, when="torn", events=True)
        forked, own = new_world(), new_world()
        assert forked.run("nested", layer).signal == signal.SIGKILL
        watch = Watch(reference, own)
        assert own.server.once(own.job("nested", layer)).signal == signal.SIGKILL
        assert shape(own) == shape(forked)
        watch.died()
        watch.finished(own.server.once(own.job("nested")))
        watch.replays()


def shape(world: World) -> list[tuple[str, str, int]]:
    """Kind, name and step of each event."""
    from tests.crash.harness import whole_lines

    [journal] = (world.log / "journal").glob("*.jsonl")
    return [(line["type"], line.get("name", ""), line.get("step", -1)) for line in whole_lines(journal)]
