"""A step that the program cancelled is cancelled again on replay, by the same cause.

The cause is a deadline (``asyncio.timeout``, ``wait_for``) or an explicit cancel. An explicit one has happened already,
or is about to, when it is the step's turn. A deadline need not be waited for a second time: it is made to expire now.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from jupyter_durable.engine.timers import plain_sleep

TURNS = 10
"""Turns of the loop that an explicit cancel is given to arrive."""


async def cancelled_again() -> None:
    """Wait to be cancelled; raise ``CancelledError`` in any case."""
    task = asyncio.current_task()
    assert task is not None
    if _expire_deadline(asyncio.get_running_loop(), task):
        await asyncio.get_running_loop().create_future()
    for _ in range(TURNS):
        await plain_sleep(0)
    raise asyncio.CancelledError


def _expire_deadline(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> bool:
    """Let the earliest deadline around the task expire now; return whether there was one."""
    deadlines = sorted((h for h in getattr(loop, "_scheduled", ()) if not h.cancelled()), key=lambda h: h.when())
    waiters = _waiters_of_wait_for(task)
    for handle in deadlines:
        callback = handle._callback
        owner = getattr(callback, "__self__", None)
        is_timeout = isinstance(owner, asyncio.Timeout) and getattr(owner, "_task", None) is task
        if is_timeout or any(arg in waiters for arg in handle._args):
            args = handle._args
            handle.cancel()
            callback(*args)
            return True
    return False


def _waiters_of_wait_for(task: asyncio.Task[Any]) -> list[Any]:
    """What ``wait_for`` of Python 3.11 waits on when it waits for this task."""
    found = []
    for entry in getattr(task, "_callbacks", None) or ():
        callback = entry[0] if isinstance(entry, tuple) else entry
        if isinstance(callback, functools.partial) and getattr(callback.func, "__name__", "") == "_release_waiter":
            found += list(callback.args)
    return found
