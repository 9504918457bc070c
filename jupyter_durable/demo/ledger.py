"""Reads back from the log what each kernel did, as anybody can: with SQL over ``jupyter_durable.connect``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from jupyter_durable import clock

_EVENTS = """
    SELECT execution, type, data
    FROM events
    WHERE type IN ('execution_started', 'step_started', 'step_completed', 'execution_ended')
    ORDER BY seq
"""


@dataclass(slots=True)
class Execution:
    """What one kernel did."""

    id: str
    started: int = 0
    """Steps whose body was begun."""
    finished: int = 0
    """Steps whose value was recorded."""
    tokens: int = 0
    """Tokens that the finished steps say they cost (the field ``tokens`` of their values)."""
    replayed: int = 0
    executed: int = 0
    status: str = "killed"
    """How it ended, as the log has it; ``killed`` if the log has no end."""


def read(folder: Path) -> list[Execution]:
    """The executions in the log beside a notebook, oldest first."""
    from jupyter_durable.client import connect

    with connect(folder) as connection:
        rows = connection.execute(_EVENTS).fetchall()
    executions: dict[str, Execution] = {}
    for execution, kind, data in rows:
        entry = executions.setdefault(execution, Execution(execution))
        fields = json.loads(data) if isinstance(data, str) else data or {}
        if kind == "step_started":
            entry.started += 1
        elif kind == "step_completed":
            entry.finished += 1
            value = fields.get("data")
            entry.tokens += value.get("tokens", 0) if isinstance(value, dict) else 0
        elif kind == "execution_ended":
            entry.status = fields["status"]
            entry.replayed, entry.executed = fields.get("replayed", 0), fields.get("live", 0)
    return list(executions.values())


def in_flight(folder: Path, number: int, seconds: float) -> bool:
    """Whether the first kernel is in the middle of its step ``number``; waits a moment before it looks."""
    clock.sleep(seconds)
    if not (folder / ".durable").exists():
        return False
    log = read(folder)
    return bool(log) and log[0].started == number and log[0].finished == number - 1
