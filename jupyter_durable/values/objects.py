"""What an object keeps, and whether all of it can be seen: the questions about classes that codec and digest share."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import weakref
from collections.abc import Callable
from typing import Any

from jupyter_durable.values.shapes import slot_names

HEAP_TYPE = 1 << 9
"""Flag of a class that was made while Python runs; classes compiled into C mostly lack it."""

BASES: tuple[type[Any], ...] = (dict, list, tuple, set, frozenset, str, int, float, bytes, bytearray)
"""Builtin classes whose subclasses are stored as content and attributes."""

_HOOKS = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
# Frozen dataclasses with slots get these from the standard library; they say nothing that we do not know.
_GENERATED = {getattr(dataclasses, name, None) for name in ("_dataclass_getstate", "_dataclass_setstate")}
# All named tuples share the code of this method, which is no hook of the user's.
_NAMED_TUPLE_ARGS = vars(inspect.ArgInfo)["__getnewargs__"].__code__


def _once_per_class(question: Callable[[type[Any]], bool]) -> Callable[[type[Any]], bool]:
    """Remember the answers, without keeping classes of cells that were run again alive."""
    known: weakref.WeakKeyDictionary[type[Any], bool] = weakref.WeakKeyDictionary()

    @functools.wraps(question)
    def ask(cls: type[Any]) -> bool:
        found = known.get(cls)
        if found is None:
            found = known[cls] = question(cls)
        return found

    return ask


def state(value: Any, cls: type[Any]) -> dict[str, Any]:
    """What an object keeps in ``__dict__`` and in the slots of all its bases; what is not set is left out."""
    own = getattr(value, "__dict__", None)
    found = dict(own) if isinstance(own, dict) else {}
    for base in cls.__mro__:
        if base.__module__ == "builtins":
            continue
        for name in slot_names(base):
            if name not in found:
                try:
                    found[name] = object.__getattribute__(value, name)
                except AttributeError:
                    continue
    return found


def state_without_caches(value: Any, cls: type[Any]) -> dict[str, Any]:
    """The state without cached properties: they fill when they are read, and reading is no change."""
    return {name: one for name, one in state(value, cls).items() if not is_cache(cls, name)}


def is_cache(cls: type[Any], name: str) -> bool:
    """Whether the attribute is the stored result of a ``cached_property``."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return isinstance(base.__dict__[name], functools.cached_property)
    return False


@_once_per_class
def has_hooks(cls: type[Any]) -> bool:
    """Whether the class says itself how it is pickled; then it is not taken apart."""
    for base in cls.__mro__:
        if base is object or base in BASES or base.__module__ == "typing":
            continue
        for name in _HOOKS:
            hook = base.__dict__.get(name)
            if hook is None or hook in _GENERATED or getattr(hook, "__code__", None) is _NAMED_TUPLE_ARGS:
                continue
            return True
    return False


@_once_per_class
def sets_own_state(cls: type[Any]) -> bool:
    """Whether the class says itself how an instance gets its state back; what attrs and pydantic generate is known."""
    for base in cls.__mro__:
        hook = base.__dict__.get("__setstate__")
        if hook is not None:
            known = hook in _GENERATED or "__attrs_attrs__" in base.__dict__
            return not (known or base.__module__.partition(".")[0] == "pydantic")
    return False


@_once_per_class
def is_plain_pydantic(cls: type[Any]) -> bool:
    """Whether the class is a pydantic model that is pickled as pydantic does it."""
    pydantic: Any = sys.modules.get("pydantic.main")
    if pydantic is None or not issubclass(cls, pydantic.BaseModel):
        return False
    own = cls.__mro__[: cls.__mro__.index(pydantic.BaseModel)]
    return not any(name in base.__dict__ for base in own for name in _HOOKS)


@_once_per_class
def has_hidden_state(cls: type[Any]) -> bool:
    """Whether C code keeps something in the instances: they are bigger than dict and slots explain.

    >>> class Point:
    ...     __slots__ = ("x", "y")
    >>> has_hidden_state(Point), has_hidden_state(BaseException)
    (False, True)
    """
    if any(not base.__flags__ & HEAP_TYPE and base is not object for base in cls.__mro__):
        return True
    if cls.__itemsize__:
        return True
    slots = sum(len(slot_names(base)) for base in cls.__mro__)
    pointers = (cls.__dictoffset__ != 0) + (cls.__weakrefoffset__ != 0)
    return bool(cls.__basicsize__ > object.__basicsize__ + 8 * (slots + pointers))
