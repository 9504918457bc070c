"""Requests of model calls as conversations, whatever the provider calls its parts. Pure.

Understood are the forms of OpenAI (chat, responses, completions) and all who speak them, Anthropic, Google, Bedrock,
Ollama and Cohere. What is not understood stays visible as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from jupyter_durable.server.shapes import Message, Part

LONGEST = 100_000
"""Characters of one part."""

_CONVERSATION = {
    *("messages", "input", "contents", "prompt", "system", "instructions", "systemInstruction", "system_instruction"),
    *("tools", "functions", "toolConfig"),
}
_DATA = 2_000_000
"""Characters of an image in base64."""


def conversation(body: Any) -> list[Message]:
    """The messages of a request, oldest first."""
    if not isinstance(body, dict):
        return []
    found: list[Message] = []
    for name in ("system", "instructions", "systemInstruction", "system_instruction"):
        if body.get(name):
            system = body[name]
            found.append(Message(role="system", parts=list(_parts(_content(system)))))
    for name in ("messages", "input", "contents", "prompt"):
        said = body.get(name)
        if isinstance(said, str):
            found.append(Message(role="user", parts=[text(said)]))
        elif isinstance(said, list):
            found += [message(one) for one in said]
        elif isinstance(said, dict):
            found.append(message(said))
    return found


def tools(body: Any) -> list[str]:
    """Names of the tools that a request offers."""
    if not isinstance(body, dict):
        return []
    offered = body.get("tools") or body.get("functions") or _at(body, "toolConfig", "tools") or []
    return (
        [name for one in offered if isinstance(one, dict) for name in _names(one)] if isinstance(offered, list) else []
    )


def _names(tool: dict[str, Any]) -> Iterator[str]:
    declared = tool.get("functionDeclarations") or tool.get("function_declarations")
    if isinstance(declared, list):
        for one in declared:
            yield str(_at(one, "name") or "")
        return
    for place in (tool, tool.get("function"), tool.get("toolSpec")):
        if isinstance(place, dict) and isinstance(place.get("name"), str):
            yield place["name"]
            return
    yield str(tool.get("type", "tool"))


def options(body: Any) -> dict[str, Any]:
    """The fields of a request that are not its conversation."""
    if not isinstance(body, dict):
        return {}
    return {name: value for name, value in body.items() if name not in _CONVERSATION}


def message(said: Any, role: str = "") -> Message:
    """One message of any form."""
    if isinstance(said, str):
        return Message(role=role or "user", parts=[text(said)])
    if not isinstance(said, dict):
        return Message(role=role or "user", parts=[other(said)])
    kind = _kind(said)
    if kind in {"function_call", "custom_tool_call"}:
        return Message(role="assistant", parts=[_part(said)])
    if kind in {"function_call_output", "custom_tool_call_output"}:
        return Message(role="tool", parts=[_part(said)])
    if kind == "reasoning":
        return Message(role="assistant", parts=[_part(said)])
    who = str(said.get("role") or role or "user")
    parts: list[Part] = []
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(said.get(name), str) and said[name]:
            parts.append(Part(kind="thinking", text=cut(said[name])))
            break
    if who == "tool" and "tool_call_id" in said:
        whole = said.get("content")
        told = whole if isinstance(whole, str) else _plain_text(whole)
        parts.append(
            Part(kind="tool_result", text=cut(told), id=str(said["tool_call_id"]), name=str(said.get("name") or ""))
        )
    else:
        parts += _parts(_content(said))
    calls = said.get("tool_calls")
    parts += [_call(one) for one in calls] if isinstance(calls, list) else []
    if isinstance(said.get("refusal"), str) and said["refusal"]:
        parts.append(text(said["refusal"]))
    return Message(role={"model": "assistant", "developer": "system"}.get(who, who), parts=parts)


def _content(said: Any) -> Any:
    if isinstance(said, dict):
        if "content" in said:
            return said["content"]
        return said["parts"] if "parts" in said else [said] if said.get("type") or "text" in said else []
    return said


def _parts(content: Any) -> Iterator[Part]:
    if content is None or content in ("", []):
        return
    if isinstance(content, str):
        yield text(content)
    elif isinstance(content, list):
        yield from map(_part, content)
    else:
        yield _part(content)


def _part(one: Any) -> Part:
    """One part of a message, of any form."""
    if isinstance(one, str):
        return text(one)
    if not isinstance(one, dict):
        return other(one)
    kind = _kind(one)
    if (
        kind in {"function_call", "custom_tool_call", "tool_use", "server_tool_use"}
        or {"functionCall", "toolUse"} & one.keys()
    ):
        return _call(one)
    if (
        kind in {"function_call_output", "custom_tool_call_output", "tool_result"}
        or {"functionResponse", "toolResult"} & one.keys()
    ):
        return _result(one)
    if kind in {"thinking", "reasoning"} or one.get("thought") is True:
        told = (
            one.get("thinking") or one.get("text") or _plain_text(one.get("summary")) or _plain_text(one.get("content"))
        )
        return Part(kind="thinking", text=cut(str(told or "")))
    image = _image(one)
    if image is not None:
        return image
    if isinstance(one.get("text"), str):
        return text(one["text"])
    if kind == "refusal":
        return text(str(one.get("refusal", "")))
    return other(one)


def _call(one: Any) -> Part:
    if not isinstance(one, dict):
        return other(one)
    place = next(
        (one[n] for n in ("function", "functionCall", "toolUse", "custom") if isinstance(_at(one, n), dict)), one
    )
    given = next((place[n] for n in ("arguments", "input", "args") if n in place), "")
    ident = _at(one, "call_id") or _at(one, "id") or _at(place, "toolUseId") or _at(place, "id") or ""
    return Part(kind="tool_call", name=str(_at(place, "name") or ""), id=str(ident), text=cut(_as_text(given)))


def _result(one: dict[str, Any]) -> Part:
    place = next((one[n] for n in ("functionResponse", "toolResult") if isinstance(one.get(n), dict)), one)
    given = next((place[n] for n in ("output", "content", "response") if n in place), "")
    ident = next((place[n] for n in ("call_id", "tool_use_id", "toolUseId", "id") if n in place), "")
    told = given if isinstance(given, str) else _plain_text(given) or _as_text(given)
    return Part(kind="tool_result", name=str(place.get("name") or ""), id=str(ident), text=cut(told))


def _image(one: dict[str, Any]) -> Part | None:
    """An image, or a file, in any form."""
    inline = one.get("inlineData") or one.get("inline_data")
    if isinstance(inline, dict):
        return _media(str(inline.get("mimeType") or inline.get("mime_type") or ""), inline.get("data"))
    source = one.get("source")
    if isinstance(source, dict) and _kind(one) in {"image", "document"}:
        if source.get("type") == "base64":
            return _media(str(source.get("media_type", "")), source.get("data"))
        return Part(kind="image" if one["type"] == "image" else "file", text=cut(_as_text(source.get("url", source))))
    url = one.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    if isinstance(url, str):
        head, comma, data = url.partition(";base64,")
        if comma and head.startswith("data:"):
            return _media(head[5:], data)
        return Part(kind="image", text=cut(url))
    if _kind(one) in {"input_file", "file", "input_audio"}:
        return Part(kind="file", text=str(one.get("filename") or one.get("file_id") or "")[:500])
    return None


def _media(media: str, data: Any) -> Part:
    shown = data if isinstance(data, str) and len(data) <= _DATA else ""
    return Part(kind="image" if media.startswith("image/") else "file", media=media[:100], data=shown)


def text(said: str) -> Part:
    """A part that is text."""
    return Part(kind="text", text=cut(said))


def other(said: Any) -> Part:
    """A part that has no form here."""
    return Part(kind="other", text=cut(_as_text(said)))


def cut(said: str) -> str:
    """A text that is not too long."""
    return said if len(said) <= LONGEST else said[:LONGEST] + "…"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _plain_text(content: Any) -> str:
    """The texts of a list of parts, joined; empty if there are none."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(one if isinstance(one, str) else str(_at(one, "text") or "") for one in content)


def _kind(one: dict[str, Any]) -> str:
    """What it says it is; a stranger may write anything there."""
    kind = one.get("type")
    return kind if isinstance(kind, str) else ""


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
