"""One flush for all steps that need it in one turn of the loop, and returning in the order of the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jupyter_durable.engine.timers import GIVE_WAY, is_settled, plain_sleep
from jupyter_durable.errors import LogError

Held = tuple[asyncio.Future[None] | None, asyncio.Future[None]]
"""A place in the order of returns: who returns before, and one's own return."""


class GroupFlush:
    """Group commit on the side of the loop: flushing in a thread was measured to be slower.

    Args:
        flush: makes everything appended so far survive loss of power.
        loop: the loop whose turns are shared; steps in other loops flush by themselves.
        needed: whether the run asked for flushes at all.
    """

    def __init__(self, flush: Callable[[], None], loop: asyncio.AbstractEventLoop | None, *, needed: bool) -> None:
        self._flush = flush
        self._loop = loop
        self._needed = needed
        self._next: asyncio.Future[None] | None = None
        self._last_return: asyncio.Future[None] | None = None

    async def together(self) -> None:
        """Wait for a flush that all who ask in this turn of the loop share."""
        if not self._needed:
            return
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._flush()
            return
        await asyncio.shield(self._scheduled(loop))

    def _scheduled(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        if self._next is None:
            self._next = loop.create_future()
            loop.call_soon(self._flush_now, self._next)
        return self._next

    def _flush_now(self, future: asyncio.Future[None]) -> None:
        self._next = None
        try:
            self._flush()
        except LogError as error:
            if not future.done():
                future.set_exception(error)
                future.exception()  # retrieved here too: nobody may be left who awaits it
        else:
            if not future.done():
                future.set_result(None)

    @property
    def returning(self) -> bool:
        """Whether an end was recorded that its step has not returned yet: later ones must queue behind it."""
        return self._last_return is not None and not self._last_return.done()

    def hold(self) -> Held | None:
        """Take a place in the order of returns, for who comes to return a few turns of the loop later."""
        loop = self._loop
        if loop is None or asyncio.get_running_loop() is not loop:
            return None
        before, self._last_return = self._last_return, loop.create_future()
        return before, self._last_return

    async def return_in_order(self, *, flush: bool, held: Held | None = None) -> None:
        """Let a recorded end through after those recorded before it, and after a flush if it was shown, when nothing
        else can go on (see `timers.give_way`).

        The order in which steps return is then the order in which their ends lie in the log, which is the order of a
        replay. A cancel that comes meanwhile is put off until after the return: the step has its result.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if loop is not self._loop or task is None:
            if flush and self._needed:
                self._flush()
            return
        before, mine = held or self.hold() or (None, loop.create_future())
        put_off = False
        try:
            for future in (self._scheduled(loop) if flush and self._needed else None, before):
                while future is not None and not future.done():
                    try:
                        await asyncio.shield(future)
                    except asyncio.CancelledError:
                        put_off = True
                        task.uncancel()
            for _ in range(GIVE_WAY):
                if is_settled(loop):
                    break
                try:
                    await plain_sleep(0)
                except asyncio.CancelledError:
                    put_off = True
                    task.uncancel()
        finally:
            mine.set_result(None)
        if put_off:
            task.cancel()
