"""The vocabulary of replay: the place of a call, the call, the verdicts about it, the policy of an execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from jupyter_durable import errors
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import RequestInfo
from jupyter_durable.keys import Key, inner_scope, make_key

Reuse = Literal["ask", "all", "pure", "none"]
"""What a person said about finished steps after a difference; ``ask``: nothing yet."""

OnCodeChange = Literal["rerun", "reuse", "error"]
"""What its author has said, beforehand, becomes of a finished step whose own code has changed."""

ORDINARY = frozenset({"step", "tool"})
"""Kinds of steps that may read what others write, so that a difference before them or in their code is one for them."""


HELPERS = frozenset({"now", "random", "uuid"})
"""Kinds of steps that are what they are by their place alone: the words for clocks and chance."""


RUN = "run"
"""Kind of the entry of a child run. Its code always runs, so there is nothing that could be in doubt or reused."""


WAITS = frozenset({"timer", "signal", "approval"})
"""Kinds of steps that end by themselves or from outside; there is no body that could be in doubt."""


class Place:
    """Where calls are made: the cell, a task or thread that it started, or the body of a step.

    Numbers are taken here, at the call and before the first await, so they do not depend on who finishes first.
    """

    __slots__ = (
        "_children",
        "_occurrences",
        "bound",
        "failed_at",
        "is_step",
        "key",
        "loose",
        "parent",
        "passes_on",
        "path",
        "retried",
        "tainted",
    )

    def __init__(self, path: str = "", parent: Place | None = None, *, is_step: bool = False) -> None:
        self.path = path
        self.parent = parent
        self.is_step = is_step
        self.bound: str | None = "" if parent is None else None
        """The recorded scope that this place has turned out to be; ``None`` until its first match."""
        self.loose: bool = parent.loose if parent is not None else False
        """In a thread: which thread takes which work is for the operating system to say, and differs each time."""
        self.tainted: bool = parent.tainted if parent is not None else False
        self.passes_on = False
        """Nobody says when it ends, so a difference that it meets is at once one of its parent."""
        self.key: Key | None = None
        """For the body of a step: the step's key."""
        self.retried: frozenset[int] = frozenset()
        """For the body of a step: inner steps whose failure ended an earlier attempt of this execution."""
        self.failed_at = -1
        """For the body of a step: seq at which its last attempt of this execution failed."""
        self._children: dict[str, int] = {}
        self._occurrences: dict[tuple[str, str], int] = {}

    def child(self, what: str, *, loose: bool = False) -> Place:
        """The place of a task or thread; ``what`` is its function and the digest of its arguments."""
        what = what.replace("/", "|").replace(".", ",")
        k = self._children.get(what, 0)
        self._children[what] = k + 1
        element = f"{what}.{k}"
        child = Place(f"{self.path}/{element}" if self.path else element, self)
        child.loose = child.loose or loose
        return child

    def body(self, key: Key) -> Place:
        """The place of the body of a step that was called here; a fresh one for every attempt."""
        place = Place(inner_scope(key), self, is_step=True)
        place.key = key
        if self.bound is not None:
            place.key = key._replace(scope=self.bound)
            place.bound = inner_scope(place.key)
        return place

    def occurrence(self, name: str, digest: str) -> int:
        """How many equal calls were made here before; counts this one."""
        what = (name, digest)
        n = self._occurrences.get(what, 0)
        self._occurrences[what] = n + 1
        return n

    def taint(self) -> None:
        """Mark that what happens here from now on comes after a difference."""
        self.tainted = True
        if self.passes_on and self.parent is not None:
            self.parent.taint()

    def finished(self) -> None:
        """The task or body has ended and its result may be consumed by whoever started it."""
        if self.tainted and self.parent is not None:
            self.parent.tainted = True


class Call(msgspec.Struct):
    """A step call as replay sees it."""

    place: Place
    name: str
    digest: str
    n: int
    evidence: str = ""
    kind: str = "step"
    pure: bool = False
    at_most_once: bool = False
    rerun: Literal["ask", "always", "reuse"] = "ask"
    on_code_change: OnCodeChange | None = None

    request: RequestInfo | None = None
    """Of a captured model call: what it asks."""
    differs: Callable[[Entry], str] | None = None
    """Of a captured model call: says in what a recorded one asked for something else."""
    key: Key = Key("", "", "", 0)
    """The key under which the call is looked up, and a live execution of it recorded."""

    def __post_init__(self) -> None:
        place = self.place
        scope = place.bound if place.bound is not None else place.path
        self.key = make_key((scope, self.name, self.digest, self.n))

    @property
    def label(self) -> str:
        """The call as people say it."""
        return f"`{self.name}`" if self.n == 0 else f"`{self.name}#{self.n}`"


class Recorded(msgspec.Struct, frozen=True):
    """Return (or raise) what the branch's own history holds."""

    entry: Entry
    why: str = "recorded"


class Adopt(msgspec.Struct, frozen=True):
    """Take over what the branch of origin holds, and write that down."""

    entry: Entry
    why: str
    evidence: str = ""
    """The code for which somebody has said that the result holds; empty: the code that made it."""


class Execute(msgspec.Struct, frozen=True):
    """Run the body."""

    why: str = ""
    """Empty for a step that is simply new."""
    entry: Entry | None = None
    """The unfinished entry that this execution continues, if there is one."""
    instead_of: Entry | None = None
    """The recorded entry whose place this call takes: the same name with other arguments."""


class Branch(msgspec.Struct, frozen=True):
    """The own history was made by other code or inputs than today's: go on, on a branch made from it."""

    reason: str
    entry: Entry | None = None
    """The recorded entry that the call differs from, if it is one of the same name."""


class Stop(msgspec.Struct, frozen=True):
    """Nothing may be executed before a person has decided."""

    error: type[errors.ReplayError | errors.ValueNotStored | errors.BranchBusy]
    message: str
    entries: tuple[Entry, ...] = ()
    asks: bool = False
    """With ``--replay-only``: without the flag a person would be asked here, and nothing executed either."""


class Later(msgspec.Struct, frozen=True):
    """Ask again when the asynchronous call is begun: calls made until then may account for what is recorded."""


Verdict = Recorded | Adopt | Execute | Branch | Stop | Later

NEW = Execute()
"""The commonest verdict: nobody knows the call."""

LATER = Later()


class Policy(msgspec.Struct):
    """What the user asked of this execution as a whole."""

    replay_only: bool = False
    strict: bool = False
    reuse: Reuse = "ask"
    from_step: str = ""
    """Name (or number) of the step from which on nothing is reused."""
    fork_at: int = -1
    """Number, in the branch of origin, of the step at which a person has forked it; -1: nobody did, or it is past."""
    causes: tuple[str, ...] = ()
    """Nondeterministic calls found in the cell's glue code, for messages."""
    mentions: frozenset[str] = frozenset()
    """Names that the cell's code mentions, to see which recorded steps it may still ask for."""
    origin_runs: bool = False
    """The branch of origin is alive in another execution: what it has begun is running there, not in doubt."""
    reused_names: dict[str, Reuse] = msgspec.field(default_factory=dict)
    """Decisions about single steps, by name."""
    in_script: bool = False
    """The run is a ``with durable.run(...)`` block, whose code is not recorded."""
    by_flag: bool = False
    """`reuse` was said for this very execution, by a flag."""
