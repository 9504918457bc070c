"""Answering what runs wait for, from outside: with a kernel or without, also while it is busy.

An answer is posted into the log's inbox; the run takes it from there, at once if it is running, else when its cell runs
again. It is checked here, at the door: against the schema, and whether anybody still waits for it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from jupyter_durable import answers, clock
from jupyter_durable.child_runs import children_of, innermost, path_of
from jupyter_durable.client import find_branch, find_child, views_of, who
from jupyter_durable.engine.waits import child_id
from jupyter_durable.entries import Entry
from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import Signal, WaitInfo
from jupyter_durable.history import History
from jupyter_durable.listings import cancelled_scopes, children, grouped, lies_in, pick_child
from jupyter_durable.log.base import EventLog
from jupyter_durable.sentences import moment, wrong_name

ENDED = ("completed", "failed", "continued")
"""How a branch may stand on which nothing waits any more."""


class WaitView(msgspec.Struct, frozen=True):
    """Something that a run waits for."""

    run: str
    run_name: str
    branch: str
    branch_name: str
    number: int
    """The number of the step."""
    kind: str
    """``timer``, ``signal`` or ``approval``."""
    name: str
    """Of the signal."""
    info: WaitInfo
    cell: str
    notebook: str
    """Path of the notebook or script."""
    running: bool
    """Its cell is waiting in a kernel right now; else it is parked, or its kernel died."""
    child: str = ""
    """Path of the child run that waits; empty: the run itself."""
    child_id: str = ""
    """Its id, where several have this path."""
    answer: Signal | None = None
    """What was answered, and was not taken by the run yet."""

    @property
    def whose(self) -> str:
        """The run, and the child run of it, that waits."""
        return f"{self.run_name}/{self.child}" if self.child else self.run_name

    @property
    def title(self) -> str:
        """What it waits for, as people say it."""
        if self.kind == "approval":
            return self.info.question
        if self.kind == "signal":
            return f"signal {self.name}"
        return f"timer until {moment(self.info.until)}"


def waiting(log: EventLog, run: str = "") -> list[WaitView]:
    """What the newest branches of all runs (or of one) wait for, oldest first. Reads events; loads no value.

    Args:
        log: where to look.
        run: id of a run; empty for all.
    """
    found = []
    records = log.executions(run or None)
    order = {record.header.execution: number for number, record in enumerate(records)}
    for name, branches in grouped(records).items():
        view = max(branches, key=lambda b: order[b.newest.header.execution])
        outcome = view.newest.outcome
        closed = view.cancelled is not None or view.undone is not None
        if closed or (outcome is not None and outcome.status in ENDED):
            continue
        signals = log.signals(name)
        history = History(log.history(view.branch))
        children = children_of(history)
        ending = cancelled_scopes(view.branch, children, signals)
        found += [
            WaitView(
                run=name,
                run_name=view.first.name,
                branch=view.branch,
                branch_name=view.name,
                number=entry.begun,
                kind=entry.kind,
                name=entry.key.name,
                info=entry.wait,
                cell=view.newest.header.cell,
                notebook=view.newest.header.path,
                running=view.newest.running,
                child=path_of(children, entry.key.scope),
                child_id=_child_id(view.branch, innermost(children, entry.key.scope)),
                answer=_answer_to(entry, view.branch, history, signals, children),
            )
            for entry in sorted(history.waits, key=lambda each: each.begun)
            if entry.waits and entry.wait is not None and not lies_in(entry.key.scope, ending)
        ]
    return found


def _child_id(branch: str, child: Entry | None) -> str:
    return "" if child is None else child_id(branch, child.key)


def _answer_to(
    entry: Entry, branch: str, history: History, signals: list[Signal], children: dict[str, Entry]
) -> Signal | None:
    assert entry.wait is not None
    scope = entry.key.scope
    whose = ("", path_of(children, scope), _child_id(branch, innermost(children, scope)))
    for signal in signals:
        meant = signal.request == entry.wait.request if signal.request else (
            entry.kind == "signal" and signal.name == entry.key.name and signal.branch in ("", branch)
            and signal.child in whose
        )  # fmt: skip
        if meant and signal.id not in history.used_signals():
            return signal
    return None


def answer(
    log: EventLog, which: str | int, value: Any, *, run: str = "", by: str = "", via: str = "python"
) -> WaitView:
    """Answer a request of a run.

    Args:
        log: where the run is.
        which: number of the step, or id of the request; empty: the only one that waits.
        value: ``True``, ``False``, a choice, or the value of a signal; JSON.
        run: id of the run; empty: whichever waits.
        by: who answers; default: the person at this machine.
        via: from where: ``python``, ``magic``, ``command line``, ``panel`` or ``cell``.

    Returns:
        What was answered.

    Raises:
        UsageError: nobody waits for it, it was answered already or has lapsed, or the answer does not fit.
    """
    wait = find(log, str(which), run)
    if wait.info.until is not None and clock.now() > wait.info.until:
        raise UsageError(f"`{wait.title}` has lapsed: it was to be answered until {moment(wait.info.until)}.")
    answers.check(value, wait.info.schema)
    # The request's id is that of the signal: of two people who answer at once, one is too late.
    signal = Signal(
        id=wait.info.request, run=wait.run, branch=wait.branch, name=wait.name, request=wait.info.request,
        value=answers.encoded(value), by=by or who(), via=via, sent=clock.now(),
    )  # fmt: skip
    if not log.post(signal):
        raise _answered_before(log, wait)
    return msgspec.structs.replace(wait, answer=signal)


def send(
    log: EventLog, run: str, name: str, value: Any = None, *, signal_id: str = "", branch: str = "", by: str = "",
    via: str = "python",
) -> bool:  # fmt: skip
    """Send a signal to a run. It is kept until the run waits for it; each is used once.

    Args:
        log: where the run is.
        run: name or id of the run, which must have begun once; with the path of a child run behind it
            (``report/page-3``), or its number, only a wait in that one takes the signal.
        name: of the signal.
        value: JSON.
        signal_id: made by the sender, so that a signal that is sent twice counts once; default: a new one.
        branch: name or id of the branch that it is for; default: the newest.
        by: who sends it; default: the person at this machine.
        via: from where, as in `answer`.

    Returns:
        Whether it is new: false if a signal with this id was sent before.

    Raises:
        UsageError: there is no such run or branch, several child runs have the path, or the run waits for such a signal
            and the value does not fit.
    """
    if not isinstance(name, str) or (wrong := wrong_name(name)):
        raise UsageError(
            f"{name!r:.80} is no name for a signal: {wrong if isinstance(name, str) else 'it is no text'}."
        )
    if name.startswith("durable."):
        raise UsageError(f"`{name}` is no name for a signal: names that begin with `durable.` are used by the product.")
    found, child = _addressee(log, run)
    meant = find_branch(log, found, branch)
    for wait in waiting(log, found):
        fits = wait.name == name and wait.branch == meant.branch and child in ("", wait.child, wait.child_id)
        if wait.kind == "signal" and fits:
            answers.check(value, wait.info.schema)
    return log.post(
        Signal(
            id=signal_id or clock.token_bytes(8).hex(), run=found, branch=meant.branch, name=name, child=child,
            value=answers.encoded(value), by=by or who(), via=via, sent=clock.now(),
        )
    )  # fmt: skip


def _addressee(log: EventLog, text: str) -> tuple[str, str]:
    """The run that a signal is for, and the child run: by its path, which holds on branches to come, or by its id."""
    run, name = find_child(log, text)
    if not name:
        return run, ""
    listed = children(log, run)
    child = pick_child(listed, name, text)
    return run, child.path if sum(each.path == child.path for each in listed) == 1 else child.request


def use_of(log: EventLog, run: str, branch: str = "") -> str:
    """What becomes of a signal that was sent to a branch, for people; without a full stop.

    Args:
        log: where the run is.
        run: id of the run.
        branch: name or id of the branch; default: the newest.
    """
    view = find_branch(log, run, branch)
    if not view.newest.running:
        if view.cancelled is not None:
            return f"the run is cancelled on branch {view.name}: it is kept, and used only if the run is resumed"
        if view.undone is not None:
            return f"branch {view.name} of the run is undone: it is kept, and not used there any more"
        if view.completed:
            return (
                f"the run has completed on branch {view.name}: it is kept, and used only if the cell goes on on this "
                f"branch"
            )
    return "it is used when the run waits for it"


def value_of(text: str, info: WaitInfo) -> Any:
    """An answer as it is typed: yes and no, a choice, or JSON; what is no JSON is text.

    >>> value_of("yes", WaitInfo(question="Send?"))
    True
    >>> value_of('{"sum": 3}', WaitInfo()), value_of("hello", WaitInfo())
    ({'sum': 3}, 'hello')
    """
    said = text.strip()
    if info.choices:
        return said.strip("\"'")
    if info.question:
        word = said.strip("\"'").lower()
        return {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}.get(word, said)
    try:
        return msgspec.json.decode(said)
    except msgspec.DecodeError:
        return said


def find(log: EventLog, which: str, run: str = "") -> WaitView:
    """The one request or signal that is meant, and that nobody has answered.

    Raises:
        UsageError: none, or more than one, is; with the reason.
    """
    listed = [wait for wait in waiting(log, run) if wait.kind != "timer"]
    found = [wait for wait in listed if not which or which in (str(wait.number), wait.info.request, wait.name)]
    if len(found) > 1:
        said = "; ".join(f"{wait.number} of run `{wait.run_name}` ({wait.title})" for wait in found[:10])
        raise UsageError(f"Several requests wait: {said}. Name the run and the number.")
    if not found:
        raise _nobody_waits(log, which, run, listed)
    if found[0].answer is not None:
        raise _answered_before(log, found[0])
    return found[0]


def _nobody_waits(log: EventLog, which: str, run: str, listed: list[WaitView]) -> UsageError:
    """Why nothing waits for an answer: it came too late, or there never was such a request."""
    for name in [run] if run else list(views_of(log)):
        view = find_branch(log, name)
        for entry in History(log.history(view.branch)).entries.values():
            if entry.wait is None or which not in (str(entry.begun), entry.wait.request) or entry.kind == "timer":
                continue
            if entry.receipt is not None:
                return UsageError(
                    f"Request {entry.begun} of run `{view.first.name}` was answered by {entry.receipt.by} at "
                    f"{moment(entry.receipt.sent)} ({entry.receipt.via}); the run has gone on with that."
                )
            if entry.state in ("failed", "cancelled"):
                how = "has lapsed" if entry.state == "failed" else "was cancelled by the program"
                return UsageError(f"Request {entry.begun} of run `{view.first.name}` {how}: nobody waits for it.")
    names = "; ".join(f"{wait.number} of run `{wait.run_name}` ({wait.title})" for wait in listed[:10])
    return UsageError(f"Nothing waits for an answer{f' to `{which}`' if which else ''}. Waiting: {names or 'nothing'}.")


def _answered_before(log: EventLog, wait: WaitView) -> UsageError:
    first = wait.answer or next((s for s in log.signals(wait.run) if s.id == wait.info.request), None)
    said = f" by {first.by} at {moment(first.sent)} ({first.via})" if first is not None else ""
    return UsageError(
        f"Request {wait.number} of run `{wait.run_name}` was answered already{said}; the run takes that answer when "
        f"its cell runs."
    )
