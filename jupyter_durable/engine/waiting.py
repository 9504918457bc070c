"""The drivers of a wait: one synchronous, one asynchronous. As for a step: the key is taken at the call, replay
decides, and what is recorded is returned without waiting.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import msgspec

from jupyter_durable import errors
from jupyter_durable.call import LATER, Adopt, Call, Execute, Recorded
from jupyter_durable.engine import payloads
from jupyter_durable.engine.awaited import Awaited
from jupyter_durable.engine.context import Frame
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.handing_out import hand_out, note, wait_for_turn
from jupyter_durable.engine.identity import DRIVERS
from jupyter_durable.engine.steps import placed
from jupyter_durable.engine.waits import Room, Wait
from jupyter_durable.errors import RunEnded, UsageError
from jupyter_durable.event_data import WaitInfo

CHANGED = "asked again: what is shown has changed since it was answered"


class Asked(msgspec.Struct):
    """What the program waits for."""

    kind: Literal["timer", "signal", "approval"]
    word: str
    """The word that was called, for messages: ``durable.sleep``."""
    name: str
    digest: str
    info: Callable[[], WaitInfo]
    """Made only when the wait really begins: a timer's moment is counted from then."""
    accept: Callable[[msgspec.Raw], Any]
    """Makes the value of the recorded answer; raises if it does not fit."""
    shown: str = ""
    """Digest of what is shown with the question."""


def wait_sync(frame: Frame, asked: Asked) -> Any:
    """Wait in the calling thread."""
    __tracebackhide__ = True
    execution: Execution = frame.execution
    call = _call(frame, asked)
    verdict = _checked(execution, asked, call, execution.ask(call))
    if not isinstance(verdict, Execute):
        execution.order.in_turn(verdict.entry)
        return _handed_out(execution, asked, call, verdict)
    room = _room(execution)
    wait = room.begin(call, verdict, asked.info(), asked.accept)
    try:
        room.block(wait)
    finally:
        room.cancelled(wait)
    return _over(asked, wait)


def wait_async(frame: Frame, asked: Asked) -> Coroutine[Any, Any, Any]:
    """Wait as a part of the event loop. The identity is taken now, before any await."""
    call = _call(frame, asked)
    verdict = frame.execution.ask(call, early=True)
    return Awaited(frame.execution, asked.word, _drive(frame.execution, asked, call, verdict))


async def _drive(execution: Execution, asked: Asked, call: Call, verdict: Any) -> Any:
    __tracebackhide__ = True
    if verdict is LATER:
        verdict = execution.ask(call)
    verdict = _checked(execution, asked, call, verdict)
    if not isinstance(verdict, Execute):
        await wait_for_turn(execution, verdict.entry)
        return _handed_out(execution, asked, call, verdict)
    if execution.ended:
        raise RunEnded(f"`{asked.word}` was awaited after its execution had ended.")
    room = _room(execution)
    wait = room.begin(call, verdict, asked.info(), asked.accept)
    try:
        await room.wait(wait)
    finally:
        room.cancelled(wait)
    if wait.error is None:
        await execution.group.return_in_order(flush=False)
    return _over(asked, wait)


DRIVERS.add(_drive.__code__)


def _room(execution: Execution) -> Room:
    with execution.lock:
        if execution.room is None:
            execution.room = Room(execution)
        return execution.room


def _call(frame: Frame, asked: Asked) -> Call:
    execution: Execution = frame.execution
    if execution.pid != os.getpid():
        raise UsageError(
            f"`{asked.word}` was called in a child process of {execution.place_of_run()}: wait in the kernel."
        )
    if execution.ended:
        raise RunEnded(f"`{asked.word}` was called after the execution of {execution.place_of_run()} had ended.")
    if frame.step is not None:
        raise UsageError(
            f"{execution.place_of_run()}, step `{frame.step.name}`: `{asked.word}` cannot be used inside the body of a "
            f"step: a run that waits may end its cell, and a step that is cut is in doubt. Wait in the cell's own "
            f"code, or in a plain function, and give the step what you got.",
            step=frame.step.name, **execution.where,
        )  # fmt: skip
    place, n = placed(frame, asked.name, asked.digest)
    return Call(place, asked.name, asked.digest, n, kind=asked.kind)


def _checked(execution: Execution, asked: Asked, call: Call, verdict: Any) -> Recorded | Adopt | Execute:
    """An approval holds for what was shown, and for nothing else."""
    assert isinstance(verdict, Recorded | Adopt | Execute)
    entry = verdict.entry
    if entry is None or entry.wait is None or entry.wait.shown_digest == asked.shown:
        return verdict
    if entry.state not in ("completed", "open"):
        return verdict
    if execution.spec.flags.replay_only:
        message = f"`--replay-only` promises to execute nothing, and {call.label} would be asked again: {CHANGED}."
        stopped = errors.ReplayOnlyError(
            f"{execution.place_of_run()}: {message}", **execution.where, step=call.name, kind=call.kind
        )
        execution.seal(message, stopped)
        raise stopped
    return Execute(CHANGED, entry)


def _handed_out(execution: Execution, asked: Asked, call: Call, verdict: Recorded | Adopt) -> Any:
    if verdict.entry.state != "completed":
        return hand_out(execution, call, verdict, [], [])
    note(execution, call, verdict, {})
    payload = payloads.of(verdict.entry, execution.log)
    assert isinstance(payload.data, msgspec.Raw)
    return asked.accept(payload.data)


def _over(asked: Asked, wait: Wait) -> Any:
    if wait.error is not None:
        raise wait.error
    return asked.accept(wait.raw)
