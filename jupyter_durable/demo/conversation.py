"""A conversation in one form for all protocols, and what is said next: which tools are called, with which arguments.

An answer asks for tools as long as the conversation offers one that was not called since the user spoke last. It calls
half of them at once, or one at a time if the request wants that, and it takes the arguments out of the user's text. So
an agent with three tools needs three turns: two calls, one call, and the answer that quotes their results.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

NUMBERED = re.compile(r"#\d{4,}|\bcall_\d{4,}_\d+")
"""What of an answer depends on the number of its request: the number itself, and the ids of calls."""

QUOTED = 48
"""Characters of a text that an answer quotes."""

_IN_QUOTES = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`")
_A_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a request offers."""

    name: str
    schema: dict[str, Any]
    """JSON Schema of its arguments."""
    text: str
    """The offer as JSON, which is billed like a text of the prompt."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, asked for by an answer."""

    id: str
    name: str
    arguments: str
    """As JSON."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request says."""

    messages: tuple[tuple[str, str], ...]
    """Role and text of each message, as they are billed."""
    tools: tuple[Tool, ...] = ()
    called: tuple[str, ...] = ()
    """Names of the tools that were called since the user spoke last."""
    results: tuple[tuple[str, str], ...] = ()
    """Tool and text of each result since the user spoke last."""
    choice: Literal["auto", "none", "required"] = "auto"
    forced: str = ""
    """The one tool that must be called; empty for none."""
    parallel: bool = True

    tells: str | None = None
    """What the user said last, where `messages` does not tell: some protocols let the user say a tool's results."""

    @property
    def asked(self) -> str:
        """What the user said last; the last message where nobody is called a user."""
        if self.tells is not None:
            return self.tells
        said = [text for role, text in self.messages if role == "user"]
        return said[-1] if said else self.messages[-1][1] if self.messages else ""


def calls_for(conversation: Conversation, number: int) -> tuple[ToolCall, ...]:
    """The tools that an answer asks for; none if it is a text.

    >>> tools = tuple(Tool(name, {}, "") for name in ("search", "read", "count"))
    >>> first = Conversation((("user", "Hello"),), tools)
    >>> [call.name for call in calls_for(first, 1)]
    ['search', 'read']
    >>> calls_for(Conversation(first.messages, tools, called=("search", "read")), 2)
    (ToolCall(id='call_0002_1', name='count', arguments='{}'),)

    Args:
        conversation: what was said, and which tools are offered.
        number: which request of the endpoint this is, from 1; the ids carry it.
    """
    wanted = _wanted(conversation)
    return tuple(
        ToolCall(
            id=f"call_{number:04d}_{place}",
            name=tool.name,
            arguments=json.dumps(arguments_for(tool.schema, conversation.asked)),
        )
        for place, tool in enumerate(wanted, 1)
    )


def _wanted(conversation: Conversation) -> list[Tool]:
    if conversation.choice == "none":
        return []
    if conversation.forced:
        return [tool for tool in conversation.tools if tool.name == conversation.forced][:1]
    left = [tool for tool in conversation.tools if tool.name not in conversation.called]
    if not left and conversation.choice == "required":
        left = list(conversation.tools[:1])
    return left[: (len(left) + 1) // 2 if conversation.parallel else 1]


def arguments_for(schema: dict[str, Any], text: str) -> dict[str, Any]:
    """Arguments that fit a schema, taken out of a text: what stands in quotes, its numbers, else its beginning.

    >>> schema = {"properties": {"title": {"type": "string"}, "year": {"type": "integer"}, "note": {"type": "string"}}}
    >>> arguments_for(schema | {"required": ["title", "year"]}, "Who wrote 'Emma' in 1815?")
    {'title': 'Emma', 'year': 1815}

    Args:
        schema: JSON Schema of an object.
        text: what the user said.
    """
    source = _Source(text, schema.get("$defs") or {})
    made = source.value({"type": "object", **schema}, 0)
    return made if isinstance(made, dict) else {}


class _Source:
    """A text from which values are taken, each piece once as long as there are more."""

    def __init__(self, text: str, definitions: dict[str, Any]) -> None:
        text = NUMBERED.sub("", text)
        self._beginning = " ".join(text.split())[:QUOTED]
        self._quoted = ["".join(found) for found in _IN_QUOTES.findall(text)]
        self._numbers = [float(found) for found in _A_NUMBER.findall(text)]
        self._definitions = definitions

    def value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return None
        schema = self._resolved(schema)
        for name in ("const", "default"):
            if name in schema:
                return schema[name]
        if schema.get("enum"):
            return self._one_of(schema["enum"])
        kind = schema.get("type", "object" if "properties" in schema else "string")
        kind = next((each for each in kind if each != "null"), "null") if isinstance(kind, list) else kind
        if kind == "object":
            properties = schema.get("properties") or {}
            needed = schema.get("required") or list(properties)
            return {name: self.value(properties[name], depth + 1) for name in properties if name in needed}
        if kind == "array":
            return [self.value(schema.get("items", {}), depth + 1)]
        if kind in {"integer", "number"}:
            return self._number(schema, whole=kind == "integer")
        return {"boolean": True, "null": None}.get(kind, self._text())

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        for _ in range(_DEEPEST):
            if "$ref" in schema:
                found = self._definitions.get(str(schema["$ref"]).rpartition("/")[2])
            else:
                ways = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf") or []
                found = next((way for way in ways if isinstance(way, dict) and way.get("type") != "null"), None)
            if not isinstance(found, dict):
                break
            schema = found
        return schema

    def _text(self) -> str:
        if not self._quoted:
            return self._beginning
        return self._quoted.pop(0) if len(self._quoted) > 1 else self._quoted[0]

    def _number(self, schema: dict[str, Any], *, whole: bool) -> float:
        found = (self._numbers.pop(0) if len(self._numbers) > 1 else self._numbers[0]) if self._numbers else 1.0
        found = min(max(found, schema.get("minimum", found)), schema.get("maximum", found))
        return int(found) if whole else found

    def _one_of(self, choices: list[Any]) -> Any:
        said = [choice for choice in choices if isinstance(choice, str) and choice.lower() in self._beginning.lower()]
        digest = hashlib.sha256(self._beginning.encode()).digest()
        return said[0] if said else choices[digest[0] % len(choices)]


def since_the_user_spoke(turns: Iterable[tuple[str, Any]]) -> list[Any]:
    """Of pairs of role and anything, the things behind the last one of a user.

    >>> since_the_user_spoke([("user", 1), ("assistant", 2), ("tool", 3)])
    [2, 3]
    """
    found: list[Any] = []
    for role, thing in turns:
        if role == "user":
            found.clear()
        else:
            found.append(thing)
    return found
