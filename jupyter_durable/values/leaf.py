"""Pickles what has no structural form, in a way that never makes a twin and never takes a notebook global along.

Plain cloudpickle stores a class or function of the notebook by value, together with the globals that its code uses:
the API key of the first cell ends up in the log, and the class comes back as another class.
"""

from __future__ import annotations

import dis
import enum
import functools
import io
import logging
import operator
import pickle
import sys
import types
from collections.abc import Iterator
from typing import Any

from jupyter_durable.errors import UnloadableValue, UnstorableValue
from jupyter_durable.values import classes, http, raised, unpickling
from jupyter_durable.values.classes import Table
from jupyter_durable.values.refused import refusal, type_name, unstorable
from jupyter_durable.values.secrets import REDACTED, has_secret

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
"""Minor version, which by-value code is bound to."""

_HEADER_TYPES = frozenset(
    ("requests.structures.CaseInsensitiveDict", "httpx.Headers", "httpx2.Headers", "httpx._models.Headers")
)


def dump(value: object, table: Table) -> tuple[bytes, bool, list[Any]]:
    """Pickle a value.

    Args:
        value: anything.
        table: receives the classes and functions that the pickle refers to.

    Returns:
        The pickle; whether code is in it, which only this Python version can read; the objects inside the value.

    Raises:
        UnstorableValue: with the type and the way out; the path is the caller's to know.
    """
    buffer = io.BytesIO()
    pickler = _pickler_class()(buffer, table)
    try:
        pickler.dump(value)
    except UnstorableValue:
        raise
    except RecursionError as error:
        raise unstorable("", type(value), "it is nested too deep", "return a flatter value") from error
    except Exception as error:
        # The text of the error may quote the value; its class does not.
        reason = f"it cannot be pickled ({type(error).__name__})"
        raise unstorable("", type(value), reason, "return plain data instead") from error
    inside = [one for _, one in pickler.memo.copy().values()]
    return buffer.getvalue(), pickler.has_code, inside


def load(data: bytes, python: str | None, found: classes.Found | None = None) -> Any:
    """Bring a pickle back. Its classes were compared before (see `classes.find_all`).

    Args:
        data: a pickle made by `dump` and confirmed by the log's signature.
        python: the Python version whose code is in it, if any.
        found: the payload's classes, some of which may have another version now.

    Raises:
        UnloadableValue: it does not load here.
    """
    if python is not None and python != PYTHON:
        raise UnloadableValue(
            f"The stored value carries code of Python {python}, and this is Python {PYTHON}: loading it could kill the "
            f"kernel. Use Python {python}, or {classes.WAYS_OUT}.",
            missing=f"Python {python}",
            reason="other Python version",
        )
    try:
        if found is None or not found.plans:
            return pickle.loads(data)
        plans = [(found.things[place], plan) for place, plan in found.plans.items()]
        return unpickling.loads(data, found.names, plans, classes.by_ref)
    except UnloadableValue:
        raise
    except Exception as error:
        raise UnloadableValue(
            f"The stored value cannot be loaded ({type(error).__name__}): a class or package that it needs is missing "
            f"or has changed. Put it back as it was, or {classes.WAYS_OUT}.",
            missing="",
            reason=type(error).__name__,
        ) from error


def enum_member(cls: type[enum.Enum], name: str) -> enum.Enum:
    """The member of that name (a pickle calls this by name; by value it would break when values change)."""
    return cls.__members__[name]


@functools.cache
def _pickler_class() -> Any:
    # Made on first use: most values never need cloudpickle, and importing it costs milliseconds.
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def __init__(self, file: io.BytesIO, table: Table) -> None:
            super().__init__(file, protocol=5)
            self.table = table
            self.has_code = False
            self.kept: list[Any] = []

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, type):
                return self._class(obj)
            if isinstance(obj, types.FunctionType):
                return self._function(obj)
            refused = refusal(obj)
            if refused is not None:
                raise unstorable("", type(obj), refused.reason, refused.advice)
            if isinstance(obj, types.ModuleType) and sys.modules.get(obj.__name__) is not obj:
                raise unstorable("", type(obj), "the module cannot be imported by its name", "return its name")
            if isinstance(obj, enum.Enum):
                name = getattr(obj, "_name_", None)
                if isinstance(name, str) and type(obj).__members__.get(name) is obj:
                    return enum_member, (type(obj), name)
            if isinstance(obj, BaseException) and _has_builtin_reduce(type(obj)):
                made_with = raised.builtin_args(obj)
                return raised.rebuild, (type(obj), made_with, obj.args), raised.attributes(obj) or None
            if type_name(type(obj)) in _HEADER_TYPES:
                return self._headers(obj)
            if isinstance(obj, types.CodeType):
                self.has_code = True
            return super().reducer_override(obj)

        def _class(self, cls: type[Any]) -> Any:
            if cls in classes.HIDDEN:
                return super().reducer_override(cls)
            origin, args = classes.generic_parts(cls)
            if origin is not None and not classes.resolves(cls):
                self.table.add(cls)
                return operator.getitem, (origin, args if len(args) != 1 else args[0])
            classes.check_resolves(cls)
            module = str(cls.__module__)
            if module.partition(".")[0] not in sys.stdlib_module_names or module == "__main__":
                self.table.add(cls)
            if module == "__main__":
                return classes.by_ref, (module, cls.__qualname__)
            return super().reducer_override(cls)

        def _function(self, function: types.FunctionType) -> Any:
            if classes.resolves(function):
                if function.__module__ == "__main__":
                    self.table.add_function(function)
                    return classes.by_ref, ("__main__", function.__qualname__)
                return super().reducer_override(function)
            check_captures(function)
            self.has_code = True
            return super().reducer_override(function)

        def _headers(self, headers: Any) -> Any:
            copy = headers.copy()
            for name in list(copy):
                if str(name).lower() in http.SECRET_HEADERS:
                    copy[name] = REDACTED
            # The pickler remembers objects by address, so the copy must not be freed before the dump ends.
            self.kept.append(copy)
            return copy.__reduce_ex__(4)

    return Pickler


def check_captures(function: types.FunctionType) -> None:
    """Refuse a function that would have to be stored by value and takes something along that it should not.

    Raises:
        UnstorableValue: it uses a global that is data, or a key-like text in its code, defaults or closure.
    """
    scope = function.__globals__
    used = [name for name in _global_names(function.__code__) if name in scope]
    data = [name for name in used if not _goes_by_reference(scope[name])]
    if data:
        names = ", ".join(f"`{name}`" for name in data)
        where = "notebook function" if function.__module__ == "__main__" else f"function of {function.__module__}"
        raise unstorable(
            "",
            type(function),
            f"the value carries {where} `{function.__qualname__}`, which captures global {names}",
            "define the function by `def` at the top level of a cell: it is then stored by its name alone",
        )
    if any(has_secret(text) for text in _texts(function)):
        raise unstorable(
            "",
            type(function),
            f"the value carries function `{function.__qualname__}`, which has a key or password in its code or closure",
            "read the key inside the function, when it is called",
        )


def _goes_by_reference(value: object) -> bool:
    if isinstance(value, types.ModuleType):
        return sys.modules.get(value.__name__) is value
    if isinstance(value, type | types.FunctionType):
        return classes.resolves(value)
    return isinstance(value, types.BuiltinFunctionType | logging.Logger)


def _global_names(code: types.CodeType) -> list[str]:
    names: dict[str, None] = {}
    for one in _codes(code):
        for instruction in dis.get_instructions(one):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"):
                names[str(instruction.argval)] = None
    return list(names)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _texts(function: types.FunctionType) -> Iterator[str]:
    for code in _codes(function.__code__):
        yield from (const for const in code.co_consts if isinstance(const, str))
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        if isinstance(content, str):
            yield content
    yield from (one for one in function.__defaults__ or () if isinstance(one, str))
    yield from (one for one in (function.__kwdefaults__ or {}).values() if isinstance(one, str))


def _has_builtin_reduce(cls: type[BaseException]) -> bool:
    if cls.__reduce_ex__ is not object.__reduce_ex__:
        return False
    for base in cls.__mro__:
        if "__reduce__" in base.__dict__:
            return base.__module__ == "builtins"
    return True
