"""The canonical bytes of any value, for digests: equal values give equal bytes in every process.

Each node is a tag and the length-prefixed bytes of its parts, so that no two different values run together. What is
long is replaced by its own digest on the way up, so that a big value never becomes a bigger text.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import fractions
import functools
import logging
import math
import pathlib
import re
import types
import typing
import uuid
import zoneinfo
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from jupyter_durable.errors import Undigestable
from jupyter_durable.values import functions, lineage, objects, raised, shapes
from jupyter_durable.values.frames import frame_parts
from jupyter_durable.values.migrations import name_at, public_name, version_of
from jupyter_durable.values.refused import refusal, type_name

_LONG = 256


def pack(tag: bytes, parts: Iterable[bytes]) -> bytes:
    """One node: a tag and its parts, each with its length in front."""
    made = tag + b"".join([b"%d:%b" % (len(part), part) for part in parts])
    return made if len(made) <= _LONG else b"#" + blake2b(made, digest_size=32).digest()


class Canon:
    """Makes the canonical bytes of one value.

    Args:
        root: how the value is called in messages.
        plain: gives the bytes of JSON-like values, or ``None``; the short way for most of a value.
    """

    def __init__(self, root: str, plain: Callable[[object], bytes | None]) -> None:
        self._path = [root]
        self._plain = plain
        self._open: dict[int, int] = {}
        self._kept: list[Any] = []

    def bytes_of(self, value: Any) -> bytes:
        """The canonical bytes.

        Raises:
            Undigestable: with the path to the part that has none.
        """
        cls = type(value)
        simple = _SIMPLE.get(cls)
        if simple is not None:
            return simple(value)
        plain = self._plain(value)
        if plain is not None:
            return plain
        place = id(value)
        if place in self._open:
            # A cycle: how many levels up it leads is a fact of the structure, an address is not.
            return b"^%d" % (len(self._open) - self._open[place])
        self._open[place] = len(self._open)
        self._kept.append(value)
        try:
            made = self._node(value, cls)
            return made if lineage.is_empty() else lineage.recorded_form(value, made)
        finally:
            del self._open[place]

    def of_parts(self, name: str, state: dict[str, Any], base: type[Any] | None = None, content: Any = None) -> bytes:
        """The canonical bytes of an object whose class is not there any more.

        Args:
            name: its class as `name_at` gave it.
            state: its attributes.
            base: the builtin class that it inherited from, if any.
            content: what it held as such: a plain list, dict, text.

        Raises:
            Undigestable: see `bytes_of`.
        """
        if base is None:
            return pack(b"object", (name.encode(), *self._state(state)))
        return pack(b"sub" + _BASES[base], (name.encode(), self._content(content, base), *self._state(state)))

    def _refuse(self, value: Any, reason: str) -> Undigestable:
        path = "".join(self._path)
        name = type_name(type(value))
        return Undigestable(
            f"{path} has no digest ({name}): {reason}, so it would not be known again in another kernel. Pass plain "
            "data instead, or give the step a `key=`.",
            path=path,
            type=name,
        )

    def _at(self, mark: str, value: Any) -> bytes:
        self._path.append(mark)
        made = self.bytes_of(value)
        self._path.pop()
        return made

    def _all(self, values: Iterable[Any]) -> list[bytes]:
        return [self._at(f"[{index}]", one) for index, one in enumerate(values)]

    def _unordered(self, values: Iterable[Any]) -> list[bytes]:
        return sorted(self._at(" (element)", one) for one in values)

    def _mapping(self, values: Any) -> list[bytes]:
        return sorted(
            pack(b"p", (self.bytes_of(key), self._at(f"[{key!r}]" if type(key) is str else "[...]", one)))
            for key, one in list(values.items())
        )

    def _state(self, state: dict[str, Any]) -> list[bytes]:
        return [pack(_text(name), (self._at(f".{name}", state[name]),)) for name in sorted(state)]

    def _node(self, value: Any, cls: type[Any]) -> bytes:
        refused = refusal(value)
        if refused is not None:
            raise self._refuse(value, refused.reason)
        known = _KNOWN.get(cls)
        if known is not None:
            return known(self, value)
        if isinstance(value, enum.Enum):
            return self._enum(value, cls)
        if isinstance(value, type):
            return self._class(value)
        parts = frame_parts(value)
        if parts is not None:
            return pack(b"frame", (one if isinstance(one, bytes) else self.bytes_of(one) for one in parts))
        for base, tag in _BASES.items():
            if issubclass(cls, base):
                return self._subclass(value, cls, base, tag)
        if isinstance(value, pathlib.PurePath):
            return pack(b"path", (self._name(cls), _text(str(value))))
        if isinstance(value, BaseException):
            state = {**raised.attributes(value), "args": raised.builtin_args(value)}
            return pack(b"error", (self._name(cls), *self._state(state)))
        return self._object(value, cls)

    def _object(self, value: Any, cls: type[Any]) -> bytes:
        if typing.get_origin(value) is not None or cls.__module__ == "typing":
            return pack(b"generic", (shapes.annotation_text(value).encode(),))
        if isinstance(value, logging.Logger):
            return pack(b"logger", (value.name.encode(),))
        if hasattr(cls, "__pydantic_fields__") and hasattr(value, "__pydantic_fields_set__"):
            extra, private = value.__pydantic_extra__ or {}, value.__pydantic_private__ or {}
            fields = {name: one for name, one in value.__dict__.items() if not objects.is_cache(cls, name)}
            return pack(b"object", (self._name(cls), *self._state({**private, **extra, **fields})))
        if objects.has_hidden_state(cls):
            return self._reduced(value, cls)
        state = objects.state_without_caches(value, cls)
        if not state and cls is object:
            raise self._refuse(value, "nothing but its address tells it from others")
        return pack(b"object", (self._name(cls), *self._state(state)))

    def _reduced(self, value: Any, cls: type[Any]) -> bytes:
        """An object of a class written in C: by the parts that it would be pickled with, never by their bytes."""
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:
            raise self._refuse(value, "its state cannot be seen") from None
        if isinstance(reduced, str):
            return pack(b"global", (self._name(cls), reduced.encode()))
        parts = list(reduced) + [None] * (6 - len(reduced))
        listed = list(parts[3]) if parts[3] is not None else None
        paired = list(parts[4]) if parts[4] is not None else None
        return pack(b"reduced", (self._name(cls), *self._all([parts[0], parts[1], parts[2], listed, paired])))

    def _subclass(self, value: Any, cls: type[Any], base: type[Any], tag: bytes) -> bytes:
        state = objects.state_without_caches(value, cls)
        return pack(b"sub" + tag, (self._name(cls), self._content(value, base), *self._state(state)))

    def _content(self, value: Any, base: type[Any]) -> bytes:
        if base is dict:
            return pack(b"d", self._mapping(dict(dict.items(value))))
        if base in (list, tuple):
            return pack(b"l", self._all(list(base.__iter__(value))))
        if base in (set, frozenset):
            return pack(b"s", self._unordered(list(base.__iter__(value))))
        if base is collections.deque:
            return pack(b"q", (self.bytes_of(value.maxlen), *self._all(list(value))))
        return self.bytes_of(_PLAIN_OF[base](value))

    def _name(self, cls: type[Any]) -> bytes:
        return name_at(public_name(cls), version_of(cls)).encode()

    def _class(self, value: type[Any]) -> bytes:
        shape = shapes.shape_digest(value) if shapes.is_users(str(value.__module__)) else ""
        return pack(b"class", (self._name(value), shape.encode()))

    def _enum(self, value: Any, cls: type[Any]) -> bytes:
        name = getattr(value, "_name_", None)
        if isinstance(name, str) and cls.__members__.get(name) is value:
            return pack(b"enum", (self._name(cls), name.encode()))
        return pack(b"enum", (self._name(cls), self.bytes_of(value._value_)))

    # Types known exactly.

    def _list(self, value: list[Any]) -> bytes:
        return pack(b"l", self._all(value))

    def _tuple(self, value: tuple[Any, ...]) -> bytes:
        return pack(b"t", self._all(value))

    def _dict(self, value: dict[Any, Any]) -> bytes:
        return pack(b"d", self._mapping(value))

    def _set(self, value: set[Any]) -> bytes:
        return pack(b"s", self._unordered(value))

    def _frozenset(self, value: frozenset[Any]) -> bytes:
        return pack(b"S", self._unordered(value))

    def _ordered(self, value: Any) -> bytes:
        return pack(b"od", self._all(list(value.items())))

    def _defaultdict(self, value: Any) -> bytes:
        return pack(b"dd", (self._at(".default_factory", value.default_factory), *self._mapping(value)))

    def _deque(self, value: Any) -> bytes:
        return pack(b"q", (self.bytes_of(value.maxlen), *self._all(value)))

    def _datetime(self, value: Any) -> bytes:
        plain = value.replace(tzinfo=None, fold=0).isoformat().encode()
        kind, fold = type(value).__name__.encode(), b"%d" % value.fold
        return pack(b"dt", (kind, plain, fold, self._at(".tzinfo", value.tzinfo)))

    def _timezone(self, value: Any) -> bytes:
        return pack(b"tz", self._all(value.__getinitargs__()))

    def _range(self, value: Any) -> bytes:
        return pack(type(value).__name__.encode(), self._all([value.start, value.stop, value.step]))

    def _pattern(self, value: Any) -> bytes:
        return pack(b"re", self._all([value.pattern, value.flags]))

    def _namespace(self, value: Any) -> bytes:
        return pack(b"ns", self._state(value.__dict__))

    def _view(self, value: Any) -> bytes:
        name = type(value).__name__.removeprefix("o").encode()
        if name == b"dict_values":
            return pack(name, self._all(list(value)))
        return pack(name, self._unordered(list(value)))

    def _mapping_proxy(self, value: Any) -> bytes:
        return pack(b"mp", self._mapping(value))

    def _partial(self, value: functools.partial[Any]) -> bytes:
        parts = (self._at(".func", value.func), self._at(".args", value.args), self._at(".keywords", value.keywords))
        return pack(b"partial", (*parts, *self._state(value.__dict__)))

    def _method(self, value: types.MethodType) -> bytes:
        return pack(b"method", (self._at(".__self__", value.__self__), self._at(".__func__", value.__func__)))

    def _builtin(self, value: Any) -> bytes:
        owner = value.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            return pack(b"builtin", (f"{value.__module__}:{value.__qualname__}".encode(),))
        return pack(b"builtin", (value.__qualname__.encode(), self._at(".__self__", owner)))

    def _descriptor(self, value: Any) -> bytes:
        return pack(b"builtin", (self._name(value.__objclass__), value.__name__.encode()))

    def _module(self, value: types.ModuleType) -> bytes:
        return pack(b"module", (value.__name__.encode(),))

    def _function(self, value: types.FunctionType) -> bytes:
        text = functions.code_text(value)
        if text is None and not functions.is_module_level(value):
            raise self._refuse(value, "its source is not known")
        cells = []
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            cells.append(pack(name.encode(), (self._at(f" (captured {name})", content),)))
        parts = (
            public_name(value).encode(),
            _text(text or ""),
            self._at(" (defaults)", value.__defaults__),
            self._at(" (defaults)", value.__kwdefaults__),
        )
        return pack(b"function", (*parts, *cells))


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _fixed(tag: bytes, text: Callable[[Any], str]) -> Callable[[Any], bytes]:
    return lambda value: pack(tag, (_text(text(value)),))


def _float_bytes(value: float) -> bytes:
    # `repr` is the shortest text that gives the float again, on every version; every nan is one value.
    return b"f" + (b"nan" if math.isnan(value) else repr(value).encode())


_SIMPLE: dict[type[Any], Callable[[Any], bytes]] = {
    bytes: lambda value: pack(b"b", (value,)),
    bytearray: lambda value: pack(b"ba", (bytes(value),)),
    complex: lambda value: pack(b"c", (_float_bytes(value.real), _float_bytes(value.imag))),
    type(Ellipsis): lambda _: b"...",
    type(NotImplemented): lambda _: b"!NotImplemented",
    dt.date: _fixed(b"date", dt.date.isoformat),
    dt.timedelta: _fixed(b"td", lambda value: f"{value.days},{value.seconds},{value.microseconds}"),
    zoneinfo.ZoneInfo: _fixed(b"zone", lambda value: value.key or repr(value)),
    decimal.Decimal: _fixed(b"decimal", str),
    fractions.Fraction: _fixed(b"fraction", lambda value: f"{value.numerator:x}/{value.denominator:x}"),
    uuid.UUID: _fixed(b"uuid", lambda value: value.hex),
}

_KNOWN: dict[type[Any], Callable[[Canon, Any], bytes]] = {
    # Only values that are not plain come here: large, not finite, not valid unicode.
    int: lambda _, value: b"i" + hex(value).encode(),
    float: lambda _, value: _float_bytes(value),
    str: lambda _, value: pack(b"str", (_text(value),)),
    list: Canon._list,
    tuple: Canon._tuple,
    dict: Canon._dict,
    set: Canon._set,
    frozenset: Canon._frozenset,
    collections.OrderedDict: Canon._ordered,
    collections.defaultdict: Canon._defaultdict,
    collections.deque: Canon._deque,
    dt.datetime: Canon._datetime,
    dt.time: Canon._datetime,
    dt.timezone: Canon._timezone,
    range: Canon._range,
    slice: Canon._range,
    re.Pattern: Canon._pattern,
    types.SimpleNamespace: Canon._namespace,
    types.MappingProxyType: Canon._mapping_proxy,
    functools.partial: Canon._partial,
    types.MethodType: Canon._method,
    types.FunctionType: Canon._function,
    types.BuiltinFunctionType: Canon._builtin,
    types.MethodWrapperType: Canon._builtin,
    types.WrapperDescriptorType: Canon._descriptor,
    types.MethodDescriptorType: Canon._descriptor,
    types.ModuleType: Canon._module,
    type({}.keys()): Canon._view,
    type({}.values()): Canon._view,
    type({}.items()): Canon._view,
    type(collections.OrderedDict().keys()): Canon._view,
    type(collections.OrderedDict().values()): Canon._view,
    type(collections.OrderedDict().items()): Canon._view,
}

_BASES: dict[type[Any], bytes] = {
    dict: b"d",
    list: b"l",
    tuple: b"t",
    set: b"s",
    frozenset: b"S",
    str: b"str",
    int: b"i",
    float: b"f",
    bytes: b"b",
    bytearray: b"ba",
    complex: b"c",
    collections.deque: b"q",
}

_PLAIN_OF: dict[type[Any], Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: lambda value: bytes(memoryview(value)),
    bytearray: lambda value: bytes(memoryview(value)),
    complex: lambda value: complex(value.real, value.imag),
}
