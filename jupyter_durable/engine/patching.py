"""``durable.patched`` inside of a run: the answer is given by `patches`, and recorded once for each id and branch."""

from __future__ import annotations

import os

import msgspec

from jupyter_durable import clock
from jupyter_durable.engine import payloads
from jupyter_durable.engine.adopting import adoption
from jupyter_durable.engine.context import Frame
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.pulse import refuse_late
from jupyter_durable.errors import RunEnded, UsageError
from jupyter_durable.event_data import Payload
from jupyter_durable.events import StepAdopted, StepCompleted, StepStarted
from jupyter_durable.history import PATCHED
from jupyter_durable.keys import Key
from jupyter_durable.patches import WORD, answer
from jupyter_durable.values import digest


def is_patched(frame: Frame, name: str) -> bool:
    """Whether the new code runs.

    Args:
        frame: where it is asked.
        name: the id.

    Raises:
        UsageError: it is asked in a child process, or in a worker.
        RunEnded: the execution has ended.
        RunSealed: the run has stopped.
    """
    execution: Execution = frame.execution
    if execution.pid != os.getpid():
        raise UsageError(
            f"`{WORD}` was called in another process than the run's, which does not know its history: ask in the "
            f"notebook, and give the answer to the step as an argument."
        )
    if execution.ended:
        raise RunEnded(f"`{WORD}` was called after the execution of {execution.place_of_run()} had ended.")
    if frame.attempt is not None:
        refuse_late(frame)
    with execution.lock:
        if execution.sealed:
            execution.refuse()
        key = Key("", WORD, digest([name]), 0)
        found = answer(execution.replay, frame.place, key.digest)
        if found.entry is None:
            _record(execution, key, name, new=found.new)
            return found.new
        if found.adopts:
            event = adoption(found.entry, key, found.entry.why, execution.log)
            _apply(execution, event)
        return bool(payloads.read(payloads.of(found.entry, execution.log), execution.log))


def _record(execution: Execution, key: Key, name: str, *, new: bool) -> None:
    why = f"`{name}`: " + ("the new code runs" if new else "history had gone past it, so the old code runs")
    begun = StepStarted(at=clock.now(), name=key.name, digest=key.digest, kind=PATCHED, why=why)
    seq = _apply(execution, begun)
    _apply(
        execution,
        StepCompleted(at=clock.now(), step=seq, data=Payload(data=msgspec.Raw(b"true" if new else b"false"))),
    )


def _apply(execution: Execution, event: StepStarted | StepCompleted | StepAdopted) -> int:
    """Write an event, and let the history know it: every later call of this execution has the same answer."""
    own, seq = execution.replay.own, execution.append(event)
    own.apply(seq, event)
    if not isinstance(event, StepCompleted):
        own.by_seq[seq].execution = execution.header.execution
    return seq
