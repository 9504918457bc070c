"""Loss of power: a layer that remembers what was brought onto the disk, and a disk made of what it remembers.

After ``write`` bytes are in the memory of the kernel; only ``fdatasync`` brings them onto the disk. A new name, a
rename or a removal is on the disk after the ``fsync`` of its directory. What was not brought there may be lost, whole
or in part, and names may be there before the bytes that belong to them. `Disk.build` makes the directory of a log as
it may be found after the power went at any moment of a life; the outside world (effects) has power of its own.

The database is not behind the layer: DuckDB flushes its own file at a commit, so it counts as flushed as it is.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from tests.crash.layers import Layer, Spec, path_of

Variant = Literal["strict", "names", "half", "zeros", "holes"]
"""``strict``: nothing that was not flushed is there. Else names and removals are there, and of the bytes that were not
flushed ``names``: none, ``half``: the first half, ``zeros``: their number, as zeros, ``holes``: the second half, behind
zeros."""


class Moment(msgspec.Struct, array_like=True):
    """One thing that happened in a life, in order."""

    kind: Literal["bytes", "sync", "name", "sync_dir", "database", "mark"]
    what: str
    """Path below the log, or kind of mark."""
    file: int = -1
    """Number of the file, which stays the same when it is renamed; -1 for none: the name is gone."""
    content: bytes = b""


class Recording(Layer):
    """Remembers every moment, with the content of the files."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.moments: list[Moment] = []
        self._log = Path(os.environ["CRASH_WORLD"]) / "log"
        self._files: dict[int, int] = {}
        self._database: dict[str, tuple[int, int]] = {}
        self._trace = threading.RLock()
        for file in sorted(self._log.rglob("*")) if self._log.exists() else ():
            if file.is_file() and not file.name.startswith("log.duckdb"):
                self._met(file)
        self._note(Moment("mark", "begun"))

    def _met(self, file: Path) -> None:
        """A file of an earlier life. It is on the disk, but for the last lines of a journal: nobody may rely on more
        than the life has flushed, and a life that was killed has not flushed its end.
        """
        content, name = file.read_bytes(), self._path(file)
        self._files[file.stat().st_ino] = number = len(self._files)
        flushed = b"".join(content.splitlines(keepends=True)[:-3]) if file.suffix == ".jsonl" else content
        if self.spec.at == 0:
            flushed = content
        self.moments.append(Moment("name", name, number))
        self.moments.append(Moment("bytes", name, number, content))
        self.moments.append(Moment("sync", name, number, flushed))
        self.moments.append(Moment("sync_dir", str(Path(name).parent)))

    def save(self, path: Path) -> None:
        """Write down what happened."""
        path.write_bytes(msgspec.msgpack.encode(self.moments))

    def mark(self, name: str, text: str) -> None:
        self._note(Moment("mark", name, content=text.encode()))

    def _note(self, moment: Moment) -> None:
        with self._trace:
            for file in self._log.glob("log.duckdb*"):
                stat = file.stat()
                if self._database.get(file.name) != (stat.st_size, stat.st_mtime_ns):
                    self._database[file.name] = (stat.st_size, stat.st_mtime_ns)
                    self.moments.append(Moment("database", file.name, content=file.read_bytes()))
            for name in [name for name in self._database if not (self._log / name).exists()]:
                del self._database[name]
                self.moments.append(Moment("database", name, -2))
            self.moments.append(moment)

    def _path(self, path: Path | str) -> str:
        return os.path.relpath(path, self._log)

    def _file(self, path: Path | str) -> int:
        return self._files.get(Path(path).stat().st_ino, -1)

    # The operations ------------------------------------------------------------------------------------------------

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        with self._trace:
            new = bool(flags & os.O_CREAT) and not path.exists()
            fd = super().open(path, flags, mode)
            if new:
                self._files[os.fstat(fd).st_ino] = number = 1 + max(self._files.values(), default=-1)
                self._note(Moment("name", self._path(path), number))
            return fd

    def write(self, fd: int, data: bytes | memoryview) -> int:
        with self._trace:
            taken = super().write(fd, data)
            self._bytes(fd)
            return taken

    def truncate(self, fd: int, size: int) -> None:
        with self._trace:
            super().truncate(fd, size)
            self._bytes(fd)

    def fdatasync(self, fd: int) -> None:
        path = path_of(fd)
        content = Path(path).read_bytes()  # what is written meanwhile may be left out
        super().fdatasync(fd)
        self._note(Moment("sync", self._path(path), self._file(path), content))

    def _bytes(self, fd: int) -> None:
        path = path_of(fd)
        self._note(Moment("bytes", self._path(path), self._file(path), Path(path).read_bytes()))

    def fsync_dir(self, path: Path) -> None:
        super().fsync_dir(path)
        self._note(Moment("sync_dir", self._path(path)))

    def rename(self, source: Path, target: Path) -> None:
        with self._trace:
            super().rename(source, target)
            self._note(Moment("name", self._path(source), -1))
            self._note(Moment("name", self._path(target), self._file(target)))

    def unlink(self, path: Path) -> None:
        with self._trace:
            super().unlink(path)
            self._note(Moment("name", self._path(path), -1))

    def reached(self, point: str) -> None:
        super().reached(point)
        self._note(Moment("mark", "reached", content=point.encode()))


@dataclass
class Disk:
    """What is in memory and what is on the disk after some moments of a life."""

    names: dict[str, int] = field(default_factory=dict)
    flushed_names: dict[str, int] = field(default_factory=dict)
    content: dict[int, bytes] = field(default_factory=dict)
    flushed: dict[int, bytes] = field(default_factory=dict)
    database: dict[str, bytes] = field(default_factory=dict)
    marks: list[tuple[str, str]] = field(default_factory=list)
    flushes: int = 0

    def apply(self, moment: Moment) -> None:
        """One more moment."""
        if moment.kind == "bytes":
            self.content[moment.file] = moment.content
        elif moment.kind == "sync":
            self.flushed[moment.file] = moment.content
            self.flushes += 1
        elif moment.kind == "name":
            if moment.file < 0:
                self.names.pop(moment.what, None)
            else:
                self.names[moment.what] = moment.file
        elif moment.kind == "sync_dir":
            inside = {path for path in {*self.names, *self.flushed_names} if str(Path(path).parent) == moment.what}
            for path in inside:
                if path in self.names:
                    self.flushed_names[path] = self.names[path]
                else:
                    del self.flushed_names[path]
        elif moment.kind == "database":
            if moment.file == -2:
                self.database.pop(moment.what, None)
            else:
                self.database[moment.what] = moment.content
        else:
            self.marks.append((moment.what, moment.content.decode()))

    def journal(self) -> bytes:
        """The flushed bytes of the life's journal; nothing, if not even its name was flushed."""
        found = [self.flushed.get(file, b"") for path, file in self.flushed_names.items() if path.endswith(".jsonl")]
        return found[0] if found else b""

    def build(self, log: Path, variant: Variant) -> None:
        """Make the directory of the log as it may be found when the power is back."""
        names = self.flushed_names if variant == "strict" else self.names
        for folder in ("journal", "locks", "blobs") if names else ():
            (log / folder).mkdir(parents=True)
        for path, file in names.items():
            if not path.startswith(".."):
                (log / path).write_bytes(self._found(file, variant))
        for name, content in self.database.items():
            (log / name).write_bytes(content)

    def _found(self, file: int, variant: Variant) -> bytes:
        flushed, content = self.flushed.get(file, b""), self.content.get(file, b"")
        if variant in {"strict", "names"} or not content.startswith(flushed):
            return flushed
        tail = content[len(flushed) :]
        half = len(tail) // 2
        if variant == "half":
            return flushed + tail[:half]
        return flushed + bytes(half) + (tail[half:] if variant == "holes" else bytes(len(tail) - half))


def moments_of(world: Path) -> list[Moment]:
    """The moments of a life that was recorded."""
    return msgspec.msgpack.decode((world / "trace").read_bytes(), type=list[Moment])


def marks_of(moments: list[Moment], name: str) -> list[Any]:
    """Texts of one kind of mark."""
    return [moment.content.decode() for moment in moments if moment.kind == "mark" and moment.what == name]
