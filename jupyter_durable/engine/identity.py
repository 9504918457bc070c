"""Structural identity: every task and thread that a run starts gets a place of its own, as it is started.

While an execution lives, the loop's task factory, ``Thread.start`` and ``ThreadPoolExecutor.submit`` are wrapped.
They look at the frame of the caller; code outside of durable runs passes through unchanged.
"""

from __future__ import annotations

import asyncio
import asyncio.tasks
import datetime
import enum
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from types import CodeType
from typing import Any

from jupyter_durable.engine import timers
from jupyter_durable.engine.awaited import Awaited
from jupyter_durable.engine.context import CURRENT, bind_task, current, in_thread
from jupyter_durable.errors import Undigestable
from jupyter_durable.values.digest import digest

DRIVERS: set[CodeType] = set()
"""Code objects of our own coroutines; a task that runs one is not a place of its own (its call already has one)."""

_WAIT_FOR = asyncio.tasks.wait_for.__code__


def describe(fn: Any, args: Sequence[Any]) -> str:
    """The function and the digest of its arguments, as an element of a place.

    What can change in place (a dict that all threads fill, a queue, an object) counts as equal: its content depends on
    how far others have come. Such tasks are told apart by their number, and by what they ask.
    """
    while isinstance(fn, functools.partial):
        args = (*fn.args, *args)
        fn = fn.func
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    owner = getattr(fn, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        args = (owner, *args)
    if not args:
        return name.replace("<locals>.", "")
    said = [arg if _is_fixed(arg) else f"<{type(arg).__qualname__}>" for arg in args]
    try:
        return f"{name.replace('<locals>.', '')}:{digest(said)[:6]}"
    except Undigestable:
        return name.replace("<locals>.", "")


_FIXED = (str, int, float, bool, bytes, complex, type(None), enum.Enum, datetime.date, datetime.timedelta)


def _is_fixed(value: Any) -> bool:
    """Whether a value is the same whenever it is looked at."""
    if isinstance(value, tuple | frozenset):
        return all(map(_is_fixed, value))
    return isinstance(value, _FIXED)


def describe_coroutine(coro: Any) -> str | None:
    """The same for a coroutine that has not begun; ``None`` for one of ours."""
    code = getattr(coro, "cr_code", None)
    frame = getattr(coro, "cr_frame", None)
    if code is None or frame is None:
        return getattr(coro, "__qualname__", type(coro).__qualname__)
    if code in DRIVERS:
        return None
    local = frame.f_locals
    if code.co_name in ("_run_wrapped_task", "_wrap_awaitable"):  # anyio's and asyncio's wrappers around user code
        inner = local.get("coro", local.get("awaitable"))
        if inspect.iscoroutine(inner) or isinstance(inner, Awaited):
            return describe_coroutine(inner)
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    args = [local[name] for name in code.co_varnames[:count] if name in local]
    return describe(_Named(coro.__qualname__), args)


class _Named:
    """Stands for a function of which only the name is known."""

    def __init__(self, qualname: str) -> None:
        self.__qualname__ = qualname


class TaskFactory:
    """A loop's task factory that gives each task of a run its place, around the factory that was there before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.previous: Callable[..., Any] | None = loop.get_task_factory()
        eager = getattr(asyncio, "eager_task_factory", None)
        if self.previous is not None and self.previous is eager:
            # anyio knows the stock eager factory by its code and fails behind any wrapper of it: plain tasks instead.
            self._make: Callable[..., Any] = _plain_task
        else:
            self._make = self.previous or _plain_task

    def __call__(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
        """Make a task; asyncio calls this."""
        if isinstance(coro, Awaited):
            coro.taken()
        frame = current()
        if frame is None or frame.execution.ended or _made_by_wait_for():
            return self._make(loop, coro, **options)
        what = describe_coroutine(coro)
        if what is None:
            task = self._make(loop, coro, **options)
            frame.execution.members.watch(task, None)
            return task
        child = frame.inside(frame.place.child(what))
        if options.get("context") is None:
            context = copy_context()
            context.run(CURRENT.set, child)
            options["context"] = context
            task = self._make(loop, coro, **options)
        else:
            task = self._make(loop, coro, **options)
            bind_task(task, child)
        frame.execution.members.watch(task, child.place)
        return task


def _plain_task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(coro, loop=loop, **options)


def _made_by_wait_for() -> bool:
    """On 3.11 ``wait_for`` makes a task where later versions make none: it must not count as a place."""
    if sys.version_info >= (3, 12):
        return False
    caller: Any = sys._getframe(2)
    for _ in range(5):
        if caller is None:
            return False
        if caller.f_code is _WAIT_FOR:
            return True
        caller = caller.f_back
    return False


class Patches:
    """Installs the wrappers for as long as at least one execution of this process lives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._loops: dict[int, tuple[asyncio.AbstractEventLoop, TaskFactory, int]] = {}
        self._thread_start: Any = None
        self._submit: Any = None

    def install(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Begin to follow tasks of ``loop`` (if there is one) and threads."""
        with self._lock:
            if self._users == 0:
                self._patch_threads()
                timers.install()
            self._users += 1
            if loop is not None:
                known = self._loops.get(id(loop))
                users = known[2] if known is not None else 0
                if known is None or loop.get_task_factory() is not known[1]:
                    known = (loop, TaskFactory(loop), users)
                    loop.set_task_factory(known[1])
                self._loops[id(loop)] = (loop, known[1], users + 1)

    def uninstall(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Undo one `install`; what somebody else has put over ours is left alone."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                timers.uninstall()
                if threading.Thread.start is _thread_start:
                    threading.Thread.start = self._thread_start  # type: ignore[method-assign]
                if ThreadPoolExecutor.submit is _submit:
                    ThreadPoolExecutor.submit = self._submit  # type: ignore[method-assign]
            if loop is None or id(loop) not in self._loops:
                return
            _, factory, users = self._loops.pop(id(loop))
            if users > 1:
                self._loops[id(loop)] = (loop, factory, users - 1)
            elif loop.get_task_factory() is factory and not loop.is_closed():
                loop.set_task_factory(factory.previous)

    def _patch_threads(self) -> None:
        global _original_start, _original_submit
        if threading.Thread.start is not _thread_start:
            self._thread_start = _original_start = threading.Thread.start
            threading.Thread.start = _thread_start  # type: ignore[method-assign]
        if ThreadPoolExecutor.submit is not _submit:
            self._submit = _original_submit = ThreadPoolExecutor.submit
            ThreadPoolExecutor.submit = _submit  # type: ignore[method-assign,assignment]


_original_start: Any = threading.Thread.start
_original_submit: Any = ThreadPoolExecutor.submit
PATCHES = Patches()
"""The one set of wrappers of this process."""


def start_apart(thread: threading.Thread) -> None:
    """Start a thread of ours, which is no place of any run."""
    _original_start(thread)


def _thread_start(self: threading.Thread) -> None:
    """``Thread.start`` that makes the new thread a part of the run that started it."""
    frame = current()
    if frame is None or frame.execution.ended:
        _original_start(self)
        return
    target = getattr(self, "_target", None) or type(self).run
    what = describe(target, getattr(self, "_args", ()))
    child = frame.inside(frame.place.child(what, loose=True))
    run = self.run

    def run_in_place() -> None:
        try:
            in_thread(child, run)
        finally:
            child.place.finished()
            child.execution.members.thread_ended()

    frame.execution.members.thread_started()
    self.run = run_in_place  # type: ignore[method-assign]
    try:
        _original_start(self)
    except BaseException:
        frame.execution.members.thread_ended()
        raise


def _submit(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
    """``ThreadPoolExecutor.submit`` that makes each job a place of the run that submitted it."""
    frame = current()
    if frame is None or frame.execution.ended:
        return _original_submit(self, fn, *args, **kwargs)  # type: ignore[no-any-return]
    context, inner, inner_args = _unwrap(fn, args)
    child = frame.inside(frame.place.child(describe(inner, (*inner_args, *kwargs.values())), loose=True))
    if context is not None:
        context.run(CURRENT.set, child)  # ``to_thread`` made this copy for the one job

    def job() -> Any:
        try:
            return in_thread(child, lambda: fn(*args, **kwargs))
        finally:
            child.place.finished()
            child.execution.members.thread_ended()

    frame.execution.members.thread_started()
    # The pool starts its workers inside ``submit``: they must neither take a number here nor inherit this place.
    token = CURRENT.set(None)
    try:
        future: Future[Any] = _original_submit(self, job)
    except BaseException:
        frame.execution.members.thread_ended()
        raise
    finally:
        CURRENT.reset(token)
    future.add_done_callback(lambda f: child.execution.members.thread_ended() if f.cancelled() else None)
    return future


def _unwrap(fn: Any, args: tuple[Any, ...]) -> tuple[Context | None, Any, tuple[Any, ...]]:
    """See through ``partial(context.run, fn, ...)``, which is what ``asyncio.to_thread`` submits."""
    if isinstance(fn, functools.partial) and fn.args:
        context = getattr(fn.func, "__self__", None)
        if isinstance(context, Context) and getattr(fn.func, "__name__", "") == "run":
            return context, fn.args[0], (*fn.args[1:], *fn.keywords.values(), *args)
    return None, fn, args
