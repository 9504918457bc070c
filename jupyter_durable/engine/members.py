"""The tasks and threads of one execution: what was begun for its run and has not ended."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

from jupyter_durable.call import Place
from jupyter_durable.engine.context import task_of

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution


class Members:
    """See the module. The cell's own task is one that the run did not begin: it is `main`."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self.main = task_of(execution.loop)
        self.threads = 0
        """Threads of the run, and jobs of it in pools, that run."""
        self._tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    def watch(self, task: asyncio.Task[Any], place: Place | None) -> None:
        """Follow a task that the run has started."""
        self._tasks.add(task)
        if place is not None and self._execution.replay.source is not None:
            task.add_done_callback(lambda _: place.finished())

    def tasks(self) -> list[asyncio.Task[Any]]:
        """Those that the run has started and that are not done."""
        return [task for task in list(self._tasks) if not task.done()]

    def thread_started(self) -> None:
        """A thread, or a job in a pool, was begun for the run."""
        with self._execution.lock:
            self.threads += 1

    def thread_ended(self) -> None:
        """It has ended."""
        with self._execution.lock:
            self.threads -= 1
            if not self.threads:
                self._execution.last_thread_ended()
