"""What every walk over a value needs: the path to where it is, what it has seen, and what it has found.

`structural` says how each type is taken apart; this file keeps the book.
"""

from __future__ import annotations

import datetime as dt
import enum
import types
import zoneinfo
from base64 import b64encode
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from jupyter_durable.errors import UnstorableValue
from jupyter_durable.values import classes, leaf, scalars
from jupyter_durable.values.check import find_offenders
from jupyter_durable.values.refused import type_name, unstorable

INLINE = 32 * 1024
"""Byte strings above this size go to blobs of their own."""


class Shared(Exception):
    """The value holds one mutable object at two places, or itself."""


class NoForm(Exception):
    """A part of an exception has no structural form; it is left out."""


def blob_digest(content: bytes) -> str:
    """Name of a blob: digest of its content, 32 hexadecimal digits."""
    return blake2b(content, digest_size=16).hexdigest()


class Walk:
    """One walk over one value.

    Args:
        root: how the value is called in paths.
        table: the classes referred to.
        inside_error: for the parts of an exception: no pickles, no blobs, secrets taken out of texts.
    """

    def __init__(self, root: str = "result", table: classes.Table | None = None, inside_error: bool = False) -> None:
        self.table = table if table is not None else classes.Table()
        self.blobs: dict[str, bytes] = {}
        self.leaves: list[Any] = []
        self._path = [root]
        self._inside_error = inside_error
        self._seen: set[int] = set()
        # Objects made on the way must not be freed: a later one at their address would look like the same.
        self._kept: list[Any] = []

    @property
    def path(self) -> str:
        """Where the walk is, such as ``result['client']``."""
        return "".join(self._path)

    def walk(self, value: Any) -> Any:
        """The tree of a value."""
        raise NotImplementedError

    def document(self, tree: Any) -> Any:
        """The whole text of a payload as a tree: the classes first, so that they are checked before all else."""
        if self.table.entries:
            return {"$": "typed", "classes": self.table.entries, "value": tree}
        return tree

    def leaf(self, value: Any) -> Any:
        """A pickle of the value.

        Raises:
            UnstorableValue: with the path to the deepest part that cannot be stored.
        """
        if self._inside_error:
            raise NoForm
        length = len(self.table.entries)
        try:
            data, has_code, inside = leaf.dump(value, self.table)
        except UnstorableValue as error:
            self.table.cut(length)
            raise self._located(value, error) from error.__cause__
        for one in inside:
            if type(one) not in _IDENTITY_FREE and not isinstance(one, type | enum.Enum | types.FunctionType):
                if id(one) in self._seen and one is not value:
                    raise Shared
                self._seen.add(id(one))
        self._kept.append(inside)
        self.leaves.append(value)
        made = {"$": "pickle", "type": type_name(type(value)), **self._bytes_field(data)}
        if has_code:
            made["python"] = leaf.PYTHON
        return made

    def _located(self, value: Any, error: UnstorableValue) -> UnstorableValue:
        offenders = find_offenders(value, root=self.path)
        if not offenders:
            facts = error.facts
            return unstorable(self.path, type(value), facts.get("reason", str(error)), facts.get("advice", ""))
        first = offenders[0]
        more = f" (also {', '.join(one.path for one in offenders[1:])})" if len(offenders) > 1 else ""
        message = f"{first.path} cannot be stored ({first.type}): {first.reason}. To solve it, {first.advice}.{more}"
        return UnstorableValue(
            message, path=first.path, type=first.type, reason=first.reason, advice=first.advice, offenders=offenders
        )

    # The parts of containers, each with its place in the path.

    def _items(self, values: Iterable[Any], mark: str | None = None) -> list[Any]:
        made = []
        for index, item in enumerate(values):
            self._path.append(f"[{index}]" if mark is None else mark)
            made.append(self.walk(item))
            self._path.pop()
        return made

    def _pairs(self, values: dict[Any, Any]) -> list[Any]:
        made = []
        for key, item in list(values.items()):
            plain = isinstance(key, str | int)
            self._path.append(f"[{key!r}]" if plain and len(repr(key)) < 50 else f"[{type_name(type(key))}]")
            made.append([self.walk(key), self.walk(item)])
            self._path.pop()
        return made

    def _named(self, values: dict[str, Any]) -> Any:
        """Attributes of an object; a plain JSON object unless a name forbids it."""
        made = {}
        for name, item in values.items():
            self._path.append(f".{name}")
            made[name] = self.walk(item)
            self._path.pop()
        return made

    def _once(self, value: Any) -> None:
        if id(value) in self._seen:
            raise Shared
        self._seen.add(id(value))
        self._kept.append(value)

    def _bytes_field(self, data: bytes) -> dict[str, Any]:
        if len(data) <= INLINE or self._inside_error:
            return {"v": b64encode(data).decode()}
        digest = blob_digest(data)
        self.blobs[digest] = data
        return {"blob": digest, "size": len(data)}


_IDENTITY_FREE = frozenset(
    (
        *scalars.WRITE,
        *(str, bytes, tuple, frozenset, slice, dt.datetime, dt.time, zoneinfo.ZoneInfo),
        *(types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.MethodType),
    )
)
"""Types of which two equal objects are as good as one."""
