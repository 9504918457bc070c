"""Handing out what history holds: waiting for its turn, its output again, its value or its error."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_durable import clock, errors
from jupyter_durable.call import Adopt, Call, Recorded
from jupyter_durable.engine import outputs, payloads
from jupyter_durable.engine.adopting import adoption
from jupyter_durable.engine.blame import mark_failure
from jupyter_durable.engine.cancelling import cancelled_again
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.stats import Status, StepRow
from jupyter_durable.engine.timers import give_way
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import Payload
from jupyter_durable.events import Noticed
from jupyter_durable.values import restore_error


async def wait_for_turn(execution: Execution, entry: Entry) -> None:
    """Wait until it is the turn of a recorded result."""
    if asyncio.get_running_loop() is not execution.loop:
        execution.order.passed(entry)
        if entry.state == "cancelled":
            await cancelled_again()
        return
    turnstile = execution.order.turnstile
    turnstile.started(entry)
    if entry.state == "cancelled":
        # The program cancelled this step, and being the same program it will do so again, at this moment or later.
        await turnstile.turn(entry)
        execution.order.ended(entry)
        await cancelled_again()
    if turnstile.is_turn_of(entry):
        await give_way(asyncio.get_running_loop())
    if not turnstile.ready(entry):
        await turnstile.turn(entry)
        execution.replay.relaxed |= turnstile.relaxed
    execution.order.ended(entry)


def hand_out(execution: Execution, call: Call, verdict: Recorded | Adopt, names: list[str], values: list[Any]) -> Any:
    """Return what a recorded step returned, or raise what it raised; its output is written again.

    Args:
        execution: the live execution.
        call: the call that asks.
        verdict: what replay said about it.
        names: the parameters of the call.
        values: their values, in the same order.
    """
    entry = verdict.entry
    if entry.outputs and execution.spec.capture_outputs:
        outputs.emit(entry.outputs)
    note(execution, call, verdict, dict(zip(names, values, strict=False)) if entry.notices else {})
    if entry.state == "cancelled":
        raise asyncio.CancelledError
    if entry.state == "completed":
        return loaded(execution, entry, payloads.of(entry, execution.log))
    raise failure_of(execution, entry)


def note(execution: Execution, call: Call, verdict: Recorded | Adopt, arguments: dict[str, Any]) -> None:
    """Count a step that was not executed, write down what is taken over, remember what it had changed in place."""
    entry = verdict.entry
    stats = execution.stats
    status: Status = "replayed"
    if type(verdict) is Adopt:
        if entry.state == "cancelled":
            raise asyncio.CancelledError
        _adopt(execution, verdict, call)
        status = "adopted"
        stats.adopted += 1
    else:
        stats.replayed += 1
    replay = execution.replay
    execution.savings.add(replay.source if type(verdict) is Adopt and replay.source else replay.own, entry)
    stats.rows.append(StepRow(entry.begun, entry.key.name, status, 0.0, verdict.why, entry.kind, entry.usage))
    if entry.notices:
        execution.stale.note(entry.notices, arguments)
        stats.notices += [notice.message for notice in entry.notices if notice.kind.startswith("mutated")]
    if execution.on_change is not None:
        execution.on_change()
    if execution.pending_interrupt:
        execution.safe_point()


def loaded(execution: Execution, entry: Entry, payload: Payload) -> Any:
    """Bring the recorded value of an entry back.

    Raises:
        UnloadableValue: today's code cannot; the run has stopped.
    """
    try:
        return payloads.read(payload, execution.log)
    except errors.UnloadableValue as error:
        raise _cannot_come_back(execution, entry, error) from None


def failure_of(execution: Execution, entry: Entry) -> BaseException:
    """The error that a recorded step raised, to be raised again."""
    if entry.error is None:
        return errors.InDoubtError(
            f"{execution.place_of_run()}: {entry.label} was settled as failed by a person.",
            **execution.where, step=entry.key.name,
        )  # fmt: skip
    try:
        failure = restore_error(entry.error, execution.log.read_blob)
    except errors.UnloadableValue as error:
        raise _cannot_come_back(execution, entry, error) from None
    mark_failure(failure, entry.seq)
    return failure


def _cannot_come_back(execution: Execution, entry: Entry, error: errors.UnloadableValue) -> errors.UnloadableValue:
    execution.sealed = str(error)
    return errors.UnloadableValue(
        f"{execution.place_of_run()}: the recorded value of {entry.label} cannot come back: {error} "
        f"The step was not executed again, and the log is unchanged.",
        **{**error.facts, **execution.where, "step": entry.label},
    )


def _adopt(execution: Execution, verdict: Adopt, call: Call) -> None:
    """Write down that a result was taken over from the branch of origin."""
    entry, replay = verdict.entry, execution.replay
    undone = replay.source is not None and replay.source.is_undone(entry)
    event = adoption(entry, call.key, verdict.why, execution.log, verdict.evidence, undone=undone)
    seq = execution.append(event)
    if call.key.scope:
        with execution.lock:
            replay.begun(seq, event)  # another attempt of the step around it asks again
    if event.data.compensation is not None and event.data.payload is not None:
        execution.undoable.adopted(entry, event.data.compensation, event.data.payload, execution.header.execution, seq)
    for notice in entry.notices:
        execution.append(Noticed(at=clock.now(), step=execution.writer.head.seq, data=notice))
