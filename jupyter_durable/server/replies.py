"""Answers of model calls as messages, plain or put together from a stream. Pure; see `messages`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from jupyter_durable.server.messages import cut, message
from jupyter_durable.server.shapes import Message, Part


def events_of(body: str) -> list[Any]:
    """The JSON objects of a stream: server-sent events, or one a line."""
    found = []
    for line in body.splitlines():
        told = line.strip().removeprefix("data:").strip()
        if told[:1] in {"{", "["}:
            try:
                found.append(msgspec.json.decode(told))
            except (msgspec.DecodeError, RecursionError):
                continue  # a stream that was left in the middle of an event
    return found


def reply(answer: Any) -> tuple[list[Message], str]:
    """The messages of an answer, and why the model stopped.

    Args:
        answer: the JSON of the body; a list of events for a stream.
    """
    if isinstance(answer, list):
        return _streamed([one for one in answer if isinstance(one, dict)])
    return _whole(answer) if isinstance(answer, dict) else ([], "")


def _whole(answer: dict[str, Any]) -> tuple[list[Message], str]:
    choices = answer.get("choices")
    if isinstance(choices, list):
        found = [_choice(one) for one in choices if isinstance(one, dict)]
        return found, _word(choices, "finish_reason")
    candidates = answer.get("candidates")
    if isinstance(candidates, list):
        said = [message(one.get("content") or {}, "assistant") for one in candidates if isinstance(one, dict)]
        return said, _word(candidates, "finishReason")
    output = answer.get("output")
    if isinstance(output, list):
        return [message(one, "assistant") for one in output], str(answer.get("status") or "")
    if isinstance(output, dict) and isinstance(output.get("message"), dict):
        return [message(output["message"], "assistant")], str(answer.get("stopReason") or "")
    if isinstance(answer.get("content"), list):
        return [message(answer, "assistant")], str(answer.get("stop_reason") or "")
    if isinstance(answer.get("message"), dict):
        why = answer.get("done_reason") or answer.get("finish_reason") or ""
        return [message(answer["message"], "assistant")], str(why)
    if isinstance(answer.get("response"), str):
        return [message(answer["response"], "assistant")], str(answer.get("done_reason") or "")
    return [], ""


def _choice(choice: dict[str, Any]) -> Message:
    said = choice.get("message")
    return message(said, "assistant") if isinstance(said, dict) else message(str(choice.get("text", "")), "assistant")


def _word(choices: list[Any], name: str) -> str:
    return next((str(one[name]) for one in choices if isinstance(one, dict) and one.get(name)), "")


def _streamed(events: list[dict[str, Any]]) -> tuple[list[Message], str]:
    for event in reversed(events):
        response = event.get("response")
        if isinstance(response, dict) and str(event.get("type")) in {"response.completed", "response.incomplete"}:
            return _whole(response)
    kinds = {kind for event in events if isinstance(kind := event.get("type"), str)}
    if "content_block_start" in kinds or "content_block_delta" in kinds:
        return _blocks(events)
    if any(kind.startswith("response.") for kind in kinds):
        told = [event for event in events if event.get("type") == "response.output_text.delta"]
        return _one("".join(str(event.get("delta", "")) for event in told)), ""
    if any("candidates" in event for event in events):
        return _candidates(events)
    if any("choices" in event for event in events):
        return _deltas(events)
    said = [event["message"] for event in events if isinstance(event.get("message"), dict)]
    whole = "".join(str(one.get("content") or "") for one in said)
    calls = [call for one in said for call in _dicts(one.get("tool_calls"))]
    if not (whole or calls):
        return _one("".join(str(event.get("response", "")) for event in events)), ""
    why = next((str(event["done_reason"]) for event in events if event.get("done_reason")), "")
    return [message({"role": "assistant", "content": whole, "tool_calls": calls})], why


def _one(told: str) -> list[Message]:
    return [Message(role="assistant", parts=[Part(kind="text", text=cut(told))])] if told else []


class _Merged:
    """A message of which the pieces come one by one."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.thinking: list[str] = []
        self.calls: dict[Any, dict[str, Any]] = {}

    def call(self, place: Any, name: Any, ident: Any, arguments: Any) -> None:
        """A piece of a tool call."""
        known = self.calls.setdefault(place, {"name": "", "id": "", "text": []})
        known["name"] = known["name"] or str(name or "")
        known["id"] = known["id"] or str(ident or "")
        known["text"].append(str(arguments or ""))

    def message(self) -> Message:
        """All of it."""
        parts = [Part(kind="thinking", text=cut("".join(self.thinking)))] if any(self.thinking) else []
        parts += [Part(kind="text", text=cut("".join(self.text)))] if any(self.text) else []
        parts += [
            Part(kind="tool_call", name=one["name"], id=one["id"], text=cut("".join(one["text"])))
            for one in self.calls.values()
        ]
        return Message(role="assistant", parts=parts)


def _dicts(value: Any) -> Iterable[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _deltas(events: list[dict[str, Any]]) -> tuple[list[Message], str]:
    """Chunks of OpenAI's chat."""
    found: dict[Any, _Merged] = {}
    why = ""
    for event in events:
        for choice in _dicts(event.get("choices")):
            merged = found.setdefault(str(choice.get("index", 0)), _Merged())
            why = why or str(choice.get("finish_reason") or "")
            if isinstance(choice.get("text"), str):
                merged.text.append(choice["text"])
            delta = choice.get("delta")
            if not isinstance(delta, dict):
                continue
            merged.text.append(str(delta.get("content") or ""))
            merged.thinking.append(str(delta.get("reasoning_content") or delta.get("reasoning") or ""))
            for call in _dicts(delta.get("tool_calls")):
                function = call.get("function") if isinstance(call.get("function"), dict) else {}
                assert isinstance(function, dict)
                merged.call(str(call.get("index", 0)), function.get("name"), call.get("id"), function.get("arguments"))
    return [merged.message() for merged in found.values()], why


def _blocks(events: list[dict[str, Any]]) -> tuple[list[Message], str]:
    """Anthropic's events."""
    merged = _Merged()
    why = ""
    for event in events:
        place, block, delta = str(event.get("index", 0)), event.get("content_block"), event.get("delta")
        if isinstance(block, dict):
            merged.text.append(str(block.get("text") or ""))
            if "name" in block:
                merged.call(place, block["name"], block.get("id"), "")
        if isinstance(delta, dict):
            why = str(delta.get("stop_reason") or why)
            merged.text.append(str(delta.get("text") or ""))
            merged.thinking.append(str(delta.get("thinking") or ""))
            if "partial_json" in delta:
                merged.call(place, "", "", delta["partial_json"])
    return [merged.message()], why


def _candidates(events: list[dict[str, Any]]) -> tuple[list[Message], str]:
    """Google's events: each is a small answer."""
    merged = _Merged()
    why = ""
    for event in events:
        said, stopped = _whole(event)
        why = stopped or why
        for part in (part for one in said for part in one.parts):
            if part.kind == "thinking":
                merged.thinking.append(part.text)
            elif part.kind == "tool_call":
                merged.call(len(merged.calls), part.name, part.id, part.text)
            else:
                merged.text.append(part.text)
    return [merged.message()], why
