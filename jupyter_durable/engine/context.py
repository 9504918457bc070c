"""Which run the code that is executing right now belongs to, and at which place of it.

Words of the public API ask here for the current `Frame`; a call that finds none is not in a durable run, and simply
runs.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from jupyter_durable.call import Call, Place


class Frame:
    """One place of one execution, and the step whose body runs there."""

    __slots__ = ("_place", "attempt", "execution", "failed_at", "outputs", "retried", "seq", "step", "thread")

    def __init__(
        self, execution: Any, place: Place | None, step: Call | None = None, outputs: list[Any] | None = None
    ) -> None:
        self.execution = execution
        self._place = place
        self.step = step
        """The call whose body runs here; ``None`` in the glue code of a cell and its tasks."""
        self.outputs = outputs
        """What the body writes, if it is captured."""
        self.attempt: Any = None
        """The attempt whose body runs here, and the seq of its intent, which tells it from a later one."""
        self.seq = -1
        self.retried: frozenset[int] = frozenset()
        """Inner steps whose failure ended an earlier attempt of the body."""
        self.failed_at = -1
        """Seq at which that attempt failed."""
        self.thread = threading.get_ident()
        """The thread in which calls of this place count in order."""

    @property
    def place(self) -> Place:
        """The place; that of a body is made when something in it asks, since most bodies call no step."""
        place = self._place
        if place is None:
            assert self.step is not None
            place = self._place = self.step.place.body(self.step.key)
            place.retried = self.retried
            place.failed_at = self.failed_at
        return place

    def inside(self, place: Place) -> Frame:
        """The frame of a task, thread or map that was begun here."""
        frame = Frame(self.execution, place, self.step, self.outputs)
        frame.attempt, frame.seq = self.attempt, self.seq
        return frame

    def finished(self) -> None:
        """The body has ended."""
        if self._place is not None:
            self._place.finished()


CURRENT: ContextVar[Frame | None] = ContextVar("jupyter_durable_frame", default=None)
"""The frame of the running code; copied into tasks and threads by `identity`."""

_by_thread: dict[int, Frame] = {}
"""Threads that a run began, for code that lost its context in them."""

_by_task: weakref.WeakKeyDictionary[asyncio.Task[Any], Frame] = weakref.WeakKeyDictionary()
"""Tasks that share a context the user gave; a variable of that context would be one for all of them."""

_any_task_bound = False
"""Whether there ever was one: asking a weak dictionary for its length costs more than the rest of `current`."""


def current() -> Frame | None:
    """The frame of the running code, or ``None`` outside of a durable run."""
    if _any_task_bound:
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        if task is not None and (frame := _by_task.get(task)) is not None:
            return frame
    frame = CURRENT.get()
    if frame is None and _by_thread:
        return _by_thread.get(threading.get_ident())
    return frame


def task_of(loop: asyncio.AbstractEventLoop | None) -> asyncio.Task[Any] | None:
    """The task that runs right now, if it is one of this loop."""
    try:
        return None if loop is None else asyncio.current_task(loop)
    except RuntimeError:
        return None


def bind_task(task: asyncio.Task[Any], frame: Frame) -> None:
    """Give a task a frame of its own, although its context is shared."""
    global _any_task_bound
    _any_task_bound = True
    _by_task[task] = frame


def in_thread(frame: Frame, fn: Callable[[], Any]) -> Any:
    """Run ``fn`` in this thread as a part of the frame's run."""
    ident = threading.get_ident()
    before = _by_thread.get(ident)
    frame.thread = ident
    _by_thread[ident] = frame
    token = CURRENT.set(frame)
    try:
        return fn()
    finally:
        CURRENT.reset(token)
        if before is None:
            _by_thread.pop(ident, None)
        else:
            _by_thread[ident] = before
