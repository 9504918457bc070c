"""Which code is local, and which functions lie inside a wrapper.

Local code is the notebook (``__main__``) and modules whose file lies under the working directory. All other code
counts by name: versions of packages are recorded elsewhere, and are no reason to pay twice.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

_BUILT_IN = ("builtins", "functools", "types")
"""Where the types of C functions, methods and their wrappers come from."""

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_STANDARD = Path(os.__file__).resolve().parent
_OURS = __name__.partition(".")[0]


class Place:
    """Tells local code from other code.

    Args:
        root: the folder whose modules are local; by default the working directory.
    """

    def __init__(self, root: str | None = None) -> None:
        self._root = Path(root or ".").resolve()
        self._known: dict[str, bool] = {}

    def has_module(self, name: str | None) -> bool:
        """Whether the module of this name is local. Without a name, or without a module, code came from ``exec``."""
        if name is None or name == "__main__":
            return True
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._look(name)
        return known

    def _look(self, name: str) -> bool:
        if name.partition(".")[0] == _OURS or name in sys.builtin_module_names:
            return False
        module = sys.modules.get(name)
        if module is None:
            return True
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            return False
        path = Path(file).resolve()
        if _INSTALLED.intersection(path.parts) or path.is_relative_to(_STANDARD):
            return False
        return path.is_relative_to(self._root)

    def holds(self, value: Any) -> bool:
        """Whether a function or class is local."""
        if isinstance(value, FunctionType):
            return self.has_module(module_of(value))
        return isinstance(value, type) and self.has_module(value.__module__)


def module_of(function: FunctionType) -> str | None:
    """The module whose globals a function uses; ``__module__`` of a wrapper is that of what it wraps."""
    name = function.__globals__.get("__name__")
    return name if isinstance(name, str) else None


def is_ours(value: Any) -> bool:
    """Whether something is part of jupyter_durable, whose insides are no business of a user's history."""
    module = getattr(value, "__module__", None) or getattr(type(value), "__module__", "")
    return isinstance(module, str) and module.partition(".")[0] == _OURS


def name_of(value: Any) -> str:
    """The name by which foreign code counts: package and qualified name, as modules inside packages move.

    >>> import json
    >>> name_of(json.dumps), name_of(len)
    ('json:dumps', 'builtins:len')
    """
    module = getattr(value, "__module__", None)
    if not isinstance(module, str):
        module = type(getattr(value, "__self__", value)).__module__
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(name, str):
        name = type(value).__qualname__
    return f"{module.partition('.')[0]}:{name}"


def step_function(value: Any) -> Any:
    """The function that a step wrapper wraps; ``None`` if the value is no step wrapper."""
    # Not plain getattr: clients and mocks answer to every name.
    if hasattr(type(value), "__durable_step__") or "__durable_step__" in (getattr(value, "__dict__", None) or ()):
        return getattr(value, "__durable_step__", None)
    return None


def is_code(value: Any) -> bool:
    """Whether a value is a function, method, class or wrapper of one, and not data that happens to be callable."""
    return (
        isinstance(value, FunctionType | MethodType | functools.partial | type)
        or (type(value).__module__ in _BUILT_IN and callable(value))
        or step_function(value) is not None
        or (_wrapped(value) is not None and callable(value))
    )


def layers(value: Any) -> list[Any]:
    """Functions and classes inside a callable, from the outermost wrapper to the innermost function.

    Partials, bound methods and step wrappers are seen through; an instance with ``__call__`` stands for its class.
    """
    found: list[Any] = []
    for _ in range(64):  # more would be a cycle
        inner = step_function(value)
        if inner is not None:
            value = inner
        elif isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, MethodType):
            value = value.__func__
        else:
            wrapped = _wrapped(value)
            code = isinstance(value, FunctionType | type) or type(value).__module__ in _BUILT_IN
            found.append(value if code else type(value))
            if wrapped is None:
                break
            value = wrapped
    return found


def _wrapped(value: Any) -> Any:
    return None if isinstance(value, type) else (getattr(value, "__dict__", None) or {}).get("__wrapped__")
