"""Events without what only the details of a step need, so that an index of a long branch stays small."""

from __future__ import annotations

import msgspec

from jupyter_durable.event_data import Beat, ErrorInfo, Payload
from jupyter_durable.events import (
    AnyEvent,
    AttemptFailed,
    StepAdopted,
    StepBeat,
    StepCompleted,
    StepFailed,
    StepNotStored,
    StepSettled,
)

_MESSAGE = 300


def slim(event: AnyEvent) -> AnyEvent:
    """An event without what only its details need: its value, its traceback."""
    if isinstance(event, StepCompleted):
        return StepCompleted(at=event.at, step=event.step, data=_thin(event.data) or event.data)
    if isinstance(event, AttemptFailed | StepFailed):
        return msgspec.structs.replace(event, data=msgspec.structs.replace(event.data, error=_short(event.data.error)))
    if isinstance(event, StepBeat):
        return StepBeat(at=event.at, step=event.step, data=Beat())
    if isinstance(event, StepNotStored) and event.data.salvage is not None:
        return msgspec.structs.replace(
            event, data=msgspec.structs.replace(event.data, salvage=_thin(event.data.salvage))
        )
    if isinstance(event, StepSettled) and event.data.payload is not None:
        return msgspec.structs.replace(
            event, data=msgspec.structs.replace(event.data, payload=_thin(event.data.payload))
        )
    return event


def slim_adopted(event: StepAdopted) -> StepAdopted:
    """The same for an adoption."""
    error = event.data.error
    data = msgspec.structs.replace(
        event.data, payload=_thin(event.data.payload), error=None if error is None else _short(error)
    )
    return msgspec.structs.replace(event, data=data)


def _thin(payload: Payload | None) -> Payload | None:
    return None if payload is None else Payload(codec=payload.codec, blob=payload.blob, size=payload.size)


def _short(error: ErrorInfo) -> ErrorInfo:
    return ErrorInfo(type=error.type[:_MESSAGE], message=error.message[:_MESSAGE])
