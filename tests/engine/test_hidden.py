"""What a body does besides returning a value: noticed on the first run, and never silently missing on a replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_durable import errors, step
from tests.engine.cells import Kernel
from tests.engine.harness import MortalLog, World


@pytest.fixture
def world() -> World:
    """What lies outside of the program."""
    return World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


def notices(result: object) -> list[str]:
    return result.execution.stats.notices  # type: ignore[attr-defined,no-any-return]


def test_a_changed_global_that_the_cell_reads_is_noticed_and_stops_the_replay(log: MortalLog, world: World) -> None:
    """Rule 8: the cell's own code reads what a step changed beside its value."""
    setup = """
    found = []
    @step
    def search(q):
        world.hit("search")
        found.append(q)
        return len(found)
    @step
    def report(items):
        world.hit(f"report {len(items)}")
        return len(items)
    """
    cell = "search('a')\nreport(found)"
    first = Kernel(log, world, setup).durable(cell, die_after=4)
    assert first.died
    assert any("`found`" in text for text in notices(first))

    second = Kernel(log, world, setup).durable(cell)

    assert isinstance(second.error, errors.ReplayError)
    assert "found" in str(second.error)
    assert "report 0" not in world.effects


def test_a_changed_global_that_another_step_reads_stops_the_replay(log: MortalLog, world: World) -> None:
    setup = """
    cache = {}
    @step
    def fill(q):
        cache[q] = world.hit("fill")
        return "filled"
    @step
    def use(q):
        world.hit(f"use {cache.get(q)}")
        return cache.get(q)
    """
    cell = "fill('a')\nuse('a')"
    first = Kernel(log, world, setup).durable(cell, die_after=4)
    assert first.died
    assert any("`cache`" in text for text in notices(first))

    second = Kernel(log, world, setup).durable(cell)

    assert isinstance(second.error, errors.HiddenEffectError)
    assert "use None" not in world.effects


def test_siblings_running_beside_each_other_are_not_suspected(log: MortalLog, world: World) -> None:
    setup = """
    box = []
    @step
    async def put(i):
        await asyncio.sleep(0)
        box.append(i)
        return i
    """
    result = Kernel(log, world, setup).durable("await asyncio.gather(put(1), put(2))\nlen(box)")

    assert result.error is None
    assert len(notices(result)) <= 1


def test_a_declared_file_is_checked_before_anything_goes_live(
    log: MortalLog, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 10: the file that a replayed step had written must still be what it was."""
    monkeypatch.chdir(tmp_path)
    setup = """
    @step(files=["report.txt"])
    def write(text):
        with open("report.txt", "w") as file:
            file.write(text)
        return "written"
    @step
    def send():
        world.hit("send")
    """
    cell = "write('hello')\nsend()"
    Kernel(log, world, setup).durable(cell, die_after=3)
    (tmp_path / "report.txt").unlink()

    stopped = Kernel(log, world, setup).durable(cell)
    assert isinstance(stopped.error, errors.HiddenEffectError)
    assert "report.txt" in str(stopped.error)
    assert world.effects.count("send") == 0

    (tmp_path / "report.txt").write_text("hello")
    assert Kernel(log, world, setup).durable(cell).error is None
    assert world.effects.count("send") == 1


def test_a_generator_cannot_be_a_step() -> None:
    with pytest.raises(errors.UsageError, match="generator"):

        @step
        def stream() -> object:
            yield 1


def test_a_replay_that_is_never_asked_for_everything_says_so(log: MortalLog, world: World) -> None:
    setup = """
    @step
    def poll(i):
        return world.hit("poll")
    """
    cell = "for i in range(1 if world.broken else 3): poll(i)"
    Kernel(log, world, setup).durable(cell)
    world.broken = True

    result = Kernel(log, world, setup).durable(cell)

    assert result.live == 0
    assert any("2 finished steps that the cell no longer asked for" in text for text in notices(result))
