"""Turns a value into a tree of plain JSON in which objects with a ``$`` key stand for other types.

The tree can be read without loading anything. What has no form here becomes a leaf with a pickle in it (see `leaf`).
A value in which one mutable object occurs twice has no tree; `Shared` says so, and its whole becomes one leaf.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import sys
import types
import zoneinfo
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from jupyter_durable.errors import UnstorableValue
from jupyter_durable.values import classes, http, objects, raised, scalars, tables
from jupyter_durable.values.refused import refusal, type_name, unstorable
from jupyter_durable.values.secrets import redact
from jupyter_durable.values.walking import NoForm, Shared, Walk

_CAUSES = 5
_ATTRIBUTE_SIZE = 64 * 1024


class Encoder(Walk):
    """Encodes one value; `Walk` holds what is found on the way."""

    def walk(self, value: Any) -> Any:
        """The tree of a value.

        Raises:
            UnstorableValue: some part cannot be stored.
            Shared: see the module's docstring.
        """
        cls = type(value)
        write = scalars.WRITE.get(cls)
        if write is not None:
            return write(value)
        encode = _EXACT.get(cls)
        return encode(self, value) if encode is not None else self._other(value, cls)

    # Exact types.

    def _str(self, value: str) -> Any:
        return scalars.write_str(redact(value) if self._inside_error else value)

    def _list(self, value: list[Any]) -> Any:
        self._once(value)
        return self._items(value)

    def _dict(self, value: dict[Any, Any]) -> Any:
        self._once(value)
        if all(type(key) is str for key in value) and "$" not in value:
            try:
                "".join(value).encode()
            except UnicodeEncodeError:
                return {"$": "dict", "v": self._pairs(value)}
            made = {}
            for key, item in list(value.items()):
                self._path.append(f"[{key!r}]")
                made[key] = self.walk(item)
                self._path.pop()
            return made
        return {"$": "dict", "v": self._pairs(value)}

    def _tuple(self, value: tuple[Any, ...]) -> Any:
        return {"$": "tuple", "v": self._items(value)}

    def _set(self, value: set[Any]) -> Any:
        self._once(value)
        return {"$": "set", "v": self._items(value, " (element)")}

    def _frozenset(self, value: frozenset[Any]) -> Any:
        return {"$": "frozenset", "v": self._items(value, " (element)")}

    def _bytes(self, value: bytes) -> Any:
        return {"$": "bytes", **self._bytes_field(value)}

    def _bytearray(self, value: bytearray) -> Any:
        self._once(value)
        return {"$": "bytearray", **self._bytes_field(bytes(value))}

    def _ordered(self, value: dict[Any, Any]) -> Any:
        self._once(value)
        return {"$": "ordereddict", "v": self._pairs(value)}

    def _counter(self, value: dict[Any, Any]) -> Any:
        self._once(value)
        return {"$": "counter", "v": self._pairs(value)}

    def _defaultdict(self, value: collections.defaultdict[Any, Any]) -> Any:
        self._once(value)
        return {"$": "defaultdict", "factory": self.walk(value.default_factory), "v": self._pairs(value)}

    def _deque(self, value: collections.deque[Any]) -> Any:
        self._once(value)
        return {"$": "deque", "maxlen": value.maxlen, "v": self._items(value)}

    def _datetime(self, value: dt.datetime | dt.time) -> Any:
        return scalars.write_datetime(value, None if value.tzinfo is None else self.walk(value.tzinfo))

    def _zoneinfo(self, value: zoneinfo.ZoneInfo) -> Any:
        return self.leaf(value) if value.key is None else {"$": "zoneinfo", "v": value.key}

    def _slice(self, value: slice) -> Any:
        return {"$": "slice", "v": [self.walk(value.start), self.walk(value.stop), self.walk(value.step)]}

    def _namespace(self, value: types.SimpleNamespace) -> Any:
        self._once(value)
        return {"$": "namespace", "v": self._pairs(value.__dict__)}

    def _function(self, value: types.FunctionType) -> Any:
        if not classes.resolves(value):
            return self.leaf(value)
        return {"$": "function", "class": self.table.add_function(value)}

    def _module(self, value: types.ModuleType) -> Any:
        if sys.modules.get(value.__name__) is not value:
            return self.leaf(value)
        return {"$": "module", "v": value.__name__}

    # Everything whose type is not known exactly.

    def _other(self, value: Any, cls: type[Any]) -> Any:
        refused = refusal(value)
        if refused is not None:
            raise unstorable(self.path, cls, refused.reason, refused.advice)
        if isinstance(value, enum.Enum):
            return self._enum(value, cls)
        if isinstance(value, type):
            return self._class(value)
        array = tables.encode_array(value)
        if array is not None:
            if array[0] == "nparray":
                self._once(value)
            return {"$": array[0], **self._bytes_field(array[1])}
        if self._inside_error:
            message = http.take_apart(value)
            if message is not None:
                return {"$": "http", "v": message}
        self._once(value)
        if isinstance(value, BaseException):
            return self.error(value)
        frame = tables.encode_frame(value)
        if frame is not None:
            return {"$": frame[0], **self._bytes_field(frame[1])}
        if dataclasses.is_dataclass(cls) and not objects.has_hidden_state(cls) and not objects.has_hooks(cls):
            return {"$": "dataclass", **self._reference(cls), "v": self._named(objects.state(value, cls))}
        if hasattr(cls, "__pydantic_fields__") and objects.is_plain_pydantic(cls):
            return self._pydantic(value, cls)
        base = next((one for one in objects.BASES if issubclass(cls, one)), None)
        if base is not None and cls.__module__ != "builtins" and not objects.has_hooks(cls):
            return self._subclass(value, cls, base)
        return self.leaf(value)

    def _reference(self, cls: type[Any]) -> dict[str, Any]:
        try:
            return {"class": self.table.add(cls)}
        except UnstorableValue as error:
            facts = error.facts
            raise UnstorableValue(f"{self.path}: {error}", **{**facts, "path": self.path}) from None

    def _class(self, value: type[Any]) -> Any:
        return {"$": "class", **self._reference(value)}

    def _enum(self, value: enum.Enum, cls: type[enum.Enum]) -> Any:
        made = {"$": "enum", **self._reference(cls)}
        name = getattr(value, "_name_", None)
        if isinstance(name, str) and cls.__members__.get(name) is value:
            return {**made, "v": name}
        if isinstance(value, enum.Flag):
            names = [one.name for one in value]
            rest = value.value
            for one in value:
                rest &= ~one.value
            return {**made, "v": names, "rest": rest}
        return self.leaf(value)

    def _pydantic(self, value: Any, cls: type[Any]) -> Any:
        state = value.__getstate__()
        made = {"$": "pydantic", **self._reference(cls), "v": self._named(state["__dict__"])}
        fields_set = state["__pydantic_fields_set__"]
        if fields_set != set(state["__dict__"]):
            made["set"] = sorted(fields_set)
        if state.get("__pydantic_extra__") is not None:
            made["extra"] = self._pairs(state["__pydantic_extra__"])
        if state.get("__pydantic_private__") is not None:
            made["private"] = self._named(state["__pydantic_private__"])
        return made

    def _subclass(self, value: Any, cls: type[Any], base: type[Any]) -> Any:
        made = {"$": "subclass", **self._reference(cls), "base": base.__name__}
        if base is dict:
            made["v"] = self._pairs(dict(dict.items(value)))
        elif base in (list, tuple):
            made["v"] = self._items(base.__iter__(value))
        elif base in (set, frozenset):
            made["v"] = self._items(base.__iter__(value), " (element)")
        elif base is str:
            made["v"] = self._str(str.__str__(value))
        elif base is int:
            made["v"] = scalars.write_int(int.__int__(value))
        elif base is float:
            made["v"] = scalars.write_float(float.__float__(value))
        else:
            made["v"] = b64encode(bytes(memoryview(value))).decode()
        state = objects.state(value, cls)
        if state:
            made["state"] = self._named(state)
        return made

    def error(self, value: BaseException, depth: int = 0) -> Any:
        """The tree of an exception: class, arguments, attributes that can be stored, cause, members of a group.

        Raises:
            UnstorableValue: its class cannot be found again by its name.
        """
        made: dict[str, Any] = {"$": "error", **self._reference(type(value))}
        # What an earlier replay has lost stays lost, and stays named.
        dropped: dict[str, str] = dict(value.__dict__.get(raised.NOT_STORED, {}))
        made_with = raised.builtin_args(value)
        if isinstance(value, BaseExceptionGroup):
            made["members"] = [self.error(one, depth + 1) for one in value.exceptions]
            made_with = made_with[:1]
        made["args"] = [self._part(f"args[{place}]", one, dropped) for place, one in enumerate(made_with)]
        if made_with != value.args and not isinstance(value, BaseExceptionGroup):
            made["keeps"] = len(value.args)
        attributes = {}
        for name, one in raised.attributes(value).items():
            tree = self._part(name, one, dropped)
            if name not in dropped:
                attributes[name] = tree
        if attributes:
            made["v"] = attributes
        if dropped:
            made["dropped"] = dropped
        if value.__cause__ is not None and depth < _CAUSES:
            try:
                made["cause"] = self.error(value.__cause__, depth + 1)
            except UnstorableValue:
                made["dropped"] = {**dropped, "__cause__": type_name(type(value.__cause__))}
        elif value.__suppress_context__:
            made["suppress"] = True
        return made

    def _part(self, name: str, value: Any, dropped: dict[str, str]) -> Any:
        inner = Encoder(f"{self.path}.{name}", self.table, inside_error=True)
        length = len(self.table.entries)
        try:
            tree = inner.walk(value)
            if _size(tree) <= _ATTRIBUTE_SIZE:
                return tree
        except (UnstorableValue, NoForm, Shared, RecursionError):
            pass
        self.table.cut(length)
        dropped[name] = type_name(type(value))
        return f"<{dropped[name]} not stored>"


def _size(tree: Any) -> int:
    if isinstance(tree, str):
        return len(tree)
    if isinstance(tree, dict):
        return sum(len(key) + _size(item) + 4 for key, item in tree.items())
    if isinstance(tree, list):
        return sum(_size(item) + 2 for item in tree)
    return 8


_EXACT: dict[type[Any], Callable[[Encoder, Any], Any]] = {
    str: Encoder._str,
    list: Encoder._list,
    dict: Encoder._dict,
    tuple: Encoder._tuple,
    set: Encoder._set,
    frozenset: Encoder._frozenset,
    bytes: Encoder._bytes,
    bytearray: Encoder._bytearray,
    collections.OrderedDict: Encoder._ordered,
    collections.Counter: Encoder._counter,
    collections.defaultdict: Encoder._defaultdict,
    collections.deque: Encoder._deque,
    dt.datetime: Encoder._datetime,
    dt.time: Encoder._datetime,
    zoneinfo.ZoneInfo: Encoder._zoneinfo,
    slice: Encoder._slice,
    types.SimpleNamespace: Encoder._namespace,
    types.FunctionType: Encoder._function,
    types.ModuleType: Encoder._module,
}
