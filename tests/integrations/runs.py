"""Runs of a program on a log in memory, again and again, as in processes that follow each other."""

from __future__ import annotations

from tests.engine.harness import MortalLog, Program, Result, play


def twice(program: Program) -> tuple[Result, Result]:
    """A run and its replay, neither of which may fail."""
    log = MortalLog()
    first, again = play(program, log), play(program, log)
    for result in (first, again):
        if result.error is not None:
            raise result.error
    return first, again


def steps(result: Result) -> list[tuple[str, str]]:
    """Name and status of each step, in the order in which they were asked for."""
    assert result.execution is not None
    return [(row.name, row.status) for row in result.execution.stats.rows]


def died_in(program: Program, tool: str) -> MortalLog:
    """A log whose process died when a tool had been begun, and its end was not yet recorded."""
    for events in range(1, 40):
        log = MortalLog()
        died = play(program, log, die_after=events)
        if died.died and steps(died)[-1:] == [(tool, "running")]:
            return log
    raise AssertionError(f"no process died in {tool}")
