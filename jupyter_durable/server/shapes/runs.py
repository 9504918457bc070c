"""Shapes of listings: who answers, runs, branches, executions, and the hints that something changed there."""

from __future__ import annotations

from typing import Literal

from jupyter_durable.server.shapes.base import FORMAT, Failure, RunStatus, Shape


class About(Shape, frozen=True, kw_only=True):
    """GET about: who answers, and which log a notebook has."""

    format: int = FORMAT
    version: str
    """Of jupyter_durable."""
    notebook: str
    """As asked."""
    log: str
    """Where the log lies: the name of the log in every answer and in every hint."""
    exists: bool
    """Whether there is a log yet. Where there is none, listings are empty."""
    configured: bool
    """Whether ``JUPYTER_DURABLE_LOG`` names it; else it is the folder's own ``.durable``, or see `elsewhere`."""
    elsewhere: bool
    """Whether it is the log of another folder: the notebook was moved from there, and its history has stayed."""
    user: str
    """Name of the user who asks, as decisions are signed."""
    hints: str
    """``schema_id`` of the hints on the server's event bus; see `Hint`."""


class Hint(Shape, frozen=True, kw_only=True):
    """Not an answer: ``data`` of an event on the bus. Something changed there; ask REST what.

    Hints come for logs that somebody asked about in the last minutes. They may be lost and may come twice.
    """

    log: str
    run: str
    branch: str
    """Id of the branch."""
    seq: int
    """Of its last event."""
    status: RunStatus


class WaitingStep(Shape, frozen=True, kw_only=True):
    """A step that a person is asked about."""

    number: int
    name: str
    label: str


class Waiting(Shape, frozen=True, kw_only=True):
    """What a run waits for, that only a person can do. Another kind may come; show its message, then."""

    kind: Literal["settle", "decide", "resume", "read", "answer", "timer", "cancelled"]
    """``settle``: say what happened to a step, by POST settle. ``decide``: say what becomes of steps after an edit, by
    POST decide. ``resume``: run the cell again. ``read``: it stopped for another reason, which the message says.
    ``answer``: it is parked until somebody answers, see GET waiting. ``timer``: it is parked until a moment comes.
    ``cancelled``: somebody has cancelled it, see the message; POST resume lets it go on."""
    branch: str
    """Id of the branch that the steps are of."""
    branch_name: str
    steps: list[WaitingStep]
    message: str
    """A sentence."""
    since: float


class RunItem(Shape, frozen=True, kw_only=True):
    """One run."""

    run: str
    """Its id."""
    name: str
    status: RunStatus
    """Of the newest execution."""
    branch: str
    """Id of the branch that ran last."""
    branch_name: str
    next: str
    """Id of the branch that the cell takes up when it runs next, since a person has forked or chosen it; empty: nobody
    has, and it is the branch of the code and inputs that the cell has then."""
    branches: int
    executions: int
    replayed: int | None
    live: int | None
    """Steps replayed and executed by the newest execution; ``null`` where it has no end (yet)."""
    started: float
    """When the newest execution began."""
    ended: float | None
    head: int
    """Seq of the last event of the branch that ran last."""
    notebook: str
    """Path of the notebook or script, as the kernel knew it."""
    here: bool
    """Whether it is a run of the notebook that is asked about."""
    cell: str
    """Id of the cell; empty where the front end sent none."""
    error: Failure | None
    """What the newest execution failed with."""
    waits: Waiting | None
    """What it waits for; ``null`` while it runs, and once it has come to its end or failed."""


class Runs(Shape, frozen=True, kw_only=True):
    """GET runs: the run that ran last comes first."""

    format: int = FORMAT
    log: str
    exists: bool
    runs: list[RunItem]
    unreadable: list[str]
    """A sentence for each journal that is left out, because its beginning cannot be read."""


class OriginItem(Shape, frozen=True, kw_only=True):
    """Where a branch comes from."""

    branch: str
    name: str
    seq: int
    """Last event of that branch that was visible."""


class ForkItem(Shape, frozen=True, kw_only=True):
    """Where a person has made a branch begin anew."""

    number: int
    """Of the step, in the branch of origin."""
    label: str
    by: str


class SampleItem(Shape, frozen=True, kw_only=True):
    """Which of the independent samples of a cell a branch is."""

    number: int
    of: int
    first: str
    """Id of the branch that is the first sample of the same set."""
    value: str
    """The cell's last expression as text; empty where there is none (yet)."""


class UndoneItem(Shape, frozen=True, kw_only=True):
    """That a person has undone a branch: its recorded results are true no more, and its cell does not replay them."""

    by: str
    at: float
    finished: bool
    """False: the undo has not come to its end; it goes on when it is asked for again."""


class BranchItem(Shape, frozen=True, kw_only=True):
    """One branch."""

    branch: str
    """Its id."""
    name: str
    """``main``, ``main-2`` and so on."""
    status: RunStatus
    executions: int
    started: float
    """When its first execution began."""
    ended: float | None
    """When its newest execution ended."""
    head: int
    """Seq of its last event."""
    origin: OriginItem | None
    fork: ForkItem | None
    """Where it was forked; ``null`` if it was not."""
    set: dict[str, str]
    """Notebook variables that have another value on this branch -> that value as text."""
    reads: list[str]
    """Notebook variables that the cell reads, and that a fork of this branch can set."""
    switched: str
    """Who has chosen it last, of several branches, to be taken up next; empty: nobody."""
    sample: SampleItem | None
    undone: UndoneItem | None
    """Who has undone it; ``null`` if nobody has."""
    source: str
    """The cell as it was, secrets redacted."""


class ExecutionItem(Shape, frozen=True, kw_only=True):
    """One kernel's work on a branch."""

    execution: str
    branch: str
    branch_name: str
    purpose: Literal["run", "decide"]
    status: RunStatus
    started: float
    ended: float | None
    replayed: int | None
    live: int | None
    pid: int
    host: str
    python: str
    flags: dict[str, str]
    cell: str
    durability: Literal["power", "process"]
    error: Failure | None
    torn: int
    """Bytes of a torn last line that were left out."""
    folded: bool


class RunDetail(Shape, frozen=True, kw_only=True):
    """GET runs/RUN."""

    format: int = FORMAT
    log: str
    run: RunItem
    branches: list[BranchItem]
    """Oldest first."""
    executions: list[ExecutionItem]
    """Oldest first."""
