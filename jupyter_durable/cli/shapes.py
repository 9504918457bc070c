"""What a command found, as plain data: the JSON of ``--json``, and what the tables are made of.

Every shape is a dict with ``"format": 1`` and ``"log"``, where the log lies. Names in it never change their meaning;
new ones may come. Times are seconds since 1970-01-01 UTC, durations are seconds, what is not known is ``null``.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from jupyter_durable import client, errors, spending
from jupyter_durable.answering import WaitView
from jupyter_durable.branches import BranchView
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.comparing import text_of
from jupyter_durable.events import (
    AttemptFailed,
    Decided,
    Noticed,
    Recorded,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepNotStored,
    StepStarted,
)
from jupyter_durable.log import open_log
from jupyter_durable.log.base import EventLog, ExecutionRecord
from jupyter_durable.log.local import LocalLog
from jupyter_durable.log.reader import JournalReader

FORMAT = 1
"""Version of the shapes."""

Shape = dict[str, Any]

_ENDS = (StepCompleted, StepNotStored, StepFailed, StepCancelled, StepInterrupted, AttemptFailed)


def open_existing(path: str | None) -> LocalLog:
    """The log that ``--log`` names; nothing is made where there is none.

    Raises:
        LogUnusable: there is none.
    """
    where = client.directory(path)
    log = open_log(where, create=False)
    if not isinstance(log, LocalLog):
        raise errors.UsageError(f"{where} lives in the memory of a process; the command line needs a directory.")
    return log


def runs(log: LocalLog) -> Shape:
    """The runs of a log: ``runs`` has one object for each, ``unreadable`` a sentence for each file left out."""
    branches = {(run, each.name): each for run, views in client.views_of(log).items() for each in views}
    listed = []
    for view in client.runs(log):
        branch = branches.get((view.run, view.branch))
        known = branch is None or branch.newest.outcome is not None
        # An execution that has no end, or none yet, has no count of its steps either: null, not nought.
        listed.append({**dataclasses.asdict(view), **({} if known else {"replayed": None, "live": None})})
    return {
        "format": FORMAT,
        "log": log.location,
        "runs": listed,
        "unreadable": unreadable(log),
    }


KINDS = ("billed", "wasted", "replayed")
"""The columns of a bill."""


def spend(log: LocalLog, run: str, by: str) -> Shape:
    """The bill: ``bill`` has one object for each line, with ``what`` and, for each kind, counts and a ``text``."""
    lines = spending.bill(log.directory, cast("spending.By", by), find_run(log, run) if run else "")
    amounts = [
        {
            kind: {**dataclasses.asdict(amount), "text": str(amount)}
            for kind in KINDS
            for amount in (getattr(line, kind),)
        }
        for line in lines
    ]
    return {
        "format": FORMAT,
        "log": log.location,
        "by": by,
        "bill": [{"what": line.what, **amount} for line, amount in zip(lines, amounts, strict=True)],
    }


def find_run(log: LocalLog, text: str) -> str:
    """`client.find_run`, which says so if the run may be among those that cannot be read.

    Raises:
        UsageError: none, or more than one, is meant.
    """
    try:
        return client.find_run(log, text)
    except errors.UsageError as error:
        left_out = unreadable(log)
        if not left_out:
            raise
        raise errors.UsageError(f"{error} Left out, because it cannot be read: {left_out[0]}") from None


def unreadable(log: LocalLog) -> list[str]:
    """A sentence for each journal that a listing leaves out, because its beginning cannot be read."""
    return [str(error) for error in log.look().errors.values()]


def show(log: LocalLog, text: str, branch_name: str = "") -> Shape:
    """One run: ``run``, ``branches``, and of one branch ``executions``, ``steps``, ``notices``, ``decisions`` and
    ``errors``. ``untrusted`` is a sentence if the branch was signed with a key that is not the user's.

    Args:
        log: where to look.
        text: what the user wrote for the run.
        branch_name: the branch to show; empty: the newest.
    """
    run = find_run(log, text)
    branch = client.find_branch(log, run, branch_name)
    listed = next(view for view in client.runs(log) if view.run == run)
    records = {record.header.execution: record for record in log.executions(run)}
    branches = client.views_of(log, run)[run]
    executions = [
        _execution(each, records[each.header.execution], log)
        for each in branch.executions
        if each.header.execution in records
    ]
    untrusted = ""
    try:
        events = list(log.history(branch.branch))
        steps = client.steps(log, run, branch.name)
    except errors.LogUntrusted as error:
        untrusted = str(error)
        unsigned = Unverified(log)
        events = list(unsigned.history(branch.branch))
        steps = client.steps(cast("EventLog", unsigned), run, branch.name)
    numbers, seconds = _times(events)
    shown = [{**dataclasses.asdict(view), "seconds": seconds.get(view.number)} for view in steps]
    return {
        "format": FORMAT,
        "log": log.location,
        "run": {"run": run, "name": listed.name, "status": listed.status, "notebook": listed.notebook},
        "branch": branch.name,
        "untrusted": untrusted,
        "branches": [branch_shape(each, branches) for each in branches],
        "executions": executions,
        "steps": shown,
        "notices": _notices(events, numbers),
        "decisions": [
            {"reuse": recorded.event.data.reuse, "by": recorded.event.data.by}
            for recorded in events
            if isinstance(recorded.event, Decided)
        ],
        "errors": _errors(executions, shown),
    }


class Unverified:
    """A log for the eyes only: its events without the signatures, which somebody else's key has made.

    It has what `client.steps` asks of a log. Checksums still hold, so damage is noticed; forgery is not.
    """

    def __init__(self, log: LocalLog) -> None:
        self._log = log

    def executions(self, run: str | None = None) -> list[ExecutionRecord]:
        """See `log.base.EventLog.executions`."""
        return self._log.executions(run)

    def history(self, branch: str) -> Iterator[Recorded]:
        """The events of a branch, without their large values."""
        for entry, upto in self._log.look().segments(branch):
            events: Iterable[Recorded]
            if entry.stub is None:
                events = JournalReader(entry.path, None).records(lean=True)
            else:
                from jupyter_durable.log import folded

                events = folded.read_all(self._log.directory, entry, upto, None)
            for recorded in events:
                yield recorded
                if upto is not None and recorded.seq == upto.seq:
                    break


def wait(view: WaitView) -> Shape:
    """Something that a run waits for; what was shown, and what was answered, stay in the log."""
    info, said = view.info, view.answer
    return {
        "run": view.run,
        "name": view.run_name,
        "branch": view.branch_name,
        "number": view.number,
        "request": info.request,
        "kind": view.kind,
        "signal": view.name if view.kind == "signal" else None,
        "child": view.child or None,
        "question": info.question or None,
        "choices": list(info.choices),
        "until": info.until,
        "running": view.running,
        "answered": None if said is None else {"by": said.by, "via": said.via, "at": said.sent},
    }


def status_word(execution: Seen) -> str:
    """How an execution stands, in the words of `client.RunStatus`; ``decided`` if it only wrote a decision down."""
    if execution.running:
        return "running"
    return "interrupted" if execution.outcome is None else execution.outcome.status


def branch_shape(branch: BranchView, all_branches: list[BranchView]) -> Shape:
    """One branch: where it is from, and what is set on it."""
    origin, fork, sample = branch.first.origin, branch.first.fork, branch.first.sample
    names = {each.branch: each.name for each in all_branches}
    status = status_word(branch.newest)
    if branch.undone is not None and status != "running":
        status = "undone"
    return {
        "branch": branch.branch,
        "name": branch.name,
        "status": "stopped" if status == "decided" else status,
        "executions": len(branch.executions),
        "origin": None if origin is None else {"name": names.get(origin.branch, origin.branch), "seq": origin.seq},
        "fork": None if fork is None else {"at": fork.at, "name": _label(fork.name, fork.n), "by": fork.by},
        "set": {name: text_of(payload) for name, payload in branch.first.set.items()},
        "sample": None if sample is None else {"number": sample.number, "of": sample.of},
    }


def _label(name: str, n: int) -> str:
    return name if n == 0 else f"{name}#{n}"


def _execution(execution: Seen, record: ExecutionRecord, log: EventLog) -> Shape:
    header, outcome = execution.header, execution.outcome
    holder = log.holder(header.branch) if execution.running else None
    error = outcome.error if outcome is not None else None
    return {
        "execution": header.execution,
        "purpose": header.purpose,
        "status": status_word(execution),
        "started": record.started,
        "ended": record.ended,
        "replayed": None if outcome is None else outcome.replayed,
        "live": None if outcome is None else outcome.live,
        "pid": header.pid if holder is None else holder.pid,
        "host": header.host,
        "python": header.python,
        "flags": header.flags,
        "key": header.key,
        "torn": record.torn,
        "folded": record.folded,
        "error": None if error is None else {"type": error.type, "message": error.message},
    }


def _times(events: list[Recorded]) -> tuple[dict[int, int], dict[int, float]]:
    """The number of the step that each intent belongs to, and the seconds that the last attempt of a step took."""
    first: dict[tuple[str, str, str, int], int] = {}
    numbers: dict[int, int] = {}
    began: dict[int, float] = {}
    seconds: dict[int, float] = {}
    for seq, event in ((recorded.seq, recorded.event) for recorded in events):
        if isinstance(event, StepStarted):
            numbers[seq] = first.setdefault((event.scope, event.name, event.digest, event.n), seq)
            began[seq] = event.at
            seconds.pop(numbers[seq], None)
        elif isinstance(event, _ENDS) and event.step in numbers:
            seconds[numbers[event.step]] = max(0.0, event.at - began[event.step])
            if isinstance(event, AttemptFailed):
                began[event.step] = event.at + event.data.retry_in
                del seconds[numbers[event.step]]
    return numbers, seconds


def _notices(events: list[Recorded], numbers: dict[int, int]) -> list[Shape]:
    return [
        {"step": numbers.get(event.step), "kind": event.data.kind, "message": event.data.message}
        for event in (recorded.event for recorded in events)
        if isinstance(event, Noticed)
    ]


def _errors(executions: list[Shape], steps: list[Shape]) -> list[Shape]:
    """What failed, for people: each step once, and the executions whose error is not that of a step."""
    found = [
        {"step": step["number"], "where": step["name"], "message": step["error"]} for step in steps if step["error"]
    ]
    said = {each["message"] for each in found}
    for execution in executions:
        error = execution["error"]
        if error is not None and (message := f"{error['type']}: {error['message']}") not in said:
            said.add(message)
            found.append({"step": None, "where": execution["execution"], "message": message})
    return found


def query(path: str, text: str) -> Shape:
    """The answer to a query: ``columns``, ``rows``, and ``partial`` if ``log.duckdb`` could not be read for it.

    Raises:
        UsageError: DuckDB does not accept the query.
    """
    import duckdb

    from jupyter_durable.log.query import is_partial

    with client.connect(path) as connection:
        partial = is_partial(connection)
        try:
            cursor = connection.execute(text)
            columns = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall()
        except duckdb.Error as error:
            raise errors.UsageError(f"DuckDB does not accept the query: {error}") from None
    return {
        "format": FORMAT,
        "log": str(Path(path).absolute()),
        "columns": columns,
        "rows": [[plain(cell) for cell in row] for row in rows],
        "partial": partial,
    }


def plain(value: Any) -> Any:
    """A value of DuckDB as JSON has it. What JSON cannot say without loss becomes text.

    >>> plain(decimal.Decimal("1.50")), plain(datetime.timedelta(minutes=2)), plain({"a": (1, float("nan"))})
    (1.5, 120.0, {'a': [1, 'nan']})
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, decimal.Decimal):
        return float(value) if value.is_finite() and decimal.Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)
