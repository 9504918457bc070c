"""Shapes of steps in a listing, and of the pages that they come in."""

from __future__ import annotations

from jupyter_durable.server.shapes.base import (
    FORMAT,
    Failure,
    NoticeItem,
    RunStatus,
    Shape,
    StepStatus,
    Totals,
    UsageItem,
)


class ProgressItem(Shape, frozen=True, kw_only=True):
    """How far something is."""

    done: float
    total: float | None
    """``null``: not known."""
    text: str
    """What is counted, or what happens right now."""


class StepRow(Shape, frozen=True, kw_only=True):
    """One step in a listing. Apart from `status` ``running``, a row is a function of the history alone.

    A row of status ``running`` turns into ``in_doubt`` without a new event when `Page.running` no longer names its
    `execution`; the client does that. One of kind ``run`` that has no end is ``waiting`` while something in it waits;
    else it is ``running`` while `Page.running` names any execution, and ``interrupted`` otherwise.

    Where a value comes from is to be read so: ``adopted``: from another branch; else, if `execution` is
    `Page.newest`: executed live by it; else, if `Page.newest_status` is ``completed``: replayed by it; else: recorded
    earlier.
    """

    number: int
    """Seq of its first intent: its name for people, and its place in the order of starts."""
    changed: int
    """Seq of the last event that concerned it."""
    name: str
    label: str
    """``search``, or ``search#2`` for the third equal call."""
    kind: str
    """``step``, ``model``, ``tool``, ``now``, ``random``, ``uuid``; ``run``: a child run, parent of what is in it."""
    status: StepStatus
    scope: str
    """Path of tasks, threads and outer steps that the call was made in; empty for the cell itself."""
    parent: int | None
    """Number of the step that it was called in."""
    cell: str
    line: int
    """Of the cell, from 1, where it was asked (model calls); 0: not known."""
    execution: str
    """The one that wrote its newest intent."""
    started: float
    """Its first intent."""
    ended: float | None
    seconds: float | None
    """What its last attempt took."""
    attempts: int
    """All attempts, a running one included."""
    why: str
    """Why it was executed or taken over; empty for a step that was simply new."""
    error: Failure | None
    """Of a failed step, or of the last failed attempt of one that is tried again; the message is cut."""
    usage: UsageItem | None
    """Of a model call: what its attempts used, added up."""
    saved: UsageItem | None
    """Of an adopted model call: what it had used; it was billed there."""
    outputs: int
    """Pieces of output that it wrote."""
    notices: int
    """Things that were noticed about it."""
    progress: ProgressItem | None
    """How far its body said that it is; ``null`` once it has ended well."""
    beat: float | None
    """When its body was heard of last, by a heartbeat; ``null``: not in its newest attempt."""
    missed: str
    """A sentence while its body is not heard of, though its step was to have heartbeats; empty: all is well."""


class Page(Shape, frozen=True, kw_only=True):
    """GET runs/RUN/branches/BRANCH/steps: the rows that are new or changed since ``after``, in order of `changed`.

    Ask again with ``after=next`` and ``epoch=epoch``: at once while `more`, else on a hint or from time to time. A
    row that comes again replaces the one of its number. `reset`: forget all rows first; the history that they came
    from is not this branch's any more.
    """

    format: int = FORMAT
    log: str
    run: str
    branch: str
    branch_name: str
    rows: list[StepRow]
    next: int
    epoch: str
    reset: bool
    more: bool
    head: int
    """Seq of the last event of the branch; -1 if there is none."""
    running: str
    """The execution that runs now; empty if none does."""
    newest: str
    """The newest execution that ran the cell."""
    newest_status: RunStatus
    progress: ProgressItem | None
    """How far the newest execution said that it is, in the cell's own code; ``null`` once it has completed."""
    totals: Totals
    notices: list[NoticeItem]
    """What was noticed about the branch as a whole."""
    untrusted: str
    """A sentence, if the history was signed with a key that is not the user's: it is shown, and not verified."""
    damaged: str
    """A sentence, if the history cannot be read to its end."""
