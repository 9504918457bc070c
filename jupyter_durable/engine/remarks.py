"""Remarks: short executions that hold nothing but what a person said about a branch. No code of the user's runs."""

from __future__ import annotations

import os
import platform
import socket
from typing import Any

import msgspec

from jupyter_durable import clock
from jupyter_durable.event_data import ExecutionHeader, Head, Outcome
from jupyter_durable.events import AnyEvent, ExecutionEnded
from jupyter_durable.log.base import EventLog


def new_execution_id(run: str) -> str:
    """An id that sorts by time within a run: the run's first digits, milliseconds, four random bytes."""
    return f"{run[:8]}-{int(clock.now() * 1000):012x}-{clock.token_bytes(4).hex()}"


def remark_on(newest: ExecutionHeader, head: Head | None, **changes: Any) -> ExecutionHeader:
    """The first line of a remark.

    Args:
        newest: the first line of the newest execution of the branch.
        head: the last line of the branch; ``None`` if the remark makes a new one.
        **changes: fields of the line that say what the remark is about.
    """
    mine: dict[str, Any] = {
        "execution": new_execution_id(newest.run), "head": head, "origin": None, "fork": None, "switched": "",
        "resumed": "", "continues": "", "sample": None, "purpose": "decide", "flags": {}, "pid": os.getpid(),
        "host": socket.gethostname(), "python": platform.python_version(),
    }  # fmt: skip
    return msgspec.structs.replace(newest, **{**mine, **changes})


def write(log: EventLog, header: ExecutionHeader, *events: AnyEvent, outcome: Outcome | None = None) -> None:
    """Write a remark down.

    Raises:
        BranchBusy: somebody runs the branch, or has continued it since its head was read.
    """
    writer = log.begin(header)
    try:
        for event in events:
            writer.append(event)
        writer.append(ExecutionEnded(at=clock.now(), data=outcome or Outcome(status="decided")))
    finally:
        writer.close()
    log.fold()
