"""Sums of what model calls used: tokens, money, and how much of it nobody told."""

from __future__ import annotations

import msgspec

from jupyter_durable.entries import Entry
from jupyter_durable.event_data import Saved, Usage
from jupyter_durable.history import History
from jupyter_durable.keys import inner_scope, parent_scope


class Tally(msgspec.Struct):
    """A running sum over model calls.

    >>> tally = Tally()
    >>> tally.add(Usage(input=1200, output=340, cost=0.0125))
    >>> tally.add(None)
    >>> tally.text()
    '$0.01 (1 call of unknown use)'
    """

    calls: int = 0
    unknown: int = 0
    """Calls whose tokens were not told."""
    unpriced: int = 0
    """Calls with known tokens and without a known price."""
    input: int = 0
    output: int = 0
    cost: float = 0.0
    """US dollars, over the calls whose price is known."""

    def add(self, usage: Usage | None) -> None:
        """Add a call."""
        self.calls += 1
        if usage is None or (usage.input is None and usage.output is None):
            self.unknown += 1
            return
        self.input += usage.input or 0
        self.output += usage.output or 0
        if usage.cost is None:
            self.unpriced += 1
        else:
            self.cost += usage.cost

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input + self.output

    def text(self) -> str:
        """The sum as people say it: money if every known call has a price, else tokens."""
        if self.unpriced or (not self.cost and self.tokens):
            said = f"{tokens_text(self.tokens)} tokens"
            if self.cost:
                said += f", {money(self.cost)} of them priced"
        elif self.calls > self.unknown:
            said = money(self.cost)
        else:
            return f"{self.unknown} call{'s' * (self.unknown != 1)} of unknown use" if self.unknown else ""
        return said + (f" ({self.unknown} call{'s' * (self.unknown != 1)} of unknown use)" if self.unknown else "")


def money(usd: float) -> str:
    """US dollars, with as many digits as say something.

    >>> money(0.0412), money(12.5), money(0.00031), money(0.00002), money(0)
    ('$0.04', '$12.50', '$0.0003', 'under $0.0001', '$0.00')
    """
    if usd >= 0.01 or not usd:
        return f"${usd:.2f}"
    return f"${usd:.4f}" if usd >= 0.0001 else "under $0.0001"


def tokens_text(count: int) -> str:
    """A number of tokens, short.

    >>> tokens_text(840), tokens_text(12_400), tokens_text(3_200_000)
    ('840', '12.4k', '3.2M')
    """
    if count < 10_000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


class Savings:
    """What an execution replayed and so did not buy; those of a replayed outer step are the calls inside it."""

    def __init__(self) -> None:
        self.total = Tally()
        self._steps = 0
        self._calls = 0
        self._unknown = 0
        self._models: dict[tuple[str, str], Usage] = {}
        self._inside: dict[int, dict[str, list[Entry]]] = {}

    def add(self, history: History, entry: Entry) -> None:
        """Count a step that was handed out of a history."""
        self._steps += 1
        if not history.models:
            return
        if entry.kind == "model":
            self._call(entry)
            return
        inside = self._inside.get(id(history))
        if inside is None:
            inside = self._inside[id(history)] = _by_scope(history.models)
        for call in inside.get(inner_scope(entry.key), ()):
            if call.end > entry.failed_at:  # else the answer of an attempt that failed: bought, and of no use
                self._call(call)

    def _call(self, entry: Entry) -> None:
        if entry.state != "completed":
            return
        usage = entry.usage
        self._calls += 1
        self.total.add(usage)
        if usage is None or (usage.input is None and usage.output is None):
            self._unknown += 1
            return
        known = self._models.get((usage.provider, usage.model))
        self._models[usage.provider, usage.model] = usage if known is None else _sum(known, usage)

    def take(self) -> Saved | None:
        """What was not yet written down, if there is a model call in it; it then counts as written."""
        if not self._calls:
            return None
        said = Saved(steps=self._steps, calls=self._calls, unknown=self._unknown, models=tuple(self._models.values()))
        self._steps = self._calls = self._unknown = 0
        self._models.clear()
        return said


def _by_scope(models: list[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in models:
        scope = entry.key.scope
        while scope:
            found.setdefault(scope, []).append(entry)
            scope = parent_scope(scope)
    return found


def _sum(a: Usage, b: Usage) -> Usage:
    def both(x: float | None, y: float | None) -> float | None:
        return None if x is None and y is None else (x or 0) + (y or 0)

    counts = {name: both(getattr(a, name), getattr(b, name)) for name in _COUNTS}
    return Usage(provider=a.provider, model=a.model, prices=a.prices or b.prices, **counts)  # type: ignore[arg-type]


_COUNTS = ("input", "output", "cached", "cache_write", "reasoning", "cost")
