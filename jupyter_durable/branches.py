"""Which branch an execution takes up: continue one, make one from another, or begin at the root. Pure.

The same cell with the same code and inputs as an earlier branch continues or replays *that* branch: topic A, then
B, then A again pays for A once. Else the branch that shares most is the origin of a new one.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from jupyter_durable.event_data import ExecutionHeader, Outcome


class Execution(msgspec.Struct, frozen=True):
    """What is known of one execution without reading what lies between its first and its last line."""

    header: ExecutionHeader
    outcome: Outcome | None
    running: bool


class BranchView(msgspec.Struct):
    """One branch, as the executions on it show it."""

    branch: str
    name: str
    executions: list[Execution] = msgspec.field(default_factory=list)

    @property
    def first(self) -> ExecutionHeader:
        """Its first line: what it was made of."""
        return self.executions[0].header

    @property
    def newest(self) -> Execution:
        """The newest execution that ran the cell (not one that only wrote down a decision)."""
        return next((e for e in reversed(self.executions) if e.header.purpose == "run"), self.executions[-1])

    @property
    def completed(self) -> bool:
        """Whether the cell came to its end on this branch."""
        outcome = self.newest.outcome
        return outcome is not None and outcome.status == "completed"


class Wanted(msgspec.Struct, frozen=True):
    """What the cell is today and what its user asked for."""

    code: str
    inputs: dict[str, str]
    fresh: bool = False
    from_step: str = ""
    branch: str = ""
    """Name of the branch to take, if the user names one."""
    binds: frozenset[str] = frozenset()
    """Names that the cell's own code binds: where an execution began without one, it is what an earlier one left."""
    pass_id: str = ""
    """The pass, for a headless execution; empty when a person runs the cell."""


class Choice(msgspec.Struct, frozen=True):
    """The branch to take up.

    ``take``: continue or replay this branch. Else a new branch is made, from ``origin`` if there is one.
    """

    take: BranchView | None
    origin: BranchView | None
    reason: str
    restored: bool = False
    """Inputs differ from the start of the branch only by what the branch's last execution did to them."""


def group(executions: Iterable[Execution]) -> list[BranchView]:
    """Branches of a run in order of their making."""
    found: dict[str, BranchView] = {}
    for execution in executions:
        header = execution.header
        view = found.setdefault(header.branch, BranchView(header.branch, header.branch_name))
        view.executions.append(execution)
    return list(found.values())


def same_inputs(old: dict[str, str], new: dict[str, str], binds: frozenset[str] = frozenset()) -> bool:
    """Whether inputs agree; what is not comparable (``?TYPE``) is no difference by itself.

    >>> same_inputs({"topic": "a1", "client": "?OpenAI"}, {"topic": "a1", "client": "?Azure"})
    True
    """
    return not changed_inputs(old, new, binds)


def changed_inputs(old: dict[str, str], new: dict[str, str], binds: frozenset[str] = frozenset()) -> list[str]:
    """Names whose values differ, sorted. A name that the cell itself binds is no input where it was not there."""
    return sorted(
        name
        for name in old.keys() | new.keys()
        if (a := old.get(name, "")) != (b := new.get(name, ""))
        and not (a.startswith("?") and b.startswith("?"))
        and not (name in binds and name not in old)
    )


def left_by_itself(branch: BranchView, inputs: dict[str, str], binds: frozenset[str] = frozenset()) -> bool:
    """Whether today's inputs are exactly what the branch's last execution left, and no edit by a person."""
    newest = branch.newest
    if newest.outcome is None or not newest.outcome.inputs:
        return False
    return same_inputs({**newest.header.inputs, **newest.outcome.inputs}, inputs, binds)


def choose(branches: list[BranchView], wanted: Wanted) -> Choice:
    """Decide which branch to take up.

    Args:
        branches: the branches of the run, oldest first (see `group`).
        wanted: today's code, inputs and flags.

    Returns:
        The choice, with the reason in words.
    """
    if wanted.branch:
        branches = [b for b in branches if b.name == wanted.branch]
    mine = [b for b in branches if wanted.pass_id in ("", b.newest.header.pass_id)]
    equal = [b for b in mine if _equal(b, wanted)]
    newest = equal[-1] if equal else None
    flag = {"fresh": "1"} if wanted.fresh else {"from": wanted.from_step} if wanted.from_step else {}
    if flag and newest is not None and not newest.completed and flag.items() <= newest.first.flags.items():
        return Choice(newest, None, "continues the branch that the flag began")
    if wanted.fresh:
        return Choice(None, None, "asked for a fresh branch")
    if wanted.from_step:
        origin = newest or _closest(mine, wanted)
        return Choice(None, origin, f"asked to start again from `{wanted.from_step}`")
    if newest is not None:
        restored = not same_inputs(newest.newest.header.inputs, wanted.inputs, wanted.binds)
        return Choice(newest, None, "same code and inputs", restored)
    origin = _closest(mine, wanted)
    if origin is None:
        return Choice(None, None, "the first branch" if not branches else "a new pass")
    return Choice(None, origin, why_new(origin, wanted))


def why_new(origin: BranchView, wanted: Wanted) -> str:
    """What differs from the branch of origin, in words."""
    header = origin.newest.header
    changed = changed_inputs(header.inputs, wanted.inputs, wanted.binds)
    said = ["the cell's code changed"] if header.code != wanted.code else []
    if changed:
        said.append("changed: " + ", ".join(f"`{name}`" for name in changed))
    return "; ".join(said) or "differs"


def _equal(branch: BranchView, wanted: Wanted) -> bool:
    header = branch.newest.header
    if header.code != wanted.code:
        return False
    return same_inputs(header.inputs, wanted.inputs, wanted.binds) or left_by_itself(
        branch, wanted.inputs, wanted.binds
    )


def _closest(branches: list[BranchView], wanted: Wanted) -> BranchView | None:
    """The branch that shares most: inputs first (they tell topics apart), then code, then age."""

    def score(indexed: tuple[int, BranchView]) -> tuple[int, bool, int]:
        index, branch = indexed
        header = branch.newest.header
        return (-len(changed_inputs(header.inputs, wanted.inputs, wanted.binds)), header.code == wanted.code, index)

    return max(enumerate(branches), key=score)[1] if branches else None
