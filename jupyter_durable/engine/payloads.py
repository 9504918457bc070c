"""Between encoded values and what lies in the log: inline or in blobs, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from jupyter_durable.entries import Entry
from jupyter_durable.errors import UnloadableValue, UnstorableValue
from jupyter_durable.event_data import ErrorInfo, Payload
from jupyter_durable.events import StepCompleted
from jupyter_durable.log.base import EventLog, Writer
from jupyter_durable.values import Encoded, decode, describe_error

INLINE = 64 * 1024
"""Bytes of JSON text up to which a value is written into its event; above, into a blob."""

LARGEST = 256 * 1024 * 1024
"""Bytes of a stored value at most: beyond, the copies that storing makes would kill the kernel."""


def write(encoded: Encoded, writer: Writer) -> Payload:
    """The stored form of an encoded value; large parts are written as blobs before anything names them.

    Raises:
        UnstorableValue: it is larger than `LARGEST`.
    """
    text, blobs = encoded.text, encoded.blobs
    if not blobs and len(text) <= INLINE:
        if encoded.codec == "json":
            return Payload(data=msgspec.Raw(text))
        return Payload(codec=encoded.codec, data=msgspec.Raw(text))
    size = len(text) + sum(map(len, blobs.values()))
    if size > LARGEST:
        raise UnstorableValue(
            f"The value has {size / 2**20:.0f} MB, and {LARGEST / 2**20:.0f} MB are the most that a log takes. Write "
            f"it to a file inside the step and return the path.",
            path="result", type="value", advice="return a path",
        )  # fmt: skip
    for digest, content in blobs.items():
        writer.put_blob(content, digest)
    if len(text) > INLINE:
        return Payload(codec=encoded.codec, blob=writer.put_blob(text), blobs=tuple(blobs), size=size)
    return Payload(codec=encoded.codec, data=msgspec.Raw(text), blobs=tuple(blobs), size=size)


def encoded_json(text: bytes) -> Encoded:
    """JSON text in its stored form."""
    return Encoded("json", text, {})


def of(entry: Entry, log: EventLog) -> Payload:
    """The stored value of a completed entry; read again where a long history was read without values."""
    payload = entry.payload
    assert payload is not None
    if payload.data is msgspec.UNSET and payload.blob is None:
        event = log.reload(entry.execution, entry.end).event
        assert isinstance(event, StepCompleted)
        return event.data
    return payload


def read(payload: Payload, log: EventLog) -> Any:
    """Bring a stored value back."""
    if payload.blob is not None:
        return decode(payload.codec, log.read_blob(payload.blob), log.read_blob)
    assert isinstance(payload.data, msgspec.Raw)
    return decode(payload.codec, bytes(payload.data), log.read_blob)


def unloadable(entries: Iterable[Entry], log: EventLog) -> str:
    """What a person must know before deciding to reuse: a recorded value that today's code cannot bring back."""
    for entry in entries:
        if entry.state == "completed":
            try:
                read(of(entry, log), log)
            except UnloadableValue as error:
                return f" The recorded value of {entry.label} cannot come back: {error}"
    return ""


def write_error(error: BaseException, writer: Writer) -> ErrorInfo:
    """An exception in its stored form."""
    info, encoded = describe_error(error)
    return info if encoded is None else msgspec.structs.replace(info, payload=write(encoded, writer))
