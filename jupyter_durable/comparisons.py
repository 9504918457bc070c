"""Two branches of a run, side by side, read from the log: which steps are the same, what differs, what each cost.

Values stay as they are stored: their text is shown, and nothing is loaded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from jupyter_durable import errors
from jupyter_durable.branches import BranchView, group
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.comparing import Verdict, digest, origin_of, pair, text_of
from jupyter_durable.engine import payloads
from jupyter_durable.engine.setting import shown
from jupyter_durable.engine.tally import Tally, money, tokens_text
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import Payload
from jupyter_durable.history import History
from jupyter_durable.log.base import EventLog

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One step of two branches, side by side. What one of them does not have is ``None``."""

    verdict: Verdict
    """``equal``; another ``value``; another end (``status``); a call of the same name at the same place with other
    ``arguments``; ``only_a``; ``only_b``."""
    name: str
    scope: str
    kind: str
    number_a: int | None
    number_b: int | None
    status_a: str | None
    status_b: str | None
    value_a: str | None
    """Its stored text, cut where it is long."""
    value_b: str | None
    tokens_a: int | None
    """Billed on this branch; what was taken over from another one is not billed again."""
    tokens_b: int | None
    cost_a: float | None
    """US dollars, as far as prices are known."""
    cost_b: float | None


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two branches."""

    branch: str
    name: str
    forked: str
    """Where it was forked, in words; empty if it was not."""
    set: str
    """What was set for it, in words."""
    spent: Tally
    """What was billed on it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two branches: their steps in order of ``b``; what is only in ``a`` stands where it stood there."""

    run: str
    run_name: str
    a: Side
    b: Side
    rows: list[DiffRow]

    def __iter__(self) -> Iterator[DiffRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> how many rows."""
        found: dict[str, int] = {}
        for row in self.rows:
            found[row.verdict] = found.get(row.verdict, 0) + 1
        return found

    @property
    def more(self) -> str:
        """What ``b`` was billed more than ``a``, or less, in words; empty if nothing was billed."""
        a, b = self.a.spent, self.b.spent
        if not (a.calls or b.calls):
            return ""
        cost, tokens = b.cost - a.cost, b.tokens - a.tokens
        said = [f"{_sign(cost)}{money(abs(cost))}"] if a.cost or b.cost else []
        return ", ".join([*said, f"{_sign(tokens)}{tokens_text(abs(tokens))} tokens"])


def _sign(number: float) -> str:
    return "-" if number < 0 else "+"


class _Step(msgspec.Struct):
    entry: Entry
    value: bytes
    payload: Payload | None


def diff(log: EventLog, run: str, a: str = "", b: str = "") -> Comparison:
    """Compare two branches of a run, step by step.

    Args:
        log: where the run is.
        run: id of the run.
        a: name or id of a branch; default: the one that ``b`` comes from.
        b: name or id of a branch; default: the newest.

    Returns:
        The rows, and what each branch cost.

    Raises:
        UsageError: there is no such branch, or only one.

    >>> from jupyter_durable.log import open_log
    >>> diff(open_log("memory:"), "0a1b")
    Traceback (most recent call last):
    jupyter_durable.errors.UsageError: There is no run with the id 0a1b in this log.
    """
    records = log.executions(run)
    if not records:
        raise errors.UsageError(f"There is no run with the id {run} in this log.")
    branches = group(Seen(r.header, r.outcome, r.running) for r in records)
    right = _named(branches, b or records[-1].header.branch)
    left = _named(branches, a) if a else origin_of(right, branches)
    first, second = _steps(log, left), _steps(log, right)
    return Comparison(
        run,
        right.first.name,
        _side(left, first, branches),
        _side(right, second, branches),
        [_row(each.a, each.b, each.verdict) for each in pair(first, second)],
    )


def diff_frame(log: EventLog, run: str, a: str = "", b: str = "") -> pandas.DataFrame:
    """The same as a pandas DataFrame, one row for each step, with the fields of `DiffRow` as columns.

    Raises:
        UsageError: there is no such branch, or only one; or pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise errors.UsageError(
            'A DataFrame needs pandas, which is not installed here: `pip install "jupyter_durable[pandas]"`. '
            "`client.diff` gives the same rows without it."
        ) from None
    names = [field.name for field in dataclasses.fields(DiffRow)]
    return pandas.DataFrame([dataclasses.asdict(row) for row in diff(log, run, a, b)], columns=names)


def _named(branches: list[BranchView], name: str) -> BranchView:
    found = next((view for view in branches if name in (view.name, view.branch)), None)
    if found is None:
        raise errors.UsageError(f"The run has no branch `{name}`. Its branches: {', '.join(v.name for v in branches)}.")
    return found


def _steps(log: EventLog, view: BranchView) -> list[_Step]:
    entries = sorted(History(log.history(view.branch)).entries.values(), key=lambda entry: entry.begun)
    found = []
    for entry in entries:
        payload = payloads.of(entry, log) if entry.state == "completed" else None
        found.append(_Step(entry, digest(payload, entry.kind), payload))
    return found


def _side(view: BranchView, steps: list[_Step], branches: list[BranchView]) -> Side:
    spent = Tally()
    for step in steps:
        for usage in step.entry.billed:
            spent.add(usage)
    return Side(view.branch, view.name, forked(view, branches), shown(view.first.set), spent)


def forked(view: BranchView, branches: list[BranchView]) -> str:
    """Where a branch was forked, in words; empty if it was not."""
    header = view.first
    if header.fork is None or header.origin is None:
        return ""
    before = next((each.name for each in branches if header.origin.branch == each.branch), header.origin.branch)
    name = header.fork.name if header.fork.n == 0 else f"{header.fork.name}#{header.fork.n}"
    return f"forked from {before} at {name} (step {header.fork.at}) by {header.fork.by}"


def _row(a: _Step | None, b: _Step | None, verdict: Verdict) -> DiffRow:
    one = b or a
    assert one is not None
    key = one.entry.key
    name = key.name if key.n == 0 else f"{key.name}#{key.n}"
    return DiffRow(
        verdict, name, key.scope, one.entry.kind, *_both(a, b, lambda s: s.entry.begun),
        *_both(a, b, _status), *_both(a, b, lambda s: text_of(s.payload, kind=s.entry.kind)),
        *_both(a, b, lambda s: _billed(s).tokens), *_both(a, b, lambda s: _billed(s).cost),
    )  # fmt: skip


def _both(a: _Step | None, b: _Step | None, what: Any) -> tuple[Any, Any]:
    return (None if a is None else what(a), None if b is None else what(b))


def _status(step: _Step) -> str:
    entry = step.entry
    if entry.waits:
        return "waiting"
    if entry.adopted is not None and entry.seq == entry.end:
        return "kept"
    return "in doubt" if entry.state in ("open", "interrupted") else entry.state.replace("_", " ")


def _billed(step: _Step) -> Tally:
    tally = Tally()
    for usage in step.entry.billed:
        tally.add(usage)
    return tally
