"""The hook into ``aiohttp``: a middleware of its client that stands next to the connection, behind the user's own.

Redirects, cookies, authentication, ``raise_for_status`` and the user's middlewares are above it; it sees each request
whole, its body included, and answers from history with a response of aiohttp's own class.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from http import HTTPStatus
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

from jupyter_durable.capture import unseen
from jupyter_durable.capture.aiohttp_body import Kept, Live, NoFlow, Source, again, methods_that_read, reader_class
from jupyter_durable.capture.exchange import Exchange, exchange_for
from jupyter_durable.capture.inside import INSIDE, may_be_call, passing
from jupyter_durable.capture.providers.base import Ask
from jupyter_durable.engine.context import current
from jupyter_durable.errors import CannotHook

Handler = Callable[[Any], Awaitable[Any]]

_LIMIT = 2**18
"""Bytes that a reader of aiohttp holds by default."""


def install(module: ModuleType) -> None:
    """Hook into the session of ``aiohttp.client``.

    Raises:
        CannotHook: aiohttp is not as it was known; that is tried out here.
    """
    try:
        recorder = _Recorder(module)
        recorder.try_out()
    except Exception as error:
        version = getattr(import_module("aiohttp"), "__version__", "of unknown version")
        raise CannotHook(
            f"`aiohttp` {version} is not as it was known ({error}), so model calls through it are NOT recorded, and a "
            f"re-run pays for them again. Put them into functions with `@step`, or install another version of it."
        ) from error
    original = module.ClientSession._request

    # With `wraps`: google-genai reads the signature to learn which arguments it may give.
    @wraps(original)
    async def _request(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None or INSIDE.get():
            return await original(self, *args, **kwargs)
        given = kwargs.get("middlewares")
        decodes = kwargs.get("auto_decompress")
        decodes = self._auto_decompress if decodes is None else decodes
        own = recorder.middleware if decodes else recorder.plain_middleware
        kwargs["middlewares"] = (*(self._middlewares if given is None else given), own)
        return await original(self, *args, **kwargs)

    module.ClientSession._request = _request


class _Recorder:
    """What the middleware needs of one version of aiohttp."""

    def __init__(self, client: ModuleType) -> None:
        self._client = client
        self._streams = import_module("aiohttp.streams")
        self._reader = reader_class(self._streams)
        self._reading = methods_that_read(self._streams)
        self._version = import_module("aiohttp.http").HttpVersion11
        self._headers: Any = import_module("multidict").CIMultiDict
        self._headers_proxy: Any = import_module("multidict").CIMultiDictProxy
        known = {
            "writer": None, "continue100": None, "timer": import_module("aiohttp.helpers").TimerNoop(), "traces": [],
            "stream_writer": SimpleNamespace(output_size=0), "request_info": None, "loop": None, "session": None,
        }  # fmt: skip
        parameters = list(inspect.signature(client.ClientResponse.__init__).parameters.values())[3:]
        self._made_with = {each.name: known[each.name] for each in parameters if each.default is each.empty}

    def try_out(self) -> None:
        """Build a response from nothing, and read it; raises something if that cannot be done."""
        client = self._client
        request, payload = client.ClientRequest, import_module("aiohttp.payload").Payload
        session = {"middlewares", "auto_decompress"} - set(inspect.signature(client.ClientSession._request).parameters)
        wanted = ((request, ("body", "update_body", "request_info", "session")), (payload, ("as_bytes",)))
        missing = [*session, *(name for owner, names in wanted for name in names if not hasattr(owner, name))]
        if missing:
            raise AttributeError(f"{', '.join(missing)} is missing")
        url = import_module("yarl").URL("http://localhost/")
        loop = SimpleNamespace(get_debug=lambda: False, is_closed=lambda: False)
        made = SimpleNamespace(
            response_class=client.ClientResponse, method="GET", original_url=url, request_info=None, loop=loop,
            session=None,
        )  # fmt: skip
        response = _at_once(self._response(made, 200, [("A", "b")], Kept(iter([b"one\ntw", b"o"]))))
        lines = _at_once(response.content.readline()), _at_once(response.content.readany())
        if (lines, _at_once(response.read()), response.headers["a"]) != ((b"one\n", b"tw"), b"o", "b"):
            raise ValueError("a response is read in another way")

    async def middleware(self, request: Any, handler: Handler) -> Any:
        """Answer from history, or send and record."""
        if "websocket" in request.headers.get("Upgrade", "").lower():
            unseen.socket_opened(request.url.host or "", request.url.path)
            return await handler(request)
        ask = _ask(request)
        if may_be_call(ask):
            ask.body = await request.body.as_bytes() if request.body else b""
            exchange = exchange_for(ask, is_async=True)
        else:
            exchange = None
        if exchange is None:
            with passing(ask.host):
                return await handler(request)
        if exchange.is_recorded:
            return await self._recorded(exchange, request)
        return await self._live(exchange, request, handler)

    async def plain_middleware(self, request: Any, handler: Handler) -> Any:
        """The same for a client that undoes content encodings itself: a model is asked to use none."""
        if may_be_call(_ask(request)):
            request.headers["Accept-Encoding"] = "identity"
        return await self.middleware(request, handler)

    async def _recorded(self, exchange: Exchange, request: Any) -> Any:
        try:
            replayed = await exchange.recorded_async()
        except self._client.ClientConnectorError as error:
            # It may hold the user's certificates, which are not written down; the base class takes it for the number.
            error._conn_key = request.connection_key
            error.args = (request.connection_key, *error.args[1:])
            error.errno, error.strerror = error.os_error.errno, error.os_error.strerror
            raise
        kept = Kept(again(replayed, self._client), replayed)
        return await self._response(request, replayed.status, replayed.headers, kept)

    async def _live(self, exchange: Exchange, request: Any, handler: Handler) -> Any:
        inside = INSIDE.set(True)
        try:
            await exchange.flush_async()
            response = await _sent(exchange, request, handler)
            headers = {name.lower(): value for name, value in response.headers.items()}
            if response.status >= 400:
                body = await response.content.read()
                exchange.refused(response.status, headers, body)
                response.content = self._body(Kept(iter([body])), request.loop)
                return response
        except asyncio.CancelledError as error:
            # What aiohttp cancels is its own timeout; it becomes one above us.
            expired = getattr(request._timer, "_cancelled", False)
            exchange.failed(TimeoutError() if expired else error)
            raise
        except BaseException as error:
            exchange.failed(error)
            raise
        finally:
            INSIDE.reset(inside)
        exchange.answered(response.status, headers)
        is_chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        source = Live(exchange, response.content, self._reading, is_chunked=is_chunked)
        # The longest line depends on it; the reader of an empty body has none.
        response.content = self._body(source, request.loop, getattr(response.content, "_low_water", _LIMIT))
        return response

    def _body(self, source: Source, loop: Any, limit: int = _LIMIT) -> Any:
        return self._reader(source, limit, loop)

    async def _response(self, request: Any, status: int, headers: list[tuple[str, str]], source: Source) -> Any:
        """A response that was not received: what aiohttp starts it with is handed to it as if it came in."""
        given = {"request_info": request.request_info, "loop": request.loop, "session": request.session}
        made_with = {name: given.get(name, value) for name, value in self._made_with.items()}
        response = request.response_class(request.method, request.original_url, **made_with)
        raw = tuple((name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in headers)
        message = SimpleNamespace(
            code=status, reason=HTTPStatus(status).phrase if status in set(HTTPStatus) else "", version=self._version,
            headers=self._headers_proxy(self._headers(headers)), raw_headers=raw,
        )  # fmt: skip
        await response.start(_Connection(message, self._body(source, request.loop)))
        return response


class _Connection(NoFlow):
    """Stands for the connection of a response from history; it is its own protocol."""

    def __init__(self, message: Any, body: Any) -> None:
        self.protocol = self
        self.transport = None
        self._told = message, body

    async def read(self) -> Any:
        """Head and body."""
        return self._told

    def add_callback(self, callback: Callable[[], None]) -> None:
        """What is to be done when it is released: at once."""
        callback()

    def release(self) -> None:
        """Nothing."""

    close = release


async def _sent(exchange: Exchange, request: Any, handler: Handler) -> Any:
    """Send with what is added to the request; a middleware of the user may send the same one again afterwards."""
    if exchange.body is None and not exchange.headers:
        return await handler(request)
    added = {name: value for name, value in exchange.headers.items() if name not in request.headers}
    request.headers.update(added)
    if exchange.body is not None:
        await request.update_body(exchange.body)
    try:
        return await handler(request)
    finally:
        for name in added:
            request.headers.pop(name, None)
        if exchange.body is not None:
            await request.update_body(exchange.ask.body)


def _ask(request: Any) -> Ask:
    """A request, without its body."""
    url = request.url
    return Ask(
        method=request.method, scheme=url.scheme, host=(url.host or "").lower(),
        port=None if url.is_default_port() else url.port, path=url.raw_path, query=tuple(url.query.items()),
        headers={name.lower(): value for name, value in request.headers.items()},
    )  # fmt: skip


def _at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    finally:
        coroutine.close()
    raise TimeoutError("it waits for something")
