"""Makes headers, events and whole histories for the tests of the log, here and in the processes that they start."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from jupyter_durable.event_data import ExecutionHeader, Head, Outcome, Payload
from jupyter_durable.events import FORMAT, ExecutionEnded, Recorded, StepCompleted, StepStarted
from jupyter_durable.log.base import EventLog, Writer

ROOT = Path(__file__).resolve().parents[2]
_numbers = itertools.count(1)


def header(branch: str = "b1", *, head: Head | None = None, run: str = "r1", **fields: Any) -> ExecutionHeader:
    """A header with an execution id of its own, also among processes."""
    fields.setdefault("execution", f"e{os.getpid()}-{next(_numbers)}")
    return ExecutionHeader(
        format=FORMAT, run=run, name="report", branch=branch, branch_name="main", head=head, path="plan.ipynb", **fields
    )


def last(log: EventLog, branch: str = "b1") -> Head | None:
    """The last line of a branch, as an engine finds it before it begins."""
    heads = [record.last for record in log.executions() if record.header.branch == branch]
    return max(heads, key=lambda head: head.seq, default=None)


def begin(log: EventLog, branch: str = "b1", **fields: Any) -> Writer:
    """Go on with a branch."""
    return log.begin(header(branch, head=last(log, branch), **fields))


def started(at: float = 1.0, **fields: Any) -> StepStarted:
    fields.setdefault("name", "search")
    fields.setdefault("digest", "d" * 32)
    return StepStarted(at=at, **fields)


def completed(step: int, value: Any = 1, at: float = 2.0) -> StepCompleted:
    return StepCompleted(at=at, step=step, data=Payload(data=msgspec.Raw(msgspec.json.encode(value))))


def step(writer: Writer, value: Any = 1, **fields: Any) -> int:
    """Record a step from start to end; its seq."""
    seq = writer.append(started(**fields))
    writer.append(completed(seq, value))
    return seq


def end(writer: Writer, status: Any = "completed") -> None:
    """Record the end of an execution and close it."""
    writer.append(ExecutionEnded(at=9.0, data=Outcome(status=status)))
    writer.close()


def run_whole(log: EventLog, branch: str = "b1", steps: int = 3, **fields: Any) -> str:
    """A whole execution, completed; its id."""
    writer = begin(log, branch, **fields)
    for number in range(steps):
        step(writer, number, n=number)
    end(writer)
    return writer.execution


def plain(events: Any) -> list[tuple[int, str, Any]]:
    """Events as what can be compared: payload texts instead of `msgspec.Raw`, which has no equality."""
    return [(each.seq, type(each.event).__name__, msgspec.to_builtins(_comparable(each))) for each in events]


def _comparable(each: Recorded) -> Any:
    return msgspec.json.decode(msgspec.json.encode(each.event))


def python(code: str, *arguments: Any, **options: Any) -> subprocess.Popen[str]:
    """Another Python process that has these functions and talks over pipes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Its output, once it has ended well."""
    try:
        out, err = process.communicate(timeout=200)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    assert process.returncode == 0, err
    return out
