"""Reading answers: numbers that may be missing, fields that may be anywhere, and streams that may be cut anywhere.

What is not there, or is no count, becomes ``None``; nothing here turns an unknown number into 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from jupyter_durable.capture.providers.base import Answer, Ask

OVER = re.compile(rb"(?:\A|[\r\n])data: ?\[DONE\]")
"""The last event of a stream that speaks OpenAI's protocol."""


def at(value: Any, *names: str) -> Any:
    """A field of a field, as far as there are objects; else ``None``.

    >>> at({"usage": {"details": None}}, "usage", "details", "cached")
    """
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def count(value: Any, *names: str) -> int | None:
    """The first of some fields that is a count.

    >>> count({"prompt_tokens": None, "input_tokens": 7.0}, "prompt_tokens", "input_tokens")
    7
    >>> count({"input_tokens": True}, "input_tokens")
    """
    if not isinstance(value, dict):
        return None
    for name in names:
        found = value.get(name)
        if isinstance(found, bool) or not isinstance(found, int | float):
            continue
        if found >= 0 and found == int(found):
            return int(found)
    return None


def total(*parts: int | None) -> int | None:
    """The sum of what is known; ``None`` if nothing is.

    >>> total(7, None, 2), total(None, None)
    (9, None)
    """
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def text(*values: Any) -> str:
    """The first that is text and not empty."""
    return next((value for value in values if isinstance(value, str) and value), "")


def objects(answer: Answer) -> Iterator[Any]:
    """The JSON objects of an answer in order: of a plain one the one it is, of a stream its events."""
    if answer.body.lstrip()[:1] == b"{" and isinstance(answer.json, dict):
        yield answer.json
    else:
        yield from answer.events()


def array_items(body: bytes) -> Iterator[Any]:
    r"""The items of a JSON array that may be cut: those that are whole.

    >>> list(array_items(b'[{"a": 1},\n{"a": 2},\n{"a":'))
    [{'a': 1}, {'a': 2}]
    """
    try:
        whole = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        yield from _whole_items(body)
        return
    yield from whole if isinstance(whole, list) else [whole]


def _whole_items(body: bytes) -> Iterator[Any]:
    depth, begin, inside, escaped = 0, -1, False, False
    for place, char in enumerate(body):
        if inside:
            if escaped:
                escaped = False
            elif char == 0x5C:  # backslash
                escaped = True
            elif char == 0x22:  # quote
                inside = False
        elif char == 0x22:
            inside = True
        elif char == 0x7B:  # {
            if depth == 0:
                begin = place
            depth += 1
        elif char == 0x7D:  # }
            depth -= 1
            if depth == 0 and begin >= 0:
                try:
                    yield msgspec.json.decode(body[begin : place + 1])
                except (msgspec.DecodeError, UnicodeDecodeError):
                    return


def last_with(answer: Answer, name: str) -> Any:
    """The last object of an answer whose field has an object as its value; ``None`` if there is none."""
    if f'"{name}"'.encode() not in answer.body:
        return None
    found = None
    for event in objects(answer):
        if isinstance(at(event, name), dict):
            found = event
    return found


def form_field(ask: Ask, name: str) -> str:
    r"""A short field of a multipart body.

    >>> body = b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--x--'
    >>> form_field(Ask(method="POST", scheme="https", host="h", port=None, path="/", body=body), "model")
    'whisper-1'
    """
    # Bodies are recordings of many megabytes: `find` runs over them at the speed of memory, a pattern does not.
    place = ask.body.find(f'name="{name}"'.encode())
    if place < 0:
        return ""
    head, _, rest = ask.body[place : place + 1024].partition(b"\r\n\r\n")
    if b"filename=" in head:
        return ""
    return rest.partition(b"\r\n")[0].decode("utf-8", "replace").strip()


def is_form(ask: Ask) -> bool:
    """Whether the body is ``multipart/form-data``."""
    return ask.headers.get("content-type", "").startswith("multipart/form-data")


def asked_tools(ask: Ask) -> list[Any]:
    """The tools that a request offers."""
    tools = ask.get("tools")
    return tools if isinstance(tools, list) else []
