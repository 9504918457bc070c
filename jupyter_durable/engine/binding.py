"""From the arguments of a call to the list of values that identify it: by parameter, defaults filled in."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

Binder = Callable[[tuple[Any, ...], dict[str, Any]], tuple[list[str], list[Any]]]


def binder(fn: Callable[..., Any]) -> Binder:
    """Make the function that brings calls of ``fn`` into one form.

    ``search("x")`` and ``search(query="x")`` are the same call, and so is one that spells out a default.

    >>> def search(query, limit=10): ...
    >>> binder(search)(("x",), {})
    (['query', 'limit'], ['x', 10])
    >>> binder(search)((), {"limit": 10, "query": "x"})
    (['query', 'limit'], ['x', 10])
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # a builtin without a signature
        return lambda args, kwargs: ([], [list(args), dict(kwargs)] if kwargs else list(args))
    simple = _simple_binder(signature)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[str], list[Any]]:
        bound = simple(args, kwargs) if simple is not None else None
        return bound if bound is not None else _bind(signature, args, kwargs)

    return bind


def _simple_binder(signature: inspect.Signature) -> Callable[..., tuple[list[str], list[Any]] | None] | None:
    """The fast way for functions of ordinary parameters; ``Signature.bind`` costs more than all the rest of a call."""
    parameters = list(signature.parameters.values())
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        return None
    names = [p.name for p in parameters]
    known = frozenset(names)
    defaults = [p.default for p in parameters]
    count = len(names)
    empty = inspect.Parameter.empty

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[str], list[Any]] | None:
        given = len(args)
        if not kwargs and given == count:
            return names, list(args)
        if given > count or not kwargs.keys() <= known:
            return None
        values = list(args)
        for index in range(given, count):
            value = kwargs.get(names[index], defaults[index])
            if value is empty:
                return None
            values.append(value)
        return (names, values) if not any(name in kwargs for name in names[:given]) else None

    return bind


def _bind(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[str], list[Any]]:
    bound = signature.bind(*args, **kwargs)  # raises the TypeError of a wrong call, before anything is written
    bound.apply_defaults()
    return list(bound.arguments), list(bound.arguments.values())
