"""Cancelling runs from outside, and letting a cancelled run go on: with a kernel or without."""

from __future__ import annotations

import msgspec

from jupyter_durable import clock
from jupyter_durable.branches import BranchView
from jupyter_durable.engine import remarks
from jupyter_durable.engine.cancellation import CANCEL, said, write_down
from jupyter_durable.errors import BranchBusy, UsageError
from jupyter_durable.event_data import Cancellation, Signal
from jupyter_durable.listings import children, find_branch, find_child, pick_child
from jupyter_durable.log.base import EventLog
from jupyter_durable.person import who
from jupyter_durable.sentences import quoted


class Cancelled(msgspec.Struct, frozen=True):
    """What came of cancelling a run."""

    run: str
    run_name: str
    branch: str
    branch_name: str
    alive: bool
    """It is being executed: it ends at its next await or step. Else it is cancelled already, and a child run of it as
    soon as the cell runs again."""
    child: str = ""
    """Path of the child run that was cancelled; empty: the whole run."""


def cancel(
    log: EventLog, run: str, *, child: str = "", reason: str = "", by: str = "", via: str = "python"
) -> Cancelled:
    """Cancel a run: it ends at its next await or step, and does not go on before somebody resumes it.

    What is under way in it is in doubt, as after the stop button. Nothing recorded is lost. A run that nobody executes
    (it is parked, failed, or its kernel died) is cancelled at once.

    Args:
        log: where the run is.
        run: id of the run.
        child: path or number of a child run: it alone is cancelled, and its parent receives `ChildCancelled`.
        reason: why, for people.
        by: who cancels; default: the person at this machine.
        via: from where: ``python``, ``magic``, ``command line``, ``panel`` or ``cell``.

    Returns:
        Which branch was cancelled, and whether it is still being executed.

    Raises:
        UsageError: there is no such run, it has completed, or it is cancelled already; or several child runs have
            this path.

    >>> from jupyter_durable.log import open_log
    >>> cancel(open_log("memory:"), "0a1b")
    Traceback (most recent call last):
    jupyter_durable.errors.UsageError: There is no run with the id 0a1b in this log.
    """
    found = Cancellation(by=by or who(), via=via, sent=clock.now(), reason=reason)
    if child:
        return _cancel_child(log, run, child, found)
    for _ in range(3):
        view = find_branch(log, run)
        _refuse(view)
        if view.newest.running:
            break
        try:
            write_down(log, view, found)
        except BranchBusy:
            continue  # its cell was run at this very moment
        return _cancelled(view, alive=False)
    log.post(_signal(view, found))
    return _cancelled(view, alive=True)


def _cancel_child(log: EventLog, run: str, path: str, found: Cancellation) -> Cancelled:
    view = find_branch(log, run)
    _refuse(view)
    child = pick_child(children(log, run), path, view.first.name)
    if not child.is_open:
        raise UsageError(
            f"Run `{view.first.name}`, branch `{view.name}`: child run `{child.path}` is {child.status}: there is "
            f"nothing left to cancel."
        )
    log.post(_signal(view, found, child.request))
    return msgspec.structs.replace(_cancelled(view, alive=view.newest.running), child=child.path)


def _signal(view: BranchView, found: Cancellation, request: str = "") -> Signal:
    return Signal(
        id=f"cancel-{clock.token_bytes(8).hex()}", run=view.first.run, branch=view.branch, name=CANCEL, request=request,
        value=msgspec.Raw(msgspec.json.encode(found.reason)), by=found.by, via=found.via, sent=found.sent,
    )  # fmt: skip


def resume(log: EventLog, run: str, *, by: str = "") -> BranchView:
    """Let a cancelled run go on: the next time that its cell runs it goes on from where it was.

    Args:
        log: where the run is.
        run: id of the run.
        by: who resumes it; default: the person at this machine.

    Returns:
        The branch.

    Raises:
        UsageError: there is no such run, or it is not cancelled.
        BranchBusy: its cell is running right now.
    """
    view = find_branch(log, run)
    if view.cancelled is None:
        raise UsageError(
            f"Run `{view.first.name}`, branch `{view.name}` is not cancelled: to go on, run its cell again."
        )
    head = {record.header.branch: record.last for record in log.executions(run)}[view.branch]
    remarks.write(log, remarks.remark_on(view.newest.header, head, resumed=by or who()))
    return find_branch(log, run, view.branch)


def find_resumed(log: EventLog, text: str, notebook: str | None = None) -> str:
    """Id of the run that is to be resumed.

    Args:
        log: where to look.
        text: name or id of the run.
        notebook: as of `find_run`.

    Raises:
        UsageError: none is meant; or a child run is, which has no resuming of its own.
    """
    if isinstance(text, str) and not text.strip():
        raise UsageError('Which run? Its name is needed: `durable.resume("report")`.')
    run, child = find_child(log, text, notebook)
    if child:
        name = find_branch(log, run).first.name
        raise UsageError(
            f"`{child}` is a child run of `{name}`, and is not resumed alone: `%%durable {quoted(name)} --from "
            f"{child.rpartition('/')[2]}` begins it anew on a new branch, and `%durable resume {quoted(name)}` is for "
            f"the whole run."
        )
    return run


def _refuse(view: BranchView) -> None:
    where = f"Run `{view.first.name}`, branch `{view.name}`"
    if view.newest.running:
        return
    if view.cancelled is not None:
        raise UsageError(f"{where} is cancelled already: it was {said(view.cancelled)}.")
    if view.completed:
        raise UsageError(f"{where} has completed: there is nothing left to cancel.")


def _cancelled(view: BranchView, *, alive: bool) -> Cancelled:
    return Cancelled(view.first.run, view.first.name, view.branch, view.name, alive)
