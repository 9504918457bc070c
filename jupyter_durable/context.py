"""Which run the code that is executing right now belongs to, and at which place of it.

Words of the public API ask here for the current `Frame` and speak to its abstract `Runtime`; they never import the
engine. A call that finds no frame is not in a durable run and simply runs.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

from jupyter_durable.call import Place
from jupyter_durable.history import Key


class Runtime(Protocol):
    """What the words of the API need of an execution."""

    @property
    def run_name(self) -> str: ...

    @property
    def ended(self) -> bool:
        """No further step may begin."""
        ...

    @property
    def pid(self) -> int:
        """The process that writes; a child process never does."""
        ...

    def idempotency_key(self, key: Key) -> str:
        """Stable name of a step's effect, for services that de-duplicate."""
        ...


class Frame:
    """One place of one execution, and the step whose body runs there."""

    __slots__ = ("execution", "outputs", "place", "step", "thread")

    def __init__(self, execution: Any, place: Place, step: Key | None = None, outputs: list[Any] | None = None) -> None:
        self.execution = execution
        self.place = place
        self.step = step
        self.outputs = outputs
        """What the body writes, if it is captured."""
        self.thread = threading.get_ident()
        """The thread in which calls of this place count in order."""


CURRENT: ContextVar[Frame | None] = ContextVar("jupyter_durable_frame", default=None)
"""The frame of the running code; copied into tasks and threads by `identity`."""

_by_thread: dict[int, Frame] = {}
"""Threads that a run began, for code that lost its context in them."""

_by_task: weakref.WeakKeyDictionary[asyncio.Task[Any], Frame] = weakref.WeakKeyDictionary()
"""Tasks that share a context the user gave; a variable of that context would be one for all of them."""


def current() -> Frame | None:
    """The frame of the running code, or ``None`` outside of a durable run."""
    if _by_task:
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


def bind_task(task: asyncio.Task[Any], frame: Frame) -> None:
    """Give a task a frame of its own, although its context is shared."""
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
