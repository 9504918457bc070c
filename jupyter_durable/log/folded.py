"""Reads what was folded back from the database, as events, verified.

Only a branch whose journals are gone needs this: a completed one. The rows of an execution are verified by one MAC
over all of them, which stands in the stub that its journal left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from jupyter_durable import clock
from jupyter_durable.errors import LogDamaged, LogUntrusted, LogUnusable
from jupyter_durable.event_data import Head
from jupyter_durable.events import Recorded
from jupyter_durable.log import database
from jupyter_durable.log.line import decode_event
from jupyter_durable.log.listing import Entry

if TYPE_CHECKING:
    import duckdb

_PATIENCE = 10.0
_PAUSES = (0.02, 0.1, 0.3)
"""Seconds between looks at what seems damaged."""
_ROWS = 5000
_SELECT = f"SELECT seq, type, time, data, {', '.join(database.FLAT)} FROM lines WHERE execution = ? AND seq "
_encode = msgspec.json.Encoder().encode


Part = tuple[Entry, Head | None, bytes | None]
"""A folded execution, the head that its successor names, and the secret that verifies it (or none)."""


def read_all(directory: Path, entry: Entry, upto: Head | None, secret: bytes | None) -> Iterator[Recorded]:
    """The events of one folded execution; see `read_parts`."""
    return read_parts(directory, [(entry, upto, secret)])


def read_parts(directory: Path, parts: list[Part]) -> Iterator[Recorded]:
    """The events of folded executions, each up to the head that its successor names, over one connection.

    Raises:
        LogDamaged: database or rows are missing or changed.
        LogUntrusted: rows are not what was signed.
        LogUnusable: another process kept the database open.
    """
    connection = _open(directory)
    try:
        for part in parts:
            connection = _checked(directory, connection, part)
            yield from _read(directory, connection, part)
    finally:
        connection.close()


def read_on(directory: Path, part: Part, after: int, *, check: bool) -> Generator[Recorded, None, None]:
    """The events of one folded execution behind a seq, for views that have read the others; see `read_parts`.

    Args:
        directory: the log.
        part: the execution.
        after: seq of the last event that is known.
        check: verify the execution first; it costs a pass over all of its rows.
    """
    connection = _open(directory)
    try:
        if check:
            connection = _checked(directory, connection, part)
        yield from _read(directory, connection, part, after)
    finally:
        connection.close()


def _checked(directory: Path, connection: duckdb.DuckDBPyConnection, part: Part) -> duckdb.DuckDBPyConnection:
    """Verify an execution; returns the connection to go on with."""
    for pause in _PAUSES:
        try:
            _check(directory, connection, part)
        except (LogDamaged, LogUntrusted):
            # DuckDB's lock on the file falls when anything in this process closes it, and a folder elsewhere
            # may then write under our eyes. What is really damaged still is a moment later.
            connection.close()
            clock.sleep(pause)
            connection = _open(directory)
        else:
            return connection
    try:
        _check(directory, connection, part)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(directory: Path, connection: duckdb.DuckDBPyConnection, part: Part) -> None:
    entry, upto, secret = part
    assert entry.stub is not None
    last = _last(part)
    if last > entry.last.seq or (upto is not None and last == entry.last.seq and upto.chain != entry.last.chain):
        raise _changed(directory, entry, f"event {last}, which a later execution continues, is not in it")
    if secret is not None:
        with database.reading(directory):
            count, _, mac = database.block_mac(connection, entry.header.execution, entry.stub.chain, secret)
        if count != entry.stub.count:
            raise _changed(directory, entry, f"it holds {count} of {entry.stub.count} events")
        if mac != entry.stub.block:
            raise _forged(directory, entry)


def _last(part: Part) -> int:
    entry, upto, _ = part
    return entry.last.seq if upto is None else upto.seq


def _read(directory: Path, connection: duckdb.DuckDBPyConnection, part: Part, after: int = -1) -> Iterator[Recorded]:
    with database.reading(directory):
        rows = connection.execute(
            _SELECT + "BETWEEN ? AND ? ORDER BY seq", [part[0].header.execution, after + 1, _last(part)]
        )
    while some := _fetch(directory, rows):
        for row in some:
            yield _recorded(row)


def _fetch(directory: Path, rows: duckdb.DuckDBPyConnection) -> list[Any]:
    with database.reading(directory):
        return rows.fetchmany(_ROWS)


def read_one(directory: Path, entry: Entry, seq: int) -> Recorded:
    """One event of a folded execution.

    Raises:
        LogDamaged: it is not there.
        LogUnusable: another process kept the database open.
    """
    connection = _open(directory)
    try:
        with database.reading(directory):
            rows = connection.execute(_SELECT + "= ?", [entry.header.execution, seq]).fetchall()
    finally:
        connection.close()
    if len(rows) != 1:
        raise _changed(directory, entry, f"event {seq} is missing")
    return _recorded(rows[0])


@contextmanager
def one_by_one(directory: Path) -> Iterator[Callable[[str, int], Recorded]]:
    """Reads single events of folded executions, not verified, over one connection: opened when the first is asked for.

    The function that it yields takes execution and seq. It raises `LogDamaged` where there is no such event, and what
    opening the database raises.
    """
    connection: duckdb.DuckDBPyConnection | None = None

    def read(execution: str, seq: int) -> Recorded:
        nonlocal connection
        connection = connection or _open(directory)
        with database.reading(directory):
            rows = connection.execute(_SELECT + "= ?", [execution, seq]).fetchall()
        if len(rows) != 1:
            path = database.path_of(directory)
            raise LogDamaged(
                f"{path} does not hold event {seq} of execution {execution}.", file=str(path), line=0, readable=0
            )
        return _recorded(rows[0])

    try:
        yield read
    finally:
        if connection is not None:
            connection.close()


def _open(directory: Path) -> duckdb.DuckDBPyConnection:
    path = database.path_of(directory)
    if not path.exists():
        raise LogDamaged(
            f"{path} is missing, and finished runs lie in nothing else. Put it back from a backup; unfinished runs "
            "resume from their journals.",
            file=str(path),
            line=0,
            readable=0,
        )
    try:
        return database.connect(directory, read_only=True, patience=_PATIENCE)
    except database.DatabaseLocked as error:
        raise LogUnusable(
            f"{path} is open in another program ({error}), and this branch lies in nothing else. Close it there, then "
            "run the cell again.",
            path=str(path),
        ) from error


def _recorded(row: tuple[Any, ...]) -> Recorded:
    seq, kind, time, data, *flat = row
    fields = {"type": kind, "at": time}
    fields.update((name, value) for name, value in zip(database.FLAT, flat, strict=True) if value is not None)
    text = _encode(fields)
    if data is not None:
        text = b'%b,"data":%b}' % (text[:-1], data.encode())
    return Recorded(seq, decode_event(text))


def _changed(directory: Path, entry: Entry, what: str) -> LogDamaged:
    path = database.path_of(directory)
    return LogDamaged(
        f"{path} does not hold execution {entry.header.execution} of run {entry.header.name} "
        f"({entry.header.branch_name}) as it was folded: {what}. Nothing was executed. Put the file back from a "
        "backup, or start anew with --fresh.",
        file=str(path),
        line=0,
        readable=0,
    )


def _forged(directory: Path, entry: Entry) -> LogUntrusted:
    path = database.path_of(directory)
    return LogUntrusted(
        f"{path} was changed: execution {entry.header.execution} of run {entry.header.name} "
        f"({entry.header.branch_name}) is not what was signed when it was folded. Nothing of it is loaded. Put the "
        "file back from a backup, or start anew with --fresh.",
        file=str(path),
    )
