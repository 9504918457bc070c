"""The file system refuses: a sentence, no effect without an intent in the log, nothing lost, and later it goes on.

Refused is one operation of a life, for every operation (EIO), or all that would take room from one operation on
(ENOSPC, of which the first takes a part of the bytes, as a full disk does), or everything that would write (EROFS).
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_durable.log.local import LocalLog
from tests.crash.harness import Reference, Server, Watch, World, refer
from tests.crash.layers import Spec
from tests.crash.server import Report

NewWorld = Callable[[], World]
SENTENCES = {
    errno.ENOSPC: "the disk is full. Free some space, then run the cell again.",
    errno.EIO: "the disk reports an error (EIO). Check the disk before you go on.",
    errno.EROFS: "the file system is read-only. Mount it for writing",
}


def is_said(report: Report, number: int) -> bool:
    """Whether a refusal is told as a sentence with a way out: by the error itself, or by the one that a sealed run
    raises at the next step of a program that went on.
    """
    assert report.error in {"LogUnusable", "RunSealed"}, report.trace
    assert "Cannot " in report.message
    return SENTENCES[number] in report.message


def goes_on(reference: Reference, world: World, watch: Watch) -> None:
    """After a refusal: the log is readable and nobody holds it; with the disk in order, the run comes to its end."""
    watch.died()
    if (world.log / "format.json").exists():
        log = LocalLog(world.log)
        assert log.damage() == []
        for record in log.executions():
            assert not record.running
            assert len(list(log.history(record.header.branch))) == world.history().events
    watch.finished(world.finish(reference.program))
    watch.replays()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.parametrize("program", ["sync", "nested", "failing", "gathered", "threads", "large"])
def test_any_refused_operation_is_a_sentence_and_loses_nothing(new_world: NewWorld, program: str, number: int) -> None:
    """For every operation k of a life: no step body runs whose intent is not in the log (`Watch.died`), what has an end
    in the log is not executed again, and the next run, with the disk in order, comes to the right end.
    """
    reference = refer(new_world(), program)
    told = silent = 0

    full = number == errno.ENOSPC

    # The longer programs share their operations between a full disk and a broken one.
    for k in range(len(reference.ops)) if program == "sync" else range(full, len(reference.ops), 2):
        world = new_world()
        watch = Watch(reference, world)
        layer = Spec("refuse", at=k, errno=number, for_ever=full, ops=("write", "create") if full else ())
        report = world.run(program, layer)
        if report.error:
            assert is_said(report, number), report.message
            told += 1
        else:
            silent += 1
        goes_on(reference, world, watch)
        world.remove()

    assert told > silent
    assert silent <= 4, "flushing the directory around a new log is a best effort"


def test_a_read_only_file_system_refuses_before_anything_is_done(new_world: NewWorld) -> None:
    """EROFS at any opening for writing, from the first on."""
    reference = refer(new_world(), "sync")
    places = [k for k, op in enumerate(reference.ops) if op.startswith(("create", "open"))]

    for k in places:
        world = new_world()
        report = world.run("sync", Spec("refuse", at=k, errno=errno.EROFS, ops=("create", "open")))
        assert report.error == "LogUnusable"
        assert is_said(report, errno.EROFS)
        assert world.effects() == []
        goes_on(reference, world, Watch(reference, world))
        world.remove()

    assert len(places) > 5


def test_a_refused_fold_leaves_a_completed_run_completed(new_world: NewWorld) -> None:
    """The disk is full when the run ends: that is said, and the next run replays and folds."""
    reference = refer(new_world(), "sync")
    ops = new_world().finish("sync", fold=True).ops

    for k in range(ops.index("create fold.lock"), len(ops), 2):
        world = new_world()
        report = world.run(
            "sync", Spec("refuse", at=k, errno=errno.ENOSPC, ops=("write", "create", "rename")), fold=True
        )
        assert world.counts() == reference.counts
        if report.error:
            assert is_said(report, errno.ENOSPC)
        again = world.finish("sync", fold=True)
        assert again.live == 0
        assert world.counts() == reference.counts
        assert set(world.rows().values()) == {1}
        world.remove()


@pytest.fixture
def small(new_world: NewWorld, tmp_path: Path) -> Iterator[tuple[World, Callable[[str], None]]]:
    """A world whose log lies on a real file system with little room, and a way to resize that."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=False).returncode:
        pytest.skip("a tmpfs cannot be mounted here")

    def resize(size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", "tmpfs", place], check=True)

    try:
        world = new_world()
        (world.path / "log").symlink_to(place)
        yield world, resize
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("size", ["16k", "20k", "24k", "32k", "64k", "300k"])
def test_a_really_full_disk_loses_nothing(
    new_world: NewWorld, small: tuple[World, Callable[[str], None]], size: str
) -> None:
    """A tmpfs that fills up under the log, under a blob, under DuckDB: a sentence; with more room the run goes on."""
    world, resize = small
    resize(size)
    reference = refer(new_world(), "nested")
    watch = Watch(reference, world)

    report = world.run("nested", fold=True)
    assert is_said(report, errno.ENOSPC)
    watch.died()
    assert LocalLog(world.log).damage() == []
    again = world.run("nested", fold=True)
    assert is_said(again, errno.ENOSPC)
    watch.died()

    resize("64m")
    watch.finished(world.finish("nested", fold=True))
    watch.replays(fold=True)
    assert set(world.rows().values()) == {1}


def test_a_blob_that_does_not_fit_is_a_sentence_and_its_step_is_in_doubt(
    new_world: NewWorld, small: tuple[World, Callable[[str], None]], server: Server
) -> None:
    """The effect has happened and its value finds no room; nobody may say that it did not happen."""
    world, resize = small
    resize("32k")
    reference = refer(new_world(), "incompressible")
    watch = Watch(reference, world)

    report = world.run("incompressible")

    assert is_said(report, errno.ENOSPC)
    history = watch.died()
    assert [step.state for step in history.steps.values() if step.name == "random_bytes"] == ["interrupted"]
    assert LocalLog(world.log).damage() == []
    resize("64m")
    watch.finished(world.finish("incompressible"))
    watch.replays()
