"""The database that journals are folded into: its tables, how lines get in, and how it is opened.

``lines`` is the truth: one row for each event, with ``data`` as the exact text that stood in the journal. Times are
numbers there and become TIMESTAMPTZ in the views, whatever the time zone of who asks. ``folded`` says how far each
journal has been taken in. Nobody holds the file: connections are short. The product never opens it with ``open()``,
not even to flush it: closing any descriptor of a file drops the lock that DuckDB holds on it in this process, and
DuckDB itself flushes the file at a checkpoint.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_durable import clock
from jupyter_durable.errors import LogDamaged, LogTooNew, LogUnusable
from jupyter_durable.log import files
from jupyter_durable.log.line import Chain, mac_text
from jupyter_durable.log.views import VIEWS

if TYPE_CHECKING:
    import duckdb

TEMPORARY = ".fold-"
"""How the names of files begin that a folder needs for a moment; one that was killed leaves them behind."""

SCHEMA = 3
"""Version of the tables and views."""

COLUMNS = {
    "execution": "VARCHAR",
    "seq": "BIGINT",
    "type": "VARCHAR",
    "time": "DOUBLE",
    "step": "BIGINT",
    "scope": "VARCHAR",
    "name": "VARCHAR",
    "digest": "VARCHAR",
    "n": "BIGINT",
    "evidence": "VARCHAR",
    "kind": "VARCHAR",
    "attempt": "BIGINT",
    "pure": "BOOLEAN",
    "why": "VARCHAR",
    "data": "VARCHAR",
}
"""Columns of ``lines``. ``time`` is the event's ``at``, which SQL would want quoted. NULL is the field's default."""

FLAT = tuple(name for name in COLUMNS if name not in {"execution", "seq", "type", "time", "data"})
"""Fields that an event carries beside its ``data``."""

_TABLES = (
    # For prose the default compression takes twice the space of zstd, which DuckDB itself chooses for long texts only.
    "CREATE TABLE lines ("
    + ", ".join(f"{name} {kind}{' USING COMPRESSION zstd' * (name == 'data')}" for name, kind in COLUMNS.items())
    + ")",
    "CREATE TABLE folded (execution VARCHAR, bytes BIGINT, line BIGINT, next_seq BIGINT, chain VARCHAR)",
    "CREATE TABLE live (execution VARCHAR)",
    f"CREATE TABLE schema_version AS SELECT {SCHEMA} AS version",
)

_CREATE = ";\n".join(("BEGIN", *_TABLES, *VIEWS.values(), "COMMIT"))
_DIRECT = "SET checkpoint_threshold = '1B'"
"""A commit then goes into the file at once, and not into its write-ahead log first."""

_FIELDS = '{"execution":"VARCHAR","seq":"BIGINT","type":"VARCHAR","at":"DOUBLE",' + (
    ",".join(f'"{name}":"{COLUMNS[name]}"' for name in FLAT) + "}"
)
# ``data`` is cut out of the text, not parsed: JSON numbers must come back as they were written. It is the last field
# of an event, and inside a string the quotes of the mark would be escaped.
_INGEST = (
    "SELECT event.execution, event.seq, event.type, event.at, "
    + ", ".join(f"event.{name}" for name in FLAT)
    + """, CASE WHEN place > 0 THEN substr(text, place + 8, length(text) - place - 8) END
    FROM (SELECT json::VARCHAR AS text, strpos(json::VARCHAR, ',"data":') AS place,
          json_transform(json, '"""
    + _FIELDS
    + """') AS event FROM read_ndjson_objects(?, maximum_object_size = 1073741824))"""
)

# Lengths stand beside the texts, so that no byte can move from one column into the next.
_DIGEST = (
    "SELECT count(*), min(seq), max(seq), sha256(string_agg(concat_ws(chr(31), seq, type, "
    "CAST(round(time * 1000000) AS BIGINT), "
    + ", ".join(
        f"coalesce(strlen({name}), -1), coalesce({name}, '')"
        if kind == "VARCHAR"
        else f"coalesce(CAST({name} AS BIGINT), -1)"
        for name, kind in COLUMNS.items()
        if name in {*FLAT, "data"}
    )
    + "), chr(30) ORDER BY seq)) FROM lines WHERE execution = ?"
)


_BLOCK = 65536
"""Bytes of a block of a new database. Every column of a table takes whole blocks, and DuckDB's own are 262,144."""


class DatabaseLocked(Exception):
    """Somebody has the database open; the text says who. Never leaves this package."""


def path_of(directory: Path) -> Path:
    """The database of a log directory."""
    return directory / "log.duckdb"


def connect(directory: Path, *, read_only: bool, patience: float) -> duckdb.DuckDBPyConnection:
    """Open the database for a short time.

    Raises:
        DatabaseLocked: another process has it open, and still had after ``patience`` seconds.
        LogDamaged: it cannot be read.
        LogTooNew: it has a newer schema.
        LogUnusable: the file system refused.
    """
    import duckdb

    path = path_of(directory)
    if not read_only and not path.exists():
        with reading(directory):
            _make(path)
    until = clock.monotonic() + patience
    while True:
        try:
            connection = duckdb.connect(str(path), read_only=read_only)
            break
        except duckdb.Error as error:
            if not is_locked(error):
                raise unreadable(path, error) from error
            if clock.monotonic() >= until:
                raise DatabaseLocked(str(error)) from error
        clock.sleep(0.02)
    try:
        _check_schema(connection, path, read_only)
    except BaseException:
        connection.close()
        raise
    return connection


def _make(path: Path) -> None:
    """Make a new database whole or not at all: DuckDB cannot open what a death or a full disk leaves of a beginning."""
    import duckdb

    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{clock.token_bytes(4).hex()}.duckdb")
    try:
        connection = duckdb.connect(str(temporary), config={"default_block_size": str(_BLOCK)})
        try:
            connection.execute(_CREATE)
            connection.execute("CHECKPOINT")
        finally:
            connection.close()
        files.hooks.rename(temporary, path)
    finally:
        for left in path.parent.glob(f"{temporary.name}*"):
            left.unlink(missing_ok=True)


@contextmanager
def reading(directory: Path) -> Iterator[None]:
    """Turn what DuckDB finds wrong with its file, once it is open, into `LogDamaged`, or `LogUnusable`."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise unreadable(path_of(directory), error) from error


def is_locked(error: Exception) -> bool:
    """Whether DuckDB refused a file because it is open elsewhere: in another process, or here in another way."""
    text = str(error)
    return any(
        sign in text
        for sign in (
            "Could not set lock",
            "different configuration",
            "handle conflict",
            "being used by another process",
        )
    )


def unreadable(path: Path, error: Exception) -> LogDamaged | LogUnusable:
    """The error for a database that cannot be read; or written, if that is what the file system refused."""
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS):
        if os.strerror(number) in str(error):
            return files.unusable("write to", path, OSError(number, os.strerror(number)))
    reason = str(error).strip().partition("\n")[0]
    return LogDamaged(
        f"{path} cannot be read ({reason}). Unfinished runs do not need it: their journals beside it "
        "are whole and resume as before. `jupyter durable doctor` says what it held, and rebuilds it if journals still "
        "hold everything; else put it back from a backup.",
        file=str(path),
        line=0,
        readable=0,
    )


def _check_schema(connection: duckdb.DuckDBPyConnection, path: Path, read_only: bool) -> None:
    import duckdb

    version = SCHEMA
    try:
        try:
            version = connection.execute("SELECT version FROM schema_version").fetchall()[0][0]
        except duckdb.CatalogException:
            if read_only or connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() != [(0,)]:
                raise  # never made into a log: it is somebody's, or damaged
            connection.execute(_CREATE)
        if not read_only:
            connection.execute(_DIRECT)
            if version < SCHEMA:
                _renew_views(connection)
    except duckdb.Error as error:
        raise unreadable(path, error) from error
    if version > SCHEMA:
        raise LogTooNew(
            f"{path} has schema {version}; this jupyter_durable reads up to {SCHEMA}. Upgrade it "
            "(pip install -U jupyter_durable); the file is left as it is.",
            file=str(path),
            format=version,
        )


def _renew_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Bring a database of an older version up to date: its tables are the same, only views have come and changed."""
    drops = [f"DROP VIEW IF EXISTS {name}" for name in reversed(VIEWS)]
    update = f"UPDATE schema_version SET version = {SCHEMA}"
    connection.execute(";\n".join(["BEGIN", *drops, *VIEWS.values(), update, "COMMIT"]))


def row_text(execution: str, line: bytes, envelope: int) -> bytes:
    """A journal's line as `ingest` wants it: the execution in the place of checksum and MAC."""
    return b'{"execution":"%b",%b\n' % (execution.encode(), line[envelope:])


def ingest(connection: duckdb.DuckDBPyConnection, table: str, file: Path) -> int:
    """Insert the rows of a file of `row_text`; return how many."""
    inserted = connection.execute(f"INSERT INTO {table} {_INGEST}", [str(file)]).fetchall()
    return int(inserted[0][0])


def block_mac(
    connection: duckdb.DuckDBPyConnection, execution: str, chain: Chain, secret: bytes
) -> tuple[int, int, str]:
    """Rows of an execution, its last seq, and the MAC over all of them and the chain that ends them."""
    count, first, last, digest = connection.execute(_DIGEST, [execution]).fetchall()[0]
    text = f"{execution} {count} {first} {last} {chain.text} {digest}"
    return count, -1 if last is None else last, mac_text(secret, b"jupyter-durable!", text.encode()).decode()
