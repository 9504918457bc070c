"""Beginning an execution: which branch, which history, whose lock; and going over to a new branch on the way."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import MutableMapping
from typing import Any

import msgspec

from jupyter_durable import clock, errors
from jupyter_durable.branches import BranchView, Choice, group
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.engine.adopting import adoption
from jupyter_durable.engine.cancellation import refuse_cancelled
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.hidden import too_large
from jupyter_durable.engine.hooks import HOOKS
from jupyter_durable.engine.inputs import Inputs, at_end, restore
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.engine.prospect import Prospect, branch_of_number, decided, look, policy_after, refuse_stalled
from jupyter_durable.engine.remarks import new_execution_id
from jupyter_durable.engine.setting import Setting, shown
from jupyter_durable.event_data import Decision, ExecutionHeader, Origin, Outcome, Payload, Sample
from jupyter_durable.events import FORMAT, Decided, ExecutionEnded
from jupyter_durable.history import History
from jupyter_durable.log.base import EventLog, Writer
from jupyter_durable.replay import Replay
from jupyter_durable.values import decode, redact

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
    found = look(spec, log, _restore)
    choice, own, inputs = found.choice, found.own, found.inputs
    seen: set[str] = set()
    taken = choice.take or choice.continues
    if taken is not None:
        seen = refuse_cancelled(spec, log, taken)
    if choice.take is not None:
        refuse_stalled(spec, choice.take, own)
    header = _header(spec, found)
    if choice.take is not None:
        header = msgspec.structs.replace(header, head={r.header.branch: r.last for r in found.records}[header.branch])
    writer = log.begin(header)
    setting = Setting(spec.namespace, found.set)
    setting.apply()
    execution = Execution(
        spec, log, writer, header, Replay(own, found.source, found.policy), found.book, _branch_off
    )  # fmt: skip
    execution.cancel_watch.used |= seen
    execution.put_back = setting.undo
    if header.set:
        execution.stats.notices.append(f"set on this branch: {shown(header.set)}; the notebook's own value comes back")
    if spec.flags.reuse and spec.flags.reuse != decided(own):
        execution.append(Decided(at=clock.now(), data=Decision(reuse=spec.flags.reuse, by="flag")))
    execution.end_inputs = at_end(spec.namespace, [name for name in inputs.mutable if name not in found.set])
    if choice.take is not None and (unseen := too_large(inputs.digests)):
        execution.stats.notices.append(unseen)
    execution.stats.notices += [] if choice.take is not None or choice.origin is None else [choice.reason]
    HOOKS.set()
    execution.stats.notices += HOOKS.problems
    execution.on_closed.append(_forget)
    _draining[spec.run] = execution
    HOOKS.began(execution)
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


def _header(spec: RunSpec, found: Prospect) -> ExecutionHeader:
    run, inputs, views, choice, source = spec.run, found.inputs, found.views, found.choice, found.source
    newest = views[-1].newest.header if views else None
    generation = newest.generation if newest is not None else 0
    origin = None
    if choice.take is not None:
        first = choice.take.first
        branch, branch_name, root, generation = choice.take.branch, choice.take.name, first.root, first.generation
    else:
        branch, branch_name = branch_of_number(run, len(views) + 1)
        if choice.origin is not None and source is not None:
            last = source.headers[-1].execution
            origin = Origin(branch=choice.origin.branch, execution=last, seq=source.seq)
            root, generation = choice.origin.first.root, choice.origin.first.generation
        else:
            root, generation = branch, max((v.first.generation for v in views), default=-1) + 1
    before = choice.take or choice.origin or choice.continues
    values = before.first.set if before is not None and found.set else {}
    carried = before.first.carried if before is not None else None
    if choice.continues is not None and choice.continues.newest.outcome is not None:
        carried = choice.continues.newest.outcome.carried
    return ExecutionHeader(
        format=FORMAT,
        execution=new_execution_id(run),
        run=run,
        name=spec.name,
        branch=branch,
        branch_name=branch_name,
        origin=origin,
        root=root,
        continues="" if choice.continues is None else choice.continues.branch,
        carried=carried,
        generation=generation,
        notebook=spec.notebook,
        path=spec.path,
        cell=spec.cell,
        source=redact(spec.source),
        code=spec.code,
        inputs=inputs.digests,
        values={
            name: Payload(codec=e.codec, data=msgspec.Raw(e.text))
            for name, e in inputs.start_values().items()
            if name not in found.set
        },
        set=values,
        sample=_sample(spec, choice, branch),
        flags=spec.flags.as_text(),
        pass_id=spec.pass_id,
        python=platform.python_version(),
        packages={"jupyter_durable": _version()},
        pid=os.getpid(),
        host=socket.gethostname(),
        durability=spec.flags.durability,
    )


def _sample(spec: RunSpec, choice: Choice, branch: str) -> Sample | None:
    if not spec.flags.sample or choice.take is not None:
        return None
    return Sample(number=spec.sample_number, of=spec.flags.sample, first=spec.sample_first or branch)


def _branch_off(execution: Execution, reason: str) -> tuple[Writer, ExecutionHeader, Replay]:
    """Go over to a new branch in the middle of a replay, taking along what was handed out so far.

    The code under a step turned out to differ, which could not be seen at the start. Nothing was executed live yet.
    """
    log, spec, old = execution.log, execution.spec, execution.replay
    execution.append(ExecutionEnded(at=clock.now(), data=Outcome(status="stopped")))
    last = execution.writer.head
    execution.writer.close()
    views = group(Seen(r.header, r.outcome, r.running) for r in log.executions(spec.run))
    branch, branch_name = branch_of_number(spec.run, len(views) + 1)
    header = msgspec.structs.replace(
        execution.header,
        execution=new_execution_id(spec.run),
        branch=branch,
        branch_name=branch_name,
        head=None,
        sample=None,
        continues="",
        origin=Origin(branch=execution.header.branch, execution=last.execution, seq=last.seq),
    )
    writer = log.begin(header)
    served = [e for e in sorted(old.own.entries.values(), key=lambda e: e.begun) if old.match.is_served(e)]
    own = History()
    for entry in served:
        if entry.state not in ("completed", "failed"):
            continue
        event = adoption(entry, entry.key, "the same before the first difference", log, undone=old.own.is_undone(entry))
        own.apply(writer.append(event), event)
    replay = Replay(own, old.own, policy_after(old.policy, spec.flags))
    for entry in own.entries.values():
        replay.match.serve(own, entry)
    for entry in served:
        replay.match.serve(old.own, entry)
    execution.stats.notices.append(f"{reason}: a new branch, `{header.branch_name}`, was made from here")
    return writer, header, replay


def _version() -> str:
    from importlib import metadata  # 20 ms, and an execution has begun by then in any case

    try:
        return metadata.version("jupyter_durable")
    except metadata.PackageNotFoundError:
        return "unknown"
