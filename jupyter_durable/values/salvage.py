"""Saves what can be saved of a value that cannot be stored: it is paid for, and a person will want to see it.

The projection is plain JSON; what has no place in it is named (``{"$": "omitted", "type": ...}``). It never raises,
and it never makes the value look like something that it is not: it is shown to people and never returned by itself.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from jupyter_durable.values.codec import Encoded, encode
from jupyter_durable.values.refused import refusal, type_name
from jupyter_durable.values.scalars import INT_HIGH, INT_LOW
from jupyter_durable.values.secrets import has_secret, redact

SIZE = 1_000_000
"""Bytes of a salvage at most."""

_DEPTH = 12
_TEXT = 100_000
_REPR = 2_000
_SECRET_NAMES = ("api_key", "apikey", "password", "passwd", "secret", "token", "authorization", "cookie", "credential")


def salvage(value: object) -> Encoded:
    """A plainer form of a value. Never raises.

    >>> import threading
    >>> salvage({"id": 31, "lock": threading.Lock()}).text
    b'{"id":31,"lock":{"$":"omitted","type":"_thread.lock"}}'
    """
    try:
        text = msgspec.json.encode(_Projection().of(value, 0))
        if len(text) > SIZE:
            text = msgspec.json.encode({"$": "omitted", "type": type_name(type(value)), "text": _repr(value)})
    except Exception:
        text = msgspec.json.encode({"$": "omitted", "type": type(value).__qualname__})
    # The mark stands for "tagged", so that nobody takes a placeholder for a dict of the user's.
    return Encoded("tagged" if b'"$"' in text else "json", text, {})


class _Projection:
    def __init__(self) -> None:
        self.left = SIZE
        self.open: set[int] = set()

    def of(self, value: Any, depth: int) -> Any:
        self.left -= 8
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return f"{type(value).__qualname__}.{value.name}"
        if isinstance(value, int):
            return int(value) if INT_LOW <= value <= INT_HIGH else hex(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else repr(float(value))
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, bytes | bytearray):
            return self._text(base64.b64encode(bytes(value[:_TEXT])).decode())
        if refusal(value) is not None or depth > _DEPTH or self.left <= 0 or id(value) in self.open:
            return self._omitted(value)
        self.open.add(id(value))
        try:
            return self._inside(value, depth)
        except Exception:
            return self._omitted(value)
        finally:
            self.open.discard(id(value))

    def _inside(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._object(dict(value.items()), depth)
        if isinstance(value, list | tuple | set | frozenset):
            return self._list(value, depth)
        if isinstance(value, BaseException):
            return {"type": type_name(type(value)), "message": self._text(str(value))}
        if callable(value):
            return self._omitted(value)
        for name in ("model_dump", "to_dict", "tolist", "_asdict"):
            method = getattr(type(value), name, None)
            if callable(method):
                with contextlib.suppress(Exception):
                    return self.of(getattr(value, name)(), depth + 1)
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            return self._object({name: getattr(value, name) for name in names if hasattr(value, name)}, depth)
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict) and own:
            return self._object({name: one for name, one in own.items() if not name.startswith("_")}, depth)
        text = encode(value)
        if len(text.text) < _REPR and b"pickle" not in text.text:
            return self._text(str(value))
        return self._omitted(value)

    def _object(self, value: dict[Any, Any], depth: int) -> Any:
        made = {}
        for key, one in value.items():
            if self.left <= 0:
                made["..."] = "more"
                break
            name = redact(key if isinstance(key, str) else str(key))[:200]
            name = name.encode("utf-8", "replace").decode()
            secret = isinstance(one, str) and any(part in name.lower() for part in _SECRET_NAMES)
            made["$ " if name == "$" else name] = "[redacted]" if secret else self.of(one, depth + 1)
        return made

    def _list(self, value: Any, depth: int) -> Any:
        made: list[Any] = []
        for one in value:
            if self.left <= 0:
                made.append("... more")
                break
            made.append(self.of(one, depth + 1))
        return made

    def _text(self, text: str) -> str:
        text = redact(text[:_TEXT]).encode("utf-8", "replace").decode()
        self.left -= len(text)
        return text

    def _omitted(self, value: Any) -> dict[str, Any]:
        return {"$": "omitted", "type": type_name(type(value))}


def _repr(value: object) -> str:
    try:
        text = repr(value)[:_REPR]
    except Exception:
        return ""
    return "" if has_secret(text) else text.encode("utf-8", "replace").decode()
