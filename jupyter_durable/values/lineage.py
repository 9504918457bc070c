"""Remembers of values that came out of a migration how they were digested when they were recorded.

A step that took the value last month is known by the digest of what it took. Today's value has other fields, so it
would be another argument, and every finished step that takes it would be asked for anew. As long as nobody changes it,
it stands for what was recorded; a changed one, and a copy, is known by its own content.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, NamedTuple

MOST = 10_000
"""Values without weak references (classes with slots, named tuples) that are kept alive for it; the oldest go first."""


class _Known(NamedTuple):
    value: Any
    """A weak reference, or the value itself."""
    recorded: bytes
    now: bytes


_weak: dict[int, _Known] = {}
_kept: dict[int, _Known] = {}
_lock = threading.Lock()


def remember(value: Any, recorded: bytes, now: bytes) -> None:
    """Let a value stand for what was recorded.

    Args:
        value: it came out of a migration.
        recorded: the canonical bytes of what was recorded.
        now: those of the value itself; while it has these, nobody has changed it.
    """
    place = id(value)

    def forget(_: object) -> None:
        _weak.pop(place, None)

    try:
        _weak[place] = _Known(weakref.ref(value, forget), recorded, now)
    except TypeError:
        with _lock:
            while len(_kept) >= MOST:
                del _kept[next(iter(_kept))]
            _kept[place] = _Known(value, recorded, now)


def recorded_form(value: Any, now: bytes) -> bytes:
    """The canonical bytes by which a value is known: those of its recorded form, or ``now``, its own."""
    known = _weak.get(id(value))
    if known is not None:
        return known.recorded if known.value() is value and known.now == now else now
    known = _kept.get(id(value))
    return known.recorded if known is not None and known.value is value and known.now == now else now


def is_empty() -> bool:
    """Whether no value came out of a migration."""
    return not _weak and not _kept
