"""Requests and answers as an HTTP library sees them, written short."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.capture.providers.finding import api_for, apis
from jupyter_durable.event_data import Usage


def ask(url: str, body: Any = None, method: str = "POST", **headers: str) -> Ask:
    """A request; a body that is no bytes becomes JSON."""
    parts = urlsplit(url)
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return Ask(
        method=method,
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=parts.port,
        path=parts.path,
        query=tuple(parse_qsl(parts.query)),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        body=raw,
    )


def form(url: str, fields: dict[str, str], *, file: bytes = b"RIFF....", name: str = "speech.wav") -> Ask:
    """A request whose body is a form with a file."""
    parts = [f'--b\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{fields[key]}\r\n'.encode() for key in fields]
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: x/y\r\n\r\n'
    body = b"".join(parts) + head.encode() + file + b"\r\n--b--\r\n"
    return ask(url, body, content_type="multipart/form-data; boundary=b")


def plain(body: Any, **headers: str) -> Answer:
    """A whole answer."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status=200, headers={name.replace("_", "-"): value for name, value in headers.items()}, body=raw)


def sse(*events: Any, named: bool = False) -> bytes:
    """Server-sent events; texts go as they are."""
    lines = []
    for event in events:
        if named:
            lines.append(f"event: {event['type']}\n")
        data = event if isinstance(event, str) else json.dumps(event, separators=(",", ":"))
        lines.append(f"data: {data}\n\n")
    return "".join(lines).encode()


def api(request: Ask) -> Api:
    """Who knows a request."""
    found = api_for(request)
    assert found is not None, f"nobody knows {request.method} {request.host}{request.path}"
    return found


def name(request: Ask) -> str:
    """The name of who knows a request; empty if nobody does. Of ours no two know the same, so that order is nothing."""
    found = api_for(request)
    ours = [one for one in apis() if type(one).__module__.startswith("jupyter_durable.") and one.recognises(request)]
    assert len(ours) <= 1, f"{request.host}{request.path}: {[(type(one).__module__, one.name) for one in ours]}"
    return found.name if found else ""


def usage(request: Ask, answer: Answer | bytes) -> Usage:
    """What an answer tells."""
    return api(request).usage(request, plain(answer) if isinstance(answer, bytes) else answer)


def told(found: Usage) -> tuple[int | None, ...]:
    """Input, output, cached, written, reasoning."""
    return found.input, found.output, found.cached, found.cache_write, found.reasoning
