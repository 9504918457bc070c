"""The waits of one execution: for a timer, a signal, a person. Each ends by itself, from outside, or by parking.

A wait is in the log before anybody is asked, and its answer before it is acted on. A run parks when everything in it
waits: the cell ends with `Parked`, and goes on from the log when it is run again. Nothing is cancelled by that: the run
is sealed first, so no cancellation becomes history.
"""

from __future__ import annotations

import asyncio
import datetime
import sys
import threading
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from jupyter_durable import clock
from jupyter_durable.call import Call, Execute, Place
from jupyter_durable.engine import payloads
from jupyter_durable.engine.blame import mark_failure
from jupyter_durable.engine.mail import Mail
from jupyter_durable.engine.parking import all_wait
from jupyter_durable.engine.stats import StepRow
from jupyter_durable.entries import Entry
from jupyter_durable.errors import NotAnswered, Parked
from jupyter_durable.event_data import About, AttemptInfo, Payload, Receipt, Signal, WaitInfo
from jupyter_durable.events import SignalReceived, StepCancelled, StepCompleted, StepFailed, WaitStarted
from jupyter_durable.keys import Key
from jupyter_durable.sentences import quoted

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution

EVERY = 0.1
"""Seconds between two looks at the inbox and the clock. The wall clock is asked: a timer is a moment, not a length."""

SOON = 5.0
"""Seconds that are waited for without parking, whatever the grace: coming back would cost more."""

Accept = Callable[[msgspec.Raw], object]
"""Makes the value of an answer; raises for one that does not fit."""


def request_id(branch: str, key: Key, shown: str, lapsed: int) -> str:
    """The id by which an answer names a request.

    The same after a crash; another once something else is shown, or when it is asked again after it had lapsed.
    """
    return blake2b("\0".join((branch, *map(str, key), shown, str(lapsed))).encode(), digest_size=6).hexdigest()


def child_id(branch: str, key: Key) -> str:
    """The id by which a signal names a child run: derived from branch and key."""
    return request_id(branch, key, "child run", 0)


class Wait:
    """One wait of the program, begun and not over."""

    def __init__(self, room: Room, call: Call, info: WaitInfo, seq: int, number: int, accept: Accept) -> None:
        self.room = room
        self.call = call
        self.info = info
        self.seq = seq
        self.number = number
        """The seq of its first intent: its number for people."""
        self.accept = accept
        self.thread = threading.get_ident()
        self.over = threading.Event()
        self.future: asyncio.Future[None] | None = None
        """What an asynchronous wait awaits."""
        self.asked_before = ""
        """The request of the branch of origin whose answer is one to this wait, too."""
        self.blocks = False
        """It blocks its thread."""
        self.raw = msgspec.Raw(b"null")
        self.error: BaseException | None = None
        self.row: StepRow | None = None

    def __str__(self) -> str:
        until = ""
        if self.info.until is not None:
            moment = datetime.datetime.fromtimestamp(self.info.until, datetime.UTC).astimezone()
            until = f"{'' if self.call.kind == 'timer' else ', '}until {moment:%Y-%m-%d %H:%M:%S %Z}"
        if self.call.kind == "timer":
            return f"for its timer {until}"
        if self.call.kind == "signal":
            return f"for the signal `{self.call.name}`{until}"
        return f"for an answer to request {self.number}{until}"

    def finish(self) -> None:
        """Let the program go on."""
        self.over.set()
        future = self.future
        if future is not None and not future.done():
            loop = future.get_loop()
            if threading.get_ident() == self.thread:
                _wake(future)
            else:
                loop.call_soon_threadsafe(_wake, future)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Room:
    """Where the waits of an execution are until they are over. Safe to use from several threads."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.waits: list[Wait] = []
        self.mail = Mail(execution)
        self._idle_since: float | None = None
        self._ticking = False

    # Begin and end -----------------------------------------------------------------------------------------------

    def begin(self, call: Call, verdict: Execute, info: WaitInfo, accept: Accept) -> Wait:
        """Write down that the run waits, and flush: only then may anybody be asked."""
        execution, key, entry = self.execution, call.key, verdict.entry
        info = msgspec.structs.replace(
            info,
            request=request_id(execution.header.branch, key, info.shown_digest, 0 if entry is None else entry.attempts),
            until=_until(call, info, entry),
        )
        with execution.lock:
            if entry is not None:
                execution.order.passed(entry)
            execution.say_saved()
            event = WaitStarted(
                at=clock.now(), name=key.name, digest=key.digest, n=key.n, scope=key.scope, kind=call.kind,
                why=verdict.why, data=info,
            )  # fmt: skip
            seq = execution.append(event)
            if key.scope:
                execution.replay.begun(seq, event)
            execution.flush()
            own = execution.replay.own.entries.get(key)
            wait = Wait(self, call, info, seq, own.begun if own is not None else seq, accept)
            wait.asked_before = self._asked_before(call, verdict, info)
            wait.row = StepRow(wait.number, key.name, "waiting", 0.0, verdict.why, call.kind)
            execution.stats.rows.append(wait.row)
            self.waits.append(wait)
            self._idle_since = None
        if execution.on_change is not None:
            execution.on_change()
        return wait

    def _asked_before(self, call: Call, verdict: Execute, info: WaitInfo) -> str:
        """The same request on the branch of origin, if it is open there and nothing before it differs."""
        source = self.execution.replay.source
        twin = None if source is None or call.place.tainted or verdict.why else source.entries.get(call.key)
        if twin is None or not twin.waits or twin.wait is None or twin.wait.shown_digest != info.shown_digest:
            return ""
        return twin.wait.request

    def cancelled(self, wait: Wait) -> None:
        """The program has cancelled a wait, or the cell ends over it."""
        execution = self.execution
        with execution.lock:
            if wait not in self.waits:
                return
            self.waits.remove(wait)
            if execution.sealed or execution.interrupted or execution.ended:
                return  # nobody of the program's has cancelled it: it is still to be waited for
            event = StepCancelled(at=clock.now(), step=wait.seq)
            self._ended(wait, execution.append(event), event, "cancelled")

    def poll(self) -> None:
        """End what can end now: timers that fired, requests that lapsed, signals that came. Then perhaps park."""
        execution = self.execution
        execution.cancel_watch.look()
        with execution.lock:
            if not self.waits or execution.ended or self._history_comes_first():
                return
            now = clock.now()
            for wait in list(self.waits):
                signal = None if wait.call.kind == "timer" else self.mail.next_for(wait)
                if signal is not None:
                    self._answered(wait, signal)
                elif wait.info.until is not None and now >= wait.info.until:
                    self._completed(wait, None) if wait.call.kind == "timer" else self._lapsed(wait)
            if self.waits and not execution.sealed and self._may_park():
                self._park()

    def _history_comes_first(self) -> bool:
        """What history holds is handed out before anything new happens: else a race that was won would be run again."""
        order, sealed = self.execution.order, self.execution.sealed
        return not sealed and order.is_behind() and not all_wait(self.execution, self.waits)

    def _answered(self, wait: Wait, signal: Signal) -> None:
        receipt = Receipt(signal=signal.id, by=signal.by, via=signal.via, sent=signal.sent)
        event = SignalReceived(at=clock.now(), step=wait.seq, data=receipt)
        seq = self.execution.append(event)
        if wait.call.key.scope:
            self.execution.replay.own.apply(seq, event)
        self._completed(wait, signal.value)

    def _completed(self, wait: Wait, value: msgspec.Raw | None) -> None:
        wait.raw = msgspec.Raw(b"null") if value is None else value
        event = StepCompleted(at=clock.now(), step=wait.seq, data=Payload(data=wait.raw))
        seq = self.execution.append(event)
        self.execution.flush()
        self.execution.stats.live += 1
        self._ended(wait, seq, event, "live")

    def _lapsed(self, wait: Wait) -> None:
        execution = self.execution
        wait.error = NotAnswered(
            f"{execution.place_of_run()}: nobody had answered {wait.call.label} (step {wait.number}) in time.",
            **execution.where, step=wait.call.name, number=wait.number,
        )  # fmt: skip
        event = StepFailed(
            at=clock.now(), step=wait.seq, data=AttemptInfo(error=payloads.write_error(wait.error, execution.writer))
        )
        seq = execution.append(event)
        mark_failure(wait.error, wait.seq)
        execution.flush()
        execution.stats.failed += 1
        self._ended(wait, seq, event, "failed")

    def _ended(self, wait: Wait, seq: int, event: Any, status: Any) -> None:
        if wait.call.key.scope:
            self.execution.replay.own.apply(seq, event)
        if wait in self.waits:
            self.waits.remove(wait)
        self._idle_since = None
        if wait.row is not None:
            wait.row.status = status
        wait.finish()
        if self.execution.on_change is not None:
            self.execution.on_change()

    # Waiting -----------------------------------------------------------------------------------------------------

    def block(self, wait: Wait) -> None:
        """Wait in this thread."""
        wait.blocks = True
        self.poll()
        while not wait.over.is_set():
            clock.sleep(EVERY)
            self.poll()

    async def wait(self, wait: Wait) -> None:
        """Wait as a part of the event loop."""
        loop = asyncio.get_running_loop()
        wait.future = loop.create_future()
        self.poll()
        if not self._ticking:
            self._ticking = True
            loop.call_later(EVERY, self._tick, loop)
        await wait.future

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ticking = bool(self.waits) and not self.execution.ended
        if self._ticking:
            loop.call_later(EVERY, self._tick, loop)
            self.poll()

    # Parking -----------------------------------------------------------------------------------------------------

    def _may_park(self) -> bool:
        """Whether everything of the run waits, and has done so long enough."""
        if self.execution.in_flight or not all_wait(self.execution, self.waits):
            self._idle_since = None
            return False
        now, grace = clock.monotonic(), self.execution.spec.grace
        if self._idle_since is None:
            self._idle_since = now
        moments = [wait.info.until for wait in self.waits if wait.info.until is not None]
        if moments and min(moments) - clock.now() <= max(grace, SOON):
            return False  # it is over soon, and nobody has to come back for it
        somebody_may_answer = any(wait.call.kind != "timer" for wait in self.waits)
        return not somebody_may_answer or now - self._idle_since >= grace

    def _park(self) -> None:
        """Seal the run, and end the cell at everything that waits."""
        execution = self.execution
        said = [str(wait) for wait in self.waits]
        moments = [wait.info.until for wait in self.waits if wait.info.until is not None]
        asks = [wait for wait in self.waits if wait.call.kind != "timer"]
        number = asks[0].number if asks else 0
        how = ""
        if asks and asks[0].call.kind == "approval":
            typed = f"{quoted(execution.run_name)} {number} {'|'.join(asks[0].info.choices) or 'yes'}"
            how = f" Answer with `%durable approve {typed}`, in the panel, or by `jupyter durable approve`."
        elif asks:
            child = execution.children.around(asks[0].call.place)
            to = execution.run_name if child is None else f"{execution.run_name}/{child.path}"
            how = f" Send it with `%durable signal {quoted(to)}/{asks[0].call.name} VALUE` or `jupyter durable signal`."
        parked = Parked(
            f"{execution.place_of_run()} waits {'; '.join(said)}.{how} The cell goes on from here when it runs again.",
            **execution.where,
            waits=said,
            until=min(moments, default=None),
            requests=[wait.info.request for wait in asks],
            about=tuple(
                About(step=wait.number, name=wait.call.name, n=wait.call.n, kind=wait.call.kind) for wait in self.waits
            ),
        )
        execution.sealed = f"it is parked, and waits {'; '.join(said)}."
        execution.parked = parked
        execution.flush()
        self.end_all(parked)

    def end_inside(self, place: Place, error: BaseException) -> None:
        """Let the waits of one place, and of what was begun in it, raise."""
        for wait in list(self.waits):
            around: Place | None = wait.call.place
            while around is not None and around is not place:
                around = around.parent
            if around is place:
                wait.error = error
                wait.finish()

    def end_all(self, error: BaseException) -> None:
        """The run has been sealed: every wait raises, and in the log it goes on."""
        for wait in self.waits:
            wait.error = error
            if wait.row is not None:
                wait.row.seconds = 0.0
            wait.finish()


def _until(call: Call, info: WaitInfo, entry: Entry | None) -> float | None:
    """The moment that was set when the wait was begun first; only the time that is left is waited for."""
    if entry is None or entry.wait is None or entry.state in ("failed", "completed"):
        return info.until
    same = call.kind == "timer" or entry.wait.shown_digest == info.shown_digest
    return entry.wait.until if same else info.until


def _waits_for_threads(thread: int) -> bool:
    """Whether a thread stands in a lock or a condition, as one does that waits for what it has begun in others."""
    frame = sys._current_frames().get(thread)
    return frame is not None and frame.f_code.co_filename == threading.__file__
