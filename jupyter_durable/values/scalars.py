"""Immutable values that JSON has no form for: how each is written and read, side by side.

They have no parts that could fail and no identity that could be lost, so nothing has to be known but the value.
"""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import math
import pathlib
import re
import uuid
import zoneinfo
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

INT_LOW, INT_HIGH = -(2**63), 2**64 - 1
"""Whole numbers that every reader of JSON in this house can hold."""


def write_int(value: int) -> Any:
    """A number, or its hexadecimal digits if it is too large (decimal ones are limited by Python)."""
    return value if INT_LOW <= value <= INT_HIGH else {"$": "int", "v": hex(value)}


def write_float(value: float) -> Any:
    """A number, or ``nan``, ``inf``, ``-inf``."""
    return value if math.isfinite(value) else {"$": "float", "v": repr(value)}


def write_str(value: str) -> Any:
    """A text, or its bytes if it has half a surrogate pair in it, as file names may."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"$": "str", "v": b64encode(value.encode("utf-8", "surrogatepass")).decode()}
    return value


def read_str(tree: Any) -> str:
    """The inverse of `write_str`."""
    return tree if isinstance(tree, str) else b64decode(tree["v"]).decode("utf-8", "surrogatepass")


def write_datetime(value: dt.datetime | dt.time, tz: Any) -> Any:
    """A point in time, or a time of day; ``tz`` is the tree of its time zone."""
    kind = "datetime" if isinstance(value, dt.datetime) else "time"
    made: dict[str, Any] = {"$": kind, "v": value.replace(tzinfo=None, fold=0).isoformat()}
    if value.fold:
        made["fold"] = 1
    if tz is not None:
        made["tz"] = tz
    return made


def read_datetime(tree: dict[str, Any], tz: dt.tzinfo | None) -> Any:
    """The inverse of `write_datetime`."""
    cls = dt.datetime if tree["$"] == "datetime" else dt.time
    naive: Any = cls.fromisoformat(tree["v"])
    return naive.replace(fold=tree.get("fold", 0), tzinfo=tz)


def _write_timezone(value: dt.timezone) -> Any:
    parts: Any = value
    offset, *name = parts.__getinitargs__()
    made = {"$": "timezone", "v": [offset.days, offset.seconds, offset.microseconds]}
    if name:
        made["name"] = write_str(name[0])
    return made


def _read_timezone(tree: dict[str, Any]) -> Any:
    offset = dt.timedelta(*tree["v"])
    return dt.timezone(offset, read_str(tree["name"])) if "name" in tree else dt.timezone(offset)


def _write_path(value: pathlib.PurePath) -> Any:
    return {"$": "path", "kind": type(value).__name__, "v": write_str(str(value))}


def _write_pattern(value: re.Pattern[Any]) -> Any:
    made: dict[str, Any] = {"$": "pattern", "flags": value.flags}
    if isinstance(value.pattern, bytes):
        return {**made, "bytes": b64encode(value.pattern).decode()}
    return {**made, "v": write_str(value.pattern)}


def _read_pattern(tree: dict[str, Any]) -> Any:
    return re.compile(b64decode(tree["bytes"]) if "bytes" in tree else read_str(tree["v"]), tree["flags"])


def _read_number(tree: Any) -> Any:
    if isinstance(tree, dict):
        return int(tree["v"], 16) if tree["$"] == "int" else float(tree["v"])
    return tree


WRITE: dict[type[Any], Callable[[Any], Any]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    int: write_int,
    float: write_float,
    complex: lambda value: {"$": "complex", "v": [write_float(value.real), write_float(value.imag)]},
    type(Ellipsis): lambda _: {"$": "ellipsis"},
    type(NotImplemented): lambda _: {"$": "notimplemented"},
    dt.date: lambda value: {"$": "date", "v": value.isoformat()},
    dt.timedelta: lambda value: {"$": "timedelta", "v": [value.days, value.seconds, value.microseconds]},
    dt.timezone: _write_timezone,
    decimal.Decimal: lambda value: {"$": "decimal", "v": str(value)},
    fractions.Fraction: lambda value: {"$": "fraction", "v": [write_int(one) for one in value.as_integer_ratio()]},
    uuid.UUID: lambda value: {"$": "uuid", "v": value.hex},
    pathlib.PurePosixPath: _write_path,
    pathlib.PureWindowsPath: _write_path,
    pathlib.PosixPath: _write_path,
    pathlib.WindowsPath: _write_path,
    range: lambda value: {"$": "range", "v": [write_int(one) for one in (value.start, value.stop, value.step)]},
    re.Pattern: _write_pattern,
}
"""How the exact types are written."""

READ: dict[str, Callable[[dict[str, Any]], Any]] = {
    "int": _read_number,
    "float": _read_number,
    "str": read_str,
    "complex": lambda tree: complex(*map(_read_number, tree["v"])),
    "ellipsis": lambda _: ...,
    "notimplemented": lambda _: NotImplemented,
    "date": lambda tree: dt.date.fromisoformat(tree["v"]),
    "timedelta": lambda tree: dt.timedelta(*tree["v"]),
    "timezone": _read_timezone,
    "zoneinfo": lambda tree: zoneinfo.ZoneInfo(tree["v"]),
    "decimal": lambda tree: decimal.Decimal(tree["v"]),
    "fraction": lambda tree: fractions.Fraction(*map(_read_number, tree["v"])),
    "uuid": lambda tree: uuid.UUID(tree["v"]),
    "path": lambda tree: getattr(pathlib, tree["kind"])(read_str(tree["v"])),
    "range": lambda tree: range(*map(_read_number, tree["v"])),
    "pattern": _read_pattern,
}
"""How the tags are read."""
