"""Heartbeats and progress: written sparingly, read by the next attempt, of no consequence for a replay."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from jupyter_durable import clock, durable, step
from jupyter_durable.engine.pulse import KEEPER
from jupyter_durable.errors import AttemptOver, UsageError
from jupyter_durable.events import Noticed, Progressed, StepBeat, StepFailed
from jupyter_durable.history import History
from tests.engine.harness import Died, MortalLog, World, play

world = World()


@pytest.fixture(autouse=True)
def new_world() -> None:
    """Each test starts with a world in which nothing has happened."""
    world.clear()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


class Timer(clock.SystemClock):
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.lock = threading.Lock()  # not comparable: steps that use it do not change with it

    def monotonic(self) -> float:  # type: ignore[override]
        return self.at

    def time(self) -> float:  # type: ignore[override]
        return 1_796_040_000.0 + self.at

    def sleep(self, seconds: float) -> None:  # type: ignore[override]
        self.at += seconds


def events(log: MortalLog, *kinds: type[Any]) -> list[Any]:
    """What was recorded, of some kinds."""
    branch = log.executions()[0].header.branch
    return [each.event for each in log.history(branch) if isinstance(each.event, kinds)]


def program_of(fn: Any, *args: Any) -> Any:
    async def program() -> Any:
        return fn(*args)

    return program


def test_the_next_attempt_goes_on_from_the_details(log: MortalLog) -> None:
    @step(retries=1, backoff=0)
    def crawl(pages: int) -> list[int]:
        first = (durable.heartbeat_details() or {"done": 0})["done"]
        for page in range(first, pages):
            world.hit(f"page {page}")
            durable.heartbeat({"done": page + 1})
            if page == 2 and first == 0:
                raise ConnectionError
        return [first, pages]

    assert play(program_of(crawl, 5), log).value == [3, 5]
    assert world.effects == [f"page {n}" for n in range(5)]


def test_details_survive_the_death_of_the_process(log: MortalLog) -> None:
    @step
    def crawl(pages: int) -> int:
        first = durable.heartbeat_details() or 0
        for page in range(first, pages):
            timer.at += 2
            world.hit(f"page {page}")
            durable.heartbeat(page + 1)
        return int(first)

    timer = Timer()
    with clock.use(timer):
        assert play(program_of(crawl, 5), log, die_after=4).died
        assert len(events(log, StepBeat)) == 3

        assert play(program_of(crawl, 5), log).value == 3
    assert world.effects == ["page 0", "page 1", "page 2", "page 3", "page 3", "page 4"]


def test_a_line_a_second_and_the_last_one_before_the_end(log: MortalLog) -> None:
    @step
    def busy() -> None:
        for n in range(100):
            timer.at += 0.05
            durable.heartbeat(n)
        raise ValueError

    timer = Timer()
    with clock.use(timer):
        play(program_of(busy), log)

    found = events(log, StepBeat, StepFailed)
    assert len(found) in range(5, 9)
    assert isinstance(found[-1], StepFailed)
    assert bytes(found[-2].data.details) == b"99"


def test_a_heartbeat_that_waits_is_written_although_no_other_follows(log: MortalLog) -> None:
    @step
    def still() -> int:
        durable.heartbeat("first")
        durable.heartbeat("second")
        timer.at += 1.5
        for pulse in list(KEEPER._pulses):
            pulse.look()
        return len(events(log, StepBeat))

    timer = Timer()
    with clock.use(timer):
        assert play(program_of(still), log).value == 2


def test_a_body_that_is_not_heard_of_is_told_about(log: MortalLog) -> None:
    @step(heartbeat="30s")
    def silent() -> int:
        for _ in range(3):
            timer.at += 20
            for pulse in list(KEEPER._pulses):
                pulse.look()
        return len(events(log, Noticed))

    timer = Timer()
    with clock.use(timer):
        result = play(program_of(silent), log)

    assert result.value == 1  # once, not at every look
    assert result.execution is not None
    assert "has not been heard of for 30 s" in result.execution.stats.notices[0]


def test_a_body_that_beats_is_not_told_about(log: MortalLog) -> None:
    @step(heartbeat="30s")
    def lively() -> int:
        for _ in range(5):
            timer.at += 20
            durable.heartbeat()
            for pulse in list(KEEPER._pulses):
                pulse.look()
        return len(events(log, Noticed))

    timer = Timer()
    with clock.use(timer):
        assert play(program_of(lively), log).value == 0


def test_a_late_writer_records_nothing_for_the_attempt_that_follows(log: MortalLog) -> None:
    go_on, done = threading.Event(), threading.Event()
    seen: list[BaseException] = []

    def late() -> None:
        go_on.wait(10)
        for call in (lambda: durable.heartbeat("late"), lambda: inner(1), lambda: durable.progress(1, 2, "late")):
            try:
                call()
            except AttemptOver as error:
                seen.append(error)
        done.set()

    @step
    def inner(n: int) -> int:
        world.hit("inner")
        return n

    @step(retries=1, backoff=0, timeout=0.05)
    async def outer() -> Any:
        if world.hit("outer") == 1:
            await asyncio.to_thread(late)
        go_on.set()
        await asyncio.get_running_loop().run_in_executor(None, done.wait, 10)
        return durable.heartbeat_details()

    async def program() -> Any:
        return await outer()

    assert play(program, log).value is None
    assert len(seen) == 2  # progress is for people: it is passed over in silence
    assert "inner" not in world.effects
    assert events(log, StepBeat, Progressed) == []


def test_progress_is_written_once_a_second_and_changes_nothing_on_replay(log: MortalLog) -> None:
    @step
    def load(rows: int) -> int:
        for n in range(rows):
            timer.at += 0.1
            durable.progress(n, rows, "rows")
        return rows

    async def program() -> Any:
        found = []
        for n in range(3):
            durable.progress(n, 3, "tables")
            found.append(load(25))
        return found

    timer = Timer()
    with clock.use(timer):
        first = play(program, log)
        written = events(log, Progressed)
        second = play(program, log)

    assert first.value == second.value == [25, 25, 25]
    assert second.events == 1  # the end of the execution
    assert [str(each.data) for each in written if each.step < 0] == ["1/3 tables", "2/3 tables"]
    assert len([each for each in written if each.step >= 0]) == 6


def test_short_bodies_write_no_progress(log: MortalLog) -> None:
    @step
    def quick(n: int) -> int:
        durable.progress(n, 3)
        return n

    async def program() -> Any:
        return await durable.map(quick, range(3))

    play(program, log)

    assert events(log, Progressed) == []


def test_any_death_among_signs_of_life_is_survived() -> None:
    @step
    def load(rows: int) -> int:
        for n in range(rows):
            timer.at += 1.1
            durable.heartbeat(n)
            durable.progress(n, rows)
        return rows

    timer = Timer()
    with clock.use(timer):
        whole = play(program_of(load, 3), MortalLog())
        assert whole.events == 9
        for at in range(whole.events):
            log = MortalLog()
            assert play(program_of(load, 3), log, die_after=at).died
            assert play(program_of(load, 3), log).value == 3


def test_history_tells_how_far_an_unfinished_step_was(log: MortalLog) -> None:
    @step
    def load() -> None:
        timer.at += 2
        durable.heartbeat({"rows": 7})
        durable.progress(7, None, "rows")
        raise Died

    timer = Timer()
    with clock.use(timer):
        play(program_of(load), log)

    (entry,) = History(log.history(log.executions()[0].header.branch)).entries.values()
    assert str(entry.progress) == "7 rows"
    assert entry.details is not None
    assert bytes(entry.details) == b'{"rows":7}'


@pytest.mark.parametrize("details", [object(), {1: 2}, (1, 2), "x" * 70_000, float("nan"), {"k": {1, 2}}])
def test_details_that_are_no_json_are_refused(details: Any) -> None:
    with pytest.raises(UsageError, match="JSON"):
        durable.heartbeat(details)


def test_between_the_steps_there_is_nothing_to_beat(log: MortalLog) -> None:
    async def program() -> Any:
        durable.heartbeat()

    assert isinstance(play(program, log).error, UsageError)


def test_outside_of_a_run_nothing_happens() -> None:
    durable.heartbeat({"n": 1})
    durable.progress(1, 2)

    assert durable.heartbeat_details() is None
