"""Turns a value into a tree of plain JSON in which objects with a ``$`` key stand for other types.

The tree can be read without loading anything. What has no form here becomes a leaf with a pickle in it (see `leaf`).
A value in which one mutable object occurs twice has no tree; `Shared` says so, and its whole becomes one leaf.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import math
import pathlib
import re
import sys
import types
import uuid
import zoneinfo
from base64 import b64encode
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from jupyter_durable.errors import UnstorableValue
from jupyter_durable.values import classes, http, leaf, raised, shapes, tables
from jupyter_durable.values.check import find_offenders
from jupyter_durable.values.refused import refusal, type_name, unstorable
from jupyter_durable.values.secrets import redact

INLINE = 32 * 1024
"""Byte strings above this size go to blobs of their own."""

INT_LOW, INT_HIGH = -(2**63), 2**64 - 1
"""Whole numbers that every reader of JSON in this house can hold."""

_CAUSES = 5
_ATTRIBUTE_SIZE = 64 * 1024


class Shared(Exception):
    """The value holds one mutable object at two places, or itself."""


class NoForm(Exception):
    """A part of an exception has no structural form; it is left out."""


def blob_digest(content: bytes) -> str:
    """Name of a blob: digest of its content, 32 hexadecimal digits."""
    return blake2b(content, digest_size=16).hexdigest()


class Encoder:
    """Encodes one value; holds what is found on the way.

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
        return "".join(self._path)

    def document(self, tree: Any) -> Any:
        """The whole text of a payload as a tree: the classes first, so that they are checked before all else."""
        if self.table.entries:
            return {"$": "typed", "classes": self.table.entries, "value": tree}
        return tree

    def walk(self, value: Any) -> Any:
        """The tree of a value.

        Raises:
            UnstorableValue: some part cannot be stored.
            Shared: see the module's docstring.
        """
        encode = _EXACT.get(type(value))
        return encode(self, value) if encode is not None else self._other(value, type(value))

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

    # Exact types.

    def _same(self, value: Any) -> Any:
        return value

    def _int(self, value: int) -> Any:
        return value if INT_LOW <= value <= INT_HIGH else {"$": "int", "v": hex(value)}

    def _float(self, value: float) -> Any:
        return value if math.isfinite(value) else {"$": "float", "v": repr(value)}

    def _str(self, value: str) -> Any:
        if self._inside_error:
            value = redact(value)
        try:
            value.encode()
        except UnicodeEncodeError:
            return {"$": "str", "v": b64encode(value.encode("utf-8", "surrogatepass")).decode()}
        return value

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

    def _bytes_field(self, data: bytes) -> dict[str, Any]:
        if len(data) <= INLINE or self._inside_error:
            return {"v": b64encode(data).decode()}
        digest = blob_digest(data)
        self.blobs[digest] = data
        return {"blob": digest, "size": len(data)}

    def _complex(self, value: complex) -> Any:
        return {"$": "complex", "v": [self._float(value.real), self._float(value.imag)]}

    def _ellipsis(self, value: Any) -> Any:
        return {"$": "ellipsis"}

    def _not_implemented(self, value: Any) -> Any:
        return {"$": "notimplemented"}

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

    def _date(self, value: datetime.date) -> Any:
        return {"$": "date", "v": value.isoformat()}

    def _datetime(self, value: datetime.datetime | datetime.time) -> Any:
        kind = "datetime" if isinstance(value, datetime.datetime) else "time"
        made = {"$": kind, "v": value.replace(tzinfo=None, fold=0).isoformat()}
        if value.fold:
            made["fold"] = 1  # type: ignore[assignment]
        if value.tzinfo is not None:
            made["tz"] = self.walk(value.tzinfo)
        return made

    def _timedelta(self, value: datetime.timedelta) -> Any:
        return {"$": "timedelta", "v": [value.days, value.seconds, value.microseconds]}

    def _timezone(self, value: datetime.timezone) -> Any:
        offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]
        made = {"$": "timezone", "v": [offset.days, offset.seconds, offset.microseconds]}
        if name:
            made["name"] = self._str(name[0])
        return made

    def _zoneinfo(self, value: zoneinfo.ZoneInfo) -> Any:
        return self.leaf(value) if value.key is None else {"$": "zoneinfo", "v": value.key}

    def _decimal(self, value: decimal.Decimal) -> Any:
        return {"$": "decimal", "v": str(value)}

    def _fraction(self, value: fractions.Fraction) -> Any:
        return {"$": "fraction", "v": [self._int(value.numerator), self._int(value.denominator)]}

    def _uuid(self, value: uuid.UUID) -> Any:
        return {"$": "uuid", "v": value.hex}

    def _pure_path(self, value: pathlib.PurePath) -> Any:
        return {"$": "path", "kind": type(value).__name__, "v": self._str(str(value))}

    def _range(self, value: range | slice) -> Any:
        kind = "range" if type(value) is range else "slice"
        return {"$": kind, "v": [self.walk(value.start), self.walk(value.stop), self.walk(value.step)]}

    def _pattern(self, value: re.Pattern[Any]) -> Any:
        return {"$": "pattern", "v": self.walk(value.pattern), "flags": value.flags}

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
        if dataclasses.is_dataclass(cls) and _is_plain_object(cls) and not _has_hooks(cls):
            return {"$": "dataclass", **self._reference(value, cls), "v": self._named(_state(value, cls))}
        if hasattr(cls, "__pydantic_fields__") and _is_plain_pydantic(cls):
            return self._pydantic(value, cls)
        base = next((one for one in _BASES if issubclass(cls, one)), None)
        if base is not None and cls.__module__ != "builtins" and not _has_hooks(cls):
            return self._subclass(value, cls, base)
        return self.leaf(value)

    def _reference(self, value: Any, cls: type[Any]) -> dict[str, Any]:
        try:
            return {"class": self.table.add(cls)}
        except UnstorableValue as error:
            facts = error.facts
            raise UnstorableValue(f"{self.path}: {error}", **{**facts, "path": self.path}) from None

    def _class(self, value: type[Any]) -> Any:
        return {"$": "class", **self._reference(value, value)}

    def _enum(self, value: enum.Enum, cls: type[enum.Enum]) -> Any:
        made = {"$": "enum", **self._reference(value, cls)}
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
        made = {"$": "pydantic", **self._reference(value, cls), "v": self._named(state["__dict__"])}
        fields_set = state["__pydantic_fields_set__"]
        if fields_set != set(state["__dict__"]):
            made["set"] = sorted(fields_set)
        if state.get("__pydantic_extra__") is not None:
            made["extra"] = self._pairs(state["__pydantic_extra__"])
        if state.get("__pydantic_private__") is not None:
            made["private"] = self._named(state["__pydantic_private__"])
        return made

    def _subclass(self, value: Any, cls: type[Any], base: type[Any]) -> Any:
        made = {"$": "subclass", **self._reference(value, cls), "base": base.__name__}
        if base is dict:
            made["v"] = self._pairs(dict(dict.items(value)))
        elif base in (list, tuple):
            made["v"] = self._items(base.__iter__(value))
        elif base in (set, frozenset):
            made["v"] = self._items(base.__iter__(value), " (element)")
        elif base is str:
            made["v"] = self._str(str.__str__(value))
        elif base is int:
            made["v"] = self._int(int.__int__(value))
        elif base is float:
            made["v"] = self._float(float.__float__(value))
        else:
            made["v"] = b64encode(bytes(memoryview(value))).decode()
        state = _state(value, cls)
        if state:
            made["state"] = self._named(state)
        return made

    def error(self, value: BaseException, depth: int = 0) -> Any:
        """The tree of an exception: class, arguments, attributes that can be stored, cause, members of a group.

        Raises:
            UnstorableValue: its class cannot be found again by its name.
        """
        made: dict[str, Any] = {"$": "error", **self._reference(value, type(value))}
        dropped: dict[str, str] = {}
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


_HOOKS = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
_GENERATED = {
    getattr(dataclasses, "_dataclass_getstate", None),
    getattr(dataclasses, "_dataclass_setstate", None),
}
_NAMEDTUPLE_ARGS = collections.namedtuple("_Sample", "x").__getnewargs__.__code__  # type: ignore[attr-defined]  # noqa: PYI024
_BASES: tuple[type[Any], ...] = (dict, list, tuple, set, frozenset, str, int, float, bytes, bytearray)


@functools.lru_cache(1024)
def _has_hooks(cls: type[Any]) -> bool:
    """Whether the class says itself how it is pickled; then it is not taken apart here."""
    for base in cls.__mro__:
        if base is object or base in _BASES or base.__module__ == "typing":
            continue
        for name in _HOOKS:
            hook = base.__dict__.get(name)
            if hook is None or hook in _GENERATED:
                continue
            if getattr(hook, "__code__", None) is _NAMEDTUPLE_ARGS:
                continue
            return True
    return False


@functools.lru_cache(1024)
def _is_plain_object(cls: type[Any]) -> bool:
    """Whether instances have no state besides ``__dict__`` and slots: no base is written in C."""
    return object.__new__ is getattr(_solid_base(cls), "__new__", None)


def _solid_base(cls: type[Any]) -> type[Any]:
    return next(one for one in cls.__mro__ if not one.__flags__ & (1 << 9))  # the first that is no heap type


@functools.lru_cache(1024)
def _is_plain_pydantic(cls: type[Any]) -> bool:
    pydantic = sys.modules.get("pydantic.main")
    if pydantic is None or not issubclass(cls, pydantic.BaseModel):
        return False
    for base in cls.__mro__:
        if base is pydantic.BaseModel:
            return True
        if any(name in base.__dict__ for name in _HOOKS):
            return False
    return False


def _state(value: Any, cls: type[Any]) -> dict[str, Any]:
    """Attributes from ``__dict__`` and from the slots of all bases; what is not set is left out."""
    state = dict(getattr(value, "__dict__", None) or {})
    for base in cls.__mro__:
        for name in shapes.slot_names(base):
            if name not in state and base.__module__ != "builtins":
                try:
                    state[name] = object.__getattribute__(value, name)
                except AttributeError:
                    continue
    return state


_EXACT: dict[type[Any], Callable[[Encoder, Any], Any]] = {
    type(None): Encoder._same,
    bool: Encoder._same,
    int: Encoder._int,
    float: Encoder._float,
    str: Encoder._str,
    list: Encoder._list,
    dict: Encoder._dict,
    tuple: Encoder._tuple,
    set: Encoder._set,
    frozenset: Encoder._frozenset,
    bytes: Encoder._bytes,
    bytearray: Encoder._bytearray,
    complex: Encoder._complex,
    type(Ellipsis): Encoder._ellipsis,
    type(NotImplemented): Encoder._not_implemented,
    collections.OrderedDict: Encoder._ordered,
    collections.Counter: Encoder._counter,
    collections.defaultdict: Encoder._defaultdict,
    collections.deque: Encoder._deque,
    datetime.date: Encoder._date,
    datetime.datetime: Encoder._datetime,
    datetime.time: Encoder._datetime,
    datetime.timedelta: Encoder._timedelta,
    datetime.timezone: Encoder._timezone,
    zoneinfo.ZoneInfo: Encoder._zoneinfo,
    decimal.Decimal: Encoder._decimal,
    fractions.Fraction: Encoder._fraction,
    uuid.UUID: Encoder._uuid,
    pathlib.PurePosixPath: Encoder._pure_path,
    pathlib.PureWindowsPath: Encoder._pure_path,
    pathlib.PosixPath: Encoder._pure_path,
    pathlib.WindowsPath: Encoder._pure_path,
    range: Encoder._range,
    slice: Encoder._range,
    re.Pattern: Encoder._pattern,
    types.SimpleNamespace: Encoder._namespace,
    types.FunctionType: Encoder._function,
    types.ModuleType: Encoder._module,
}

_IDENTITY_FREE = frozenset(
    (type(None), bool, int, float, complex, str, bytes, tuple, frozenset, type(Ellipsis), type(NotImplemented))
    + (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone, zoneinfo.ZoneInfo)
    + (decimal.Decimal, fractions.Fraction, uuid.UUID, range, slice, re.Pattern, types.ModuleType)
    + (types.BuiltinFunctionType, types.CodeType, types.MethodType)
)
