"""What a run waits for that only a person can do: told from the last lines of its executions alone."""

from __future__ import annotations

from typing import Literal

from jupyter_durable.branches import BranchView
from jupyter_durable.engine.cancellation import said
from jupyter_durable.event_data import Outcome
from jupyter_durable.log.base import ExecutionRecord
from jupyter_durable.server.shapes import Waiting, WaitingStep

Kind = Literal["settle", "decide", "resume", "read", "answer", "timer", "cancelled"]

_KINDS: dict[str, Kind] = {
    "InDoubtError": "settle",
    "ValueNotStored": "settle",
    "DecisionNeeded": "decide",
    "ReplayOnlyError": "resume",
}
_MESSAGE = 1000


def waiting(newest: BranchView, branches: list[BranchView], records: list[ExecutionRecord]) -> Waiting | None:
    """What a run waits for; ``None`` if for nothing.

    Args:
        newest: the branch that ran last.
        branches: all of them.
        records: all executions of the run.
    """
    execution = newest.newest
    outcome = execution.outcome
    if newest.undone is not None and not execution.running:
        return None
    if execution.running:
        return None
    if newest.cancelled is not None:
        return Waiting(
            kind="cancelled", branch=newest.branch, branch_name=newest.name, steps=[],
            message=f"It was {said(newest.cancelled)}. It goes on only when it is resumed."[:_MESSAGE],
            since=newest.cancelled.sent,
        )  # fmt: skip
    if outcome is not None and outcome.status in ("completed", "failed"):
        return None
    record = next(each for each in records if each.header.execution == execution.header.execution)
    decided = max((each.started for each in records if each.header.purpose == "decide"), default=0.0) > record.started
    kind, message = _kind(outcome, decided=decided)
    if outcome is not None and outcome.status == "cancelled":
        kind, message = "resume", "It was resumed. Run the cell again: it goes on from where it was cancelled."
    about = outcome.about if outcome is not None and not decided else ()
    origin = newest.first.origin
    of_origin = bool(about) and about[0].origin and origin is not None
    branch = origin.branch if of_origin and origin is not None else newest.branch
    return Waiting(
        kind=kind,
        branch=branch,
        branch_name=next((each.name for each in branches if each.branch == branch), branch),
        steps=[
            WaitingStep(number=each.step, name=each.name, label=each.name if not each.n else f"{each.name}#{each.n}")
            for each in about
        ],
        message=message[:_MESSAGE],
        since=record.started if record.ended is None else record.ended,
    )


def _kind(outcome: Outcome | None, *, decided: bool) -> tuple[Kind, str]:
    if decided:
        return "resume", "It was decided about. Run the cell again to go on."
    if outcome is None:
        return "resume", "Its kernel died. Run the cell again: finished steps come back, and it goes on from there."
    if outcome.status == "decided":
        return "resume", "It was forked. Run the cell: what is before the fork comes back, the rest is executed."
    if outcome.status == "continued":
        return "resume", "It has handed its state on. Run the cell again: it begins anew with that."
    if outcome.status == "parked":
        return _parked(outcome)
    if outcome.error is None or outcome.status == "interrupted":
        return "resume", "It was interrupted. Run the cell again: finished steps come back, and it goes on from there."
    kind = _KINDS.get(outcome.error.type.rpartition(".")[2], "read")
    if kind == "decide" and "`%durable decide" not in outcome.error.message:
        kind = "read"  # a decision is no way out of it: `--strict`, for one
    if kind == "resume":
        return kind, "It stopped before it would spend. Run the cell again to go on from there."
    return kind, outcome.error.message


def _parked(outcome: Outcome) -> tuple[Kind, str]:
    if any(each.kind != "timer" for each in outcome.about):
        return "answer", "It waits for an answer or a signal. Then run the cell again to go on."
    return "timer", "It waits for a timer. When that is over, run the cell again to go on."
