"""Locks between processes that tell *held* from *free* without taking anything, and that death releases.

On Linux these are open-file-description locks: opening and closing the file elsewhere in the process does not lose
them (POSIX locks would be lost), and asking with ``F_OFD_GETLK`` takes nothing. Elsewhere the ``filelock`` library
stands in. A forked child closes its copies, else it would hold them as long as it lives.
"""

from __future__ import annotations

import os
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from jupyter_durable import clock
from jupyter_durable.log import files


class Held(Protocol):
    """A lock that is held until it is released or the process dies."""

    def release(self) -> None:
        """Let it go. Idempotent."""
        ...


class Locks(Protocol):
    """A way to lock one byte of a file; different bytes are different locks."""

    def take(self, path: Path, byte: int, *, shared: bool = False) -> Held | None:
        """Take the lock, or answer ``None`` at once if another holder is in the way."""
        ...

    def is_held(self, path: Path, byte: int) -> bool:
        """Whether anybody, also this process, holds it."""
        ...


_held: weakref.WeakSet[Any] = weakref.WeakSet()


def _drop_all() -> None:
    for lock in list(_held):
        lock.drop()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all)


class _Description:
    """An open file description that carries one lock; closing it releases the lock."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        _held.add(self)

    def release(self) -> None:
        import fcntl

        fd, self._fd = self._fd, -1
        if fd >= 0:
            _held.discard(self)
            with suppress(OSError):  # unlocked first: a child forked by C code may still have the description open
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _record(fcntl.F_UNLCK, 0, 0))
            with suppress(OSError):
                os.close(fd)

    def drop(self) -> None:
        """In a forked child: close without unlocking, which would unlock the parent's lock, too."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)


def _record(kind: int, start: int, length: int = 1) -> bytes:
    """``struct flock`` of Linux with 64-bit offsets; the pid must be 0."""
    import struct

    return struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)


class DescriptionLocks:
    """Open-file-description locks (Linux)."""

    def take(self, path: Path, byte: int, *, shared: bool = False) -> Held | None:
        """See `Locks.take`."""
        import fcntl

        fd = files.hooks.open(path, os.O_RDWR | os.O_CREAT)
        kind = fcntl.F_RDLCK if shared else fcntl.F_WRLCK
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _record(kind, byte))
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        return _Description(fd)

    def is_held(self, path: Path, byte: int) -> bool:
        """See `Locks.is_held`."""
        import fcntl

        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _record(fcntl.F_WRLCK, byte))
        finally:
            os.close(fd)
        return int.from_bytes(answer[:2], sys.byteorder) != fcntl.F_UNLCK


class LibraryLocks:
    """Locks by the ``filelock`` library, one file each. Asking has to take the lock for a moment."""

    def take(self, path: Path, byte: int, *, shared: bool = False) -> Held | None:
        """See `Locks.take`."""
        if not shared:
            lock = self._take(self._file(path, byte))
            if lock is not None and any(self._taken(slot) for slot in self._slots(path, byte)):
                lock.release()
                return None
            return lock
        slot = self._take(path.with_name(f"{path.name}.{byte}.{os.getpid()}-{clock.token_bytes(4).hex()}.shared"))
        if slot is not None and self._taken(self._file(path, byte)):  # whoever takes the other kind looks at slots
            slot.release()
            return None
        return slot

    def is_held(self, path: Path, byte: int) -> bool:
        """See `Locks.is_held`."""
        file = self._file(path, byte)
        return (file.exists() and self._taken(file)) or any(self._taken(slot) for slot in self._slots(path, byte))

    @staticmethod
    def _file(path: Path, byte: int) -> Path:
        return path.with_name(f"{path.name}.{byte}")

    @staticmethod
    def _slots(path: Path, byte: int) -> list[Path]:
        return list(path.parent.glob(f"{path.name}.{byte}.*.shared"))

    def _take(self, file: Path) -> _LibraryLock | None:
        from filelock import FileLock, Timeout

        lock = FileLock(str(file), thread_local=False)
        for _ in range(10):  # somebody who only asks holds it for a moment
            try:
                lock.acquire(timeout=0)
                return _LibraryLock(lock)
            except Timeout:
                clock.sleep(0.005)
        return None

    @staticmethod
    def _taken(file: Path) -> bool:
        from filelock import FileLock, Timeout

        lock = FileLock(str(file), thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        lock.release()
        return False


class _LibraryLock:
    def __init__(self, lock: Any) -> None:
        self._lock = lock
        _held.add(self)

    def release(self) -> None:
        _held.discard(self)
        self._lock.release()

    def drop(self) -> None:
        """In a forked child: close the descriptor without unlocking."""
        fd = getattr(getattr(self._lock, "_context", None), "lock_file_fd", None)
        if fd is not None:
            with suppress(OSError):
                os.close(fd)


def _of_this_system() -> Locks:
    return DescriptionLocks() if sys.platform == "linux" else LibraryLocks()


locks: Locks = _of_this_system()
"""The locks in force."""


def take_within(path: Path, byte: int, seconds: float, *, shared: bool = False) -> Held | None:
    """Take a lock, waiting for at most ``seconds``; ``None`` if it was not free in time."""
    until = clock.monotonic() + seconds
    while True:
        lock = locks.take(path, byte, shared=shared)
        if lock is not None or clock.monotonic() >= until:
            return lock
        clock.sleep(0.005)
