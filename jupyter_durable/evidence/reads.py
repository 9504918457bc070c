"""Digests of the notebook variables that a cell reads: by them an execution knows whether its inputs are the same."""

from __future__ import annotations

import builtins
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import pathlib
import re
import uuid
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from jupyter_durable.evidence.book import EvidenceBook
from jupyter_durable.evidence.place import is_code, is_ours, step_function
from jupyter_durable.values.digest import comparable

_FIXED = (
    str, bytes, int, float, complex, frozenset, range, slice, enum.Enum, re.Pattern, uuid.UUID, pathlib.PurePath,
    dt.date, dt.time, dt.timedelta, dt.tzinfo, decimal.Decimal, fractions.Fraction,
)  # fmt: skip


def inputs(
    namespace: Mapping[str, Any], names: Iterable[str], book: EvidenceBook
) -> tuple[dict[str, str], dict[str, Any]]:
    """Digests of the variables that a cell reads, as they are before its first line runs.

    Args:
        namespace: the notebook's variables.
        names: those that the cell reads; names that the namespace does not have are left out.
        book: evidence for functions and classes among them.

    Returns:
        Name -> digest, or ``?TYPE`` where not comparable; and those of the values that code can change in place.
    """
    digests: dict[str, str] = {}
    mutable: dict[str, Any] = {}
    for name in sorted(names):
        value = namespace.get(name, inputs)
        if value is inputs or value is getattr(builtins, name, inputs):
            continue
        if isinstance(value, ModuleType):
            digests[name] = f"module:{value.__name__}"
        elif step_function(value) is None and is_ours(value):
            continue  # our own words; what they are called today is no business of a history
        elif is_code(value):
            bound = book.bound_digest(value)
            digests[name] = "code:" + book.of(value, at_start=True).digest + (f":{bound}" if bound else "")
        else:
            digests[name] = comparable(value)
            if not digests[name].startswith("?") and _is_mutable(value):
                mutable[name] = value
    return digests, mutable


def _is_mutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_is_mutable(each) for each in value)
    if value is None or isinstance(value, _FIXED):
        return False
    parameters = getattr(type(value), "__dataclass_params__", None)
    frozen_model = dict(getattr(type(value), "model_config", None) or {}).get("frozen", False)
    return not (frozen_model or (dataclasses.is_dataclass(value) and getattr(parameters, "frozen", False)))
