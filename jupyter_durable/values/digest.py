"""Digests values, so that a call is known again in another process: the identity of a step's arguments.

The digest is canonical and structural. It is equal for equal values in every process, with every hash seed, on every
Python version; the order of sets and dicts does not count, the types do (``1``, ``1.0`` and ``True`` are three values).
It is never taken of a pickle: the bytes of a pickle depend on which strings happen to be the same object.
"""

from __future__ import annotations

import collections
import types
from binascii import b2a_base64
from hashlib import blake2b
from typing import Any

import msgspec

from jupyter_durable.errors import Undigestable
from jupyter_durable.values import objects
from jupyter_durable.values.canonical import Canon
from jupyter_durable.values.refused import type_name
from jupyter_durable.values.scalars import INT_HIGH, INT_LOW

_json = msgspec.json.Encoder(order="sorted").encode
_URLSAFE = bytes.maketrans(b"+/", b"-_")
_fresh = blake2b(digest_size=16)


def digest(value: object, root: str = "value") -> str:
    """The digest of a value: 22 characters, safe in URLs and file names.

    Args:
        value: what to digest; for a call, the list of its arguments.
        root: how the value is called in messages.

    Raises:
        Undigestable: a part has no digest that would be equal in another process (a lock, a client, a generator).

    >>> digest({"a": 1, "b": {1, 2}}) == digest({"b": {2, 1}, "a": 1})
    True
    >>> len({digest(1), digest(1.0), digest(True), digest([1]), digest((1,))})
    5
    """
    try:
        kind = type(value)
        if kind is tuple:
            if _all_plain(value, 0):
                return _text(b"T" + _json(value))
        elif _is_plain(value, kind, 0):
            return _text(b"J" + _json(value))
    except UnicodeEncodeError:
        pass
    try:
        return _text(canon(root).bytes_of(value))
    except RecursionError:
        raise Undigestable(
            f"{root} is nested too deep for a digest. Pass a flatter value, or give the step a `key=`.",
            path=root,
            type=type_name(type(value)),
        ) from None


def comparable(value: object, max_nodes: int = 50_000, max_bytes: int = 16_000_000) -> str:
    """The digest of a value that is small and still, else ``?TypeName``. Type and size decide, never a clock.

    Args:
        value: a variable of the notebook.
        max_nodes: objects that are looked at.
        max_bytes: bytes of texts, byte strings, arrays and frames.

    >>> import threading
    >>> comparable([1, 2]) == digest([1, 2]), comparable(threading.Lock()), comparable(bytes(20_000_000))
    (True, '?lock', '?bytes')
    """
    if not _is_small(value, max_nodes, max_bytes):
        return f"?{type(value).__qualname__}"
    try:
        return digest(value)
    except Undigestable:
        return f"?{type(value).__qualname__}"
    except Exception:
        # An object of somebody else's class may raise anything when it is looked at; that makes it not comparable.
        return f"?{type(value).__qualname__}"


def canon(root: str = "value") -> Canon:
    """Makes the bytes that digests are taken of."""
    return Canon(root, _plain_bytes)


def _text(canonical: bytes) -> str:
    made = _fresh.copy()  # cheaper than making one
    made.update(canonical)
    return b2a_base64(made.digest(), newline=False)[:22].translate(_URLSAFE).decode()


def _plain_bytes(value: object) -> bytes | None:
    """The canonical bytes of a plain value or plain tuple, else ``None``; the same ones that `digest` takes."""
    kind = type(value)
    try:
        if kind is tuple:
            return b"T" + _json(value) if _all_plain(value, 0) else None
        return b"J" + _json(value) if _is_plain(value, kind, 0) else None
    except UnicodeEncodeError:
        return None


_DEPTH = 60
"""Deeper values go the general way: a cycle must end, and where the way changes must depend on the value alone."""


def _is_plain(value: Any, kind: type[Any], depth: int) -> bool:
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return bool(INT_LOW <= value <= INT_HIGH)
    if kind is float:
        return bool(value - value == 0.0)
    if depth > _DEPTH:
        return False
    if kind is dict:
        for key in value:
            if type(key) is not str:
                return False
        return _all_plain(value.values(), depth)
    return kind is list and _all_plain(value, depth)


def _all_plain(values: Any, depth: int) -> bool:
    for item in values:
        kind = type(item)
        if kind is str or item is None or kind is bool:
            continue
        if kind is int:
            if not INT_LOW <= item <= INT_HIGH:
                return False
        elif not _is_plain(item, kind, depth + 1):
            return False
    return True


def _is_small(value: object, max_nodes: int, max_bytes: int) -> bool:
    nodes, size = 0, 0
    waiting: list[Any] = [value]
    seen: set[int] = set()
    kept: list[Any] = []
    while waiting:
        one = waiting.pop()
        nodes += 1
        size += _size(one)
        if nodes > max_nodes or size > max_bytes:
            return False
        if isinstance(one, str | bytes | bytearray | int | float | type):
            continue
        if id(one) in seen:
            continue
        seen.add(id(one))
        kept.append(one)
        if isinstance(one, dict):
            nodes += len(one)
            if nodes > max_nodes:
                return False
            waiting.extend(one.values())
            waiting.extend(key for key in one if not isinstance(key, str) or len(key) > 100)
        elif isinstance(one, list | tuple | set | frozenset | collections.deque):
            if nodes + len(one) > max_nodes:
                return False
            waiting.extend(one)
        elif not isinstance(one, types.ModuleType) and type(one).__module__.partition(".")[0] not in _MEASURED:
            waiting.append(objects.state(one, type(one)))
    return True


_MEASURED = ("numpy", "pandas", "pyarrow", "polars")
"""Packages whose values say their size themselves."""


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    top = type(value).__module__.partition(".")[0]
    if top in ("numpy", "pyarrow"):
        return int(getattr(value, "nbytes", 0) or 0)
    if top == "pandas":
        used = getattr(value, "memory_usage", None)
        total = used(deep=False) if used is not None else 0
        return int(total if isinstance(total, int) else getattr(total, "sum", lambda: 0)())
    if top == "polars":
        return int(getattr(value, "estimated_size", lambda: 0)())
    return 0
