"""Stored values for the eyes: read as the JSON that they are, never built, loaded or run.

A tagged value is written out in the manner of Python's repr, from what its tags say. A pickle is a name and a size.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import msgspec
import zstandard

from jupyter_durable.errors import LogError
from jupyter_durable.event_data import Payload
from jupyter_durable.log.local import LocalLog
from jupyter_durable.server.shapes import TableView, ValueView
from jupyter_durable.server.tables import array_type, table_of

LONGEST_JSON = 200_000
"""Bytes of JSON text up to which a value is sent as JSON."""
LONGEST_TEXT = 50_000
"""Characters of a value's text."""
LARGEST_BLOB = 64 * 2**20
"""Bytes of a blob, before and after decompression, that are read for the eyes."""
_DEPTH = 40
_DIGITS = frozenset("0123456789abcdef")


class NotShown(Exception):
    """Something of a step cannot be shown; its text is a sentence for people."""


class Cut(Exception):
    """The text is long enough."""


def read_blob(log: LocalLog, digest: str) -> bytes:
    """A blob of a log that may be a stranger's: only by the name of a blob, and only up to a size.

    Raises:
        NotShown: it is missing, changed, or too large.
    """
    if len(digest) != 32 or not _DIGITS.issuperset(digest):
        raise NotShown("It names a blob that no blob is called.")
    path = log.blobs.directory / digest
    try:
        size = path.lstat().st_size
        if size > LARGEST_BLOB or path.is_symlink():
            raise NotShown(f"It is too large to be shown ({size / 2**20:.0f} MB).")
        with path.open("rb") as file:
            head = file.read(32)
        if head[4:5] == b"\1":
            size = zstandard.frame_content_size(head[5:])
            if size > LARGEST_BLOB:
                raise NotShown(f"It is too large to be shown ({size / 2**20:.0f} MB).")
        return log.read_blob(digest)
    except (LogError, OSError, zstandard.ZstdError) as error:
        raise NotShown(f"It cannot be read: {error}") from error


def text_of(log: LocalLog, payload: Payload) -> bytes:
    """The JSON text of a stored value.

    Raises:
        NotShown: see `read_blob`; or the log was written without it.
    """
    if payload.blob is not None:
        return read_blob(log, payload.blob)
    if isinstance(payload.data, msgspec.Raw):
        return bytes(payload.data)
    raise NotShown("The value is not in the log.")


def tree_of(text: bytes) -> Any:
    """The JSON of a stored value.

    Raises:
        NotShown: it is no JSON, or nested too deeply.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotShown(f"The stored value is no JSON that can be shown ({type(error).__name__}).") from error


def view(log: LocalLog, payload: Payload, *, trusted: bool) -> ValueView:
    """A stored value for the eyes. What cannot be read is said in its text; nothing raises.

    Args:
        log: where its blobs lie.
        payload: the value.
        trusted: whether it was signed by the user; libraries of frames do not take bytes of strangers.
    """
    size = payload.size
    try:
        text = text_of(log, payload)
        size = size or len(text)
        tree = tree_of(text)
    except NotShown as error:
        return ValueView(
            type="", codec=payload.codec, size=size, json=None, text=f"<{error}>", cut=True, table=None
        )  # fmt: skip
    classes: list[Any] = []
    tagged = payload.codec == "tagged"
    if tagged and isinstance(tree, dict) and tree.get("$") == "typed":
        classes = tree.get("classes") if isinstance(tree.get("classes"), list) else []  # type: ignore[assignment]
        tree = tree.get("value")
    writer = Writer(classes, tagged=tagged)
    written, cut = writer.whole(tree)
    table: TableView | None = None
    if trusted and tagged and isinstance(tree, dict):
        data = _data(log, tree)
        table = None if data is None else table_of(str(tree.get("$")), data)
    return ValueView(
        type=writer.type_of(tree) + writer.version_of(tree),
        codec=payload.codec,
        size=size,
        json=tree if not tagged and len(text) <= LONGEST_JSON else None,
        text=written,
        cut=cut or (table is not None and table.total > len(table.rows)),
        table=table,
    )


def _data(log: LocalLog, tree: dict[str, Any]) -> bytes | None:
    """The bytes of an array or frame."""
    if str(tree.get("$")) not in {"nparray", "dataframe", "arrowtable", "recordbatch", "polars"}:
        return None
    try:
        blob, inline = tree.get("blob"), tree.get("v")
        if isinstance(blob, str):
            return read_blob(log, blob)
        return b64decode(inline, validate=True) if isinstance(inline, str) else None
    except (NotShown, ValueError):
        return None


class Writer:
    """Writes a tree as text, up to a length."""

    def __init__(self, classes: list[Any], *, tagged: bool, longest: int = LONGEST_TEXT) -> None:
        self._classes = classes
        self._tagged = tagged
        self._left = longest
        self._parts: list[str] = []

    def whole(self, tree: Any) -> tuple[str, bool]:
        """The text, and whether it was cut."""
        try:
            self._write(tree, 0)
        except Cut:
            return "".join(self._parts) + "…", True
        return "".join(self._parts), False

    def type_of(self, tree: Any) -> str:
        """Name of the type of a tree."""
        tag = tree.get("$") if self._tagged and isinstance(tree, dict) else None
        if tag is None:
            return type(tree).__name__
        tag = str(tag)
        if tag in {"dataclass", "pydantic", "subclass", "error", "enum"}:
            return self._class(tree.get("class"))
        if tag in {"pickle", "omitted"}:
            return str(tree.get("type", "object"))[:200]
        return _NAMES.get(tag, tag[:200])

    def version_of(self, tree: Any) -> str:
        """The version of its class, as far as one was written: that is, unless it was 1."""
        if not self._tagged or not isinstance(tree, dict):
            return ""
        if tree.get("$") == "pickle":
            places: Any = range(len(self._classes))
            place = next((one for one in places if self._class(one) == tree.get("type")), None)
        else:
            place = tree.get("class")
        entry = self._entry(place)
        version = self._entry(entry["of"]).get("ver") if "of" in entry else entry.get("ver")
        return f" (version {version})" if isinstance(version, int) and 1 < version < 10**9 else ""

    def _entry(self, place: Any) -> dict[str, Any]:
        found = self._classes[place] if isinstance(place, int) and 0 <= place < len(self._classes) else None
        return found if isinstance(found, dict) else {}

    def _class(self, place: Any, inside: int = 0) -> str:
        entry = self._entry(place)
        if not entry:
            return "object"
        if "of" in entry:
            # A stranger's table may name itself.
            return f"{self._class(entry['of'], inside + 1)}[…]" if inside < 3 else "object"
        module, name = str(entry.get("m", ""))[:200], str(entry.get("q", "object"))[:200]
        return name if module in {"__main__", "builtins", ""} else f"{module}.{name}"

    def _put(self, text: str) -> None:
        if len(text) > self._left:
            self._parts.append(text[: self._left])
            raise Cut
        self._left -= len(text)
        self._parts.append(text)

    def _write(self, tree: Any, depth: int) -> None:
        if isinstance(tree, str):
            self._put(repr(tree[: self._left + 1]))
        elif isinstance(tree, list):
            self._list("[", tree, "]", depth)
        elif isinstance(tree, dict):
            tag = tree.get("$") if self._tagged else None
            if tag is None:
                self._dict(tree.items(), depth)
            else:
                self._tag(str(tag), tree, depth)
        else:
            self._put(repr(tree))

    def _list(self, start: str, items: Any, end: str, depth: int) -> None:
        if depth > _DEPTH:
            self._put(f"{start}…{end}")
            return
        self._put(start)
        for place, one in enumerate(items if isinstance(items, list) else []):
            self._put(", " if place else "")
            self._write(one, depth + 1)
        self._put(end)

    def _dict(self, pairs: Any, depth: int, start: str = "{", end: str = "}") -> None:
        if depth > _DEPTH:
            self._put(f"{start}…{end}")
            return
        self._put(start)
        for place, pair in enumerate(pairs):
            self._put(", " if place else "")
            if isinstance(pair, list | tuple) and len(pair) == 2:
                self._write(pair[0], depth + 1)
                self._put(": ")
                self._write(pair[1], depth + 1)
        self._put(end)

    def _fields(self, name: str, fields: Any, depth: int) -> None:
        self._put(f"{name}(")
        for place, (field, one) in enumerate(fields.items() if isinstance(fields, dict) and depth <= _DEPTH else ()):
            self._put((", " if place else "") + f"{field}=")
            self._write(one, depth + 1)
        self._put(")")

    def _tag(self, tag: str, tree: dict[str, Any], depth: int) -> None:
        inner = tree.get("v")
        name = self.type_of(tree)
        if tag == "tuple":
            self._list("(", inner, ",)" if isinstance(inner, list) and len(inner) == 1 else ")", depth)
        elif tag in {"set", "frozenset", "deque"}:
            self._list(f"{name}([", inner, "])", depth)
        elif tag in {"dict", "ordereddict", "counter", "defaultdict"}:
            pairs = inner if isinstance(inner, list) else []
            plain = tag == "dict"
            self._dict(pairs, depth, "{" if plain else f"{name}({{", "}" if plain else "})")
        elif tag in {"dataclass", "pydantic"}:
            self._fields(name, inner, depth)
        elif tag == "namespace":
            self._dict(inner if isinstance(inner, list) else [], depth, "namespace({", "})")
        elif tag == "subclass":
            base_is_dict = tree.get("base") == "dict"
            self._put(f"{name}(")
            if base_is_dict:
                self._dict(inner if isinstance(inner, list) else [], depth)
            else:
                self._write(inner, depth + 1)
            self._put(")")
        elif tag == "error":
            self._list(f"{name}(", tree.get("args"), ")", depth)
        elif tag == "enum":
            self._put(f"{name}.{inner if isinstance(inner, str) else '|'.join(map(str, inner or []))}")
        elif tag in {"nparray", "npscalar"}:
            self._put(f"<{array_type(inner)}>")
        elif tag in {"pickle", "omitted"}:
            kept = f"not loaded, {_size(tree)}" if tag == "pickle" else "not stored"
            self._put(f"<{name}: {kept}>")
        elif tag in {"bytes", "bytearray", "dataframe", "arrowtable", "recordbatch", "polars"}:
            self._bytes(tag, name, tree)
        elif isinstance(inner, str | int | float):
            self._put(f"{name}({inner!r})"[: self._left + 1])
        else:
            self._put(f"{name}")
            if inner is not None:
                self._list("(", inner if isinstance(inner, list) else [inner], ")", depth)

    def _bytes(self, tag: str, name: str, tree: dict[str, Any]) -> None:
        inner = tree.get("v")
        if tag == "bytes" and isinstance(inner, str) and len(inner) <= 400:
            try:
                self._put(repr(b64decode(inner, validate=True)))
                return
            except ValueError:
                pass
        self._put(f"<{name}: {_size(tree)}>")


def _size(tree: dict[str, Any]) -> str:
    inner = tree.get("v")
    size = tree.get("size") if "blob" in tree else len(inner) * 3 // 4 if isinstance(inner, str) else 0
    return f"{size:,} bytes" if isinstance(size, int) else "size not known"


_NAMES = {
    "ordereddict": "OrderedDict",
    "counter": "Counter",
    "defaultdict": "defaultdict",
    "decimal": "Decimal",
    "fraction": "Fraction",
    "uuid": "UUID",
    "path": "Path",
    "zoneinfo": "ZoneInfo",
    "namespace": "SimpleNamespace",
    "nparray": "ndarray",
    "npscalar": "numpy scalar",
    "dataframe": "DataFrame",
    "polars": "DataFrame",
    "arrowtable": "Table",
    "recordbatch": "RecordBatch",
    "notimplemented": "NotImplemented",
    "class": "type",
}
"""Tag -> name of the type, where they differ."""
