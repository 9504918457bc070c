"""What all shapes have in common, and the words for how things stand."""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = 1
"""Version of the shapes."""


class Shape(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all shapes."""


RunStatus = Literal[
    "running",
    "completed",
    "failed",
    "interrupted",
    "stopped",
    "decided",
    "parked",
    "cancelled",
    "undone",
    "continued",
]
"""``interrupted``: by the stop button, or the kernel died; ``stopped``: it needs a person; ``decided``: the execution
only wrote down what a person decided (never the status of a run or branch); ``undone``: a person has undone the
branch."""

StepStatus = Literal[
    "running", "waiting", "in_doubt", "interrupted", "completed", "failed", "cancelled", "not_stored", "adopted"
]
"""``in_doubt``: begun, and its end is not known. ``not_stored``: done, and its value could not be stored. ``adopted``:
its result was taken over from the branch of origin. ``interrupted``: a child run without an end, in a run that nobody
executes."""


class Problem(Shape, frozen=True, kw_only=True):
    """The body of every answer with a status of 400 and above."""

    format: int = FORMAT
    message: str
    """A sentence for people: what happened, and what to do."""
    reason: str = ""
    """The words of the HTTP status."""
    error: str = ""
    """Class of the error, such as ``BranchBusy``; ``docs/errors.md`` explains each. Empty for what the server itself
    refuses."""
    facts: dict[str, str | int | float | bool | None] = {}
    """What is known of the place: ``run``, ``branch``, ``step``, ``pid``, ``file``, ``line`` and so on."""


class Failure(Shape, frozen=True, kw_only=True):
    """An error that was recorded, in short."""

    type: str
    """Qualified name of its class."""
    message: str


class Totals(Shape, frozen=True, kw_only=True):
    """Sums over a branch. ``spend`` tells billed from wasted; these come for nothing with each page."""

    steps: int
    by_status: dict[str, int]
    """`StepStatus` -> how many."""
    calls: int
    """Attempts of model calls that told what they used."""
    tokens: int
    cost: float
    unpriced: int
    """Calls among them without a known price."""
    unknown: int
    """Attempts of model calls that ended and did not tell what they used."""
    replayed_calls: int
    """Model calls that executions took from history instead of buying them, and what they had cost."""
    replayed_tokens: int
    replayed_cost: float


class UsageItem(Shape, frozen=True, kw_only=True):
    """Tokens and money; ``null``: not told, which is not 0."""

    provider: str
    model: str
    input: int | None
    output: int | None
    cached: int | None
    cache_write: int | None
    reasoning: int | None
    cost: float | None
    """US dollars."""


class NoticeItem(Shape, frozen=True, kw_only=True):
    """Something that the user was told once."""

    kind: str
    message: str
    names: list[str]
