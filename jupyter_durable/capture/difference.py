"""In what two requests differ: the JSON paths, and what kind of thing stands there. Never the contents. Pure.

A clock or a random name in a prompt is what makes replays fail most often; it must be found in seconds, and an error
message is no place for a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

MOST = 4
"""Paths that are named."""

_KINDS = (
    ("a UUID", re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)),
    ("a date or time", re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d)?|\d\d?/\d\d?/\d{2,4}")),
    ("an address in memory", re.compile(r"0x[0-9a-f]{6,}", re.IGNORECASE)),
    ("seconds since 1970", re.compile(r"(?<!\d)1[5-9]\d{8}(?:\.\d+)?(?!\d)")),
    ("a path of a temporary file", re.compile(r"/tmp/\S+|\\Temp\\\S+|/var/folders/\S+")),  # noqa: S108 - it is looked for
    ("a random text", re.compile(r"[0-9a-f]{16,}", re.IGNORECASE)),
    ("a number", re.compile(r"\d+(?:\.\d+)?")),
)


def sentence(recorded: Any, asked: Any) -> str:
    """What differs between the bodies of two requests, in words.

    Args:
        recorded: the JSON of the one in history.
        asked: that of the one that is made now.

    Returns:
        Empty if nothing differs.

    >>> sentence({"messages": [{"content": "It is 10:45."}]}, {"messages": [{"content": "It is 11:02."}]})
    'The request differs at `messages[0].content` (from character 7 on: a date or time).'
    """
    found: list[str] = []
    for path, what in differences(recorded, asked):
        if len(found) == MOST:
            found.append("and more")
            break
        found.append(f"`{path}` ({what})")
    return f"The request differs at {', '.join(found)}." if found else ""


def differences(recorded: Any, asked: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each JSON path at which two values differ, and in what way."""
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for name in sorted(recorded.keys() | asked.keys()):
            where = f"{path}.{name}" if path else str(name)
            if name not in asked:
                yield where, "no longer there"
            elif name not in recorded:
                yield where, "not there before"
            else:
                yield from differences(recorded[name], asked[name], where)
    elif isinstance(recorded, list) and isinstance(asked, list):
        for index, (one, other) in enumerate(zip(recorded, asked, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
        if len(recorded) != len(asked):
            yield path or "the list", f"{len(recorded)} items recorded, {len(asked)} asked"
    elif recorded != asked or type(recorded) is not type(asked):
        yield path or "the body", _what(recorded, asked)


def _what(recorded: Any, asked: Any) -> str:
    if isinstance(recorded, str) and isinstance(asked, str):
        at = next((i for i, (a, b) in enumerate(zip(recorded, asked, strict=False)) if a != b), None)
        if at is None:
            at = min(len(recorded), len(asked))
        kind = _kind(recorded, at) if _kind(recorded, at) == _kind(asked, at) else ""
        return f"from character {at} on" + (f": {kind}" if kind else "")
    if type(recorded) is not type(asked):
        return f"{_type(recorded)} recorded, {_type(asked)} asked"
    return f"another {_type(asked)}"


def _kind(text: str, at: int) -> str:
    """What stands around a place of a text, if it is of a kind that changes from run to run."""
    for kind, shape in _KINDS:
        for found in shape.finditer(text, max(0, at - 200), min(len(text), at + 200)):
            if found.start() <= at <= found.end():
                return kind
    return ""


def _type(value: Any) -> str:
    names = {str: "text", int: "number", float: "number", bool: "truth value", list: "list", dict: "object"}
    return "null" if value is None else names[type(value)]
