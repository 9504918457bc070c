"""Child runs: ``with durable.run(name):`` inside of a run.

A child run is a part of its parent: same branch, same journal, same lock, same budget; so it forks, parks, resumes and
is cancelled with it. It has a name, a scope of its own in which calls are numbered, an entry in the history that says
how it stands, and it can be cancelled alone. Unlike the body of a step its code always runs, as the cell's own code
does: what is recorded inside of it comes back, and it may wait.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import msgspec

from jupyter_durable import clock
from jupyter_durable.call import RUN, Call, Execute, Place, Recorded
from jupyter_durable.child_runs import part_of
from jupyter_durable.engine import payloads
from jupyter_durable.engine.blame import causes, mark_failure
from jupyter_durable.engine.context import CURRENT, Frame, task_of
from jupyter_durable.engine.stats import StepRow
from jupyter_durable.engine.steps import placed
from jupyter_durable.engine.waits import child_id
from jupyter_durable.errors import ChildCancelled, DurableControl, LogError, ReplayError, UsageError
from jupyter_durable.event_data import AttemptInfo, Cancellation, Payload, Signal
from jupyter_durable.events import AnyEvent, StepCancelled, StepCompleted, StepFailed, StepStarted
from jupyter_durable.keys import inner_scope
from jupyter_durable.values import digest, restore_error

if TYPE_CHECKING:
    from contextvars import Token

    from jupyter_durable.engine.execution import Execution
    from jupyter_durable.entries import Entry


class Child:
    """One child run, from its beginning to its end."""

    def __init__(self, frame: Frame, name: str) -> None:
        execution: Execution = frame.execution
        if execution.pid != os.getpid():
            raise UsageError(f"Child run `{name}` was begun in a child process of {execution.place_of_run()}.")
        self.execution = execution
        self.name = name
        identity = digest([name])
        place, n = placed(frame, name, identity)
        self.call = Call(place, name, identity, n, kind=RUN)
        verdict = execution.ask(self.call)
        self.entry = verdict.entry if isinstance(verdict, Recorded) else None
        """What the branch holds of it already."""
        self.seq = -1
        """Seq of its intent, if that is of this execution."""
        self.place = _place(self.call)
        around = execution.children.around(place)
        part = part_of(self.call.key)
        self.path: str = part if around is None else f"{around.path}/{part}"
        """Its name with those of the child runs around it, and its number where it has equals."""
        self.request = child_id(execution.header.branch, self.call.key)
        self.task = task_of(execution.loop)
        """What runs its block, if that can be cancelled."""
        self.error: ChildCancelled | None = None
        """It has been cancelled: now, or when it was recorded."""
        self._why = verdict.why if isinstance(verdict, Execute) else ""
        self._row = StepRow(-1, name, "running", 0.0, self._why, RUN)
        self._begun = clock.monotonic()
        self._inside = True
        self._cut = False
        """Its task was cancelled to end what its block awaits."""
        if self.entry is None:
            if isinstance(verdict, Execute) and verdict.instead_of is not None:
                self.error = self._recorded_error(verdict.instead_of)  # cancelled on the branch of origin
            self._intend()
        else:
            self._row.number = self.entry.begun
            self._continue()
        execution.stats.rows.append(self._row)
        execution.children.entered(self)
        self._frame = frame.inside(self.place)
        self._token: Token[Frame | None] = CURRENT.set(self._frame)

    def _intend(self) -> None:
        key = self.call.key
        event = StepStarted(
            at=clock.now(), name=key.name, digest=key.digest, n=key.n, scope=key.scope, kind=RUN, why=self._why
        )
        self.seq = self.execution.append(event)
        if key.scope:
            self.execution.replay.begun(self.seq, event)
        if self._row.number < 0:
            self._row.number = self.seq

    def _continue(self) -> None:
        entry, execution = self.entry, self.execution
        assert entry is not None
        self.error = self._recorded_error(entry)
        if self._in_order:
            execution.order.turnstile.started(entry)
        else:
            execution.order.passed(entry)

    def _recorded_error(self, entry: Entry) -> ChildCancelled | None:
        """What it was cancelled with, as it is recorded."""
        if entry.state != "failed" or entry.error is None or not entry.error.type.endswith(ChildCancelled.__name__):
            return None
        restored = restore_error(entry.error, self.execution.log.read_blob)
        return restored if isinstance(restored, ChildCancelled) else None

    @property
    def _in_order(self) -> bool:
        """Its recorded end is handed out in its turn."""
        ended = self.entry is not None and self.entry.state in ("completed", "failed")
        return ended and task_of(self.execution.loop) is not None

    @property
    def is_open(self) -> bool:
        """Whether it has no end yet, here or in what is recorded."""
        return self.error is None and (self.entry is None or self.entry.state in ("open", "interrupted"))

    def is_meant(self, signal: Signal) -> bool:
        """Whether a signal names it: by its path, or by its id on the branch that the signal was for."""
        return signal.child in (self.path, child_id(signal.branch, self.call.key))

    def cancel(self, found: Cancellation) -> None:
        """Somebody has cancelled it from outside: it ends at its next await or step, and its parent is told."""
        self.error = ChildCancelled(
            f"{self.execution.place_of_run()}: child run `{self.path}` was cancelled by {found.by or 'somebody'}"
            f"{f' ({found.reason})' if found.reason else ''}. No further step of it is executed. "
            f"`%%durable --from {part_of(self.call.key)}` begins it anew on a new branch.",
            **self.execution.where, child=self.path, by=found.by, via=found.via, reason=found.reason, sent=found.sent,
        )  # fmt: skip
        mark_failure(self.error, self.seq if self.entry is None or self.seq >= 0 else self.entry.seq)
        if self.execution.room is not None:
            self.execution.room.end_inside(self.place, self.error)
        if self.task is not None:
            self.task.get_loop().call_soon_threadsafe(self._end_await)

    def _end_await(self) -> None:
        """End what the block awaits. It may have come to a step first, and have been left by then."""
        if self._inside and self.task is not None:
            self._cut = self.task.cancel()

    async def leave_in_turn(self, error: BaseException | None) -> BaseException | None:
        """The same as `leave`, in the recorded order of ends."""
        left = self._leave(error)
        if self.entry is not None and self._in_order:
            if self.seq < 0:
                await self.execution.order.turnstile.turn(self.entry)
                self.execution.order.ended(self.entry)
            else:
                self.execution.order.passed(self.entry)  # it has ended otherwise than it is recorded
        return left

    def leave(self, error: BaseException | None) -> BaseException | None:
        """The block has ended.

        Returns:
            What to raise in place of the error; ``None`` to let that through.
        """
        left = self._leave(error)
        if self.entry is not None and self._in_order:
            self.execution.order.passed(self.entry)
        return left

    def _leave(self, error: BaseException | None) -> BaseException | None:
        try:
            CURRENT.reset(self._token)
        except ValueError:
            CURRENT.set(None)  # the block was left in another context than it was entered in
        execution = self.execution
        execution.children.left(self)
        self._inside = False
        if self._cut and self.task is not None:
            self.task.uncancel()
        instead = self._cancelled(error)
        error = error if instead is None else instead
        if self._tells_nothing(error):
            return instead
        with execution.lock:
            state = "completed" if error is None else "failed" if isinstance(error, Exception) else "cancelled"
            if self.entry is None or self.entry.state != state or self.seq >= 0:
                self._record(error)
            self._row.status = "replayed" if self.seq < 0 else "live" if error is None else state  # type: ignore[assignment]
            self._row.seconds = clock.monotonic() - self._begun
        self.place.finished()
        if execution.on_change is not None:
            execution.on_change()
        return instead

    def _cancelled(self, error: BaseException | None) -> ChildCancelled | None:
        if self.error is None or error is self.error or self.execution.sealed or self.execution.ended:
            return None
        return self.error

    def _tells_nothing(self, error: BaseException | None) -> bool:
        """The run ends over it, or stops: it is not at its own end."""
        execution = self.execution
        if execution.sealed or execution.ended or execution.interrupted:
            return True
        if isinstance(error, asyncio.CancelledError) or error is None:
            return False
        return not isinstance(error, Exception) or isinstance(error, DurableControl | ReplayError | LogError)

    def _record(self, error: BaseException | None) -> None:
        """Write its end down; of one that was begun in an earlier execution, its intent again before that."""
        execution = self.execution
        if self.seq < 0:
            self._intend()
        now = clock.now()
        event: AnyEvent
        if error is None:
            event = StepCompleted(at=now, step=self.seq, data=Payload(data=_NULL))
        elif isinstance(error, asyncio.CancelledError):
            event = StepCancelled(at=now, step=self.seq)
        else:
            inner = tuple(seq for seq in causes(error) if seq != self.seq)
            info = AttemptInfo(error=payloads.write_error(error, execution.writer), caused_by=inner)
            event = StepFailed(at=now, step=self.seq, data=info)
            mark_failure(error, self.seq)
        end = execution.append(event)
        if self.call.key.scope:
            execution.replay.own.apply(end, event)


_NULL = msgspec.Raw(b"null")


def _place(call: Call) -> Place:
    """Where its calls are made: numbered for itself, and found at exactly this path of a history."""
    place = Place(inner_scope(call.key), call.place, is_step=True)
    if call.place.bound is not None:
        place.bound = inner_scope(call.key._replace(scope=call.place.bound))
    return place
