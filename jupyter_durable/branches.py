"""Which branch an execution takes up: continue one, make one from another, or begin at the root. Pure.

The same cell with the same code and inputs as an earlier branch continues or replays *that* branch: topic A, then
B, then A again pays for A once. Else the branch that shares most is the origin of a new one.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from jupyter_durable.event_data import Cancellation, ExecutionHeader, Outcome
from jupyter_durable.stored import Undone


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
    claimed: int = -1
    """Place, among all executions of the run, of the newest one that made this branch or chose it: of branches that fit
    equally well, the one that was made or chosen last is taken up."""
    claim: int = 0
    """The same place, among the executions of the branch."""

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

    @property
    def continued(self) -> bool:
        """Whether the cell has ended this branch, to go on anew on another."""
        outcome = self.newest.outcome
        return outcome is not None and outcome.status == "continued"

    @property
    def cancelled(self) -> Cancellation | None:
        """Who has cancelled the run on this branch, as long as nobody has resumed it."""
        for execution in reversed(self.executions):
            if execution.header.resumed:
                return None
            if execution.outcome is not None and execution.outcome.cancelled is not None:
                return execution.outcome.cancelled
        return None

    @property
    def used_cancellations(self) -> set[str]:
        """Ids of the signals that have cancelled the run on this branch, resumed since or not."""
        outcomes = (execution.outcome for execution in self.executions)
        return {o.cancelled.signal for o in outcomes if o is not None and o.cancelled is not None}

    @property
    def undone(self) -> Undone | None:
        """Who has undone it, and when; ``None`` if nobody has."""
        said = (e.outcome.undone for e in reversed(self.executions) if e.outcome is not None)
        return next((undone for undone in said if undone is not None), None)

    @property
    def runs_since(self) -> list[Execution]:
        """Executions of the cell since the branch was made or chosen, it itself included."""
        return [e for e in self.executions[self.claim :] if e.header.purpose == "run"]

    @property
    def asked_for(self) -> bool:
        """Whether a person has forked or chosen this branch, and the cell has not come to its end on it since.

        One that was made from such a branch, by an edit, goes on with the values that the person has set.
        """
        header = self.executions[self.claim].header
        by_person = header.purpose == "decide" or bool(header.set)
        return by_person and not any(e.outcome and e.outcome.status == "completed" for e in self.runs_since)


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
    asked_for: str = ""
    """Id of the branch that a person has forked or chosen, if the cell is to take it up."""
    untouched: bool = False
    """No step was executed or taken over on that branch yet."""
    sample: int = 0
    """Number of the sample, from 1; 0: the cell is not sampled."""
    after: str = ""
    """Id of the branch that has just ended, to go on anew."""
    sample_of: str = ""
    """Id of the branch that is the first sample of the set; empty for the first one."""


class Choice(msgspec.Struct, frozen=True):
    """The branch to take up.

    ``take``: continue or replay this branch. Else a new branch is made, from ``origin`` if there is one, or with what
    ``continues`` has handed on.
    """

    take: BranchView | None
    origin: BranchView | None
    reason: str
    restored: bool = False
    """Inputs differ from the start of the branch only by what the branch's last execution did to them."""
    continues: BranchView | None = None
    """The new branch goes on from the end of this one, by ``durable.continue_as_new``."""


def group(executions: Iterable[Execution]) -> list[BranchView]:
    """Branches of a run in order of their making."""
    found: dict[str, BranchView] = {}
    for place, execution in enumerate(executions):
        header = execution.header
        view = found.setdefault(header.branch, BranchView(header.branch, header.branch_name))
        if not view.executions or header.switched:
            view.claimed, view.claim = place, len(view.executions)
        view.executions.append(execution)
    return list(found.values())


def asked_for(branches: list[BranchView]) -> BranchView | None:
    """The branch that a person has forked or chosen, as long as the cell has not come to its end on it."""
    last = max(branches, key=lambda b: b.claimed, default=None)
    return last if last is not None and last.asked_for else None


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
    if wanted.sample:
        return _sample(branches, wanted)
    if wanted.after:
        return _after(branches, wanted)
    gone_on = {b.first.continues for b in branches}
    choice = _choose(branches, wanted, gone_on)
    view = choice.take or choice.origin
    ended = view is not None and view.continued and view.branch not in gone_on
    begun_anew = choice.take is None and wanted.from_step  # from a step of this very branch
    return choice if view is None or not ended or begun_anew else _going_on(view, wanted)


def _choose(branches: list[BranchView], wanted: Wanted, gone_on: set[str]) -> Choice:
    if wanted.branch:
        branches = [b for b in branches if b.name == wanted.branch]
    mine = [b for b in branches if wanted.pass_id in ("", b.newest.header.pass_id) or b.branch == wanted.asked_for]
    if not wanted.branch:  # a branch that the run has gone on from is past
        mine = [b for b in mine if b.branch not in gone_on or b.branch == wanted.asked_for]
    equal = [b for b in mine if _equal(b, wanted)]
    newest = max(equal, key=lambda b: b.claimed, default=None)
    flag = {"fresh": "1"} if wanted.fresh else {"from": wanted.from_step} if wanted.from_step else {}
    if flag and newest is not None and not newest.completed and flag.items() <= newest.first.flags.items():
        return Choice(newest, None, "continues the branch that the flag began")
    if wanted.fresh:
        return Choice(None, None, "asked for a fresh branch")
    if wanted.from_step:
        origin = newest or _closest(mine, wanted)
        return Choice(None, origin, f"asked to start again from `{wanted.from_step}`")
    chosen = next((b for b in branches if b.branch == wanted.asked_for), None)
    if chosen is not None and newest is not chosen:
        if wanted.untouched and chosen.first.fork is not None:
            return Choice(chosen, None, "a person made this branch")
        if not chosen.runs_since:
            return Choice(None, chosen, why_new(chosen, wanted))
    if newest is not None:
        restored = not same_inputs(newest.newest.header.inputs, wanted.inputs, wanted.binds)
        return Choice(newest, None, "same code and inputs", restored)
    origin = _closest(mine, wanted)
    if origin is None:
        return Choice(None, None, "the first branch" if not branches else "a new pass")
    return Choice(None, origin, why_new(origin, wanted))


def _going_on(ended: BranchView, wanted: Wanted) -> Choice:
    """A new branch with what this one has handed on. What the cell did to its inputs belongs to the one that ended."""
    restored = left_by_itself(ended, wanted.inputs, wanted.binds)
    return Choice(None, None, f"goes on with what `{ended.name}` has handed on", restored, ended)


def _after(branches: list[BranchView], wanted: Wanted) -> Choice:
    """The branch after one that has just ended: on a replay there is one already."""
    successors = [b for b in branches if b.first.continues == wanted.after]
    if not successors:
        return _going_on(next(b for b in branches if b.branch == wanted.after), wanted)
    newest = max((b for b in successors if _equal(b, wanted)), key=lambda b: b.claimed, default=None)
    if newest is not None:
        return _taken(newest, wanted)
    return Choice(None, successors[-1], why_new(successors[-1], wanted))


def _sample(branches: list[BranchView], wanted: Wanted) -> Choice:
    """The branch of one sample. All are fresh: they share nothing with each other, nor with any other branch."""
    fresh = Choice(None, None, f"sample {wanted.sample}")
    sets = sample_sets(branches)
    if wanted.sample > 1:
        mine = sets.get(wanted.sample_of, {}).get(wanted.sample)
        return fresh if mine is None or not _equal(mine, wanted) else _taken(mine, wanted)
    for numbered in reversed(sets.values()):
        first = numbered.get(1)
        if first is None or wanted.pass_id not in ("", first.newest.header.pass_id):
            continue
        header = first.newest.header
        left = any(left_by_itself(b, wanted.inputs, wanted.binds) for b in numbered.values())
        if header.code != wanted.code or not (left or same_inputs(header.inputs, wanted.inputs, wanted.binds)):
            continue
        if wanted.fresh and (is_whole(numbered) or not first.first.flags.get("fresh")):
            return fresh
        return _taken(first, wanted)
    return fresh


def _taken(branch: BranchView, wanted: Wanted) -> Choice:
    restored = not same_inputs(branch.newest.header.inputs, wanted.inputs, wanted.binds)
    return Choice(branch, None, "same code and inputs", restored)


def sample_sets(branches: list[BranchView]) -> dict[str, dict[int, BranchView]]:
    """Sets of samples: the id of the branch of the first sample -> number -> branch; the oldest set first."""
    sets: dict[str, dict[int, BranchView]] = {}
    for branch in branches:
        sample = branch.first.sample
        if sample is not None:
            sets.setdefault(sample.first, {})[sample.number] = branch
    return sets


def is_whole(numbered: dict[int, BranchView]) -> bool:
    """Whether all samples of a set have come to their end."""
    of = max(b.first.sample.of for b in numbered.values() if b.first.sample is not None)
    return all(number in numbered and numbered[number].completed for number in range(1, of + 1))


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
