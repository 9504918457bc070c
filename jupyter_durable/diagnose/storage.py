"""Examines the files of a log: whether they can be written and locked, whether anything is missing or damaged."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from jupyter_durable import clock
from jupyter_durable.diagnose.finding import FEW, Finding, counted
from jupyter_durable.errors import DurableError, LogError, LogUntrusted
from jupyter_durable.event_data import Payload
from jupyter_durable.log import files
from jupyter_durable.log.lease import probe_locks
from jupyter_durable.log.listing import Entry
from jupyter_durable.log.local import LocalLog
from jupyter_durable.log.reader import JournalReader

if TYPE_CHECKING:
    import duckdb


def writable(path: Path) -> Iterator[Finding]:
    """Whether the log can be written, and locked between processes."""
    refused = _refused(path)
    if refused is not None:
        yield refused
        return
    yield Finding("ok", "It can be written.")
    yield _locks(path)


def _refused(path: Path) -> Finding | None:
    """A finding if files cannot be made where the log needs them. Tried, not asked: rights are not all that counts."""
    for folder in (path, path / "journal", path / "locks", path / "blobs"):
        probe = folder / f".probe-{os.getpid()}-{clock.token_bytes(4).hex()}"
        try:
            fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                os.write(fd, b"probe\n")
            finally:
                os.close(fd)
                probe.unlink(missing_ok=True)
        except OSError as error:
            return Finding("problem", str(files.unusable("write to the log", folder, error)))
    return None


def _locks(path: Path) -> Finding:
    try:
        refused = probe_locks(path)
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("note", f"Locks could not be tried: no second process could be started ({error}).")
    if refused is None:
        return Finding("ok", "Locks work between two processes.")
    return Finding("problem", refused)


def journals(log: LocalLog) -> Iterator[Finding]:
    """Journals that are damaged, missing or of a newer version."""
    sentences = log.damage()
    for said in sentences[:FEW]:
        yield Finding("problem", said)
    if len(sentences) > FEW:
        yield Finding("problem", f"{len(sentences) - FEW} more files are damaged.")
    forged = list(_forged(log))
    yield from forged[:FEW]
    if len(forged) > FEW:
        yield Finding("problem", f"{len(forged) - FEW} more executions were changed.")
    if not sentences and not forged:
        yield Finding("ok", "Every journal can be read whole.")


def _forged(log: LocalLog) -> Iterator[Finding]:
    """Journals whose checksums are right and whose signatures are not. Those of other keys cannot be told."""
    for entry in log.look().entries.values():
        try:
            secret = log.keys.secret_for(entry)
            if entry.stub is None and secret is not None:
                for _ in JournalReader(entry.path, secret).batches():
                    pass
        except LogUntrusted as error:
            if "line" in error.facts:
                yield Finding("problem", str(error))
        except (DurableError, OSError):
            continue  # damage, and a key that is missing, are told by themselves


def blobs(log: LocalLog) -> Iterator[Finding]:
    """Blobs that journals name and that are not there. Their content is verified when it is used."""
    missing: dict[str, str] = {}
    for entry in log.look().entries.values():
        if entry.stub is not None:
            continue
        try:
            named = [
                digest
                for batch in JournalReader(entry.path, None).batches()
                for line in batch.lines
                if b'"blob' in line
                for digest in _digests(line)
            ]
        except (LogError, FileNotFoundError):
            continue  # damage is told by itself, and a journal that is gone has been folded
        missing.update((digest, entry.header.name) for digest in named if not log.blobs.size(digest))
    yield from _missing_blobs(log, missing)


def _missing_blobs(log: LocalLog, missing: dict[str, str]) -> Iterator[Finding]:
    for digest, name in list(missing.items())[:FEW]:
        yield Finding(
            "problem",
            f"The blob {log.blobs.directory / digest} is missing; a step of run {name} has stored its value in it.",
            "Put the file back from a backup, or run that step again.",
        )
    if len(missing) > FEW:
        yield Finding("problem", f"{len(missing) - FEW} more blobs are missing.")


def _digests(line: bytes) -> Iterator[str]:
    from jupyter_durable.log.line import decode_event

    try:
        event = decode_event(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    for payload in _payloads(event):
        if payload.blob is not None:
            yield payload.blob
        yield from payload.blobs


def _payloads(thing: Any) -> Iterator[Payload]:
    if isinstance(thing, Payload):
        yield thing
    elif isinstance(thing, msgspec.Struct):
        for name in thing.__struct_fields__:
            yield from _payloads(getattr(thing, name))
    elif isinstance(thing, tuple | dict):
        for item in thing.values() if isinstance(thing, dict) else thing:
            yield from _payloads(item)


_FOLDED_BLOBS = """
    SELECT DISTINCT execution, unnest(list_concat(
        [data ->> '$.blob', data ->> '$.payload.blob', data ->> '$.salvage.blob', data ->> '$.error.payload.blob'],
        CAST(coalesce(data -> '$.blobs', data -> '$.payload.blobs', data -> '$.salvage.blobs', '[]') AS VARCHAR[])
    )) AS blob FROM lines WHERE data LIKE '%"blob%'
"""


def database(log: LocalLog) -> Iterator[Finding]:
    """Whether ``log.duckdb`` can be read, who has it open, and whether it holds what was folded."""
    from jupyter_durable.log import database as stored

    listing = log.look()
    stubs = {name: entry for name, entry in listing.entries.items() if entry.stub is not None}
    path = stored.path_of(log.directory)
    if not path.exists():
        if stubs:
            lost = ", ".join(
                sorted({f"{entry.header.name} ({entry.header.branch_name})" for entry in stubs.values()})[:FEW]
            )
            yield Finding("problem", f"{path} is missing, and finished runs lie in nothing else: {lost}.",
                          "Put it back from a backup; unfinished runs resume from their journals.")  # fmt: skip
        else:
            yield Finding("ok", "Nothing has been folded into log.duckdb yet.")
        return
    try:
        connection = stored.connect(log.directory, read_only=True, patience=1.0)
    except stored.DatabaseLocked as error:
        held = re.search(r"held in (.+?) \(PID (\d+)\)", str(error))
        by = f"process {held[2]} ({held[1]})" if held else "another connection of this process"
        yield Finding(
            "note",
            f"{path} is held open by {by}. Runs go on and are recorded; nothing can be folded meanwhile.",
            "Close the connection there; `connect()` is for a short look.",
        )
        return
    except LogError as error:
        advice = "" if stubs else "Every event still lies in the journals: jupyter durable doctor --rebuild."
        yield Finding("problem", str(error), advice)
        return
    try:
        rows = dict(connection.execute("SELECT execution, count(*) FROM lines GROUP BY execution").fetchall())
        changed = list(_changed(log, stubs.values(), connection))
        named = [row for row in connection.execute(_FOLDED_BLOBS).fetchall() if row[1] is not None]
    finally:
        connection.close()
    yield Finding(
        "ok", f"log.duckdb can be read: {counted(sum(rows.values()), 'event')} of {counted(len(rows), 'execution')}."
    )
    yield from changed
    names = {name: entry.header.name for name, entry in stubs.items()}
    gone = {blob: names[name] for name, blob in named if name in names and not log.blobs.size(blob)}
    yield from _missing_blobs(log, gone)
    late = {
        name: entry.last.seq - (-1 if entry.header.head is None else entry.header.head.seq) - rows.get(name, 0)
        for name, entry in listing.entries.items()
        if entry.stub is None
    }
    unfolded = {name: number for name, number in late.items() if number > 0}
    if unfolded:
        yield Finding(
            "note",
            f"Not in log.duckdb yet: {counted(sum(unfolded.values()), 'event')} in {counted(len(unfolded), 'journal')}."
            " `jupyter durable sql` and `connect()` show them all the same.",
            "For programs that open log.duckdb themselves: jupyter durable fold.",
        )


def _changed(log: LocalLog, entries: Iterable[Entry], connection: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    """Executions whose rows are not what was signed when they were folded and their journal was removed."""
    from jupyter_durable.log.database import block_mac

    for entry in entries:
        assert entry.stub is not None
        execution = entry.header.execution
        try:
            secret = log.keys.secret_for(entry)
        except DurableError:
            secret = None
        count, _, mac = block_mac(connection, execution, entry.stub.chain, secret or b"-")
        if count == entry.stub.count and (secret is None or mac == entry.stub.block):
            continue
        how = "changed" if count == entry.stub.count else f"only {count} of {entry.stub.count} events"
        yield Finding(
            "problem",
            f"log.duckdb does not hold execution {execution} of run {entry.header.name} ({entry.header.branch_name}) "
            f"as it was folded ({how}), and its journal is gone.",
            "Put log.duckdb back from a backup.",
        )
