"""What a person says about steps: what becomes of finished ones after an edit, and what happened to one in doubt.

Each word of a person is a short execution of its own on the branch; no code of the user's runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from jupyter_durable import clock, errors
from jupyter_durable.branches import BranchView
from jupyter_durable.engine import remarks
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import Decision, Outcome, Payload, Settlement
from jupyter_durable.events import AnyEvent, Decided, StepSettled
from jupyter_durable.history import History
from jupyter_durable.listings import StepView, find_branch, step_view
from jupyter_durable.log.base import EventLog
from jupyter_durable.person import who
from jupyter_durable.values import encode_verified


def decide(
    log: EventLog, run: str, reuse: Literal["all", "pure", "none"], by: str = "", steps: Sequence[str] = ()
) -> BranchView:
    """Say what becomes of finished (and in-doubt) steps after an edit; it holds for the newest branch of the run.

    Args:
        log: where the run is.
        run: id of the run.
        reuse: ``"all"`` uses the recorded results, ``"pure"`` those of pure steps only, ``"none"`` executes again.
        by: who decided.
        steps: names of the steps that it speaks of; none: all.

    Returns:
        The branch that the decision was written on.

    Raises:
        BranchBusy: the branch is running right now.
    """
    view = find_branch(log, run)
    write(log, view, Decided(at=clock.now(), data=Decision(reuse=reuse, by=by or who(), steps=tuple(steps))))
    return view


def settle(
    log: EventLog,
    run: str,
    step: int | str,
    choice: Literal["rerun", "value", "salvage", "fail"],
    value: Any = None,
    by: str = "",
    branch: str = "",
) -> StepView:
    """Say what happened to a step that is in doubt, or whose value could not be stored.

    Args:
        log: where the run is.
        run: id of the run.
        step: its number, or its name if only one step of that name is open to it.
        choice: ``"rerun"`` executes it again; ``"value"``: it happened, and this is its value; ``"salvage"``: it
            happened, and the plainer form that was saved is its value; ``"fail"``: it counts as failed.
        value: the value, for ``"value"``.
        by: who settled it.
        branch: name of the branch; default the newest.

    Returns:
        The step as it is now.

    Raises:
        UsageError: there is no such step, or it needs no settlement.
        UnstorableValue: the given value cannot be stored.
    """
    view = find_branch(log, run, branch)
    history = History(log.history(view.branch))
    entry = _open_to_settlement(history, step)
    if entry is None and view.first.origin is not None:
        return settle(log, run, step, choice, value, by, view.first.origin.branch)
    if entry is None:
        raise errors.UsageError(_nothing_to_settle(history, step))
    payload: Payload | None = None
    if choice == "value":
        encoded, _ = encode_verified(value)
        if encoded.blobs:
            raise errors.UsageError(
                "A value given by hand must be small; store a large one in a file and return its path."
            )
        payload = Payload(codec=encoded.codec, data=msgspec.Raw(encoded.text))
    elif choice == "salvage":
        if entry.unstored is None or entry.unstored.salvage is None:
            raise errors.UsageError(
                f"Nothing was saved of {entry.label}; give its value: `settle {step} value EXPRESSION`."
            )
        payload = entry.unstored.salvage
    stored: Literal["rerun", "value", "fail"] = "value" if choice in ("value", "salvage") else choice  # type: ignore[assignment]
    event = StepSettled(at=clock.now(), step=entry.seq, data=Settlement(choice=stored, by=by or who(), payload=payload))
    write(log, view, event)
    history = History(log.history(view.branch))
    return step_view(history.entries[entry.key], running="")


def _open_to_settlement(history: History, step: int | str) -> Entry | None:
    candidates = [e for e in history.entries.values() if _needs_settling(e)]
    text = str(step)
    if text.isdigit():
        return next((e for e in candidates if int(text) in (e.begun, e.seq)), None)
    named = [e for e in candidates if text in (e.key.name, f"{e.key.name}#{e.key.n}")]
    if len(named) > 1:
        numbers = ", ".join(str(e.begun) for e in named)
        raise errors.UsageError(f"Several steps `{text}` are open to it: numbers {numbers}. Name one by its number.")
    return named[0] if named else None


def _needs_settling(entry: Entry) -> bool:
    return entry.state in ("open", "interrupted", "not_stored") and entry.wait is None


def _nothing_to_settle(history: History, step: int | str) -> str:
    waiting = [e.label for e in history.entries.values() if _needs_settling(e)]
    listed = ", ".join(waiting) if waiting else "none"
    return f"Step `{step}` is not in doubt, and its value is stored, or there is no such step. Open to it: {listed}."


def write(log: EventLog, view: BranchView, *events: AnyEvent, outcome: Outcome | None = None) -> None:
    """Write what a person said by a short execution of its own."""
    last = {record.header.branch: record.last for record in log.executions(view.first.run)}[view.branch]
    remarks.write(log, remarks.remark_on(view.newest.header, last), *events, outcome=outcome)
