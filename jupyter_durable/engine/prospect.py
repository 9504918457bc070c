"""What a run would take up: which branch, which histories, under which policy. Reads, and writes nothing.

The beginning of an execution and the plan of one ask the same here, so that a plan says what will be done.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import msgspec

from jupyter_durable import errors
from jupyter_durable.branches import BranchView, Choice, Wanted, asked_for, choose, group
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.call import Policy, Reuse
from jupyter_durable.engine.flags import Flags
from jupyter_durable.engine.inputs import Inputs
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.engine.setting import decoded
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.evidence import EvidenceBook
from jupyter_durable.history import History
from jupyter_durable.log.base import EventLog, ExecutionRecord
from jupyter_durable.sentences import quoted

STALLED = 5
"""Executions in a row that died without recording the end of any step, after which a person is asked."""


class Prospect(msgspec.Struct):
    """What an execution that began now would find."""

    records: list[ExecutionRecord]
    views: list[BranchView]
    book: EvidenceBook
    inputs: Inputs
    wanted: Wanted
    choice: Choice
    own: History
    source: History | None
    policy: Policy
    set: dict[str, Any] = msgspec.field(default_factory=dict)
    """Notebook variables that have another value on this branch, and the value."""


PutBack = Callable[[RunSpec, EventLog, BranchView, Inputs], list[str] | None]


def look(spec: RunSpec, log: EventLog, put_back: PutBack) -> Prospect:
    """Find the branch that a run takes up, and read what is needed of it.

    Args:
        spec: which run, of what code, with which inputs.
        log: where histories are kept.
        put_back: puts inputs that the run itself has changed back to their start values, or says whether it could;
            ``None`` if it cannot.

    Raises:
        UsageError: a flag names a branch or a step that is not there.
        LogError: the log cannot be read.
    """
    records = log.executions(spec.run)
    newest = next((r for r in reversed(records) if r.header.purpose == "run"), None)
    left = newest.outcome.state if newest is not None and newest.outcome is not None else {}
    flags = spec.flags
    views = group(Seen(r.header, r.outcome, r.running) for r in records)
    if spec.flags.branch and not any(view.name == spec.flags.branch for view in views):
        names = ", ".join(f"`{view.name}`" for view in views) or "none yet"
        raise errors.UsageError(f"Run `{spec.name}` has no branch `{spec.flags.branch}`. Its branches: {names}.")
    if flags.from_step and not views:
        raise errors.UsageError(
            f"Run `{spec.name}` has no history yet, so there is nothing to start again from, and nothing was executed. "
            f"Is `--from {flags.from_step}` meant for a run of another name? `%durable runs` lists them.",
            run=spec.name,
        )
    chosen = _chosen(views, spec)
    values = decoded(chosen.first.set, log) if chosen is not None else {}
    book, inputs, wanted, choice = _choose(spec, log, views, left, chosen, values)
    if values and chosen is not None and chosen not in (choice.take, choice.origin, choice.continues):
        values = {}  # the branch does not fit, so neither do the values that were set for it
        book, inputs, wanted, choice = _choose(spec, log, views, left, None, values)
    refuse_closed(spec, choice)
    own, source = History(), None
    if choice.continues is not None:
        _as_it_began(spec, log, choice, inputs, put_back)
    if choice.take is not None:
        own = History(log.history(choice.take.branch))
        if choice.restored and put_back(spec, log, choice.take, inputs) is None:
            choice = Choice(None, choice.take, "inputs changed and their start values are not kept")
            own = History()
    if choice.take is not None:
        source = _source_of(log, choice.take.first)
    elif choice.origin is not None:
        choice = _with_steps(log, views, choice)
        assert choice.origin is not None
        source = History(log.history(choice.origin.branch))
        _refuse_unknown_step(spec, log, views, choice.origin)
    refuse_closed(spec, choice)
    origin = choice.origin.branch if choice.origin is not None else _origin_branch(choice)
    policy = _policy(spec, own, views, origin)
    return Prospect(records, views, book, inputs, wanted, choice, own, source, policy, values)


def _as_it_began(spec: RunSpec, log: EventLog, choice: Choice, inputs: Inputs, put_back: PutBack) -> None:
    """Let the cell go on anew with the notebook in which it had begun, as a new kernel will find it, too."""
    ended = choice.continues
    assert ended is not None
    if choice.restored:
        put_back(spec, log, ended, inputs)  # what is too large for that stays as the cell has left it
    for name in [each for each in inputs.digests if each in spec.binds and each not in ended.first.inputs]:
        del inputs.digests[name]  # the cell has made it itself
        inputs.mutable.pop(name, None)


def _chosen(views: list[BranchView], spec: RunSpec) -> BranchView | None:
    """The branch that a person has named, chosen or forked."""
    flags = spec.flags
    if spec.after:
        after = next((view for view in reversed(views) if spec.after in (view.branch, view.first.continues)), None)
        return after if after is not None and after.first.set else None
    if flags.branch:
        return next(view for view in views if view.name == flags.branch)
    return None if flags.fresh or flags.from_step or flags.sample else asked_for(views)


def _choose(
    spec: RunSpec,
    log: EventLog,
    views: list[BranchView],
    left: dict[str, tuple[str, str]],
    chosen: BranchView | None,
    values: dict[str, Any],
) -> tuple[EvidenceBook, Inputs, Wanted, Choice]:
    """Choose by the notebook's variables, with the values that were set for the chosen branch in their place."""
    flags = spec.flags
    book = EvidenceBook(cell=spec.binds, left=left)
    inputs = Inputs.of({**spec.namespace, **values} if values else spec.namespace, spec.reads, book)
    pass_id = "" if flags.replay_only else spec.pass_id
    untouched = chosen is not None and not History(log.history(chosen.branch)).entries
    wanted = Wanted(
        spec.code, inputs.digests, flags.fresh, flags.from_step, flags.branch, spec.binds, pass_id,
        chosen.branch if chosen is not None else "", untouched, spec.sample_number if flags.sample else 0,
        spec.after, spec.sample_first,
    )  # fmt: skip
    return book, inputs, wanted, choose(views, wanted)


def refuse_closed(spec: RunSpec, choice: Choice) -> None:
    """Neither continue nor build upon a branch that was undone: what it has recorded is true no more.

    Raises:
        BranchClosed: it was.
    """
    view = choice.take or choice.origin
    if view is not None and view.undone is not None:
        raise errors.BranchClosed(
            f"Run `{spec.name}`: {undone_text(view)} Its recorded results are true no more, so nothing was replayed or "
            f"executed. `%%durable {quoted(spec.name)} --fresh` starts again; `%durable fork {quoted(spec.name)} --at "
            f"STEP` goes on from a step, and executes what was undone.",
            run=spec.name, branch=view.name, by=view.undone.by, at=view.undone.at,
        )  # fmt: skip


def undone_text(view: BranchView) -> str:
    """A sentence about a branch that was undone: by whom, when, and whether the undo came to its end."""
    undone = view.undone
    assert undone is not None
    when = datetime.datetime.fromtimestamp(undone.at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if undone.finished:
        return f"Branch `{view.name}` was undone by {undone.by} at {when}."
    run = quoted(view.first.name)
    return (
        f"Branch `{view.name}` is being undone: {undone.by} began at {when}, and it is not finished; `%durable undo "
        f"{run} --branch {view.name} --yes` goes on."
    )


def refuse_stalled(spec: RunSpec, view: BranchView, own: History) -> None:
    """Ask a person, where the executions before this one died one after the other without getting anywhere.

    Raises:
        DecisionNeeded: that is so.
    """
    if own.stalled_now < STALLED or spec.flags.replay_only:
        return
    doubtful = [entry.label for entry in own.entries.values() if entry.state == "open" and not entry.waits]
    raise errors.DecisionNeeded(
        f"Run `{spec.name}`, branch `{view.name}`: the last {own.stalled_now} executions died before any step came to "
        f"an end{' in ' + ', '.join(doubtful) if doubtful else ''}. Running it again would do the same. Find what "
        f"kills the kernel (memory, a signal), then say `%durable decide rerun {spec.name}` to go on.",
        run=spec.name, branch=view.name, steps=doubtful,
    )  # fmt: skip


def branch_of_number(run: str, number: int) -> tuple[str, str]:
    """Id and name of the branch of a run that is made as this number, counted from 1.

    >>> branch_of_number("a1b2", 1), branch_of_number("a1b2", 2)
    (('a1b2.1', 'main'), ('a1b2.2', 'main-2'))
    """
    return f"{run}.{number}", "main" if number == 1 else f"main-{number}"


def policy_after(policy: Policy, flags: Flags) -> Policy:
    """The policy of a branch that is gone over to in the middle of a replay.

    What a person said about an earlier edit does not speak of this one.
    """
    reuse: Reuse = flags.reuse or ("none" if flags.from_step else "ask")
    return msgspec.structs.replace(policy, reuse=reuse, reused_names={}, origin_runs=False, by_flag=bool(flags.reuse))


def decided(own: History) -> Reuse | None:
    """What a person has said about all steps after a difference; ``None`` if nothing."""
    return next((d.reuse for d in reversed(own.decisions) if not d.steps), None)


def _with_steps(log: EventLog, views: list[BranchView], choice: Choice) -> Choice:
    """The same choice, from the nearest branch that holds a step: one that stopped at its beginning has none."""
    view = choice.origin
    while view is not None and view.first.origin is not None and not History(log.history(view.branch)).entries:
        before = view.first.origin.branch
        view = next((each for each in views if each.branch == before), None)
    return choice if view is None else Choice(None, view, choice.reason)


def _origin_branch(choice: Choice) -> str:
    first = choice.take.first if choice.take is not None else None
    return first.origin.branch if first is not None and first.origin is not None else ""


def _refuse_unknown_step(spec: RunSpec, log: EventLog, views: list[BranchView], origin: BranchView) -> None:
    """`--from` must name a step that is recorded, or one that the code can still come to."""
    named = spec.flags.from_step
    if not named or named.partition(".")[0] in spec.reads:
        return
    recorded: dict[str, None] = {}
    view: BranchView | None = origin
    while view is not None:
        for entry in sorted(History(log.history(view.branch)).entries.values(), key=lambda e: e.begun):
            # A number is one of the branch itself; names go further back.
            if named in (entry.key.name, f"{entry.key.name}#{entry.key.n}") or (
                view is origin and named == str(entry.begun)
            ):
                return
            if view is origin:
                recorded[entry.label] = None
        before = view.first.origin
        view = next((each for each in views if before is not None and each.branch == before.branch), None)
    raise errors.UsageError(
        f"Run `{spec.name}`, branch `{origin.name}`: there is no step `{named}` to start again from, so nothing was "
        f"executed. Recorded are: {', '.join(recorded) or 'none yet'}.",
        run=spec.name, branch=origin.name, step=named,
    )  # fmt: skip


def _source_of(log: EventLog, first: ExecutionHeader) -> History | None:
    """History of the branch of origin, up to where it was when the branch was made."""
    if first.origin is None:
        return None
    upto = first.origin.seq
    return History(r for r in log.history(first.origin.branch) if r.seq <= upto)


def _policy(spec: RunSpec, own: History, views: list[BranchView], origin: str) -> Policy:
    flags = spec.flags
    fork = own.headers[0].fork if own.headers else None
    reuse: Reuse = flags.reuse or decided(own) or ("none" if flags.from_step or fork is not None else "ask")
    return Policy(
        replay_only=flags.replay_only,
        strict=flags.strict,
        reuse=reuse,
        from_step=flags.from_step,
        fork_at=-1 if fork is None else fork.at,
        causes=spec.causes,
        in_script=spec.code == "",
        mentions=spec.reads,
        origin_runs=any(view.branch == origin and view.newest.running for view in views),
        reused_names={name: d.reuse for d in own.decisions for name in d.steps},
        by_flag=bool(flags.reuse),
    )
