"""The log as a directory on a local disk: journals, blobs, and the database that they are folded into.

::

    .durable/
      .gitignore  format.json      made with the directory
      journal/<execution>.jsonl    one execution, one writer; <execution>.folded once it lies in the database
      locks/<branch>.lock          who writes a branch; never removed
      blobs/<digest>               large payloads
      inbox/<run>/...              signals to runs
      trusted/<execution>.json     histories of other keys that the user accepted
      log.duckdb                   what was folded; opened shortly, by one process at a time, and never by a run
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import msgspec

from jupyter_durable import clock
from jupyter_durable.errors import BranchMoved, LogDamaged, LogError, LogUnusable, UsageError
from jupyter_durable.event_data import ExecutionHeader, Head
from jupyter_durable.events import AnyEvent, ExecutionStarted, Recorded
from jupyter_durable.log import files, lease, locks
from jupyter_durable.log.base import ExecutionRecord, Holder
from jupyter_durable.log.blobs import BlobStore
from jupyter_durable.log.inbox import Inbox
from jupyter_durable.log.journal import JournalWriter
from jupyter_durable.log.line import ROOT
from jupyter_durable.log.listing import Entry, Lister, Listing, missing
from jupyter_durable.log.place import open_directory
from jupyter_durable.log.reader import LEAN_BYTES, Batch, JournalReader, Places, damaged, read_line
from jupyter_durable.log.trusted import Keyring

_RUN_DIGITS = re.compile("[0-9a-f]{8}")
_IN_USE = 0
_FOLD_PATIENCE = 10.0


class LocalWriter:
    """The writer of one execution: its journal, the blobs of the log, the lease on the branch."""

    append: Callable[[AnyEvent], int]
    """See `log.base.Writer.append`. It is the journal's own method: one call less for every event."""
    flush: Callable[[], None]
    """See `log.base.Writer.flush`."""

    def __init__(
        self, journal: JournalWriter, blobs: BlobStore, held: list[lease.Lease | locks.Held], *, durable: bool
    ) -> None:
        self._journal = journal
        self._blobs = blobs
        self._durable = durable
        self._held = held
        self.append = journal.append
        self.flush = journal.flush

    @property
    def execution(self) -> str:
        """Its id."""
        return self._journal.execution

    @property
    def head(self) -> Head:
        """The last line written."""
        return self._journal.head

    def put_blob(self, content: bytes, digest: str = "") -> str:
        """See `log.base.Writer.put_blob`."""
        return self._blobs.put(content, digest, durable=self._durable)

    def close(self) -> None:
        """Flush and close the journal, then let the branch go: in this order, so that *free* means *written*."""
        try:
            self._journal.close()
        finally:
            for held in self._held:
                held.release()
            self._held = []


class LocalLog:
    """A log in a directory. Safe to use from several threads, and from several processes at once."""

    def __init__(self, directory: Path | str, *, create: bool = True) -> None:
        """Open a log, and create the directory if there is none.

        Raises:
            LogUnusable: it cannot be made or read, or is missing and ``create`` is false.
            LogTooNew: a newer version made it.
        """
        self.directory = Path(directory).absolute()
        self.id = open_directory(self.directory, create)
        self.keys = Keyring(self.directory)
        self.blobs = BlobStore(self.directory / "blobs")
        self.inbox = Inbox(self.directory, self.keys)
        self.post = self.inbox.post
        self.signals = self.inbox.signals
        self.posted = self.inbox.posted
        self.fold_note = ""
        """Why the last `fold` left something in the journals, as a sentence; empty if it did not."""
        self._lister = Lister(self.directory)
        self._places: dict[str, Places] = {}

    @property
    def location(self) -> str:
        """The directory."""
        return str(self.directory)

    def executions(self, run: str | None = None) -> list[ExecutionRecord]:
        """See `log.base.EventLog.executions`."""
        listing = self.look()
        if run is not None:
            _refuse_unreadable(listing, run)
        return listing.records(run)

    def damage(self) -> list[str]:
        """See `log.base.EventLog.damage`."""
        listing = self.look()
        sentences = [str(error) for error in (*listing.errors.values(), *listing.missing())]
        for entry in listing.entries.values():
            if entry.stub is None:
                try:
                    own = self.keys.known() == entry.header.key
                    for _ in JournalReader(entry.path, self.keys.own().secret if own else None).batches():
                        pass
                except FileNotFoundError:
                    continue
                except LogError as error:
                    sentences.append(str(error))
        return sentences + self.inbox.damage()

    def look(self) -> Listing:
        """The listing itself, for the other files of this package."""
        try:
            return self._lister.look()
        except OSError as error:
            raise files.unusable("read the log in", self.directory, error) from error

    def history(self, branch: str) -> Iterator[Recorded]:
        """See `log.base.EventLog.history`. Damage that needs no reading of lines raises at the call."""
        listing = self.look()
        segments = listing.segments(branch)
        if not segments:
            self._nothing_lost(branch, listing)
            return iter(())
        lean = sum(entry.size for entry, _ in segments) > LEAN_BYTES
        return self._events([(entry, upto, self.keys.secret_for(entry)) for entry, upto in segments], lean)

    def reload(self, execution: str, seq: int) -> Recorded:
        """See `log.base.EventLog.reload`. After a lean `history` it costs one read of one line."""
        path = self.directory / "journal" / f"{execution}.jsonl"
        for _ in range(2):
            places = self._places.get(execution)
            index = -1 if places is None else seq - places.first
            if places is not None and 0 <= index < len(places.offsets):
                try:
                    return read_line(path, places.offsets[index], places.lengths[index], places.before[index])
                except FileNotFoundError:
                    del self._places[execution]
            entry = self._entry(execution)
            if entry.stub is not None:
                from jupyter_durable.log import folded

                return folded.read_one(self.directory, entry, seq)
            self._places[execution] = places = Places()
            for batch in JournalReader(entry.path, self.keys.secret_for(entry)).batches():
                places.note(batch)
        raise damaged(path, entry.last.seq + 1, f"event {seq} is missing")

    def point(self, execution: str, seq: int) -> Head:
        """See `log.base.EventLog.point`.

        Inside a folded execution the chain is that of a root: the database keeps no checksum for each line, and one
        MAC verifies the whole block.
        """
        entry = self._entry(execution)
        if seq == entry.last.seq:
            return entry.last
        if entry.stub is not None:
            if seq < entry.last.seq - entry.stub.count + 1 or seq > entry.last.seq:
                raise damaged(entry.path, 1, f"event {seq} is not in it")
            return Head(execution=execution, seq=seq, chain=ROOT.text)
        for batch in JournalReader(entry.path, None).batches():
            index = seq - batch.start.seq
            if 0 <= index < len(batch.lines):
                line = batch.lines[index]
                return Head(execution=execution, seq=seq, chain=f"{line[6:14].decode()}.{line[21:37].decode()}")
        raise damaged(entry.path, entry.last.seq, f"event {seq} is not in it")

    def begin(self, header: ExecutionHeader) -> LocalWriter:
        """See `log.base.EventLog.begin`."""
        for name in (header.execution, header.branch):
            if not files.NAME.fullmatch(name):
                raise UsageError(f"{name!r} cannot be part of a file name, so it cannot name an execution or a branch.")
        held: list[lease.Lease | locks.Held] = []
        try:
            held.append(self._use())
            held.insert(0, self._take(header))
            listing = self.look()
            self._may_continue(header, listing)
            key = self.keys.own(create=not listing.entries and not listing.errors)
            header = msgspec.structs.replace(header, key=key.id)
            first = ExecutionStarted(at=clock.now(), data=header)
            path = self.directory / "journal" / f"{header.execution}.jsonl"
            journal = JournalWriter(path, first, key.secret)
        except BaseException as error:
            for lock in held:
                lock.release()
            if isinstance(error, OSError):
                raise files.unusable("write to the log", self.directory, error) from error
            raise
        return LocalWriter(journal, self.blobs, held, durable=header.durability == "power")

    def holder(self, branch: str) -> Holder | None:
        """See `log.base.EventLog.holder`."""
        return lease.holder(self.directory / "locks" / f"{branch}.lock")

    def read_blob(self, digest: str) -> bytes:
        """See `log.base.EventLog.read_blob`."""
        return self.blobs.get(digest)

    def trust(self, execution: str) -> None:
        """Accept an execution that another key has signed, exactly as its bytes are now. A person's explicit act."""
        self.keys.accept(self._entry(execution))

    def fold(self) -> int:
        """See `log.base.EventLog.fold`. If somebody else has the database open, the journals stay as they are and
        `fold_note` says so.

        Raises:
            LogDamaged: ``log.duckdb`` cannot be read; the journals are left alone.
            LogUnusable: the file system refused, or the directory is gone.
        """
        from jupyter_durable.log import fold

        try:
            done = fold.fold(self.directory, self._lister, self.keys, patience=_FOLD_PATIENCE)
        except OSError as error:
            raise files.unusable("fold the journals of", self.directory, error) from error
        self.fold_note = done.note
        return done.events

    def rebuild(self) -> int:
        """Move a damaged ``log.duckdb`` aside and fold everything anew, if all of it still lies in journals.

        Raises:
            LogDamaged: some executions lie in the database only.
        """
        from jupyter_durable.log import fold

        return fold.rebuild(self.directory, self._lister, self.keys, patience=_FOLD_PATIENCE).events

    def exclusive(self, seconds: float = 0.0) -> locks.Held | None:
        """The whole log for oneself (for ``gc``): granted only while no execution runs. The caller releases it."""
        return locks.take_within(self.directory / "log.lock", _IN_USE, seconds)

    def _use(self) -> locks.Held:
        lock = locks.take_within(self.directory / "log.lock", _IN_USE, 5.0, shared=True)
        if lock is None:
            raise LogUnusable(f"The log {self.directory} is being cleaned up (gc). Run the cell again when it is over.")
        return lock

    def _take(self, header: ExecutionHeader) -> lease.Lease:
        path = self.directory / "locks" / f"{header.branch}.lock"
        notebook = header.path or header.notebook
        return lease.take(
            path, run=header.name, branch=header.branch_name, notebook=notebook, execution=header.execution
        )

    def _events(self, segments: list[tuple[Entry, Head | None, bytes | None]], lean: bool) -> Iterator[Recorded]:
        for folded_away, group in groupby(segments, lambda segment: segment[0].stub is not None):
            if folded_away:
                from jupyter_durable.log import folded

                yield from folded.read_parts(self.directory, list(group))
            else:
                for entry, upto, secret in group:
                    yield from self._segment(entry, upto, secret, lean)

    def _segment(self, entry: Entry, upto: Head | None, secret: bytes | None, lean: bool) -> Iterator[Recorded]:
        """The events of one journal up to the head that its successor names."""
        places = None
        if lean:
            places = self._places[entry.header.execution] = Places()
        last: Batch | None = None

        def seen(batch: Batch) -> None:
            nonlocal last
            last = batch
            if places is not None:
                places.note(batch)

        reader = JournalReader(entry.path, secret)
        records = reader.records(lean=lean, seen=seen)
        try:
            if upto is None:
                yield from records
                return
            for recorded in records:
                yield recorded
                if recorded.seq == upto.seq:
                    assert last is not None
                    line = last.lines[upto.seq - last.start.seq]
                    if f"{line[6:14].decode()}.{line[21:37].decode()}" != upto.chain:
                        number = last.start.line + upto.seq - last.start.seq
                        raise damaged(entry.path, number, "a later execution continues another line than this")
                    break
            else:
                what = f"event {upto.seq}, which a later execution continues, is missing"
                raise damaged(entry.path, reader.position.line, what)
        except FileNotFoundError:
            if reader.position.line > 1:
                raise
            # A fold has put a stub in its place since the directory was listed.
            found = self.look().entries.get(entry.header.execution)
            if found is None or found.stub is None:
                raise missing(entry, entry.header.execution) from None
            from jupyter_durable.log import folded

            yield from folded.read_all(self.directory, found, upto, secret)

    def _entry(self, execution: str) -> Entry:
        listing = self.look()
        entry = listing.entries.get(execution)
        if entry is None:
            path = self.directory / "journal" / f"{execution}.jsonl"
            raise listing.errors.get(execution) or LogDamaged(
                f"{path} is missing: there is no such execution in {self.directory}.",
                file=str(path),
                line=1,
                readable=0,
            )
        return entry

    def _nothing_lost(self, branch: str, listing: Listing) -> None:
        """A branch without executions must be one that never had any."""
        path = self.directory / "locks" / f"{branch}.lock"
        execution = lease.last_execution(path)
        if execution in listing.errors:
            raise listing.errors[execution]

    def _may_continue(self, header: ExecutionHeader, listing: Listing) -> None:
        """Refuse an execution that would leave lines of its branch behind."""
        _refuse_unreadable(listing, header.run)
        tip = listing.tips().get(header.branch)
        if tip is not None and tip.last != header.head:
            raise BranchMoved(
                f"Branch {header.branch_name} of run {header.name} has gone on since it was read: execution "
                f"{tip.header.execution} wrote event {tip.last.seq} from process {tip.header.pid}. Nothing was "
                "executed here; run the cell again.",
                branch=header.branch_name,
                pid=tip.header.pid,
                host=tip.header.host,
                notebook=tip.header.path,
                since=tip.started,
            )
        head = header.head
        if head is not None:
            before = listing.entries.get(head.execution)
            if before is None or head.seq > before.last.seq:
                path = self.directory / "journal" / f"{head.execution}.jsonl"
                raise damaged(path, 1, f"event {head.seq}, which run {header.name} would continue, is not there")


def _refuse_unreadable(listing: Listing, run: str) -> None:
    """Raise for a journal whose first line cannot be read, if by its name it may be one of this run.

    The name of an execution begins with the first digits of its run, so damage in one run does not stop all others.
    """
    for execution, error in listing.errors.items():
        start = execution.partition("-")[0]
        if not _RUN_DIGITS.fullmatch(start) or run.startswith(start):
            raise error
