"""The memory of a run: one protocol, its storages, and `open_log`, which finds the one that a name means."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_durable.errors import LogUnusable

if TYPE_CHECKING:
    from jupyter_durable.log.base import EventLog
    from jupyter_durable.log.memory import MemoryLog

_memories: dict[str, MemoryLog] = {}


def open_log(where: str | Path, *, create: bool = True) -> EventLog:
    """Open the log that a path or URL names.

    Args:
        where: a directory (also ``file:PATH``), ``memory:`` for a new log in memory, or ``memory:NAME`` for one that
            lives as long as the process.
        create: make a directory that is not there.

    Raises:
        LogUnusable: there is no such kind of log, or it cannot be used. Never does another log stand in for it.
    """
    text = str(where)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", text)
    if isinstance(where, Path) or scheme is None:
        return _local(Path(where), create)
    if scheme[1] == "file":
        path = text[len("file:") :]
        return _local(Path(re.sub(r"^//(localhost)?(?=/)", "", path)), create)
    if scheme[1] == "memory":
        from jupyter_durable.log.memory import MemoryLog

        name = text[len("memory:") :]
        return _memories.setdefault(name, MemoryLog(name)) if name else MemoryLog()
    raise LogUnusable(
        f"There is no kind of log called {scheme[1]}: (in {text!r}). Name a directory, or memory: for a log that is "
        "gone with the process.",
        scheme=scheme[1],
    )


def _local(path: Path, create: bool) -> EventLog:
    from jupyter_durable.log.local import LocalLog

    return LocalLog(path, create=create)
