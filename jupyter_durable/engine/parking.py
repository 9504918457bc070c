"""Whether a run can only go on when one of its waits is over, so that it may park."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution
    from jupyter_durable.engine.waits import Wait


def all_wait(execution: Execution, waits: Collection[Wait]) -> bool:
    """Whether every task and thread of a run waits for one of these, or for another that does."""
    blocked = {wait.thread for wait in waits if wait.blocks}
    if execution.members.threads > len(blocked - {execution.thread}):
        return False
    if execution.loop is None:
        return True
    ours = {wait.future for wait in waits if wait.future is not None}
    tasks = [task for task in (*execution.members.tasks(), execution.members.main) if task is not None]
    if execution.thread in blocked or _waits_for_threads(execution.thread):
        return True
    return all(_waits(task, ours) for task in tasks)


def _waits_for_threads(thread: int) -> bool:
    """Whether a thread stands in a lock or a condition, as one does that waits for what it has begun in others."""
    frame = sys._current_frames().get(thread)
    return frame is not None and frame.f_code.co_filename == threading.__file__


_ASYNCIO = str(Path(asyncio.__file__).parent)
_MADE_FOR_WAITING = ("queues.py", "locks.py", "tasks.py", "taskgroups.py")


def _waits(task: asyncio.Task[Any], ours: set[asyncio.Future[None]], depth: int = 0) -> bool:
    """Whether a task can go on only when one of our waits is over, as far as can be seen.

    A task that sleeps, or waits for the network, goes on by itself; one at a queue or a lock, or that waits for other
    tasks, goes on when one of those does.
    """
    waits_for = getattr(task, "_fut_waiter", None)
    if task.done() or waits_for in ours:
        return True
    if waits_for is None or depth > 100:
        return False
    if isinstance(waits_for, asyncio.Task):
        return _waits(waits_for, ours, depth + 1)
    if parts := _parts(waits_for):
        return all(_child_waits(part, ours, depth + 1) for part in parts)
    code = _innermost(task)
    folder, _, file = code.co_filename.rpartition("/") if code is not None else ("", "", "")
    return folder == _ASYNCIO and file in _MADE_FOR_WAITING and code is not None and code.co_name != "sleep"


def _child_waits(child: Any, ours: set[asyncio.Future[None]], depth: int) -> bool:
    if child.done() or child in ours:
        return True
    if isinstance(child, asyncio.Task):
        return _waits(child, ours, depth + 1)
    parts = _parts(child) if depth < 100 else []
    return bool(parts) and all(_child_waits(part, ours, depth + 1) for part in parts)


def _parts(future: Any) -> list[Any]:
    """What has to end before a future of `gather`, or of `shield`, does."""
    for callback, _ in getattr(future, "_callbacks", None) or ():
        code = getattr(callback, "__code__", None)
        if code is not None and code.co_filename.startswith(_ASYNCIO) and "inner" in code.co_freevars:
            return [callback.__closure__[code.co_freevars.index("inner")].cell_contents]
    return list(getattr(future, "_children", None) or ())


def _innermost(task: asyncio.Task[Any]) -> Any:
    """The code of the coroutine at which a task is suspended."""
    coro: Any = task.get_coro()
    code = getattr(coro, "cr_code", None)
    while (inner := getattr(coro, "cr_await", None)) is not None and hasattr(inner, "cr_code"):
        coro, code = inner, inner.cr_code
    return code
