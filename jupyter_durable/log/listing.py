"""Lists the executions of a log directory from the first and last line of each journal, and links them to branches.

Nothing between those lines is read, and nothing opens the database: a folded journal leaves a stub
(``journal/<execution>.folded``) with both lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import msgspec

from jupyter_durable.errors import LogDamaged, LogError, LogTooNew
from jupyter_durable.event_data import ExecutionHeader, Head
from jupyter_durable.events import AnyEvent, ExecutionEnded
from jupyter_durable.log import files, lease
from jupyter_durable.log.base import ExecutionRecord
from jupyter_durable.log.line import ENVELOPE, decode_event, read_envelope
from jupyter_durable.log.reader import JournalReader, damaged, first_line
from jupyter_durable.log.stub import Stub, read_stub

_TAIL = 1 << 14


class Entry(msgspec.Struct, frozen=True):
    """One execution as its files tell."""

    path: Path
    header: ExecutionHeader
    started: float
    last: Head
    end: AnyEvent | None
    """The last event, if it is the end of the execution."""
    torn: int
    size: int
    stub: Stub | None = None
    """Set if the execution was folded and its journal is gone."""

    @property
    def ended(self) -> ExecutionEnded | None:
        """Its end, if the last line is that."""
        return self.end if isinstance(self.end, ExecutionEnded) else None


class Listing(msgspec.Struct):
    """What a look at the directory found."""

    entries: dict[str, Entry] = msgspec.field(default_factory=dict)
    """By execution, oldest first."""
    errors: dict[str, LogError] = msgspec.field(default_factory=dict)
    """By execution: journals that cannot be listed."""
    running: set[str] = msgspec.field(default_factory=set)
    """Branches that were locked before their journals were looked at."""

    def tips(self) -> dict[str, Entry]:
        """The newest execution of each branch: the one that no other of the branch continues."""
        continued = {
            entry.header.head.execution
            for entry in self.entries.values()
            if entry.header.head is not None and self._branch(entry.header.head.execution) == entry.header.branch
        }
        return {entry.header.branch: entry for execution, entry in self.entries.items() if execution not in continued}

    def _branch(self, execution: str) -> str | None:
        entry = self.entries.get(execution)
        return None if entry is None else entry.header.branch

    def segments(self, branch: str) -> list[tuple[Entry, Head | None]]:
        """The executions of a branch's history from the root on, each with the head at which the next goes on.

        Raises:
            LogDamaged: an execution that another continues is not there.
        """
        entry = self.tips().get(branch)
        found: list[tuple[Entry, Head | None]] = []
        upto: Head | None = None
        while entry is not None:
            found.append((entry, upto))
            upto = entry.header.head
            if upto is None:
                break
            before = self.entries.get(upto.execution)
            if before is None or len(found) > len(self.entries):
                raise self.errors.get(upto.execution) or missing(entry, upto.execution)
            entry = before
        return found[::-1]

    def records(self, run: str | None = None) -> list[ExecutionRecord]:
        """The entries as `log.base.ExecutionRecord`."""
        tips = {entry.header.execution for entry in self.tips().values()}
        return [
            ExecutionRecord(
                header=entry.header,
                started=entry.started,
                last=entry.last,
                outcome=None if entry.ended is None else entry.ended.data,
                ended=None if entry.ended is None else entry.ended.at,
                running=execution in tips and entry.ended is None and entry.header.branch in self.running,
                folded=entry.stub is not None,
                torn=entry.torn,
            )
            for execution, entry in self.entries.items()
            if run is None or entry.header.run == run
        ]

    def missing(self) -> list[LogDamaged]:
        """An error for each execution that another continues and that is not there."""
        gone: dict[str, LogDamaged] = {}
        for entry in self.entries.values():
            head = entry.header.head
            if head is not None and head.execution not in self.entries and head.execution not in self.errors:
                gone[head.execution] = missing(entry, head.execution)
        return list(gone.values())


def missing(entry: Entry, execution: str) -> LogDamaged:
    """The error for an execution that ``entry`` continues and that is not there."""
    path = entry.path.parent / f"{execution}.jsonl"  # of a stranger's log, whatever is written there
    return LogDamaged(
        f"{path} is missing, and execution {entry.header.execution} of run {entry.header.name} "
        f"({entry.header.branch_name}) continues it. Nothing was executed. Put the file back from a backup, or start "
        "anew with --fresh.",
        file=str(path),
        line=1,
        readable=0,
        execution=execution,
    )


def in_order(entries: list[Entry]) -> list[Entry]:
    """Executions in the order in which they began. Clocks are put back; what continues another one began after it."""
    known = {entry.header.execution: entry for entry in entries}
    places: dict[str, tuple[float, int]] = {}
    for entry in entries:
        chain: list[Entry] = []
        each: Entry | None = entry
        while each is not None and each.header.execution not in places and len(chain) <= len(entries):
            chain.append(each)
            each = known.get(_before(each))
        for each in reversed(chain):
            moment, depth = places.get(_before(each), (0.0, 0))
            places[each.header.execution] = (max(each.started, moment), depth + 1)
    return sorted(entries, key=lambda entry: (places[entry.header.execution], entry.header.execution))


def _before(entry: Entry) -> str:
    """The execution that one continues, or that its branch comes from."""
    header = entry.header
    if header.head is not None:
        return header.head.execution
    return "" if header.origin is None else header.origin.execution


class Lister:
    """Looks at a directory, and remembers of files that have not changed what they say."""

    def __init__(self, directory: Path) -> None:
        self.journals = directory / "journal"
        self.locks = directory / "locks"
        self._known: dict[str, tuple[tuple[int, int, int], Entry | LogError | None]] = {}

    def look(self) -> Listing:
        """List everything.

        A branch is asked whether it is locked before its journal's end is read: an end is written before the lock is
        released, so the other order could call a finished execution interrupted.
        """
        listing = Listing()
        entries: list[Entry] = []
        names = _names(self.journals)
        for execution in sorted({name.partition(".")[0] for name in names}):
            known = self._known.get(execution)
            before = known[1] if known is not None else None
            probed = isinstance(before, Entry) and before.end is None
            if isinstance(before, Entry) and probed:
                self._probe(before.header.branch, listing)
            found = self._entry(execution, listing, probed)
            if isinstance(found, Entry):
                entries.append(found)
            elif found is not None:
                listing.errors[execution] = found
        listing.entries = {entry.header.execution: entry for entry in in_order(entries)}
        return listing

    def _probe(self, branch: str, listing: Listing) -> None:
        if not files.NAME.fullmatch(branch):
            return  # nobody can hold it: no lock could be named after it (see `LocalLog.begin`)
        if branch not in listing.running and lease.holder(self.locks / f"{branch}.lock") is not None:
            listing.running.add(branch)

    def _entry(self, execution: str, listing: Listing, probed: bool) -> Entry | LogError | None:
        path = self.journals / f"{execution}.jsonl"
        stub = self.journals / f"{execution}.folded"
        for _ in range(3):  # a fold may put a stub in the journal's place meanwhile
            for file in (path, stub):
                try:
                    signature = _signature(file)
                    known = self._known.get(execution)
                    if known is not None and known[0] == signature:
                        return known[1]
                    found = self._read(file, listing, probed) if file is path else _stub_entry(file)
                except FileNotFoundError:
                    continue
                except LogError as error:
                    found = error
                self._known[execution] = (signature, found)
                return found
        return None

    def _read(self, path: Path, listing: Listing, probed: bool) -> Entry | LogError | None:
        line, started = first_line(path)
        if started is None:
            # No whole first line: the writer was killed, or is just writing it. It never became an execution.
            return None if not line or b"\0" in line else damaged(path, 1, "its first line is changed or cut")
        if not probed:
            self._probe(started.data.branch, listing)
        return _entry(path, started.data, started.at)


def _entry(path: Path, header: ExecutionHeader, started: float) -> Entry:
    ends = ends_of(path)
    envelope = read_envelope(ends.last)
    event = decode_event(ends.last) if b'"execution_ended"' in ends.last[:160] else None
    head = Head(execution=header.execution, seq=envelope.seq, chain=envelope.chain.text)
    return Entry(path, header, started, head, event, ends.torn, ends.size)


class Ends(msgspec.Struct, frozen=True):
    """Both ends of a journal."""

    size: int
    first: bytes
    """The first line; empty if a torn one is all there is."""
    before: bytes
    """The line before the last one; empty if there is only one."""
    last: bytes
    """The last whole line that verifies."""
    torn: int
    """Bytes after it."""


def ends_of(path: Path) -> Ends:
    """Read both ends of a journal. The two last lines usually say enough; if they do not fit, everything is read."""
    first, _ = first_line(path)
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        size = os.fstat(fd).st_size
        want = _TAIL
        while True:
            tail = files.read_at(fd, min(want, size), max(0, size - want))
            lines = tail.split(b"\n")
            torn = len(lines.pop())
            if len(lines) >= 3 or want >= size:
                break
            want *= 16
    finally:
        os.close(fd)
    if want >= size and len(lines) == 1:
        return Ends(size, first, b"", lines[0], torn)
    if len(lines) >= 2 and _follows(lines[-1], lines[-2]):
        return Ends(size, first, lines[-2], lines[-1], torn)
    reader = JournalReader(path, None)
    last: list[bytes] = []
    try:
        for batch in reader.batches():
            last = (last + batch.lines[-2:])[-2:]
    except LogTooNew:
        raise
    except LogError:
        if not last:
            raise
    return Ends(size, first, last[-2] if len(last) == 2 else b"", last[-1], reader.torn)


def _follows(line: bytes, before: bytes) -> bool:
    """Whether a line verifies against the checksum that the line before it states."""
    try:
        first, second = read_envelope(before), read_envelope(line)
    except (msgspec.DecodeError, ValueError):
        return False
    right = crc32(line[ENVELOPE:], first.chain.crc)
    return second.seq == first.seq + 1 and line.startswith(b'{"c":"%08x"' % right)


def _stub_entry(path: Path) -> Entry:
    stub = read_stub(path)
    header = stub.started.data
    head = Head(execution=header.execution, seq=stub.last_seq, chain=stub.chain.text)
    return Entry(path, header, stub.started.at, head, stub.ended, 0, 0, stub)


def _names(journals: Path) -> Iterable[str]:
    try:
        with os.scandir(journals) as found:
            return [file.name for file in found if file.name.endswith((".jsonl", ".folded")) and file.name[0] != "."]
    except FileNotFoundError:
        return []


def _signature(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
