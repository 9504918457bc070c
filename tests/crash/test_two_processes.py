"""Two processes on one run: the second is refused at once, and told by whom; the death of the first frees the run."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.crash.harness import Reference, Watch, World, refer
from tests.crash.server import Job

NewWorld = Callable[[], World]


@pytest.fixture
def reference(new_world: NewWorld) -> Reference:
    """What the program comes to when nobody holds it up."""
    return refer(new_world(), "held")


class Held:
    """A process that stands in the middle of a step."""

    def __init__(self, world: World) -> None:
        self.world = world
        os.mkfifo(world.path / "gate")
        os.mkfifo(world.path / "messages")
        reading = os.open(world.path / "messages", os.O_RDONLY | os.O_NONBLOCK)
        writing = os.open(world.path / "messages", os.O_WRONLY)  # no end of file between two messages
        os.set_blocking(reading, True)
        self.pid = world.server.ask(world.job("held", do="start")).pid
        with os.fdopen(reading, "rb") as lines:
            while b" held~" not in lines.readline():
                pass
        os.close(writing)
        (world.path / "messages").unlink()
        self._alive = True

    def kill(self) -> None:
        """Kill it, and wait until it is gone. Its pid is nobody else's before that. Idempotent."""
        if self._alive:
            self._alive = False
            os.kill(self.pid, signal.SIGKILL)
            report = self.world.server.ask(Job(do="wait", pid=self.pid, world=str(self.world.path)))
            assert report.signal == signal.SIGKILL
            (self.world.path / "gate").unlink()


@pytest.fixture
def held(new_world: NewWorld) -> Iterator[Held]:
    """A world with a process in it that will not come to an end by itself."""
    held = Held(new_world())
    yield held
    held.kill()


def test_the_second_is_refused_at_once_and_without_effect(held: Held) -> None:
    world = held.world
    before = world.counts()
    events = world.history().events

    for _ in range(3):
        report = world.run("held")

        assert report.error == "BranchBusy"
        assert report.facts["pid"] == held.pid
        assert f"process {held.pid}" in report.message
        assert "Nothing was executed here" in report.message
    assert world.counts() == before
    assert world.history().events == events


def test_a_fold_meanwhile_takes_nothing_away(held: Held) -> None:
    """The journal of a run that is going on is copied and stays."""
    world = held.world
    events = world.history().events

    assert world.finish("").folded == events
    assert world.run("held").error == "BranchBusy"
    assert world.history().events == events
    assert len(list((world.log / "journal").glob("*.jsonl"))) == 1


def test_after_the_death_of_the_first_the_second_resumes(held: Held, reference: Reference) -> None:
    world = held.world
    watch = Watch(reference, world)
    assert world.run("held").error == "BranchBusy"

    held.kill()

    watch.died()
    assert watch.doubts == {"held before": 0, "held": 1}
    watch.finished(world.finish("held"))
    watch.replays()
    assert world.counts() == {"held before": 1, "held": 2, "held after": 1}


def test_of_two_that_resume_at_once_one_is_refused(held: Held, reference: Reference) -> None:
    """Both find the run interrupted; one takes it up. Together they execute what is left once."""
    world = held.world
    watch = Watch(reference, world)
    held.kill()
    watch.died()
    others = [World(world.server, world.path / name) for name in ("one", "two")]
    for other in others:
        other.log.symlink_to(world.log)

    pids = [other.server.ask(other.job("held", do="start")).pid for other in others]
    reports = [
        other.server.ask(Job(do="wait", pid=pid, world=str(other.path)))
        for other, pid in zip(others, pids, strict=True)
    ]

    assert "" in {report.error for report in reports}
    assert {report.error for report in reports} <= {"", "BranchBusy"}
    counts = others[0].counts() + others[1].counts()
    assert counts == {"held": 1, "held after": 1}
