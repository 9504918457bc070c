"""Makes the directory of a log, once, and says whether this version can read one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from jupyter_durable import clock
from jupyter_durable.errors import LogDamaged, LogTooNew, LogUnusable
from jupyter_durable.events import FORMAT
from jupyter_durable.log import files, locks

_CREATING = 1
_GITIGNORE = b"# Histories may hold what your steps returned. Remove this file to put them under version control.\n*\n"


class _Format(msgspec.Struct):
    """``format.json``."""

    format: int
    log: str
    """Id of the log."""


def open_directory(directory: Path, create: bool) -> str:
    """The id of the log in a directory, which is made if there is none and ``create`` is set.

    Raises:
        LogUnusable: there is none, or it cannot be made or read; or it is to be written, and its path has a ``?``.
        LogTooNew: a newer version made it.
        LogDamaged: ``format.json`` is missing beside journals, or cannot be read.
    """
    marker = directory / "format.json"
    if create and "?" in str(directory):  # DuckDB takes the rest for a query, and puts its own files elsewhere
        raise LogUnusable(
            f"The log {directory} cannot be used: its path has a `?`, and DuckDB cannot keep a database there. Nothing "
            "was executed. Rename the folder, or let JUPYTER_DURABLE_LOG name another place.",
            path=str(directory),
        )
    try:
        if not marker.exists():
            if not create:
                raise LogUnusable(
                    f"There is no log in {directory}. A durable cell makes one beside its notebook; "
                    "JUPYTER_DURABLE_LOG names another place.",
                    path=str(directory),
                )
            _make_folders(directory)
            _create(directory, marker)
        elif create:
            with suppress(OSError):  # git does not bring empty folders along; a log to be read only needs none
                _make_folders(directory)
        text = marker.read_bytes()
    except OSError as error:
        raise files.unusable("use the log", directory, error) from error
    try:
        found = msgspec.json.decode(text, type=_Format)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(marker, "is damaged") from error
    if found.format > FORMAT:
        raise LogTooNew(
            f"The log {directory} has format {found.format}; this jupyter_durable reads formats up to {FORMAT}. "
            "Upgrade it (pip install -U jupyter_durable); the log is left as it is.",
            file=str(marker),
            format=found.format,
        )
    return found.log


def _make_folders(directory: Path) -> None:
    for name in ("journal", "locks", "blobs"):
        (directory / name).mkdir(parents=True, exist_ok=True)


def _create(directory: Path, marker: Path) -> None:
    lock = locks.take_within(directory / "log.lock", _CREATING, 5.0)
    try:
        if marker.exists():
            return
        if any((directory / "journal").iterdir()):
            raise _damaged(marker, "is missing, and there are journals beside it")
        files.write_file(directory / ".gitignore", _GITIGNORE, durable=False)
        files.write_file(marker, msgspec.json.encode(_Format(FORMAT, clock.token_bytes(8).hex())) + b"\n")
        with suppress(OSError):
            files.hooks.fsync_dir(directory.parent)
    finally:
        if lock is not None:
            lock.release()


def _damaged(marker: Path, what: str) -> LogDamaged:
    right = msgspec.json.encode(_Format(FORMAT, "any name")).decode()
    return LogDamaged(
        f"{marker} {what}. It should read {right}; nothing beside it was touched.",
        file=str(marker),
        line=1,
        readable=0,
    )
