"""How many tokens a request can have as input, at most, told from its bytes before it is sent.

The rule for text: a token covers at least one byte. Tokenizers of today's models are byte-pair encodings (or fall back
to single bytes), whose smallest piece is a byte, so a text has never more tokens than UTF-8 bytes. English has about a
quarter of that; the estimate is for reserving a budget, where too little is the mistake that costs. Field names and
brackets of the JSON count too, which pays for the words that providers put around messages and tools.

Pictures, sound, film and documents do not count by their bytes but by what providers publish:

* a picture has at most 5,000 tokens: Anthropic stops below 4,800, OpenAI's patches below 3,800, Gemini's tiles of a
  large one below 4,200. gpt-4o-mini counts each of OpenAI's tiles 33 times (48,169), and ``detail: original`` allows
  10,000 patches;
* sound has up to 32 tokens a second (Gemini), and speech is hardly packed below 1,000 bytes a second;
* film has about 300 a second, hardly packed below 5,000 bytes a second;
* a page of a document has up to 4,600 (text and picture), and pages are rarely below 18 KB; the first one is free of
  that rule.

What a request only names (a file at the provider, a picture at an address) counts like a picture or a document of
unknown size. What the provider adds on its own (conversations that it keeps, results of its searches) cannot be known
here: `is_whole` says so.
"""

from __future__ import annotations

from typing import Any

import msgspec

from jupyter_durable.capture.providers import counts
from jupyter_durable.capture.providers.base import Ask

PICTURE = 5_000
PICTURE_MINI = 50_000
PICTURE_ORIGINAL = 12_000
NAMED_FILE = 50_000
AROUND = 64
"""Words that begin and end every prompt."""
AROUND_TOOLS = 1_000
"""Providers explain to the model how tools are called; Anthropic's text has up to about 700 tokens."""
OWN_TOOL = 1_500
"""A tool that the provider itself describes, so that its text is not in the request."""

_TEXT, _IMAGE, _AUDIO, _VIDEO, _DOCUMENT = "text", "image", "audio", "video", "document"

_KINDS = {
    "image": _IMAGE, "images": _IMAGE, "image_url": _IMAGE, "input_image": _IMAGE, "b64_json": _IMAGE,
    "audio": _AUDIO, "input_audio": _AUDIO, "video": _VIDEO, "input_video": _VIDEO, "video_url": _VIDEO,
    "document": _DOCUMENT, "file": _DOCUMENT, "input_file": _DOCUMENT, "file_data": _DOCUMENT, "fileData": _DOCUMENT,
    "inlineData": _DOCUMENT, "inline_data": _DOCUMENT, "bytesBase64Encoded": _IMAGE, "document_url": _DOCUMENT,
}  # fmt: skip
"""Names of fields, and values of ``type``, that say what is inside."""

_CARRIERS = frozenset("data file_data b64_json bytes bytesBase64Encoded images image image_url video_url url".split())
"""Fields that carry bytes as base64, if what is around them says picture, sound, film or document."""

_NAMES = frozenset("file_id fileUri file_uri document_url".split())
"""Fields that name what lies elsewhere."""

_STATE = ("previous_response_id", "conversation", "conversation_id", "cachedContent", "cached_content", "container")


def input_at_most(ask: Ask) -> int:
    """The most input tokens that a request can have.

    >>> body = b'{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}'
    >>> input_at_most(Ask(method="POST", scheme="https", host="h", port=None, path="/", body=body))
    129
    """
    if counts.is_form(ask):
        return AROUND + _form(ask)
    if ask.json is None:
        return AROUND + len(ask.body)
    picture = PICTURE_MINI if _counts_tiles_many_times(ask) else PICTURE
    media = _Media(picture)
    plain = media.without(ask.json, _TEXT)
    text = len(msgspec.json.encode(plain))
    return AROUND + text + media.tokens + _tools(ask)


def is_whole(ask: Ask) -> bool:
    """Whether all input is in the request; the provider adds none from conversations, caches, searches or servers.

    >>> body = b'{"input":"And then?","previous_response_id":"resp_1"}'
    >>> is_whole(Ask(method="POST", scheme="https", host="h", port=None, path="/v1/responses", body=body))
    False
    """
    if any(ask.get(name) for name in _STATE) or ask.get("mcp_servers"):
        return False
    return all(
        counts.at(tool, "type") in {None, "function", "custom"} and _describes_itself(tool)
        for tool in counts.asked_tools(ask)
    )


class _Media:
    """Walks through a body, takes media out of it, and counts their tokens."""

    def __init__(self, picture: int) -> None:
        self.picture = picture
        self.tokens = 0

    def without(self, value: Any, kind: str, name: str = "") -> Any:
        """The value with media replaced by nothing."""
        if isinstance(value, dict):
            return self._object(value, kind)
        if isinstance(value, list):
            return [self.without(item, kind, name) for item in value]
        if isinstance(value, str) and (taken := self._taken(value, kind, name)) is not None:
            self.tokens += taken
            return ""
        return value

    def _object(self, fields: dict[str, Any], kind: str) -> dict[str, Any]:
        kind = _KINDS.get(str(fields.get("type", "")), kind)
        said = next((fields[name] for name in ("media_type", "mimeType", "mime_type") if name in fields), None)
        if isinstance(said, str):
            kind = _kind_of_mime(said)
        if fields.get("detail") == "original":
            self.tokens += PICTURE_ORIGINAL
        return {name: self.without(value, _KINDS.get(name, kind), name) for name, value in fields.items()}

    def _taken(self, value: str, kind: str, name: str) -> int | None:
        """Tokens of what a text carries or names, if it is no text; ``None`` if it is."""
        if name in _NAMES:
            return NAMED_FILE
        if value.startswith("data:") and ";base64," in value[:200]:
            head, _, data = value.partition(",")
            return self._weigh(_kind_of_mime(head[5:]), len(data))
        if name not in _CARRIERS or kind == _TEXT:
            return None
        if value.startswith(("http://", "https://", "gs://", "s3://")):
            return self.picture if kind == _IMAGE else NAMED_FILE
        # A text document keeps its text in the field that carries bytes elsewhere; spaces tell them apart.
        if any(space in value[:512] for space in " \n\t"):
            return None
        return self._weigh(kind, len(value))

    def _weigh(self, kind: str, length: int) -> int:
        size = length * 3 // 4
        if kind == _IMAGE:
            return self.picture
        return size if kind == _TEXT else _heavy(kind, size)


def _heavy(kind: str, size: int) -> int:
    if kind == _AUDIO:
        return 100 + size * 32 // 1000
    if kind == _VIDEO:
        return 600 + size * 300 // 5000
    return 5_000 + size // 4


def _kind_of_mime(said: str) -> str:
    if said.startswith("text/"):
        return _TEXT
    first = said.partition("/")[0]
    return first if first in {_IMAGE, _AUDIO, _VIDEO} else _DOCUMENT


def _counts_tiles_many_times(ask: Ask) -> bool:
    model = str(ask.get("model") or ask.path)
    return "4o-mini" in model


def _tools(ask: Ask) -> int:
    tools = counts.asked_tools(ask)
    if not tools and not ask.get("functions"):
        return 0
    return AROUND_TOOLS + OWN_TOOL * sum(not _describes_itself(tool) for tool in tools)


def _describes_itself(tool: Any) -> bool:
    names = ("function", "parameters", "input_schema", "functionDeclarations", "function_declarations", "format")
    return counts.at(tool, "type") in {"function", "custom"} or any(counts.at(tool, name) for name in names)


def _form(ask: Ask) -> int:
    """Texts of a form by their bytes, files by what they are."""
    boundary = ask.headers.get("content-type", "").partition("boundary=")[2].partition(";")[0].strip('" ')
    if not boundary:
        return len(ask.body)
    found = 0
    for part in ask.body.split(b"--" + boundary.encode("latin-1", "replace")):
        head, _, content = part.partition(b"\r\n\r\n")
        lower = head.lower()
        if b"filename=" not in lower:
            found += len(content)
        elif (
            b"image/" in lower or lower.endswith((b'.png"', b'.jpg"', b'.jpeg"', b'.webp"')) or b'name="image' in lower
        ):
            found += PICTURE
        else:
            found += _heavy(_AUDIO, len(content))
    return found
