"""The words of the operator: look at runs and steps, decide, settle, query, examine. Nothing here runs user code.

Everything works on a log alone, with or without a kernel, also while a kernel writes it.
"""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from jupyter_durable import clock, errors
from jupyter_durable.branches import BranchView, group
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.comparisons import diff, diff_frame
from jupyter_durable.engine.forking import fork, switch
from jupyter_durable.engine.opening import new_execution_id
from jupyter_durable.event_data import Decision, Outcome, Payload, Settlement
from jupyter_durable.events import AnyEvent, Decided, ExecutionEnded, StepSettled
from jupyter_durable.history import Entry, History
from jupyter_durable.log import open_log
from jupyter_durable.log.base import EventLog, ExecutionRecord
from jupyter_durable.person import who
from jupyter_durable.running import log_directory
from jupyter_durable.sampled import samples
from jupyter_durable.values import encode_verified

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "RunStatus", "RunView", "StepView", "connect", "decide", "diff", "diff_frame", "directory", "existing_log",
    "find_branch", "find_run", "fork", "runs", "samples", "settle", "sql", "steps", "switch", "views_of", "who",
]  # fmt: skip

RunStatus = Literal["running", "completed", "failed", "interrupted", "stopped", "parked"]
"""``parked``: it waits for a signal or a timer, and its cell has ended. ``interrupted`` covers the stop button and the
death of the kernel; ``stopped``: it needs a person."""


@dataclass(frozen=True, slots=True)
class RunView:
    """One run in a listing."""

    run: str
    name: str
    status: RunStatus
    branch: str
    """Name of the newest branch."""
    branches: int
    executions: int
    replayed: int | None
    live: int | None
    """Steps replayed and executed by the newest execution; ``None`` if it has no end (yet)."""
    last: float
    """When the newest execution began (seconds since 1970-01-01 UTC)."""
    notebook: str
    """Path of the notebook or script."""


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of a branch in a listing. Values stay in the log."""

    number: int
    scope: str
    name: str
    kind: str
    status: str
    """The same words as in the view ``steps``: ``completed``, ``failed``, ``in_doubt``, ``not_stored`` and so on."""
    attempts: int
    why: str
    execution: str
    error: str
    notices: tuple[str, ...]
    progress: str
    """How far the body of a step that runs, or is in doubt, said that it is; empty if it did not."""
    beat: float | None
    """When such a body was heard of last (seconds since 1970-01-01 UTC)."""


def directory(path: str | os.PathLike[str] | None = None) -> str:
    """The log directory that is meant: the given one, a folder that holds ``.durable``, or the default."""
    if path is None:
        return log_directory()
    given = Path(path)
    if (given / ".durable").is_dir():
        return str(given / ".durable")
    return str(given)


def existing_log(path: str | os.PathLike[str] | None = None) -> EventLog:
    """Open a log that must be there already.

    Raises:
        LogUnusable: there is none.
    """
    return open_log(directory(path), create=False)


def connect(path: str | os.PathLike[str] | None = None) -> duckdb.DuckDBPyConnection:
    """Query a log with DuckDB: everything recorded so far, in the views ``runs``, ``branches``, ``executions``,
    ``events`` and ``steps``.

    Args:
        path: the log directory, or the folder that holds ``.durable``; default: that of the current folder.

    Returns:
        A connection of your own. Close it soon: while it is open, other processes cannot fold.
    """
    from jupyter_durable.log.query import connect as connect_to

    existing_log(path)
    return connect_to(directory(path))


def views_of(log: EventLog, run: str | None = None) -> dict[str, list[BranchView]]:
    """Branches of every run (or of one), oldest first."""
    found: dict[str, list[ExecutionRecord]] = {}
    for record in log.executions(run):
        found.setdefault(record.header.run, []).append(record)
    return {name: group(Seen(r.header, r.outcome, r.running) for r in records) for name, records in found.items()}


def runs(log: EventLog) -> list[RunView]:
    """All runs of a log, the one that ran last first."""
    began = {record.header.execution: (number, record.started) for number, record in enumerate(log.executions())}
    listed = []
    for run, branches in views_of(log).items():
        newest = max(branches, key=lambda b: began[b.newest.header.execution])
        header, outcome = newest.newest.header, newest.newest.outcome
        listed.append(
            RunView(
                run=run,
                name=header.name,
                status=_status(newest),
                branch=newest.name,
                branches=len(branches),
                executions=sum(len(b.executions) for b in branches),
                replayed=outcome.replayed if outcome is not None else None,
                live=outcome.live if outcome is not None else None,
                last=began[header.execution][1],
                notebook=header.path,
            )
        )
    return sorted(listed, key=lambda view: -view.last)


def _status(branch: BranchView) -> RunStatus:
    newest = branch.newest
    if newest.running:
        return "running"
    if newest.outcome is None:
        return "interrupted"
    status = newest.outcome.status
    return "stopped" if status == "decided" else status


def find_run(log: EventLog, text: str, notebook: str | None = None) -> str:
    """Id of the run that is meant by a name, an id or the beginning of an id.

    Args:
        log: where to look.
        text: what the user wrote; empty: the run that ran last.
        notebook: durable id of the notebook whose runs come first if several have the name.

    Raises:
        UsageError: none, or more than one, is meant.
    """
    listed = runs(log)
    if not text:
        if not listed:
            raise errors.UsageError("There is no run in this log yet.")
        return listed[0].run
    named = [view for view in listed if view.name == text]
    if notebook is not None and len(named) > 1:
        here = {r.header.run for r in log.executions() if r.header.notebook == notebook}
        named = [view for view in named if view.run in here] or named
    found = named or [view for view in listed if view.run.startswith(text)]
    if len(found) == 1:
        return found[0].run
    if not found:
        names = ", ".join(f"`{view.name}`" for view in listed[:10]) or "none yet"
        names += f" and {len(listed) - 10} more" if len(listed) > 10 else ""
        raise errors.UsageError(f"There is no run `{text}` in this log. Its runs: {names}.")
    which = ", ".join(f"{view.run} ({view.notebook or 'no notebook'})" for view in found)
    raise errors.UsageError(f"Several runs are called `{text}`: {which}. Name one by its id.")


def find_branch(log: EventLog, run: str, name: str = "") -> BranchView:
    """A branch of a run by its name; the newest one if the name is empty.

    Raises:
        UsageError: the run has no such branch.
    """
    branches = views_of(log, run).get(run, [])
    if not branches:
        raise errors.UsageError(f"There is no run with the id {run} in this log.")
    if not name:
        order = [record.header.execution for record in log.executions(run)]
        return max(branches, key=lambda b: order.index(b.executions[-1].header.execution))
    found = next((b for b in branches if name in (b.name, b.branch)), None)
    if found is None:
        raise errors.UsageError(f"The run has no branch `{name}`. Its branches: {', '.join(b.name for b in branches)}.")
    return found


def steps(log: EventLog, run: str, branch: str = "") -> list[StepView]:
    """The steps of a branch in the order in which they began. Reads events; loads no value."""
    view = find_branch(log, run, branch)
    history = History(log.history(view.branch))
    running = view.newest.header.execution if view.newest.running else ""
    entries = sorted(history.entries.values(), key=lambda e: e.begun)
    return [_step_view(entry, running) for entry in entries]


def _step_view(entry: Entry, running: str) -> StepView:
    """One entry in a listing; ``running`` is the execution that is alive, if one is."""
    status: str = entry.state
    if entry.adopted is not None:
        status = "adopted"
    elif entry.waits:
        status = "waiting"
    elif entry.state in ("open", "interrupted"):
        status = "running" if entry.state == "open" and entry.execution == running else "in_doubt"
    return StepView(
        number=entry.begun,
        scope=entry.key.scope,
        name=entry.key.name if entry.key.n == 0 else f"{entry.key.name}#{entry.key.n}",
        kind=entry.kind,
        status=status,
        attempts=entry.attempts + (0 if entry.state == "failed" else 1),
        why=entry.why,
        execution=entry.execution,
        error=f"{entry.error.type}: {entry.error.message}"
        if entry.error is not None and entry.state == "failed"
        else "",
        notices=tuple(notice.message for notice in entry.notices),
        progress=str(entry.progress) if entry.progress is not None and status in ("running", "in_doubt") else "",
        beat=entry.beat if entry.beat >= 0 and status in ("running", "in_doubt") else None,
    )


def decide(
    log: EventLog, run: str, reuse: Literal["all", "pure", "none"], by: str = "", steps: Sequence[str] = ()
) -> BranchView:
    """Say what becomes of finished (and in-doubt) steps after an edit; it holds for the newest branch of the run.

    Args:
        log: where the run is.
        run: id of the run.
        reuse: ``"all"`` uses the recorded results, ``"pure"`` those of pure steps only, ``"none"`` executes again.
        by: who decided.
        steps: names of the steps that it speaks of; none: all.

    Returns:
        The branch that the decision was written on.

    Raises:
        BranchBusy: the branch is running right now.
    """
    view = find_branch(log, run)
    _write(log, view, Decided(at=clock.now(), data=Decision(reuse=reuse, by=by or who(), steps=tuple(steps))))
    return view


def settle(
    log: EventLog,
    run: str,
    step: int | str,
    choice: Literal["rerun", "value", "salvage", "fail"],
    value: Any = None,
    by: str = "",
    branch: str = "",
) -> StepView:
    """Say what happened to a step that is in doubt, or whose value could not be stored.

    Args:
        log: where the run is.
        run: id of the run.
        step: its number, or its name if only one step of that name is open to it.
        choice: ``"rerun"`` executes it again; ``"value"``: it happened, and this is its value; ``"salvage"``: it
            happened, and the plainer form that was saved is its value; ``"fail"``: it counts as failed.
        value: the value, for ``"value"``.
        by: who settled it.
        branch: name of the branch; default the newest.

    Returns:
        The step as it is now.

    Raises:
        UsageError: there is no such step, or it needs no settlement.
        UnstorableValue: the given value cannot be stored.
    """
    view = find_branch(log, run, branch)
    history = History(log.history(view.branch))
    entry = _open_to_settlement(history, step)
    if entry is None and view.first.origin is not None:
        return settle(log, run, step, choice, value, by, view.first.origin.branch)
    if entry is None:
        raise errors.UsageError(_nothing_to_settle(history, step))
    payload: Payload | None = None
    if choice == "value":
        encoded, _ = encode_verified(value)
        if encoded.blobs:
            raise errors.UsageError(
                "A value given by hand must be small; store a large one in a file and return its path."
            )
        payload = Payload(codec=encoded.codec, data=msgspec.Raw(encoded.text))
    elif choice == "salvage":
        if entry.unstored is None or entry.unstored.salvage is None:
            raise errors.UsageError(
                f"Nothing was saved of {entry.label}; give its value: `settle {step} value EXPRESSION`."
            )
        payload = entry.unstored.salvage
    stored: Literal["rerun", "value", "fail"] = "value" if choice in ("value", "salvage") else choice  # type: ignore[assignment]
    event = StepSettled(at=clock.now(), step=entry.seq, data=Settlement(choice=stored, by=by or who(), payload=payload))
    _write(log, view, event)
    history = History(log.history(view.branch))
    return _step_view(history.entries[entry.key], running="")


def _open_to_settlement(history: History, step: int | str) -> Entry | None:
    candidates = [e for e in history.entries.values() if _needs_settling(e)]
    text = str(step)
    if text.isdigit():
        return next((e for e in candidates if int(text) in (e.begun, e.seq)), None)
    named = [e for e in candidates if text in (e.key.name, f"{e.key.name}#{e.key.n}")]
    if len(named) > 1:
        numbers = ", ".join(str(e.begun) for e in named)
        raise errors.UsageError(f"Several steps `{text}` are open to it: numbers {numbers}. Name one by its number.")
    return named[0] if named else None


def _needs_settling(entry: Entry) -> bool:
    return entry.state in ("open", "interrupted", "not_stored") and entry.wait is None


def _nothing_to_settle(history: History, step: int | str) -> str:
    waiting = [e.label for e in history.entries.values() if _needs_settling(e)]
    listed = ", ".join(waiting) if waiting else "none"
    return f"Step `{step}` is not in doubt, and its value is stored, or there is no such step. Open to it: {listed}."


def _write(log: EventLog, view: BranchView, event: AnyEvent) -> None:
    """Write one event by a short execution of its own."""
    last = {record.header.branch: record.last for record in log.executions(view.first.run)}[view.branch]
    header = msgspec.structs.replace(
        view.newest.header,
        execution=new_execution_id(view.first.run),
        head=last,
        origin=None,
        fork=None,
        switched="",
        sample=None,
        purpose="decide",
        pid=os.getpid(),
        host=socket.gethostname(),
        python=platform.python_version(),
        flags={},
    )
    writer = log.begin(header)
    try:
        writer.append(event)
        writer.append(ExecutionEnded(at=clock.now(), data=Outcome(status="decided")))
    finally:
        writer.close()
    log.fold()


def sql(path: str | os.PathLike[str] | None, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run one query over a log.

    Args:
        path: the log directory, or the folder that holds ``.durable``.
        query: SQL over the views ``runs``, ``branches``, ``executions``, ``events``, ``steps``.

    Returns:
        Column names and rows.

    Raises:
        UsageError: DuckDB does not accept the query; its words are in the message.
    """
    import duckdb

    if not query.strip(" ;\n\t"):
        raise errors.UsageError("The query is empty. Try `SELECT * FROM steps`.")
    with connect(path) as connection:
        try:
            cursor = connection.execute(query)
            names = [column[0] for column in cursor.description or ()]
            return names, cursor.fetchall()
        except duckdb.Error as error:
            raise errors.UsageError(f"DuckDB does not accept the query: {error}") from None
