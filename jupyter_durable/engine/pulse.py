"""What long bodies say while they run: heartbeats with details for the next attempt, and progress for people.

Both go into the journal sparingly. A heartbeat that had to wait is written a second later, or at the end of its
attempt; a body that has not been heard of for too long is told about. Who writes for an attempt that was given up is
refused.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import TYPE_CHECKING, Any

import msgspec

from jupyter_durable import clock
from jupyter_durable.engine.context import Frame
from jupyter_durable.engine.critical import critical
from jupyter_durable.engine.identity import start_apart
from jupyter_durable.errors import AttemptOver, LogError
from jupyter_durable.event_data import Beat, Notice, Progress
from jupyter_durable.events import Progressed, StepBeat
from jupyter_durable.values import redact

if TYPE_CHECKING:
    from jupyter_durable.engine.attempt import Attempt
    from jupyter_durable.engine.execution import Execution

SPARINGLY = 1.0
"""Seconds between two lines of one body in the journal."""

LONGEST = 200
"""Characters of a text beside a progress that are kept."""


class Pulse:
    """The signs of life of one attempt. Safe to use from several threads."""

    def __init__(self, attempt: Attempt, quiet_after: float | None) -> None:
        self.execution = attempt.execution
        self.step = attempt.seq
        self.name = attempt.call.name
        self.quiet_after = quiet_after
        self.beaten = clock.monotonic()
        """When it was heard of last."""
        self.told = False
        """It was said that nothing is heard of it."""
        self._attempt = attempt
        self._lock = threading.Lock()
        self._over = False
        self._written = float("-inf")
        self._pending: Beat | None = None
        self._shown = attempt.begun
        """When progress was written last; a body that is done sooner writes none."""

    @critical
    def beat(self, beat: Beat) -> None:
        """It lives. Written at once, or a little later."""
        with self._lock:
            if self._over:
                return
            self.beaten, self.told, self._pending = clock.monotonic(), False, beat
            if isinstance(beat.details, msgspec.Raw):
                self._attempt.details = beat.details
            if self._attempt.row is not None:
                self._attempt.row.beat = clock.now()
            if self.beaten - self._written >= SPARINGLY:
                self._write()

    @critical
    def progress(self, progress: Progress) -> None:
        """It is so far."""
        now = clock.monotonic()
        with self._lock:
            if self._over:
                return
            if self._attempt.row is not None:
                self._attempt.row.progress = str(progress)
            if now - self._shown >= SPARINGLY:
                self._shown = now
                self.execution.append(Progressed(at=clock.now(), step=self.step, data=progress))

    def _write(self) -> None:
        if self._pending is not None:
            self._written = clock.monotonic()
            beat, self._pending = self._pending, None
            self.execution.append(StepBeat(at=clock.now(), step=self.step, data=beat))

    def end(self) -> None:
        """The attempt ends: the last heartbeat is written before that, and nothing after it."""
        with self._lock:
            if not self._over:
                self._over = True
                self._write()

    def look(self) -> None:
        """Write what waits, and tell about a body that is not heard of. Called from time to time."""
        with self._lock:
            if self._over:
                return
            now = clock.monotonic()
            if now - self._written >= SPARINGLY:
                self._write()
            if self.quiet_after is None or self.told or now - self.beaten < self.quiet_after:
                return
            self.told = True
            message = (
                f"step `{self.name}` (step {self.step}) has not been heard of for {self.quiet_after:g} s: its body "
                f"does not call `durable.heartbeat()`"
            )
            self.execution.notice(self.step, Notice(kind="note", message=message, names=("heartbeat",)))
        if self.execution.on_change is not None:
            self.execution.on_change()

    @property
    def is_over(self) -> bool:
        """Whether its attempt has ended."""
        return self._over or self._attempt.dead


class Keeper:
    """Looks after the pulses of this process, in a thread of its own as long as there are any."""

    EVERY = 0.25

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pulses: list[Pulse] = []
        self._runs = False
        self._known: weakref.WeakSet[Execution] = weakref.WeakSet()

    def keep(self, pulse: Pulse) -> None:
        """Look after one until its attempt ends."""
        with self._lock:
            self._pulses.append(pulse)
            if pulse.execution not in self._known:
                self._known.add(pulse.execution)
                execution = weakref.proxy(pulse.execution)
                pulse.execution.before_end.append(lambda: self._last(execution.header.execution))
            if not self._runs:
                self._runs = True
                start_apart(threading.Thread(target=self._look, name="durable-pulse", daemon=True))

    def _last(self, execution: str) -> None:
        """An execution ends: what its bodies said last is written before it cuts them."""
        with self._lock:
            mine = [pulse for pulse in self._pulses if pulse.execution.header.execution == execution]
        for pulse in mine:
            if pulse._attempt.thread == pulse.execution.thread:
                pulse.end()

    def _look(self) -> None:
        pause = threading.Event()
        while True:
            pause.wait(self.EVERY)
            with self._lock:
                self._pulses = [pulse for pulse in self._pulses if not pulse.is_over]
                pulses = list(self._pulses)
                if not pulses:
                    self._runs = False
                    return
            for pulse in pulses:
                # A log that takes nothing more stops the run at its next step; a sign of life must not.
                with contextlib.suppress(LogError):
                    pulse.look()


KEEPER = Keeper()
"""The one of this process."""


# Saying it -----------------------------------------------------------------------------------------------------------


def pulse_of(frame: Frame) -> Pulse | None:
    """The pulse of the attempt whose body runs in a frame, made when it is first asked for.

    Returns:
        ``None`` where no body runs, or where the attempt has been given up.
    """
    attempt: Any = frame.attempt
    if attempt is None or attempt.seq != frame.seq or attempt.is_given_up(frame.seq):
        return None
    if attempt.pulse is None:
        attempt.pulse = Pulse(attempt, attempt.spec.heartbeat)
        KEEPER.keep(attempt.pulse)
    found: Pulse = attempt.pulse
    return found


def beat(frame: Frame, details: msgspec.Raw | None) -> None:
    """Record a heartbeat of the body that runs in a frame.

    Raises:
        AttemptOver: the attempt was given up; nothing is recorded.
    """
    pulse = pulse_of(frame)
    if pulse is None:
        refuse_late(frame)
        return
    pulse.beat(Beat() if details is None else Beat(details=details))
    _let_interrupts_in(frame.execution)


def refuse_late(frame: Frame) -> None:
    """Refuse a body that goes on although its attempt was given up.

    Raises:
        AttemptOver: it does.
    """
    attempt: Any = frame.attempt
    if attempt is not None and attempt.is_given_up(frame.seq):
        raise AttemptOver(
            f"{frame.execution.place_of_run()}, step {attempt.call.label}: this attempt of its body was given up, and "
            f"another one may run already. Nothing that it says or calls is recorded any more; let it end.",
            **frame.execution.where, step=attempt.call.name,
        )  # fmt: skip


def show(frame: Frame, progress: Progress) -> None:
    """Show how far a body, or the glue code of a run, is; write it down now and then."""
    _show(frame, progress)
    _let_interrupts_in(frame.execution)


def _let_interrupts_in(execution: Execution) -> None:
    """One that came while a sign of life was being written."""
    if execution.pending_interrupt:
        execution.safe_point()


@critical
def _show(frame: Frame, progress: Progress) -> None:
    progress = msgspec.structs.replace(progress, text=redact(progress.text)[:LONGEST])
    if frame.attempt is not None:
        pulse = pulse_of(frame)
        if pulse is not None:
            pulse.progress(progress)
            _changed(frame.execution)
        return
    execution: Execution = frame.execution
    stats = execution.stats
    stats.progress = str(progress)
    now = clock.monotonic()
    replays = not stats.live and bool(execution.replay.own.entries)
    if not replays and now - max(stats.progress_written, execution.started) >= SPARINGLY and not execution.ended:
        stats.progress_written = now
        execution.append(Progressed(at=clock.now(), data=progress))
    _changed(execution)


def _changed(execution: Execution) -> None:
    if execution.on_change is not None:
        execution.on_change()
