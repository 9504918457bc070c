"""The events of a history: one frozen struct for each kind of line in a journal.

A journal line is one event as JSON, with an envelope in front (see ``log/line.py``)::

    {"c":"1f0e9a55","m":"q0rS...","seq":17,"type":"step_completed","at":1796023456.5,"step":16,"data":{...}}

The flat fields of the step events are columns of the ``events`` table; everything else of an event is its
one nested ``data``. Fields equal to their default are left out of the line. A released field never
changes its meaning and is never removed: old histories must replay for ever (``tests/histories``).
"""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = 1
"""Version of the event format; an execution names it in its first line."""


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Base of everything that is written into a log."""


class Payload(Struct, frozen=True, kw_only=True):
    """The stored form of one value. It is JSON text, inline in ``data`` or, when large, in a blob."""

    codec: Literal["json", "tagged"] = "json"
    """``json``: plain JSON means itself. ``tagged``: objects with a ``$`` key stand for other types."""
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The JSON text itself, if it is small."""
    blob: str | None = None
    """Digest of the blob that holds the JSON text, if it is large."""
    blobs: tuple[str, ...] = ()
    """Digests of further blobs that the text refers to (large arrays and byte strings)."""
    size: int = 0
    """Bytes of the JSON text and of its blobs before compression; left 0 for an inline text without blobs."""


class ErrorInfo(Struct, frozen=True, kw_only=True):
    """An exception as it is stored: readable without loading anything, and restorable where possible."""

    type: str
    """Qualified name of the class, such as ``openai.RateLimitError``."""
    message: str
    traceback: str = ""
    """Formatted traceback, capped; shown to people, never parsed."""
    payload: Payload | None = None
    """The exception as a value, verified by loading; absent if it cannot be rebuilt."""


class Head(Struct, frozen=True, kw_only=True):
    """The point in a history that an execution continues: the last line it has read."""

    execution: str
    seq: int
    chain: str
    """Checksum of that line (hexadecimal), so that a lost or changed line is noticed."""


class Origin(Struct, frozen=True, kw_only=True):
    """The branch that a branch was made from, and where."""

    branch: str
    execution: str
    seq: int
    """Last event of the origin that was visible when the branch was made."""


class ExecutionHeader(Struct, frozen=True, kw_only=True):
    """What an execution knew when it began: identity, code, inputs and circumstances."""

    format: int
    execution: str
    run: str
    """Id of the run: stable digest of notebook identity and run name."""
    name: str
    """Name of the run as people say it."""
    branch: str
    """Id of the branch, unique in the log."""
    branch_name: str
    """``main`` for the first branch of a run, then ``main-2`` and so on."""
    head: Head | None = None
    """What this execution continues; ``None`` for the first execution of a branch."""
    origin: Origin | None = None
    """Set on the first execution of a branch that was made from another."""
    root: str = ""
    """The branch at the root of this one's origins, itself if it has none; part of idempotency keys."""
    generation: int = 0
    """Rises by ``--fresh`` and by ``run again`` of finished steps; part of idempotency keys."""
    purpose: Literal["run", "decide"] = "run"
    """``decide``: the execution only writes down what a person decided."""
    notebook: str = ""
    """Durable id of the notebook; empty where it is not known."""
    path: str = ""
    """Path of the notebook or script when the execution began; a label, not an identity."""
    cell: str = ""
    """Cell id; empty where the front end sends none."""
    source: str = ""
    """Source of the cell, with secrets redacted."""
    code: str = ""
    """Digest of the cell's canonical AST."""
    inputs: dict[str, str] = {}
    """Notebook variables that the cell reads -> digest, or ``?TYPE`` where not comparable."""
    values: dict[str, Payload] = {}
    """Start values of small mutable inputs, to restore them when only the run itself has changed them."""
    flags: dict[str, str] = {}
    """Flags in force, such as ``{"fresh": "1"}``."""
    pass_id: str = ""
    """The pass (one execution of the notebook from top to end) that this belongs to, if headless."""
    python: str = ""
    packages: dict[str, str] = {}
    """Evidence only: versions of jupyter_durable and of packages in use."""
    pid: int = 0
    host: str = ""
    durability: Literal["power", "process"] = "power"
    key: str = ""
    """Id of the key that signs the lines (not the key)."""


class Unstored(Struct, frozen=True, kw_only=True):
    """Why a value could not be stored, and what was saved of it."""

    path: str
    """Path inside the value, such as ``result['client']``."""
    value_type: str
    reason: str
    salvage: Payload | None = None
    """A plainer form of the value (JSON projection or text)."""


class AttemptInfo(Struct, frozen=True, kw_only=True):
    """One failed try of a step that was, or may be, tried again."""

    error: ErrorInfo
    retry_in: float = 0.0
    """Seconds until the next attempt."""
    caused_by: tuple[int, ...] = ()
    """Inner steps (seq of their start) whose failure ended this attempt."""


class Adopted(Struct, frozen=True, kw_only=True):
    """A result taken over from the branch of origin."""

    execution: str
    """Execution that recorded the result first."""
    seq: int
    """Its completion (or failure) event there."""
    payload: Payload | None = None
    error: ErrorInfo | None = None


class Settlement(Struct, frozen=True, kw_only=True):
    """What a person said about a step that was in doubt or whose value was not stored."""

    choice: Literal["rerun", "value", "fail"]
    by: str = ""
    payload: Payload | None = None


class Decision(Struct, frozen=True, kw_only=True):
    """What a person said about finished steps after an edit."""

    reuse: Literal["all", "pure", "none"]
    by: str = ""
    steps: tuple[str, ...] = ()
    """Names of the steps that it speaks of; empty for all."""


class Notice(Struct, frozen=True, kw_only=True):
    """Something that the user was told once."""

    kind: Literal["mutated_argument", "mutated_global", "file", "order_relaxed", "not_comparable", "note"]
    message: str
    names: tuple[str, ...] = ()


class Outcome(Struct, frozen=True, kw_only=True):
    """How an execution ended."""

    status: Literal["completed", "failed", "interrupted", "stopped", "decided"]
    """``stopped``: it needs a person (decision, in doubt, nondeterminism); nothing is lost."""
    error: ErrorInfo | None = None
    failed: tuple[int, ...] = ()
    """Steps (seq of their start) whose failure itself ended the execution; only these are tried again."""
    inputs: dict[str, str] = {}
    """Digests of the mutable inputs at the end, to tell own mutations from edits."""
    state: dict[str, tuple[str, str]] = {}
    """Globals that only steps change -> digest at the end and at the start, to the same purpose."""
    replayed: int = 0
    live: int = 0


class OutputItem(Struct, frozen=True, kw_only=True):
    """One piece of output that a step wrote."""

    kind: Literal["stdout", "stderr", "display"]
    text: str = ""
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """For ``display``: the MIME bundle."""


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
    """``step``, or a determinism helper: ``now``, ``random``, ``uuid``."""
    attempt: int = 0
    """Attempts that failed before this one."""
    pure: bool = False
    why: str = ""
    """Why it was executed, if it was not simply new."""


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


class TimerFired(Event, frozen=True, kw_only=True, tag="timer_fired"):
    """An ``asyncio.sleep`` in glue code was over. It keeps the order of things on replay, and is no key of anything."""

    scope: str = ""
    n: int = 0
    """How many sleeps were over before in this scope."""


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
    | TimerFired
)
"""Every event of format 1."""


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """An event with its place in the history: ``seq`` counts through all executions of a branch."""

    seq: int
    event: AnyEvent
