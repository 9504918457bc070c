"""A new branch from any step of any branch, and which branch the cell takes up next: written down, nothing executed.

Both are short executions of their own that hold nothing but their first line. A fork writes the first line of the new
branch, and nothing into the old one.
"""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from typing import Any

import msgspec

from jupyter_durable import clock, errors
from jupyter_durable.branches import BranchView, group
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.engine.inputs import Inputs
from jupyter_durable.engine.opening import new_execution_id
from jupyter_durable.engine.prospect import branch_of_number
from jupyter_durable.engine.setting import encoded
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import ExecutionHeader, Fork, Origin, Outcome, Payload
from jupyter_durable.events import ExecutionEnded
from jupyter_durable.evidence import EvidenceBook
from jupyter_durable.history import History
from jupyter_durable.log.base import EventLog, ExecutionRecord
from jupyter_durable.person import who


def fork(
    log: EventLog, run: str, at: int | str, *, branch: str = "", values: Mapping[str, Any] | None = None, by: str = ""
) -> BranchView:
    """Make a new branch of a run that begins anew at a step. The next run of the cell takes it up.

    What comes before the step is kept, the step and what follows is executed. The old branch stays as it is.

    Args:
        log: where the run is.
        run: id of the run.
        at: number or name of the step (``name#n`` for one of several equal calls); of several of a name, the first.
        branch: name of the branch that it is a step of; default the newest.
        values: variables of the notebook that the cell reads -> the value that they have on the new branch, instead of
            the notebook's. The notebook's own values come back when the cell ends.
        by: who forks.

    Returns:
        The new branch.

    Raises:
        UsageError: there is no such branch or step, or the cell reads no such variable.
        BranchBusy: the branch is running right now.

    >>> from jupyter_durable.log import open_log
    >>> fork(open_log("memory:"), "0a1b", "search")
    Traceback (most recent call last):
    jupyter_durable.errors.UsageError: There is no run with the id 0a1b in this log.
    """
    stored = {name: encoded(name, value) for name, value in (values or {}).items()}
    for _ in range(3):
        records, views = _views(log, run)
        old = _named(views, records, branch)
        if old.newest.running:
            raise errors.BranchBusy(
                f"Run `{old.first.name}`: branch `{old.name}` is being executed right now, so it cannot be forked. "
                f"Wait until its cell has ended, or stop it.",
                run=old.first.name, branch=old.name,
            )  # fmt: skip
        header = _forked(log, views, old, str(at), stored, values or {}, by)
        try:
            return _written(log, header)
        except (errors.BranchMoved, errors.BranchBusy):
            continue  # somebody else made a branch of this number meanwhile
    raise errors.BranchBusy(
        f"Run `{old.first.name}`: others keep making branches of it. Fork it again.", run=old.first.name
    )


def switch(log: EventLog, run: str, branch: str, *, by: str = "") -> BranchView:
    """Choose which branch of a run its cell takes up next.

    Args:
        log: where the run is.
        run: id of the run.
        branch: name or id of the branch.
        by: who chooses.

    Returns:
        The branch.

    Raises:
        UsageError: there is no such branch.
        BranchBusy: it is running right now.
    """
    records, views = _views(log, run)
    view = _named(views, records, branch)
    header = msgspec.structs.replace(
        view.newest.header, head={r.header.branch: r.last for r in records}[view.branch], origin=None, fork=None,
        sample=None, switched=by or who(), **_mine(run),
    )  # fmt: skip
    return _written(log, header)


def _views(log: EventLog, run: str) -> tuple[list[ExecutionRecord], list[BranchView]]:
    records = log.executions(run)
    if not records:
        raise errors.UsageError(f"There is no run with the id {run} in this log.")
    return records, group(Seen(r.header, r.outcome, r.running) for r in records)


def _named(views: list[BranchView], records: list[ExecutionRecord], name: str) -> BranchView:
    name = name or records[-1].header.branch
    found = next((view for view in views if name in (view.name, view.branch)), None)
    if found is None:
        raise errors.UsageError(f"The run has no branch `{name}`. Its branches: {', '.join(v.name for v in views)}.")
    return found


def _forked(
    log: EventLog, views: list[BranchView], old: BranchView, at: str, stored: dict[str, Payload],
    values: Mapping[str, Any], by: str,
) -> ExecutionHeader:  # fmt: skip
    """The first line of the new branch."""
    before = old.newest.header
    history = History(log.history(old.branch))
    entry = _step(history, at, old)
    for name in stored:
        _check_read(before, name)
    number, name = branch_of_number(before.run, len(views) + 1)
    digests = Inputs.of(values, frozenset(values), EvidenceBook()).digests
    return msgspec.structs.replace(
        before,
        branch=number,
        branch_name=name,
        head=None,
        origin=Origin(branch=old.branch, execution=history.headers[-1].execution, seq=history.seq),
        fork=Fork(at=entry.begun, name=entry.key.name, n=entry.key.n, by=by or who()),
        set={**old.first.set, **stored},
        switched="",
        sample=None,
        continues="",
        root=old.first.root,
        generation=max(view.first.generation for view in views) + 1,
        inputs={**before.inputs, **digests},
        values={each: payload for each, payload in before.values.items() if each not in stored},
        **_mine(before.run),
    )


def _step(history: History, at: str, view: BranchView) -> Entry:
    entries = sorted(history.entries.values(), key=lambda entry: entry.begun)
    for entry in entries:
        if at.isdigit() and int(at) in (entry.begun, entry.seq):
            return entry
        if at in (entry.key.name, f"{entry.key.name}#{entry.key.n}"):
            return entry
    labels = [entry.label for entry in entries]
    listed = ", ".join(labels[:20]) + (f" and {len(labels) - 20} more" if len(labels) > 20 else "")
    raise errors.UsageError(
        f"Run `{view.first.name}`, branch `{view.name}`: there is no step `{at}` to fork at. Recorded are: "
        f"{listed or 'none yet'}.",
        run=view.first.name, branch=view.name, step=at,
    )  # fmt: skip


def _check_read(header: ExecutionHeader, name: str) -> None:
    """Only what the cell reads, and what is no code: anything else would change nothing, or not be what it says."""
    digest = header.inputs.get(name, "")
    if digest and not digest.startswith(("module:", "code:")):
        return
    known = [each for each, text in header.inputs.items() if not text.startswith(("module:", "code:"))]
    what = "is code" if digest else "is no variable of the notebook that the cell reads"
    listed = ", ".join(f"`{each}`" for each in known) or "none"
    raise errors.UsageError(f"`{name}` {what}, so it cannot be set for a branch. The cell reads: {listed}.")


def _mine(run: str) -> dict[str, Any]:
    """What a short execution of this process says of itself."""
    return {
        "execution": new_execution_id(run), "purpose": "decide", "flags": {}, "pid": os.getpid(),
        "host": socket.gethostname(), "python": platform.python_version(),
    }  # fmt: skip


def _written(log: EventLog, header: ExecutionHeader) -> BranchView:
    writer = log.begin(header)
    try:
        writer.append(ExecutionEnded(at=clock.now(), data=Outcome(status="decided")))
    finally:
        writer.close()
    log.fold()
    _, views = _views(log, header.run)
    return next(view for view in views if view.branch == header.branch)
