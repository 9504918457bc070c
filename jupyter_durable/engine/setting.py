"""The notebook variables that have another value on a branch, as `fork` sets them: how they are kept, set and put back.

A value is decoded anew for each execution, so that what the cell does to it stays with that execution.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import msgspec

from jupyter_durable.comparing import text_of
from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import Payload
from jupyter_durable.log.base import EventLog
from jupyter_durable.values import decode, encode_verified
from jupyter_durable.values.secrets import has_secret

LARGEST = 64 * 1024
"""Bytes of JSON text of one value."""

_NOTHING = object()


def encoded(name: str, value: Any) -> Payload:
    """The stored form of a value that is set for a branch.

    Raises:
        UsageError: it is too large, or looks like a secret.
        UnstorableValue: it cannot be stored.
    """
    stored, _ = encode_verified(value)
    if stored.blobs or len(stored.text) > LARGEST:
        raise UsageError(f"The value of `{name}` is too large to be set for a branch: it may have {LARGEST} bytes.")
    if has_secret(stored.text.decode()):
        raise UsageError(
            f"The value of `{name}` looks like a key or a password. It would be stored in clear, so nothing was done."
        )
    return Payload(codec=stored.codec, data=msgspec.Raw(stored.text))


def decoded(values: Mapping[str, Payload], log: EventLog) -> dict[str, Any]:
    """Values of their own, of what is stored in the first line of a branch."""
    return {
        name: decode(payload.codec, bytes(payload.data), log.read_blob)  # type: ignore[arg-type]
        for name, payload in values.items()
    }


def shown(values: Mapping[str, Payload]) -> str:
    """What was set, as people read it. Loads nothing.

    >>> shown({"topic": Payload(data=msgspec.Raw(b'"tides"'))})
    '`topic` = "tides"'
    """
    return ", ".join(f"`{name}` = {text_of(payload)}" for name, payload in values.items())


class Setting:
    """Values that are set in a notebook for one execution, and put back to what they were when it ends."""

    def __init__(self, namespace: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self._namespace = namespace if isinstance(namespace, MutableMapping) else None
        self._values = dict(values) if self._namespace is not None else {}
        self._before: dict[str, Any] = {}

    def apply(self) -> None:
        """Set them."""
        assert self._namespace is not None or not self._values
        for name, value in self._values.items():
            self._before[name] = self._namespace.get(name, _NOTHING)  # type: ignore[union-attr]
            self._namespace[name] = value  # type: ignore[index]

    def undo(self) -> None:
        """Put the notebook's own values back. A name that the cell itself has bound since keeps what it has."""
        before, self._before = self._before, {}
        for name, value in before.items():
            assert self._namespace is not None
            if self._namespace.get(name, _NOTHING) is not self._values[name]:
                continue
            if value is _NOTHING:
                del self._namespace[name]
            else:
                self._namespace[name] = value
