"""What an examination finds: one sentence, how serious it is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "problem"]

FEW = 10
"""Findings of one kind that are listed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    """``ok``; ``note``: good to know; ``problem``: something does not work until it is dealt with."""
    what: str
    """What was found, as a sentence."""
    advice: str = ""
    """What to do; empty if nothing is to be done, or if ``what`` says it."""


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "event"), counted(3, "event")
    ('1 event', '3 events')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
