"""Code that an interrupt must not cut: between a result, or an intent, and its record."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

CRITICAL: set[CodeType] = set()
"""While one of these is running, the stop button waits for the next safe point."""


def critical(fn: F) -> F:
    """Mark a function of ours that writes something down and calls no code of the user's."""
    CRITICAL.add(fn.__code__)
    return fn
