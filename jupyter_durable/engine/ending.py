"""How an execution ended, in the form that is recorded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import msgspec

from jupyter_durable import clock
from jupyter_durable.call import Stop
from jupyter_durable.engine.blame import causes
from jupyter_durable.errors import RunStopped
from jupyter_durable.event_data import About, Notice, Outcome
from jupyter_durable.events import StepInterrupted
from jupyter_durable.replay import Replay
from jupyter_durable.values import describe_error

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution


def outcome_of(execution: Execution, error: BaseException | None) -> Outcome:
    """The outcome of an execution whose cell ended with this error, or came to its end."""
    if isinstance(error, RunStopped):
        error = error.error.with_traceback(error.__traceback__)
    if execution.cancelled is not None:
        return _without_error(execution, "cancelled")
    if execution.parked is not None and not execution.interrupted:
        return _without_error(execution, "parked")
    if execution.continued is not None and not execution.interrupted:
        return _without_error(execution, "continued")
    if error is None:
        status: Literal["completed", "failed", "interrupted", "stopped"] = "completed"
    elif execution.interrupted or isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
        status = "interrupted"
    else:
        status = "failed"
    shown = error
    if execution.interrupted and isinstance(error, asyncio.CancelledError):
        # That is how the stop button reaches an `await`; people are told what they did.
        shown = KeyboardInterrupt().with_traceback(error.__traceback__)
    return Outcome(
        status="stopped" if execution.sealed else status,
        error=None if shown is None else msgspec.structs.replace(describe_error(shown)[0], payload=None),
        failed=() if error is None else tuple(causes(error)),
        inputs=execution.end_inputs(),
        state=execution.book.state(),
        replayed=execution.stats.replayed + execution.stats.adopted,
        live=execution.stats.live,
        about=() if execution.reason is None else execution.reason.facts.get("about", ()),
        shown=execution.stats.shown if error is None else "",
    )


def _without_error(execution: Execution, status: Literal["parked", "continued", "cancelled"]) -> Outcome:
    """It ended on purpose: whatever that became on its way out of the cell is no error, and nothing is tried again."""
    return Outcome(
        status=status,
        inputs=execution.end_inputs(),
        state=execution.book.state(),
        replayed=execution.stats.replayed + execution.stats.adopted,
        live=execution.stats.live,
        cancelled=execution.cancelled if status == "cancelled" else None,
        carried=execution.carried if status == "continued" else None,
        about=execution.parked.facts.get("about", ()) if status == "parked" and execution.parked is not None else (),
    )


def leave_nothing_running(execution: Execution) -> None:
    """Cut what still runs when a cell ends: its steps are in doubt. What runs in threads goes on."""
    try:
        current = asyncio.current_task()
    except RuntimeError:
        current = None
    cut = [attempt for attempt in execution.in_flight.values() if attempt.thread == execution.thread]
    if cut and not execution.interrupted:
        names = ", ".join(f"`{attempt.call.name}`" for attempt in cut[:5])
        execution.stats.notices.append(
            f"{len(cut)} step{'s' * (len(cut) > 1)} still ran when the cell ended and "
            f"{'were' if len(cut) > 1 else 'was'} cut: {names}. Each re-run begins what is in doubt again: await "
            f"what the cell starts."
        )
    for attempt in list(execution.in_flight.values()):
        if attempt.thread == execution.thread:
            attempt.dead = True
            del execution.in_flight[attempt.seq]
            execution.append(StepInterrupted(at=clock.now(), step=attempt.seq))
    for task in execution.members.tasks():
        if task is not current:
            task.cancel()


def about(stop: Stop, replay: Replay) -> tuple[About, ...]:
    """The steps that a person is asked about where a run stops."""
    own = replay.own.entries
    return tuple(
        About(step=entry.begun, name=entry.key.name, n=entry.key.n, origin=own.get(entry.key) is not entry)
        for entry in stop.entries
    )


def unasked(replay: Replay) -> Notice | None:
    """A notice about finished steps of the own history that the cell came to its end without asking for."""
    if replay.source is not None or not replay.own.entries:
        return None
    left = replay.never_asked()
    if not left:
        return None
    names = ", ".join(entry.label for entry in left[:5])
    return Notice(
        kind="note",
        message=(
            f"history has {len(left)} finished step{'s' * (len(left) > 1)} that the cell no longer asked for: {names}"
            f"{' and more' * (len(left) > 5)}"
        ),
    )
