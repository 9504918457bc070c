"""Describes the shape of a class: what must be equal for a stored instance to mean the same.

A shape is structural and equal in every process and Python version: names of fields with their annotations, names and
values of enum members, names of bases. Never bytecode, never an address. Methods count only for a class that declares
no field, and only those that have gone: a new helper method must not make a paid result unreadable.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import sys
import types
import typing
import weakref
from hashlib import blake2b
from typing import Any

Shape = dict[str, Any]
"""JSON: ``fields`` (name -> annotation), ``members`` (name -> digest of the value), ``bases``, ``methods``."""

_known: weakref.WeakKeyDictionary[type[Any], Shape] = weakref.WeakKeyDictionary()


def is_users(module_name: str) -> bool:
    """Whether a module is the notebook or a file of the user's, whose classes change from one run to the next.

    Classes of installed packages carry no shape: a new release with one more optional field must not make old
    histories unreadable. Their fields are compared with the stored ones when a value is rebuilt.
    """
    if module_name == "__main__":
        return True
    top = module_name.partition(".")[0]
    if top in sys.stdlib_module_names or top in ("builtins", "jupyter_durable"):
        return False
    path = getattr(sys.modules.get(module_name), "__file__", None) or ""
    return "site-packages" not in path and "dist-packages" not in path


def shape(cls: type[Any]) -> Shape:
    """The shape of a class.

    >>> @dataclasses.dataclass
    ... class Ticket:
    ...     id: int
    ...     tags: list[str] | None = None
    >>> shape(Ticket)
    {'fields': {'id': 'int', 'tags': 'None | list[str]'}}
    """
    found = _known.get(cls)
    if found is None:
        found = _known[cls] = _shape(cls)
    return found


def difference(recorded: Shape, current: Shape) -> str | None:
    """What keeps an instance of the recorded shape from being one of the current shape, as part of a sentence."""
    told: list[str] = []
    if "members" in recorded or "members" in current:
        old, new = recorded.get("members", {}), current.get("members", {})
        told += [f"member {name} is gone" for name in old if name not in new]
        told += [f"member {name} has another value" for name in old if name in new and new[name] != old[name]]
    elif recorded.get("fields", {}) != current.get("fields", {}):
        old, new = recorded.get("fields", {}), current.get("fields", {})
        told += [f"field {name} was removed" for name in old if name not in new]
        told += [f"field {name} was added" for name in new if name not in old]
        told += [
            f"field {name} was {old[name]} and is now {new[name]}"
            for name in old
            if name in new and new[name] != old[name]
        ]
    if recorded.get("bases", []) != current.get("bases", []):
        told.append(f"it inherited from {_listed(recorded)} and inherits now from {_listed(current)}")
    if not recorded.get("fields") and not recorded.get("members"):
        gone = [name for name in recorded.get("methods", []) if name not in current.get("methods", [])]
        told += [f"method {name} is gone" for name in gone]
    return "; ".join(told) or None


def shape_digest(cls: type[Any]) -> str:
    """Digest of the shape, for the identity of a class that is itself a value: eight bytes as hexadecimal digits."""
    return blake2b(_canonical(shape(cls)), digest_size=8).hexdigest()


def annotation_text(annotation: object) -> str:
    """An annotation as text that is equal for ``Optional[int]``, ``int | None``, ``"int|None"`` and ``None | int``."""
    if isinstance(annotation, str):
        try:
            return _of_tree(ast.parse(annotation, mode="eval").body)
        except (SyntaxError, ValueError):
            return annotation
    if annotation is None or annotation is types.NoneType:
        return "None"
    if isinstance(annotation, typing.ForwardRef):
        return annotation_text(annotation.__forward_arg__)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union or origin is types.UnionType:
        return _union(annotation_text(one) for one in args)
    if origin is typing.Annotated:
        return annotation_text(args[0])
    if origin is typing.Literal:
        return f"Literal[{', '.join(repr(one) for one in args)}]"
    if origin is not None and args:
        name = getattr(annotation, "__name__", None) or getattr(origin, "__qualname__", str(origin))
        if isinstance(origin, type) and origin.__module__ == "builtins":
            name = origin.__name__
        return f"{name}[{', '.join(annotation_text(one) for one in args)}]"
    if isinstance(annotation, list | tuple):
        return f"[{', '.join(annotation_text(one) for one in annotation)}]"
    if isinstance(annotation, type):
        return annotation.__qualname__.rpartition("<locals>.")[2]
    name = getattr(annotation, "__name__", None) or getattr(annotation, "_name", None)
    # A repr may hold an address, which is another one in the next process.
    return name if isinstance(name, str) else type(annotation).__qualname__


def field_names(cls: type[Any]) -> frozenset[str] | None:
    """Names of the fields of a dataclass or pydantic model; ``None`` for other classes."""
    if dataclasses.is_dataclass(cls):
        return frozenset(one.name for one in dataclasses.fields(cls))
    model_fields = cls.__dict__.get("__pydantic_fields__")
    return frozenset(model_fields) if isinstance(model_fields, dict) else None


def _shape(cls: type[Any]) -> Shape:
    made: Shape = {}
    if issubclass(cls, enum.Enum):
        made["members"] = {name: _value_digest(one.value) for name, one in cls.__members__.items()}
    else:
        fields = _fields(cls)
        if fields:
            made["fields"] = fields
        else:
            methods = sorted(name for name in vars(cls) if not name.startswith("__") and _is_method(vars(cls)[name]))
            if methods:
                made["methods"] = methods
    bases = [f"{one.__module__}.{one.__qualname__}" for one in cls.__bases__ if one not in (object, typing.Generic)]
    if bases:
        made["bases"] = bases
    return made


def _fields(cls: type[Any]) -> dict[str, str]:
    if dataclasses.is_dataclass(cls):
        return {one.name: annotation_text(one.type) for one in dataclasses.fields(cls)}
    model_fields = cls.__dict__.get("__pydantic_fields__")
    if isinstance(model_fields, dict):
        return {name: annotation_text(one.annotation) for name, one in model_fields.items()}
    found: dict[str, str] = {}
    names = getattr(cls, "_fields", None)
    if issubclass(cls, tuple) and isinstance(names, tuple):
        found = dict.fromkeys(names, "")
    for base in reversed(cls.__mro__):
        if base is object or not is_users(str(base.__module__)):
            continue
        try:
            annotations = inspect.get_annotations(base)
        except Exception:
            # From 3.14 on annotations are code, which may fail; then the names alone are not known either.
            annotations = {}
        for name, annotation in annotations.items():
            text = annotation_text(annotation)
            if not text.startswith("ClassVar"):
                found[name] = text
        for name in slot_names(base):
            found.setdefault(name, "")
    return found


def slot_names(cls: type[Any]) -> list[str]:
    """Names in the ``__slots__`` of this one class, as they are called on the instance."""
    slots = cls.__dict__.get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    stripped = cls.__name__.lstrip("_")
    return [
        f"_{stripped}{name}" if name.startswith("__") and not name.endswith("__") and stripped else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    ]


def _is_method(member: object) -> bool:
    return isinstance(member, types.FunctionType | classmethod | staticmethod | property)


def _value_digest(value: object) -> str:
    """Digest of an enum value: its repr is equal everywhere for the values that enums have; never the value itself."""
    text = repr(sorted(map(repr, value))) if isinstance(value, set | frozenset) else repr(value)
    if " at 0x" in text:
        text = type(value).__qualname__
    return blake2b(f"{type(value).__qualname__}:{text}".encode(errors="backslashreplace"), digest_size=4).hexdigest()


def _listed(recorded: Shape) -> str:
    return ", ".join(recorded.get("bases", [])) or "nothing"


def _canonical(value: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(value, order="sorted")


def _union(parts: Any) -> str:
    return " | ".join(sorted(set(parts)))


def _of_tree(node: ast.expr) -> str:
    """The text of an annotation's syntax tree, in the same form as that of the evaluated annotation."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            parts = f"{_of_tree(left)} | {_of_tree(right)}".split(" | ")
            return _union(parts)
        case ast.Subscript(value=value, slice=inner):
            name = _of_tree(value).rpartition(".")[2]
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if name == "Optional":
                return _union([*_of_tree(items[0]).split(" | "), "None"])
            if name == "Union":
                return _union([part for one in items for part in _of_tree(one).split(" | ")])
            if name == "Annotated":
                return _of_tree(items[0])
            if name == "Literal":
                return f"Literal[{', '.join(ast.unparse(one) for one in items)}]"
            if name in ("List", "Dict", "Set", "FrozenSet", "Tuple", "Type"):
                name = name.lower()
            return f"{name}[{', '.join(_of_tree(one) for one in items)}]"
        case ast.Constant(value=str(text)):
            return annotation_text(text)
        case ast.Attribute(attr=attribute):
            return attribute
        case ast.List(elts=elements):
            return f"[{', '.join(_of_tree(one) for one in elements)}]"
    return ast.unparse(node)
