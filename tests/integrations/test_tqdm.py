"""Bars of tqdm report to ``durable.progress``: the step's inside of a body, the cell's between the steps."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import pytest

from jupyter_durable import step
from jupyter_durable.errors import CannotHook
from jupyter_durable.integrations.tqdm_progress import install
from tests.engine.harness import MortalLog, play

std = pytest.importorskip("tqdm.std")


@pytest.fixture(autouse=True)
def hooked() -> None:
    """The hook is set, once or twice: it patches once."""
    install(std)
    install(std)


def test_a_bar_in_a_body_is_the_progress_of_the_step() -> None:
    seen: list[str] = []

    @step
    def load(rows: int) -> int:
        for n in std.tqdm(range(rows), desc="rows", mininterval=0, file=io.StringIO()):
            (row,) = play_row()
            seen.append(f"{n}: {row}")
        return rows

    def play_row() -> list[str]:
        from jupyter_durable.engine.context import current

        frame = current()
        assert frame is not None
        return [row.progress for row in frame.execution.stats.rows]

    async def program() -> Any:
        return load(3)

    assert play(program, MortalLog()).value == 3
    assert seen == ["0: 0/3 rows", "1: 1/3 rows", "2: 2/3 rows"]


def test_a_bar_between_the_steps_is_the_progress_of_the_cell() -> None:
    @step
    def double(n: int) -> int:
        return 2 * n

    async def program() -> Any:
        return [double(n) for n in std.tqdm(range(4), unit="pages", mininterval=0, file=io.StringIO())]

    log = MortalLog()
    first, second = play(program, log), play(program, log)

    assert first.value == second.value == [0, 2, 4, 6]
    assert first.execution is not None
    assert first.execution.stats.progress == "4/4 pages"
    assert second.events == 1


def test_a_bar_outside_of_a_run_is_a_bar() -> None:
    drawn = io.StringIO()

    assert list(std.tqdm(range(3), mininterval=0, file=drawn)) == [0, 1, 2]
    assert "3/3" in drawn.getvalue()


def test_another_tqdm_is_said_to_be_unknown() -> None:
    with pytest.raises(CannotHook, match="do not report"):
        install(ModuleType("tqdm.std"))
