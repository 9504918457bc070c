"""Stores values: a value becomes JSON text and blobs, and becomes a value again.

``json`` is plain JSON that means itself: the common case, made and read in a few microseconds. ``tagged`` is JSON
in which objects with a ``$`` key stand for other types (see `structural`). Both can be read without loading anything.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from jupyter_durable.errors import UnloadableValue, UnstorableValue
from jupyter_durable.values.classes import Table
from jupyter_durable.values.refused import type_name, unstorable
from jupyter_durable.values.restoring import Builder, ReadBlob, no_blobs
from jupyter_durable.values.scalars import INT_HIGH, INT_LOW
from jupyter_durable.values.structural import Encoder
from jupyter_durable.values.walking import Shared

Codec = Literal["json", "tagged"]

_to_json = msgspec.json.Encoder().encode
_from_json = msgspec.json.Decoder().decode


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """The stored form of one value."""

    codec: Codec
    text: bytes
    """JSON."""
    blobs: dict[str, bytes]
    """Content of the blobs that the text refers to, by digest."""


def encode(value: object, root: str = "result") -> Encoded:
    """The stored form of a value.

    Args:
        value: what to store.
        root: how the value is called in messages (``result``, ``args[0]``).

    Raises:
        UnstorableValue: with the path to what cannot be stored, its type, and a way out.

    >>> encode({"n": 1}).text, encode((1, 2)).text
    (b'{"n":1}', b'{"$":"tuple","v":[1,2]}')
    """
    try:
        if is_plain(value):
            return Encoded("json", _to_json(value), {})
    except UnicodeEncodeError:
        pass  # a text with half a surrogate pair, which JSON cannot hold: the tagged form can
    except RecursionError:
        raise _too_deep(value, root) from None
    return _encode_tagged(value, root)[0]


def encode_verified(value: object, root: str = "result") -> tuple[Encoded, Any]:
    """The stored form of a value, and the value that comes back from it: what the first run must go on with.

    Args:
        value: what to store.
        root: how the value is called in messages.

    Returns:
        The stored form and the restored value (an immutable value may be itself).

    Raises:
        UnstorableValue: it cannot be stored, or it could be written and not be read back as the same type.
    """
    try:
        if is_plain(value):
            text = _to_json(value)
            return Encoded("json", text, {}), _from_json(text)
    except UnicodeEncodeError:
        pass
    except RecursionError:
        raise _too_deep(value, root) from None
    encoded, encoder = _encode_tagged(value, root)
    try:
        restored = _restore(value, encoded, encoder.leaves, root)
    except UnloadableValue:
        # The structural form of some class did not come back; its own way of pickling may.
        encoded, encoder = _encode_tagged(value, root, whole=True)
        try:
            restored = _restore(value, encoded, encoder.leaves, root)
        except UnloadableValue as error:
            reason = f"it can be written but not read back ({error.facts.get('reason')})"
            raise unstorable(root, type(value), reason, "return plain data instead") from error
    return encoded, restored


def decode(codec: str, text: bytes | memoryview | msgspec.Raw, read_blob: ReadBlob = no_blobs) -> Any:
    """The value of a stored form. To be called only for what the log's signature has confirmed.

    Args:
        codec: ``json`` or ``tagged``.
        text: the JSON text.
        read_blob: gives the content of a blob for its digest.

    Raises:
        UnloadableValue: today's code cannot bring the value back. Classes are compared before anything is built.

    >>> decode("tagged", encode({1: "one"}).text)
    {1: 'one'}
    """
    tree = _from_json(text)
    if codec == "json":
        return tree
    if codec != "tagged":
        raise UnloadableValue(
            f"The stored value has the codec {codec!r}, which this version of jupyter_durable does not know. Use the "
            "version that wrote it, or a newer one.",
            missing=codec,
            reason="unknown codec",
        )
    return Builder(read_blob).document(tree)


def is_plain(value: object) -> bool:
    """Whether JSON means exactly this value: exact types only, no object at two places.

    Texts are not looked into; the encoder refuses half surrogate pairs by itself.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    return _is_plain(value, kind, set())


def _is_plain(value: Any, kind: type[Any], seen: set[int]) -> bool:
    # Written out for scalars inside containers: a call for each of them would double the time of the whole.
    if kind is dict:
        place = id(value)
        if place in seen:
            return False
        seen.add(place)
        for key, item in value.items():
            if type(key) is not str or key == "$":
                return False
            kind = type(item)
            if kind is str or item is None or kind is bool:
                continue
            if kind is int:
                if not INT_LOW <= item <= INT_HIGH:
                    return False
            elif kind is float:
                if item - item != 0.0:  # infinite or not a number
                    return False
            elif not ((kind is list or kind is dict) and _is_plain(item, kind, seen)):
                return False
        return True
    if kind is list:
        place = id(value)
        if place in seen:
            return False
        seen.add(place)
        for item in value:
            kind = type(item)
            if kind is str or item is None or kind is bool:
                continue
            if kind is int:
                if not INT_LOW <= item <= INT_HIGH:
                    return False
            elif kind is float:
                if item - item != 0.0:
                    return False
            elif not ((kind is list or kind is dict) and _is_plain(item, kind, seen)):
                return False
        return True
    if kind is int:
        return bool(INT_LOW <= value <= INT_HIGH)
    return kind is float and bool(value - value == 0.0)


def _encode_tagged(value: object, root: str, whole: bool = False) -> tuple[Encoded, Encoder]:
    encoder = Encoder(root)
    try:
        try:
            tree = encoder.leaf(value) if whole else encoder.walk(value)
        except Shared:
            encoder = Encoder(root, Table())
            tree = encoder.leaf(value)
        text = _to_json(encoder.document(tree))
    except RecursionError:
        raise _too_deep(value, root) from None
    return Encoded("tagged", text, encoder.blobs), encoder


def _restore(value: object, encoded: Encoded, leaves: list[Any], root: str) -> Any:
    builder = Builder(encoded.blobs.__getitem__)
    try:
        restored = builder.document(_from_json(encoded.text))
    except RecursionError:
        raise _too_deep(value, root) from None
    for before, after in [(value, restored), *zip(leaves, builder.leaves, strict=True)]:
        other = _other_type(before, after, 0)
        if other is not None:
            name = type_name(type(other[1]))
            raise unstorable(root, type(other[0]), f"it comes back as {name}", "return plain data instead")
    return restored


def _other_type(before: Any, after: Any, depth: int) -> tuple[Any, Any] | None:
    """Two corresponding parts of different types; containers are looked into, attributes belong to their class."""
    if type(before) is not type(after):
        return before, after
    if depth > 20:
        return None
    if type(before) is dict:
        pairs = zip(before.values(), after.values(), strict=False)
    elif type(before) in (list, tuple):
        pairs = zip(before, after, strict=False)
    else:
        return None
    return next((found for one, two in pairs if (found := _other_type(one, two, depth + 1)) is not None), None)


def _too_deep(value: object, root: str) -> UnstorableValue:
    return unstorable(root, type(value), "it is nested too deep", "return a flatter value")
