"""The words for code that changes while its histories stay: ``durable.migrate``."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from jupyter_durable.errors import UsageError
from jupyter_durable.values import migrations

Function = TypeVar("Function", bound=Callable[[dict[str, Any]], dict[str, Any]])


class VersioningWords:
    """A part of the namespace ``durable``."""

    def migrate(self, cls: type[Any], *, from_version: int, from_name: str = "") -> Callable[[Function], Function]:
        """Say how recorded values of an older version of a class become values of the next one.

        The class says its version by ``__durable_version__``, a whole number; 1 where it says nothing. A value that
        was recorded at an older version goes through one function for each version between, whenever it is replayed.
        The log stays as it is.

        Args:
            cls: today's class: a dataclass, a pydantic model, a named tuple, any class of the notebook or a module.
            from_version: the version that the function takes; it returns the fields of the version after it.
            from_name: the name of the class then, if it was another one: ``OldReport`` of the notebook,
                ``old_module.OldReport`` of a module.

        Returns:
            A decorator. The function takes the recorded fields as a dict, with values inside that are migrated
            already, and returns the fields as a dict. It is called on each replay: let it do nothing else.

        Raises:
            UsageError: an argument that cannot be meant, or another function leads on from this version already.

        >>> from dataclasses import dataclass
        >>> from jupyter_durable import durable
        >>> @dataclass
        ... class Report:
        ...     __durable_version__ = 2
        ...     title: str
        ...     sections: list[str]
        >>> @durable.migrate(Report, from_version=1)
        ... def with_sections(fields):
        ...     return {"title": fields["title"], "sections": [fields["body"]]}
        """
        _check(cls, from_version, from_name)

        def decorate(function: Function) -> Function:
            if not callable(function) or inspect.iscoroutinefunction(function):
                raise UsageError(
                    f"`@durable.migrate({cls.__qualname__}, ...)` stands above a plain function of the recorded fields."
                )
            migrations.register(cls, from_version, from_name, function)
            return function

        return decorate


def _check(cls: Any, from_version: Any, from_name: Any) -> None:
    if not isinstance(cls, type):
        raise UsageError(
            f"`@durable.migrate(cls, from_version=1)` takes today's class first; this is a `{type(cls).__qualname__}`."
        )
    name = cls.__qualname__
    if issubclass(cls, enum.Enum):
        raise UsageError(
            f"`{name}` is an enum, which has no fields. Keep the old name of a member as another name of the new one: "
            "`OLD = NEW`."
        )
    if isinstance(from_version, bool) or not isinstance(from_version, int) or from_version < 1:
        raise UsageError(
            f"`from_version` is the version that was recorded, a whole number from 1; not {from_version!r}."
        )
    if not isinstance(from_name, str):
        raise UsageError(f'`from_name` is the name that the class had, such as "old_module.{name}".')
    if "<locals>" in name:
        raise UsageError(
            f"`{name}` is defined inside a function, so no value of it is ever stored. Define it at the top level of a "
            "cell or module."
        )
    today = migrations.version_of(cls)
    if today is None:
        raise UsageError(f"`{name}.{migrations.ATTRIBUTE}` is a whole number from 1, and nothing else.")
    if today <= from_version:
        raise UsageError(
            f"`{name}` is at version {today}, so nothing leads on from version {from_version}. Write "
            f"`{migrations.ATTRIBUTE} = {from_version + 1}` into the class."
        )
