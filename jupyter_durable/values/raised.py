"""Takes exceptions apart into class, arguments and attributes, and builds them again without their constructor.

Constructors of SDK errors want a live response (``openai.RateLimitError(message, *, response, body)``), so a pickle of
such an error can be written and never read. Only the constructor of the first builtin base is called here: it sets
what C code keeps (``errno``, ``code``, the members of a group) and takes exactly its own arguments.
"""

from __future__ import annotations

import io
from typing import Any

NOT_STORED = "__not_stored__"
"""Attribute of a rebuilt exception: names of what was not stored -> type."""

NOTE = "not stored in the log: "
"""How the note on a rebuilt exception begins."""

_C_FIELDS = ("name", "path", "name_from", "filename", "filename2")


def builtin_base(cls: type[BaseException]) -> type[BaseException]:
    """The first builtin class in the MRO."""
    return next(one for one in cls.__mro__ if one.__module__ == "builtins")


def builtin_args(error: BaseException) -> tuple[Any, ...]:
    """The arguments with which the builtin base made it; more than ``args`` where it keeps some elsewhere."""
    base = builtin_base(type(error))
    if _is_validation(type(error)):
        return validation_parts(error)
    if issubclass(base, OSError):
        # `args` of an OSError has lost the file names; its own `__reduce__` puts them back.
        return tuple(base.__reduce__(error)[1])
    return error.args


def attributes(error: BaseException) -> dict[str, Any]:
    """Everything else that the exception carries: ``__dict__`` (with its notes), slots, and fields kept by C code."""
    found = dict(error.__dict__)
    for cls in type(error).__mro__:
        if cls.__module__ == "builtins":
            continue
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if name not in ("__dict__", "__weakref__") and hasattr(error, name):
                found[name] = getattr(error, name)
    base = builtin_base(type(error))
    for name in _C_FIELDS:
        if name in base.__dict__ and getattr(error, name, None) is not None:
            found.setdefault(name, getattr(error, name))
    found.pop(NOT_STORED, None)
    notes = [one for one in found.get("__notes__", []) if not str(one).startswith(NOTE)]
    if "__notes__" in found:
        found["__notes__"] = notes
        if not notes:
            del found["__notes__"]
    return found


def rebuild(cls: type[BaseException], made_with: tuple[Any, ...], args: tuple[Any, ...]) -> BaseException:
    """An exception of this class, with its arguments and without its attributes (a pickle calls this by name).

    >>> str(rebuild(KeyError, ("a",), ("a",))), rebuild(OSError, (2, "no", "f.txt"), (2, "no")).filename
    ("'a'", 'f.txt')
    """
    if _is_validation(cls):
        return _validation(cls, *made_with)
    base = builtin_base(cls)
    error = base.__new__(cls, *made_with)
    base.__init__(error, *made_with)
    if error.args != args:
        error.args = args
    return error


def _is_validation(cls: type[BaseException]) -> bool:
    """Whether this is pydantic's, which has no constructor and one function to make it."""
    return cls.__name__ == "ValidationError" and cls.__module__.startswith("pydantic_core")


def validation_parts(error: Any) -> tuple[Any, ...]:
    """Title and details of a validation error; an input that is no plain value is kept as text."""
    plain = (str, int, float, bool, type(None))
    details = []
    for one in error.errors(include_url=False):
        kept = one["input"] if isinstance(one["input"], plain) else repr(one["input"])[:200]
        context = {name: value for name, value in one.get("ctx", {}).items() if isinstance(value, plain)}
        details.append(
            {"type": one["type"], "loc": tuple(one["loc"]), "msg": one["msg"], "input": kept, "ctx": context}
        )
    return error.title, details


def _validation(cls: Any, title: str, details: list[dict[str, Any]]) -> BaseException:
    import pydantic_core

    lines: list[Any] = []
    for one in details:
        line = {"type": one["type"], "loc": one["loc"], "input": one["input"], "ctx": one["ctx"]}
        try:
            cls.from_exception_data(title, [line])
        except (KeyError, TypeError):  # a type of the user's own, or one whose context was an exception
            line["type"] = pydantic_core.PydanticCustomError(one["type"], one["msg"].replace("{", "{{"))
        lines.append(line)
    made: BaseException = cls.from_exception_data(title, lines)
    return made


def set_attributes(error: BaseException, state: dict[str, Any]) -> None:
    """Give a rebuilt exception its attributes, past any property or ``__setattr__`` of its class."""
    for name, value in state.items():
        try:
            object.__setattr__(error, name, value)
        except (AttributeError, TypeError):
            error.__dict__[name] = value


def mark_dropped(error: BaseException, dropped: dict[str, str]) -> None:
    """Say on the exception itself which attributes it has lost; the note is shown where it is printed."""
    if "file" not in error.__dict__ and any(one.__name__ == "_TemporaryFileWrapper" for one in type(error).__mro__):
        # `urllib.error.HTTPError` looks up every missing attribute in the file that it is.
        error.__dict__["file"] = io.BytesIO()
    if dropped:
        error.__dict__[NOT_STORED] = dict(dropped)
        # Not `add_note`: it asks for `__notes__`, and the `__getattr__` of some classes (`urllib.error.HTTPError`)
        # raises then.
        note = NOTE + ", ".join(f"{name} ({kind})" for name, kind in dropped.items())
        error.__dict__.setdefault("__notes__", []).append(note)
