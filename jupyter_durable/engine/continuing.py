"""``durable.continue_as_new`` inside of a run: the branch ends, with a state that the next one begins with.

The state is written with the end, in one line: either both are there, or the branch goes on as if nothing had been
said. Whoever runs the cell next, in this process or in another, finds the end and begins the branch after it.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

from jupyter_durable.engine import payloads
from jupyter_durable.engine.budget import executed
from jupyter_durable.engine.context import Frame
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.mail import Mail
from jupyter_durable.errors import ContinuedAsNew, RunEnded, UnloadableValue, UsageError, ValueBoundaryError
from jupyter_durable.event_data import Carried, Payload
from jupyter_durable.history import History
from jupyter_durable.values import encode_verified

WORD = "durable.continue_as_new"


def end_and_go_on(frame: Frame, state: dict[str, Any]) -> NoReturn:
    """End the branch, and leave the cell.

    Args:
        frame: where that is asked for.
        state: what the next branch begins with.

    Raises:
        ContinuedAsNew: always, if nothing is wrong.
        UsageError: it cannot be done here, or not now; nothing has ended.
        ValueBoundaryError: the state cannot be stored; nothing has ended.
    """
    __tracebackhide__ = True
    execution: Execution = frame.execution
    _check(frame, execution)
    if execution.in_flight:
        execution.close_left()
    with execution.lock:
        if execution.sealed:
            execution.refuse()
        _refuse_unfinished(execution)
        execution.carried = _carried(execution, _stored(execution, state))
        execution.continued = ContinuedAsNew(
            f"{execution.place_of_run()} has ended and handed its state on. Run it again to go on from there.",
            **execution.where,
        )
        execution.sealed = f"`{WORD}` has ended this branch."
        raise execution.continued


def handed_on(execution: Execution) -> dict[str, Any]:
    """What was handed on to the branch: values of its own for every call; empty for a run that begins.

    Raises:
        UnloadableValue: today's code cannot bring it back.
        UsageError: a child process or worker asks.
    """
    if execution.pid != os.getpid():
        raise UsageError(
            "`durable.state` was called in another process than the run's, which does not know it: read it in the "
            "notebook, and give the step what it needs."
        )
    carried = execution.header.carried
    if carried is None:
        return {}
    try:
        state: dict[str, Any] = payloads.read(carried.state, execution.log)
    except UnloadableValue as error:
        raise UnloadableValue(
            f"{execution.place_of_run()}: the state that was handed on cannot come back: {error} Nothing was executed.",
            **{**error.facts, **execution.where},
        ) from None
    return state


def _check(frame: Frame, execution: Execution) -> None:
    if execution.pid != os.getpid():
        raise UsageError(f"`{WORD}` was called in another process than the run's: call it in the notebook.")
    where = execution.place_of_run()
    if execution.ended:
        raise RunEnded(f"`{WORD}` was called after the execution of {where} had ended.")
    if frame.step is not None:
        raise UsageError(
            f"{where}, step `{frame.step.name}`: `{WORD}` cannot be used inside the body of a step, which would stay "
            f"in doubt for ever. Let the step return what decides about it, and call it in the cell's own code.",
            step=frame.step.name, **execution.where,
        )  # fmt: skip
    if execution.spec.flags.sample:
        raise UsageError(f"{where}: a sample is one branch, so `{WORD}` cannot be used with `--sample`.")


def _refuse_unfinished(execution: Execution) -> None:
    """What has begun on this branch can come to an end only here."""
    begun = [f"step `{attempt.call.name}` (step {seq})" for seq, attempt in execution.in_flight.items()]
    if execution.room is not None:
        begun += [f"the wait `{wait.call.name}` (step {wait.number})" for wait in execution.room.waits]
    if begun:
        raise UsageError(
            f"{execution.place_of_run()}: `{WORD}` was called while {', '.join(begun[:5])}"
            f"{' and more' * (len(begun) > 5)} had not ended. The branch would end without it, so nothing was done. "
            f"Await, join or cancel what the cell has started first.",
            steps=begun, **execution.where,
        )  # fmt: skip


def _stored(execution: Execution, state: dict[str, Any]) -> Payload:
    try:
        return payloads.write(encode_verified(state)[0], execution.writer)
    except ValueBoundaryError as error:
        raise type(error)(
            f"{execution.place_of_run()}: the state of `{WORD}` cannot be handed on: {error} Nothing has ended.",
            **{**error.facts, **execution.where},
        ) from None


def _carried(execution: Execution, state: Payload) -> Carried:
    """The state, and what this branch and those before it have spent: a budget is not begun anew."""
    before = execution.header.carried
    history = History(execution.log.history(execution.header.branch))
    used = [usage for entry in history.models for usage in entry.billed]
    return Carried(
        state=state,
        usd=sum(usage.cost or 0.0 for usage in used) + (before.usd if before is not None else 0.0),
        tokens=sum((usage.input or 0) + (usage.output or 0) for usage in used)
        + (before.tokens if before is not None else 0),
        steps=executed(history.entries.values()) + (before.steps if before is not None else 0),
        signals=(Mail(execution) if execution.room is None else execution.room.mail).unused(),
    )
