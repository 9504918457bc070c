"""How often, and how many at a time: the limits that all calls of one step share in this process.

Whoever wants to begin an attempt asks here first. In a thread it waits there; in the event loop it awaits, and holds
nothing up. What is replayed never asks.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from jupyter_durable import clock
from jupyter_durable.engine.timers import plain_sleep
from jupyter_durable.errors import UsageError
from jupyter_durable.retry import parse_duration

_RATE = re.compile(r"\s*(\d+)\s*/\s*(.+?)\s*", re.ASCII)
_WORDS = {"second": "s", "minute": "m", "hour": "h", "day": "d"}


def parse_rate(text: Any) -> tuple[int, float]:
    """How many, and in how many seconds.

    Args:
        text: ``"60/min"``, ``"5/s"``, ``"100/15min"``.

    Raises:
        UsageError: it cannot be read.

    >>> parse_rate("60/min"), parse_rate("5/s"), parse_rate("100/15min"), parse_rate("2/hour")
    ((60, 60.0), (5, 1.0), (100, 900.0), (2, 3600.0))
    """
    found = _RATE.fullmatch(text) if isinstance(text, str) else None
    if found is None or int(found[1]) < 1:
        raise UsageError(f'`rate` is text such as "60/min", "5/s" or "100/15min", not {text!r}.')
    period = _WORDS.get(found[2].lower(), found[2])
    seconds = parse_duration(period if period[0].isdigit() else f"1{period}", "rate")
    if not seconds:
        raise UsageError("The period of `rate` must be longer than 0.")
    return int(found[1]), seconds


class Bucket:
    """So many tokens; each comes back one period after it was taken, so that no window of that length sees more."""

    def __init__(self, tokens: int, period: float) -> None:
        self.period = period
        self._taken: deque[float] = deque(maxlen=tokens)
        """When each token was, or will be, taken last; the oldest first."""
        self._lock = threading.Lock()

    def take(self) -> float:
        """Take the next token; return the seconds until it is there."""
        with self._lock:
            now = clock.monotonic()
            full = len(self._taken) == self._taken.maxlen
            at = max(now, self._taken[0] + self.period) if full else now
            self._taken.append(at)
            return at - now


class Slots:
    """Places for those who run at the same time; who comes first goes first, threads and tasks alike."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._lock = threading.Lock()
        self._queue: deque[Callable[[], bool]] = deque()
        """Wake who waits; false if nobody does any more."""

    def take(self) -> None:
        """Wait for a place in this thread."""
        event, state = threading.Event(), _Turn()
        if self._at_once(lambda: state.give(event.set)):
            return
        try:
            event.wait()
        except BaseException:
            if not state.leave():
                self.free()
            raise

    async def take_async(self) -> None:
        """Wait for a place as a part of the loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        state = _Turn()
        if self._at_once(lambda: state.give(lambda: loop.call_soon_threadsafe(_wake, future))):
            return
        try:
            await future
        except BaseException:
            if not state.leave():
                self.free()
            raise

    def _at_once(self, wake: Callable[[], bool]) -> bool:
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            self._queue.append(wake)
            return False

    def free(self) -> None:
        """Give a place back."""
        with self._lock:
            while self._queue:
                if self._queue.popleft()():
                    return
            self._free += 1


class _Turn:
    """Whether somebody who waits was given a place, or has left: one of the two comes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = "waits"

    def give(self, wake: Callable[[], object]) -> bool:
        with self._lock:
            if self._state != "waits":
                return False
            self._state = "given"
        wake()
        return True

    def leave(self) -> bool:
        """Whether it left before it was given a place."""
        with self._lock:
            left = self._state == "waits"
            self._state = "left" if left else self._state
            return left


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_held: ContextVar[tuple[Limit, ...]] = ContextVar("jupyter_durable_held", default=())
"""The limits whose places the running code has: a step that calls itself must not wait for itself."""


class Limit:
    """The limits of one step."""

    def __init__(self, rate: tuple[int, float] | None, places: int | None) -> None:
        self._bucket = None if rate is None else Bucket(*rate)
        self._slots = None if places is None else Slots(places)

    def enter(self) -> Pass:
        """Wait, in this thread, until an attempt may begin."""
        slots = self._slots if self not in _held.get() else None
        if slots is not None:
            slots.take()
        try:
            if self._bucket is not None and (wait := self._bucket.take()) > 0:
                clock.sleep(wait)
        except BaseException:
            if slots is not None:
                slots.free()
            raise
        return Pass(self, slots)

    async def enter_async(self) -> Pass:
        """Wait, as a part of the loop, until an attempt may begin."""
        slots = self._slots if self not in _held.get() else None
        if slots is not None:
            await slots.take_async()
        try:
            if self._bucket is not None and (wait := self._bucket.take()) > 0:
                await plain_sleep(wait)
        except BaseException:
            if slots is not None:
                slots.free()
            raise
        return Pass(self, slots)


class Pass:
    """Leave to run one attempt; to be given back at its end."""

    __slots__ = ("_slots", "_token")

    def __init__(self, limit: Limit, slots: Slots | None) -> None:
        self._slots = slots
        self._token = _held.set((*_held.get(), limit))

    def give_back(self) -> None:
        """The attempt has ended."""
        _held.reset(self._token)
        if self._slots is not None:
            self._slots.free()


_limits: dict[tuple[str, tuple[int, float] | None, int | None], Limit] = {}
_lock = threading.Lock()


def limit_of(name: str, rate: Any, concurrency: Any) -> Limit | None:
    """The limit that all steps of this name share, if they have one.

    Raises:
        UsageError: an option that cannot be meant.
    """
    if rate is None and concurrency is None:
        return None
    if concurrency is not None and (
        isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1
    ):
        raise UsageError("`concurrency` is a whole number, 1 or more: how many calls of the step run at the same time.")
    what = (name, None if rate is None else parse_rate(rate), concurrency)
    with _lock:
        return _limits.setdefault(what, Limit(what[1], concurrency))
