"""Finds what inside a value keeps it from being stored, and says where it is.

Pickle's own message ("cannot pickle '_thread.RLock' object") names neither the key nor the attribute. The walk asks of
each child whether it can be stored alone and goes down into those that cannot. It runs only after a failure.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jupyter_durable import clock
from jupyter_durable.errors import UnstorableValue
from jupyter_durable.values.classes import Table
from jupyter_durable.values.leaf import dump
from jupyter_durable.values.refused import refusal, type_name, unstorable_annotation
from jupyter_durable.values.shapes import slot_names

__all__ = ["Offender", "children", "find_offenders", "unstorable_annotation"]

_DEPTH = 40
_CHILDREN = 2000


class Offender(NamedTuple):
    """One part of a value that cannot be stored."""

    path: str
    """Where it is, such as ``result['client']``."""
    type: str
    reason: str
    advice: str


def find_offenders(value: object, limit: int = 3, seconds: float = 1.0, root: str = "result") -> list[Offender]:
    """The deepest parts of a value that cannot be stored.

    Args:
        value: what could not be stored.
        limit: stop after so many findings.
        seconds: stop after this time; what was found by then is returned.
        root: how the value itself is called in paths.

    Returns:
        Offenders, in the order of the value; empty if everything can be stored.

    >>> import threading
    >>> [(one.path, one.type) for one in find_offenders({"n": 1, "deep": [threading.Lock()]})]
    [("result['deep'][0]", '_thread.lock')]
    """
    search = _Search(limit, clock.monotonic() + seconds)
    search.look(value, root, 0)
    return search.found


class _Search:
    def __init__(self, limit: int, deadline: float) -> None:
        self.limit = limit
        self.deadline = deadline
        self.found: list[Offender] = []
        self.seen: set[int] = set()
        # Some children are made by looking at them (items of a view); their addresses must stay taken.
        self.kept: list[object] = []

    def look(self, value: object, path: str, depth: int) -> bool:
        """Whether the value, or something in it, was found to be unstorable."""
        if len(self.found) >= self.limit or id(value) in self.seen:
            return False
        error = _failure(value)
        if error is None:
            return False
        self.seen.add(id(value))
        self.kept.append(value)
        deeper = False
        # A refused thing is named itself: that its lock cannot be stored either helps nobody.
        if depth < _DEPTH and refusal(value) is None and not isinstance(value, type | types.ModuleType):
            for count, (step, child) in enumerate(children(value)):
                if count >= _CHILDREN or len(self.found) >= self.limit or clock.monotonic() > self.deadline:
                    break
                deeper = self.look(child, path + step, depth + 1) or deeper
        if not deeper and len(self.found) < self.limit:
            facts = error.facts
            self.found.append(Offender(path, type_name(type(value)), facts.get("reason", ""), facts.get("advice", "")))
        return True


def children(value: Any) -> Iterator[tuple[str, object]]:
    """The parts of a value with their place: ``['key']``, ``[0]``, ``.attribute``, `` (captured x)``."""
    if isinstance(value, Mapping):
        for key, item in list(value.items()):
            yield f"[{_key(key)}]", item
            if not isinstance(key, str | int):
                yield f" (key {type_name(type(key))})", key
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif isinstance(value, set | frozenset):
        for item in value:
            yield " (element)", item
    if isinstance(value, types.FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
            try:
                yield f" (captured {name})", cell.cell_contents
            except ValueError:
                continue
        yield from ((f" (default {place})", item) for place, item in enumerate(value.__defaults__ or ()))
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    elif type(value).__name__ == "partial" and type(value).__module__ == "functools":
        yield ".func", value.func
        yield from ((f".args[{place}]", item) for place, item in enumerate(value.args))
        yield from ((f".keywords[{name!r}]", item) for name, item in value.keywords.items())
    yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, type):
        return
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict):
        yield from ((f".{name}", item) for name, item in list(own.items()))
    for cls in type(value).__mro__:
        for name in slot_names(cls):
            with contextlib.suppress(Exception):
                yield f".{name}", getattr(value, name)
    for name in ("__pydantic_extra__", "__pydantic_private__"):
        if name in getattr(type(value), "__slots__", ()) or hasattr(type(value), "__pydantic_fields__"):
            more = getattr(value, name, None)
            if isinstance(more, dict):
                yield from ((f".{key}", item) for key, item in more.items())


def _failure(value: object) -> UnstorableValue | None:
    try:
        dump(value, Table())
    except UnstorableValue as error:
        return error
    return None


def _key(key: object) -> str:
    if isinstance(key, str):
        return repr(key if len(key) <= 40 else key[:37] + "...")
    return repr(key) if isinstance(key, int) else type_name(type(key))
