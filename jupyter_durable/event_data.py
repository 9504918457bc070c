"""What events carry in their ``data``: the stored forms of values, errors, requests, headers, outcomes.

Fields equal to their default are left out of a line. A released field never changes its meaning and is never removed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from jupyter_durable.stored import Cancellation, Carried, Compensation, Payload, Undone

__all__ = [
    "About", "Adopted", "AttemptInfo", "Beat", "Cancellation", "Carried", "Decision", "ErrorInfo",
    "ExecutionHeader", "Fork", "Head", "Notice", "Origin", "Outcome", "OutputItem", "Payload", "Progress",
    "Receipt", "RequestInfo", "Sample", "Saved", "Settlement", "Signal", "Struct", "Unstored", "Usage",
    "WaitInfo",
]  # fmt: skip


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Base of everything that is written into a log."""


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


class Fork(Struct, frozen=True, kw_only=True):
    """Where a person has made a branch begin anew."""

    at: int
    """Number of the step, in the branch of origin: it and what follows is executed anew."""
    name: str
    n: int = 0
    """Its number among equal calls."""
    by: str = ""


class Sample(Struct, frozen=True, kw_only=True):
    """Which of the independent samples of a cell a branch is."""

    number: int
    """From 1."""
    of: int
    """How many were asked for."""
    first: str
    """Id of the branch that is the first sample of the same set."""


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
    fork: Fork | None = None
    """Set on the first execution of a branch that a person has forked. It only writes that down."""
    set: dict[str, Payload] = {}
    """Notebook variables -> the values that they have on this branch, whatever they are in the notebook."""
    switched: str = ""
    """Who has chosen this branch to be taken up next; the execution only writes that down."""
    resumed: str = ""
    """Who has lifted the cancellation of this branch; the execution only writes that down."""
    sample: Sample | None = None
    """Set on the first execution of a branch that is one of several samples."""
    root: str = ""
    """The branch at the root of this one's origins, itself if it has none; part of idempotency keys."""
    continues: str = ""
    """Set on the first execution of a branch that goes on from another by ``durable.continue_as_new``: its id."""
    carried: Carried | None = None
    """What was handed on to this branch, or to the one that it was made from."""
    generation: int = 0
    """Rises by ``--fresh``, by a fork and by ``run again`` of finished steps; part of idempotency keys."""
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


class RequestInfo(Struct, frozen=True, kw_only=True):
    """What a captured model call asked, without headers and secrets: for people, and to show what differs."""

    provider: str
    api: str
    """Kind of request, such as ``chat.completions``."""
    model: str = ""
    method: str = "POST"
    url: str = ""
    stream: bool = False
    most_output: int | None = None
    """Largest number of output tokens that the request allows; ``None`` if it sets no limit."""
    body: Payload | None = None
    """The JSON of the request, keys sorted, secrets redacted; absent where the body is no JSON."""
    base: int | None = None
    """Seq of an earlier intent of this execution: `body` is what is new against its request."""
    same: tuple[str, ...] = ()
    """Fields that are as in `base`, and not in `body`."""
    shared: dict[str, int] = {}
    """Lists that begin with this many items of the list in `base`; `body` has the items after them."""
    line: int = 0
    """Line of the cell, from 1, at which it was asked; 0 where that is not known."""


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens and money of one attempt of a model call. What the provider did not tell is ``None``: unknown, never 0."""

    provider: str = ""
    model: str = ""
    """As the answer names it, else as the request does."""
    input: int | None = None
    """All input tokens, cached ones included."""
    output: int | None = None
    """All output tokens, those of reasoning included."""
    cached: int | None = None
    """Input tokens that the provider read from its cache."""
    cache_write: int | None = None
    """Input tokens that the provider wrote into its cache."""
    reasoning: int | None = None
    """Output tokens that the model spent on thinking."""
    cost: float | None = None
    """US dollars."""
    prices: str = ""
    """Whose prices: ``genai-prices 0.2.3``, or ``set by the user``."""


class Saved(Struct, frozen=True, kw_only=True):
    """What an execution replayed instead of buying it, since it last said so."""

    steps: int
    calls: int
    """Model calls among them, those inside of replayed steps included."""
    unknown: int = 0
    """Calls whose tokens the provider had not told."""
    models: tuple[Usage, ...] = ()
    """Sums by provider and model."""


class WaitInfo(Struct, frozen=True, kw_only=True):
    """What a run waits for: the moment of a timer, a signal, or a person's answer."""

    request: str = ""
    """Id by which an answer names the request: derived from branch and key, so that it survives a crash."""
    until: float | None = None
    """Seconds since 1970-01-01 UTC: when the timer fires, or the request lapses; ``None``: never."""
    question: str = ""
    choices: tuple[str, ...] = ()
    """What may be answered; empty for yes and no, or whatever fits `schema`."""
    schema: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """JSON schema of the answer."""
    shown: tuple[OutputItem, ...] = ()
    """What was shown with the question: that is what is approved."""
    shown_digest: str = ""


class Beat(Struct, frozen=True, kw_only=True):
    """A sign of life of a body."""

    details: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """JSON that the next attempt may read: how far this one came."""


class Progress(Struct, frozen=True, kw_only=True):
    """How far something is, for people.

    >>> str(Progress(done=3, total=10, text="pages")), str(Progress(done=0.5)), str(Progress(done=7, text="rows"))
    ('3/10 pages', '0.5', '7 rows')
    """

    done: float
    total: float | None = None
    text: str = ""

    def __str__(self) -> str:
        count = f"{self.done:g}" if self.total is None else f"{self.done:g}/{self.total:g}"
        return f"{count} {self.text}".rstrip()


class Signal(Struct, frozen=True, kw_only=True):
    """A value sent to a run from outside. It waits in the log's inbox until the run asks for it."""

    id: str
    """Made by the sender: the same signal that is sent twice counts once."""
    run: str
    branch: str = ""
    """The branch that it is for; empty: the first one that the run will have."""
    name: str = ""
    """Of the signal that `wait_for` asks for; empty for the answer to a request."""
    request: str = ""
    """Of an answer: the `WaitInfo.request` that it answers. Of a cancellation: the child run that it is for."""
    child: str = ""
    """Path of the child run whose wait it is for, or its id where several have that path; empty: whichever wait of the
    run is the first."""
    value: msgspec.Raw = msgspec.Raw(b"null")
    """JSON."""
    by: str = ""
    """Who sent it."""
    via: str = ""
    """From where: see `Receipt`."""
    sent: float = 0.0
    """Seconds since 1970-01-01 UTC."""


class Receipt(Struct, frozen=True, kw_only=True):
    """Which signal ended a wait: who sent it, when, and from where."""

    signal: str
    """Id that its sender gave it."""
    by: str = ""
    via: str = ""
    """``cell``, ``panel``, ``command line``, ``magic`` or ``python``."""
    sent: float = 0.0
    """Seconds since 1970-01-01 UTC."""


class Adopted(Struct, frozen=True, kw_only=True):
    """A result taken over from the branch of origin."""

    execution: str
    """Execution that recorded the result first."""
    seq: int
    """Its completion (or failure) event there."""
    payload: Payload | None = None
    error: ErrorInfo | None = None
    usage: Usage | None = None
    """Of a model call: what it had used. It was billed there, not again."""
    wait: WaitInfo | None = None
    """Of a wait: what it had waited for."""
    receipt: Receipt | None = None
    """Of a wait that a signal had ended: which one."""
    compensation: Compensation | None = None
    """What undoes it; absent if it was undone already."""


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


class About(Struct, frozen=True, kw_only=True):
    """A step that a person is asked about."""

    step: int
    """Seq of its start."""
    name: str
    n: int = 0
    """Its number among equal calls."""
    origin: bool = False
    """It is a step of the branch of origin."""
    kind: str = ""
    """Of a wait: ``timer``, ``signal`` or ``approval``."""


class Outcome(Struct, frozen=True, kw_only=True):
    """How an execution ended."""

    status: Literal["completed", "failed", "interrupted", "stopped", "decided", "parked", "cancelled", "undone",
                    "continued"]  # fmt: skip
    """``stopped``: it needs a person (decision, in doubt, nondeterminism); nothing is lost. ``parked``: it waits for a
    signal or a timer, and goes on when its cell runs again. ``cancelled``: somebody has cancelled the run from outside;
    it goes on only when somebody has resumed it. ``undone``: it wrote down that the branch is undone.
    ``continued``: the branch has come to its end, and the run goes on with what it hands on, on a new one."""
    error: ErrorInfo | None = None
    failed: tuple[int, ...] = ()
    """Steps (seq of their start) whose failure itself ended the execution; only these are tried again."""
    inputs: dict[str, str] = {}
    """Digests of the mutable inputs at the end, to tell own mutations from edits."""
    state: dict[str, tuple[str, str]] = {}
    """Globals that only steps change -> digest at the end and at the start, to the same purpose."""
    replayed: int = 0
    live: int = 0
    about: tuple[About, ...] = ()
    """Steps that a person is asked about, before the run can go on."""
    carried: Carried | None = None
    """Of a branch that is continued: what it hands on."""
    shown: str = ""
    """Of a sample: the last expression of the cell, as text."""
    cancelled: Cancellation | None = None
    """Who has cancelled the run."""
    undone: Undone | None = None


class OutputItem(Struct, frozen=True, kw_only=True):
    """One piece of output that a step wrote."""

    kind: Literal["stdout", "stderr", "display"]
    text: str = ""
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """For ``display``: the MIME bundle."""
