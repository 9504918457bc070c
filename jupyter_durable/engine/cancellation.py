"""Cancelling a run from outside: the run looks into its inbox now and then, and ends at its next await or step.

Whoever cancels a run that is alive posts a signal of a reserved name; the run itself records that it was cancelled, in
the outcome of its execution. Nothing is cut in the middle of being written, and what is under way is in doubt, as after
the stop button.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from jupyter_durable import clock
from jupyter_durable.branches import BranchView
from jupyter_durable.engine import remarks
from jupyter_durable.errors import RunCancelled
from jupyter_durable.event_data import Cancellation, Notice, Outcome, Signal
from jupyter_durable.log.base import EventLog
from jupyter_durable.sentences import moment

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution
    from jupyter_durable.engine.options import RunSpec

CANCEL = "durable.cancel"
"""Name of the signal. Names that begin like this are ours."""

EVERY = 0.25
"""Seconds between two looks at the inbox."""


def cancellation_of(signal: Signal) -> Cancellation:
    """What a signal says about who cancels, and why."""
    reason = msgspec.json.decode(signal.value)
    return Cancellation(by=signal.by, via=signal.via, sent=signal.sent, signal=signal.id, reason=str(reason or ""))


def said(found: Cancellation) -> str:
    """Who has cancelled, when and why, for people."""
    why = f" ({found.reason})" if found.reason else ""
    return f"cancelled by {found.by or 'somebody'} at {moment(found.sent)}{why}"


def pending(log: EventLog, run: str, branches: Collection[str], used: Collection[str]) -> Signal | None:
    """The oldest signal that cancels one of these branches as a whole and was not used yet."""
    for signal in log.signals(run):
        if signal.name == CANCEL and not signal.request and signal.branch in branches and signal.id not in used:
            return signal
    return None


def refuse_cancelled(spec: RunSpec, log: EventLog, view: BranchView) -> set[str]:
    """Let no execution begin on a branch that somebody has cancelled. One that executes nothing may.

    Returns:
        Ids of the cancellations that are over.

    Raises:
        RunCancelled: it is cancelled.
    """
    used = view.used_cancellations
    found = view.cancelled
    if found is None and not view.completed:
        signal = pending(log, view.first.run, (view.branch,), used) if log.posted(view.first.run) else None
        if signal is not None:  # it came when the execution before this one was at its end, or was dead already
            found = cancellation_of(signal)
            write_down(log, view, found)
    if found is not None and not spec.flags.replay_only:
        raise error_of(view.first.name, view.name, found)
    return used | {signal.id for signal in log.signals(view.first.run) if signal.name == CANCEL and not signal.request}


def write_down(log: EventLog, view: BranchView, found: Cancellation) -> None:
    """Write down that a branch that nobody runs is cancelled.

    Raises:
        BranchBusy: somebody runs it.
    """
    head = {record.header.branch: record.last for record in log.executions(view.first.run)}[view.branch]
    outcome = Outcome(status="cancelled", cancelled=found)
    remarks.write(log, remarks.remark_on(view.newest.header, head), outcome=outcome)


def error_of(run_name: str, branch_name: str, found: Cancellation) -> RunCancelled:
    """What the cell of a cancelled run raises."""
    return RunCancelled(
        f"Run `{run_name}`, branch `{branch_name}` was {said(found)}. No further step is executed. `%durable resume "
        f"{run_name}` lets it go on from here when its cell runs again; `%%durable --fresh` starts anew.",
        run=run_name, branch=branch_name, by=found.by, via=found.via, reason=found.reason, sent=found.sent,
    )  # fmt: skip


class CancelWatch:
    """Looks for whoever cancels one execution, or a child run in it."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._due = clock.monotonic() + EVERY
        self._posted = 0
        self.used: set[str] = set()
        """Ids of cancellations that are over, or came before this execution and do not concern it."""
        loop = execution.loop
        if loop is not None:
            loop.call_later(EVERY, self._tick, loop)

    def look(self) -> None:
        """Look, if it is time; cheap enough to be called before every step. Ends the run if it is cancelled."""
        now = clock.monotonic()
        if now >= self._due:
            self._due = now + EVERY
            self._look()

    def _look(self) -> None:
        execution = self._execution
        posted = execution.log.posted(execution.header.run)
        if posted == self._posted or execution.ended or execution.sealed:
            return
        self._posted = posted
        header = execution.header
        # Whoever cancelled the branch that this one goes on from had not seen yet that it does.
        found = pending(execution.log, header.run, (header.branch, header.continues), self.used)
        if found is not None:
            self.cancel(cancellation_of(found))
            return
        for signal in execution.log.signals(execution.header.run):
            if signal.name == CANCEL and signal.request:
                child = execution.children.of_request(signal.request)
                if child is not None and child.is_open:
                    child.cancel(cancellation_of(signal))

    def came_too_late(self) -> Notice | None:
        """What is to be told of a cancellation that the run has not seen before it came to its end."""
        execution, header = self._execution, self._execution.header
        if execution.log.posted(header.run) == self._posted:
            return None
        found = pending(execution.log, header.run, (header.branch, header.continues), self.used)
        if found is None:
            return None
        message = f"{said(cancellation_of(found))}; that came too late: no await or step of the run came after it"
        return Notice(kind="note", message=message)

    def child_entered(self) -> None:
        """Somebody may have cancelled a child run before it was entered."""
        if self._execution.log.posted(self._execution.header.run):
            self._posted = 0
            self._look()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        execution = self._execution
        if not (execution.ended or execution.sealed):
            loop.call_later(EVERY, self._tick, loop)
            self.look()

    def cancel(self, found: Cancellation) -> None:
        """Stop the run: no further step, what waits ends, what is under way is in doubt."""
        execution = self._execution
        with execution.lock:
            if execution.sealed or execution.ended:
                return
            execution.cancelled = found
            error = error_of(execution.run_name, execution.header.branch_name, found)
            execution.seal(f"it was {said(found)}.", error)
            execution.interrupted = True  # what is cut from now on was not cancelled by the program
            if execution.room is not None:
                execution.room.end_all(error)
            if execution.on_cancel is not None:
                execution.on_cancel()
