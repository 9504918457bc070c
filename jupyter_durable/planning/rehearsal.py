"""The decision behind a plan: every recorded step is asked for again, of the replay that decides when the cell runs.

Nothing is executed: a rehearsal makes the calls that the recorded program made, in their recorded order, and notes each
verdict. Past the first difference of an edited cell its places count as tainted, as they will if what it asks differs.
Pure but for the evidence of today's functions.
"""

from __future__ import annotations

from collections.abc import Callable

from jupyter_durable import errors
from jupyter_durable.attempts import OF_FAILED_ATTEMPT
from jupyter_durable.call import RUN, Adopt, Branch, Call, Execute, Place, Policy, Recorded, Stop, Verdict
from jupyter_durable.engine.tally import Savings, Tally
from jupyter_durable.entries import Entry
from jupyter_durable.history import History
from jupyter_durable.keys import Key, inner_scope, inside, parent_scope
from jupyter_durable.planning.words import Fate, PlannedStep
from jupyter_durable.replay import Replay

Asking = Callable[[Entry, Place], Call]
"""Makes the call that asks for a recorded entry again, with today's evidence."""


class Rehearsal:
    """See the module.

    Args:
        own: history of the branch that is taken up; empty for a new one.
        source: history of the branch that it was, or is, made from.
        policy: what the user asked of the execution.
        after_branching: the policy of a branch that is gone over to in the middle.
        asking: makes the calls.
    """

    def __init__(
        self, own: History, source: History | None, policy: Policy, after_branching: Policy, asking: Asking
    ) -> None:
        self._replay = Replay(own, source, policy)
        self._after_branching = after_branching
        self._asking = asking
        self._places: dict[str, Place] = {"": Place()}
        self._bodies: dict[str, Key] = {}
        self._ends: dict[str, int] = {}
        self._settled: set[str] = set()
        self._children: set[str] = set()
        self._tainted: dict[str, Place] = {}
        self.reason = ""
        """Why another branch is gone over to in the middle; empty if none is."""
        self.steps: list[PlannedStep] = []

    def play(self, before: Callable[[list[Entry]], set[int]]) -> list[PlannedStep]:
        """Ask for all that is recorded.

        Args:
            before: of the entries of the source, gives the ids of those that were asked before the first difference.

        Returns:
            The steps, in the order in which they will be met.
        """
        own, source = self._replay.own, self._replay.source
        self._index(own)
        for entry in ordered(own):
            self._meet(own, entry, sure=True)
        if source is not None and not self.reason and not own.completed_branch():
            # What a completed branch did not take over of its origin, the cell does not ask for.
            self._index(source)
            waiting = [entry for entry in ordered(source) if not self._replay.match.is_served(entry)]
            bodies = set(self._bodies)
            asked = before([e for e in waiting if not inside(e.key.scope, bodies)])
            for entry in waiting:
                outer = self._outermost(entry, source)
                self._meet(source, entry, sure=id(outer) in asked)
        return self.steps

    def _index(self, history: History) -> None:
        for entry in history.entries.values():
            self._bodies[inner_scope(entry.key)] = entry.key
            if entry.kind == RUN:
                self._children.add(inner_scope(entry.key))
            scope = entry.key.scope
            while scope:
                self._ends[scope] = max(self._ends.get(scope, -1), entry.end, entry.begun)
                scope = parent_scope(scope)

    def _outermost(self, entry: Entry, history: History) -> Entry:
        """The step around an entry that the cell itself or a task of it has asked, or the entry."""
        found, scope = entry, entry.key.scope
        while scope:
            key = self._bodies.get(scope)
            if key is not None:
                found = history.entries.get(key, found)
            scope = parent_scope(scope)
        return found

    def _meet(self, history: History, entry: Entry, *, sure: bool) -> None:
        if self._settled and inside(entry.key.scope, self._settled):
            return
        place = self._place(entry.key.scope)
        self._finish_children(entry.begun)
        if not sure:
            place.taint()
        call = self._asking(entry, place)
        verdict = self._replay.ask(call)
        if isinstance(verdict, Branch) and not self._replay.policy.strict:
            self._branch(verdict.reason)
            verdict = self._replay.ask(call)
        if place.tainted and place.parent is not None:
            self._tainted[entry.key.scope] = place
        if entry.kind == RUN:
            return  # its code runs in any case, and what is inside of it is asked for by itself
        fate, why = self._judged(entry, call, verdict)
        if fate != "again":
            self._settled.add(inner_scope(entry.key))
        used = Tally()
        if fate != "again":
            used = recorded_use(history, entry)
        elif entry.kind == "model":
            used.add(entry.usage)
        self.steps.append(
            PlannedStep(
                entry.begun, label(entry), entry.kind, entry.key.scope, fate, why, used,
                sure and fate not in ("reuse", "ask"),
            )
        )  # fmt: skip

    def _branch(self, reason: str) -> None:
        """Go over to a new branch, as an execution does: what was handed out so far is taken along."""
        old = self._replay
        self.reason = reason
        self._replay = Replay(History(), old.own, self._after_branching)
        for entry in old.own.entries.values():
            if old.match.is_served(entry):
                self._replay.match.serve(old.own, entry)

    def _place(self, scope: str) -> Place:
        place = self._places.get(scope)
        if place is None:
            key = self._bodies.get(scope)
            place = Place(scope, self._place(parent_scope(scope)), is_step=key is not None)
            place.bound, place.key = scope, None if scope in self._children else key
            self._places[scope] = place
        return place

    def _finish_children(self, now: int) -> None:
        """A difference inside a task or step reaches whoever started it when that has ended."""
        for scope in sorted(self._tainted, key=len, reverse=True):
            if self._ends.get(scope, -1) < now:
                child = self._tainted.pop(scope)
                child.finished()
                outer = child.parent
                if outer is not None and outer.parent is not None:
                    self._tainted[parent_scope(scope)] = outer

    # Words -----------------------------------------------------------------------------------------------------------

    def _judged(self, entry: Entry, call: Call, verdict: Verdict) -> tuple[Fate, str]:
        if isinstance(verdict, Recorded):
            return "replay", verdict.why
        if isinstance(verdict, Adopt):
            return ("reuse" if call.place.tainted else "replay"), verdict.why
        if isinstance(verdict, Execute):
            return "again", _why_again(entry, call, verdict)
        assert isinstance(verdict, Stop | Branch)
        return _stopped(entry, call, verdict)


def ordered(history: History) -> list[Entry]:
    """The entries of a history in the order in which they began."""
    return sorted(history.entries.values(), key=lambda entry: entry.begun)


def label(entry: Entry) -> str:
    """The name of a step, with its number among equal calls."""
    return entry.key.name if entry.key.n == 0 else f"{entry.key.name}#{entry.key.n}"


def recorded_use(history: History, entry: Entry) -> Tally:
    """What the model calls of a step had used: its own, or those inside of it."""
    savings = Savings()
    savings.add(history, entry)
    return savings.total


def bought_anew(history: History, why: str, *, sure: bool) -> list[PlannedStep]:
    """The steps of a history of which nothing is used.

    Args:
        history: of the branch that would be taken up otherwise.
        why: why nothing of it is used.
        sure: the cell is the same, so that it will ask the same.
    """
    found = []
    for entry in ordered(history):
        used = Tally()
        if entry.kind == "model":
            used.add(entry.usage)
        found.append(PlannedStep(entry.begun, label(entry), entry.kind, entry.key.scope, "again", why, used, sure))
    return found


def _changed(entry: Entry, call: Call) -> bool:
    return bool(call.evidence and entry.evidence and call.evidence != entry.evidence)


def _why_again(entry: Entry, call: Call, verdict: Execute) -> str:
    if entry.waits:
        return "nothing has ended its wait yet"
    if verdict.why == OF_FAILED_ATTEMPT:
        return "the attempt of its step failed"
    if entry.state == "failed" or entry.between_attempts:
        return "its attempt failed"
    if entry.state in ("open", "interrupted") and not call.place.tainted:
        return "in doubt"
    return "its code changed" if _changed(entry, call) else verdict.why


def _stopped(entry: Entry, call: Call, verdict: Stop | Branch) -> tuple[Fate, str]:
    if isinstance(verdict, Branch):
        return "stop", f"`--strict`: {verdict.reason}"
    if verdict.error is errors.ReplayOnlyError:
        return "stop", "history has no result, and `--replay-only` executes nothing"
    if verdict.error is errors.BranchBusy:
        return "stop", "another kernel executes it right now"
    if verdict.message.startswith("`--strict`"):
        return "stop", "`--strict`: its code changed"
    if verdict.error is errors.ValueNotStored:
        return "settle", "it has run, and its value was not stored"
    if not entry.finished and entry.state in ("open", "interrupted"):
        return "settle" if verdict.error is errors.InDoubtError else "ask", "begun before, end not known"
    if entry.state == "failed":
        return "ask", "it failed, and steps finished after it on another way"
    if _changed(entry, call):
        return "ask", "its code changed; it had finished"
    return (
        "ask",
        "finished before the change and may depend on it, if it is asked the same",
    )
