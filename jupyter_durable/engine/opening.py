"""Beginning an execution: which branch, which history, whose lock; and going over to a new branch on the way."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import MutableMapping
from typing import Any

import msgspec

from jupyter_durable import clock, errors
from jupyter_durable.branches import BranchView, Choice, Wanted, choose, group
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.call import Policy, Reuse
from jupyter_durable.engine.adopting import adoption
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.hidden import too_large
from jupyter_durable.engine.hooks import HOOKS
from jupyter_durable.engine.inputs import Inputs, at_end, restore
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.event_data import Decision, ExecutionHeader, Origin, Outcome, Payload
from jupyter_durable.events import FORMAT, Decided, ExecutionEnded
from jupyter_durable.evidence import EvidenceBook
from jupyter_durable.history import History
from jupyter_durable.log.base import EventLog, Writer
from jupyter_durable.replay import Replay
from jupyter_durable.values import decode, redact

STALLED = 5
"""Executions in a row that died without recording the end of any step, after which a person is asked."""

_draining: dict[str, Execution] = {}
"""Executions of this process that have ended while steps of theirs still run in threads, by run."""


def begin(spec: RunSpec, log: EventLog) -> Execution:
    """Take up a branch and begin an execution on it.

    Args:
        spec: which run, of what code, with which inputs.
        log: where histories are kept.

    Returns:
        The live execution. Its frame is not yet in any context.

    Raises:
        BranchBusy: another execution holds the branch.
        DecisionNeeded: the run cannot go on before a person has said something.
        LogError: the log cannot be read or written.
    """
    before = _draining.get(spec.run)
    if before is not None and before.draining:
        while not before.wait_closed(0.05):
            pass  # in slices, so that an interrupt gets through; the join itself waits for the event
    for _ in range(3):
        try:
            return _begin_once(spec, log)
        except errors.BranchMoved:
            continue  # somebody else began and ended an execution between our reading and our taking the branch
    raise errors.BranchBusy(
        f"Run `{spec.name}`: other executions keep beginning and ending on the same branch. Run the cell again.",
        run=spec.name,
    )


def _begin_once(spec: RunSpec, log: EventLog) -> Execution:
    records = log.executions(spec.run)
    newest = next((r for r in reversed(records) if r.header.purpose == "run"), None)
    left = newest.outcome.state if newest is not None and newest.outcome is not None else {}
    book = EvidenceBook(cell=spec.binds, left=left)
    inputs = Inputs.of(spec.namespace, spec.reads, book)
    flags = spec.flags
    wanted = Wanted(
        spec.code, inputs.digests, flags.fresh, flags.from_step, flags.branch, spec.binds, spec.pass_id
    )  # fmt: skip
    views = group(Seen(r.header, r.outcome, r.running) for r in records)
    if spec.flags.branch and not any(view.name == spec.flags.branch for view in views):
        names = ", ".join(f"`{view.name}`" for view in views) or "none yet"
        raise errors.UsageError(f"Run `{spec.name}` has no branch `{spec.flags.branch}`. Its branches: {names}.")
    choice = choose(views, wanted)
    own, source = History(), None
    if choice.take is not None:
        own = History(log.history(choice.take.branch))
        if choice.restored:
            put_back = _restore(spec, log, choice.take, inputs)
            if put_back is None:
                choice = Choice(None, choice.take, "inputs changed and their start values are not kept")
                own = History()
    if choice.take is not None:
        _refuse_stalled(spec, choice.take, own)
        source = _source_of(log, choice.take.first)
    elif choice.origin is not None:
        choice = _with_steps(log, views, choice)
        assert choice.origin is not None
        source = History(log.history(choice.origin.branch))
        _refuse_unknown_step(spec, log, views, choice.origin)
    header = _header(spec, inputs, views, choice, source)
    if choice.take is not None:
        header = msgspec.structs.replace(header, head={r.header.branch: r.last for r in records}[header.branch])
    origin = choice.origin.branch if choice.origin is not None else _origin_branch(choice)
    writer = log.begin(header)
    execution = Execution(
        spec, log, writer, header, Replay(own, source, _policy(spec, own, views, origin)), book, _branch_off
    )
    if spec.flags.reuse and spec.flags.reuse != _decided(own):
        execution.append(Decided(at=clock.now(), data=Decision(reuse=spec.flags.reuse, by="flag")))
    execution.end_inputs = at_end(spec.namespace, list(inputs.mutable))
    if choice.take is not None and (unseen := too_large(inputs.digests)):
        execution.stats.notices.append(unseen)
    execution.stats.notices += [] if choice.take is not None or choice.origin is None else [choice.reason]
    HOOKS.set()
    execution.stats.notices += HOOKS.problems
    execution.on_closed.append(_forget)
    _draining[spec.run] = execution
    return execution


def _forget(closed: Execution) -> None:
    if _draining.get(closed.spec.run) is closed:
        del _draining[closed.spec.run]


def _restore(spec: RunSpec, log: EventLog, view: BranchView, inputs: Inputs) -> list[str] | None:
    if not isinstance(spec.namespace, MutableMapping):
        return None

    def value(payload: Payload) -> Any:
        return decode(payload.codec, bytes(payload.data), log.read_blob)  # type: ignore[arg-type]

    put_back = restore(spec.namespace, view.newest.header, inputs.digests, value)
    for name in put_back or ():
        inputs.digests[name] = view.newest.header.inputs[name]
    return put_back


def _refuse_stalled(spec: RunSpec, view: BranchView, own: History) -> None:
    if own.stalled_now < STALLED or spec.flags.replay_only:
        return
    doubtful = [entry.label for entry in own.entries.values() if entry.state == "open"]
    raise errors.DecisionNeeded(
        f"Run `{spec.name}`, branch `{view.name}`: the last {own.stalled_now} executions died before any step came to "
        f"an end{' in ' + ', '.join(doubtful) if doubtful else ''}. Running it again would do the same. Find what "
        f"kills the kernel (memory, a signal), then say `%durable decide rerun {spec.name}` to go on.",
        run=spec.name, branch=view.name, steps=doubtful,
    )  # fmt: skip


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
        for entry in History(log.history(view.branch)).entries.values():
            if named in (entry.key.name, f"{entry.key.name}#{entry.key.n}", str(entry.begun)):
                return
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


def _header(
    spec: RunSpec, inputs: Inputs, views: list[BranchView], choice: Choice, source: History | None
) -> ExecutionHeader:
    run = spec.run
    newest = views[-1].newest.header if views else None
    generation = newest.generation if newest is not None else 0
    origin = None
    if choice.take is not None:
        first = choice.take.first
        branch, branch_name, root, generation = choice.take.branch, choice.take.name, first.root, first.generation
    else:
        number = len(views) + 1
        branch, branch_name = f"{run}.{number}", "main" if number == 1 else f"main-{number}"
        if choice.origin is not None and source is not None:
            last = source.headers[-1].execution
            origin = Origin(branch=choice.origin.branch, execution=last, seq=source.seq)
            root, generation = choice.origin.first.root, choice.origin.first.generation
        else:
            root, generation = branch, max((v.first.generation for v in views), default=-1) + 1
    return ExecutionHeader(
        format=FORMAT,
        execution=new_execution_id(run),
        run=run,
        name=spec.name,
        branch=branch,
        branch_name=branch_name,
        origin=origin,
        root=root,
        generation=generation,
        notebook=spec.notebook,
        path=spec.path,
        cell=spec.cell,
        source=redact(spec.source),
        code=spec.code,
        inputs=inputs.digests,
        values={name: Payload(codec=e.codec, data=msgspec.Raw(e.text)) for name, e in inputs.start_values().items()},
        flags=spec.flags.as_text(),
        pass_id=spec.pass_id,
        python=platform.python_version(),
        packages={"jupyter_durable": _version()},
        pid=os.getpid(),
        host=socket.gethostname(),
        durability=spec.flags.durability,
    )


def _policy(spec: RunSpec, own: History, views: list[BranchView], origin: str) -> Policy:
    flags = spec.flags
    reuse: Reuse = flags.reuse or _decided(own) or ("none" if flags.from_step else "ask")
    return Policy(
        replay_only=flags.replay_only,
        strict=flags.strict,
        reuse=reuse,
        from_step="" if _continues(own, flags.from_step) else flags.from_step,
        causes=spec.causes,
        mentions=spec.reads,
        origin_runs=any(view.branch == origin and view.newest.running for view in views),
        reused_names={name: d.reuse for d in own.decisions for name in d.steps},
    )


def _continues(own: History, from_step: str) -> bool:
    """The flag began this branch already; what it asked for has happened there."""
    return bool(own.headers) and own.headers[0].flags.get("from") == from_step != ""


def _decided(own: History) -> Reuse | None:
    return next((d.reuse for d in reversed(own.decisions) if not d.steps), None)


def _branch_off(execution: Execution, reason: str) -> tuple[Writer, ExecutionHeader, Replay]:
    """Go over to a new branch in the middle of a replay, taking along what was handed out so far.

    The code under a step turned out to differ, which could not be seen at the start. Nothing was executed live yet.
    """
    log, spec, old = execution.log, execution.spec, execution.replay
    execution.append(ExecutionEnded(at=clock.now(), data=Outcome(status="stopped")))
    last = execution.writer.head
    execution.writer.close()
    views = group(Seen(r.header, r.outcome, r.running) for r in log.executions(spec.run))
    number = len(views) + 1
    header = msgspec.structs.replace(
        execution.header,
        execution=new_execution_id(spec.run),
        branch=f"{spec.run}.{number}",
        branch_name=f"main-{number}",
        head=None,
        origin=Origin(branch=execution.header.branch, execution=last.execution, seq=last.seq),
    )
    writer = log.begin(header)
    served = [e for e in sorted(old.own.entries.values(), key=lambda e: e.begun) if old.match.is_served(e)]
    own = History()
    for entry in served:
        if entry.state not in ("completed", "failed"):
            continue
        event = adoption(entry, entry.key, "the same before the first difference", log)
        own.apply(writer.append(event), event)
    # What a person said about an earlier edit does not speak of this one.
    reuse: Reuse = spec.flags.reuse or ("none" if spec.flags.from_step else "ask")
    policy = msgspec.structs.replace(old.policy, reuse=reuse, reused_names={}, origin_runs=False)
    replay = Replay(own, old.own, policy)
    for entry in own.entries.values():
        replay.match.serve(own, entry)
    for entry in served:
        replay.match.serve(old.own, entry)
    execution.stats.notices.append(f"{reason}: a new branch, `{header.branch_name}`, was made from here")
    return writer, header, replay


def new_execution_id(run: str) -> str:
    """An id that sorts by time within a run: the run's first digits, milliseconds, four random bytes."""
    return f"{run[:8]}-{int(clock.now() * 1000):012x}-{clock.token_bytes(4).hex()}"


def _version() -> str:
    from importlib import metadata  # 20 ms, and an execution has begun by then in any case

    try:
        return metadata.version("jupyter_durable")
    except metadata.PackageNotFoundError:
        return "unknown"
