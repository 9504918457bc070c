"""Folding: takes what journals hold into the database, and removes the journals of completed branches.

One folder at a time (``fold.lock``). Rows and the offset of each journal go in with one transaction, so that a line is
folded exactly once whenever the folder is killed. A journal is removed only when its branch has completed and no
unfinished branch continues it, after a checkpoint (DuckDB flushes the file), a flush of the directory, and a fresh
open that found every row and the last chain value; a stub with its first and last line stays.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_durable import clock
from jupyter_durable.errors import LogDamaged, LogError, LogUnusable
from jupyter_durable.log import database, files, locks
from jupyter_durable.log.line import ENVELOPE, Chain, header_start
from jupyter_durable.log.listing import Entry, Lister, Listing, ends_of
from jupyter_durable.log.reader import JournalReader, Position
from jupyter_durable.log.stub import encode_stub
from jupyter_durable.log.trusted import Keyring

if TYPE_CHECKING:
    import duckdb


@dataclass(slots=True)
class Folded:
    """What one fold did."""

    events: int = 0
    sealed: int = 0
    """Journals that were removed."""
    note: str = ""
    """Why something was left in the journals; empty if nothing was."""


def fold(directory: Path, lister: Lister, keys: Keyring, *, patience: float) -> Folded:
    """Fold everything that can be.

    Args:
        patience: seconds to wait for another folder, and again for another program that has the database open.

    Raises:
        LogDamaged: the database cannot be read. The journals are left alone.
        LogUnusable: the file system refused.
    """
    lock = _lock(directory, patience)
    if lock is None:
        return Folded(note="Another process is folding the journals; they stay as they are.")
    try:
        return fold_locked(directory, lister.look(), keys, patience=patience)
    except OSError as error:
        raise files.unusable("fold the journals of", directory, error) from error
    finally:
        lock.release()


def _lock(directory: Path, patience: float) -> locks.Held | None:
    try:
        return locks.take_within(directory / "fold.lock", 0, patience)
    except OSError as error:
        raise files.unusable("fold the journals of", directory, error) from error


def fold_locked(directory: Path, listing: Listing, keys: Keyring, *, patience: float) -> Folded:
    """`fold` for a caller that holds ``fold.lock``."""
    for left in (*directory.glob(f"{database.TEMPORARY}*"), *(directory / "journal").glob(".*.folded.*")):
        left.unlink(missing_ok=True)  # of a folder that was killed
    journals = [entry for entry in listing.entries.values() if entry.stub is None]
    done = Folded()
    if not journals:
        return done
    own = keys.own().id
    foreign = sum(entry.header.key != own for entry in journals)
    if foreign:
        done.note = f"{foreign} journals were written with another key and stay as they are."
    journals = [entry for entry in journals if entry.header.key == own]
    path = database.path_of(directory)
    if not path.exists() and len(listing.entries) > len(journals) + foreign:
        raise LogDamaged(
            f"{path} is missing, and finished runs lie in nothing else. Put it back from a backup; the journals of "
            "unfinished runs are whole and resume as before.",
            file=str(path),
            line=0,
            readable=0,
        )
    try:
        connection = database.connect(directory, read_only=False, patience=patience)
    except database.DatabaseLocked as error:
        done.note = f"{path} is open in another program, so the journals stay as they are: {error}"
        return done
    try:
        with database.reading(directory):
            folding = _Folding(directory, keys, done, _positions(connection))
            folding.take_in(connection, journals)
            whole = _completed(listing, journals, folding.positions)
            if whole:
                connection.execute("CHECKPOINT")
    finally:
        connection.close()
    files.hooks.reached("fold: closed")
    if whole:
        _seal(directory, keys, whole, folding.positions, done, patience)
    return done


def rebuild(directory: Path, lister: Lister, keys: Keyring, *, patience: float) -> Folded:
    """Move the database aside and fold all journals into a new one.

    Raises:
        LogDamaged: some executions lie in the old database only.
    """
    lock = _lock(directory, patience)
    if lock is None:
        raise LogUnusable(f"Another process is folding the journals of {directory}. Try again when it is over.")
    try:
        listing = lister.look()
        stubs = [entry for entry in listing.entries.values() if entry.stub is not None]
        path = database.path_of(directory)
        if stubs:
            names = ", ".join(sorted({f"{entry.header.name} ({entry.header.branch_name})" for entry in stubs})[:10])
            raise LogDamaged(
                f"{path} cannot be rebuilt: finished runs lie in nothing else: {names}. Put it back from a backup. If "
                f"there is none, move it and journal/*.folded away; those runs are lost, the others are whole.",
                file=str(path),
                line=0,
                readable=0,
            )
        aside = clock.token_bytes(4).hex()
        for file in (path, path.with_name(f"{path.name}.wal")):
            if file.exists():
                files.hooks.rename(file, file.with_name(f"{file.name}.damaged-{aside}"))
        return fold_locked(directory, listing, keys, patience=patience)
    except OSError as error:
        raise files.unusable("rebuild the database of", directory, error) from error
    finally:
        lock.release()


class _Folding:
    """One transaction: the new lines of all journals."""

    def __init__(self, directory: Path, keys: Keyring, done: Folded, positions: dict[str, Position]) -> None:
        self.positions = positions
        """How far each journal is in the database."""
        self._secret = keys.own().secret
        self._done = done
        self._moved: list[str] = []
        self._file = directory / f"{database.TEMPORARY}{os.getpid()}-{clock.token_bytes(4).hex()}"

    def take_in(self, connection: duckdb.DuckDBPyConnection, journals: list[Entry]) -> None:
        """Copy what is new in the journals, and commit it with the new positions."""
        try:
            count = self._copy(journals)
            files.hooks.reached("fold: copied")
            if not count:
                return
            connection.execute("BEGIN")
            inserted = database.ingest(connection, "lines", self._file)
            if inserted != count:
                raise LogUnusable(f"DuckDB took in {inserted} of {count} events; the journals stay as they are.")
            files.hooks.reached("fold: inserted")
            connection.execute("DELETE FROM folded WHERE execution IN (SELECT unnest(?))", [self._moved])
            for execution in self._moved:
                at = self.positions[execution]
                connection.execute(
                    "INSERT INTO folded VALUES (?, ?, ?, ?, ?)", [execution, at.offset, at.line, at.seq, at.chain.text]
                )
            files.hooks.reached("fold: positions written")
            connection.execute("COMMIT")
            files.hooks.reached("fold: committed")
            self._done.events = count
        finally:
            self._file.unlink(missing_ok=True)

    def _copy(self, journals: list[Entry]) -> int:
        """Write the new lines of all journals, flushed and verified, into one file; return how many."""
        count = 0
        fd = files.hooks.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            for entry in journals:
                start = self.positions.get(entry.header.execution)
                if start is None or start.offset < entry.size:
                    with suppress(FileNotFoundError):
                        count += self._copy_one(entry, start, fd)
        finally:
            os.close(fd)
        return count

    def _copy_one(self, entry: Entry, start: Position | None, fd: int) -> int:
        execution = entry.header.execution
        _flush(entry.path)
        reader = JournalReader(entry.path, self._secret, start)
        prefix = b'{"execution":"%b",' % execution.encode()
        between = b"\n" + prefix
        count = 0
        try:
            for batch in reader.batches():
                files.write_all(fd, prefix + between.join([line[ENVELOPE:] for line in batch.lines]) + b"\n")
                count += len(batch.lines)
        except LogError as error:  # what came before is whole; the next reader of this branch is told
            self._done.note = str(error)
        if count:
            self.positions[execution] = reader.position
            self._moved.append(execution)
        return count


def _flush(journal: Path) -> None:
    """What is in the database must not be ahead of its journal after a loss of power."""
    fd = os.open(journal, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        files.hooks.fdatasync(fd)
    finally:
        os.close(fd)


def _positions(connection: duckdb.DuckDBPyConnection) -> dict[str, Position]:
    rows = connection.execute("SELECT execution, bytes, line, next_seq, chain FROM folded").fetchall()
    return {name: Position(offset, line, seq, Chain.of(chain)) for name, offset, line, seq, chain in rows}


def _completed(listing: Listing, journals: list[Entry], positions: dict[str, Position]) -> list[Entry]:
    """Journals that are wholly folded, of branches that have completed, and that no unfinished branch builds on."""
    if listing.errors:  # an execution that cannot be read may build on any of them
        return []
    tips = listing.tips()
    completed = {
        branch
        for branch, tip in tips.items()
        if tip.ended is not None
        and tip.ended.data.status in ("completed", "continued")
        and branch not in listing.running
    }
    needed: set[str] = set()
    open_ends = [branch for branch in tips if branch not in completed]
    while open_ends:
        branch = open_ends.pop()
        if branch in needed:
            continue
        needed.add(branch)
        for entry in listing.entries.values():
            if entry.header.branch == branch:
                if entry.header.origin is not None:
                    open_ends.append(entry.header.origin.branch)
                head = entry.header.head
                before = None if head is None else listing.entries.get(head.execution)
                if before is not None:
                    open_ends.append(before.header.branch)
    unfolded = {entry.header.branch for entry in journals if not _wholly(entry, positions.get(entry.header.execution))}
    return [entry for entry in journals if entry.header.branch in completed - needed - unfolded]


def _wholly(entry: Entry, position: Position | None) -> bool:
    return position is not None and position.chain.text == entry.last.chain and position.seq == entry.last.seq + 1


def _seal(
    directory: Path, keys: Keyring, entries: list[Entry], positions: dict[str, Position], done: Folded, patience: float
) -> None:
    """Replace journals by stubs, once a fresh open has found their rows."""
    files.hooks.fsync_dir(directory)
    files.hooks.reached("fold: directory flushed")
    secret = keys.own().secret
    sealed: list[Entry] = []
    try:
        connection = database.connect(directory, read_only=True, patience=patience)
    except database.DatabaseLocked as error:
        done.note = f"{database.path_of(directory)} is open in another program; finished journals stay: {error}"
        return
    try:
        with database.reading(directory):
            stored = _positions(connection)
            for entry in entries:
                block = _verified(connection, entry, stored.get(entry.header.execution), positions, secret)
                if block is None:
                    done.note = f"{entry.path} stays: the database does not hold all of it."
                    continue
                ends = ends_of(entry.path)
                _, start = header_start(entry.header)
                before = Chain(int(ends.before[6:14], 16), ends.before[21:37]) if ends.before else start
                count = entry.last.seq - header_start(entry.header)[0] + 1
                text = encode_stub(ends.first, ends.last, before, count, block)
                files.write_file(entry.path.with_suffix(".folded"), text)
                sealed.append(entry)
    finally:
        connection.close()
    for entry in sealed:
        files.hooks.unlink(entry.path)
        done.sealed += 1
    if sealed:
        files.hooks.fsync_dir(sealed[0].path.parent)


def _verified(
    connection: duckdb.DuckDBPyConnection,
    entry: Entry,
    stored: Position | None,
    positions: dict[str, Position],
    secret: bytes,
) -> str | None:
    """The MAC of an execution's rows; ``None`` if the database or the journal is not what was folded."""
    execution = entry.header.execution
    first, _ = header_start(entry.header)
    count, last, block = database.block_mac(connection, execution, Chain.of(entry.last.chain), secret)
    whole = count == entry.last.seq - first + 1 and last == entry.last.seq
    unchanged = entry.path.stat().st_size == entry.size and stored == positions[execution]
    return block if whole and unchanged else None
