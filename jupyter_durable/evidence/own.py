"""What one function or class says by itself: a digest of its code, and the names through which it reaches further."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Container, Iterator
from types import CodeType, FunctionType
from typing import Any

import msgspec

from jupyter_durable.source import (
    canonical,
    class_tree,
    dotted_reads,
    function_tree,
    names_mutated,
    names_read,
    params_mutated,
    text_digest,
)
from jupyter_durable.values.digest import comparable

SIZE = 12
"""Characters of a digest of evidence: 72 bits tell apart what one notebook ever holds."""


_INSIDE = ("__func__", "fget", "fset", "func", "__wrapped__", "__durable_step__")
"""Where static methods, class methods, properties, cached ones and steps keep their function."""


class Own(msgspec.Struct, frozen=True):
    """One function or class, without what it reaches."""

    digest: str
    reads: frozenset[str] = frozenset()
    """Global names that it reads when it runs."""
    dotted: frozenset[str] = frozenset()
    """The same with the attributes taken, such as ``helpers.clean``."""
    changes: frozenset[str] = frozenset()
    """Names outside of it that it plainly rebinds or changes in place: globals, and variables of its closure."""
    keeps: frozenset[str] = frozenset()
    """Parameters that it changes in place; of interest where the default is kept from call to call."""


def short(text: str) -> str:
    """Digest of a text in evidence's length."""
    return text_digest(text, SIZE)


def of_function(function: FunctionType) -> Own:
    """Read a function from its source; without source (made by ``exec``), from its compiled form.

    The compiled form differs between versions of Python, so such a function counts as changed under another one.
    """
    code, namespace = function.__code__, function.__globals__
    tree = function_tree(code)
    if tree is None:
        return _of_compiled(code)
    free = set(code.co_freevars)
    return Own(
        digest=short(canonical(tree)),
        reads=frozenset(names_read(tree, namespace) - free),
        dotted=frozenset(dotted_reads(tree)),
        changes=frozenset(names_mutated(tree, certain=True)),
        keeps=frozenset(params_mutated(tree)),
    )


def of_class(cls: type) -> Own:
    """Read a class from its source if one of its methods tells where that is, and else from its attributes."""
    methods = dict(_methods(cls))
    for name, method in methods.items():
        code = method.__code__
        if code.co_qualname == f"{cls.__qualname__}.{name}":
            tree = class_tree(code.co_filename, cls.__qualname__, code.co_firstlineno)
            if tree is not None:
                namespace: Container[str] = method.__globals__
                return Own(
                    digest=short(canonical(tree)),
                    reads=frozenset(names_read(tree, namespace)),
                    dotted=frozenset(dotted_reads(tree)),
                    changes=frozenset(names_mutated(tree, certain=True)),
                )
    made = [of_function(method) for method in methods.values()]
    lines = [cls.__qualname__, *(base.__qualname__ for base in cls.__bases__), *_attributes(cls)]
    lines += [f"{name}={own.digest}" for name, own in zip(methods, made, strict=True)]
    return Own(
        digest=short("\n".join(lines)),
        reads=frozenset().union(*(own.reads for own in made)),
        dotted=frozenset().union(*(own.dotted for own in made)),
        changes=frozenset().union(*(own.changes for own in made)),
    )


def globals_of(cls: type) -> dict[str, Any] | None:
    """The globals that the methods of a class see."""
    return next((method.__globals__ for _, method in _methods(cls)), None)


def _methods(cls: type) -> Iterator[tuple[str, FunctionType]]:
    """Functions written in a class; not those that a decorator has generated."""
    for name, value in sorted(vars(cls).items()):
        for each in (value, *(getattr(value, part, None) for part in _INSIDE)):
            inner = inspect.unwrap(each) if isinstance(each, FunctionType) else each
            if isinstance(inner, FunctionType) and inner.__code__.co_filename != "<string>":
                yield name, inner
                break


def _attributes(cls: type) -> Iterator[str]:
    """Members, annotations, fields and data of a class, as lines."""
    if issubclass(cls, enum.Enum):
        yield from (f"{name}={comparable(member.value)}" for name, member in cls.__members__.items())
        return
    for name, annotation in inspect.get_annotations(cls).items():
        yield f"{name}:{annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)}"
    for name, field in sorted(getattr(cls, "__pydantic_fields__", {}).items()):
        yield f"{name}={comparable(field.default)}"
    for name, field in sorted(getattr(cls, "__dataclass_fields__", {}).items()):
        yield f"{name}={getattr(field.default_factory, '__qualname__', '')}"
    for name, value in sorted(vars(cls).items()):
        if not name.startswith(("__", "_abc_")) and not callable(getattr(value, "__get__", None)):
            yield f"{name}={comparable(value)}"


def _of_compiled(code: CodeType) -> Own:
    names = frozenset(name for each in _nested(code) for name in each.co_names)
    return Own(short(_text(code)), reads=names)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _text(value: Any) -> str:
    """A text that is equal for equal compiled code; constants of sets are sorted, as their order is not stable."""
    match value:
        case CodeType():
            parts = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags)
            names = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
            constants = ",".join(_text(each) for each in value.co_consts)
            return f"code({parts}{names}{value.co_code.hex()}[{constants}])"
        case tuple():
            return "(" + ",".join(_text(each) for each in value) + ")"
        case frozenset():
            return "{" + ",".join(sorted(_text(each) for each in value)) + "}"
        case _:
            return ascii(value)
