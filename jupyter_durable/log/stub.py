"""What remains of a folded journal: its first and last line, and the MAC of the block that lies in the database.

Three lines: the header line and the last line as they stood in the journal, and between them what verifies the
last one and the database's rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import msgspec

from jupyter_durable.errors import LogDamaged
from jupyter_durable.events import AnyEvent, ExecutionStarted
from jupyter_durable.log.line import ENVELOPE, Chain, decode_event, header_start, read_envelope, read_header


class _Between(msgspec.Struct, frozen=True):
    """The middle line of a stub."""

    before_last: str
    """`Chain.text` that the last line is chained to."""
    count: int
    """Lines of the journal."""
    block: str
    """MAC over the rows in the database (hexadecimal); see `log.database.block_mac`."""


@dataclass(frozen=True, slots=True)
class Stub:
    """A folded journal."""

    first: bytes
    last: bytes
    before_last: Chain
    count: int
    block: str
    started: ExecutionStarted
    ended: AnyEvent
    last_seq: int
    chain: Chain
    """After the last line."""


def encode_stub(first: bytes, last: bytes, before_last: Chain, count: int, block: str) -> bytes:
    """The bytes of a stub; ``first`` and ``last`` are lines without line feed."""
    between = msgspec.json.encode(_Between(before_last=before_last.text, count=count, block=block))
    return b"%b\n%b\n%b\n" % (first, between, last)


def read_stub(path: Path) -> Stub:
    """Read and verify a stub by its checksums.

    Raises:
        LogDamaged: it is changed or cut.
        LogTooNew: it has a newer format.
        FileNotFoundError: there is none.
    """
    lines = path.read_bytes().split(b"\n")
    if len(lines) == 4:
        first, middle, last, _ = lines
        started = read_header(first, str(path))
        try:
            between = msgspec.json.decode(middle, type=_Between)
            before_last = Chain.of(between.before_last)
            if started is not None and _right(first, header_start(started.data)[1]) and _right(last, before_last):
                return Stub(
                    first,
                    last,
                    before_last,
                    between.count,
                    between.block,
                    started,
                    decode_event(last),
                    read_envelope(last).seq,
                    read_envelope(last).chain,
                )
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            pass
    raise LogDamaged(
        f"{path} is damaged. It stands for an execution that lies in log.duckdb; the branch cannot be replayed. "
        "Put the file back from a backup, or start anew with --fresh.",
        file=str(path),
        line=1,
        readable=0,
    )


def _right(line: bytes, after: Chain) -> bool:
    return line.startswith(b'{"c":"%08x"' % crc32(line[ENVELOPE:], after.crc))
