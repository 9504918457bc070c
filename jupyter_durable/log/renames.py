"""What Jupyter Server renamed, as the log remembers it; and notebooks whose log has stayed in another folder.

``renames.jsonl``: one line for each notebook, or folder, that got another path. ``elsewhere.json``: name of a notebook
-> the log that it came with, relative to the notebook's folder. Neither holds history: who cannot read them finds
notebooks by their cells, as after a ``mv``.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from jupyter_durable.errors import LogUnusable
from jupyter_durable.log import files
from jupyter_durable.notebooks import Renamed

RENAMES = "renames.jsonl"
ELSEWHERE = "elsewhere.json"
_LONGEST = 4 << 20
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def read(directory: Path) -> list[Renamed]:
    """What was renamed, oldest first. Lines that cannot be read are passed over."""
    found = []
    for line in _bytes_of(directory / RENAMES).splitlines():
        try:
            found.append(msgspec.json.decode(line, type=Renamed))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # torn by a crash, or of a later version
    return found


def add(directory: Path, renamed: Renamed) -> None:
    """Remember that something was renamed.

    Raises:
        LogUnusable: it cannot be written.
    """
    path = directory / RENAMES
    # In front of it too: a line that a crash has torn must not swallow this one.
    line = b"\n" + msgspec.json.encode(renamed) + b"\n"
    try:
        fd = files.hooks.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NO_LINK)
        try:
            files.write_all(fd, line)
            files.hooks.fdatasync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise files.unusable("write", path, error) from error


def elsewhere(notebook: Path) -> Path | None:
    """The log that a notebook came with when it was moved here; ``None``: its log is the one of its folder."""
    told = _told(notebook.parent).get(notebook.name)
    if not told or os.path.isabs(told):
        return None
    return Path(os.path.normpath(notebook.parent / told))


def set_elsewhere(notebook: Path, log: Path | None) -> None:
    """Remember where the log of a notebook is; ``None``: in its folder, as ever.

    Raises:
        LogUnusable: it cannot be written.
    """
    told = _told(notebook.parent)
    before = dict(told)
    told.pop(notebook.name, None)
    if log is not None:
        told[notebook.name] = os.path.relpath(log, notebook.parent)
    if told != before:
        path = notebook.parent / ".durable" / ELSEWHERE
        try:
            files.write_file(path, msgspec.json.encode(told) + b"\n")
        except OSError as error:
            raise files.unusable("write", path, error) from error


def log_of(notebook: Path) -> Path:
    """The log of a notebook: the one that it came with, else that of its folder, which need not be there yet.

    Raises:
        LogUnusable: the log that it came with is gone.
    """
    found = elsewhere(notebook)
    if found is None:
        return notebook.parent / ".durable"
    if not (found / "format.json").is_file():
        raise LogUnusable(
            f"{notebook.name} was moved here, and its history stayed in {found}, which is not there any more. Put that "
            f"folder back. To begin without history, delete the name from {notebook.parent / '.durable' / ELSEWHERE}.",
            path=str(found),
        )
    return found


def _told(folder: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(_bytes_of(folder / ".durable" / ELSEWHERE) or b"{}", type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _bytes_of(path: Path) -> bytes:
    """A small file; empty if there is none, if it is a link, or too long to be ours."""
    try:
        fd = os.open(path, os.O_RDONLY | _NO_LINK)
    except OSError:
        return b""
    with os.fdopen(fd, "rb") as file:
        data = file.read(_LONGEST + 1)
    return data if len(data) <= _LONGEST else b""
