"""The journal of a killed run is damaged: the resume stops before any effect. A torn tail is no damage."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_durable.log.local import LocalLog
from tests.crash.harness import Reference, Watch, World, refer, whole_lines
from tests.crash.layers import Spec
from tests.crash.server import Report

NewWorld = Callable[[], World]


@pytest.fixture
def reference(new_world: NewWorld) -> Reference:
    """What the program comes to."""
    return refer(new_world(), "nested")


@pytest.fixture
def watch(new_world: NewWorld, reference: Reference) -> Watch:
    """A run that was killed twice: two journals, the second of which continues the first."""
    watch = Watch(reference, new_world())
    for at, when in ((9, "torn"), (6, "after")):
        layer = Spec("kill", at=at, when=when, events=True)  # type: ignore[arg-type]
        assert watch.world.run("nested", layer).signal
        watch.died()
    return watch


@pytest.fixture
def killed(watch: Watch) -> World:
    """The world of that run."""
    return watch.world


def journals(world: World) -> list[Path]:
    """The journals of a world, oldest first."""
    return sorted((world.log / "journal").glob("*.jsonl"), key=lambda path: whole_lines(path)[0]["seq"])


def refused(world: World, before: int) -> Report:
    """A resume that must stop, before any effect and without a change to the journals."""
    kept = bytes_of(world)

    report = world.run("nested")

    assert len(world.effects()) == before
    assert bytes_of(world) == kept
    return report


def bytes_of(world: World) -> dict[str, bytes]:
    """The journals as they are."""
    return {path.name: path.read_bytes() for path in (world.log / "journal").iterdir()}


def test_a_flipped_bit_stops_the_resume_before_any_effect(killed: World, new_world: NewWorld) -> None:
    """In any line but the last one of the run; in either journal. The message names file and line."""
    choose = random.Random("flips")
    before = len(killed.effects())

    for number in range(24):
        world = killed.copy(new_world().path / "copy")
        path = journals(world)[number % 2]
        content = bytearray(path.read_bytes())
        end = content.rstrip(b"\n").rfind(b"\n") if number % 2 else content.rfind(b"\n")
        place = choose.randrange(end)
        content[place] ^= 1 << choose.randrange(7)
        path.write_bytes(content)

        report = refused(world, before)

        assert report.error in {"LogDamaged", "LogUntrusted"}, (number, place, report)
        assert path.name in report.message
        assert "line" in report.message
        world.remove()


def test_a_journal_that_was_cut_where_another_continues_it_stops_the_resume(killed: World, new_world: NewWorld) -> None:
    """Cut at the end of any line, or inside of it."""
    before = len(killed.effects())
    whole = len(whole_lines(journals(killed)[0]))

    for keep in range(whole):
        for inside in (0, 30):
            world = killed.copy(new_world().path / "copy")
            path = journals(world)[0]
            lines = path.read_bytes().split(b"\n")
            path.write_bytes(b"".join(line + b"\n" for line in lines[:keep]) + lines[keep][:inside])

            report = refused(world, before)

            assert report.error == "LogDamaged", (keep, inside, report)
            assert path.name in report.message
            world.remove()


def test_a_deleted_journal_that_another_continues_stops_the_resume(killed: World) -> None:
    before = len(killed.effects())
    path = journals(killed)[0]
    path.unlink()

    report = refused(killed, before)

    assert report.error == "LogDamaged"
    assert path.name in report.message
    assert "continues it" in report.message
    assert any(path.name in sentence for sentence in LocalLog(killed.log).damage())


def test_a_journal_that_is_put_back_resumes(killed: World, watch: Watch) -> None:
    """Nothing was made worse by the attempt."""
    path = journals(killed)[0]
    content = path.read_bytes()
    path.unlink()
    assert killed.run("nested").error == "LogDamaged"

    path.write_bytes(content)

    watch.finished(killed.finish("nested"))
    watch.replays()


def test_a_torn_tail_of_any_length_resumes(
    killed: World, watch: Watch, new_world: NewWorld, reference: Reference
) -> None:
    """The last line cut anywhere is a line that was never written."""
    last = journals(killed)[1].read_bytes()
    start = last[:-1].rfind(b"\n") + 1

    for cut in range(start, len(last), max(1, (len(last) - start) // 12)):
        world = killed.copy(new_world().path / "copy")
        journals(world)[1].write_bytes(last[:cut])
        copied = Watch(reference, world)
        copied.doubts.update(watch.doubts)
        copied.died()
        copied.finished(world.finish("nested"))
        copied.replays()
        assert LocalLog(world.log).damage() == []
        world.remove()
