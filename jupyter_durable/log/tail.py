"""Follows journals as they grow, for live views: no lock, no database, no key.

A view is not a replay: lines are decoded and not verified, and late lines are among them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from jupyter_durable.events import Recorded
from jupyter_durable.log import files
from jupyter_durable.log.line import decode_event, read_envelope

_CHUNK = 4 << 20


class Tailed(NamedTuple):
    """One event that a tail has found."""

    execution: str
    offset: int
    """Behind the event: what to pass as ``after`` the next time."""
    recorded: Recorded


def tail(directory: Path, after: Mapping[str, int]) -> Iterator[Tailed]:
    """Events behind the given offsets, journal by journal; a journal that is not named is read from its beginning.

    A journal that has been folded away gives nothing: its events lie in the database.
    """
    journals = directory / "journal"
    try:
        paths = sorted(journals.glob("*.jsonl"))
    except FileNotFoundError:
        return
    for path in paths:
        yield from _tail_one(path, path.stem, after.get(path.stem, 0))


def _tail_one(path: Path, execution: str, offset: int) -> Iterator[Tailed]:
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return
    try:
        rest = b""
        while chunk := files.read_at(fd, _CHUNK, offset + len(rest)):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            for line in lines:
                offset += len(line) + 1
                try:
                    recorded = Recorded(read_envelope(line).seq, decode_event(line))
                except (msgspec.DecodeError, UnicodeDecodeError):
                    return  # a torn line that a power loss left, or a newer version's; `history` says which
                yield Tailed(execution, offset, recorded)
    finally:
        os.close(fd)
