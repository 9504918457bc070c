"""Reads and verifies a journal, line by line, and decides what damage means.

An index of a long history needs the events, not their payloads. So a reader can be *lean*: payloads above
`LEAN_PAYLOAD` bytes are dropped as they are read (``Payload.data`` unset and ``blob`` unset), and `read_line` brings
one event back whole from its place in the file.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec

from jupyter_durable.errors import LogDamaged, LogTooNew, LogUntrusted
from jupyter_durable.event_data import Payload
from jupyter_durable.events import FORMAT, ExecutionStarted, Recorded, StepCompleted
from jupyter_durable.log import files
from jupyter_durable.log.line import (
    ENVELOPE,
    Chain,
    Envelope,
    decode_event,
    header_start,
    mac_text,
    read_envelope,
    read_header,
)

LEAN_BYTES = 16 << 20
"""A history of more bytes than this is read lean."""
LEAN_PAYLOAD = 512
"""A line of at most this length keeps its payload, also in a lean reading."""
_CHUNK = 1 << 20
_WHOLE = re.compile(rb'\{"c":"[0-9a-f]{8}","m":"[\w-]{16}","seq":\d+,.*\}', re.ASCII | re.DOTALL)
_UNSTATED = Chain(-1, b"")


class Position(NamedTuple):
    """A place between two lines of a journal."""

    offset: int
    """Of the next line, in bytes."""
    line: int
    """Number of the next line, from 1."""
    seq: int
    """Of the next line."""
    chain: Chain
    """What the next line is chained to."""


class Batch(NamedTuple):
    """Verified lines that lie behind each other."""

    start: Position
    """Of the first of them."""
    lines: list[bytes]
    """Without their line feeds."""
    checksums: list[int]
    """The checksum of each line."""


class JournalReader:
    """One pass over one journal, from its beginning or from a `Position`.

    ``secret`` verifies the MACs; ``None`` leaves them unread (for listings and live views).

    Attributes:
        position: behind the last batch that was handed out.
        torn: bytes after the last whole line that were left out; known when the pass is over.
    """

    def __init__(self, path: Path, secret: bytes | None, start: Position | None = None) -> None:
        self.path = path
        self._secret = secret
        self.position: Position = start or Position(0, 1, 0, _UNSTATED)
        self.torn = 0

    def batches(self) -> Iterator[Batch]:
        """Verified lines, as many at a time as a read brought: one at a time would cost as much as verifying.

        Raises:
            LogDamaged: bytes are missing or changed where a power loss cannot have done it.
            LogUntrusted: checksums agree and a MAC does not.
            LogTooNew: the journal has a newer format.
            FileNotFoundError: there is no such journal.
        """
        fd = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            rest = b""
            while chunk := files.read_at(fd, _CHUNK, self.position.offset + len(rest)):
                lines = (rest + chunk).split(b"\n")
                rest = lines.pop()
                if not lines:
                    continue
                start = self.position
                if start.line == 1 and (started := read_header(lines[0], str(self.path))) is not None:
                    seq, chain = header_start(started.data)
                    start = start._replace(seq=seq, chain=chain)
                checksums, chain, bad = self._verify(lines, start)
                count = len(checksums)
                del lines[count:]
                if count:
                    self.position = Position(
                        start.offset + sum(map(len, lines)) + count, start.line + count, start.seq + count, chain
                    )
                    yield Batch(start, lines, checksums)
                if bad is not None:
                    self._explain(fd, bad, start.seq + count)
                    return
            self.torn = len(rest)
        finally:
            os.close(fd)

    def _verify(self, lines: list[bytes], start: Position) -> tuple[list[int], Chain, tuple[bytes, int] | None]:
        """Checksums of the good lines, the chain after them, and the first bad line with its right checksum."""
        secret, seq, (crc, mac) = self._secret, start.seq, start.chain
        crc &= 0xFFFFFFFF
        checksums: list[int] = []
        bad = None
        for text in lines:
            rest = text[ENVELOPE:]
            after = crc32(rest, crc)
            if secret is None:
                good = text.startswith(b'{"c":"%08x","m":"' % after) and text.startswith(
                    b'","seq":%d,' % seq, ENVELOPE - 2
                )
            else:
                right = mac_text(secret, mac, rest)
                good = text.startswith(b'{"c":"%08x","m":"%b","seq":%d,' % (after, right, seq))
                mac = right if good else mac
            if not good:
                bad = text, after
                break
            crc = after
            checksums.append(crc)
            seq += 1
        if secret is None and checksums:  # the stated MAC, so that a later pass can go on from here
            mac = lines[len(checksums) - 1][21:37]
        return checksums, Chain(crc, mac), bad

    def records(self, *, lean: bool = False, seen: Callable[[Batch], None] | None = None) -> Iterator[Recorded]:
        """The events of the journal; ``seen`` is told each batch first. See `batches` for what it raises."""
        for batch in self.batches():
            if seen is not None:
                seen(batch)
            for seq, text in enumerate(batch.lines, batch.start.seq):
                try:
                    event = decode_event(text)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise self._unknown(batch.start.line + seq - batch.start.seq, error) from error
                if lean and len(text) > LEAN_PAYLOAD and isinstance(event, StepCompleted):
                    event = without_payload(event)
                yield Recorded(seq, event)

    def _unknown(self, number: int, error: Exception) -> LogTooNew:
        return LogTooNew(
            f"{self.path}, line {number}: this version of jupyter_durable does not know that kind of event "
            f"({error}). Upgrade it (pip install -U jupyter_durable); the file is left as it is.",
            file=str(self.path),
            line=number,
            format=FORMAT,
        )

    def _forged(self, number: int, seq: int) -> LogUntrusted:
        return LogUntrusted(
            f"{self.path}, line {number} (event {seq}): the checksum is right and the signature is not. Somebody "
            "without your key has changed the line, or the signature itself is damaged. Nothing of this branch is "
            "loaded. Put the original file back, or look at it with `%durable history` and accept it with "
            "`%durable trust`.",
            file=str(self.path),
            line=number,
            seq=seq,
            readable=number - 1,
        )

    def _explain(self, fd: int, bad: tuple[bytes, int], seq: int) -> None:
        """Decide about the first line that does not verify: a torn tail is counted, damage and forgery raise."""
        text, checksum = bad
        number = self.position.line
        if (
            text.startswith(b'{"c":"%08x","m":"' % checksum)
            and text.startswith(b'",', ENVELOPE - 2)
            and text.startswith(b'"seq":%d,' % seq, ENVELOPE)
        ):
            raise self._forged(number, seq)
        tail = _read_to_end(fd, self.position.offset)
        marked = False
        whole_at = -1
        place = tail.find(b"\n") + 1
        while 0 < place < len(tail):
            end = tail.find(b"\n", place)
            if end < 0:
                break
            text = tail[place:end]
            if _WHOLE.fullmatch(text) and (envelope := _envelope(text)) is not None and envelope.seq > seq:
                whole_at = place if whole_at < 0 else whole_at
                marked = marked or envelope.f >= seq
            place = end + 1
        # Pages that were never flushed may reach the disk in any order; a lost one reads as zeroes.
        if not marked and (whole_at < 0 or b"\0" in tail[:whole_at]):
            self.torn = len(tail)
            return
        raise damaged(self.path, number, "a line is changed or cut and whole lines follow it")


class Places:
    """Where the lines of one journal lie, in 16 bytes each; for `LocalLog.reload`."""

    def __init__(self) -> None:
        self.first = 0
        self.offsets = array("Q")
        self.lengths = array("I")
        self.before = array("I")

    def note(self, batch: Batch) -> None:
        """Add the lines of a batch."""
        if not self.offsets:
            self.first = batch.start.seq
        offset, before = batch.start.offset, batch.start.chain.crc
        for text, checksum in zip(batch.lines, batch.checksums, strict=True):
            self.offsets.append(offset)
            self.lengths.append(len(text))
            self.before.append(before & 0xFFFFFFFF)
            offset += len(text) + 1
            before = checksum


def damaged(path: Path, number: int, what: str) -> LogDamaged:
    """`LogDamaged` for a line of a journal."""
    readable = number - 1
    return LogDamaged(
        f"{path} is damaged at line {number}: {what}. The {readable} events before it can be read; nothing was "
        "executed. Put the file back from a backup, or start anew with --fresh.",
        file=str(path),
        line=number,
        readable=readable,
    )


def without_payload(event: StepCompleted) -> StepCompleted:
    """The event without its inline payload; the rest of the payload's facts stay."""
    data = event.data
    if data.data is msgspec.UNSET:
        return event
    return StepCompleted(
        at=event.at,
        step=event.step,
        data=Payload(codec=data.codec, blob=data.blob, blobs=data.blobs, size=data.size),
    )


def iter_lines(path: Path, secret: bytes | None = None, *, lean: bool = True) -> Iterator[tuple[int, int, Recorded]]:
    """``(offset, length, event)`` of every line of a journal, verified; it raises what `JournalReader.batches` does."""
    places = Places()
    for number, recorded in enumerate(JournalReader(path, secret).records(lean=lean, seen=places.note)):
        yield places.offsets[number], places.lengths[number], recorded


def read_line(path: Path, offset: int, length: int, crc_before: int | None = None) -> Recorded:
    """One event again, whole, from its place; verified against the checksum before it, if that is given.

    Raises:
        LogDamaged: the file is not what it was when its places were read.
    """
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        text = files.read_at(fd, length, offset)
    finally:
        os.close(fd)
    envelope = _envelope(text)
    if envelope is None or (crc_before is not None and crc32(text[ENVELOPE:], crc_before) != envelope.chain.crc):
        raise LogDamaged(
            f"{path} has changed at byte {offset} since it was read. Something else writes to the log; "
            "run the cell again, and look for the other writer if it comes back.",
            file=str(path),
            offset=offset,
        )
    return Recorded(envelope.seq, decode_event(text))


def _envelope(text: bytes) -> Envelope | None:
    try:
        return read_envelope(text)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
        return None


def _read_to_end(fd: int, offset: int) -> bytes:
    parts = []
    while part := files.read_at(fd, _CHUNK, offset):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


def first_line(path: Path) -> tuple[bytes, ExecutionStarted | None]:
    """The first line of a journal (empty if it has no whole one) and its event, if it is a header that verifies.

    Raises:
        LogTooNew: the journal has a newer format.
    """
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        size = 1 << 14
        text = files.read_at(fd, size, 0)
        while b"\n" not in text and len(text) == size:
            size *= 8
            text = files.read_at(fd, size, 0)
    finally:
        os.close(fd)
    line, feed, _ = text.partition(b"\n")
    if not feed:
        return b"", None
    started = read_header(line, str(path))
    if started is None:
        return line, None
    seq, chain = header_start(started.data)
    rest = line[ENVELOPE:]
    if not line.startswith(b'{"c":"%08x"' % crc32(rest, chain.crc)) or not rest.startswith(b'"seq":%d,' % seq):
        return line, None
    return line, started
