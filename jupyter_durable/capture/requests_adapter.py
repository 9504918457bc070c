"""The hook into ``requests``: around ``HTTPAdapter.send``, where a prepared request meets its connection.

Redirects, cookies, authentication and the user's hooks are above it, in the session; the retries of ``urllib3`` are
below it. The body of an answer is handed out by a response of ``urllib3``'s own class over a file of ours, live and
from history alike. So everything that reads a body works, as it arrives, and content encodings are undone once.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import wraps
from http import HTTPStatus
from importlib import import_module
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from jupyter_durable.capture.exchange import Exchange, exchange_for
from jupyter_durable.capture.inside import INSIDE, may_be_call, passing
from jupyter_durable.capture.providers.base import Ask
from jupyter_durable.capture.replayed import Replayed
from jupyter_durable.engine.context import current
from jupyter_durable.errors import CannotHook

_UNDONE = {"content-encoding", "content-length", "transfer-encoding"}
"""Headers that are no longer true of a body that is handed out in another form than it came in."""

_SOME = 64 * 1024
_PORTS = {"http": 80, "https": 443}


def install(module: ModuleType) -> None:
    """Hook into the adapter of ``requests.adapters``.

    Raises:
        CannotHook: it is not as it was known.
    """
    adapter = getattr(module, "HTTPAdapter", None)
    urllib3 = import_module("urllib3.response").HTTPResponse
    _check(adapter, urllib3)
    assert adapter is not None
    raw = _raw_class(urllib3)
    original = adapter.send

    @wraps(original)
    def send(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None or INSIDE.get():
            return original(self, request, *args, **kwargs)
        ask = _ask(request)
        if may_be_call(ask):
            ask.body = _body_of(request)
            exchange = exchange_for(ask, is_async=False)
        else:
            exchange = None
        if exchange is None:
            with passing(ask.host):
                return original(self, request, *args, **kwargs)
        if exchange.is_recorded:
            return _recorded(self, request, exchange, raw)
        return _live(exchange, request, lambda: original(self, request, *args, **kwargs), raw)

    adapter.send = send


def _check(adapter: Any, urllib3: Any) -> None:
    wrong = []
    for owner, name, wanted in (
        (adapter, "send", ["self", "request", "stream", "timeout", "verify", "cert", "proxies"]),
        (adapter, "build_response", ["self", "req", "resp"]),
        (urllib3, "read_chunked", ["self", "amt", "decode_content"]),
        (urllib3, "stream", ["self", "amt", "decode_content"]),
    ):
        method = getattr(owner, name, None)
        if method is None or list(inspect.signature(method).parameters) != wanted:
            wrong.append(f"{name}({', '.join(wanted[1:])})")
    made_with = {"body", "headers", "status", "reason", "preload_content", "decode_content", "original_response"}
    if not wrong and made_with - set(inspect.signature(urllib3).parameters):
        wrong.append("HTTPResponse(...)")
    if wrong:
        raise CannotHook(
            f"`requests` or `urllib3` is not as it was known ({', '.join(wrong)} is missing), so model calls through "
            f"it are NOT recorded, and a re-run pays for them again. Put them into functions with `@step`, or install "
            f"another version."
        )


def _ask(request: Any) -> Ask:
    """A prepared request, without its body."""
    url = urlsplit(request.url)
    port = url.port if url.port != _PORTS.get(url.scheme) else None
    return Ask(
        method=(request.method or "GET").upper(), scheme=url.scheme, host=(url.hostname or "").lower(), port=port,
        path=url.path or "/", query=tuple(parse_qsl(url.query, keep_blank_values=True)),
        headers={name.lower(): _text(value) for name, value in request.headers.items()},
    )  # fmt: skip


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _body_of(request: Any) -> bytes:
    """The body of a prepared request. What can be read only once is put back as bytes; a file is wound back."""
    body = request.body
    if body is None:
        return b""
    if isinstance(body, str | bytes | bytearray):
        return _bytes(body)
    if not hasattr(body, "read"):
        request.body = data = b"".join(map(_bytes, body))
        return data
    try:
        start = body.tell()
    except (AttributeError, OSError):
        start = None
    data = _bytes(body.read())
    if start is None:
        request.body = data
    else:
        body.seek(start)  # a redirect winds the file back too, so it must stay a file
    return data


def _bytes(part: Any) -> bytes:
    return part.encode() if isinstance(part, str) else bytes(part)


class _Body:
    """The body of an answer as a file, for a response of ``urllib3`` to read.

    Args:
        pieces: gives the body as it arrives, and tells its end.
        release: gives the connection back.
        close: told when the program reads no further.
    """

    def __init__(self, pieces: Iterator[bytes], release: Any = None, close: Any = None) -> None:
        self._pieces = pieces
        self.release = release
        self._close = close
        self._held = b""
        self._at = 0
        self.read_so_far = 0
        self.closed = False

    def some(self, most: int | None = None) -> bytes:
        """What is there, waiting for a first byte only; empty at the end."""
        if self._at >= len(self._held):
            self._held, self._at = next(self._pieces, b""), 0
        end = len(self._held) if most is None or most < 0 else self._at + most
        data = self._held[self._at : end]
        self._at += len(data)
        self.read_so_far += len(data)
        return data

    read1 = some

    def read(self, amount: int | None = None) -> bytes:
        """So many bytes, less only at the end; all of them by default."""
        parts, left = [], -1 if amount is None else amount
        while left and (data := self.some(left)):
            parts.append(data)
            left -= len(data) if left > 0 else 0
        return b"".join(parts)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self._close is not None:
                self._close()


def _raw_class(urllib3: Any) -> Any:
    """A response of ``urllib3`` whose body needs no decoding any more."""

    class HTTPResponse(urllib3):  # type: ignore[misc]
        """As its base; iterating gives what has arrived instead of waiting until a block is full."""

        def __init__(self, body: _Body, status: int, headers: Any, reason: str, like: Any = None) -> None:
            super().__init__(
                body=body, status=status, reason=reason, preload_content=False, decode_content=False,
                headers=[pair for pair in headers if pair[0].lower() not in _UNDONE],
                original_response=getattr(like, "_original_response", None),
            )  # fmt: skip
            self.version = getattr(like, "version", 11)
            self._durable_body = body

        def stream(self, amt: int | None = _SOME, decode_content: bool | None = None) -> Iterator[bytes]:
            del decode_content  # it is decoded
            while data := self._durable_body.some(amt):
                yield data
            self._durable_body.close()

        read_chunked = stream

        def tell(self) -> int:
            return self._durable_body.read_so_far

        def release_conn(self) -> None:
            if self._durable_body.release is not None:
                self._durable_body.release()

    return HTTPResponse


# From history --------------------------------------------------------------------------------------------------------


def _recorded(adapter: Any, request: Any, exchange: Exchange, raw: Any) -> Any:
    try:
        replayed = exchange.recorded()
    except Exception as error:
        if hasattr(error, "request"):
            error.request = request  # it is not written down: it carries the key
        raise
    reason = HTTPStatus(replayed.status).phrase if replayed.status in set(HTTPStatus) else ""
    body = _Body(_again(replayed))
    return adapter.build_response(request, raw(body, replayed.status, replayed.headers, reason))


def _again(replayed: Replayed) -> Iterator[bytes]:
    yield from replayed.chunks()
    broken = replayed.broken_by()
    if broken is not None:
        exceptions = import_module("urllib3.exceptions")
        kind = getattr(exceptions, broken[0], exceptions.ProtocolError)
        if issubclass(kind, exceptions.IncompleteRead) or not issubclass(kind, exceptions.HTTPError):
            kind = exceptions.ProtocolError
        # Past its constructor: some want a pool and a URL, and put them into a message that is whole already.
        raise kind.__new__(kind, broken[1])


# Live ----------------------------------------------------------------------------------------------------------------


def _live(exchange: Exchange, request: Any, send: Any, raw: Any) -> Any:
    inside = INSIDE.set(True)
    try:
        exchange.flush()
        with _outgoing(exchange, request):
            response = send()
        _tell_of_retries(exchange, response.raw)
        if response.status_code >= 400:
            body = response.content
            headers = [pair for pair in response.raw.headers.items() if pair[0].lower() not in _UNDONE]
            exchange.refused(response.status_code, {name.lower(): value for name, value in headers}, body)
            file = _Body(iter([body]), response.raw.release_conn, response.raw.close)
            return _with_body(response, raw, file, without=_UNDONE)
    except BaseException as error:
        _failed(exchange, error)
        raise
    finally:
        INSIDE.reset(inside)
    inner = response.raw
    encoded = "content-encoding" in inner.headers or exchange.body is not None
    exchange.answered(response.status_code, {name.lower(): value for name, value in inner.headers.items()})
    file = _Body(_as_it_arrives(exchange, inner), inner.release_conn, lambda: _left(exchange, inner))
    return _with_body(response, raw, file, without=_UNDONE if encoded else set())


def _tell_of_retries(exchange: Exchange, raw: Any) -> None:
    """`urllib3` retries below the adapter, where nobody can see the requests one by one; it tells afterwards."""
    history = getattr(getattr(raw, "retries", None), "history", ())
    made = [each for each in history if each.error is not None or (each.status or 0) >= 400]
    if made:
        exchange.note_hidden_attempts(len(made), "the session's `urllib3` retries")


class _outgoing:  # noqa: N801 - a context manager, used as a word
    """The request as it is sent, for as long as that takes: with what is added to it."""

    def __init__(self, exchange: Exchange, request: Any) -> None:
        self._exchange, self._request = exchange, request
        self._before = request.body, request.headers

    def __enter__(self) -> None:
        exchange, request = self._exchange, self._request
        if exchange.body is not None or exchange.headers:
            request.headers = request.headers.copy()
            request.headers.update(exchange.headers)
        if exchange.body is not None:
            request.body = exchange.body
            if "Content-Length" in request.headers:
                request.headers["Content-Length"] = str(len(exchange.body))

    def __exit__(self, *_: object) -> None:
        self._request.body, self._request.headers = self._before


def _with_body(response: Any, raw: Any, file: _Body, *, without: set[str]) -> Any:
    """The same response with another body."""
    inner = response.raw
    response.raw = raw(file, response.status_code, inner.headers.items(), response.reason, like=inner)
    response._content, response._content_consumed = False, False
    for name in without:
        response.headers.pop(name, None)
    return response


def _as_it_arrives(exchange: Exchange, inner: Any) -> Iterator[bytes]:
    try:
        for data in _pieces(inner):
            if shown := exchange.chunk(data):
                yield shown
        if shown := exchange.rest():
            yield shown
    except GeneratorExit:
        raise
    except BaseException as error:
        exchange.failed(error)
        raise
    exchange.finished()


def _pieces(inner: Any) -> Iterator[bytes]:
    if inner.chunked and inner.supports_chunked_reads():
        yield from inner.read_chunked(decode_content=True)
    elif hasattr(inner, "read1"):
        while data := inner.read1(_SOME, decode_content=True):
            yield data
    else:
        yield from inner.stream(_SOME, decode_content=True)


def _left(exchange: Exchange, inner: Any) -> None:
    try:
        exchange.left()
    finally:
        inner.close()


def _failed(exchange: Exchange, error: BaseException) -> None:
    """Record an error of the connection without what it carries: the request has the key, the pool has locks."""
    if not hasattr(error, "request"):
        exchange.failed(error)
        return
    request, args = error.request, error.args
    error.request, error.args = None, (str(error),)
    try:
        exchange.failed(error)
    finally:
        error.request, error.args = request, args
