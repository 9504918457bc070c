"""Versions of classes, and the functions that lead from one version to the next.

The registry is of this process and keyed by names, so that running the cell of a class again changes nothing: the
function then leads to the class that has the name now.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from jupyter_durable.errors import UnloadableValue, UsageError
from jupyter_durable.values.refused import type_name

Fields = dict[str, Any]
"""The fields of one value, by name."""

ATTRIBUTE = "__durable_version__"
"""Where a class says its version: a whole number from 1; 1 where it says nothing."""


class Migration(NamedTuple):
    """One way from a version to the next."""

    module: str
    """Module of the class that it leads to."""
    qualname: str
    function: Callable[[Fields], Fields]


_registered: dict[tuple[str, int], Migration] = {}


def version_of(cls: type[Any]) -> int | None:
    """Version of a class, inherited like any attribute; ``None`` if what stands there is no version.

    >>> class Report:
    ...     __durable_version__ = 2
    >>> version_of(Report), version_of(int)
    (2, 1)
    """
    for base in cls.__mro__:
        if ATTRIBUTE in base.__dict__:
            told = base.__dict__[ATTRIBUTE]
            return told if type(told) is int and told >= 1 else None
    return 1


def full_name(module: str, qualname: str) -> str:
    """A class as people write it, and as messages name it: without the module if it is of the notebook."""
    return qualname if module == "__main__" else f"{module}.{qualname}"


def public_name(thing: Any) -> str:
    """The name of a class or function in digests."""
    module = str(thing.__module__)
    top = module.partition(".")[0]
    # Inner modules of the standard library move from version to version (`pathlib._local`).
    return f"{top if top in sys.stdlib_module_names else module}:{thing.__qualname__}"


def name_at(name: str, version: int | None) -> str:
    """The name of a class at a version: a value of another version means something else, whatever its fields.

    >>> name_at("__main__:Report", 1), name_at("__main__:Report", 2)
    ('__main__:Report', '__main__:Report@2')
    """
    return name if version in (None, 1) else f"{name}@{version}"


def register(cls: type[Any], from_version: int, from_name: str, function: Callable[[Fields], Fields]) -> None:
    """Remember a function that leads from a version of a class to the next one.

    Args:
        cls: today's class.
        from_version: the version whose fields the function takes.
        from_name: the name of the class then, if it was another one.
        function: fields -> fields.

    Raises:
        UsageError: another function does this already. One of the same name is replaced: its cell was run again.
    """
    module, qualname = str(cls.__module__), cls.__qualname__
    name = from_name.removeprefix("__main__.") or full_name(module, qualname)
    known = _registered.get((name, from_version))
    if known is not None and _name(known.function) != _name(function):
        raise UsageError(
            f"Two functions lead on from version {from_version} of {name}: `{_name(known.function)}` and "
            f"`{_name(function)}`. Keep one; an edited function replaces only the one of its own name."
        )
    _registered[name, from_version] = Migration(module, qualname, function)


def registered(name: str, version: int) -> Migration | None:
    """The function that leads on from a version of the class that had this name."""
    return _registered.get((name, version))


class Plan(NamedTuple):
    """How the values of one recorded class become values of today's."""

    name: str
    """The class as it was recorded, as messages name it."""
    canonical: str
    """The same as digests name it: ``module:qualname``."""
    version: int
    fields: tuple[str, ...]
    """Names of the recorded fields, as far as the recorded shape tells them."""
    today: str
    chain: tuple[Migration, ...]

    def apply(self, fields: Fields) -> Fields:
        """Today's fields. The functions get a dict of their own.

        Raises:
            UnloadableValue: a function raised, or returned something else than fields.
        """
        for place, step in enumerate(self.chain):
            version = self.version + place
            try:
                fields = step.function(dict(fields))
            except Exception as error:
                # The text of the error may quote the value; its class does not.
                raise self.failed(
                    f"`{_name(step.function)}` raised {type(error).__name__}{_line(error, step.function)}", version
                ) from error
            if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
                raise self.failed(
                    f"`{_name(step.function)}` returned {type_name(type(fields))} and not a dict of fields", version
                )
        return fields

    def failed(self, reason: str, version: int | None = None) -> UnloadableValue:
        """The error that says why a value of this plan did not become one of today's class."""
        last = self.version + len(self.chain) - 1
        version = last if version is None else version
        return UnloadableValue(
            f"The stored value is of {self.name}, version {self.version}, and its migration from version {version} "
            f"failed: {reason}. Nothing was changed. Correct the migration and run its cell, then this one again.",
            missing=self.name,
            reason=reason,
            from_version=version,
        )


def newer(name: str, version: int, today: int) -> UnloadableValue:
    """The error for a value of a version that today's class has not reached."""
    return UnloadableValue(
        f"The stored value is of {name}, version {version}, and was written by newer code: the class is at version "
        f"{today} here. Run the cell, or install the module, that has the newer class.",
        missing=name,
        reason="written by newer code",
        version=version,
    )


def not_there(name: str, today_name: str, version: int, today: int, at: int) -> UnloadableValue:
    """The error for a version from which nothing leads on."""
    return UnloadableValue(
        f"The stored value is of {name}, version {version}, and {today_name} is at version {today} now; no migration "
        f"leads on from version {at}. {how_to_write(today_name, at)}",
        missing=name,
        reason=f"no migration from version {at}",
        from_version=at,
    )


def how_to_write(name: str, version: int, from_name: str = "") -> str:
    """What to write, as a sentence."""
    short = name.rpartition(".")[2]
    more = f', from_name="{from_name}"' if from_name else ""
    return (
        f"Write one: `@durable.migrate({short}, from_version={version}{more})` above a function that takes the "
        f"recorded fields as a dict and returns those of version {version + 1}."
    )


def _name(function: Callable[..., Any]) -> str:
    module, qualname = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return full_name(str(module), str(qualname or type(function).__qualname__))


def _line(error: BaseException, function: Callable[..., Any]) -> str:
    """Where in the function it was raised; the traceback itself does not reach the reader."""
    code = getattr(function, "__code__", None)
    trace = error.__traceback__
    while trace is not None:
        if code is not None and trace.tb_frame.f_code is code:
            return f" in its line {trace.tb_lineno - code.co_firstlineno + 1}"
        trace = trace.tb_next
    return ""
