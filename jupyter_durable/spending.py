"""The bill: what model calls cost, what was saved, what was wasted; by run, cell, step, notebook, day or model.

It reads the view ``spend`` of the log, so it is true across crashes, retries and branches, with or without a kernel.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, cast, get_args

from jupyter_durable import errors
from jupyter_durable.client import connect, directory
from jupyter_durable.engine.tally import money, tokens_text

By = Literal["run", "notebook", "cell", "branch", "step", "day", "model", "all"]
"""What the bill may be added up by."""

_GROUPS: dict[str, str] = {
    "run": "run_name",
    "notebook": "notebook",
    "cell": "concat_ws(' ', run_name, nullif(cell, ''))",
    "branch": "concat_ws(' · ', run_name, branch_name)",
    "step": "concat_ws(' · ', run_name, branch_name, concat_ws(' ', coalesce(step, 'replayed'), seq))",
    "day": "CAST(day AS VARCHAR)",
    "model": "coalesce(nullif(concat_ws(' ', nullif(provider, ''), nullif(model, '')), ''), 'unknown')",
    "all": "'all'",
}


@dataclass(frozen=True, slots=True)
class Amount:
    """A sum over calls; tokens and dollars over those that told them."""

    calls: int
    unknown: int
    """Calls that did not tell their tokens."""
    tokens: int
    cost: float
    """US dollars, over the calls with a known price."""
    unpriced: int
    """Calls that told their tokens and have no known price."""

    def __str__(self) -> str:
        if not self.calls and not self.tokens:
            return ""
        said = []
        if self.cost:
            said.append(money(self.cost))
        if self.tokens and (self.unpriced or not self.cost):
            said.append(f"{tokens_text(self.tokens)} tokens")
        elif not self.cost and self.calls > self.unknown:
            said.append(money(0))
        if self.unknown:
            said.append(f"{self.unknown} unknown")
        return ", ".join(said)


@dataclass(frozen=True, slots=True)
class BillRow:
    """One line of the bill."""

    what: str
    """The run, day, model and so on that it is about."""
    billed: Amount
    """Charged, and its answer is in use."""
    wasted: Amount
    """Charged, or perhaps charged, and of no use: in doubt, retried, on an abandoned branch."""
    replayed: Amount
    """Taken from history instead of being bought."""


def bill(path: str | os.PathLike[str] | None = None, by: By = "run", run: str = "") -> list[BillRow]:
    """What model calls have cost. The provider charged ``billed`` and ``wasted`` together.

    Args:
        path: the log directory, or the folder that holds ``.durable``; default: that of the current folder.
        by: what to add up by.
        run: id of a run, to look at that one alone.

    Returns:
        The lines, the dearest first; for ``by="day"`` and ``by="step"`` in order of time.

    Raises:
        UsageError: the bill cannot be added up by that.
    """
    if by not in _GROUPS:
        raise errors.UsageError(f"A bill is added up by {', '.join(get_args(By))}, not by `{by}`.")
    sums = ", ".join(
        f"coalesce(sum(calls) FILTER (kind = '{kind}'), 0), coalesce(sum(unknown) FILTER (kind = '{kind}'), 0), "
        f"coalesce(sum(coalesce(input, 0) + coalesce(output, 0)) FILTER (kind = '{kind}'), 0), "
        f"coalesce(sum(cost) FILTER (kind = '{kind}'), 0), "
        f"coalesce(sum(calls) FILTER (kind = '{kind}' AND cost IS NULL AND unknown = 0), 0)"
        for kind in ("billed", "wasted", "replayed")
    )
    order = "min(time)" if by in ("day", "step") else "sum(cost) FILTER (kind <> 'replayed') DESC NULLS LAST, what"
    query = f"SELECT {_GROUPS[by]} AS what, {sums} FROM spend WHERE $run IN ('', run) GROUP BY what ORDER BY {order}"  # noqa: S608 - texts of our own
    with connect(path) as connection:
        rows = connection.execute(query, {"run": run}).fetchall()
    return [BillRow(str(row[0]), _amount(row[1:6]), _amount(row[6:11]), _amount(row[11:16])) for row in rows]


def _amount(row: tuple[object, ...]) -> Amount:
    calls, unknown, tokens, cost, unpriced = cast("tuple[int, int, int, float, int]", row)
    return Amount(int(calls), int(unknown), int(tokens), float(cost), int(unpriced))


def spent_elsewhere(path: str | os.PathLike[str] | None, notebook: str, branch: str) -> tuple[float, int]:
    """Dollars and tokens that all branches of a notebook but one have spent; 0 where there is no log yet.

    Args:
        path: the log directory.
        notebook: durable id of the notebook; empty: the whole log.
        branch: id of the branch that is left out.
    """
    if not (os.path.isdir(directory(path))):  # noqa: PTH112 - may be no path at all, such as "memory:"
        return 0.0, 0
    with connect(path) as connection:
        row = connection.execute(
            "SELECT coalesce(sum(s.cost), 0), coalesce(sum(coalesce(s.input, 0) + coalesce(s.output, 0)), 0) "
            "FROM spend s JOIN executions x ON x.execution = s.execution "
            "WHERE s.kind <> 'replayed' AND $notebook IN ('', x.notebook) AND s.branch <> $branch",
            {"notebook": notebook, "branch": branch},
        ).fetchall()[0]
    return float(row[0]), int(row[1])
