"""Requests are written down as what is new in them: each turn of a conversation sends all turns before it again.

Written whole, a conversation of 200 turns would take the square of its length. So a request names an earlier one of its
execution, the fields that are as in that one, and the lists that begin as in that one; only the rest is in its body.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from jupyter_durable.capture.outgoing import without_secrets
from jupyter_durable.capture.providers.base import Ask
from jupyter_durable.engine import payloads
from jupyter_durable.event_data import RequestInfo
from jupyter_durable.log.base import EventLog, Writer

_WORTH = 512
"""Bytes that must be saved for a difference to be worth its name."""

_MOST = 32
"""Conversations that are followed at once; one that was forgotten is written whole again."""

_encode = msgspec.json.Encoder(order="deterministic").encode

Parts = dict[str, bytes | list[bytes]]
"""Field of a body -> its JSON, that of a list by item."""


class Base(msgspec.Struct):
    """A request that later ones of the same conversation are compared with."""

    seq: int
    parts: Parts


class Conversations:
    """The last request of each place of an execution."""

    def __init__(self) -> None:
        self._last: OrderedDict[object, Base] = OrderedDict()

    def written(
        self, where: object, ask: Ask, secrets: tuple[str, ...], writer: Writer
    ) -> tuple[RequestInfo, Callable[[int], None]]:
        """The body of a request as it is written down.

        Args:
            where: which conversation it belongs to.
            ask: the request.
            secrets: the keys that it carries.
            writer: takes a large body as a blob.

        Returns:
            A request with nothing but what concerns its body, and what is to be told the seq of its intent.
        """
        asked = ask.json
        if not isinstance(asked, dict):
            text = _encode(asked) if asked is not None else b""
            info = _info(text, secrets, writer) if text else RequestInfo(provider="", api="")
            return info, lambda _: None
        parts: Parts = {
            name: [_encode(item) for item in value] if isinstance(value, list) else _encode(value)
            for name, value in sorted(asked.items())
        }

        def remember(seq: int) -> None:
            self._last[where] = Base(seq, parts)
            self._last.move_to_end(where)
            if len(self._last) > _MOST:
                self._last.popitem(last=False)

        base = self._last.get(where)
        rest, same, shared = (parts, (), {}) if base is None else _difference(parts, base.parts)
        info = _info(_joined(rest), secrets, writer)
        if base is not None and (same or shared):
            info = msgspec.structs.replace(info, base=base.seq, same=same, shared=shared)
        return info, remember


def _difference(parts: Parts, before: Parts) -> tuple[Parts, tuple[str, ...], dict[str, int]]:
    """What is new, the fields that are equal, and how many first items of each list are."""
    rest: Parts = {}
    same: list[str] = []
    shared: dict[str, int] = {}
    saved = 0
    for name, part in parts.items():
        old = before.get(name)
        if part == old:
            same.append(name)
            saved += _size(part)
        elif isinstance(part, list) and isinstance(old, list) and (count := _common(part, old)):
            shared[name] = count
            rest[name] = part[count:]
            saved += _size(part[:count])
        else:
            rest[name] = part
    return (rest, tuple(same), shared) if saved >= _WORTH else (parts, (), {})


def _common(one: list[bytes], other: list[bytes]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _size(part: bytes | list[bytes]) -> int:
    return len(part) if isinstance(part, bytes) else sum(map(len, part))


def _joined(parts: Parts) -> bytes:
    return b"{" + b",".join(_encode(name) + b":" + _text(part) for name, part in parts.items()) + b"}"


def _text(part: bytes | list[bytes]) -> bytes:
    return part if isinstance(part, bytes) else b"[" + b",".join(part) + b"]"


def _info(text: bytes, secrets: tuple[str, ...], writer: Writer) -> RequestInfo:
    clean = without_secrets(text.decode(), secrets).encode()
    return RequestInfo(provider="", api="", body=payloads.write(payloads.encoded_json(clean), writer))


def whole_body(info: RequestInfo, execution: str, log: EventLog) -> Any:
    """The JSON of a recorded request, put together again; ``None`` if it has none.

    Args:
        info: the request.
        execution: the one that has recorded it.
        log: where it lies.

    Raises:
        LogError: the log no longer has a request that it builds on.
    """
    if info.body is None:
        return None
    chain = [info]
    while chain[-1].base is not None:
        event: Any = log.reload(execution, chain[-1].base).event
        chain.append(event.data)
    body: Any = {}
    for one in reversed(chain):
        assert one.body is not None
        read = payloads.read(one.body, log)
        if one.base is not None:
            kept = {name: body[name] for name in one.same}
            read = {**kept, **{n: body[n][: one.shared[n]] + v if n in one.shared else v for n, v in read.items()}}
        body = read
    return body
