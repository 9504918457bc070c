"""Stores exceptions so that the same ``except`` catches them on replay, and brings them back.

An exception is stored in its parts (class by name, arguments, what can be stored of its attributes), never as a
pickle, and is verified by building it again at once: half of the SDKs' errors can be pickled and not be unpickled.
"""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Any

import msgspec

from jupyter_durable.errors import UnloadableValue, UnstorableValue
from jupyter_durable.event_data import ErrorInfo
from jupyter_durable.values.classes import WAYS_OUT
from jupyter_durable.values.codec import Encoded, decode
from jupyter_durable.values.refused import type_name
from jupyter_durable.values.restoring import Builder, ReadBlob, no_blobs
from jupyter_durable.values.secrets import redact
from jupyter_durable.values.structural import Encoder

TRACEBACK_SIZE = 8 * 1024
"""Characters of a traceback that are kept: its beginning and, above all, its end."""

MESSAGE_SIZE = 8 * 1024

_OWN_FRAMES = f"{Path(__file__).absolute().parents[1]}{os.sep}"


def describe_error(error: BaseException) -> tuple[ErrorInfo, Encoded | None]:
    """The stored form of an exception. Never raises.

    Args:
        error: an exception that a step or cell has raised.

    Returns:
        What people read of it, without a payload; and the exception as a value, for the caller to put into the
        log. The second is ``None`` if the exception could not be brought back by `restore_error`.

    >>> info, encoded = describe_error(KeyError("colour"))
    >>> info.type, info.message, type(restore_error(info, encoded=encoded)).__name__
    ('KeyError', "'colour'", 'KeyError')
    """
    info = ErrorInfo(
        type=type_name(type(error)),
        message=redact(_message(error))[:MESSAGE_SIZE],
        traceback=traceback_text(error),
    )
    return info, _encode(error)


def restore_error(info: ErrorInfo, read_blob: ReadBlob = no_blobs, encoded: Encoded | None = None) -> BaseException:
    """The exception again: same class, arguments, message, notes and cause; not its traceback.

    What could not be stored of it (a response, a request) is named in a note, and absent.

    Args:
        info: as it was recorded, with its payload.
        read_blob: gives the content of a blob for its digest.
        encoded: the payload, if it is not (yet) in ``info``.

    Raises:
        UnloadableValue: its class is not there, or it could not be stored in a form that comes back.
    """
    if encoded is not None:
        return _error_of(decode(encoded.codec, encoded.text, encoded.blobs.__getitem__), info)
    payload = info.payload
    if payload is None:
        raise UnloadableValue(
            f"The step failed with {info.type}, which could not be stored in a form that comes back (its class is not "
            f"defined at top level, or refuses to be built). Define the class at top level, or {WAYS_OUT}.",
            missing=info.type,
            reason="not stored",
        )
    if payload.blob is not None:
        return _error_of(decode(payload.codec, read_blob(payload.blob), read_blob), info)
    assert isinstance(payload.data, msgspec.Raw)
    return _error_of(decode(payload.codec, bytes(payload.data), read_blob), info)


def traceback_text(error: BaseException) -> str:
    """The traceback as people read it: without our own frames, without secrets, capped."""
    try:
        told = traceback.TracebackException.from_exception(error, compact=True, max_group_width=5)
        _strip(told, set())
        text = redact("".join(told.format()))
    except Exception as problem:
        # A `__str__` of somebody else's class that raises must not hide the error itself.
        text = f"{type_name(type(error))} (its traceback cannot be shown: {type(problem).__name__})"
    if len(text) <= TRACEBACK_SIZE:
        return text
    begin, mark = TRACEBACK_SIZE // 4, "\n  [...]\n"
    return text[:begin] + mark + text[len(text) - (TRACEBACK_SIZE - begin - len(mark)) :]


def _encode(error: BaseException) -> Encoded | None:
    try:
        encoder = Encoder("error")
        tree = encoder.document(encoder.error(error))
        text = msgspec.json.encode(tree)
        restored = Builder().document(msgspec.json.decode(text))
    except (UnstorableValue, UnloadableValue):
        return None
    except Exception:
        # Properties and `__getattr__` of somebody else's exception may raise anything.
        return None
    return Encoded("tagged", text, {}) if type(restored) is type(error) else None


def _error_of(value: Any, info: ErrorInfo) -> BaseException:
    if isinstance(value, BaseException):
        return value
    raise UnloadableValue(
        f"The step failed with {info.type}, and what is stored is no exception. Run `%durable doctor`, or {WAYS_OUT}.",
        missing=info.type,
        reason="not an exception",
    )


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as problem:
        return f"(its message cannot be shown: {type(problem).__name__})"


def _strip(told: traceback.TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    kept = [frame for frame in told.stack if not frame.filename.startswith(_OWN_FRAMES)]
    told.stack = traceback.StackSummary.from_list(kept)
    for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if other is not None:
            _strip(other, seen)
