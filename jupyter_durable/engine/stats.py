"""What happened in an execution so far, for the summary of a cell and for *why*."""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from jupyter_durable.engine.tally import Tally
from jupyter_durable.event_data import Usage

Status = Literal[
    "replayed", "adopted", "live", "failed", "cancelled", "interrupted", "not stored", "running", "waiting"
]
"""What became of a step in this execution; ``live``: really executed, to its end. ``waiting``: it is a wait."""


class StepRow(msgspec.Struct):
    """One step as the summary of a cell shows it."""

    number: int
    name: str
    status: Status
    seconds: float = 0.0
    why: str = ""
    kind: str = "step"
    usage: Usage | None = None
    progress: str = ""
    """How far its body says that it is."""
    beat: float = -1.0
    """When its body was heard of last."""


class Stats(msgspec.Struct):
    """Counts, the last rows, and what the user is to be told."""

    replayed: int = 0
    adopted: int = 0
    live: int = 0
    """Steps that were really executed (each counts once, whatever its attempts)."""
    failed: int = 0
    spent: Tally = msgspec.field(default_factory=Tally)
    """What model calls of this execution used."""
    rows: deque[StepRow] = msgspec.field(default_factory=lambda: deque(maxlen=10_000))
    progress: str = ""
    """How far the glue code says that it is."""
    progress_written: float = float("-inf")
    """When that was written down last, by the monotonic clock."""
    notices: list[str] = msgspec.field(default_factory=list)
    shown: str = ""
    """The last expression of a sampled cell, as text."""

    @property
    def steps(self) -> int:
        """All steps that the program asked for."""
        return self.replayed + self.adopted + self.live
