"""Two branches of a run, side by side."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

import msgspec

from jupyter_durable.branches import BranchView
from jupyter_durable.server.index import BranchIndex
from jupyter_durable.server.listing import branch_item
from jupyter_durable.server.logs import LogView, branch_of, branches_of, newest_of, records_of
from jupyter_durable.server.pages import row, totals
from jupyter_durable.server.place import NotHere
from jupyter_durable.server.shapes import Diff, DiffRow
from jupyter_durable.server.tracks import Track

Verdict = Literal["equal", "value", "status", "arguments", "only_a", "only_b"]


class Pair(msgspec.Struct, frozen=True):
    """A step of one branch and its like in the other."""

    a: Track | None
    b: Track | None
    verdict: Verdict


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
            pairs = pair(first, second)
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
    """The branch that another is compared with unasked.

    Raises:
        NotHere: there is no other.
    """
    origin = branch.first.origin
    others = [each for each in branches if each.branch != branch.branch]
    found = next((each for each in others if origin is not None and each.branch == origin.branch), None)
    if found is None and others:
        earlier = branches[: branches.index(branch)]
        found = earlier[-1] if earlier else others[-1]
    if found is None:
        raise NotHere("The run has only one branch, so there is nothing to compare it with.")
    return found


def _running(branch: BranchView) -> str:
    return branch.newest.header.execution if branch.newest.running else ""


def pair(a: BranchIndex, b: BranchIndex) -> list[Pair]:
    """The steps of both branches, matched: by key, then by name at the same place; in order of ``b``."""
    by_key = {track.entry.key: track for track in a.tracks.values()}
    matched: dict[int, Track] = {}
    taken: set[int] = set()
    for track in b.tracks.values():
        same = by_key.get(track.entry.key)
        if same is not None:
            matched[track.entry.begun] = same
            taken.add(same.entry.begun)
    waiting: dict[tuple[str, str, str], list[Track]] = defaultdict(list)
    for track in reversed(a.tracks.values()):
        if track.entry.begun not in taken:
            waiting[_place(track)].append(track)
    for track in b.tracks.values():
        if track.entry.begun not in matched and (rest := waiting.get(_place(track))):
            found = rest.pop()
            matched[track.entry.begun] = found
            taken.add(found.entry.begun)
    return _in_order(a, b, matched, taken)


def _place(track: Track) -> tuple[str, str, str]:
    """What a call of other arguments has in common with one: the tasks and steps around it by name, and its name."""
    scope = "/".join(element.partition(":")[0] for element in track.entry.key.scope.split("/"))
    return scope, track.entry.key.name, track.entry.kind


def _in_order(a: BranchIndex, b: BranchIndex, matched: dict[int, Track], taken: set[int]) -> list[Pair]:
    alone = [track for track in a.tracks.values() if track.entry.begun not in taken]
    found: list[Pair] = []
    place = 0
    for track in b.tracks.values():
        same = matched.get(track.entry.begun)
        while same is not None and place < len(alone) and alone[place].entry.begun < same.entry.begun:
            found.append(Pair(alone[place], None, "only_a"))
            place += 1
        found.append(Pair(same, track, "only_b" if same is None else _verdict(same, track)))
    return found + [Pair(track, None, "only_a") for track in alone[place:]]


def _verdict(a: Track, b: Track) -> Verdict:
    if a.entry.key != b.entry.key:
        return "arguments"
    if a.entry.state != b.entry.state:  # an adopted step has the state that it had where it comes from
        return "status"
    return "equal" if a.value == b.value else "value"
