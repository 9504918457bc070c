"""A connection for SQL over everything that is recorded: the database and the tails of the journals.

The connection is to an in-memory database that has ``log.duckdb`` attached read-only as ``log``. While it is open,
other readers come and go, and folds leave the journals as they are; so close it soon. If another program has
``log.duckdb`` open for writing, the views show what journals hold: of runs that were folded away only first and last
line. `is_partial` tells.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_durable import clock
from jupyter_durable.errors import LogError
from jupyter_durable.log import database, files, locks
from jupyter_durable.log.fold import fold_locked
from jupyter_durable.log.line import ENVELOPE, Chain
from jupyter_durable.log.listing import Entry, Lister, Listing
from jupyter_durable.log.reader import JournalReader, Position
from jupyter_durable.log.trusted import Keyring
from jupyter_durable.log.views import VIEWS

if TYPE_CHECKING:
    import duckdb

_FOLD_PATIENCE = 0.5
_ATTACH_PATIENCE = 2.0


def connect(directory: Path | str, *, fold: bool = True) -> duckdb.DuckDBPyConnection:
    """Query a log with SQL: the views of ``log.views``, unfolded events included. Close the connection soon.

    Args:
        fold: fold first, if the lock is free within half a second.

    Raises:
        LogDamaged: ``log.duckdb`` cannot be read.
    """
    import duckdb

    directory = Path(directory).absolute()
    lister = Lister(directory)
    connection = duckdb.connect()
    lock = None
    try:
        with suppress(OSError):  # a log on a read-only disk can be queried, too
            lock = locks.take_within(directory / "fold.lock", 0, _FOLD_PATIENCE)
        if fold and lock is not None:
            with suppress(LogError, OSError):  # what cannot be folded stands in the journals; `damage` tells why
                fold_locked(directory, lister.look(), Keyring(directory), patience=_FOLD_PATIENCE)
        attached = database.path_of(directory).exists() and _attach(connection, directory)
        _fill(connection, lister.look(), attached)
    except BaseException:
        connection.close()
        raise
    finally:
        if lock is not None:
            lock.release()
    return connection


def is_partial(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a connection of `connect` could not read ``log.duckdb`` and shows only what journals hold."""
    return connection.execute("SELECT partial FROM about").fetchall() == [(True,)]


def _attach(connection: duckdb.DuckDBPyConnection, directory: Path) -> bool:
    """Attach the database as ``log``; false if somebody else has it open."""
    import duckdb

    path = database.path_of(directory)
    until = clock.monotonic() + _ATTACH_PATIENCE
    quoted = str(path).replace("'", "''")
    while True:
        try:
            connection.execute(f"ATTACH '{quoted}' AS log (READ_ONLY)")
            connection.execute("SELECT version FROM log.schema_version")
        except duckdb.Error as error:
            if not database.is_locked(error):
                raise database.unreadable(path, error) from error
            if clock.monotonic() >= until:
                return False
            clock.sleep(0.02)
        else:
            return True


def _fill(connection: duckdb.DuckDBPyConnection, listing: Listing, attached: bool) -> None:
    """Take in the tails of the journals, and make the views."""
    columns = ", ".join(f"{name} {kind}" for name, kind in database.COLUMNS.items())
    connection.execute(f"CREATE TABLE tails ({columns})")
    positions: dict[str, Position] = {}
    if attached:
        rows = connection.execute("SELECT execution, bytes, line, next_seq, chain FROM log.folded").fetchall()
        positions = {name: Position(at, line, seq, Chain.of(chain)) for name, at, line, seq, chain in rows}
        connection.execute("CREATE VIEW lines AS SELECT * FROM log.lines UNION ALL SELECT * FROM tails")
    else:
        connection.execute("CREATE VIEW lines AS SELECT * FROM tails")
    partial = not attached and any(entry.stub is not None for entry in listing.entries.values())
    connection.execute(f"CREATE TABLE about AS SELECT {str(partial).lower()} AS partial")
    _take_in_tails(connection, listing, positions, attached)
    connection.execute("CREATE TABLE live (execution VARCHAR)")
    for record in listing.records():
        if record.running:
            connection.execute("INSERT INTO live VALUES (?)", [record.header.execution])
    for statement in VIEWS.values():
        connection.execute(statement)


def _take_in_tails(
    connection: duckdb.DuckDBPyConnection, listing: Listing, positions: dict[str, Position], attached: bool
) -> None:
    import tempfile

    fd, name = tempfile.mkstemp(prefix="jupyter-durable-", suffix=".jsonl")
    try:
        count = 0
        try:
            for execution, entry in listing.entries.items():
                for line in _tail(entry, positions.get(execution), attached):
                    files.write_all(fd, database.row_text(execution, line, ENVELOPE))
                    count += 1
        finally:
            os.close(fd)
        if count:
            database.ingest(connection, "tails", Path(name))
    finally:
        Path(name).unlink()


def _tail(entry: Entry, position: Position | None, attached: bool) -> list[bytes]:
    """Lines of an execution that are not in the attached database."""
    if entry.stub is not None:
        return [] if attached else [entry.stub.first, entry.stub.last]
    lines: list[bytes] = []
    if position is None or position.offset < entry.size:
        with suppress(LogError, FileNotFoundError):  # whole lines before damage are shown; `history` tells of it
            for batch in JournalReader(entry.path, None, position).batches():
                lines.extend(batch.lines)
    return lines
