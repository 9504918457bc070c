"""Builds a value again from the tree that `structural` made of it."""

from __future__ import annotations

import collections
import importlib
import operator
import types
from base64 import b64decode
from collections.abc import Callable
from functools import reduce
from typing import Any

from jupyter_durable.errors import UnloadableValue
from jupyter_durable.values import classes, http, leaf, migrated, objects, raised, scalars, shapes, tables
from jupyter_durable.values.migrated import Old
from jupyter_durable.values.migrations import Plan
from jupyter_durable.values.omitted import Omitted
from jupyter_durable.values.refused import type_name

ReadBlob = Callable[[str], bytes]
"""Gives the content of a blob for its digest."""


def no_blobs(digest: str) -> bytes:
    """For payloads that have none."""
    raise UnloadableValue(
        f"The stored value refers to the blob {digest}, and no blobs are at hand.", missing=digest, reason="no blob"
    )


class Builder:
    """Builds one value; today's classes are found and compared before anything is built.

    Raises:
        UnloadableValue: a class or package is missing or has changed.
    """

    def __init__(self, read_blob: ReadBlob = no_blobs) -> None:
        self.leaves: list[Any] = []
        self._read_blob = read_blob
        self._found = classes.Found([], {}, {})

    def document(self, tree: Any) -> Any:
        """The value of a whole payload."""
        if type(tree) is dict and tree.get("$") == "typed":
            self._found = classes.find_all(tree["classes"])
            tree = tree["value"]
        try:
            return self.build(tree)
        except UnloadableValue:
            raise
        except Exception as error:
            raise UnloadableValue(
                f"The stored value cannot be built ({type(error).__name__}): a class that it needs works differently "
                f"now. Put the class back as it was, or {classes.WAYS_OUT}.",
                missing="",
                reason=type(error).__name__,
            ) from error

    def build(self, tree: Any) -> Any:
        """The value of one node."""
        kind = type(tree)
        if kind is list:
            return [self.build(one) for one in tree]
        if kind is not dict:
            return tree
        tag = tree.get("$")
        if tag is None:
            return {key: self.build(one) for key, one in tree.items()}
        read = scalars.READ.get(tag)
        if read is not None:
            return read(tree)
        build = _TAGS.get(tag)
        if build is None:
            raise UnloadableValue(
                f"The stored value has the tag {tag!r}, which this version of jupyter_durable does not know. Use the "
                "version that wrote it, or a newer one.",
                missing=str(tag),
                reason="unknown tag",
            )
        return build(self, tree)

    def _class(self, tree: dict[str, Any]) -> tuple[Any, Plan | None]:
        """Today's class of a node, and how what was recorded becomes a value of it if the version is another one."""
        place = tree["class"]
        return self._found.things[place], self._found.plans.get(place)

    def _items(self, tree: Any) -> list[Any]:
        return [self.build(one) for one in tree]

    def _pairs(self, tree: Any) -> dict[Any, Any]:
        return {self.build(key): self.build(one) for key, one in tree}

    def _named(self, tree: dict[str, Any]) -> dict[str, Any]:
        return {name: self.build(one) for name, one in tree.items()}

    def _data(self, tree: dict[str, Any]) -> bytes:
        return self._read_blob(tree["blob"]) if "blob" in tree else b64decode(tree["v"])

    def _datetime(self, tree: dict[str, Any]) -> Any:
        return scalars.read_datetime(tree, self.build(tree["tz"]) if "tz" in tree else None)

    def _defaultdict(self, tree: dict[str, Any]) -> Any:
        return collections.defaultdict(self.build(tree["factory"]), self._pairs(tree["v"]))

    def _counter(self, tree: dict[str, Any]) -> Any:
        counter: collections.Counter[Any] = collections.Counter()
        counter.update(self._pairs(tree["v"]))
        return counter

    def _array(self, tree: dict[str, Any]) -> Any:
        return tables.decode_array(tree["$"], self._data(tree))

    def _frame(self, tree: dict[str, Any]) -> Any:
        return tables.decode_frame(tree["$"], self._data(tree))

    def _enum(self, tree: dict[str, Any]) -> Any:
        cls, plan = self._class(tree)
        if plan is not None:
            raise plan.failed(f"{plan.name} was an enum, which has no fields")
        names = [tree["v"]] if isinstance(tree["v"], str) else tree["v"]
        for name in names:
            if name not in cls.__members__:
                raise _changed(cls, f"member {name} is gone")
        if isinstance(tree["v"], str):
            return cls.__members__[tree["v"]]
        return cls(reduce(operator.or_, (cls.__members__[name].value for name in names), tree.get("rest", 0)))

    def _dataclass(self, tree: dict[str, Any]) -> Any:
        cls, plan = self._class(tree)
        if plan is not None:
            return migrated.build(cls, plan, Old(self._named(tree["v"])))
        value = object.__new__(cls)
        _set_state(value, self._named(tree["v"]))
        if not _same_fields(cls, tree["v"]):
            _fill_defaults(value, cls)
        return value

    def _pydantic(self, tree: dict[str, Any]) -> Any:
        cls, plan = self._class(tree)
        fields = self._named(tree["v"])
        if plan is not None:
            extra = self._pairs(tree["extra"]) if "extra" in tree else {}
            private = self._named(tree["private"]) if "private" in tree else {}
            return migrated.build(cls, plan, migrated.of_model(plan, fields, tree.get("set", fields), extra, private))
        known = cls.__pydantic_fields__
        told = tree.get("set", fields)
        gone = [name for name in fields if name in told and name not in known and not hasattr(cls, name)]
        if gone:
            raise _changed(cls, f"field {gone[0]} was removed")
        fields_set = set(tree["set"]) if "set" in tree else set(fields)
        for name, field in known.items():
            if name not in fields:
                if field.is_required():
                    raise _changed(cls, f"field {name} was added")
                fields[name] = field.get_default(call_default_factory=True)
        value = cls.__new__(cls)
        value.__setstate__(
            {
                "__dict__": fields,
                "__pydantic_fields_set__": fields_set,
                "__pydantic_extra__": self._pairs(tree["extra"]) if "extra" in tree else None,
                "__pydantic_private__": self._named(tree["private"]) if "private" in tree else None,
            }
        )
        return value

    def _subclass(self, tree: dict[str, Any]) -> Any:
        cls, plan = self._class(tree)
        base = _BASES[tree["base"]]
        if plan is not None:
            return migrated.build(
                cls, plan, Old(self._named(tree.get("state", {})), base=base, content=self._plain(tree))
            )
        value: Any
        if base is dict:
            value = dict.__new__(cls)
            for key, one in tree["v"]:
                dict.__setitem__(value, self.build(key), self.build(one))
        elif base is list:
            value = list.__new__(cls)
            list.extend(value, self._items(tree["v"]))
        elif base is set:
            value = set.__new__(cls)
            set.update(value, self._items(tree["v"]))
        elif base in (tuple, frozenset):
            value = base.__new__(cls, self._items(tree["v"]))
        elif base is bytearray:
            value = bytearray.__new__(cls)
            bytearray.extend(value, b64decode(tree["v"]))
        elif base is bytes:
            value = bytes.__new__(cls, b64decode(tree["v"]))
        else:
            value = base.__new__(cls, self.build(tree["v"]))
        if "state" in tree:
            _set_state(value, self._named(tree["state"]))
        return value

    def _plain(self, tree: dict[str, Any]) -> Any:
        """What an instance of a subclass held, as a value of its builtin base."""
        base, inner = _BASES[tree["base"]], tree["v"]
        if base is dict:
            return self._pairs(inner)
        if base in (list, tuple, set, frozenset):
            return base(self._items(inner))
        return base(b64decode(inner)) if base in (bytes, bytearray) else self.build(inner)

    def _error(self, tree: dict[str, Any]) -> Any:
        made_with = tuple(self._items(tree["args"]))
        if "members" in tree:
            made_with = (*made_with, [self.build(one) for one in tree["members"]])
        args = made_with[: tree["keeps"]] if "keeps" in tree else made_with
        cls, plan = self._class(tree)
        error = raised.rebuild(cls, made_with, args)
        state = self._named(tree.get("v", {}))
        raised.set_attributes(error, state if plan is None else migrated.attributes(plan, state))
        raised.mark_dropped(error, tree.get("dropped", {}))
        if "cause" in tree:
            error.__cause__ = self.build(tree["cause"])
        if "suppress" in tree:
            error.__suppress_context__ = True
        return error

    def _pickle(self, tree: dict[str, Any]) -> Any:
        value = leaf.load(self._data(tree), tree.get("python"), self._found)
        self.leaves.append(value)
        return value


def _set_state(value: Any, state: dict[str, Any]) -> None:
    for name, one in state.items():
        # Past `__setattr__` and properties of the class: a frozen dataclass refuses the ordinary way.
        object.__setattr__(value, name, one)


def _same_fields(cls: type[Any], stored: dict[str, Any]) -> bool:
    return all(name in stored for name in shapes.field_names(cls) or ())


def _fill_defaults(value: Any, cls: type[Any]) -> None:
    """Fields that a newer release of a package has added get their default, or the value cannot be built."""
    import dataclasses

    if shapes.is_users(cls.__module__):
        return  # its shape was compared: a field without a value was unset when it was stored
    for field in dataclasses.fields(cls):
        if hasattr(value, field.name):
            continue
        if field.default is not dataclasses.MISSING:
            object.__setattr__(value, field.name, field.default)
        elif field.default_factory is not dataclasses.MISSING:
            object.__setattr__(value, field.name, field.default_factory())


def _changed(cls: type[Any], reason: str) -> UnloadableValue:
    return UnloadableValue(
        f"The stored value is of {type_name(cls)}, which has changed since: {reason}. Put it back as it was, or "
        f"{classes.WAYS_OUT}.",
        missing=type_name(cls),
        reason=reason,
    )


_BASES: dict[str, Any] = {one.__name__: one for one in objects.BASES}

_TAGS: dict[str, Callable[[Builder, dict[str, Any]], Any]] = {
    "tuple": lambda self, tree: tuple(self._items(tree["v"])),
    "set": lambda self, tree: set(self._items(tree["v"])),
    "frozenset": lambda self, tree: frozenset(self._items(tree["v"])),
    "bytes": lambda self, tree: self._data(tree),
    "bytearray": lambda self, tree: bytearray(self._data(tree)),
    "dict": lambda self, tree: self._pairs(tree["v"]),
    "ordereddict": lambda self, tree: collections.OrderedDict(self._pairs(tree["v"])),
    "counter": Builder._counter,
    "defaultdict": Builder._defaultdict,
    "deque": lambda self, tree: collections.deque(self._items(tree["v"]), tree["maxlen"]),
    "datetime": Builder._datetime,
    "time": Builder._datetime,
    "slice": lambda self, tree: slice(*self._items(tree["v"])),
    "namespace": lambda self, tree: types.SimpleNamespace(**self._pairs(tree["v"])),
    "function": lambda self, tree: self._class(tree)[0],
    "class": lambda self, tree: self._class(tree)[0],
    "module": lambda _, tree: importlib.import_module(tree["v"]),
    "nparray": Builder._array,
    "npscalar": Builder._array,
    "dataframe": Builder._frame,
    "arrowtable": Builder._frame,
    "recordbatch": Builder._frame,
    "polars": Builder._frame,
    "enum": Builder._enum,
    "dataclass": Builder._dataclass,
    "pydantic": Builder._pydantic,
    "subclass": Builder._subclass,
    "error": Builder._error,
    "http": lambda _, tree: http.put_together(tree["v"]),
    "pickle": Builder._pickle,
    "omitted": lambda _, tree: Omitted(tree["type"]),
}
