"""The notebook variables that a cell reads: their digests at the start and the end, and restoring what the run changed.

``messages = []`` in one cell, appended to by a durable cell that is then run again in the same kernel, is no edit: what
the last execution left is put back to what it was at the start, in place, so that every name for it sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import msgspec

from jupyter_durable.errors import DurableError
from jupyter_durable.event_data import ExecutionHeader, Payload
from jupyter_durable.evidence import EvidenceBook, inputs
from jupyter_durable.values import Encoded, comparable, encode
from jupyter_durable.values.secrets import has_secret

LARGEST = 16 * 1024
"""Bytes of JSON text up to which a mutable input's start value is kept."""


class Inputs(msgspec.Struct):
    """What a cell reads of its notebook, at one moment."""

    digests: dict[str, str]
    mutable: dict[str, Any]

    @classmethod
    def of(cls, namespace: Mapping[str, Any], names: frozenset[str], book: EvidenceBook) -> Inputs:
        """Look at the variables ``names`` of a namespace."""
        digests, mutable = inputs(namespace, set(names), book)
        return cls(digests, mutable)

    def start_values(self) -> dict[str, Encoded]:
        """Small mutable inputs in stored form. One with a secret in it is kept as digest only."""
        found = {}
        for name, value in self.mutable.items():
            try:
                encoded = encode(value)
            except DurableError:
                continue  # cannot be put back later, so a change by the run will count as a changed input
            if len(encoded.text) <= LARGEST and not encoded.blobs and not has_secret(encoded.text.decode()):
                found[name] = encoded
        return found


def at_end(namespace: Mapping[str, Any], names: list[str]) -> Callable[[], dict[str, str]]:
    """A function that gives the digests of the mutable inputs as they are when it is called."""

    def look() -> dict[str, str]:
        return {name: comparable(namespace[name]) for name in names if name in namespace}

    return look


def changed_by_run(header: ExecutionHeader, now: dict[str, str]) -> list[str]:
    """Names of the inputs that differ from those at the start of an execution."""
    return [name for name, digest in header.inputs.items() if now.get(name) != digest and not digest.startswith("?")]


def restore(
    namespace: MutableMapping[str, Any],
    header: ExecutionHeader,
    now: dict[str, str],
    value: Callable[[Payload], Any],
) -> list[str] | None:
    """Put inputs that the run itself has changed back to their start values.

    Args:
        namespace: the notebook's variables.
        header: first line of the execution whose start values are wanted.
        now: today's digests.
        value: decodes a stored value.

    Returns:
        The names that were put back; ``None`` if one of them cannot be.
    """
    changed = changed_by_run(header, now)
    if any(name not in header.values for name in changed):
        return None
    for name in changed:
        old: Any = value(header.values[name])
        today: Any = namespace.get(name)
        if type(old) is type(today) and isinstance(today, list | bytearray):
            today[:] = old
        elif type(old) is type(today) and isinstance(today, dict | set):
            today.clear()
            today.update(old)
        else:
            namespace[name] = old
    return changed
