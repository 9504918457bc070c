"""The journal of one execution: the writer that appends to it.

A line is one ``write(2)`` of the whole line to a descriptor in append mode, so an event that `JournalWriter.append`
has returned survives the death of the process; `JournalWriter.flush` makes it survive loss of power. The reader is in
``reader.py``.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jupyter_durable.errors import LogUnusable
from jupyter_durable.event_data import Head
from jupyter_durable.events import AnyEvent, ExecutionStarted
from jupyter_durable.log import files
from jupyter_durable.log.base import Durability
from jupyter_durable.log.line import Chain, encode_line, header_start


class _Position(NamedTuple):
    """Where the writer stands."""

    seq: int
    """Of the next line."""
    chain: Chain
    size: int
    """Bytes of whole lines."""


_position = tuple.__new__


class JournalWriter:
    """Appends the events of one execution to a new file. Safe to call from several threads."""

    def __init__(self, path: Path, first: ExecutionStarted, secret: bytes) -> None:
        """Create the file and write its first line; with ``durability="power"`` both are flushed.

        Raises:
            LogUnusable: the file system refused, or there is a file of that name.
        """
        header = first.data
        self.execution: str = header.execution
        self.path = path
        self._secret = secret
        self._durability: Durability = header.durability
        self._lock = threading.Lock()
        self._flush_lock = threading.Lock()
        self._broken = ""
        self._closed = False
        seq, chain = header_start(header)
        self._at = _Position(seq, chain, 0)
        self._intended: _Position | None = None
        self._flushed = seq - 1
        self._marked = seq - 1
        try:
            self._fd = files.hooks.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        except OSError as error:
            raise files.unusable("create the journal", path, error) from error
        _writers.add(self)
        try:
            self.append(first)
            if self._durability == "power":
                self.flush()
                self._sync_directory()
        except BaseException:
            self.abandon()
            raise

    @property
    def head(self) -> Head:
        """The last line written."""
        with self._lock:
            self._settle()
            return Head(execution=self.execution, seq=self._at.seq - 1, chain=self._at.chain.text)

    def append(self, event: AnyEvent) -> int:
        """Write one event and return its seq; see `log.base.Writer.append`."""
        with self._lock:
            if self._broken:
                raise LogUnusable(self._broken, path=str(self.path))
            if self._intended is not None:
                self._settle()
            seq, chain, size = self._at
            mark = self._flushed if self._flushed > self._marked else -1
            line, after = encode_line(event, seq, chain, self._secret, mark)
            self._intended = _position(_Position, (seq + 1, after, size + len(line)))
            try:
                written = files.hooks.write(self._fd, line)
                if written != len(line):
                    files.write_all(self._fd, memoryview(line)[written:])
            except OSError as error:
                self._break(error)
            self._at = self._intended
            self._intended = None
            if mark >= 0:
                self._marked = mark
            return seq

    def flush(self) -> None:
        """Make everything appended so far survive loss of power. With ``durability="process"`` it does nothing."""
        if self._durability == "power":
            self.sync()

    def sync(self) -> None:
        """`flush` whatever the durability. One flush serves all threads that ask while it is under way."""
        last = self._at.seq - 1
        if self._flushed >= last or self._closed:
            return
        with self._flush_lock:
            if self._flushed >= last:
                return
            if self._broken:
                raise LogUnusable(self._broken, path=str(self.path))
            covered = self._at.seq - 1
            try:
                files.hooks.fdatasync(self._fd)
            except OSError as error:  # which pages are on the disk is now unknown, also to a second fdatasync
                self._broken = str(files.unusable("flush the journal", self.path, error))
                raise LogUnusable(self._broken, path=str(self.path), errno=error.errno) from error
            self._flushed = max(self._flushed, covered)

    def close(self) -> None:
        """Flush and close the file. Idempotent; after a refused write it only closes."""
        if self._closed:
            return
        try:
            if not self._broken:
                self.sync()
                if self._durability == "process":
                    self._sync_directory()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the file as the death of the process would: nothing is flushed. Every later append raises."""
        if self._closed:
            return
        self._closed = True
        self._broken = self._broken or (
            f"Execution {self.execution} has ended; its journal {self.path} takes no more events."
        )
        _writers.discard(self)
        with suppress(OSError):
            os.close(self._fd)

    def _sync_directory(self) -> None:
        try:
            files.hooks.fsync_dir(self.path.parent)
        except OSError as error:
            raise files.unusable("flush the directory of the journal", self.path, error) from error

    def _settle(self) -> None:
        """After a signal handler raised in the middle of an append: find out whether the line was written."""
        intended = self._intended
        if intended is None:
            return
        size = os.fstat(self._fd).st_size
        if size == intended.size:
            self._at = intended
        elif size != self._at.size:
            files.hooks.truncate(self._fd, self._at.size)
        self._intended = None

    def _break(self, error: OSError) -> None:
        self._intended = None
        with suppress(OSError):
            files.hooks.truncate(self._fd, self._at.size)
        refused = files.unusable("write to the journal", self.path, error)
        self._broken = str(refused)
        raise refused from error

    def _forked(self) -> None:
        """In a forked child: the parent's journal is not the child's to write."""
        self._lock = threading.Lock()
        self._flush_lock = threading.Lock()
        self.abandon()
        self._broken = (
            f"This process was forked from the one that writes {self.path}; only that one records steps of execution "
            f"{self.execution}. Return the value to it, or use durable.map(executor=)."
        )


_writers: weakref.WeakSet[JournalWriter] = weakref.WeakSet()


def _abandon_all() -> None:
    for writer in list(_writers):
        writer._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
