"""``durable.map`` inside of a run: one step for each item, some at a time.

Every item gets its identity at the call, in order of the items and in a place of the map's own. What is recorded is
handed out, the rest is executed: asynchronous bodies as tasks, others in threads that may hand them to an executor.
Identities depend on nobody's speed, and items depend on each other in nothing: one that is new leaves the recorded
ones as they are.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Coroutine, Iterable
from typing import Any

import msgspec

from jupyter_durable.call import Adopt, Call, Execute, Recorded
from jupyter_durable.engine.attempt import Attempt
from jupyter_durable.engine.awaited import Awaited
from jupyter_durable.engine.context import Frame, current, in_thread
from jupyter_durable.engine.crew import Tasks, Threads, Work
from jupyter_durable.engine.elsewhere import Pool, sent_to
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.flushing import Held
from jupyter_durable.engine.handing_out import hand_out, wait_for_turn
from jupyter_durable.engine.identity import DRIVERS
from jupyter_durable.engine.runner import carry_out, carry_out_async
from jupyter_durable.engine.steps import StepSpec, prepare
from jupyter_durable.errors import RunEnded
from jupyter_durable.keys import map_element, parent_scope
from jupyter_durable.replay import Replay

Known = tuple[int, Call, Recorded | Adopt, list[str], list[Any]]
"""An item whose end is recorded: its number, its call, the verdict, names and values of its arguments."""


class Mapping:
    """One call of ``durable.map``."""

    def __init__(self, frame: Frame, spec: StepSpec, items: list[Any], work: Work, pool: Pool | None) -> None:
        self.execution: Execution = frame.execution
        self.work = work
        self.spec = spec
        self.items = items
        self.pool = pool
        self.frame = _frame_of(frame, spec.name)
        self.known: list[Known] = []
        self.shown = False
        """An end must be flushed before the map returns."""
        self.held: Held | None = None
        """Its place in the order of returns, once the last item has ended."""
        self.ends_early = False
        """A recorded failure, or cancellation, ended it: what was not begun then is not begun now."""
        self._driven = spec if spec.is_async else self._in_threads()
        self._ask([prepare(self.frame, spec, (item,), {}) for item in items])

    def _in_threads(self) -> StepSpec:
        fn = self.spec.fn if self.pool is None else sent_to(self.pool, self.spec.fn, self.frame)

        def body(*args: Any) -> Any:
            frame = current()
            assert frame is not None
            return in_thread(frame, functools.partial(fn, *args))

        return msgspec.structs.replace(self.spec, fn=body, code=self.spec.subject)

    def _ask(self, calls: list[tuple[Call, list[str], list[Any]]]) -> None:
        """Decide about every item, the recorded ones first: an item that is new tells nothing about its neighbours."""
        new, known = [], []
        for index, (call, names, values) in enumerate(calls):
            if _is_known(self.execution.replay, call):
                self._decide(index, call, names, values)
                known.append(call)
            else:
                new.append((index, call, names, values))
        if self.ends_early:
            self.work.clear()
            return
        if known and not self.frame.place.loose:
            self._compare(known[0].key.scope, new)
        for each in new:
            self._decide(*each)
        self.work.sort()

    def _compare(self, scope: str, new: list[tuple[int, Call, list[str], list[Any]]]) -> None:
        """See whether the map had other items when it was recorded: whatever uses its results comes after that."""
        replay = self.execution.replay
        history = replay.own if replay.source is None else replay.source
        ended = max((entry.end for entry in history.scopes.get(scope, ())), default=-1)
        went_on = history.completed_branch() or history.last_start.get(parent_scope(scope), -1) > ended
        more = bool(new) and went_on
        said = f"`durable.map` of `{self.spec.name}` has other items than recorded"
        if replay.source is not None:
            if more or replay.match.unserved(history, scope):
                replay.differ(self.frame.place, said)
        elif more and history.completed_branch() and not replay.policy.replay_only:
            with self.execution.lock:
                self.execution.branch_at(said)

    def _decide(self, index: int, call: Call, names: list[str], values: list[Any]) -> None:
        verdict = self.execution.ask(call, counts=False)
        if isinstance(verdict, Execute):
            self.work.add(index, functools.partial(self._execute, index, call, verdict, names, values))
            return
        assert isinstance(verdict, Recorded | Adopt)
        state = verdict.entry.state
        self.ends_early |= state == "cancelled" or (state == "failed" and not self.work.keeps)
        self.known.append((index, call, verdict, names, values))

    def _execute(self, index: int, call: Call, verdict: Execute, names: list[str], values: list[Any]) -> Any:
        """Execute one item; for an asynchronous body a coroutine."""
        if self.spec.is_async:
            return self._execute_async(index, call, verdict, names, values)
        attempt = None
        try:
            attempt = self._attempt(call, verdict, names, values)
            self.work.value(index, carry_out(attempt, (self.items[index],), {}))
        except BaseException as error:
            self.work.failed(index, error, recorded=_is_recorded(attempt))
        return None

    async def _execute_async(
        self, index: int, call: Call, verdict: Execute, names: list[str], values: list[Any]
    ) -> None:
        attempt = None
        try:
            attempt = self._attempt(call, verdict, names, values)
            self.work.value(index, await carry_out_async(attempt, (self.items[index],), {}, in_order=False))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.work.failed(index, error, recorded=_is_recorded(attempt))
        # No await since the end was recorded: the map returns before whatever ends from now on.
        self.work.ended()
        self.shown |= attempt is not None and attempt.shown
        if self.work.over:
            self.held = self.execution.group.hold()

    def _attempt(self, call: Call, verdict: Execute, names: list[str], values: list[Any]) -> Attempt:
        with self.execution.lock:
            self.execution.count_step(call, verdict)
        return Attempt(self.execution, self._driven, call, verdict, names, values)

    def hand_out(self, known: Known) -> None:
        """Take what is recorded of one item."""
        index, call, verdict, names, values = known
        try:
            self.work.value(index, hand_out(self.execution, call, verdict, names, values))
        except Exception as error:
            if verdict.entry.state != "failed" or self.execution.sealed:
                raise
            self.work.failed(index, error, recorded=True)

    def over(self) -> None:
        """Nothing of it is to come."""
        self.frame.place.finished()
        if self.pool is not None:
            self.pool.close()


def _frame_of(frame: Frame, name: str) -> Frame:
    place, element = frame.place, map_element(name)
    if frame.thread == threading.get_ident():
        return frame.inside(place.child(element))
    with frame.execution.lock:
        child = place.child(element, loose=True)
        child.passes_on = True
        return frame.inside(child)


def _is_known(replay: Replay, call: Call) -> bool:
    histories = (replay.own,) if replay.source is None else (replay.own, replay.source)
    return any(replay.match.knows(history, call) for history in histories)


def _is_recorded(attempt: Attempt | None) -> bool:
    """Whether the error of an item is a failure in its history, so that it may be kept."""
    return attempt is not None and attempt.row is not None and attempt.row.status == "failed"


def map_sync(mapping: Mapping) -> list[Any]:
    """Carry it out, and wait in the calling thread."""
    __tracebackhide__ = True
    execution = mapping.execution
    try:
        for known in mapping.known:
            execution.order.passed(known[2].entry)
            mapping.hand_out(known)
        threads = Threads(mapping.work, execution)
        threads.begin(threading.Event().set)
        threads.wait()
    finally:
        mapping.over()
    return mapping.work.result()


def map_async(mapping: Mapping) -> Coroutine[Any, Any, list[Any]]:
    """Carry it out as a part of the event loop. The identities were taken already, before any await."""
    return Awaited(mapping.execution, "durable.map", _drive(mapping))


async def _drive(mapping: Mapping) -> list[Any]:
    __tracebackhide__ = True
    execution, work = mapping.execution, mapping.work
    if execution.ended:
        raise RunEnded("`durable.map` was awaited after its execution had ended; nothing of it was executed.")
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    crew = Tasks(work) if mapping.spec.is_async else Threads(work, execution)
    crew.begin(lambda: loop.is_closed() or loop.call_soon_threadsafe(_finish, done))
    try:
        await _hand_out_in_order(mapping, loop)
        await done
        if mapping.shown or mapping.held is not None:
            await execution.group.return_in_order(flush=mapping.shown, held=mapping.held)
    except BaseException:
        await crew.leave()
        raise
    finally:
        if mapping.held is not None and not mapping.held[1].done():
            mapping.held[1].set_result(None)
        mapping.over()
    return work.result()


DRIVERS.update((_drive.__code__, Mapping._execute_async.__code__))


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


async def _hand_out_in_order(mapping: Mapping, loop: asyncio.AbstractEventLoop) -> None:
    """All starts are moments that have happened; the ends come one after the other, as they were recorded."""
    execution = mapping.execution
    if mapping.known and loop is execution.loop:
        for _, _, verdict, *_ in mapping.known:
            execution.order.turnstile.started(verdict.entry)
    for known in sorted(mapping.known, key=lambda each: each[2].entry.end):
        await wait_for_turn(execution, known[2].entry)
        mapping.hand_out(known)


def mapped(frame: Frame, spec: StepSpec, items: Iterable[Any], work: Work, pool: Pool | None) -> Mapping:
    """Give every item of a map its identity, and decide about it. Nothing is executed yet."""
    return Mapping(frame, spec, list(items), work, pool)
