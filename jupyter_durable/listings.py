"""Runs, branches and steps of a log as listings: what is there and how it stands. Reads; loads no value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from jupyter_durable import errors
from jupyter_durable.branches import BranchView, group
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.call import RUN
from jupyter_durable.child_runs import children_of, inside_of, path_of, was_cancelled
from jupyter_durable.engine.cancellation import CANCEL
from jupyter_durable.engine.waits import child_id
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import Signal
from jupyter_durable.history import History
from jupyter_durable.keys import inner_scope
from jupyter_durable.log.base import EventLog, ExecutionRecord

RunStatus = Literal[
    "running", "completed", "failed", "interrupted", "stopped", "parked", "cancelled", "undone", "continued"
]
"""``parked``: it waits for a signal or a timer, and its cell has ended. ``interrupted`` covers the stop button and the
death of the kernel; ``stopped``: it needs a person. ``undone``: a person has undone the branch; ``continued``:
it begins anew, with the state that its branch has handed on, when its cell runs again."""


@dataclass(frozen=True, slots=True)
class RunView:
    """One run in a listing."""

    run: str
    name: str
    status: RunStatus
    branch: str
    """Name of the newest branch."""
    branches: int
    executions: int
    replayed: int | None
    live: int | None
    """Steps replayed and executed by the newest execution; ``None`` if it has no end (yet)."""
    last: float
    """When the newest execution began (seconds since 1970-01-01 UTC)."""
    notebook: str
    """Path of the notebook or script."""


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of a branch in a listing. Values stay in the log."""

    number: int
    scope: str
    name: str
    kind: str
    status: str
    """The same words as in the view ``steps``: ``completed``, ``failed``, ``in_doubt``, ``not_stored`` and so on."""
    attempts: int
    why: str
    execution: str
    error: str
    notices: tuple[str, ...]
    progress: str
    """How far the body of a step that runs, or is in doubt, said that it is; empty if it did not."""
    beat: float | None
    """When such a body was heard of last (seconds since 1970-01-01 UTC)."""


def views_of(log: EventLog, run: str | None = None) -> dict[str, list[BranchView]]:
    """Branches of every run (or of one), oldest first."""
    return grouped(log.executions(run))


def grouped(records: Iterable[ExecutionRecord]) -> dict[str, list[BranchView]]:
    """Branches of every run of these executions. Who asks twice may get another answer the second time."""
    found: dict[str, list[ExecutionRecord]] = {}
    for record in records:
        found.setdefault(record.header.run, []).append(record)
    return {name: group(Seen(r.header, r.outcome, r.running) for r in records) for name, records in found.items()}


def runs(log: EventLog) -> list[RunView]:
    """All runs of a log, the one that ran last first."""
    records = log.executions()
    began = {record.header.execution: (number, record.started) for number, record in enumerate(records)}
    listed = []
    for run, branches in grouped(records).items():
        newest = max(branches, key=lambda b: began[b.newest.header.execution])
        header, outcome = newest.newest.header, newest.newest.outcome
        listed.append(
            RunView(
                run=run,
                name=header.name,
                status=_status(newest),
                branch=newest.name,
                branches=len(branches),
                executions=sum(len(b.executions) for b in branches),
                replayed=outcome.replayed if outcome is not None else None,
                live=outcome.live if outcome is not None else None,
                last=began[header.execution][1],
                notebook=header.path,
            )
        )
    return sorted(listed, key=lambda view: -view.last)


def _status(branch: BranchView) -> RunStatus:
    newest = branch.newest
    if newest.running:
        return "running"
    if branch.cancelled is not None:
        return "cancelled"
    if branch.undone is not None:
        return "undone"
    if newest.outcome is None:
        return "interrupted"
    status = newest.outcome.status
    if status == "cancelled":
        return "interrupted"  # it was resumed since, and its cell has not run yet
    return "stopped" if status == "decided" else status


@dataclass(frozen=True, slots=True)
class ChildView:
    """One child run in a listing."""

    path: str
    """Its name, with those of the child runs around it: ``review/page-3``; ``page#1`` for the second of one name."""
    number: int
    """Number of its entry among the steps."""
    depth: int
    """How many child runs are around it."""
    status: Literal["running", "completed", "failed", "cancelled", "waiting", "interrupted"]
    """``waiting``: something in it waits; ``cancelled``: somebody cancelled it, or its parent did."""
    steps: int
    """Steps recorded in it, those of its own child runs included."""
    request: str
    """Id by which it is cancelled."""

    @property
    def is_open(self) -> bool:
        """It has not ended."""
        return self.status in ("running", "waiting", "interrupted")


def children(log: EventLog, run: str, branch: str = "") -> list[ChildView]:
    """The child runs of a branch as a tree: each behind the one that it lies in. Reads events; loads no value.

    Args:
        log: where the run is.
        run: id of the run.
        branch: name or id of the branch; default the newest.

    Raises:
        UsageError: there is no such run or branch.
    """
    view = find_branch(log, run, branch)
    history = History(log.history(view.branch))
    found = children_of(history)
    ending = cancelled_scopes(view.branch, found, log.signals(run) if log.posted(run) else [])
    listed = []
    for scope, entry in _as_tree(found).items():
        path = path_of(found, scope)
        within = inside_of(history, scope)
        listed.append(
            ChildView(
                path=path,
                number=entry.begun,
                depth=sum(scope.startswith(f"{each}/") for each in found),
                status=(
                    "cancelled"
                    if lies_in(scope, ending) and entry.state in ("open", "interrupted")
                    else _child_status(entry, view, any(each.waits for each in within))
                ),
                steps=sum(each.kind != RUN for each in within),
                request=child_id(view.branch, entry.key),
            )
        )
    return listed


def cancelled_scopes(branch: str, found: dict[str, Entry], signals: list[Signal]) -> list[str]:
    """The scopes of child runs that somebody has cancelled and that end when the cell comes to them again.

    Args:
        branch: id of the branch.
        found: its child runs, by scope.
        signals: what lies in the inbox of the run.
    """
    asked = {signal.request for signal in signals if signal.name == CANCEL and signal.request}
    return [
        scope
        for scope, entry in found.items()
        if asked and entry.state in ("open", "interrupted") and child_id(branch, entry.key) in asked
    ]


def lies_in(scope: str, scopes: list[str]) -> bool:
    """Whether a scope is one of these, or lies in one."""
    return any(scope == each or scope.startswith(f"{each}/") for each in scopes)


def _as_tree(found: dict[str, Entry]) -> dict[str, Entry]:
    """Child runs by scope, each behind the one that it lies in; those of one parent as they began."""
    below: dict[str, list[str]] = {}
    for scope in found:
        parent = max((each for each in found if scope.startswith(f"{each}/")), key=len, default="")
        below.setdefault(parent, []).append(scope)
    ordered: dict[str, Entry] = {}
    left = below.get("", [])[::-1]
    while left:
        scope = left.pop()
        ordered[scope] = found[scope]
        left += below.get(scope, [])[::-1]
    return ordered


def _child_status(
    entry: Entry, view: BranchView, waits: bool
) -> Literal["running", "completed", "failed", "cancelled", "waiting", "interrupted"]:
    if entry.state == "completed":
        return "completed"
    if was_cancelled(entry):
        return "cancelled"
    if entry.state == "failed":
        return "failed"
    if waits:
        return "waiting"
    return "running" if view.newest.running else "interrupted"


def find_run(log: EventLog, text: str, notebook: str | None = None) -> str:
    """Id of the run that is meant by a name, an id or the beginning of an id.

    Args:
        log: where to look.
        text: what the user wrote; empty: the run that ran last.
        notebook: durable id of the notebook whose runs come first if several have the name.

    Raises:
        UsageError: none, or more than one, is meant.
    """
    if not isinstance(text, str):
        raise errors.UsageError(f"A run is meant by its name or id, a text; this is a `{type(text).__qualname__}`.")
    listed = runs(log)
    if not text:
        if not listed:
            raise errors.UsageError("There is no run in this log yet.")
        return listed[0].run
    named = [view for view in listed if view.name == text]
    if notebook is not None and len(named) > 1:
        here = {r.header.run for r in log.executions() if r.header.notebook == notebook}
        named = [view for view in named if view.run in here] or named
    found = named or [view for view in listed if view.run.startswith(text)]
    if len(found) == 1:
        return found[0].run
    if not found:
        names = ", ".join(f"`{view.name}`" for view in listed[:10]) or "none yet"
        names += f" and {len(listed) - 10} more" if len(listed) > 10 else ""
        raise errors.UsageError(f"There is no run `{text}` in this log. Its runs: {names}.")
    which = ", ".join(f"{view.run} ({view.notebook or 'no notebook'})" for view in found)
    raise errors.UsageError(f"Several runs are called `{text}`: {which}. Name one by its id.")


def find_child(log: EventLog, text: str, notebook: str | None = None) -> tuple[str, str]:
    """A run, or a child run of it, that is meant by a name: ``report``, ``report/page-3``.

    Args:
        log: where to look.
        text: what the user wrote: name or id of the run, and the path or number of the child run behind it.
        notebook: as of `find_run`.

    Returns:
        Id of the run, and the path or number of the child run; empty for the run itself.

    Raises:
        UsageError: none, or more than one, is meant.
    """
    if not isinstance(text, str):
        raise errors.UsageError(f"A run is meant by its name or id, a text; this is a `{type(text).__qualname__}`.")
    names = {view.name for view in runs(log)} | {view.run for view in runs(log)}
    cut = next((i for i in range(len(text), 0, -1) if text[i : i + 1] in ("", "/") and text[:i] in names), len(text))
    run, child = find_run(log, text[:cut], notebook), text[cut + 1 :]
    if not child and text[cut:]:
        raise errors.UsageError(f"`{text}` ends before the name of a child run: say `{text[:cut]}` for the whole run.")
    if child:
        pick_child(children(log, run), child, text[:cut])
    return run, child


def pick_child(listed: list[ChildView], text: str, run_name: str) -> ChildView:
    """The one child run that is meant by its path, or by its number.

    Of several with one path it is the one that has not ended.

    Args:
        listed: the child runs of a branch.
        text: path or number.
        run_name: the run as the user named it, for messages.

    Raises:
        UsageError: none, or more than one, is meant.
    """
    found = [each for each in listed if each.path == text] or [each for each in listed if str(each.number) == text]
    if not found:
        said = ", ".join(f"`{path}`" for path in list(dict.fromkeys(each.path for each in listed))[:10]) or "none yet"
        raise errors.UsageError(f"Run `{run_name}` has no child run `{text}`. Its child runs: {said}.")
    alive = [each for each in found if each.is_open] or found
    if len(alive) > 1:
        numbers = ", ".join(str(each.number) for each in alive[:10])
        raise errors.UsageError(
            f"Several child runs of run `{run_name}` are called `{text}`: numbers {numbers}. Name one by its number: "
            f"`{run_name}/{alive[0].number}`."
        )
    return alive[0]


def find_branch(log: EventLog, run: str, name: str = "") -> BranchView:
    """A branch of a run by its name; the newest one if the name is empty.

    Raises:
        UsageError: the run has no such branch.
    """
    records = log.executions(run)
    branches = grouped(records).get(run, [])
    if not branches:
        raise errors.UsageError(f"There is no run with the id {run} in this log.")
    if not name:
        order = [record.header.execution for record in records]
        return max(branches, key=lambda b: order.index(b.executions[-1].header.execution))
    found = next((b for b in branches if name in (b.name, b.branch)), None)
    if found is None:
        raise errors.UsageError(f"The run has no branch `{name}`. Its branches: {', '.join(b.name for b in branches)}.")
    return found


def steps(log: EventLog, run: str, branch: str = "") -> list[StepView]:
    """The steps of a branch in the order in which they began. Reads events; loads no value."""
    view = find_branch(log, run, branch)
    history = History(log.history(view.branch))
    running = view.newest.header.execution if view.newest.running else ""
    entries = sorted([*history.entries.values(), *history.patches.values()], key=lambda e: e.begun)
    waits = [e.key.scope for e in entries if e.waits]
    return [step_view(entry, running, waits) for entry in entries]


def step_view(entry: Entry, running: str, waits: Iterable[str] = ()) -> StepView:
    """One entry in a listing.

    Args:
        entry: the step, or child run.
        running: the execution that is alive, if one is.
        waits: scopes in which something waits.
    """
    status: str = entry.state
    if entry.adopted is not None:
        status = "adopted"
    elif entry.waits:
        status = "waiting"
    elif entry.kind == RUN and was_cancelled(entry):
        status = "cancelled"
    elif entry.kind == RUN and entry.state in ("open", "interrupted"):
        # Its code runs again with its cell: it is never in doubt.
        scope = inner_scope(entry.key)
        waiting = any(each == scope or each.startswith(f"{scope}/") for each in waits)
        status = "waiting" if waiting else "running" if running else "interrupted"
    elif entry.state in ("open", "interrupted"):
        status = "running" if entry.state == "open" and entry.execution == running else "in_doubt"
    return StepView(
        number=entry.begun,
        scope=entry.key.scope,
        name=entry.key.name if entry.key.n == 0 else f"{entry.key.name}#{entry.key.n}",
        kind=entry.kind,
        status=status,
        attempts=entry.attempts + (0 if entry.state == "failed" else 1),
        why=entry.why,
        execution=entry.execution,
        error=f"{entry.error.type}: {entry.error.message}"
        if entry.error is not None and entry.state == "failed"
        else "",
        notices=tuple(notice.message for notice in entry.notices),
        progress=str(entry.progress) if entry.progress is not None and status in ("running", "in_doubt") else "",
        beat=entry.beat if entry.beat >= 0 and status in ("running", "in_doubt") else None,
    )
