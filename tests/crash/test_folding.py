"""A folder that is killed at any moment folds each line exactly once, and the history it leaves replays.

The moments are every file operation of a fold and every point between its statements; and, inside of DuckDB's own
writing, every size of its file: the kernel ends the process (SIGXFSZ) when a write would go beyond it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.crash.harness import World, plain, refer, whole_lines
from tests.crash.layers import Spec

NewWorld = Callable[[], World]


@pytest.fixture
def full(new_world: NewWorld) -> World:
    """A log with a bit of everything: a branch of three executions of which two were killed, folded in part."""
    world = new_world()
    assert world.run("nested", Spec("kill", at=5, when="after", events=True)).signal
    assert world.finish("").folded == 6
    assert world.run("nested", Spec("kill", at=4, when="torn", events=True)).signal
    world.finish("nested")
    return world


@pytest.fixture
def interrupted(new_world: NewWorld) -> World:
    """A log that was never folded, of a run that was killed in the middle."""
    world = new_world()
    assert world.run("nested", Spec("kill", at=11, when="torn", events=True)).signal
    return world


def lines_of(world: World) -> set[tuple[str, int]]:
    """Execution and seq of every line of every journal."""
    journals = (world.log / "journal").glob("*.jsonl")
    return {(journal.stem, line["seq"]) for journal in journals for line in whole_lines(journal)}


def make_up(world: World, expected: set[tuple[str, int]], result: object, *, resume: bool) -> None:
    """What must hold after the death of a folder, whether somebody folds next or the run itself goes on."""
    before = world.counts()
    if resume:
        report = world.finish("nested", fold=True)
        assert plain(report.result) == result
        assert report.live > 0 or world.counts() == before
    else:
        world.finish("")

    rows = world.rows()
    assert set(rows.values()) == {1}, "a line was folded twice"
    assert set(rows) >= expected, "a line was lost"
    assert resume or set(rows) == expected, "a line was made up"
    assert not list(world.log.glob(".fold-*")), "the file of a dead folder is left behind"
    if not resume:
        assert plain(world.finish("nested").result) == result


@pytest.mark.parametrize("half", ["even", "odd"])
@pytest.mark.parametrize("name", ["full", "interrupted"])
def test_a_fold_that_is_killed_before_any_operation_is_made_up_for(
    new_world: NewWorld, request: pytest.FixtureRequest, name: str, half: str
) -> None:
    """Rows per (execution, seq), counted by plain DuckDB: never two, and one of each in the end."""
    result = refer(new_world(), "nested").result
    world: World = request.getfixturevalue(name)
    expected = lines_of(world)
    rehearsal = world.copy(new_world().path / "copy")
    ops = rehearsal.finish("").ops
    assert ops.count("unlink journal") == (3 if name == "full" else 0)
    assert "reached fold: inserted" in ops

    for k in range(half == "odd", len(ops), 2):
        victim = world.copy(new_world().path / "copy")
        assert victim.run("", Spec("kill", at=k)).signal == signal.SIGKILL, ops[k]
        make_up(victim, expected, result, resume=k % 4 < 2)
        victim.remove()


@pytest.mark.parametrize("name", ["full", "interrupted"])
def test_a_fold_that_dies_inside_of_the_database_is_made_up_for(
    new_world: NewWorld, request: pytest.FixtureRequest, name: str
) -> None:
    """The process ends in the middle of DuckDB's writing, at each size that the database or its log would grow to."""
    result = refer(new_world(), "nested").result
    world: World = request.getfixturevalue(name)
    expected = lines_of(world)
    rehearsal = world.copy(new_world().path / "copy")
    rehearsal.finish("")
    size = (rehearsal.log / "log.duckdb").stat().st_size
    begun = (world.log / "log.duckdb").stat().st_size if (world.log / "log.duckdb").exists() else 0
    deaths = 0

    for largest in range(max(4096, begun), size, max(4096, (size - begun) // 12 // 4096 * 4096)):
        victim = world.copy(new_world().path / "copy")
        report = victim.run("", largest_file=largest + 100)
        deaths += report.signal == signal.SIGXFSZ
        assert report.signal in {0, signal.SIGXFSZ}, report
        make_up(victim, expected, result, resume=deaths % 2 == 0)
        victim.remove()

    assert deaths > 3


def test_a_run_that_is_killed_in_its_own_fold_has_completed(new_world: NewWorld) -> None:
    """The fold at the end of a run comes after the end of the execution: whatever becomes of it, nothing runs again."""
    reference = refer(new_world(), "sync")
    ops = new_world().finish("sync", fold=True).ops
    first = ops.index("create fold.lock")

    for k in range(first, len(ops), 2):
        world = new_world()
        assert world.run("sync", Spec("kill", at=k), fold=True).signal == signal.SIGKILL
        assert world.counts() == reference.counts
        report = world.finish("sync", fold=True)
        assert (report.live, plain(report.result)) == (0, reference.result)
        assert world.counts() == reference.counts
        assert set(world.rows().values()) == {1}
        world.remove()
