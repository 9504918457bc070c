"""What the engine asks of a log: one protocol, kept by every storage and proved by one contract suite.

A log holds executions; an execution is one writer's stretch of one branch. The engine never sees
journals, databases or blobs, only `EventLog`, `Writer` and the records of this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

import msgspec

from jupyter_durable.event_data import ExecutionHeader, Head, Outcome, Signal
from jupyter_durable.events import AnyEvent, Recorded

Durability = Literal["power", "process"]
"""``power``: survives loss of power (flushed before each effect). ``process``: survives the death of the process."""


class Holder(msgspec.Struct, frozen=True):
    """Who holds a branch, as far as is known."""

    pid: int
    host: str
    notebook: str
    since: float
    """Seconds since 1970-01-01 UTC."""


class ExecutionRecord(msgspec.Struct, frozen=True):
    """One execution as a listing shows it; made without reading what lies between its first and last line."""

    header: ExecutionHeader
    started: float
    last: Head
    """The last whole line: what a following execution continues."""
    outcome: Outcome | None
    """``None`` while it runs, and for ever if it was killed."""
    ended: float | None
    running: bool
    """Its branch is locked and it is the newest execution of the branch and has no outcome."""
    folded: bool
    """The whole execution lies in the database and its journal is gone."""
    torn: int = 0
    """Bytes of a torn last line that were left out."""


class Writer(Protocol):
    """Appends the events of one execution. Safe to call from several threads."""

    @property
    def execution(self) -> str:
        """Id of the execution that it writes."""
        ...

    @property
    def head(self) -> Head:
        """The last line written."""
        ...

    def append(self, event: AnyEvent) -> int:
        """Write one event and return its seq. After return it survives the death of the process.

        Raises:
            LogUnusable: the file system refused (full, read-only, gone). Nothing of the event counts as written,
                and every later append raises too.
        """
        ...

    def flush(self) -> None:
        """Make everything appended so far survive loss of power. Returns at once if nothing is unflushed."""
        ...

    def put_blob(self, content: bytes, digest: str = "") -> str:
        """Store (compressed if that helps) and flush a blob, return its digest. Equal content is stored once.

        ``digest`` may be given where it is known already.
        """
        ...

    def close(self) -> None:
        """Flush, release the branch, close files. Idempotent."""
        ...


class EventLog(Protocol):
    """A store of histories. Opening one runs nothing and loads no value."""

    @property
    def location(self) -> str:
        """Where it is, in words for people."""
        ...

    def executions(self, run: str | None = None) -> list[ExecutionRecord]:
        """All executions (of a run), oldest first. Only first and last lines are read: damage between them raises in
        `history`. A journal whose first line cannot be read is left out of the full list, and `damage` names it.

        Raises:
            LogDamaged, LogTooNew: ``run`` is given, and there is a journal that cannot be told to be another run's.
                An answer without it could make a run start from nothing and pay for everything again.
        """
        ...

    def damage(self) -> list[str]:
        """Sentences about files that cannot be read whole, for ``doctor`` and listings."""
        ...

    def history(self, branch: str) -> Iterator[Recorded]:
        """Events of a branch in order of seq, verified: the chain of executions is followed back to the root.

        Lines that a later execution does not continue (*late* lines) are left out. A branch that does not exist has
        no events. The iterator verifies as it goes, so what it raises may come after events: act on none of them
        before it is over.

        A long history (above 16 MiB) comes *lean*: a `StepCompleted` may have a payload whose ``data`` and ``blob``
        are both unset. The engine indexes what it iterates (the seq of starts and ends by key), keeps no payloads,
        and asks `reload` for the one event whose value it is about to decode. The execution to name there is that of
        the last `ExecutionStarted` that the iterator gave before the event.

        Raises:
            LogDamaged, LogTooNew, LogUntrusted.
        """
        ...

    def reload(self, execution: str, seq: int) -> Recorded:
        """One event again, with its payload whole.

        Raises:
            LogDamaged: it is not there (any more).
        """
        ...

    def point(self, execution: str, seq: int) -> Head:
        """The head that a fork from the middle of an execution names: its line ``seq``.

        Raises:
            LogDamaged: there is no such line.
        """
        ...

    def begin(self, header: ExecutionHeader) -> Writer:
        """Take the branch and write the first line (ExecutionStarted with ``header``, seq ``head.seq + 1`` or 0).

        The log fills in ``header.key``. ``header.head`` must be the last line of the branch, as `executions` lists it;
        for the first execution of a branch it may be any line of another one (see `point`).

        Raises:
            BranchBusy: another live execution holds the branch (at once, never after waiting), or one has gone on with
                it since ``header.head`` was read.
            LogDamaged: a journal that may belong to the branch cannot be read.
            LogUnusable: nothing can be written here.
        """
        ...

    def holder(self, branch: str) -> Holder | None:
        """Who holds the branch right now; ``None`` if nobody does. Takes no lock."""
        ...

    def read_blob(self, digest: str) -> bytes:
        """Content of a blob, verified against its digest.

        Raises:
            LogDamaged: it is missing or changed.
        """
        ...

    def post(self, signal: Signal) -> bool:
        """Put a signal into the inbox of its run; after return it survives loss of power.

        Anybody may post at any time: the run need not be running, nor exist yet. A signal is never taken out; the run
        records which ones it has used.

        Returns:
            Whether it is new: false if one with this id was posted to the run before, which then stands.

        Raises:
            LogUnusable: nothing can be written here.
        """
        ...

    def signals(self, run: str) -> list[Signal]:
        """The signals that were posted to a run, oldest first. What is not signed with the user's key is left out."""
        ...

    def posted(self, run: str) -> int:
        """A number that changes when something is posted to the run: asking for it costs next to nothing."""
        ...

    def fold(self) -> int:
        """Move what journals hold into the place that is queried; return the number of events moved."""
        ...
