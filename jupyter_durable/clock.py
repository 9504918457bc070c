"""The one seam for time and randomness: everything that reads a clock or draws a number asks here.

Tests put a `Clock` of their own in place with `use`; nothing else in the package imports ``time`` or ``random``
to decide anything.
"""

from __future__ import annotations

import os
import time as _time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Clock(Protocol):
    """A source of time and randomness."""

    def time(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some point in this process; never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Block the calling thread."""
        ...

    def token_bytes(self, n: int) -> bytes:
        """``n`` random bytes."""
        ...


class SystemClock:
    """The real thing."""

    time = staticmethod(_time.time)
    monotonic = staticmethod(_time.monotonic)
    sleep = staticmethod(_time.sleep)
    token_bytes = staticmethod(os.urandom)


_clock: Clock = SystemClock()


def now() -> float:
    """Seconds since 1970-01-01 UTC by the clock in force."""
    return _clock.time()


def monotonic() -> float:
    """Monotonic seconds by the clock in force."""
    return _clock.monotonic()


def sleep(seconds: float) -> None:
    """Block the calling thread for ``seconds`` by the clock in force."""
    _clock.sleep(seconds)


def token_bytes(n: int) -> bytes:
    """Random bytes by the clock in force."""
    return _clock.token_bytes(n)


@contextmanager
def use(clock: Clock) -> Iterator[Clock]:
    """Put another clock in force, for tests.

    >>> class Noon(SystemClock):
    ...     time = staticmethod(lambda: 1796040000.0)
    >>> with use(Noon()):
    ...     now()
    1796040000.0
    """
    global _clock
    before, _clock = _clock, clock
    try:
        yield clock
    finally:
        _clock = before
