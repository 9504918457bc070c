"""The line format of a journal: one event with its checksum, its MAC and its number in front. Pure.

::

    {"c":"1f0e9a55","m":"q0rS-4Jv0aKx3mPz","seq":17,"f":15,"type":"step_completed","at":1796023456.5,"step":16}

``c`` is the crc32 of everything from ``"seq"`` to the end of the line, started from the value of the line
before, so that a lost line is noticed as a changed one is. ``m`` is a keyed MAC over the MAC of the line before
and the same bytes: it tells damage from forgery. ``f``, if there, says up to which seq the file had been flushed
when the line was written. The first line of an execution is chained to the line that the execution continues.
"""

from __future__ import annotations

from binascii import b2a_base64
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

import msgspec

from jupyter_durable.errors import LogTooNew
from jupyter_durable.event_data import ExecutionHeader, Head
from jupyter_durable.events import FORMAT, AnyEvent, ExecutionStarted
from jupyter_durable.values.trust import MAC_SIZE

ENVELOPE = 39
"""Bytes before ``"seq"``: fixed, so that a reader can slice instead of parse."""

_URLSAFE = bytes.maketrans(b"+/", b"-_")
_encode_event = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(AnyEvent).decode
"""The event of a whole line; the envelope's fields are skipped."""


class Chain(NamedTuple):
    """What the next line is chained to: checksum and MAC of the line before."""

    crc: int
    mac: bytes
    """16 characters, as they stand in the line."""

    @property
    def text(self) -> str:
        """``CRC8.MAC16``, as `Head.chain` carries it."""
        return f"{self.crc:08x}.{self.mac.decode()}"

    @classmethod
    def of(cls, text: str) -> Chain:
        """The inverse of `text`.

        >>> Chain.of("1f0e9a55.q0rS-4Jv0aKx3mPz").text
        '1f0e9a55.q0rS-4Jv0aKx3mPz'
        """
        crc, _, mac = text.partition(".")
        return cls(int(crc, 16), mac.encode())


_chain = tuple.__new__
"""``Chain(crc, mac)`` at half the price, for what is done twice a step."""

ROOT = Chain(0, b"A" * 16)
"""What the first line of a history is chained to."""


class Envelope(msgspec.Struct):
    """What stands in front of the event."""

    c: str
    m: str
    seq: int
    f: int = -1

    @property
    def chain(self) -> Chain:
        """The chain after this line, as the line itself states it."""
        return Chain(int(self.c, 16), self.m.encode())


read_envelope = msgspec.json.Decoder(Envelope).decode


_PREFIX = (16).to_bytes(4, "little")


@lru_cache(maxsize=8)
def _keyed(secret: bytes) -> blake2b:
    """A hash that has been given its key: copying it costs a third less than making it."""
    return blake2b(digest_size=MAC_SIZE, key=secret, person=b"jd-line")


def mac_text(secret: bytes, previous: bytes, rest: bytes) -> bytes:
    """The MAC of a line in its 16 characters.

    It is `values.trust.line_mac`, written for a ``previous`` of 16 characters in one call: this is the dearest part
    of a line, both to write and to read.
    """
    mac = _keyed(secret).copy()
    mac.update(_PREFIX + previous + rest)
    return b2a_base64(mac.digest(), newline=False).translate(_URLSAFE)


def encode_line(event: AnyEvent, seq: int, after: Chain, secret: bytes, flushed: int = -1) -> tuple[bytes, Chain]:
    """One line, with its line feed, and the chain after it."""
    body = _encode_event(event)
    if b"\n" in body:  # a payload's JSON text may be laid out over lines; inside strings a line feed is escaped
        body = body.replace(b"\n", b" ")
    rest = b'"seq":%d,%b' % (seq, body[1:]) if flushed < 0 else b'"seq":%d,"f":%d,%b' % (seq, flushed, body[1:])
    crc = crc32(rest, after[0])
    mac = mac_text(secret, after[1], rest)
    return b'{"c":"%08x","m":"%b",%b\n' % (crc, mac, rest), _chain(Chain, (crc, mac))


def start_of(head: Head | None) -> tuple[int, Chain]:
    """Seq of the first line of an execution that continues ``head``, and what that line is chained to."""
    return (0, ROOT) if head is None else (head.seq + 1, Chain.of(head.chain))


class _PeekHeader(msgspec.Struct):
    format: int


class _Peek(msgspec.Struct):
    data: _PeekHeader


_peek = msgspec.json.Decoder(_Peek).decode


def read_header(line: bytes, file: str) -> ExecutionStarted | None:
    """The first line of a journal, not verified yet; ``None`` if it is not one.

    Raises:
        LogTooNew: the line names a newer format. That is read before anything else is interpreted.
    """
    try:
        version = _peek(line).data.format
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if version > FORMAT:
        raise LogTooNew(
            f"{file} has format {version}; this jupyter_durable reads formats up to {FORMAT}. "
            "Upgrade it (pip install -U jupyter_durable); the file is left as it is.",
            file=file,
            format=version,
        )
    try:
        event = decode_event(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return event if isinstance(event, ExecutionStarted) else None


def header_start(header: ExecutionHeader) -> tuple[int, Chain]:
    """`start_of` for an execution's own header."""
    return start_of(header.head)
