"""What is asked of a whole log: the bill, SQL, all events. DuckDB's file is open only while it is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import msgspec

from jupyter_durable import clock, spending
from jupyter_durable.errors import LogError, LogUntrusted, UsageError
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.events import Recorded
from jupyter_durable.log import folded
from jupyter_durable.log.query import connect, is_partial
from jupyter_durable.log.reader import JournalReader
from jupyter_durable.server.logs import LogView, records_of
from jupyter_durable.server.plain import plain
from jupyter_durable.server.shapes import Amount, Bill, BillLine, By, SqlAnswer

if TYPE_CHECKING:
    import duckdb

LIMIT = 10_000
"""Rows of an answer at most."""
SECONDS = 8.0
"""What a query may take: less than a kernel waits for the database when a cell ends."""
_MEMORY = "1GB"
_TEXT = 20_000
"""Characters of one cell."""
_BYTES = 16 * 2**20
"""Characters of an answer, about."""
_LINES = 500


class TookTooLong(UsageError):
    """A query was stopped."""


def spend(view: LogView, by: str, run: str) -> Bill:
    """Answer to GET spend."""
    lines = spending.bill(view.log.directory, cast("By", by), run)
    return Bill(
        log=view.name,
        by=cast("By", by),
        run=run,
        lines=[
            BillLine(
                what=line.what,
                billed=_amount(line.billed),
                wasted=_amount(line.wasted),
                replayed=_amount(line.replayed),
            )
            for line in lines
        ],
    )


def _amount(amount: spending.Amount) -> Amount:
    return Amount(
        calls=amount.calls,
        unknown=amount.unknown,
        tokens=amount.tokens,
        cost=amount.cost,
        unpriced=amount.unpriced,
        text=str(amount),
    )


def sql(view: LogView, query: str, limit: int, seconds: float = SECONDS) -> SqlAnswer:
    """Answer to POST sql: one statement that reads, over the views of the log and nothing else.

    Raises:
        UsageError: it is no such statement, or DuckDB does not accept it.
        TookTooLong: it was stopped after ``seconds``.
    """
    import duckdb

    if not query.strip(" ;\n\t"):
        raise UsageError("The query is empty. Try `SELECT * FROM steps`.")
    with connect(view.log.directory) as connection:
        partial = is_partial(connection)
        _shut_in(connection)
        began = clock.monotonic()
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            connection.interrupt()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            _check(connection, query)
            cursor = connection.execute(query)
            described = cursor.description or []
            rows = cursor.fetchmany(limit + 1)
        except duckdb.Error as error:
            if stopped.is_set():
                raise TookTooLong(
                    f"The query was stopped: it took more than {seconds:.0f} seconds. Ask for less, or copy the log "
                    "and query the copy."
                ) from None
            raise UsageError(f"DuckDB does not accept the query: {error}") from None
        finally:
            timer.cancel()
        shown, cut = _rows(rows[:limit])
        return SqlAnswer(
            log=view.name,
            columns=[str(column[0]) for column in described],
            types=[str(column[1]) for column in described],
            rows=shown,
            cut=cut or len(rows) > limit,
            partial=partial,
            seconds=clock.monotonic() - began,
        )


def _shut_in(connection: duckdb.DuckDBPyConnection) -> None:
    """Take from a connection all ways out: files, network, extensions, settings, and most of the machine's memory."""
    for setting in (
        f"SET memory_limit = '{_MEMORY}'",
        "SET threads = 2",
        "SET temp_directory = ''",
        "SET autoinstall_known_extensions = false",
        "SET autoload_known_extensions = false",
        "SET python_enable_replacements = false",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        connection.execute(setting)


def _check(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    import duckdb

    statements = connection.extract_statements(query)
    reads = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
    if len(statements) != 1 or statements[0].type not in reads:
        raise UsageError(
            "One statement that only reads can be asked: SELECT, WITH, FROM, DESCRIBE, SUMMARIZE, EXPLAIN."
        )


def _rows(rows: list[tuple[Any, ...]]) -> tuple[list[list[Any]], bool]:
    """Rows as JSON has them, as far as they are not too long; and whether something was cut."""
    shown: list[list[Any]] = []
    left, cut = _BYTES, False
    for row in rows:
        made = []
        for cell in row:
            value = plain(cell)
            if isinstance(value, dict | list):
                text = msgspec.json.encode(value).decode()
                value = value if len(text) <= _TEXT else text
                left -= len(text)
            if isinstance(value, str):
                left -= len(value)
                if len(value) > _TEXT:
                    value, cut = value[:_TEXT] + "…", True
            left -= 8
            made.append(value)
        if left < 0:
            return shown, True
        shown.append(made)
    return shown, cut


class _Line(msgspec.Struct, frozen=True):
    """What stands in front of an event of an export."""

    run: str
    branch: str
    branch_name: str
    execution: str
    seq: int


_encode = msgspec.json.Encoder().encode


def export(view: LogView, run: str) -> Iterator[bytes]:
    """Answer to GET export: every event of a run, late ones included, one JSON object a line.

    Each has ``run``, ``branch``, ``branch_name``, ``execution`` and ``seq``, and then the event as it stands in the
    journal. Large values are named by their blobs. Damage ends the export with a line ``{"problem": ...}``.
    """
    listing = view.look()
    records = records_of(listing, run)

    def lines() -> Iterator[bytes]:
        found: list[bytes] = []
        for record in records:
            header = record.header
            entry = listing.entries[header.execution]
            try:
                secret = view.log.keys.secret_for(entry)
            except LogUntrusted:
                secret = None
            try:
                events: Iterator[Recorded] = (
                    JournalReader(entry.path, secret).records()
                    if entry.stub is None
                    else folded.read_all(view.log.directory, entry, None, secret)
                )
                for recorded in events:
                    found.append(_line(header, recorded))
                    if len(found) >= _LINES:
                        yield b"".join(found)
                        found = []
            except (LogError, OSError) as error:
                found.append(_encode({"execution": header.execution, "problem": str(error)}) + b"\n")
        yield b"".join(found)

    return lines()


def _line(header: ExecutionHeader, recorded: Recorded) -> bytes:
    place = _Line(header.run, header.branch, header.branch_name, header.execution, recorded.seq)
    body = _encode(recorded.event).replace(b"\n", b" ")
    return _encode(place)[:-1] + b"," + body[1:] + b"\n"
