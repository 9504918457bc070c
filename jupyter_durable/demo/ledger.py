"""Reads back from the log what each kernel did, as anybody can: with SQL over ``jupyter_durable.connect``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jupyter_durable import clock

_EXECUTIONS = """
    SELECT
        x.status,
        count(*) FILTER (e.type = 'step_started') AS started,
        count(*) FILTER (e.type = 'step_completed') AS finished,
        coalesce(sum(CAST(e.data ->> '$.data.tokens' AS BIGINT)) FILTER (e.type = 'step_completed'), 0) AS tokens,
        coalesce(any_value(x.replayed), 0) AS replayed,
        coalesce(any_value(x.live), 0) AS executed
    FROM executions x
    JOIN events e ON e.execution = x.execution
    WHERE x.purpose = 'run'
    GROUP BY x.execution, x.status, x.first_seq
    ORDER BY x.first_seq
"""


@dataclass(frozen=True, slots=True)
class Execution:
    """What one kernel did."""

    status: str
    """How it ended; ``killed`` if it could not say, ``running`` if it still does."""
    started: int
    """Steps whose body was begun."""
    finished: int
    """Steps whose value was recorded."""
    tokens: int
    """Tokens that the finished steps cost, by the field ``tokens`` of their values."""
    replayed: int
    executed: int


NOTHING = Execution("absent", 0, 0, 0, 0, 0)
"""An execution that the log does not have."""


def read(folder: Path) -> list[Execution]:
    """The executions in the log beside a notebook, oldest first; none if there is no log."""
    from jupyter_durable.client import connect

    if not (folder / ".durable").is_dir():
        return []
    with connect(folder) as connection:
        return [Execution(*row) for row in connection.execute(_EXECUTIONS).fetchall()]


def in_flight(folder: Path, number: int, seconds: float) -> bool:
    """Whether the first kernel is in the middle of its step ``number``; waits a moment before it looks."""
    clock.sleep(seconds)
    log = read(folder)
    return bool(log) and log[0].started == number and log[0].finished == number - 1
