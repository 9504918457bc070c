"""What runs wait for, and what a person answers, signed with the name of the server's user."""

from __future__ import annotations

from jupyter_durable import answering
from jupyter_durable.server.details import schema_of, shown_with
from jupyter_durable.server.logs import LogView, branches_of, newest_of, records_of
from jupyter_durable.server.shapes import (
    AnswerItem,
    AnswerQuestion,
    Done,
    SignalQuestion,
    WaitItem,
    Waits,
)

_MOST = 200
"""Waits of one answer."""


def waits(view: LogView | None, name: str) -> Waits:
    """Answer to GET waiting.

    Args:
        view: the log; ``None`` if there is none yet.
        name: where the log lies.
    """
    found = [] if view is None else answering.waiting(view.log)
    return Waits(log=name, waits=[_item(each) for each in found[:_MOST]])


def answer(view: LogView, question: AnswerQuestion, by: str) -> Done:
    """Answer to POST answer.

    Raises:
        UsageError: nobody waits for it (any more), or the answer does not fit.
    """
    records_of(view.look(), question.run)
    wait = answering.answer(view.log, question.request, question.value, run=question.run, by=by, via="panel")
    then = "It goes on at once." if wait.running else "Run the cell again to go on."
    return Done(
        log=view.name,
        run=wait.run,
        branch=wait.branch,
        branch_name=wait.branch_name,
        by=by,
        message=f"Answered. {then}",
    )


def signal(view: LogView, question: SignalQuestion, by: str) -> Done:
    """Answer to POST signal.

    Raises:
        UsageError: the run waits for such a signal and the value does not fit.
    """
    records = records_of(view.look(), question.run)
    branch = newest_of(branches_of(records), records)
    new = answering.send(
        view.log, question.run, question.name, question.value, signal_id=question.id, by=by, via="panel"
    )
    return Done(
        log=view.name,
        run=question.run,
        branch=branch.branch,
        branch_name=branch.name,
        by=by,
        message="Sent. It is used when the run waits for it." if new else "It had been sent before, and counts once.",
    )


def _item(wait: answering.WaitView) -> WaitItem:
    info, said = wait.info, wait.answer
    return WaitItem(
        run=wait.run,
        run_name=wait.run_name,
        branch=wait.branch,
        branch_name=wait.branch_name,
        number=wait.number,
        request=info.request,
        kind=wait.kind,  # type: ignore[arg-type] # the words of both
        signal=wait.name if wait.kind == "signal" else "",
        child=wait.child,
        question=info.question,
        choices=list(info.choices),
        schema=schema_of(info),
        shown=shown_with(info),
        until=info.until,
        running=wait.running,
        cell=wait.cell,
        notebook=wait.notebook,
        answered=None if said is None else AnswerItem(by=said.by, via=said.via, at=said.sent),
    )
