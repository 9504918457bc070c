"""The turnstile: on replay, recorded results are handed out in the recorded order of starts and ends.

So ``as_completed``, queues and everything else that depends on who finishes first goes the same way again. A recorded
end waits until every earlier recorded start and end has happened or cannot happen any more. By causality a program
that is deterministic apart from that order cannot deadlock here. Where the order cannot be kept (fewer threads than
then, a smaller semaphore, glue that waited for the network), the earliest one asked for is handed out and the replay
is marked *order relaxed*.

Synchronous steps mark their moments; in threads they wait in `order`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from jupyter_durable.engine.timers import give_way
from jupyter_durable.entries import Entry
from jupyter_durable.keys import TimerKey

CHECK_EVERY = 0.01
"""Seconds between two looks at a replay that makes no progress."""

PATIENCE = 50
"""Looks (half a second) without progress after which waiting for an unknown future no longer counts as progress."""


class Turnstile:
    """Hands out the moments of one replay in order. Used from the thread of the event loop, and by sync steps."""

    def __init__(self, order: Iterable[tuple[Entry | TimerKey, bool]], tasks: Callable[[], Iterable[Any]]) -> None:
        self._index: dict[tuple[object, bool], int] = {}
        for what, is_end in order:
            self._index[_token(what), is_end] = len(self._index)
        self._done = bytearray(len(self._index))
        self._at = 0
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._released: set[asyncio.Future[None]] = set()
        """Let through, but not yet running again: later ones must queue behind them."""
        self._tasks = tasks
        self._progress = 0
        self._seen = -1
        self._idle_looks = 0
        self._watching = False
        self.relaxed = False
        """The order could not be kept."""

    @property
    def finished(self) -> bool:
        """Everything recorded has happened."""
        return self._at >= len(self._done)

    def started(self, entry: Entry) -> None:
        """A recorded step was asked for."""
        self._mark(self._index.get((id(entry), False)))

    def passed(self, entry: Entry) -> None:
        """A recorded step's end was handed out without waiting, or will never be: it is executed anew."""
        self._mark(self._index.get((id(entry), False)))
        self._mark(self._index.get((id(entry), True)))

    def is_turn_of(self, what: Entry | TimerKey) -> bool:
        """Whether every earlier moment has happened, and this one has not."""
        index = self._index.get((_token(what), True))
        return index is not None and not self._done[index] and self._at >= index and not self._released

    def ready(self, what: Entry | TimerKey) -> bool:
        """Whether it is this moment's turn, or it has none to wait for; marks it if so."""
        index = self._index.get((_token(what), True))
        if index is None or self._done[index]:
            return True
        if self._at < index or self._released:
            return False
        self._mark(index)
        return True

    async def turn(self, what: Entry | TimerKey) -> None:
        """Wait until every earlier moment has happened; then this one has."""
        if self.ready(what):
            return
        loop = asyncio.get_running_loop()
        index = self._index[_token(what), True]
        future = loop.create_future()
        self._waiting[index] = future
        if self._at == index:
            loop.call_soon(self._advance)  # not now: awaiting a future that is done does not queue behind anybody
        elif not self._watching:
            self._watching = True
            loop.call_later(CHECK_EVERY, self._look, loop)
        try:
            await future
            await give_way(loop)
        finally:
            self._waiting.pop(index, None)
            self._released.discard(future)
            self._advance()

    def _mark(self, index: int | None) -> None:
        if index is None or self._done[index]:
            return
        self._done[index] = 1
        self._progress += 1
        if index == self._at:
            self._advance()

    def _advance(self) -> None:
        done, size = self._done, len(self._done)
        while self._at < size:
            if not done[self._at]:
                if self._released:
                    return  # one at a time
                future = self._waiting.pop(self._at, None)
                if future is None:
                    return
                done[self._at] = 1
                self._release(future)
            self._at += 1

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """See whether the replay is stuck; if everything of the run waits for us, let the earliest one through."""
        if not self._waiting:
            self._watching = False
            return
        if self._progress != self._seen:
            self._seen, self._idle_looks = self._progress, 0
        else:
            self._idle_looks += 1
            verdict = self._blocked(loop)
            if (verdict == "blocked" and self._idle_looks > 1) or (
                verdict == "unknown" and self._idle_looks > PATIENCE
            ):
                self._relax()
        loop.call_later(CHECK_EVERY, self._look, loop)

    def _relax(self) -> None:
        """Hand out the earliest moment that was asked for, although earlier ones have not happened."""
        self.relaxed = True
        index = min(self._waiting)
        future = self._waiting.pop(index)
        self._done[index] = 1
        self._release(future)

    def _release(self, future: asyncio.Future[None]) -> None:
        self._progress += 1
        if not future.done():
            self._released.add(future)
            future.set_result(None)

    def _blocked(self, loop: asyncio.AbstractEventLoop) -> str:
        """``running``: glue of the run runs or sleeps; ``blocked``: all of it waits for us; else ``unknown``."""
        ours = set(self._waiting.values())
        sleeping = {arg for handle in getattr(loop, "_scheduled", ()) for arg in (handle._args or ())}
        verdict = "blocked"
        for task in self._tasks():
            if task.done():
                continue
            found = _why_waiting(task, ours, sleeping)
            if found == "running":
                return "running"
            if found == "unknown":
                verdict = "unknown"
        return verdict


def _token(what: Entry | TimerKey) -> object:
    return what if isinstance(what, TimerKey) else id(what)


def _why_waiting(task: Any, ours: set[Any], sleeping: set[Any]) -> str:
    """Why one task does not run. Reads ``_fut_waiter``, which every task of asyncio has."""
    waits_for = getattr(task, "_fut_waiter", None)
    for _ in range(100):
        if waits_for is None:
            return "running"
        if waits_for in ours:
            return "blocked"
        if waits_for in sleeping:
            return "running"
        if isinstance(waits_for, asyncio.Task):
            waits_for = getattr(waits_for, "_fut_waiter", None)
            continue
        children = getattr(waits_for, "_children", None)
        if children:
            pending = [c for c in children if not c.done()]
            return "blocked" if pending else "running"
        return "unknown"
    return "unknown"
