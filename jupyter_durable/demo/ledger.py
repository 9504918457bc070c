"""Reads back from the log what each kernel did, as anybody can: with SQL over ``jupyter_durable.connect``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jupyter_durable import clock

_EXECUTIONS = """
    SELECT
        x.status,
        coalesce(any_value(c.started), 0) AS started,
        coalesce(any_value(c.finished), 0) AS finished,
        coalesce(any_value(c.tokens), 0) AS tokens,
        coalesce(any_value(r.replayed), 0) AS replayed
    FROM executions x
    LEFT JOIN (
        SELECT execution, count(*) AS started,
            count(*) FILTER (kind = 'billed' OR reason IN ('retried', 'abandoned')) AS finished,
            sum(coalesce(input, 0) + coalesce(output, 0)) AS tokens
        FROM llm_calls GROUP BY execution
    ) c ON c.execution = x.execution
    LEFT JOIN (
        SELECT execution, sum(calls) AS replayed FROM spend WHERE kind = 'replayed' GROUP BY execution
    ) r ON r.execution = x.execution
    WHERE x.purpose = 'run'
    GROUP BY x.execution, x.status, x.first_seq
    ORDER BY x.first_seq
"""


@dataclass(frozen=True, slots=True)
class Execution:
    """What one kernel did, in model calls."""

    status: str
    """How it ended; ``killed`` if it could not say, ``running`` if it still does."""
    started: int
    """Calls that were made."""
    finished: int
    """Calls whose answer was recorded."""
    tokens: int
    """Tokens that they cost, as the provider told."""
    replayed: int
    """Calls that were taken from the log."""


NOTHING = Execution("absent", 0, 0, 0, 0)
"""An execution that the log does not have."""


def read(folder: Path) -> list[Execution]:
    """The executions in the log beside a notebook, oldest first; none if there is no log."""
    from jupyter_durable.client import connect

    if not (folder / ".durable").is_dir():
        return []
    with connect(folder) as connection:
        return [Execution(status, *map(int, counts)) for status, *counts in connection.execute(_EXECUTIONS).fetchall()]


def in_flight(folder: Path, number: int, seconds: float) -> bool:
    """Whether the first kernel is in the middle of its model call ``number``; waits a moment before it looks."""
    clock.sleep(seconds)
    log = read(folder)
    return bool(log) and log[0].started == number and log[0].finished == number - 1
