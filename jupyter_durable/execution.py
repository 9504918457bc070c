"""One live execution: it asks replay, writes events, follows the tasks and threads of its run, and ends.

The step drivers of `runner` act through it; `opening.begin` makes it.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from jupyter_durable import clock, errors
from jupyter_durable.call import Adopt, Branch, Call, Place, Recorded, Stop, Verdict
from jupyter_durable.events import (
    Adopted,
    AnyEvent,
    ErrorInfo,
    ExecutionEnded,
    ExecutionHeader,
    Notice,
    Noticed,
    Outcome,
    Payload,
    StepAdopted,
    StepInterrupted,
    TimerFired,
)
from jupyter_durable.evidence import EvidenceBook
from jupyter_durable.history import Entry, Key, TimerKey
from jupyter_durable.identity import PATCHES
from jupyter_durable.log.base import EventLog, Writer
from jupyter_durable.options import RunSpec
from jupyter_durable.replay import Replay
from jupyter_durable.turnstile import Turnstile
from jupyter_durable.values import Encoded, decode, describe_error, restore_error

INLINE = 64 * 1024
"""Bytes of JSON text up to which a value is written into its event; above, into a blob."""

SHOWN_AFTER = 0.005
"""Seconds after which a step's end is flushed before its value is returned: what was shown must stay."""

Status = Literal["replayed", "adopted", "live", "failed", "cancelled", "interrupted", "not stored", "running"]


@dataclass(slots=True)
class StepRow:
    """One step as the summary of a cell shows it."""

    number: int
    name: str
    status: Status
    seconds: float = 0.0
    why: str = ""


@dataclass(slots=True)
class Stats:
    """What happened in an execution so far."""

    replayed: int = 0
    adopted: int = 0
    live: int = 0
    """Steps that were really executed (each counts once, whatever its attempts)."""
    failed: int = 0
    rows: deque[StepRow] = field(default_factory=lambda: deque(maxlen=10_000))
    notices: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """All steps that the program asked for."""
        return self.replayed + self.adopted + self.live


class Execution:
    """See the module."""

    def __init__(
        self,
        spec: RunSpec,
        log: EventLog,
        writer: Writer,
        header: ExecutionHeader,
        replay: Replay,
        book: EvidenceBook,
        branch_off: Callable[[Execution, str], tuple[Writer, ExecutionHeader, Replay]],
    ) -> None:
        self.spec = spec
        self.log = log
        self.writer = writer
        self.header = header
        self.replay = replay
        self.book = book
        self.pid = os.getpid()
        self.thread = threading.get_ident()
        self.loop = spec.loop
        self.started = clock.monotonic()
        self.stats = Stats()
        self.root = Place()
        self.on_change: Callable[[], None] = lambda: None
        """Called after every step; the cell's summary hangs here."""
        self.on_interrupt: Callable[[], None] = lambda: None
        """Called at a safe point for an interrupt that came while a result was being written."""
        self.pending_interrupt = False
        self.interrupted = False
        """The stop button was pressed: what is cancelled from now on is in doubt, not cancelled by the program."""
        self.sealed: str = ""
        """Why no further step may run, once the run has stopped; empty before."""
        self.ended = False
        self.outcome: Outcome | None = None
        self.on_closed: list[Callable[[Execution], None]] = []
        """Called when the branch has been released."""
        self.in_flight: dict[int, Any] = {}
        """Seq of the intent -> attempt that runs right now."""
        self.stale: list[tuple[Any, str]] = []
        """Objects that a replayed step had changed in place on its first run, and what to say about it."""
        self.stale_names: dict[str, str] = {}
        self._end_inputs: Callable[[], dict[str, str]] = dict
        self._lock = threading.RLock()
        self._tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        self._threads = 0
        self._branch_off = branch_off
        self._turnstile: Turnstile | None = None
        self._passed: list[Entry] = []
        """What was handed out before there was a turnstile."""
        self._flushing: asyncio.Future[None] | None = None
        self._last_return: asyncio.Future[None] | None = None
        self._closed = threading.Event()
        self._flushes = header.durability == "power"
        PATCHES.install(self.loop)

    # Identity ----------------------------------------------------------------------------------------------------

    @property
    def run_name(self) -> str:
        """Name of the run as people say it."""
        return self.header.name

    @property
    def where(self) -> dict[str, str]:
        """Facts for errors."""
        return {"run": self.header.name, "branch": self.header.branch_name}

    def place_of_run(self) -> str:
        """Run and branch, for messages."""
        return f"Run `{self.header.name}`, branch `{self.header.branch_name}`"

    def idempotency_key(self, key: Key) -> str:
        """Stable name of a step's effect: the same after a crash, an edit and a torn tail; new after ``--fresh``.

        Derived from run, root branch, generation and step key; 32 hexadecimal digits.
        """
        entry = self.replay.own.entries.get(key)
        again = 1 if entry is not None and entry.settlement is not None and entry.unstored is not None else 0
        parts = (self.header.run, self.header.root, str(self.header.generation + again), *map(str, key))
        return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    def evidence_of(self, fn: Any) -> str:
        """Digest of the code that a step function depends on, as of its first use in this execution."""
        return self.book.of(fn).digest

    # Decide ------------------------------------------------------------------------------------------------------

    def ask(self, call: Call) -> Verdict:
        """What to do about a call; raises what replay says must stop the run."""
        with self._lock:
            self.refuse_if_sealed()
            verdict = self.replay.ask(call)
            if type(verdict) is Branch:
                if self.spec.flags.strict:
                    self.stop(Stop(errors.DecisionNeeded, f"`--strict` makes any difference an error: {verdict.reason}."))
                if self.in_flight or self.stats.live:
                    self.stop(
                        Stop(
                            errors.DecisionNeeded,
                            f"{verdict.reason.capitalize()}, and steps were already executed on this branch in this "
                            f"execution. Run the cell again: it goes on, on a new branch, from here.",
                        )
                    )
                self.writer, self.header, self.replay = self._branch_off(self, verdict.reason)
                self._turnstile = None
                verdict = self.replay.ask(call)
            if type(verdict) is Stop:
                self.stop(verdict)
            return verdict

    def refuse_if_sealed(self) -> None:
        """Raise if the run has stopped."""
        if self.sealed:
            raise errors.RunSealed(
                f"{self.place_of_run()} has stopped, so no further step is executed: {self.sealed} If your code caught "
                f"the error with `except`, let it through.",
                **self.where,
            )

    def stop(self, stop: Stop) -> None:
        """Seal the run and raise."""
        self.sealed = stop.message
        steps = [entry.label for entry in stop.entries]
        raise stop.error(f"{self.place_of_run()}: {stop.message}", **self.where, steps=steps)

    # Write -------------------------------------------------------------------------------------------------------

    def append(self, event: AnyEvent) -> int:
        """Write an event; after return it survives the death of the process."""
        try:
            return self.writer.append(event)
        except errors.LogError as error:
            self.sealed = str(error)
            raise

    def flush(self) -> None:
        """Make everything so far survive loss of power, unless the run asked for less."""
        if self._flushes:
            try:
                self.writer.flush()
            except errors.LogError as error:
                self.sealed = str(error)
                raise

    async def flush_together(self) -> None:
        """The same with one flush for all steps that ask in this turn of the loop."""
        if not self._flushes:
            return
        loop = asyncio.get_running_loop()
        if loop is not self.loop:
            self.flush()
            return
        await asyncio.shield(self._next_flush(loop))

    def _next_flush(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        if self._flushing is None:
            self._flushing = loop.create_future()
            loop.call_soon(self._flush_now, self._flushing)
        return self._flushing

    @property
    def returning(self) -> bool:
        """Whether an end was recorded that its step has not returned yet: later ones must queue behind it."""
        return self._last_return is not None and not self._last_return.done()

    async def return_in_order(self, *, flush: bool) -> None:
        """Let a recorded end through after those recorded before it, and after a flush if it was shown.

        The order in which steps return is then the order in which their ends lie in the log, which is the order of a
        replay. A cancel that comes meanwhile is put off until after the return: the step has its result.
        """
        loop = asyncio.get_running_loop()
        if loop is not self.loop:
            if flush:
                self.flush()
            return
        before, self._last_return = self._last_return, loop.create_future()
        mine = self._last_return
        put_off = False
        try:
            for future in (self._next_flush(loop) if flush and self._flushes else None, before):
                while future is not None and not future.done():
                    try:
                        await asyncio.shield(future)
                    except asyncio.CancelledError:
                        put_off = True
                        asyncio.current_task().uncancel()  # type: ignore[union-attr]
        finally:
            mine.set_result(None)
        if put_off:
            asyncio.current_task().cancel()  # type: ignore[union-attr]

    def _flush_now(self, future: asyncio.Future[None]) -> None:
        self._flushing = None
        try:
            self.flush()
        except errors.LogError as error:
            if not future.done():
                future.set_exception(error)
                future.exception()  # retrieved here too: nobody may be left who awaits it
        else:
            if not future.done():
                future.set_result(None)

    def payload(self, encoded: Encoded) -> Payload:
        """The stored form of an encoded value; large parts are written as blobs before it is named anywhere."""
        for content in encoded.blobs.values():
            self.writer.put_blob(content)
        blobs = tuple(encoded.blobs)
        if len(encoded.text) > INLINE:
            digest = self.writer.put_blob(encoded.text)
            size = len(encoded.text) + sum(map(len, encoded.blobs.values()))
            return Payload(codec=encoded.codec, blob=digest, blobs=blobs, size=size)
        if blobs:
            size = len(encoded.text) + sum(map(len, encoded.blobs.values()))
            return Payload(codec=encoded.codec, data=msgspec.Raw(encoded.text), blobs=blobs, size=size)
        if encoded.codec == "json":
            return Payload(data=msgspec.Raw(encoded.text))
        return Payload(codec=encoded.codec, data=msgspec.Raw(encoded.text))

    def value(self, payload: Payload) -> Any:
        """Bring a stored value back."""
        if payload.blob is not None:
            return decode(payload.codec, self.log.read_blob(payload.blob), self.log.read_blob)
        assert isinstance(payload.data, msgspec.Raw)
        return decode(payload.codec, bytes(payload.data), self.log.read_blob)

    def error_info(self, error: BaseException) -> ErrorInfo:
        """An exception in its stored form."""
        info, encoded = describe_error(error)
        return info if encoded is None else msgspec.structs.replace(info, payload=self.payload(encoded))

    # Replay ------------------------------------------------------------------------------------------------------

    def result(self, entry: Entry, call: Call) -> Any:
        """Return what an entry holds, or raise what it holds."""
        try:
            if entry.state == "completed":
                assert entry.payload is not None
                return self.value(entry.payload)
            if entry.error is None:
                raise errors.InDoubtError(
                    f"{self.place_of_run()}: {entry.label} was settled as failed by a person.",
                    **self.where, step=entry.key.name,
                )  # fmt: skip
            failure = restore_error(entry.error, self.log.read_blob)
        except errors.UnloadableValue as error:
            self.sealed = str(error)
            raise errors.UnloadableValue(
                f"{self.place_of_run()}: the recorded value of {entry.label} cannot come back: {error} "
                f"The step was not executed again, and the log is unchanged.",
                **{**error.facts, **self.where, "step": entry.label},
            ) from None
        mark_failure(failure, entry.seq)
        raise failure

    def note_replayed(self, entry: Entry, verdict: Recorded | Adopt, call: Call, args: dict[str, Any]) -> None:
        """Count a step that was not executed, and remember what it had changed in place."""
        adopted = isinstance(verdict, Adopt)
        if adopted:
            self.stats.adopted += 1
        else:
            self.stats.replayed += 1
        status: Status = "adopted" if adopted else "replayed"
        self.stats.rows.append(StepRow(entry.begun, entry.key.name, status, 0.0, verdict.why))
        for notice in entry.notices:
            if notice.kind == "mutated_argument":
                self.stale += [(args[name], notice.message) for name in notice.names if name in args]
            elif notice.kind == "mutated_global":
                self.stale_names.update(dict.fromkeys(notice.names, notice.message))
        self.on_change()

    def adopt(self, entry: Entry, call: Call, why: str) -> None:
        """Write down that a result was taken over from the branch of origin."""
        source = entry.adopted or Adopted(execution=entry.execution, seq=entry.end)
        data = Adopted(execution=source.execution, seq=source.seq, payload=entry.payload, error=entry.error)
        event = StepAdopted(
            at=clock.now(), name=call.name, digest=call.digest, n=call.n, scope=call.key.scope,
            evidence=call.evidence, kind=call.kind, pure=call.pure, why=why, data=data,
        )  # fmt: skip
        seq = self.append(event)
        for notice in entry.notices:
            self.append(Noticed(at=clock.now(), step=seq, data=notice))

    @property
    def turnstile(self) -> Turnstile:
        """Made when the first asynchronous step is replayed; what was handed out before counts as passed."""
        if self._turnstile is None:
            turnstile = Turnstile(self.replay.own.order() if self.replay.source is None else (), self.live_tasks)
            for entry in self._passed:
                turnstile.passed(entry)
            self._passed.clear()
            self._turnstile = turnstile
        return self._turnstile

    def mark_passed(self, entry: Entry) -> None:
        """Tell the turnstile, if there is one, that an entry's moments are over."""
        if self._turnstile is None:
            self._passed.append(entry)
            return
        if threading.get_ident() == self.thread:
            self._turnstile.passed(entry)
        elif self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._turnstile.passed, entry)

    def timer_turn(self, key: TimerKey) -> bool:
        """Whether a sleep of glue code is recorded as over."""
        return self.replay.source is None and key in self.replay.own.fired

    def timer_fired(self, key: TimerKey) -> None:
        """Record that a sleep of glue code is over."""
        if not self.ended:
            self.append(TimerFired(at=clock.now(), scope=key.scope, n=key.n))

    def notice(self, step: int, notice: Notice) -> None:
        """Tell the user something once, and record that it was told."""
        self.append(Noticed(at=clock.now(), step=step, data=notice))
        self.stats.notices.append(notice.message)

    # Tasks and threads -------------------------------------------------------------------------------------------

    def watch(self, task: asyncio.Task[Any], place: Place | None) -> None:
        """Follow a task that the run has started."""
        self._tasks.add(task)
        if place is not None and self.replay.source is not None:
            task.add_done_callback(lambda _: place.finished())

    def live_tasks(self) -> list[asyncio.Task[Any]]:
        """Tasks of the run that are not done."""
        return [task for task in list(self._tasks) if not task.done()]

    def thread_started(self) -> None:
        """A thread, or a job in a pool, was begun for the run."""
        with self._lock:
            self._threads += 1

    def thread_ended(self) -> None:
        """It has ended."""
        with self._lock:
            self._threads -= 1

    def safe_point(self) -> None:
        """Let an interrupt through that came while a result was being written."""
        if self.pending_interrupt:
            self.pending_interrupt = False
            self.on_interrupt()

    # The end -----------------------------------------------------------------------------------------------------

    def end(self, error: BaseException | None) -> Outcome:
        """End the execution: record how, release the branch.

        Steps still running in threads finish and are recorded first; until then the branch stays held. Other
        leftovers are cancelled and in doubt.

        Args:
            error: what ended the cell, or ``None`` if it came to its end.
        """
        with self._lock:
            if self.outcome is not None:
                return self.outcome
            self.ended = True
            PATCHES.uninstall(self.loop)
            try:
                self._leave_nothing_running()
                self.outcome = self._outcome(error)
                if not self.in_flight:
                    self._close()
            except BaseException:
                self._release()  # the log takes no more: nothing can be recorded, and nobody must wait for it
                raise
            return self.outcome

    def _leave_nothing_running(self) -> None:
        try:
            current = asyncio.current_task()
        except RuntimeError:
            current = None
        for attempt in list(self.in_flight.values()):
            if attempt.thread == self.thread:
                attempt.dead = True
                del self.in_flight[attempt.seq]
                self.append(StepInterrupted(at=clock.now(), step=attempt.seq))
        for task in self.live_tasks():
            if task is not current:
                task.cancel()

    def _outcome(self, error: BaseException | None) -> Outcome:
        if error is None:
            status: Literal["completed", "failed", "interrupted", "stopped"] = "completed"
        elif self.interrupted or isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
            status = "interrupted"
        else:
            status = "failed"
        if self.sealed:
            status = "stopped"
        return Outcome(
            status=status,
            error=None if error is None else msgspec.structs.replace(describe_error(error)[0], payload=None),
            failed=() if error is None else tuple(causes(error)),
            inputs=self._end_inputs(),
            state=self.book.state(),
            replayed=self.stats.replayed + self.stats.adopted,
            live=self.stats.live,
        )

    def attempt_over(self, seq: int) -> None:
        """A running attempt has ended; the last one of an ended execution closes it."""
        with self._lock:
            self.in_flight.pop(seq, None)
            if self.outcome is not None and not self.in_flight:
                self._close()

    def _close(self) -> None:
        if self._closed.is_set():
            return
        try:
            if self.outcome is not None:
                self.append(ExecutionEnded(at=clock.now(), data=self.outcome))
        finally:
            self._release()

    def _release(self) -> None:
        if self._closed.is_set():
            return
        try:
            self.writer.close()
        finally:
            self._closed.set()
            for call in self.on_closed:
                call(self)

    @property
    def draining(self) -> bool:
        """Ended, but steps in threads still run."""
        return self.ended and not self._closed.is_set()

    def wait_closed(self, seconds: float | None = None) -> bool:
        """Wait until the last thread's step has ended; return whether it has."""
        return self._closed.wait(seconds)


def mark_failure(error: BaseException, seq: int) -> None:
    """Remember on an exception which step it came out of first."""
    if not hasattr(error, "__durable_step__"):
        try:
            error.__durable_step__ = seq  # type: ignore[attr-defined]
        except AttributeError:
            return  # an exception class with slots: its failure is then tried again like one nobody owns


def causes(error: BaseException) -> list[int]:
    """Steps (seq of their intent) whose failure is this exception: itself, its explicit cause, members of a group.

    The implicit ``__context__`` never counts: it is what was being handled, not what failed.
    """
    found: list[int] = []
    seen: set[int] = set()
    todo: list[BaseException] = [error]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        seq = getattr(one, "__durable_step__", None)
        if seq is not None:
            found.append(seq)
        if one.__cause__ is not None:
            todo.append(one.__cause__)
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions
    return sorted(found)
