"""A person's undo of a branch: what would be undone, and doing it, newest first, by recorded steps of a run of its own.

All branches of a run share that one run, ``undo NAME``, and a step of it is known by the effect that it undoes. So an
effect that several branches have (a later one has taken it over) is undone once, and an undo that was killed goes on
where it was. The branches that have lost an effect are closed before the first one is touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from jupyter_durable import clock, errors
from jupyter_durable.branches import BranchView
from jupyter_durable.call import ORDINARY
from jupyter_durable.engine.compensating import (
    Effort,
    SpecOf,
    carry_out_all,
    carry_out_all_async,
    how_far,
    ready,
)
from jupyter_durable.engine.context import CURRENT, Frame, current
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.opening import begin
from jupyter_durable.engine.options import RunSpec, run_id
from jupyter_durable.engine.registering import KNOWN
from jupyter_durable.entries import Effect, Entry
from jupyter_durable.event_data import Outcome
from jupyter_durable.events import StepUndone
from jupyter_durable.history import History
from jupyter_durable.listings import find_branch, views_of
from jupyter_durable.log.base import EventLog
from jupyter_durable.person import who
from jupyter_durable.sentences import quoted
from jupyter_durable.settling import write
from jupyter_durable.stored import Undoing, Undone
from jupyter_durable.values import redact

Fate = Literal["undo", "undone", "stays", "in_doubt", "cancelled"]
"""``undo``: it would be undone now; ``undone``: it is; ``stays``: it is done, and nothing says how to undo it;
``in_doubt``: nobody knows whether it happened; ``cancelled``: the same, and the program itself has cut it."""


class UndoRow(msgspec.Struct, frozen=True):
    """One step in the listing of an undo."""

    number: int
    name: str
    scope: str
    fate: Fate
    compensation: str
    """What undoes it; empty if nothing does."""
    known: bool
    """This process knows that function."""


class UndoPlan(msgspec.Struct, frozen=True):
    """What an undo of a branch would do, or has done: its steps, newest first."""

    run: str
    run_name: str
    view: BranchView
    rows: list[UndoRow]
    effects: list[Effect]
    """What is to be undone, in order."""

    @property
    def doubtful(self) -> list[UndoRow]:
        """Steps that a person must settle first."""
        return [row for row in self.rows if row.fate == "in_doubt" and row.compensation]


def undo_name(run_name: str) -> str:
    """Name of the run whose steps undo another run.

    >>> undo_name("trip")
    'undo trip'
    """
    return f"undo {run_name}"


def plan_undo(log: EventLog, run: str, *, branch: str = "", from_step: str = "") -> UndoPlan:
    """What an undo would do, newest step first. Reads; nothing is undone.

    Args:
        log: where the run is.
        run: id of the run.
        branch: name of the branch; default the newest.
        from_step: number or name of the first step to be undone, with all that completed after it; default: all.

    Raises:
        UsageError: there is no such run, branch or step.

    >>> from jupyter_durable.log import open_log
    >>> plan_undo(open_log("memory:"), "0a1b")
    Traceback (most recent call last):
    jupyter_durable.errors.UsageError: There is no run with the id 0a1b in this log.
    """
    view = find_branch(log, run, branch)
    history = History(log.history(view.branch))
    undone = _undone(log, run, view, history)
    first = _first(history, from_step, view)
    effects = sorted((e for e in history.effects.values() if e.end >= first), key=lambda effect: -effect.end)
    rows = [
        (effect.end, _row(effect.entry, "undone" if effect.compensation.id in undone else "undo")) for effect in effects
    ]
    counted = {id(effect.entry) for effect in history.effects.values()}
    for entry in history.entries.values():
        if id(entry) in counted and entry.state == "completed":
            continue
        fate = _fate(entry)
        place = entry.end if entry.end >= 0 else entry.seq
        if fate is not None and place >= first:
            rows.append((place, _row(entry, fate)))
    rows.sort(key=lambda each: -each[0])
    todo = [effect for effect in effects if effect.compensation.id not in undone]
    return UndoPlan(run, view.first.name, view, [row for _, row in rows], todo)


def _fate(entry: Entry) -> Fate | None:
    """What an undo says of a step that it does not undo; ``None``: nothing."""
    if entry.kind not in ORDINARY:
        return None
    if entry.state in ("open", "interrupted") or (entry.state == "not_stored" and entry.compensation is not None):
        return "in_doubt"
    if entry.state == "cancelled":
        return "cancelled" if entry.compensation is not None else None
    return "stays" if entry.finished else None


def _row(entry: Entry, fate: Fate) -> UndoRow:
    name = entry.key.name if entry.key.n == 0 else f"{entry.key.name}#{entry.key.n}"
    compensation = entry.compensation
    known = compensation is not None and KNOWN.find(entry.key.name, compensation) is not None
    return UndoRow(entry.begun, name, entry.key.scope, fate, "" if compensation is None else compensation.name, known)


def _first(history: History, from_step: str, view: BranchView) -> int:
    """The place, in the order of completion, of the first step that is to be undone."""
    if not from_step:
        return -1
    for entry in sorted(history.entries.values(), key=lambda each: each.begun):
        if (from_step.isdigit() and int(from_step) in (entry.begun, entry.seq)) or from_step in (
            entry.key.name,
            f"{entry.key.name}#{entry.key.n}",
        ):
            return entry.end if entry.end >= 0 else entry.seq
    raise errors.UsageError(
        f"Run `{view.first.name}`, branch `{view.name}`: there is no step `{from_step}` to undo from. `%durable "
        f"history {quoted(view.first.name)}` has the steps.",
        run=view.first.name, branch=view.name, step=from_step,
    )  # fmt: skip


def _undone(log: EventLog, run: str, view: BranchView, own: History) -> set[str]:
    """Ids of all effects of a run that are undone: by itself, or by a person, on whichever branch."""
    found = set(own.undone)
    for other in views_of(log, run).get(run, []):
        if other.branch != view.branch:
            found |= set(History(log.history(other.branch)).undone)
    for undoing in views_of(log, _spec(view).run).get(_spec(view).run, []):
        found |= set(History(log.history(undoing.branch)).undone)
    return found


def _spec(view: BranchView, loop: asyncio.AbstractEventLoop | None = None) -> RunSpec:
    header = view.newest.header
    notebook = header.notebook if run_id(header.notebook, header.name) == header.run else ""
    return RunSpec(undo_name(header.name), notebook=notebook, path=header.path, loop=loop)


# Doing it ------------------------------------------------------------------------------------------------------------


class Undo:
    """One undo of a branch by a person, between its beginning and its end."""

    def __init__(
        self, log: EventLog, run: str, spec_of: SpecOf, *, branch: str, from_step: str, by: str, awaits: bool
    ) -> None:
        frame = current()
        if frame is not None and not frame.execution.ended:
            raise errors.UsageError(
                f"An undo of another run cannot be made inside of run `{frame.execution.run_name}`. `durable.undo()` "
                f"without a name undoes what this run has done so far."
            )
        self.log, self.run, self.by, self.spec_of = log, run, by or who(), spec_of
        self.plan = plan_undo(log, run, branch=branch, from_step=from_step)
        self.view = self.plan.view
        self.name = self.view.first.name
        self._refuse()
        self.effort = Effort(ready(self.plan.effects, f"Run `{self.name}`", spec_of, awaits=awaits))
        meant = {row.number for row in self.plan.rows if row.fate in ("undo", "undone")}
        effects = self._history(self.view).effects
        self.meant = {identity for identity, effect in effects.items() if effect.entry.begun in meant}

    def _refuse(self) -> None:
        view, where = self.view, {"run": self.name, "branch": self.view.name}
        if view.newest.running:
            raise errors.BranchBusy(
                f"Run `{self.name}`: branch `{view.name}` is being executed right now, so it cannot be undone. Wait "
                f"until its cell has ended, or stop it.", **where,
            )  # fmt: skip
        if self.plan.doubtful:
            names = ", ".join(f"`{row.name}` (step {row.number})" for row in self.plan.doubtful)
            settle = f"%durable settle {quoted(self.name)} {self.plan.doubtful[0].number}"
            raise errors.InDoubtError(
                f"Run `{self.name}`, branch `{view.name}`: nothing was undone, because nobody knows whether {names} "
                f"happened. Say so first: `{settle} value EXPRESSION` (it happened, and this is its value) or "
                f"`{settle} fail` (it did not).",
                steps=[row.name for row in self.plan.doubtful], **where,
            )  # fmt: skip

    def _history(self, view: BranchView) -> History:
        return History(self.log.history(view.branch))

    @property
    def has_work(self) -> bool:
        """Something is to be undone, or an undo that was begun is to be brought to its end."""
        return bool(self.effort.todo) or (self.view.undone is not None and not self.view.undone.finished)

    def begin(self, loop: asyncio.AbstractEventLoop | None) -> Execution:
        """Close the branches that lose an effect, and begin the run whose steps undo it."""
        for view, _ in self._losers(self.meant):
            if view.undone is None or view.undone.finished:
                write(self.log, view, outcome=self._outcome(finished=False))
        execution = begin(_spec(self.view, loop), self.log)
        meant = {one.effect.compensation.id for one in self.effort.todo}
        replay = execution.replay
        for entry in replay.own.entries.values():
            if entry.key.digest not in meant:  # another undo's, or one that is known to be done
                replay.match.serve(replay.own, entry)
        return execution

    def _losers(self, lost: set[str]) -> list[tuple[BranchView, list[Effect]]]:
        """This branch, and those that have taken over a result that is undone; what each of them loses."""
        found = []
        for view in views_of(self.log, self.run)[self.run]:
            history = self._history(view)
            loses = [
                e for identity, e in history.effects.items() if identity in lost and identity not in history.undone
            ]
            if not loses and view.branch != self.view.branch:
                continue
            if view.newest.running:
                raise errors.BranchBusy(
                    f"Run `{self.name}`: branch `{view.name}` has taken over what is to be undone, and is being "
                    f"executed right now. Wait until its cell has ended, or stop it, and undo again.",
                    run=self.name, branch=view.name,
                )  # fmt: skip
            found.append((view, loses))
        return found

    def _outcome(self, *, finished: bool) -> Outcome:
        return Outcome(status="undone", undone=Undone(by=self.by, at=clock.now(), finished=finished))

    def end(self, execution: Execution, error: BaseException | None) -> None:
        """End the run of the undo; if all is undone, write that down on every branch that has lost an effect.

        Raises:
            UndoFailed: what undoes a step has failed.
        """
        execution.end(error)
        if not execution.draining:
            self.log.fold()
        if error is None:
            for view, loses in self._losers(_undone(self.log, self.run, self.view, self._history(self.view))):
                marks = [
                    StepUndone(at=clock.now(), step=e.step, data=Undoing(id=e.compensation.id, by=self.by))
                    for e in loses
                ]
                write(self.log, view, *marks, outcome=self._outcome(finished=True))
            return
        if isinstance(error, errors.RunStopped):
            raise error.error from None
        if isinstance(error, Exception) and not execution.sealed and not isinstance(error, errors.LogError):
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> errors.UndoFailed:
        effort = self.effort
        failed = effort.todo[effort.done]
        return errors.UndoFailed(
            f"Run `{self.name}`, branch `{self.view.name}`: `{failed.spec.name}` of {failed.effect.entry.label} failed "
            f"with {type(error).__name__}: {_sentence(redact(str(error)))} The undo stopped there: "
            f"{how_far(effort.todo, effort.done)} `%durable undo {quoted(self.name)} --branch {self.view.name} --yes` "
            f"goes on there.",
            run=self.name, branch=self.view.name,
            undone=[one.effect.entry.label for one in effort.todo[: effort.done]],
            left=[one.effect.entry.label for one in effort.todo[effort.done :]],
        )  # fmt: skip

    def labels(self) -> list[str]:
        """What was undone, newest first."""
        return [one.effect.entry.label for one in self.effort.todo]


def undo(log: EventLog, run: str, spec_of: SpecOf, *, branch: str = "", from_step: str = "", by: str = "") -> list[str]:
    """Undo what a branch has done, newest first. What an earlier undo has done is not done again.

    Args:
        log: where the run is.
        run: id of the run.
        spec_of: makes a step of a function.
        branch: name of the branch; default the newest.
        from_step: the first step that is to be undone, with all that completed after it; default: all.
        by: who undoes.

    Returns:
        Labels of the steps that were undone.

    Raises:
        UsageError: this process does not know what undoes a step. Nothing was undone.
        InDoubtError: nobody knows whether a step happened that could be undone. Nothing was undone.
        BranchBusy: the branch, or another undo of the run, is running right now.
        UndoFailed: what undoes a step has failed; what came before it is undone.
    """
    undo = Undo(log, run, spec_of, branch=branch, from_step=from_step, by=by, awaits=False)
    if not undo.has_work:
        return []
    try:
        loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    execution = undo.begin(loop)
    frame = Frame(execution, execution.root)
    token = CURRENT.set(frame)
    error: BaseException | None = None
    try:
        carry_out_all(frame, undo.effort)
    except BaseException as raised:
        error = raised
    finally:
        CURRENT.reset(token)
    undo.end(execution, error)
    if error is not None:
        raise error
    return undo.labels()


async def undo_async(
    log: EventLog, run: str, spec_of: SpecOf, *, branch: str = "", from_step: str = "", by: str = ""
) -> list[str]:
    """The same as `undo`, awaiting what must be awaited."""
    undo = Undo(log, run, spec_of, branch=branch, from_step=from_step, by=by, awaits=True)
    if not undo.has_work:
        return []
    execution = undo.begin(asyncio.get_running_loop())
    frame = Frame(execution, execution.root)
    token = CURRENT.set(frame)
    error: BaseException | None = None
    try:
        await carry_out_all_async(frame, undo.effort)
    except BaseException as raised:
        error = raised
    finally:
        CURRENT.reset(token)
    undo.end(execution, error)
    if error is not None:
        raise error
    return undo.labels()


def awaits(plan: UndoPlan, spec_of: SpecOf) -> bool:
    """Whether something that the plan would do must be awaited."""
    known: Iterable[Any] = (KNOWN.find(e.entry.key.name, e.compensation) for e in plan.effects)
    return any(fn is not None and spec_of(fn).is_async for fn in known)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
