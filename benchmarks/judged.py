"""What a workload is: cases that are measured, the table that is printed of them, and targets.

A workload is a set of cases, one for each subject, that are measured in turns: round after round, forwards and
backwards, each in a fresh process and a fresh directory. What disturbs the machine for a while disturbs all alike.
Ratios are taken inside of a round and then their median, so that a slow minute of the disk drops out.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks.measure import Numbers

RIVALS = ("DBOS", "LangGraph @task", "LangGraph graph", "joblib")


@dataclass(frozen=True)
class Case:
    """One subject in a workload."""

    name: str
    subject: str
    job: str
    params: dict[str, Any]
    repeats: int = 5
    prepare: str = ""
    """Job that leaves a directory, of which each repeat gets a copy. It runs once, on the RAM disk."""
    ram: bool = False
    timeout: float = 900.0
    count_flushes: int = 0
    """Steps with which flushes are counted; 0: not counted."""


@dataclass(frozen=True)
class Column:
    """A number of the table."""

    number: str
    heading: str
    form: str = ",.1f"
    scale: float = 1.0


@dataclass
class Results:
    """The samples of a workload, by case and round."""

    samples: dict[str, list[Numbers]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    duels: list[list[list[float]]] = field(default_factory=list)
    """Seconds of the bursts of bare and ours, for each pair of processes."""

    def median(self, case: str, number: str) -> float | None:
        """Median of a number over the repeats of a case."""
        found = [sample[number] for sample in self.samples.get(case, ()) if number in sample]
        return statistics.median(found) if found else None

    def ratio(self, case: str, other: str, number: str) -> float | None:
        """Median over the rounds of one case's number in multiples of another's in the same round."""
        pairs = zip(self.samples.get(case, ()), self.samples.get(other, ()), strict=False)
        found = [one[number] / two[number] for one, two in pairs if number in one and two.get(number)]
        return statistics.median(found) if found else None

    def in_turns(self) -> float | None:
        """Median over all bursts of ours in multiples of the bare one beside it."""
        found = [
            ours / bare for bare_side, our_side in self.duels for bare, ours in zip(bare_side, our_side, strict=True)
        ]
        return statistics.median(found) if found else None

    def best(self, number: str, *, highest: bool = False, among: tuple[str, ...] = RIVALS) -> tuple[str, float] | None:
        """The best rival and its number."""
        found = [(name, value) for name in among if (value := self.median(name, number)) is not None]
        if not found:
            return None
        return (max if highest else min)(found, key=lambda pair: pair[1])


@dataclass(frozen=True)
class Target:
    """One line of the table of targets."""

    what: str
    limit: float
    measured: Callable[[Results], float | None]
    form: str = ",.1f"
    unit: str = ""
    sense: Literal["at most", "at least"] = "at most"
    rival: Callable[[Results], tuple[str, float] | None] = lambda _: None

    def met(self, value: float) -> bool:
        """Whether a value keeps the target."""
        return value <= self.limit if self.sense == "at most" else value >= self.limit


@dataclass(frozen=True)
class Workload:
    """Cases that are measured in turns, and what is asked of them."""

    key: str
    title: str
    why_fair: str
    cases: list[Case]
    columns: list[Column]
    targets: list[Target]
    bare: str = ""
    """Number whose ratio to the case ``bare`` is shown."""
    best: str = ""
    """Number whose ratio to the best rival is shown."""
    highest: bool = False
    """The higher the better."""
    duel: tuple[int, int] | None = None
    """Steps a burst and bursts, for ours and the bare disk in turns; gives ``x bare`` of ours."""


def median_of(case: str, number: str) -> Callable[[Results], float | None]:
    """The median of a number of a case, once it is measured."""
    return lambda results: results.median(case, number)


def best_of(number: str, *, highest: bool = False) -> Callable[[Results], tuple[str, float] | None]:
    """The best rival in a number, once it is measured."""
    return lambda results: results.best(number, highest=highest)
