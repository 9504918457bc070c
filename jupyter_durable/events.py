"""The events of a history: one frozen struct for each kind of line in a journal.

A journal line is one event as JSON, with an envelope in front (see ``log/line.py``)::

    {"c":"1f0e9a55","m":"q0rS...","seq":17,"type":"step_completed","at":1796023456.5,"step":16,"data":{...}}

The flat fields of the step events are columns of the ``events`` table; everything else of an event is its
one nested ``data``. Fields equal to their default are left out of the line. A released field never
changes its meaning and is never removed: old histories must replay for ever (``tests/histories``).
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from jupyter_durable.event_data import (
    Adopted,
    AttemptInfo,
    Beat,
    Decision,
    ExecutionHeader,
    Notice,
    Outcome,
    OutputItem,
    Payload,
    Progress,
    Receipt,
    RequestInfo,
    Saved,
    Settlement,
    Struct,
    Unstored,
    Usage,
    WaitInfo,
)
from jupyter_durable.stored import Compensation, Undoing

FORMAT = 1
"""Version of the event format; an execution names it in its first line."""


class Event(Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all events."""

    at: float
    """Seconds since 1970-01-01 UTC."""


class ExecutionStarted(Event, frozen=True, kw_only=True, tag="execution_started"):
    """The first line of an execution."""

    data: ExecutionHeader


class ExecutionEnded(Event, frozen=True, kw_only=True, tag="execution_ended"):
    """The last line of an execution that was not killed."""

    data: Outcome


class StepStarted(Event, frozen=True, kw_only=True, tag="step_started"):
    """Intent: written, and flushed, before the body of the step runs."""

    name: str
    digest: str
    """Digest of the arguments."""
    n: int = 0
    """Occurrence: how many equal calls came before in the same scope."""
    scope: str = ""
    """Path of tasks, threads and outer steps that the call was made in; empty for the cell itself."""
    evidence: str = ""
    """Digest of the code that the step depends on."""
    kind: str = "step"
    """``step``; ``model``, a captured model call; ``tool``, a framework's or MCP tool; ``run``, a child run; or a
    helper for determinism: ``now``, ``random``, ``uuid``; or the answer of ``durable.patched``: ``patched``."""
    attempt: int = 0
    """Attempts that failed before this one."""
    pure: bool = False
    why: str = ""
    """Why it was executed, if it was not simply new."""
    data: RequestInfo | None = None
    """Of a captured model call: what it asked."""


class StepCompleted(Event, frozen=True, kw_only=True, tag="step_completed"):
    """The body has run, and this is its value."""

    step: int
    """``seq`` of its StepStarted, in the same execution."""
    data: Payload


class StepNotStored(Event, frozen=True, kw_only=True, tag="step_not_stored"):
    """The body has run and returned, and its value could not be stored."""

    step: int
    data: Unstored


class StepFailed(Event, frozen=True, kw_only=True, tag="step_failed"):
    """The body raised and no retry is left."""

    step: int
    attempt: int = 0
    data: AttemptInfo


class AttemptFailed(Event, frozen=True, kw_only=True, tag="attempt_failed"):
    """The body raised and will be tried again."""

    step: int
    attempt: int = 0
    data: AttemptInfo


class StepCancelled(Event, frozen=True, kw_only=True, tag="step_cancelled"):
    """The program cancelled the step; on replay it receives CancelledError again."""

    step: int


class StepInterrupted(Event, frozen=True, kw_only=True, tag="step_interrupted"):
    """The stop button, or the end of the cell, cut the step: it is in doubt."""

    step: int


class StepAdopted(Event, frozen=True, kw_only=True, tag="step_adopted"):
    """A step whose result was taken over from the branch of origin; start and end in one."""

    name: str
    digest: str
    n: int = 0
    scope: str = ""
    evidence: str = ""
    kind: str = "step"
    pure: bool = False
    why: str = ""
    data: Adopted


class StepSettled(Event, frozen=True, kw_only=True, tag="step_settled"):
    """A person settled the step whose StepStarted has this ``seq`` (anywhere in the branch's history)."""

    step: int
    data: Settlement


class Decided(Event, frozen=True, kw_only=True, tag="decided"):
    """A person decided about finished steps after an edit."""

    data: Decision


class Noticed(Event, frozen=True, kw_only=True, tag="noticed"):
    """The user was told something, perhaps about a step."""

    step: int = -1
    data: Notice


class StepOutput(Event, frozen=True, kw_only=True, tag="step_output"):
    """What a step wrote to stdout, stderr and the display; comes before its end."""

    step: int
    data: tuple[OutputItem, ...]


class StepBeat(Event, frozen=True, kw_only=True, tag="step_beat"):
    """The body of a step lives, and this is what its next attempt may know."""

    step: int
    data: Beat


class Progressed(Event, frozen=True, kw_only=True, tag="progressed"):
    """How far the body of a step is, or the cell itself (``step`` -1). For people; replay does not look at it."""

    step: int = -1
    data: Progress


class StepBilled(Event, frozen=True, kw_only=True, tag="step_billed"):
    """What one attempt of a model call used; comes before its end."""

    step: int
    attempt: int = 0
    data: Usage


class Replayed(Event, frozen=True, kw_only=True, tag="replayed"):
    """What was replayed and not bought; written before the first live step and at the end of an execution."""

    data: Saved


class WaitStarted(Event, frozen=True, kw_only=True, tag="wait_started"):
    """The run begins to wait; written, and flushed, before anybody is asked. Its end is a ``StepCompleted``."""

    name: str
    digest: str
    n: int = 0
    scope: str = ""
    kind: str = "timer"
    """``timer``, ``signal`` or ``approval``."""
    why: str = ""
    """Why it waits again, if it had an answer before."""
    data: WaitInfo

    evidence: ClassVar[str] = ""
    """A wait depends on no code of the user's."""
    pure: ClassVar[bool] = False


class SignalReceived(Event, frozen=True, kw_only=True, tag="signal_received"):
    """A signal ends the wait whose ``seq`` is `step`; comes before its end. Each signal is used once."""

    step: int
    data: Receipt


class TimerFired(Event, frozen=True, kw_only=True, tag="timer_fired"):
    """An ``asyncio.sleep`` in glue code was over. It keeps the order of things on replay, and is no key of anything."""

    scope: str = ""
    n: int = 0
    """How many sleeps were over before in this scope."""


class CompensationRegistered(Event, frozen=True, kw_only=True, tag="compensation_registered"):
    """What undoes the step; written with its intent, before its effect."""

    step: int
    data: Compensation


class StepUndone(Event, frozen=True, kw_only=True, tag="step_undone"):
    """The effect of the step whose intent has this ``seq`` was undone by a person's ``undo``."""

    step: int
    data: Undoing


AnyEvent = (
    ExecutionStarted
    | ExecutionEnded
    | StepStarted
    | StepCompleted
    | StepNotStored
    | StepFailed
    | AttemptFailed
    | StepCancelled
    | StepInterrupted
    | StepAdopted
    | StepSettled
    | Decided
    | Noticed
    | StepOutput
    | StepBilled
    | Replayed
    | TimerFired
    | WaitStarted
    | SignalReceived
    | StepBeat
    | Progressed
    | CompensationRegistered
    | StepUndone
)
"""Every event of format 1."""


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """An event with its place in the history: ``seq`` counts through all executions of a branch."""

    seq: int
    event: AnyEvent
