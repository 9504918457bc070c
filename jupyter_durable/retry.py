"""Decides whether a failed attempt of a step is tried again, and after how long. Pure: nobody waits here.

::

    RetryPolicy()                                        no retry
    RetryPolicy(retries=3)                               after 1, 2 and 4 s, each up to 25 % more
    RetryPolicy(retries=3, backoff="5s")                 after 5, 10 and 20 s
    RetryPolicy(retries=9, backoff=(0.5, 3, "2m"))       first, factor, cap
    RetryPolicy(retries=3, backoff=lambda n: n * 10)     after 10, 20 and 30 s, exactly

What a server says (``retry-after``) goes before the policy's own delay.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jupyter_durable import clock
from jupyter_durable.errors import DurableError, StepTimeout, UsageError, WorkerFailed

Duration = str | float | dt.timedelta
"""Seconds, or text such as ``"1h30m"``, or a timedelta."""

_FACTOR = 2.0
_CAP = 60.0

_UNITS = {
    "ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
}  # fmt: skip
_PIECE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|sec|s|min|m|h|d|w)(?![a-z])", re.IGNORECASE | re.ASCII)


def parse_duration(value: Any, name: str = "duration") -> float:
    """Seconds of a duration.

    Args:
        value: ``"30s"``, ``"2m"``, ``"1h30m"``, ``"500ms"``, ``"3d"``; a timedelta; or a number of seconds.
        name: the parameter, for messages.

    Raises:
        UsageError: it cannot be read, is negative, or is not finite.

    >>> parse_duration("1h30m"), parse_duration("500ms"), parse_duration(5)
    (5400.0, 0.5, 5.0)
    """
    if isinstance(value, dt.timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str):
        seconds = _read(value, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = _number(value, name)
    else:
        raise UsageError(
            f'`{name}` is a number of seconds, text such as "30s" or "1h30m", or a timedelta, '
            f"not a `{type(value).__qualname__}`."
        )
    if seconds < 0:
        raise UsageError(f"`{name}` must not be negative.")
    return seconds


def _read(text: str, name: str) -> float:
    seconds, place, compact = 0.0, 0, text.strip()
    # Two units of one size, as in "1m 2m", are more likely a slip than a sum.
    used: set[float] = set()
    while place < len(compact):
        piece = _PIECE.match(compact, place) if compact.isascii() else None
        unit = _UNITS[piece[2].lower()] if piece else 0.0
        if piece is None or unit in used:
            break
        used.add(unit)
        seconds += float(piece[1]) * unit
        place = piece.end()
    if not compact or place < len(compact):
        raise UsageError(
            f"`{name}` cannot be read as a duration: {text[:40]!r}. "
            'Write numbers with units, such as "30s", "2m", "1h30m" or "500ms"; plain seconds go without quotes.'
        )
    return _number(seconds, name)


def _number(value: float, name: str) -> float:
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds):
        raise UsageError(f"`{name}` must be a finite number of seconds.")
    return seconds


@dataclass(frozen=True, slots=True, init=False)
class RetryPolicy:
    """When a failed body is tried again.

    Args:
        retries: how many times it is tried again; 0 for never.
        backoff: delay before the first retry, doubled each time up to a minute; or ``(first, factor, cap)``; or a
            function of the number of the failed attempt, from 1.
        jitter: largest part of the delay that is added at random, so that a crowd does not come back at once. A
            delay given by a function is taken as it is.
        retry_on: exception type, tuple of types, or a predicate of the exception.
        timeout: longest time for one attempt.

    Raises:
        UsageError: a parameter that cannot be meant.

    >>> policy = RetryPolicy(retries=2)
    >>> [policy.next(attempt, OSError(), 0.0) for attempt in (1, 2, 3)]
    [1.0, 2.0, None]
    """

    retries: int
    backoff: tuple[float, float, float] | Callable[[int], Any]
    """First delay, factor and cap; or a function."""
    jitter: float
    retry_on: tuple[type[BaseException], ...] | Callable[[Exception], object]
    timeout: float | None
    """Seconds."""

    def __init__(
        self,
        retries: int = 0,
        backoff: Any = 1.0,
        jitter: float = 0.25,
        retry_on: Any = Exception,
        timeout: Duration | None = None,
    ) -> None:
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise UsageError("`retries` is a whole number, 0 or more: how many times a failed step is tried again.")
        if isinstance(jitter, bool) or not isinstance(jitter, int | float) or not 0 <= jitter <= 1:
            raise UsageError("`jitter` is a fraction between 0 and 1: the part of a delay that is added at random.")
        set_ = object.__setattr__  # frozen for everybody else
        set_(self, "retries", retries)
        set_(self, "backoff", _backoff(backoff))
        set_(self, "jitter", float(jitter))
        set_(self, "retry_on", _retry_on(retry_on))
        set_(self, "timeout", None if timeout is None else _timeout(timeout))

    def next(self, attempt: int, exc: BaseException, random01: float) -> float | None:
        """Seconds until the next attempt; ``None`` to give up.

        Errors of jupyter_durable itself are never retried, except a timeout and a dead worker: they mean that somebody
        must look.

        Args:
            attempt: number of the attempt that failed, from 1.
            exc: what it raised.
            random01: a random number from 0 to 1.
        """
        if attempt > self.retries or not isinstance(exc, Exception) or _is_ours(exc) or not self._wanted(exc):
            return None
        asked = retry_after(exc)
        if asked is None and callable(self.backoff):
            return parse_duration(self.backoff(attempt), "backoff")
        delay = self._delay(attempt) if asked is None else asked
        return delay * (1 + self.jitter * random01)

    def _delay(self, attempt: int) -> float:
        if callable(self.backoff):
            return 0.0
        first, factor, cap = self.backoff
        try:
            return min(first * factor ** (attempt - 1), cap)
        except OverflowError:
            return cap if first else 0.0

    def _wanted(self, exc: Exception) -> bool:
        if not isinstance(self.retry_on, tuple):
            return bool(self.retry_on(exc))
        if isinstance(exc, self.retry_on):
            return True
        return isinstance(exc, ExceptionGroup) and all(self._wanted(each) for each in exc.exceptions)


def retry_after(exc: BaseException) -> float | None:
    """Seconds that a server asked to wait, if the error of its SDK tells: ``retry_after``, or a header of the answer.

    >>> class RateLimit(Exception):
    ...     retry_after = 7
    >>> retry_after(RateLimit()), retry_after(OSError())
    (7.0, None)
    """
    try:
        given = getattr(exc, "retry_after", None)
        if isinstance(given, dt.timedelta):
            given = given.total_seconds()
        if given is not None and not isinstance(given, bool):
            return _seconds(given)
        return _by_headers(getattr(getattr(exc, "response", None), "headers", None))
    except Exception:
        return None  # somebody else's error or answer is broken; that must not hide the error itself


def _by_headers(headers: Any) -> float | None:
    millis = _seconds(_header(headers, "retry-after-ms"))
    if millis is not None:
        return millis / 1000
    text = _header(headers, "retry-after")
    seconds = _seconds(text)
    return _until(text) if seconds is None and text else seconds


def _header(headers: Any, name: str) -> str | None:
    if not isinstance(headers, Mapping) and not hasattr(headers, "items"):
        return None
    for pair in headers.items():  # a plain dict knows one spelling only
        key, value = (each.decode("latin-1") if isinstance(each, bytes) else each for each in pair)
        if isinstance(key, str) and isinstance(value, str | int | float) and key.lower() == name:
            return str(value)
    return None


def _seconds(value: Any) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _until(text: str) -> float | None:
    """Seconds until an HTTP date; 0 if it has passed."""
    from email.utils import parsedate_to_datetime  # brings the whole email package along

    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:  # "-0000", and HTTP dates are always UTC
        moment = moment.replace(tzinfo=dt.UTC)
    return max(0.0, moment.timestamp() - clock.now())


def _is_ours(exc: Exception) -> bool:
    if isinstance(exc, ExceptionGroup):
        return any(_is_ours(each) for each in exc.exceptions)
    return isinstance(exc, DurableError) and not isinstance(exc, StepTimeout | WorkerFailed)


def _backoff(value: Any) -> tuple[float, float, float] | Callable[[int], Any]:
    if callable(value):
        made: Callable[[int], Any] = value
        return made
    if not isinstance(value, tuple | list):
        first = parse_duration(value, "backoff")
        return first, _FACTOR, max(first, _CAP)
    if len(value) != 3:
        raise UsageError("`backoff` as a tuple has three parts: first delay, factor, longest delay.")
    first, cap = parse_duration(value[0], "backoff (first delay)"), parse_duration(value[2], "backoff (longest delay)")
    factor = value[1]
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor < math.inf:
        raise UsageError("The factor of `backoff` is a number, 1 or more: each delay is the one before times this.")
    if cap < first:
        raise UsageError("The longest delay of `backoff` is shorter than its first delay.")
    return first, float(factor), cap


def _retry_on(value: Any) -> tuple[type[BaseException], ...] | Callable[[Exception], object]:
    types = value if isinstance(value, tuple | list) else (value,)
    if all(isinstance(each, type) and issubclass(each, BaseException) for each in types):
        if not all(issubclass(each, Exception) for each in types):
            raise UsageError("`retry_on` takes subclasses of Exception; an interrupt or a cancellation is no failure.")
        return tuple(types)
    if callable(value) and not isinstance(value, type):
        made: Callable[[Exception], object] = value
        return made
    raise UsageError("`retry_on` is an exception type, a tuple of them, or a function that takes the exception.")


def _timeout(value: Any) -> float:
    seconds = parse_duration(value, "timeout")
    if seconds == 0:
        raise UsageError("`timeout` must be longer than 0; leave it out to wait without end.")
    return seconds
