"""What a branch is to the panel, piece by piece: steps beyond their `Entry`, stretches that were read, sums."""

from __future__ import annotations

import msgspec

from jupyter_durable.call import RUN
from jupyter_durable.child_runs import was_cancelled
from jupyter_durable.comparing import NO_DIGEST
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import Head, Usage
from jupyter_durable.log.listing import Entry as Listed
from jupyter_durable.log.reader import Places, Position


class Track(msgspec.Struct, eq=False, gc=False):
    """What a row tells beyond its `Entry`."""

    entry: Entry
    cell: str
    started: float
    began: float
    """When its newest attempt began."""
    parent: int = -1
    changed: int = -1
    ended: float = -1.0
    seconds: float = -1.0
    line: int = 0
    provider: str = ""
    model: str = ""
    told: bool = False
    """Whether the newest attempt has told what it used."""
    outputs: int = 0
    missed: str = ""
    """What was said of its body since it was last heard of."""
    value: bytes = NO_DIGEST
    """Digest of the stored value."""
    events: tuple[int, ...] = ()
    """Seq of every event that concerns it."""
    waits: int = 0
    """Of a child run: how many waits inside of it nothing has ended yet."""


class Segment(msgspec.Struct, eq=False):
    """A stretch of the branch: one execution, as far as it has been read."""

    entry: Listed
    upto: Head | None
    secret: bytes | None
    first: int = -1
    last: int = -1
    """Seq of the last event read."""
    position: Position | None = None
    """Where the journal was left; ``None`` if the execution is read from the database."""
    checked: bool = False
    """Whether what lies in the database was verified."""
    places: Places = msgspec.field(default_factory=Places)

    @property
    def execution(self) -> str:
        """Its id."""
        return self.entry.header.execution

    @property
    def whole(self) -> bool:
        """Whether everything that the branch has of it was read."""
        return self.last >= (self.entry.last.seq if self.upto is None else self.upto.seq)


class Sum(msgspec.Struct, eq=False):
    """Calls, tokens and money, as they come."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    unknown: int = 0

    def add(self, usage: Usage, calls: int = 1) -> None:
        """Count what was told."""
        self.calls += calls
        self.tokens += (usage.input or 0) + (usage.output or 0)
        self.cost += usage.cost or 0.0
        self.unpriced += usage.cost is None


BEGUN = "begun"
"""The state of a child run that has no end: its code runs again with its cell, so it is never in doubt."""


def raw_state(track: Track) -> str:
    """The state of a step, with adoption, waiting and open child runs as ones of their own."""
    entry = track.entry
    if entry.kind == RUN and entry.state in ("open", "interrupted"):
        return "waiting" if track.waits else BEGUN
    if entry.kind == RUN and was_cancelled(entry):
        return "cancelled"
    if entry.waits:
        return "waiting"
    return "adopted" if entry.adopted is not None and entry.seq == entry.end else entry.state
