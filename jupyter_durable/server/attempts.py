"""The attempts of a step, from its events. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from jupyter_durable.event_data import ErrorInfo
from jupyter_durable.events import (
    AnyEvent,
    AttemptFailed,
    StepBilled,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepNotStored,
    StepStarted,
)
from jupyter_durable.server.pages import usage_item
from jupyter_durable.server.shapes import AttemptView, ErrorView

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

_ENDS: dict[type, Literal["completed", "failed", "cancelled", "interrupted", "not_stored"]] = {
    StepCompleted: "completed",
    StepNotStored: "not_stored",
    StepFailed: "failed",
    AttemptFailed: "failed",
    StepCancelled: "cancelled",
    StepInterrupted: "interrupted",
}


def attempts(events: Iterable[tuple[str, int, AnyEvent]], running: str) -> list[AttemptView]:
    """The attempts of a step, in order.

    An attempt that was cut by the death of its kernel has no end: it is in doubt. The one that took its place counts
    as another.

    Args:
        events: execution, seq and event of all that concerns the step, in order.
        running: the execution that runs now, if one does.
    """
    found: list[AttemptView] = []
    again: float | None = None
    """When the next attempt begins without an intent of its own: after a failure of one that is tried again."""
    for execution, seq, event in events:
        if isinstance(event, StepStarted) or (again is not None and isinstance(event, (StepBilled, *_ENDS))):
            started = event.at if isinstance(event, StepStarted) or again is None else min(again, event.at)
            found.append(_begun(len(found) + 1, seq, execution, started))
            again = None
        if not found:
            continue
        newest = found[-1]
        if isinstance(event, StepBilled):
            found[-1] = msgspec.structs.replace(newest, usage=usage_item(event.data))
        elif (word := _ENDS.get(type(event))) is not None:
            failed = event.data if isinstance(event, AttemptFailed | StepFailed) else None
            found[-1] = msgspec.structs.replace(
                newest,
                ended=event.at,
                status=word,
                error=None if failed is None else error_view(failed.error),
                retry_in=0.0 if failed is None else failed.retry_in,
            )
            if isinstance(event, AttemptFailed):
                again = event.at + event.data.retry_in
    if found and found[-1].ended is None and running and found[-1].execution == running:
        found[-1] = msgspec.structs.replace(found[-1], status="running")
    return found


def _begun(number: int, seq: int, execution: str, started: float) -> AttemptView:
    return AttemptView(
        number=number,
        seq=seq,
        execution=execution,
        started=started,
        ended=None,
        status="in_doubt",
        error=None,
        retry_in=0.0,
        usage=None,
    )


def plain_text(text: str) -> str:
    """A text without terminal colours."""
    return _COLOUR.sub("", text)


def error_view(error: ErrorInfo | None) -> ErrorView | None:
    """A recorded exception for the eyes."""
    if error is None:
        return None
    return ErrorView(type=error.type, message=error.message, traceback=plain_text(error.traceback))
