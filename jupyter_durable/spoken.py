"""What a model said, in one text, out of an answer as it is recorded: enough to show it, and to compare it. Pure.

Two answers that say the same differ in ids and dates; people ask whether the model said something else. The forms are
those that all providers have in common; of an answer that has none of them nothing is told.
"""

from __future__ import annotations

from typing import Any

import msgspec

_INTO = frozenset(
    (
        *("choices", "message", "delta", "content", "parts", "output", "candidates", "tool_calls", "function"),
        *("functionCall", "toolUse", "content_block", "response", "summary"),
    )
)
"""Fields in which something said may lie."""

_SAID = frozenset(("content", "text", "delta", "response", "refusal", "arguments", "partial_json", "thinking"))
"""Fields that are said, where they are texts."""

_ASKED = frozenset(("input", "args"))
"""Fields with the arguments of a tool that the model asks for."""

_DEEPEST = 12


def said(answer: bytes) -> str:
    r"""What was said.

    Args:
        answer: the stored form of an answer: JSON with the text of the body.

    >>> said(b'{"status":200,"body":"{\\"choices\\":[{\\"message\\":{\\"content\\":\\"Yes.\\"}}]}"}')
    'Yes.'
    >>> said(b'{"status":500,"body":"out of order"}')
    ''
    """
    try:
        recorded = msgspec.json.decode(answer)
        body = recorded.get("body", "") if isinstance(recorded, dict) else ""
        if not isinstance(body, str):
            return ""
        if body.lstrip()[:1] in ("{", "[") and (whole := _decoded(body)) is not None:
            return " ".join(_texts(whole, 0))
        events = [event for line in body.splitlines() if (event := _event(line)) is not None]
    except (msgspec.DecodeError, RecursionError):
        return ""
    for event in reversed(events):
        if event.get("type") in ("response.completed", "response.incomplete"):
            return " ".join(_texts(event.get("response"), 0))
    return "".join(text for event in events for text in _texts(event, 0))


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None  # a stream of one object a line


def _event(line: str) -> dict[str, Any] | None:
    found = _decoded(line.strip().removeprefix("data:").strip())
    return found if isinstance(found, dict) else None


def _texts(value: Any, depth: int) -> list[str]:
    if depth > _DEEPEST:
        return []
    if isinstance(value, list):
        return [text for each in value for text in ([each] if isinstance(each, str) else _texts(each, depth + 1))]
    if not isinstance(value, dict):
        return []
    found: list[str] = []
    if isinstance(value.get("name"), str) and {"arguments", "input", "args"} & value.keys():
        found.append(value["name"])
    for name, each in value.items():
        if isinstance(each, str):
            found += [each] if name in _SAID and each else []
        elif name in _ASKED:
            found.append(msgspec.json.encode(each).decode())
        elif name in _INTO:
            found += _texts(each, depth + 1)
    return found
