"""What a person says about steps, written down by the words of `client`, signed with the name of the server's user."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

from jupyter_durable import client
from jupyter_durable.errors import UsageError
from jupyter_durable.server.logs import LogView, branch_of, branches_of, newest_of, records_of
from jupyter_durable.server.shapes import (
    CancelQuestion,
    DecideQuestion,
    Done,
    ForkQuestion,
    ResumeQuestion,
    SettleQuestion,
    SwitchQuestion,
)

_DECIDED = {
    "all": "Finished steps keep their recorded results.",
    "pure": "Pure steps keep their recorded results, all others are executed again.",
    "none": "Finished steps are executed again.",
}


def decide(view: LogView, question: DecideQuestion, by: str) -> Done:
    """Answer to POST decide.

    Raises:
        BranchBusy: the branch is running right now.
    """
    records_of(view.look(), question.run)
    branch = client.decide(view.log, question.run, question.reuse, by, question.steps)
    about = f" (of {', '.join(question.steps)})" if question.steps else ""
    return Done(
        log=view.name,
        run=question.run,
        branch=branch.branch,
        branch_name=branch.name,
        by=by,
        message=f"{_DECIDED[question.reuse].rstrip('.')}{about}. Run the cell again to go on.",
    )


def fork(view: LogView, question: ForkQuestion, by: str) -> Done:
    """Answer to POST fork.

    Raises:
        BranchBusy: the branch is running right now.
        UsageError: there is no such step, or the cell reads no such variable.
    """
    branches = branches_of(records_of(view.look(), question.run))
    if question.branch:
        branch_of(branches, question.branch)
    values = {**question.set, **{name: literal(name, text) for name, text in question.texts.items()}}
    made = client.fork(view.log, question.run, question.step, branch=question.branch, values=values, by=by)
    fork, origin = made.first.fork, made.first.origin
    assert fork is not None
    assert origin is not None
    before = next((each.name for each in branches if each.branch == origin.branch), origin.branch)
    return Done(
        log=view.name,
        run=question.run,
        branch=made.branch,
        branch_name=made.name,
        by=by,
        message=f"{made.name} begins anew at {fork.name} (step {fork.at} of {before}). Run the cell to go on with it.",
    )


def switch(view: LogView, question: SwitchQuestion, by: str) -> Done:
    """Answer to POST switch.

    Raises:
        BranchBusy: the branch is running right now.
    """
    branch_of(branches_of(records_of(view.look(), question.run)), question.branch)
    branch = client.switch(view.log, question.run, question.branch, by=by)
    return Done(
        log=view.name,
        run=question.run,
        branch=branch.branch,
        branch_name=branch.name,
        by=by,
        message=f"The cell takes up {branch.name} when it runs next.",
    )


def cancel(view: LogView, question: CancelQuestion, by: str) -> Done:
    """Answer to POST cancel.

    Raises:
        UsageError: nothing of it is left to cancel.
    """
    records_of(view.look(), question.run)
    done = client.cancel(
        view.log, question.run, child=question.child, reason=question.reason, by=by, via="panel"
    )  # fmt: skip
    if done.alive:
        message = "It ends at its next await or step."
    elif done.child:
        message = "It ends when the cell comes to it again."
    else:
        message = "It is cancelled, and goes on only when it is resumed."
    return Done(
        log=view.name, run=question.run, branch=done.branch, branch_name=done.branch_name, by=by, message=message
    )


def resume(view: LogView, question: ResumeQuestion, by: str) -> Done:
    """Answer to POST resume.

    Raises:
        BranchBusy: the branch is running right now.
        UsageError: it is not cancelled.
    """
    records_of(view.look(), question.run)
    branch = client.resume(view.log, question.run, by=by)
    return Done(
        log=view.name,
        run=question.run,
        branch=branch.branch,
        branch_name=branch.name,
        by=by,
        message="It may go on. Run the cell again: it goes on from where it was cancelled.",
    )


def settle(view: LogView, question: SettleQuestion, by: str) -> Done:
    """Answer to POST settle.

    Raises:
        BranchBusy: the branch is running right now.
        UsageError: the step needs no settlement.
    """
    records = records_of(view.look(), question.run)
    branches = branches_of(records)
    branch = branch_of(branches, question.branch) if question.branch else newest_of(branches, records)
    value = question.value if question.json is None else exact(question.json)
    step = client.settle(view.log, question.run, question.step, question.choice, value, by, branch.branch)
    then = "will be executed again" if question.choice == "rerun" else f"counts as {step.status.replace('_', ' ')}"
    return Done(
        log=view.name,
        run=question.run,
        branch=branch.branch,
        branch_name=branch.name,
        by=by,
        message=f"Step {step.name} ({step.number}) {then}. Run the cell again to go on.",
    )


def literal(name: str, text: str) -> Any:
    """The value of a variable from what a person has typed: JSON, or a literal of Python.

    Raises:
        UsageError: it is neither.

    >>> literal("tone", "'warm'"), literal("draft", "true"), literal("draft", "True"), literal("size", "(1, 2)")
    ('warm', True, True, (1, 2))
    >>> literal("tone", "warm")
    Traceback (most recent call last):
    jupyter_durable.errors.UsageError: The value for `tone` is neither JSON nor a literal of Python. A text has quotes \
around it.
    """
    try:
        return exact(text)
    except UsageError:
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise UsageError(
            f"The value for `{name}` is neither JSON nor a literal of Python. A text has quotes around it."
        ) from None


def exact(text: str) -> Any:
    """The value of a JSON text, with every digit of its integers.

    Raises:
        UsageError: it is no JSON, or has a number that nothing can hold.

    >>> exact("12345678901234567890123")
    12345678901234567890123
    """
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The value is no JSON that can be kept as it is: {error}.") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"nothing can hold the number {text[:40]}")
    return number
