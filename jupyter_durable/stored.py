"""Stored forms: of one value; of what undoes a step, cancels a run, or is handed on to the next branch."""

from __future__ import annotations

from typing import Literal

import msgspec


class Written(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Base of what stands in this file."""


class Payload(Written, frozen=True, kw_only=True):
    """The stored form of one value. It is JSON text, inline in ``data`` or, when large, in a blob."""

    codec: Literal["json", "tagged"] = "json"
    """``json``: plain JSON means itself. ``tagged``: objects with a ``$`` key stand for other types."""
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The JSON text itself, if it is small."""
    blob: str | None = None
    """Digest of the blob that holds the JSON text, if it is large."""
    blobs: tuple[str, ...] = ()
    """Digests of further blobs that the text refers to (large arrays and byte strings)."""
    size: int = 0
    """Bytes of the JSON text and of its blobs before compression; left 0 for an inline text without blobs."""


class Compensation(Written, frozen=True, kw_only=True):
    """What undoes a step if it is to be undone: its name, and the step's arguments. The function is in the notebook."""

    id: str
    """Of the effect that is undone: derived from the execution and the intent that made it."""
    name: str
    """Of the function, for people."""
    module: str = ""
    """Where the step's function was defined, to tell steps of one name apart."""
    arguments: Payload
    """``[[positional arguments], {keyword arguments}]`` of the step."""


class Undoing(Written, frozen=True, kw_only=True):
    """The effect of a step is undone."""

    id: str
    """`Compensation.id`."""
    by: str = ""


class Undone(Written, frozen=True, kw_only=True):
    """A person has undone a branch: nothing of it is replayed or continued from then on."""

    by: str
    at: float
    """Seconds since 1970-01-01 UTC: when the undo began."""
    finished: bool = False
    """Written a second time when all is undone that was to be."""


class Cancellation(Written, frozen=True, kw_only=True):
    """Who has cancelled a run, or a child run of it."""

    by: str = ""
    via: str = ""
    """From where: see `Receipt`."""
    sent: float = 0.0
    """Seconds since 1970-01-01 UTC."""
    reason: str = ""
    signal: str = ""
    """Id of the signal that told it to a run that was alive; empty where none was needed."""


class Carried(Written, frozen=True, kw_only=True):
    """What a branch hands on to the one that goes on from it."""

    state: Payload
    """The values by name, as one dictionary."""
    usd: float = 0.0
    """US dollars that the branch, and those before it, have spent: a budget counts them."""
    tokens: int = 0
    steps: int = 0
    """Steps that they have executed."""
    signals: tuple[str, ...] = ()
    """Ids of the signals that were sent to them, and that nobody has used yet."""
