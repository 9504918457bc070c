"""What runs wait for, and what a person answers, signed with the name of the server's user."""

from __future__ import annotations

from jupyter_durable import answering, client
from jupyter_durable.branches import BranchView
from jupyter_durable.event_data import Signal
from jupyter_durable.server.deciding import exact
from jupyter_durable.server.details import schema_of, shown_with
from jupyter_durable.server.logs import LogView, branch_of, branches_of, records_of
from jupyter_durable.server.shapes import (
    AnswerItem,
    AnswerQuestion,
    Done,
    KeptItem,
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
    if view is None:
        return Waits(log=name, waits=[], kept=[])
    found = answering.waiting(view.log)
    taken = {wait.answer.id for wait in found if wait.answer is not None}
    return Waits(log=name, waits=[_item(each) for each in found[:_MOST]], kept=_kept(view, taken)[:_MOST])


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
        UsageError: the run waits for such a signal and the value does not fit, or is no JSON.
    """
    records = records_of(view.look(), question.run)
    if question.branch:
        branch_of(branches_of(records), question.branch)
    branch = client.find_branch(view.log, question.run, question.branch)
    value = question.value if question.json is None else exact(question.json)
    new = answering.send(
        view.log, question.run, question.name, value,
        signal_id=question.id, branch=branch.branch, by=by, via="panel",
    )  # fmt: skip
    use = answering.use_of(view.log, question.run, branch.branch)
    return Done(
        log=view.name,
        run=question.run,
        branch=branch.branch,
        branch_name=branch.name,
        by=by,
        message=f"Sent. {use[:1].upper()}{use[1:]}." if new else "It had been sent before, and counts once.",
    )


def _kept(view: LogView, taken: set[str]) -> list[KeptItem]:
    """The signals that nobody has waited for yet, oldest first. Reads the branches alone that some were sent to.

    Args:
        view: the log.
        taken: ids of those that answer a wait, which is listed itself.
    """
    found: list[KeptItem] = []
    with view.looking() as listing:
        for run in dict.fromkeys(record.header.run for record in listing.records()):
            sent = [each for each in view.log.signals(run) if _is_kept(each) and each.id not in taken]
            if not sent:
                continue
            records = records_of(listing, run)
            branches = branches_of(records)
            for branch in branches:
                mine = [each for each in sent if (each.branch or branches[0].branch) == branch.branch]
                if mine:
                    with view.branch(listing, branch.branch, None) as (index, _):
                        used = index.history.used_signals()
                    found += [_kept_item(each, branch) for each in mine if each.id not in used]
    return sorted(found, key=lambda each: each.at)


def _is_kept(signal: Signal) -> bool:
    """Whether a program may wait for it: it is no answer, and no word of the product's own."""
    return not signal.request and not signal.name.startswith("durable.")


def _kept_item(signal: Signal, branch: BranchView) -> KeptItem:
    return KeptItem(
        run=signal.run,
        run_name=branch.first.name,
        branch=branch.branch,
        branch_name=branch.name,
        signal=signal.name,
        id=signal.id,
        by=signal.by,
        via=signal.via,
        at=signal.sent,
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
