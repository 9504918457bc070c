"""Before it costs: what a re-run of a cell would replay, and what it would buy. Reads history, and writes nothing.

`plan` reads; `Rehearsal.play` and `edit_of` decide.

- `words`: what will become of a recorded step, and the sums.
- `edits`: where an edited cell first differs, and what was asked before that.
- `today`: what today's notebook says of recorded steps.
- `rehearsal`: every recorded step asked for again, of the replay that decides when the cell runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from jupyter_durable import errors
from jupyter_durable.branches import BranchView, changed_inputs, choose
from jupyter_durable.engine.inputs import Inputs, changed_by_run
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.engine.prospect import Prospect, branch_of_number, look, policy_after, refuse_stalled
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import ExecutionHeader, RequestInfo
from jupyter_durable.events import ExecutionStarted, StepCompleted, StepFailed, StepStarted
from jupyter_durable.history import History
from jupyter_durable.log.base import EventLog
from jupyter_durable.planning.edits import Edit, asked_before, edit_of
from jupyter_durable.planning.rehearsal import Rehearsal, bought_anew
from jupyter_durable.planning.today import Today
from jupyter_durable.planning.words import FATES, Plan, PlannedStep
from jupyter_durable.source import Statement, statements
from jupyter_durable.values import redact

__all__ = ["FATES", "Plan", "PlannedStep", "plan"]

_NOTHING = (
    "Nothing is recorded of this run yet. What the cell will ask, and what that costs, cannot be known before it runs."
)
_GOES_ON = "Its history is empty: what the cell will ask, and what that costs, cannot be known before it runs."
_COMPLETE = "If the cell asks for anything else than it did, that is new, and its cost is not known."
_UNFINISHED = (
    "The cell has not come to its end yet: what it asks after these steps, and what that costs, is not known before it "
    "runs."
)
_EDITED = (
    "New calls of the edited part, and what they cost, cannot be known before it runs; a call whose request differs "
    "from the recorded one is bought."
)


def plan(spec: RunSpec, log: EventLog) -> Plan:
    """What running a cell would replay, and what it would buy. Executes nothing of it, writes nothing, takes no branch.

    Args:
        spec: which run, of what code, with which inputs.
        log: where histories are kept.

    Raises:
        UsageError: a flag names a branch or a step that is not there.
        LogError: the log cannot be read.
    """
    found = look(spec, log, _could_put_back)
    if not found.views:
        return Plan(spec.name, "main", "is begun", unknown=_NOTHING)
    if found.choice.continues is not None:
        return Plan(spec.name, _new_branch(spec, found), f"is begun: it {found.choice.reason}", unknown=_GOES_ON)
    if found.choice.take is None and found.choice.origin is None:
        return _anew(spec, log, found)
    made = _rehearsed(spec, log, found)
    view = found.choice.take
    if view is not None:
        if view.newest.running:
            made.notes.append(
                "another kernel executes this branch right now: the cell cannot begin before it has ended"
            )
        try:
            refuse_stalled(spec, view, found.own)
        except errors.DecisionNeeded as stalled:
            made.notes.append(str(stalled))
    return made


def _could_put_back(_spec: RunSpec, _log: EventLog, view: BranchView, inputs: Inputs) -> list[str] | None:
    changed = changed_by_run(view.newest.header, inputs.digests)
    return None if any(name not in view.newest.header.values for name in changed) else changed


def _anew(spec: RunSpec, log: EventLog, found: Prospect) -> Plan:
    """A branch with nothing reused: what another branch holds will be bought again."""
    wanted = msgspec.structs.replace(found.wanted, fresh=False, from_step="", branch="", pass_id="")
    like = choose(found.views, wanted)
    view = like.take or like.origin
    assert view is not None
    history = History(log.history(view.branch))
    same = like.take is not None
    made = Plan(spec.name, _new_branch(spec, found), f"is made with nothing reused: {found.choice.reason}")
    made.steps = bought_anew(history, found.choice.reason, sure=same)
    if not same:
        made.notes.append(f"branch `{view.name}` was recorded otherwise: {like.reason}")
    made.unknown = _UNFINISHED if not history.completed_branch() else _COMPLETE if same else _EDITED
    return made


def _new_branch(spec: RunSpec, found: Prospect) -> str:
    return branch_of_number(spec.run, len(found.views) + 1)[1]


def _rehearsed(spec: RunSpec, log: EventLog, found: Prospect) -> Plan:
    choice = found.choice
    today = Today(spec.namespace, found.book, spec.binds)
    edit = _edit(spec, found)
    if edit is not None:
        today.changed = edit.names
    rehearsal = Rehearsal(found.own, found.source, found.policy, policy_after(found.policy, spec.flags), today.call)

    def before(entries: list[Entry]) -> set[int]:
        if edit is None or edit.nothing:
            return {id(entry) for entry in entries}
        sight = today.sight()
        origin = _origin(found)
        assert origin is not None
        sight.lines = _lines(log, found.views, origin, entries, edit.old)
        return asked_before(edit, entries, sight)

    steps = rehearsal.play(before)
    made = Plan(spec.name, "", "", steps)
    if choice.take is not None:
        made.branch = choice.take.name
        made.does = "is replayed" if choice.take.completed else "is continued"
        if rehearsal.reason:
            made.does += f", until `{_new_branch(spec, found)}` is made from it: {rehearsal.reason}"
        made.unknown = _UNFINISHED if not choice.take.completed else _EDITED if rehearsal.reason else _COMPLETE
    else:
        assert choice.origin is not None
        made.branch = _new_branch(spec, found)
        made.does = f"is made from `{choice.origin.name}`: {choice.reason}"
        made.unknown = _EDITED if edit is not None else _COMPLETE if choice.origin.completed else _UNFINISHED
    if edit is not None and edit.what:
        made.notes.append(f"first difference: {edit.what}")
    if today.not_seen:
        made.notes.append(
            "taken as unchanged, as their code cannot be seen before the cell runs: "
            + ", ".join(f"`{name}`" for name in today.not_seen)
        )
    return made


# The edit -----------------------------------------------------------------------------------------------------------


def _origin(found: Prospect) -> BranchView | None:
    """The branch whose history is the source."""
    if found.choice.origin is not None:
        return found.choice.origin
    first = found.choice.take.first if found.choice.take is not None else None
    if first is None or first.origin is None:
        return None
    return next((view for view in found.views if view.branch == first.origin.branch), None)


def _edit(spec: RunSpec, found: Prospect) -> Edit | None:
    """The difference between the source's cell and today's; ``None`` if there is none that a statement shows."""
    origin = _origin(found)
    if origin is None:
        return None
    header = origin.newest.header
    steps = {name for name, digest in found.inputs.digests.items() if _is_step(spec, name, digest)}
    inputs = set(changed_inputs(header.inputs, found.inputs.digests, spec.binds)) - steps
    if header.code == spec.code and not inputs:
        return None
    old, new = _statements(header.source), _statements(redact(spec.source))
    return edit_of(old, new, inputs)


def _is_step(spec: RunSpec, name: str, digest: str) -> bool:
    """Whether a changed input is a step: then evidence says which of the recorded steps it concerns."""
    return digest.startswith("code:") and hasattr(spec.namespace.get(name), "__durable_spec__")


def _statements(source: str) -> list[Statement]:
    try:
        return statements(source)
    except SyntaxError:  # secrets were taken out of it in a way that broke it
        return []


# Lines --------------------------------------------------------------------------------------------------------------


def _lines(
    log: EventLog, views: list[BranchView], origin: BranchView, entries: list[Entry], old: list[Statement]
) -> dict[int, int]:
    """Id of an entry -> index of the statement that asked it, for model calls of which the line is known.

    A result that the branch has taken over was asked by the cell of another one; its statement is looked for here.
    """
    wanted = {(e.adopted.execution, e.adopted.seq) if e.adopted else (e.execution, e.seq): e for e in entries}
    found: dict[int, int] = {}
    view: BranchView | None = origin
    while view is not None and wanted:
        for where, statement in _asked(log, view.branch):
            entry = wanted.pop(where, None)
            index = next((i for i, s in enumerate(old) if s.text == statement.text), None)
            if entry is not None and index is not None:
                found[id(entry)] = index
        first = view.first.origin
        view = next((each for each in views if first is not None and each.branch == first.branch), None)
    return found


def _asked(log: EventLog, branch: str) -> Iterator[tuple[tuple[str, int], Statement]]:
    """Intents and ends of the model calls of a branch, as execution and seq, with the statement that asked."""
    asked: dict[int, Statement] = {}
    cell: list[Statement] = []
    header: ExecutionHeader | None = None
    for recorded in log.history(branch):
        event = recorded.event
        if isinstance(event, ExecutionStarted):
            if header is None or header.source != event.data.source:
                cell = _statements(event.data.source)
            header = event.data
        elif isinstance(event, StepStarted) and isinstance(event.data, RequestInfo) and event.data.line:
            line = event.data.line
            statement = next((s for s in cell if s.first <= line <= s.last), None)
            if statement is not None and header is not None:
                asked[recorded.seq] = statement
                yield (header.execution, recorded.seq), statement
        elif isinstance(event, StepCompleted | StepFailed) and event.step in asked and header is not None:
            yield (header.execution, recorded.seq), asked[event.step]
