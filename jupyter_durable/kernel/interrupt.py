"""The stop button while a durable cell runs: prompt, and never between a result and its record.

IPython's own handling leaves an awaited call running to its end, and reports a cancelled cell instead of an interrupted
one. While a durable cell runs in the main thread, SIGINT is handled here: a synchronous cell gets KeyboardInterrupt,
a cell with ``await`` is cancelled at once, and what arrives while a step is being written down waits for the next
safe point of the runner.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType
from typing import Any, Literal

from jupyter_durable import clock
from jupyter_durable.engine import attempt, execution, flushing, outputs, payloads, runner, steps
from jupyter_durable.engine.context import CURRENT
from jupyter_durable.engine.critical import CRITICAL
from jupyter_durable.engine.execution import Execution

HARD_WITHIN = 2.0
"""Seconds within which a second interrupt is a KeyboardInterrupt wherever it arrives."""

_DRIVERS = tuple(each.__code__ for each in (runner.run_sync, runner.carry_out, runner._drive, runner.carry_out_async))
_ENGINE = frozenset(each.__file__ for each in (attempt, execution, flushing, outputs, payloads, runner, steps))
_BODIES = (runner._in_time.__code__, runner._within.__code__)
"""Our own frames between a driver and the body of a step that has a timeout."""

_JOIN = Execution.wait_closed.__code__


def writing(frame: FrameType | None) -> bool:
    """Whether interrupted code is ours, at work on a step outside of its body.

    Args:
        frame: the innermost frame of the interrupted code.
    """
    inner: FrameType | None = None
    while frame is not None:
        code = frame.f_code
        if code in CRITICAL:
            return True
        if code in _BODIES:
            return False
        if code in _DRIVERS:
            # A body lies directly in its driver; all else that a driver calls is the engine's.
            return inner is None or inner.f_code.co_filename in _ENGINE
        inner, frame = frame, frame.f_back
    return False


def _within(frame: FrameType | None, code: Any) -> bool:
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


class Interrupts:
    """The handler of SIGINT for one durable cell. Does nothing outside of the main thread."""

    def __init__(self, body_code: Any) -> None:
        """Args:
        body_code: code object of the function of IPython that runs the statements of a cell.
        """
        self.state: Literal["opening", "running", "closing"] = "opening"
        self.pressed = 0
        """How often the stop button was pressed."""
        self._body_code = body_code
        self._execution: Execution | None = None
        self._task: asyncio.Task[Any] | None = None
        self._last = float("-inf")
        self._before: Any = None
        self._installed = False

    def install(self) -> None:
        """Take SIGINT over."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._on_signal)
            self._installed = True

    def restore(self) -> None:
        """Give SIGINT back, if nobody else has taken it since."""
        if self._installed and signal.getsignal(signal.SIGINT) == self._on_signal:
            signal.signal(signal.SIGINT, self._before if self._before is not None else signal.SIG_DFL)
        self._installed = False

    def follow(self, execution: Execution, task: asyncio.Task[Any] | None) -> None:
        """Begin to interrupt an execution.

        Args:
            execution: the run of the cell.
            task: the task that runs the cell; ``None`` for a cell without ``await``.

        Raises:
            KeyboardInterrupt: the button was pressed while the execution was being begun.
        """
        self._execution, self._task = execution, task
        execution.on_interrupt = self._deliver
        execution.on_cancel = self._end_await
        self.state = "running"
        if self.pressed:
            execution.interrupted = True
            raise KeyboardInterrupt

    def close(self) -> None:
        """The cell is over: from now on an interrupt must not cut the writing of its end."""
        self.state = "closing"

    def _on_signal(self, _: int, frame: FrameType | None) -> None:
        self.pressed += 1
        execution = self._execution
        if self.state == "opening":
            if _within(frame, _JOIN):  # an earlier execution is waited for: that may take long
                raise KeyboardInterrupt
            return
        if self.state == "closing" or execution is None:
            return
        execution.interrupted = True
        now = clock.monotonic()
        hard, self._last = now - self._last < HARD_WITHIN, now
        if hard:
            execution.pending_interrupt = False
            self._force()
        elif writing(frame):
            execution.pending_interrupt = True
            if self._task is not None:
                self._task.get_loop().call_soon_threadsafe(self._deliver_late)
        else:
            self._deliver(frame)

    def _deliver(self, frame: FrameType | None = None) -> None:
        """Stop the cell from where its code is right now: in a signal handler, or at a safe point of the runner."""
        execution, task = self._execution, self._task
        assert execution is not None
        if threading.current_thread() is not threading.main_thread():
            execution.pending_interrupt = True  # the main thread was interrupted; it comes to a safe point itself
            return
        if task is None:
            raise KeyboardInterrupt
        loop = task.get_loop()
        current = asyncio.current_task(loop)
        mine = CURRENT.get()
        if current is not None and mine is not None and mine.execution is execution:
            if current is not task:
                task.cancel()
                raise asyncio.CancelledError
            if frame is None or _within(frame, self._body_code):
                raise asyncio.CancelledError
        loop.call_soon_threadsafe(task.cancel)

    def _deliver_late(self) -> None:
        """In a turn of the loop of its own, no step is being written down."""
        execution = self._execution
        if execution is not None and execution.pending_interrupt:
            execution.pending_interrupt = False
            if self._task is not None and not self._task.done():
                self._task.cancel()

    def _end_await(self) -> None:
        """Somebody has cancelled the run from outside: what the cell awaits ends. Other code comes to a step itself."""
        task = self._task
        if task is not None:
            task.get_loop().call_soon_threadsafe(self._cut_now)

    def _cut_now(self) -> None:
        """The cell may have come to a step first, and have ended by then."""
        if self.state == "running" and self._task is not None:
            self._task.cancel()

    def _force(self) -> None:
        """A second press: the code may have swallowed the first."""
        task = self._task
        if task is None:
            raise KeyboardInterrupt
        loop = task.get_loop()
        current = asyncio.current_task(loop)
        if current is task:
            raise KeyboardInterrupt
        if current is not None:
            # KeyboardInterrupt in any other task would end the loop, and with it the kernel.
            task.cancel()
            raise asyncio.CancelledError
        loop.call_soon_threadsafe(self._wake_hard)

    def _wake_hard(self) -> None:
        task = self._task
        if task is None or task.done():
            return
        waiter = getattr(task, "_fut_waiter", None)
        if waiter is not None and not waiter.done() and not isinstance(waiter, asyncio.Task):
            waiter.set_exception(KeyboardInterrupt())
        else:
            task.cancel()
