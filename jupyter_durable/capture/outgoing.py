"""The identity of a request, and what of it may be written down. Pure.

Two requests are equal if method, URL, a few headers that choose a version of the API, and the body are. A JSON body
counts by content, a multipart one without its random boundary. No other header counts: they tell of the SDK, the
machine and the number of the retry. Keys in the URL do not count, so that a rotated key does not buy everything anew.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote

import msgspec

from jupyter_durable.capture.providers.base import Ask
from jupyter_durable.values import digest, redact
from jupyter_durable.values.secrets import REDACTED

VERSION_HEADERS = ("anthropic-beta", "anthropic-version", "openai-beta")
"""The headers that change what is answered."""

_SECRET_HEADERS = re.compile(r"authorization|cookie|key|token|secret|password", re.IGNORECASE)
_SECRET_QUERY = re.compile(r"key|token|secret|password|signature|^sig$|credential|auth", re.IGNORECASE)
_BOUNDARY = re.compile(r'boundary="?([^";]+)"?', re.IGNORECASE)

_SHORTEST = 6
"""Characters of a header's value below which it is no secret: taking every ``a`` out of a text would hide nothing."""


def identity(ask: Ask) -> str:
    """The digest of a request; 22 characters, as for the arguments of a step.

    >>> one = Ask("POST", "https", "api.example.com", None, "/v1/chat/completions", body=b'{"a": 1, "b": 2}')
    >>> two = Ask("POST", "https", "api.example.com", None, "/v1/chat/completions", body=b'{"b":2,"a":1}')
    >>> identity(one) == identity(two)
    True
    """
    versions = [[name, ask.headers[name]] for name in VERSION_HEADERS if name in ask.headers]
    return digest([ask.method, url_of(ask), versions, _content(ask)])


def _content(ask: Ask) -> str | bytes:
    if ask.json is not None:
        return canonical(ask)
    content_type = ask.headers.get("content-type", "")
    found = _BOUNDARY.search(content_type) if content_type.startswith("multipart/") else None
    return ask.body.replace(found[1].encode(), b"boundary") if found is not None else ask.body


def canonical(ask: Ask) -> str:
    """The JSON of a request in one form for equal content."""
    return msgspec.json.encode(ask.json, order="deterministic").decode()


def url_of(ask: Ask) -> str:
    """The URL without user info and keys, its query sorted.

    >>> url_of(Ask("POST", "https", "example.com", 8443, "/v1/x", query=(("key", "AIza1"), ("alt", "sse"))))
    'https://example.com:8443/v1/x?alt=sse'
    """
    port = f":{ask.port}" if ask.port is not None else ""
    kept = sorted(pair for pair in ask.query if not _SECRET_QUERY.search(pair[0]))
    query = "&".join(f"{quote(name)}={quote(value)}" for name, value in kept)
    return f"{ask.scheme}://{ask.host}{port}{ask.path}{'?' + query if query else ''}"


def secrets_of(ask: Ask) -> tuple[str, ...]:
    """The keys that a request carries in headers and query: wherever else they stand, they are not written down."""
    found = []
    for name, value in ask.headers.items():
        if _names_a_secret(name):
            found += [value, *value.split(" ")[1:]] if " " in value else [value]
    found += [unquote(value) for name, value in ask.query if _SECRET_QUERY.search(name)]
    return tuple(sorted({secret for secret in found if len(secret) >= _SHORTEST}, key=len, reverse=True))


@lru_cache(maxsize=1024)  # every request of a client has the same ones
def _names_a_secret(header: str) -> bool:
    return _SECRET_HEADERS.search(header) is not None


def without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """A text as it may be written down: without the request's own keys, and without what looks like one.

    >>> without_secrets('{"q": "my key is abc-123-def"}', ("abc-123-def",))
    '{"q": "my key is [redacted]"}'
    """
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, REDACTED)
    return redact(text)
