"""Which log belongs to a notebook of the server, and whether it may be read.

A log may have come by git or mail. So nothing is followed out of the server's root, and no file of a log that lies
there may be a link; a log that the operator names in ``JUPYTER_DURABLE_LOG`` may be anywhere.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from jupyter_durable.errors import LogUnusable, UsageError
from jupyter_durable.log.renames import log_of

_LONGEST = 4096


class NotHere(UsageError):
    """There is no such thing, or nothing that the user may see."""


class Place(msgspec.Struct, frozen=True):
    """The log of a notebook."""

    notebook: str
    """The server's path, as asked."""
    file: Path | None
    """The notebook itself; ``None`` if none was named."""
    log: Path
    configured: bool
    elsewhere: bool = False
    """It is that of another folder, which the notebook was moved from."""


def place_of(root: str, notebook: str, *, hidden: bool = False) -> Place:
    """Find the log of a notebook.

    Args:
        root: the server's root folder.
        notebook: path below it, with ``/``; empty for the root itself.
        hidden: whether files whose names begin with a dot may be served.

    Raises:
        NotHere: the path leads out of the root, or to nothing that is served.
        LogUnusable: the configured log is in the memory of another process; or the notebook was moved, and the log
            that it came with is gone.
    """
    file = _file(root, notebook, hidden=hidden) if notebook else None
    folder = Path(root) if file is None else file.parent
    configured = os.environ.get("JUPYTER_DURABLE_LOG", "")
    if not configured:
        own = folder / ".durable"
        log = own if file is None or own.is_symlink() else log_of(file)
        if log != own and not _is_served(root, log, hidden=hidden):
            raise NotHere("The notebook was moved here, and its log lies outside of the folders of this server.")
        return Place(notebook, file, log, configured=False, elsewhere=log != own)
    if configured.startswith("memory:"):
        raise LogUnusable(
            "JUPYTER_DURABLE_LOG names a log in memory, which nobody but its kernel can see. Name a directory."
        )
    # A kernel starts in the folder of its notebook; so that is what a relative path is relative to.
    path = configured.removeprefix("file://localhost").removeprefix("file://").removeprefix("file:")
    return Place(notebook, file, Path(os.path.normpath(folder / path)), configured=True)


def _is_served(root: str, log: Path, *, hidden: bool) -> bool:
    """Whether a log that a folder names as that of its notebook may be looked at: it may have come by mail."""
    real_root = os.path.realpath(root)
    real = os.path.realpath(log)
    if os.path.commonpath([real_root, real]) != real_root or Path(real).name != ".durable":
        return False
    return hidden or not any(part.startswith(".") for part in Path(real).relative_to(real_root).parts[:-1])


def _file(root: str, notebook: str, *, hidden: bool) -> Path:
    # JupyterLab names the drive of a shared document in front.
    path = notebook.removeprefix("RTC:").strip("/")
    parts = path.split("/")
    bad = len(path) > _LONGEST or "\0" in path or "\\" in path or ".." in parts
    if bad or (not hidden and any(part.startswith(".") for part in parts)):
        raise NotHere("There is no such notebook on this server.")
    real_root = os.path.realpath(root)
    try:
        real = os.path.realpath(os.path.join(root, *parts))  # noqa: PTH118 - os.path throughout: realpath is strict here
    except (OSError, ValueError):
        raise NotHere("There is no such notebook on this server.") from None
    if os.path.commonpath([real_root, real]) != real_root:
        raise NotHere("There is no such notebook on this server.")
    # The folder in which it is listed, not the one that a link leads to: the kernel starts there.
    return Path(root, *parts)


def check(place: Place) -> bool:
    """Whether there is a log.

    Raises:
        LogUnusable: it holds links, and lies in the served folders.
    """
    try:
        found = place.log.lstat()
    except OSError:
        return False
    if place.configured:
        return place.log.is_dir()
    link = place.log if stat.S_ISLNK(found.st_mode) else None
    folders = (place.log, place.log / "journal", place.log / "locks", place.log / "blobs")
    for folder in folders if link is None else ():
        link = link or _link_in(folder)
    if link is not None:
        raise LogUnusable(
            f"{link.name} in the log of this folder is a link, and links are not followed: a log from elsewhere could "
            "show files of yours with one. Put the file itself there, or name the log in JUPYTER_DURABLE_LOG."
        )
    return stat.S_ISDIR(found.st_mode)


_looked: dict[str, int] = {}
"""Folder -> when it had changed last, and held no link."""


def _link_in(folder: Path) -> Path | None:
    """Something in a folder that is neither a file nor a folder."""
    try:
        changed = folder.stat().st_mtime_ns
        if _looked.get(str(folder)) == changed:
            return None
        with os.scandir(folder) as entries:
            for entry in entries:
                if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
                    return Path(entry.path)
    except OSError:
        return None
    if len(_looked) > 1000:
        _looked.clear()
    _looked[str(folder)] = changed
    return None
