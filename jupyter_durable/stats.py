"""What happened in an execution so far, for the summary of a cell and for *why*."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["replayed", "adopted", "live", "failed", "cancelled", "interrupted", "not stored", "running"]
"""What became of a step in this execution; ``live``: really executed, to its end."""


@dataclass(slots=True)
class StepRow:
    """One step as the summary of a cell shows it."""

    number: int
    name: str
    status: Status
    seconds: float = 0.0
    why: str = ""


@dataclass(slots=True)
class Stats:
    """Counts, the last rows, and what the user is to be told."""

    replayed: int = 0
    adopted: int = 0
    live: int = 0
    """Steps that were really executed (each counts once, whatever its attempts)."""
    failed: int = 0
    rows: deque[StepRow] = field(default_factory=lambda: deque(maxlen=10_000))
    notices: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """All steps that the program asked for."""
        return self.replayed + self.adopted + self.live
