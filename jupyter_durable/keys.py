"""What names a step: the parts of its key, and the scopes that steps, tasks and threads open. Pure.

A scope is a path such as ``fetch:a1b2.0/parse:9f00.1``: each element names a task, thread or step by what it is of and
its number among equals.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple


class Key(NamedTuple):
    """What makes a call the same call on replay."""

    scope: str
    name: str
    digest: str
    n: int


make_key: Callable[[tuple[str, str, str, int]], Key] = partial(tuple.__new__, Key)
"""A key from its four parts, at half the price of ``Key(...)``: one is made for every call and every intent."""


class TimerKey(NamedTuple):
    """A sleep of glue code: the n-th that was begun in a scope."""

    scope: str
    n: int


def parent_scope(scope: str) -> str:
    """The scope around a scope.

    >>> parent_scope("fetch:a1b2.0/parse:9f00.1"), parent_scope("fetch:a1b2.0")
    ('fetch:a1b2.0', '')
    """
    return scope.rpartition("/")[0]


def stem(scope: str) -> str:
    """A scope without the number among equals of its last element.

    >>> stem("fetch:a1b2.0/parse:9f00.1")
    'fetch:a1b2.0/parse:9f00'
    """
    return scope.rpartition(".")[0]


def inner_scope(key: Key) -> str:
    """The scope that a step opens for what its body does.

    >>> inner_scope(Key("", "review", "kP3xQw9aB1cD2eF3gH4iJ5", 1))
    'review:kP3xQw.1'
    """
    own = f"{key.name}:{key.digest[:6]}.{key.n}"
    return f"{key.scope}/{own}" if key.scope else own


def inside(scope: str, done: set[str]) -> bool:
    """Whether a scope is one of those, or lies in one.

    >>> inside("a:1.0/b:2.0", {"a:1.0"}), inside("a:1.0", {"b:2.0"})
    (True, False)
    """
    while scope:
        if scope in done:
            return True
        scope = parent_scope(scope)
    return False


def map_element(name: str) -> str:
    """The element of a scope for what a ``durable.map`` does with a step of this name.

    >>> map_element("price")
    'map[price]'
    """
    return f"map[{name}]"


def is_of_map(scope: str) -> bool:
    """Whether a scope is that of the items of a ``durable.map``.

    >>> is_of_map("map[price].0"), is_of_map("map[price].0/price:kP3xQw.0"), is_of_map("")
    (True, False, False)
    """
    return stem(scope).rpartition("/")[2].startswith("map[")
