"""Which attempt a recorded entry belongs to, and which failures a new attempt tries again. Pure.

An attempt that was cut by a death or the stop button is continued: everything inside it is returned from history. Only
one that ended by an exception is followed by a new attempt. That one reuses the finished steps inside it, and asks the
models anew: an answer on which the attempt failed would make it fail again.
"""

from __future__ import annotations

from jupyter_durable import errors
from jupyter_durable.call import Call, Place, Stop
from jupyter_durable.entries import Entry
from jupyter_durable.history import History

OF_FAILED_ATTEMPT = "asked anew: the attempt of its step had failed"
"""Why a model call is executed although it has an answer."""

LAPSED = "asked again: nobody had answered in time"
"""Why a wait begins anew that had ended by its time-out, and with it the cell."""

CANCELLED_BEFORE = "cancelled by what ended the cell"
"""Why a step is executed that was cancelled in an earlier execution."""


def is_of_failed_attempt(history: History, entry: Entry, place: Place | None) -> bool:
    """Whether an entry is a model's answer inside a step whose attempt failed after it.

    Args:
        history: where the entry is from.
        entry: the entry that a call has found.
        place: where the call is made now.
    """
    if entry.kind != "model" or entry.end < 0:
        return False
    while place is not None:
        if place.key is not None:
            if entry.end < place.failed_at and history.entries.get(entry.key) is entry:
                return True
            outer = history.entries.get(place.key)
            if outer is not None and entry.end < outer.failed_at:
                return True
        place = place.parent
    return False


def is_cancelled_with_the_cell(history: History, entry: Entry) -> bool:
    """Whether a step was cancelled by what ended the execution: nobody has seen it cancelled and gone on.

    An execution that was killed does not tell: there, cancelled is an end.
    """
    return entry.state == "cancelled" and history.outcome is not None and history.nobody_went_on(entry)


def is_retried(history: History, entry: Entry, call: Call) -> bool:
    """Whether a recorded failure is tried again, because it is what ended an execution or an outer attempt.

    Else the program caught it and went on: then it is raised again, so that the program takes the same way.
    """
    if entry.settlement is not None and entry.settlement.choice == "fail":
        return False
    # A step that let the failure of one inside it through failed of that, too.
    failure = {entry.seq, *entry.caused_by}
    place: Place | None = call.place
    while place is not None:
        if place.is_step and failure & (place.retried | _inner_failures(history, place)):
            return True
        place = place.parent
    if entry.kind == "model":
        # The error is made by an SDK from the answer, so nobody knows whether it is the one that ended the cell.
        return history.nobody_went_on(entry)
    return history.ended_the_execution(entry)


def _inner_failures(history: History, place: Place) -> frozenset[int]:
    """Failures inside a step that ended one of its attempts in an earlier execution."""
    outer = history.entries.get(place.key) if place.key is not None else None
    return outer.inner_failures if outer is not None else frozenset()


def not_stored(entry: Entry) -> Stop:
    """The stop at a step that has run and whose value could not be stored."""
    reason = entry.unstored.reason if entry.unstored is not None else "its value could not be stored"
    return Stop(
        errors.ValueNotStored,
        f"{entry.label} has run and its effect did happen, but its value was not stored: {reason} It is not executed "
        f"again by itself. Say what to do: `%durable settle {entry.begun} salvage` (use the plainer form that was "
        f"saved), `%durable settle {entry.begun} value EXPRESSION`, `%durable settle {entry.begun} rerun`, or "
        f"`%durable settle {entry.begun} fail`.",
        (entry,),
    )
