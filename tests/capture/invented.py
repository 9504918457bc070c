"""What the fake provider makes up: texts that carry the request's number, values for a JSON schema, token counts.

All that differs from request to request is the number, and it always has the same width: two runs of one scenario give
answers of one shape, and the same conversation costs the same tokens. `masked` removes the numbers.
"""

from __future__ import annotations

import re
from typing import Any

CREATED = 1_790_000_000
"""When every answer was made, in Unix seconds."""

_NUMBERS = re.compile(r"(?<![0-9a-f])\d{6}(?![0-9a-f])")
_MARK = "NNNNNN"


def mark(number: int) -> str:
    """The number of a request as it stands in texts and ids: six digits, which nothing else here has."""
    return f"{number:06d}"


def counting(number: int) -> int:
    """The number of a request where only a numeral can stand: six digits too, from 100,001."""
    return 100_000 + number


def masked(value: Any) -> Any:
    """A JSON-like value with every request number replaced by the same sign."""
    if isinstance(value, str):
        return _NUMBERS.sub(_MARK, value)
    if isinstance(value, dict):
        return {masked(name): masked(part) for name, part in value.items()}
    if isinstance(value, list):
        return [masked(part) for part in value]
    if isinstance(value, int | float) and 100_000 < value < 1_000_000:
        return _MARK
    return value


def tokens_of(text: str) -> int:
    """Tokens of a text: one for every four characters begun."""
    return -(-len(text) // 4)


def answer_text(prompt: str, number: int) -> str:
    """The text of an answer; it names the request that it answers."""
    return f"Answer {mark(number)} to: {' '.join(_NUMBERS.sub('', prompt).split())[-40:]}"


def pieces(text: str, count: int = 4) -> list[str]:
    """A text cut into a few pieces, for streams; words stay whole, and so do numbers."""
    words = re.findall(r"\S+\s*", text)
    size = max(1, -(-len(words) // count))
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def value_for(schema: Any, number: int, root: Any = None) -> Any:
    """A value that fits a JSON schema; its strings carry the number."""
    root = schema if root is None else root
    if not isinstance(schema, dict):
        return mark(number)
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return value_for(target, number, root)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return value_for(schema[word][0], number, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = str(kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        return {name: value_for(part, number, root) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [value_for(schema.get("items", {}), number, root)]
    return {"integer": 7, "number": 7.5, "boolean": True, "null": None}.get(kind, f"made up {mark(number)}")


def vector_for(text: str, size: int = 4) -> list[float]:
    """An embedding of a text: the same for the same text, exact in 32 bits."""
    return [(sum(text.encode()) * (place + 1) % 64) / 64 for place in range(size)]


def plain_text(content: Any) -> str:
    """The text in a message's content, whatever protocol it is in: a string, or parts that hold texts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(filter(None, (plain_text(part) for part in content)))
    if isinstance(content, dict):
        for name in ("text", "content", "output", "parts", "result"):
            if name in content:
                return plain_text(content[name])
    return ""
