"""Makes values of today's classes from the fields of recorded ones, by the migrations that a plan holds.

Neither constructors nor validators run, as for every value that is replayed: they would change what was changed
already. So the fields must be all there, and be those of the class.
"""

from __future__ import annotations

import dataclasses
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from jupyter_durable.values import lineage, objects
from jupyter_durable.values.digest import canon
from jupyter_durable.values.migrations import Fields, Plan

_ABSENT: Any = object()


class Old(NamedTuple):
    """A value as it was recorded; what is inside it is of today's classes already."""

    fields: Fields
    private: Mapping[str, Any] = MappingProxyType({})
    """Private attributes of a pydantic model."""
    unset: frozenset[str] = frozenset()
    """Fields of a pydantic model that had their default."""
    base: type[Any] | None = None
    """The builtin class that it inherited from, if any."""
    content: Any = None
    """What it held as such, as a plain value."""


def of_model(plan: Plan, fields: Fields, told: Iterable[str], extra: Fields, private: Fields) -> Old:
    """The recorded state of a pydantic model; what it keeps beside fields and extras are cached properties."""
    kept = {name: one for name, one in fields.items() if not plan.fields or name in plan.fields}
    return Old({**extra, **kept}, private, frozenset(kept).difference(told))


def build(cls: type[Any], plan: Plan, old: Old) -> Any:
    """A value of today's class.

    Raises:
        UnloadableValue: a migration raised, or its fields do not make the class.
    """
    old = _without_caches(cls, old)
    recorded = _recorded(plan, old)
    if old.base is tuple and len(plan.fields) == len(old.content):
        named = {**dict(zip(plan.fields, old.content, strict=True)), **old.fields}
        old = old._replace(fields=named, base=None, content=None)
    if _is_named_tuple(cls):
        value = _named_tuple(cls, plan, old)
    else:
        base = next((one for one in objects.BASES if issubclass(cls, one)), None)
        if base is not old.base:
            raise plan.failed(f"the content that {plan.name} had as {_kind(old.base)} has no place in {plan.today}")
        value = _empty(cls, plan) if base is None else _with_content(cls, base, old.content)
        _fill(value, cls, plan, old)
    _remember(value, recorded)
    return value


def fill(value: Any, plan: Plan, old: Old) -> None:
    """Give a value that is made already, and empty, its fields.

    Raises:
        UnloadableValue: see `build`.
    """
    cls = type(value)
    old = _without_caches(cls, old)
    # What C keeps (the items of a list) is not among the fields, so these alone would not tell two values apart.
    recorded = None if objects.has_hidden_state(cls) else _recorded(plan, old)
    _fill(value, cls, plan, old)
    _remember(value, recorded)


def attributes(plan: Plan, recorded: Fields) -> Fields:
    """Today's attributes of an exception."""
    return plan.apply(recorded)


def _without_caches(cls: type[Any], old: Old) -> Old:
    """A cached property was computed of the old fields: it is computed again."""
    return old._replace(fields={name: one for name, one in old.fields.items() if not objects.is_cache(cls, name)})


def _empty(cls: type[Any], plan: Plan) -> Any:
    if objects.has_hidden_state(cls):
        raise plan.failed(f"{plan.today} keeps something that is no field (it is written in C)")
    return object.__new__(cls)


def _with_content(cls: type[Any], base: Any, content: Any) -> Any:
    value = base.__new__(cls) if base in (dict, list, set, bytearray) else base.__new__(cls, content)
    if base in (dict, set):
        base.update(value, content)
    elif base in (list, bytearray):
        base.extend(value, content)
    return value


def _kind(base: type[Any] | None) -> str:
    return "an object" if base is None else base.__name__


def _fill(value: Any, cls: type[Any], plan: Plan, old: Old) -> None:
    if hasattr(cls, "__pydantic_fields__") and not dataclasses.is_dataclass(cls):
        _fill_model(value, cls, plan, old)
        return
    # What a dataclass keeps beside its fields (a cached property, what `__post_init__` has set) goes along.
    beside = {name for name in old.fields if name not in plan.fields} if plan.fields else set()
    made = plan.apply(old.fields)
    known = _fields(cls)
    if known is not None:
        _check_names(plan, made, known, beside)
        left_unset = {name for name in plan.fields if name not in old.fields}
        made = _with_defaults(plan, made, known, left_unset, value)
    for name, one in made.items():
        try:
            object.__setattr__(value, name, one)
        except (AttributeError, TypeError):
            raise plan.failed(f"{plan.today} has no place for `{name}`") from None


def _fields(cls: type[Any]) -> dict[str, Callable[[Any], Any]] | None:
    """Names of the fields of a dataclass or attrs class, with what gives the default for an instance."""
    if dataclasses.is_dataclass(cls):
        return {one.name: _default_of(one.default, one.default_factory) for one in dataclasses.fields(cls)}
    attrs: Any = getattr(cls, "__attrs_attrs__", None)
    return None if attrs is None else {one.name: _attrs_default(one.default) for one in attrs}


def _default_of(default: Any, factory: Any) -> Callable[[Any], Any]:
    if default is not dataclasses.MISSING:
        return lambda _: default
    return (lambda _: _ABSENT) if factory is dataclasses.MISSING else lambda _: factory()


def _attrs_default(default: Any) -> Callable[[Any], Any]:
    attr: Any = sys.modules["attr"]
    if default is attr.NOTHING:
        return lambda _: _ABSENT
    if not isinstance(default, attr.Factory):
        return lambda _: default
    factory: Any = default.factory
    # One that takes the instance would see it half made.
    return (lambda _: _ABSENT) if default.takes_self else lambda _: factory()


def _check_names(plan: Plan, made: Fields, known: Iterable[str], beside: Iterable[str]) -> None:
    unknown = [name for name in made if name not in known and name not in beside]
    if unknown:
        raise plan.failed(f"it returned `{unknown[0]}`, and {plan.today} has no such field")


def _with_defaults(
    plan: Plan, made: Fields, known: dict[str, Callable[[Any], Any]], left_unset: Iterable[str], value: Any
) -> Fields:
    whole = dict(made)
    for name, default in known.items():
        if name in made:
            continue
        one = default(value)
        if one is not _ABSENT:
            whole[name] = one
        elif name not in left_unset:
            raise plan.failed(f"it returned no `{name}`, which {plan.today} needs")
    return whole


# Named tuples.


def _is_named_tuple(cls: type[Any]) -> bool:
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def _named_tuple(cls: Any, plan: Plan, old: Old) -> Any:
    if old.base is not None:
        raise plan.failed(f"what {plan.name} held has no names, and {plan.today} is a named tuple")
    defaults = {name: _default_of(cls._field_defaults.get(name, dataclasses.MISSING), dataclasses.MISSING)
                for name in cls._fields}  # fmt: skip
    made = plan.apply(old.fields)
    beside = {name for name in old.fields if name not in plan.fields}
    _check_names(plan, made, defaults, beside)
    whole = _with_defaults(plan, made, defaults, (), None)
    value = tuple.__new__(cls, [whole[name] for name in cls._fields])
    for name in whole.keys() - defaults.keys():
        object.__setattr__(value, name, whole[name])
    return value


# Pydantic models.


def _fill_model(value: Any, cls: Any, plan: Plan, old: Old) -> None:
    known = cls.__pydantic_fields__
    made = plan.apply(old.fields)
    takes_more = cls.model_config.get("extra") == "allow"
    if not takes_more:
        _check_names(plan, made, known, ())
    told = {name for name in made if name not in old.unset}
    fields = {name: one for name, one in made.items() if name in known}
    for name, field in known.items():
        if name in fields:
            continue
        if field.is_required():
            raise plan.failed(f"it returned no `{name}`, which {plan.today} needs")
        fields[name] = field.get_default(call_default_factory=True)
    _check_types(cls, plan, {name: one for name, one in made.items() if one is not old.fields.get(name, _ABSENT)})
    private = None
    if cls.__private_attributes__:
        private = {name: one.get_default() for name, one in cls.__private_attributes__.items()}
        private.update({name: one for name, one in old.private.items() if name in private})
        undefined: Any = sys.modules["pydantic_core"].PydanticUndefined
        private = {name: one for name, one in private.items() if one is not undefined}
    value.__setstate__(
        {
            "__dict__": fields,
            "__pydantic_fields_set__": told,
            "__pydantic_extra__": {name: one for name, one in made.items() if name not in known}
            if takes_more
            else None,
            "__pydantic_private__": private,
        }
    )


_adapters: weakref.WeakKeyDictionary[type[Any], dict[str, Any]] = weakref.WeakKeyDictionary()


def _check_types(cls: Any, plan: Plan, changed: Fields) -> None:
    """What a migration has made anew is of the type that the model says; a dict is no model."""
    import pydantic

    adapters = _adapters.setdefault(cls, {})
    for name, one in changed.items():
        if name not in cls.__pydantic_fields__:
            continue
        if name not in adapters:
            try:
                adapters[name] = pydantic.TypeAdapter(cls.__pydantic_fields__[name].annotation)
            except pydantic.errors.PydanticUserError:
                adapters[name] = None  # a type that pydantic does not know and the model takes as it is
        if adapters[name] is None:
            continue
        try:
            adapters[name].validate_python(one, strict=True)
        except pydantic.ValidationError as error:
            raise plan.failed(f"its `{name}` is not of the field's type ({error.errors()[0]['type']})") from None


# What digests see.


def _recorded(plan: Plan, old: Old) -> bytes | None:
    """The canonical bytes of the recorded value, taken before a migration can change what is inside it."""
    state = {**old.private, **old.fields}
    try:
        return canon().of_parts(plan.canonical, state, old.base, old.content)
    except Exception:
        # A part has no digest, or cannot even be looked at: then the value has none either.
        return None


def _remember(value: Any, recorded: bytes | None) -> None:
    if recorded is None:
        return
    try:
        now = canon().bytes_of(value)
    except Exception:
        return
    lineage.remember(value, recorded, now)
