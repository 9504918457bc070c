"""Budgets: how much money, how many tokens, how many steps a run may spend. Reading one is pure.

A budget counts what its branch has spent live, over all its executions: what is in doubt counts with the most it may
have cost, what is replayed does not count. Each call reserves the most it can cost before it is made. Raising the
number and running the cell again goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_durable.errors import BudgetExceeded, RunStopped, UsageError

if TYPE_CHECKING:
    from jupyter_durable.entries import Entry  # `%load_ext` reads this file
    from jupyter_durable.event_data import Carried

COUNTED = ("step", "model", "tool")
"""Kinds of steps that a budget of steps counts; clocks and random numbers cost nothing."""

_PART = re.compile(r"(\$?)\s*(\d+(?:\.\d+)?|\.\d+)\s*(k|m)?\s*(usd|\$|dollars?|tokens?|steps?)?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be spent; ``None``: no limit of that kind."""

    usd: float | None = None
    tokens: int | None = None
    steps: int | None = None

    @property
    def of_models(self) -> bool:
        """Whether it limits what model calls use."""
        return self.usd is not None or self.tokens is not None

    def __str__(self) -> str:
        said = []
        if self.usd is not None:
            said.append(f"{self.usd:g}usd")
        if self.tokens is not None:
            said.append(f"{self.tokens} tokens")
        if self.steps is not None:
            said.append(f"{self.steps} step{'s' * (self.steps != 1)}")
        return ", ".join(said) or "none"


def parse_budget(text: str) -> Budget:
    """Read a budget.

    Args:
        text: limits, separated by commas: ``2usd``, ``$0.50``, ``50k tokens``, ``1.5m tokens``, ``40 steps``.

    Raises:
        UsageError: it cannot be meant.

    >>> parse_budget("2usd"), str(parse_budget("50k tokens, 40 steps"))
    (Budget(usd=2.0, tokens=None, steps=None), '50000 tokens, 40 steps')
    """
    found: dict[str, float] = {}
    for part in text.replace("+", ",").split(","):
        match = _PART.fullmatch(part.strip())
        unit = _unit(match)
        if match is None or not unit or unit in found:
            raise UsageError(
                f"`{text}` is no budget. Say how much of what: `2usd`, `50k tokens`, `40 steps`, or several with "
                f"commas between them, each kind once."
            )
        amount = float(match[2]) * _FACTORS[(match[3] or "").lower()]
        if unit != "usd" and not amount.is_integer():
            raise UsageError(f"`{part.strip()}`: {unit} are counted in whole numbers.")
        found[unit] = amount
    tokens, steps = found.get("tokens"), found.get("steps")
    return Budget(found.get("usd"), None if tokens is None else int(tokens), None if steps is None else int(steps))


def _unit(match: re.Match[str] | None) -> str:
    if match is None:
        return ""
    word = (match[4] or "").lower()
    if match[1]:
        return "usd" if not word else ""
    return "usd" if word in {"usd", "$", "dollar", "dollars"} else f"{word.rstrip('s')}s" if word else ""


def executed(entries: Iterable[Entry]) -> int:
    """How many steps a branch has executed, of those that count."""
    return sum(1 for e in entries if e.adopted is None and e.kind in COUNTED)


class StepCount:
    """Counts the steps that a branch has executed, against a limit."""

    def __init__(self, budget: Budget, entries: Iterable[Entry], carried: Carried | None = None) -> None:
        self._budget = budget
        self.count = 0
        self._over = "this branch" + (" and those that it goes on from" if carried is not None else "")
        if budget.steps is not None:
            self.count = executed(entries) + (carried.steps if carried is not None else 0)

    def one_more(self, kind: str, label: str, where: str) -> None:
        """Count a step that is about to be executed for the first time.

        Raises:
            RunStopped: it would be one too many, with `BudgetExceeded`.
        """
        limit = self._budget.steps
        if limit is None or kind not in COUNTED:
            return
        if self.count >= limit:
            raise RunStopped(
                BudgetExceeded(
                    f"{where}: its budget of {self._budget} is used up: {self.count} steps were executed on "
                    f"{self._over}, over all executions. {label} was not executed. Raise the number and run it again "
                    f"to go on from here.",
                    budget=str(self._budget),
                    spent=f"{self.count} steps",
                    next=label,
                )
            )
        self.count += 1
