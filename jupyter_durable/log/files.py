"""Every file operation of the log goes through one object, so that tests can make any of them fail or kill.

``hooks`` is the real `FileLayer`; a test puts a subclass in its place with `use`. The database is not behind
it (DuckDB opens its own file); instead the folder calls `FileLayer.reached` between its steps.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jupyter_durable import clock
from jupyter_durable.errors import LogUnusable

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
"""What an execution or a branch may be called: files are named after them."""


class FileLayer:
    """The real operations. Paths are absolute or relative to the working directory, as in `os`."""

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        """Open a file and return its descriptor; not inherited by child processes."""
        return os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), mode)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write once and return how much was taken."""
        return os.write(fd, data)

    def fdatasync(self, fd: int) -> None:
        """Bring the bytes of a file, and its length, onto the disk."""
        if sys.platform == "darwin":  # fsync there stops at the drive's cache
            import fcntl

            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        elif hasattr(os, "fdatasync"):
            os.fdatasync(fd)
        else:
            os.fsync(fd)

    def fsync_dir(self, path: Path) -> None:
        """Bring the entries of a directory onto the disk; where directories cannot be opened, it does nothing."""
        if os.name == "nt":
            return
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Put one file in the place of another, at once."""
        source.replace(target)

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def truncate(self, fd: int, size: int) -> None:
        """Cut a file to a length."""
        os.ftruncate(fd, size)

    def reached(self, point: str) -> None:
        """A named point between two operations that are not files' (``fold: committed``); does nothing."""


hooks: FileLayer = FileLayer()
"""The layer in force."""


@contextmanager
def use(layer: FileLayer) -> Iterator[FileLayer]:
    """Put another layer in force, for tests."""
    global hooks
    before, hooks = hooks, layer
    try:
        yield layer
    finally:
        hooks = before


def read_at(fd: int, size: int, offset: int) -> bytes:
    """Read at a place; the descriptor's own place moves only where there is no ``pread`` (Windows)."""
    if sys.platform != "win32":
        return os.pread(fd, size, offset)
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, size)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write until everything is taken. A short write is normal near a full disk; the next one then says why."""
    view = memoryview(data)
    while view:
        view = view[hooks.write(fd, view) :]


def write_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a small file whole or not at all: temporary name, flush, rename, flush of the directory."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{clock.token_bytes(4).hex()}")
    fd = hooks.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(fd, data)
            if durable:
                hooks.fdatasync(fd)
        finally:
            os.close(fd)
        hooks.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        hooks.fsync_dir(path.parent)


def write_new(path: Path, data: bytes) -> bool:
    """Write a small file whole, if there is none of its name.

    Returns:
        Whether it was written: false if there is one, also if somebody else has made it at the same time.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{clock.token_bytes(4).hex()}")
    write_file(temporary, data)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links: a moment remains in which two could both be first
        if path.exists():
            return False
        hooks.rename(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()
    hooks.fsync_dir(path.parent)
    return True


_REASONS = {
    errno.ENOSPC: "the disk is full. Free some space, then run the cell again",
    errno.EDQUOT: "your disk quota is used up. Free some space, then run the cell again",
    errno.EFBIG: "the file would be larger than is allowed. Raise the limit (ulimit -f), then run the cell again",
    errno.EROFS: "the file system is read-only. Mount it for writing, or move the log with JUPYTER_DURABLE_LOG",
    errno.EACCES: "you may not write there. Change the rights, or move the log with JUPYTER_DURABLE_LOG",
    errno.EPERM: "you may not write there. Change the rights, or move the log with JUPYTER_DURABLE_LOG",
    errno.ENOTDIR: "a part of that path is a file. Remove it, or move the log with JUPYTER_DURABLE_LOG",
    errno.EEXIST: "a file of that name is already there. Move it away",
    errno.ENOENT: "it is gone. Was the directory removed or unmounted? Nothing of it can be written until it is back",
    errno.EIO: "the disk reports an error (EIO). Check the disk before you go on",
    errno.ESTALE: "the network file system lost the file (ESTALE). Check the mount, then run the cell again",
}


def unusable(doing: str, path: Path, error: OSError) -> LogUnusable:
    """The error for a refused file operation, as a sentence with a way out."""
    reason = _REASONS.get(error.errno or 0, f"{error.strerror or error}")
    return LogUnusable(f"Cannot {doing} {path}: {reason}.", path=str(path), errno=error.errno)
