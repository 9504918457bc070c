"""HTTP requests and responses of httpx as they hang on the errors of SDKs: status, headers and body, without secrets.

``except httpx.HTTPStatusError as error: if error.response.status_code == 503`` is how programs decide; a replay must
take the same way.
"""

from __future__ import annotations

import sys
from base64 import b64decode, b64encode
from typing import Any

from jupyter_durable.values.secrets import REDACTED, redact

SECRET_HEADERS = frozenset(
    (
        *("authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "x-auth-token"),
        *("cookie", "set-cookie", "openai-organization", "x-amz-security-token"),
    )
)
"""Headers whose values are never written."""

_LIBRARIES = ("httpx", "httpx2")
# The body is stored decoded; with these headers it would be decoded a second time.
_OF_TRANSFER = frozenset(("content-encoding", "content-length", "transfer-encoding"))
_BODY = 32 * 1024


def take_apart(value: object) -> dict[str, Any] | None:
    """An httpx request or response as plain JSON; ``None`` for anything else.

    A request loses its body (it is the prompt, and it is in the log already).
    """
    cls = type(value)
    library = cls.__module__.partition(".")[0]
    if library not in _LIBRARIES or cls.__name__ not in ("Request", "Response"):
        return None
    if getattr(sys.modules.get(library), cls.__name__, None) is not cls:
        return None
    one: Any = value
    headers = [[name, _header(name, text)] for name, text in one.headers.multi_items() if name not in _OF_TRANSFER]
    made: dict[str, Any] = {"library": library, "headers": headers}
    if cls.__name__ == "Request":
        return {**made, "method": str(one.method), "url": redact(str(one.url))}
    made["status"] = int(one.status_code)
    request = getattr(one, "_request", None)
    if request is not None:
        made["request"] = take_apart(request)
    try:
        body = bytes(one.content)
    except Exception:  # a streamed body that was never read
        return made
    if len(body) <= _BODY:
        try:
            made["text"] = redact(body.decode())
        except UnicodeDecodeError:
            made["body"] = b64encode(body).decode()
    return made


def put_together(parts: dict[str, Any]) -> Any:
    """The request or response again, as a real one of its library."""
    library: Any = __import__(parts["library"])
    headers = [(name, text) for name, text in parts["headers"]]
    if "status" not in parts:
        return library.Request(parts["method"], parts["url"], headers=headers)
    content = parts["text"].encode() if "text" in parts else b64decode(parts.get("body", ""))
    request = put_together(parts["request"]) if "request" in parts else None
    return library.Response(parts["status"], headers=headers, content=content, request=request)


def _header(name: str, text: str) -> str:
    return REDACTED if name.lower() in SECRET_HEADERS else redact(text)
