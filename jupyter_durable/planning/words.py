"""The words of a plan: what will become of a recorded step, and the sums over all of them."""

from __future__ import annotations

from typing import Literal

import msgspec

from jupyter_durable.engine.tally import Tally

Fate = Literal["replay", "again", "reuse", "ask", "settle", "stop"]
"""``replay``: its result comes back. ``again``: it is executed again. ``reuse``: it comes after a difference, and is
used if it is asked the same. ``ask``: it comes after a difference, and a person is asked. ``settle``: its end is not
known, or its value is not stored, and a person is asked. ``stop``: a flag, or another kernel, stops the cell there."""

FATES: dict[Fate, str] = {
    "replay": "replay",
    "again": "again",
    "reuse": "reuse if asked the same",
    "ask": "ask you",
    "settle": "settle first",
    "stop": "stop",
}
"""How people read them."""

STOPS: tuple[Fate, ...] = ("ask", "settle", "stop")
"""Fates at which the cell ends before any effect."""


class PlannedStep(msgspec.Struct):
    """One recorded step, and what will become of it."""

    number: int
    name: str
    kind: str
    inside: str
    """The scope in which it was asked; empty for the cell itself."""
    fate: Fate
    why: str
    used: Tally
    """What its model calls had used: what is saved, or bought again."""
    sure: bool = True
    """It will be asked for, as far as the cell takes the same way again. Else it comes after a difference."""

    @property
    def what(self) -> str:
        """Its fate as people read it: ``again: in doubt``."""
        return f"again: {self.why}" if self.fate == "again" else FATES[self.fate]


class Plan(msgspec.Struct):
    """What running a cell again would replay, and what it would buy."""

    name: str
    branch: str
    """Name of the branch that is taken up, or made."""
    does: str
    """What happens to that branch, in words."""
    steps: list[PlannedStep] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    unknown: str = ""
    """What cannot be known before the cell runs."""

    def of(self, *fates: Fate) -> list[PlannedStep]:
        """The steps with one of these fates."""
        return [step for step in self.steps if step.fate in fates]

    @property
    def saved(self) -> Tally:
        """What is replayed instead of being bought."""
        return _sum(step.used for step in self.of("replay"))

    @property
    def at_least(self) -> Tally:
        """What is certainly bought: recorded use of what is asked again before anything stops the cell."""
        return _sum(step.used for step in self._certain())

    @property
    def at_most_more(self) -> Tally:
        """What is bought on top of it if every step that could be reused is asked something else."""
        certain = {id(step) for step in self._certain()}
        nothing = {"replay", "stop"}
        return _sum(step.used for step in self.steps if step.fate not in nothing and id(step) not in certain)

    def _certain(self) -> list[PlannedStep]:
        found = []
        for step in self.steps:
            if step.fate in STOPS:
                break
            if step.fate == "again" and step.sure:
                found.append(step)
        return found

    def totals(self) -> str:
        """The plan in one line.

        >>> steps = [PlannedStep(1, "ask", "step", "", "replay", "", Tally())]
        >>> Plan("report", "main", "is replayed", steps).totals()
        'report · main · 1 replayed'
        """
        counts = [
            (len(self.of("replay")), "replayed"),
            (len(self.of("again")), "again"),
            (len(self.of("reuse")), "reused if asked the same"),
            (len(self.of("ask", "settle")), "to be decided by you"),
            (len(self.of("stop")), "not executed"),
        ]
        parts = [f"{count} {what}" for count, what in counts if count]
        said = [
            f"{text} {what}"
            for tally, what in (
                (self.saved, "saved"), (self.at_least, "to buy at least"), (self.at_most_more, "more at most"),
            )
            if (text := tally.text())
        ]  # fmt: skip
        return " · ".join([self.name, self.branch, *([", ".join(parts)] if parts else []), *said])


def _sum(tallies: object) -> Tally:
    total = Tally()
    for tally in tallies:  # type: ignore[attr-defined]
        for name in Tally.__struct_fields__:
            setattr(total, name, getattr(total, name) + getattr(tally, name))
    return total
