"""Effects of a body that its return value does not show: arguments and globals it changed, files it wrote.

They are noticed on the first run: one warning, recorded. A replay does not repeat them, so it stops before the first
live step that would read what was not changed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from jupyter_durable.errors import DurableError
from jupyter_durable.event_data import Notice
from jupyter_durable.evidence import EvidenceBook
from jupyter_durable.values import comparable, digest

IMMUTABLE = frozenset({int, str, float, bool, bytes, type(None), complex})
"""Types of arguments that a body cannot change in place."""

DATA = frozenset(
    "?" + name
    for name in (
        "list",
        "dict",
        "set",
        "frozenset",
        "tuple",
        "str",
        "bytes",
        "bytearray",
        "ndarray",
        "DataFrame",
        "Series",
        "Table",
    )
)
"""What `comparable` says of plain data that is too large to be compared; other types are never compared."""

MISSING = "missing"
"""Digest of a file that is not there."""


def digests(values: dict[str, Any]) -> dict[str, str]:
    """Digests of what has one."""
    found = {}
    for name, value in values.items():
        try:
            found[name] = digest(value)
        except DurableError:
            continue  # identified by `key=`; what has no digest cannot be compared
    return found


def changed_arguments(step: str, before: dict[str, str], after: dict[str, str]) -> Notice | None:
    """A notice about arguments that a body has changed in place, if it has."""
    changed = tuple(sorted(name for name, text in before.items() if after.get(name) != text))
    if not changed:
        return None
    which = ", ".join(f"`{name}`" for name in changed)
    return Notice(
        kind="mutated_argument",
        names=changed,
        message=(
            f"step `{step}` changed its argument {which} in place; on replay its body does not run and the change is "
            f"not repeated. Return the new value and use what the step returns, or declare `@step(mutates=[...])` if "
            f"nothing reads the change."
        ),
    )


def changed_globals(step: str, before: dict[str, str], namespace: dict[str, Any]) -> Notice | None:
    """A notice about globals that a body has changed and that others read, if it has."""
    changed = tuple(sorted(name for name, text in before.items() if comparable(namespace.get(name)) != text))
    if not changed:
        return None
    which = ", ".join(f"`{name}`" for name in changed)
    return Notice(
        kind="mutated_global",
        names=changed,
        message=(
            f"step `{step}` changed the notebook variable {which}, which is read elsewhere; on replay its body does "
            f"not run and the change is not repeated. Return the value and assign it in the cell."
        ),
    )


def too_large(digests: Mapping[str, str]) -> str:
    """A sentence about data that is too large to be compared, so that a change of it goes unseen; empty if none is."""
    names = ", ".join(f"`{name}`" for name, text in digests.items() if text in DATA)
    return f"too large to be compared, so a change since the first run goes unseen: {names}" if names else ""


def written_files(step: str, paths: Iterable[str]) -> Notice:
    """A note of the files that a step has declared, with their digests."""
    names = tuple(f"{path}={file_digest(path)}" for path in paths)
    return Notice(kind="file", message=f"step `{step}` declared files", names=names)


def file_digest(path: str) -> str:
    """Digest of a file's content, 32 hexadecimal digits, or `MISSING`."""
    if not Path(path).is_file():
        return MISSING
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


class Changing:
    """Which notebook variables the code of a step changes, of those that the cell or another step of it reads.

    Args:
        namespace: the notebook's variables.
        reads: names that the cell reads.
        book: evidence of the execution.
    """

    def __init__(self, namespace: Mapping[str, Any], reads: frozenset[str], book: EvidenceBook) -> None:
        self._namespace = namespace
        self._reads = reads
        self._book = book
        self._known: dict[int, tuple[Any, tuple[str, ...]]] = {}

    def names(self, fn: Any) -> tuple[str, ...]:
        """Names of such variables for one step function."""
        known = self._known.get(id(fn))
        if known is None:
            changed = self._book.changes(fn)
            names = tuple(sorted(changed & self._read_elsewhere(fn))) if changed else ()
            known = self._known[id(fn)] = (fn, names)
        return known[1]

    def _read_elsewhere(self, fn: Any) -> set[str]:
        names = set(self._reads)
        for name in self._reads:
            other = getattr(self._namespace.get(name), "__durable_step__", None)
            if other is not None and other is not fn:
                names |= {part.removeprefix("var:") for part in self._book.of(other).parts if part.startswith("var:")}
        return names


class Stale(msgspec.Struct):
    """What replayed steps had changed on their first run and have not changed now."""

    objects: list[tuple[Any, str]] = msgspec.field(default_factory=list)
    names: dict[str, str] = msgspec.field(default_factory=dict)
    files: list[str] = msgspec.field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.objects or self.names or self.files)

    def note(self, notices: Iterable[Notice], arguments: dict[str, Any]) -> None:
        """A step with these notices was replayed with these arguments."""
        for notice in notices:
            if notice.kind == "mutated_argument":
                self.objects += [(arguments[name], notice.message) for name in notice.names if name in arguments]
            elif notice.kind == "mutated_global":
                self.names.update(dict.fromkeys(notice.names, notice.message))
            elif notice.kind == "file":
                for text in notice.names:
                    path, _, recorded = text.rpartition("=")
                    if file_digest(path) != recorded:
                        self.files.append(f"the file {path}, which a replayed step had written, is changed or missing.")

    def read_by(self, arguments: Iterable[Any], reads: Iterable[str]) -> str:
        """What a live step would read of it, as a sentence; empty if nothing."""
        if self.files:
            return self.files[0]
        for value in arguments if self.objects else ():
            for stale, message in self.objects:
                if _holds(value, stale):
                    return message
        return next((self.names[name] for name in reads if name in self.names), "")


def _holds(value: Any, stale: Any, depth: int = 3) -> bool:
    """Whether a value is, or contains near its surface, an object that replay left unchanged."""
    if value is stale:
        return True
    if depth == 0:
        return False
    if isinstance(value, dict):
        return any(_holds(inner, stale, depth - 1) for inner in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds(inner, stale, depth - 1) for inner in value)
    inside = getattr(value, "__dict__", None)
    return isinstance(inside, dict) and any(_holds(inner, stale, depth - 1) for inner in inside.values())
