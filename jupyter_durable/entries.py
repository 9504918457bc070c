"""An *entry* of a history: one step of the program, as the events that belong to it have left it."""

from __future__ import annotations

from typing import Literal

import msgspec

from jupyter_durable.event_data import (
    Adopted,
    ErrorInfo,
    Notice,
    OutputItem,
    Payload,
    Progress,
    Receipt,
    Settlement,
    Unstored,
    Usage,
    WaitInfo,
)
from jupyter_durable.keys import Key
from jupyter_durable.stored import Compensation

State = Literal["open", "completed", "not_stored", "failed", "cancelled", "interrupted"]
"""How the newest intent of an entry ended; ``open``: it has no end (in doubt, unless it runs right now)."""


class Entry(msgspec.Struct, eq=False, gc=False):
    """One step of the program as history knows it.

    It is part of no cycle, so the garbage collector need not visit it: a history may hold 100,000 of them.
    """

    key: Key
    begun: int
    """Seq of the first intent: the step's place in the order of starts, and its number for people."""
    seq: int
    """Seq of the newest intent."""
    execution: str
    """Execution that wrote the newest intent or the end."""
    evidence: str
    kind: str
    pure: bool
    state: State = "open"
    end: int = -1
    """Seq of the end; -1 while there is none."""
    attempts: int = 0
    """Attempts that failed."""
    tried: int = 0
    """Those of them since it last failed for good: what its retries have used up."""
    failed_at: int = -1
    """Seq at which the last of them failed."""
    billed: tuple[Usage, ...] = ()
    """What each attempt of a model call used, as far as it was told."""
    why: str = ""
    """Why it was executed or taken over; empty for a step that was simply new."""
    payload: Payload | None = None
    error: ErrorInfo | None = None
    unstored: Unstored | None = None
    settlement: Settlement | None = None
    adopted: Adopted | None = None
    caused_by: tuple[int, ...] = ()
    inner_failures: frozenset[int] = frozenset()
    """Inner steps whose failure ended an earlier attempt: they are tried again, not raised again."""
    wait: WaitInfo | None = None  # of a wait: what for
    receipt: Receipt | None = None  # of a wait that has ended by a signal: which one
    beat: float = -1.0  # when its body was heard of last (seconds since 1970-01-01 UTC); -1: not in this attempt
    details: msgspec.Raw | None = None  # what the body said about itself last, for its next attempt
    progress: Progress | None = None
    outputs: tuple[OutputItem, ...] = ()
    notices: tuple[Notice, ...] = ()
    compensation: Compensation | None = None  # what undoes it

    @property
    def label(self) -> str:
        """The step as people say it: ``search`` or ``search#2`` for the third equal call, and its number."""
        name = self.key.name if self.key.n == 0 else f"{self.key.name}#{self.key.n}"
        return f"`{name}` (step {self.begun})"

    @property
    def finished(self) -> bool:
        """The body has run to an end that counts: a value, or a value that could not be stored."""
        return self.state in ("completed", "not_stored")

    @property
    def usage(self) -> Usage | None:
        """Of a model call: what its last answer used, wherever it was billed; ``None`` where that is unknown."""
        if self.billed:
            return self.billed[-1]
        return self.adopted.usage if self.adopted is not None else None

    @property
    def between_attempts(self) -> bool:
        """Its newest attempt has failed and another was to come: no body was running when its execution ended."""
        return self.state in ("open", "interrupted") and self.failed_at > self.seq

    @property
    def waits(self) -> bool:
        """It is a wait that nothing has ended yet."""
        return self.wait is not None and self.state == "open"

    def __repr__(self) -> str:
        return f"<Entry {self.label} in {self.key.scope or 'cell'}: {self.state}>"


class Effect(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One completion of a step that can be undone. A step that was executed twice has had two."""

    entry: Entry
    compensation: Compensation
    payload: Payload | None
    execution: str
    """Execution that wrote its end, and the seq there: a long history is read without values."""
    end: int
    step: int
    """Seq of its intent."""
