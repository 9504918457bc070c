"""Events as tests write them, in few words."""

from __future__ import annotations

from typing import Any

import msgspec

from jupyter_durable import clock
from jupyter_durable.event_data import AttemptInfo, ErrorInfo, Outcome, Payload
from jupyter_durable.events import AttemptFailed, ExecutionEnded, StepCompleted, StepFailed, StepStarted


def started(name: str, n: int = 0, **said: Any) -> StepStarted:
    """An intent."""
    return StepStarted(at=clock.now(), name=name, digest="digest-of-its-arguments", n=n, **said)


def completed(step: int, value: Any = None, codec: Any = "json") -> StepCompleted:
    """An end with a value."""
    return StepCompleted(at=clock.now(), step=step, data=Payload(codec=codec, data=raw(value)))


def raw(value: Any) -> msgspec.Raw:
    """JSON as a payload has it."""
    return msgspec.Raw(msgspec.json.encode(value))


def error(message: str = "no", traceback: str = "") -> ErrorInfo:
    """An exception."""
    return ErrorInfo(type="builtins.ValueError", message=message, traceback=traceback)


def attempt_failed(step: int, attempt: int = 0) -> AttemptFailed:
    """An attempt that is followed by another."""
    return AttemptFailed(at=clock.now(), step=step, attempt=attempt, data=AttemptInfo(error=error(f"try {attempt}")))


def failed(step: int, **said: Any) -> StepFailed:
    """An end with an error."""
    return StepFailed(at=clock.now(), step=step, data=AttemptInfo(error=error(**said)))


def ended(status: Any = "completed", **said: Any) -> ExecutionEnded:
    """The end of an execution."""
    return ExecutionEnded(at=clock.now(), data=Outcome(status=status, **said))
