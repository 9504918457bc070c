"""Some at a time: who works off the items of a ``durable.map``, in threads or as tasks, in a run or without one."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Protocol

from jupyter_durable.engine.context import CURRENT
from jupyter_durable.engine.identity import start_apart

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution

Job = Callable[[], Any]
"""Works off one item, and notes its end; as a task, it gives a coroutine that does."""


class Work:
    """The items of one map: which are to be done, and what became of each. Safe to use from several threads.

    Args:
        count: how many items there are.
        keeps: an item that fails is kept as its exception; else the first failure ends the map.
        concurrency: how many are worked on at the same time.
    """

    def __init__(self, count: int, *, keeps: bool, concurrency: int) -> None:
        self.keeps = keeps
        self.concurrency = concurrency
        self.stopped = False
        """No further item is begun."""
        self.fatal: BaseException | None = None
        """What ends the map besides failures of items."""
        self.on_item: Callable[[int], object] | None = None
        """Called with the number of items that are done."""
        self._results: list[Any] = [None] * count
        self._begun = self._ended = self._done = 0
        self._errors: dict[int, BaseException] = {}
        self._jobs: deque[tuple[int, Job]] = deque()
        self._lock = threading.Lock()

    def add(self, index: int, job: Job) -> None:
        """An item that is to be worked on."""
        self._jobs.append((index, job))

    def sort(self) -> None:
        """Begin them in order of the items."""
        self._jobs = deque(sorted(self._jobs, key=lambda each: each[0]))

    def clear(self) -> None:
        """Work on none."""
        self._jobs.clear()

    @property
    def waiting(self) -> int:
        """Items that were not begun yet."""
        return len(self._jobs)

    def next(self) -> Job | None:
        """The next item to be begun; ``None`` if there is none."""
        with self._lock:
            if self.stopped or not self._jobs:
                return None
            self._begun += 1
            return self._jobs.popleft()[1]

    @property
    def over(self) -> bool:
        """Nothing runs, and nothing is to be begun."""
        with self._lock:
            return self._begun == self._ended and (self.stopped or not self._jobs)

    def value(self, index: int, value: Any) -> None:
        """An item is done."""
        self._results[index] = value
        self._count()

    def failed(self, index: int, error: BaseException, *, recorded: bool) -> None:
        """An item has failed.

        Args:
            index: its number.
            error: what it raised.
            recorded: it is a failure as any; else something is wrong that ends the map.
        """
        with self._lock:
            if recorded:
                self._results[index] = self._errors[index] = error
            elif self.fatal is None:
                self.fatal = error
            self.stopped |= not (recorded and self.keeps)
        self._count()

    def ended(self) -> None:
        """One that was begun has ended."""
        with self._lock:
            self._ended += 1

    def _count(self) -> None:
        with self._lock:
            self._done += 1
        if self.on_item is not None:
            self.on_item(self._done)

    def result(self) -> list[Any]:
        """The values in order of the items.

        Raises:
            Exception: an item has failed, and none is to be kept: its own error, or a group of them.
        """
        __tracebackhide__ = True
        if self.fatal is not None:
            raise self.fatal
        if self._errors and not self.keeps:
            errors: Any = [self._errors[index] for index in sorted(self._errors)]
            if len(errors) == 1:
                raise errors[0]
            count = len(self._results)
            raise BaseExceptionGroup(f"durable.map: {len(errors)} of {count} items failed", errors)
        return self._results


class Crew(Protocol):
    """Those who work the items off."""

    def begin(self, done: Callable[[], object]) -> None:
        """Begin; ``done`` is called when nothing is left to be done."""
        ...

    async def leave(self) -> None:
        """Whoever waits goes away: begin nothing further."""
        ...


class Threads:
    """Items in threads. What was begun ends and is recorded, also if nobody waits for it any more."""

    def __init__(self, work: Work, execution: Execution | None) -> None:
        self._work = work
        self._execution = execution
        self._left = min(work.concurrency, work.waiting)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._tell: list[Callable[[], object]] = []

    def begin(self, done: Callable[[], object]) -> None:
        """See `Crew`."""
        self._tell.append(done)
        if not self._left:
            self._end()
        for _ in range(self._left):
            # A context each, as tasks have: variables that one body sets are no business of the next thread.
            thread = threading.Thread(target=self._work_on, args=(copy_context(),), name="durable-map")
            if self._execution is not None:
                self._execution.members.thread_started()
            start_apart(thread)

    def wait(self) -> None:
        """Wait in the calling thread; an interrupt ends the waiting, and what runs comes to its end all the same."""
        try:
            self._over.wait()
        except BaseException:
            self._work.stopped = True
            raise

    async def leave(self) -> None:
        """See `Crew`."""
        self._work.stopped = True

    def _work_on(self, context: Context) -> None:
        execution = self._execution
        try:
            while (execution is None or not (execution.ended or execution.sealed)) and (job := self._work.next()):
                context.copy().run(self._one, job)
        finally:
            if execution is not None:
                execution.members.thread_ended()
            with self._lock:
                self._left -= 1
            if not self._left:
                self._end()

    def _one(self, job: Job) -> None:
        CURRENT.set(None)  # between two bodies nobody is in the run
        job()

    def _end(self) -> None:
        self._over.set()
        for tell in self._tell:
            tell()


class Tasks:
    """Items as tasks of the running loop."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._running: set[asyncio.Task[Any]] = set()
        self._tell: Callable[[], object] = bool

    def begin(self, done: Callable[[], object]) -> None:
        """See `Crew`."""
        self._tell = done
        self._more()

    def _more(self) -> None:
        while len(self._running) < self._work.concurrency and (job := self._work.next()) is not None:
            try:
                task = asyncio.create_task(job())
            except BaseException as error:
                self._work.failed(-1, error, recorded=False)
                break
            self._running.add(task)
            task.add_done_callback(self._ended)
        if not self._running:
            self._tell()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if task.cancelled():
            self._work.stopped = True
            if self._work.fatal is None:
                self._work.fatal = asyncio.CancelledError()
        self._more()

    async def leave(self) -> None:
        """See `Crew`. They are cancelled, as those of a task group are."""
        self._work.stopped = True
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
