"""Two branches of a run, side by side."""

from __future__ import annotations

from jupyter_durable.branches import BranchView
from jupyter_durable.comparing import origin_of, pair
from jupyter_durable.errors import UsageError
from jupyter_durable.server.listing import branch_item
from jupyter_durable.server.logs import LogView, branch_of, branches_of, newest_of, records_of
from jupyter_durable.server.pages import row, totals
from jupyter_durable.server.place import NotHere
from jupyter_durable.server.shapes import Diff, DiffRow


def diff(
    view: LogView, run: str, a: str = "", b: str = "", *, after: int = 0, limit: int = 1000, changed: bool = False
) -> Diff:
    """Answer to GET diff.

    Args:
        view: the log.
        run: id of the run.
        a: name or id of a branch; empty: the one that ``b`` comes from.
        b: name or id of a branch; empty: the newest.
        after: rows to leave out at the beginning.
        limit: rows at most.
        changed: leave out what is equal.
    """
    with view.looking() as listing:
        records = records_of(listing, run)
        branches = branches_of(records)
        right = branch_of(branches, b) if b else newest_of(branches, records)
        left = branch_of(branches, a) if a else _origin(right, branches)
        # The lock of the log is one that a thread may take twice, and both branches are kept meanwhile.
        with view.branch(listing, left.branch) as (first, _), view.branch(listing, right.branch) as (second, _):
            pairs = pair(list(first.tracks.values()), list(second.tracks.values()))
            counts: dict[str, int] = {}
            for each in pairs:
                counts[each.verdict] = counts.get(each.verdict, 0) + 1
            shown = [each for each in pairs if each.verdict != "equal"] if changed else pairs
            running_a, running_b = (_running(branch) for branch in (left, right))
            return Diff(
                log=view.name,
                run=run,
                a=branch_item(left, branches, records),
                b=branch_item(right, branches, records),
                rows=[
                    DiffRow(
                        a=None if each.a is None else row(each.a, running_a),
                        b=None if each.b is None else row(each.b, running_b),
                        verdict=each.verdict,
                    )
                    for each in shown[after : after + limit]
                ],
                next=after + limit if limit and after + limit < len(shown) else None,
                counts=counts,
                totals_a=totals(first, running_a),
                totals_b=totals(second, running_b),
                untrusted=first.untrusted or second.untrusted,
            )


def _origin(branch: BranchView, branches: list[BranchView]) -> BranchView:
    try:
        return origin_of(branch, branches)
    except UsageError as error:
        raise NotHere(str(error)) from None


def _running(branch: BranchView) -> str:
    return branch.newest.header.execution if branch.newest.running else ""
