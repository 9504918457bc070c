"""Answers as they are written down, and brought back: status, a few headers, body, the sizes of its chunks. Pure.

Content encodings are undone before. A key that the request carries and the answer repeats is written as a mark and put
back from the request that asks again; so it is nowhere in the log, and the answer is still the same.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from jupyter_durable.event_data import Struct

KEPT_HEADERS = re.compile(
    r"content-type|date|location|request-id|x-request-id|retry-after(?:-ms)?|x-should-retry|openai-(?:model|processing-ms|version)"
    r"|x-ratelimit-[a-z-]+|anthropic-ratelimit-[a-z-]+|server-timing"
)
"""Response headers that are written down; cookies and names of organisations are not."""

CANCELLED = "CancelledError"
"""What ended a body whose reader the program cancelled."""

_MARK = "[redacted:{}]"


class Recorded(Struct, frozen=True, kw_only=True):
    """An answer as it lies in the log."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    """The text of the body; empty if that is no text."""
    data: str = ""
    """The body in base64, if it is no text."""
    chunks: tuple[int, ...] = ()
    """Bytes of each chunk as it was read, if there was more than one."""
    complete: bool = True
    """False if the program left before the end."""
    broken: tuple[str, str] | None = None
    """Type and message of the error of the connection that ended it."""


def record(
    status: int,
    headers: Mapping[str, str],
    chunks: list[bytes],
    secrets: Iterable[str] = (),
    *,
    complete: bool = True,
    broken: tuple[str, str] | None = None,
) -> Recorded:
    """An answer in the form that is written down.

    Args:
        status: HTTP status.
        headers: all headers, names in lower case.
        chunks: the body, content encodings undone, as it was read.
        secrets: keys that the request carried.
        complete: whether it was read to its end.
        broken: type and message of the error that ended it.

    >>> headers = {"set-cookie": "a=b", "content-type": "text/plain"}
    >>> kept = record(200, headers, [b"hello ", b"s3cret-key"], ["s3cret-key"])
    >>> kept.headers, "s3cret" in kept.body, body_of(kept, ["s3cret-key"])
    ((('content-type', 'text/plain'),), False, b'hello s3cret-key')
    """
    body = b"".join(chunks)
    text, data = "", ""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        data = b64encode(body).decode()
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, _MARK.format(_name(secret)))
    return Recorded(
        status=status,
        headers=tuple((name, value) for name, value in headers.items() if KEPT_HEADERS.fullmatch(name)),
        body=text,
        data=data,
        chunks=tuple(map(len, chunks)) if len(chunks) > 1 else (),
        complete=complete,
        broken=broken,
    )


def body_of(recorded: Recorded, secrets: Iterable[str] = ()) -> bytes:
    """The body, with the keys of the asking request where the recorded one's stood."""
    if recorded.data:
        return b64decode(recorded.data)
    text = recorded.body
    if "[redacted:" in text:
        for secret in secrets:
            text = text.replace(_MARK.format(_name(secret)), secret)
    return text.encode()


def chunks_of(recorded: Recorded, body: bytes) -> Iterator[bytes]:
    """The body as it was read."""
    if not recorded.chunks or sum(recorded.chunks) != len(body):
        if body:
            yield body
        return
    at = 0
    for size in recorded.chunks:
        yield body[at : at + size]
        at += size


def from_value(value: Any) -> Recorded | None:
    """An answer from its decoded payload; ``None`` if the payload is something else, such as an exception."""
    if not isinstance(value, dict) or "status" not in value:
        return None
    return msgspec.convert(value, Recorded)


def _name(secret: str) -> str:
    return blake2b(secret.encode(), digest_size=6, person=b"durable-answer").hexdigest()
