"""File layers that kill, refuse or remember. Each is put in force in the process that runs a program, and nowhere else.

They count operations: every call of `FileLayer` that changes a file or a directory, and every point that a fold
reaches. A layer is described by a `Spec`, which travels to that process as JSON.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Literal

import msgspec

from jupyter_durable.clock import SystemClock
from jupyter_durable.log.files import FileLayer

ROOT = Path(__file__).resolve().parents[2]
"""Code below the working directory is the user's; this is the directory of the tests."""

_PID = re.compile(r"\.\d+-[0-9a-f]+$")
"""What the name of a temporary file ends with."""


class Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which layer is to be in force."""

    kind: Literal["count", "kill", "refuse", "record"] = "count"
    at: int = -1
    """Number of the operation, from 0. For ``record``: 0 if the files of earlier lives are wholly on the disk."""
    when: Literal["before", "after", "torn"] = "before"
    events: bool = False
    """Only writes into journals count as operations: each is one event."""
    errno: int = 0
    for_ever: bool = True
    """What is refused once is refused from then on."""
    ops: tuple[str, ...] = ()
    """Kinds of operations that are refused; all, if it is empty."""
    from_fold: bool = False
    """Count from the beginning of the fold."""


def die() -> None:
    """End this process as the kernel ends it: no handler, no ``finally``, no flush."""
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()  # pragma: no cover - not reached


def path_of(fd: int) -> str:
    """The file behind a descriptor, also one that was opened without the layer."""
    return str(Path(f"/proc/self/fd/{fd}").readlink())


class Layer(FileLayer):
    """Counts, and lets a step seem slow."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.names: list[str] = []
        """Operations so far, as ``write journal``."""
        self.clock = Clock()
        self._lock = threading.Lock()

    def advance(self, seconds: float) -> None:
        """Time goes by."""
        self.clock.ahead += seconds

    def mark(self, name: str, text: str) -> None:
        """Something happened outside; see `outside`."""

    def counted(self, op: str, what: str) -> int | None:
        """Give an operation its number; ``None`` if it does not count."""
        if self.spec.events and (op, what) != ("write", "journal"):
            return None
        if self.spec.from_fold and not self.names and not what.startswith("fold"):
            return None
        with self._lock:
            self.names.append(f"{op} {what}")
            return len(self.names) - 1

    def before(self, op: str, what: str, data: bytes | memoryview = b"", fd: int = -1) -> int | None:
        """Called before an operation; returns its number."""
        return self.counted(op, what)

    def after(self, number: int | None, op: str, path: str) -> None:
        """Called after an operation."""

    # The operations ------------------------------------------------------------------------------------------------

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        number = self.before("create" if flags & os.O_CREAT else "open", kind_of(path))
        fd = super().open(path, flags, mode)
        self.after(number, "open", str(path))
        return fd

    def write(self, fd: int, data: bytes | memoryview) -> int:
        path = path_of(fd)
        number = self.before("write", kind_of(path), data, fd)
        taken = super().write(fd, data)
        self.after(number, "write", path)
        return taken

    def fdatasync(self, fd: int) -> None:
        path = path_of(fd)
        number = self.before("sync", kind_of(path))
        super().fdatasync(fd)
        self.after(number, "sync", path)

    def fsync_dir(self, path: Path) -> None:
        number = self.before("sync", f"directory {path.name}")
        super().fsync_dir(path)
        self.after(number, "sync_dir", str(path))

    def rename(self, source: Path, target: Path) -> None:
        number = self.before("rename", kind_of(target))
        super().rename(source, target)
        self.after(number, "rename", f"{source}\0{target}")

    def unlink(self, path: Path) -> None:
        number = self.before("unlink", kind_of(path))
        super().unlink(path)
        self.after(number, "unlink", str(path))

    def truncate(self, fd: int, size: int) -> None:
        path = path_of(fd)
        number = self.before("truncate", kind_of(path))
        super().truncate(fd, size)
        self.after(number, "truncate", path)

    def reached(self, point: str) -> None:
        number = self.before("reached", point)
        self.after(number, "reached", point)


class Clock(SystemClock):
    """The real clock, except that time goes by without anybody waiting."""

    ahead = 0.0

    def time(self) -> float:
        """See `clock.Clock.time`."""
        return SystemClock.time() + self.ahead

    def monotonic(self) -> float:
        """See `clock.Clock.monotonic`."""
        return SystemClock.monotonic() + self.ahead


class Killing(Layer):
    """Kills the process before or after an operation, or in the middle of a write."""

    def before(self, op: str, what: str, data: bytes | memoryview = b"", fd: int = -1) -> int | None:
        number = self.counted(op, what)
        if number is not None and number == self.spec.at:
            if self.spec.when == "before":
                die()
            if self.spec.when == "torn" and op == "write":
                # Even numbers leave half of a line, odd ones all of it but the line feed.
                os.write(fd, memoryview(data)[: len(data) // 2 if number % 2 == 0 else len(data) - 1])
                die()
        return number

    def after(self, number: int | None, op: str, path: str) -> None:
        if number is not None and number == self.spec.at:
            die()


class Refusing(Layer):
    """A file system that refuses an operation, once or from then on."""

    refused = False

    def before(self, op: str, what: str, data: bytes | memoryview = b"", fd: int = -1) -> int | None:
        number = self.counted(op, what)
        if self.spec.ops and op not in self.spec.ops:
            return number
        if number is not None and number >= self.spec.at and (self.spec.for_ever or not self.refused):
            self.refused = True
            if op == "write" and number == self.spec.at and self.spec.for_ever:
                os.write(fd, memoryview(data)[: len(data) // 3])  # a full disk takes a part first
            raise OSError(self.spec.errno, os.strerror(self.spec.errno))
        return number


def kind_of(path: Path | str) -> str:
    """What a file of the log is, for people and for counting."""
    path = Path(path)
    if path.suffix == ".jsonl":
        return "journal"
    if ".folded" in path.name:
        return "stub"
    if path.parent.name == "blobs":
        return "blob"
    if path.parent.name == "locks":
        return "lease"
    return "fold file" if path.name.startswith(".fold") else _PID.sub("", path.name.lstrip("."))


def make(spec: Spec) -> Any:
    """The layer that a spec describes."""
    if spec.kind == "record":
        from tests.crash.power import Recording

        return Recording(spec)
    return {"count": Layer, "kill": Killing, "refuse": Refusing}[spec.kind](spec)
