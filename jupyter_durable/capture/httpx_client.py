"""The hook into ``httpx`` and ``httpx2``: a thin transport around the one that a client has chosen for a URL.

``Client._transport_for_url`` is looked up on the class at each request, so clients made in earlier cells, proxies,
mounts, own transports and those that go through aiohttp are all met. Retries, redirects, cookies and authentication
are above it, in the client or the SDK. The method is private; `install` checks that it is as it was known.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

from jupyter_durable.capture.exchange import Exchange, exchange_for
from jupyter_durable.capture.inside import INSIDE, passing
from jupyter_durable.capture.providers.base import Ask
from jupyter_durable.capture.replayed import Replayed
from jupyter_durable.engine.context import current
from jupyter_durable.errors import CannotHook

_UNDONE = {"content-encoding", "content-length", "transfer-encoding"}
"""Headers that are no longer true once the content encoding is undone."""


def install(module: ModuleType) -> None:
    """Hook into the clients of a module.

    Raises:
        CannotHook: they are not as they were known.
    """
    _check(module)
    if getattr(module.Client, "__durable__", False):
        return  # `httpx2.alias_httpx()` makes one module of two names
    transport, async_transport = _transports(module)
    for client, wrapped in ((module.Client, transport), (module.AsyncClient, async_transport)):
        client._transport_for_url = _choosing(client._transport_for_url, wrapped)
        client.__durable__ = True


def _check(module: ModuleType) -> None:
    needed = (
        "Client",
        "AsyncClient",
        "BaseTransport",
        "AsyncBaseTransport",
        "Response",
        "SyncByteStream",
        "AsyncByteStream",
    )
    missing = [name for name in needed if not hasattr(module, name)]
    for name in () if missing else ("Client", "AsyncClient"):
        method = getattr(getattr(module, name), "_transport_for_url", None)
        if method is None or list(inspect.signature(method).parameters) != ["self", "url"]:
            missing.append(f"{name}._transport_for_url(url)")
    if missing:
        version = getattr(module, "__version__", "of unknown version")
        raise CannotHook(
            f"`{module.__name__}` {version} is not as it was known ({', '.join(missing)} is missing), so model calls "
            f"through it are NOT recorded, and a re-run pays for them again. Put them into functions with `@step`, or "
            f"install another version of `{module.__name__}`."
        )


def _choosing(original: Any, wrapped: Any) -> Any:
    def _transport_for_url(self: Any, url: Any) -> Any:
        chosen = original(self, url)
        return chosen if current() is None or INSIDE.get() else wrapped(chosen)

    return _transport_for_url


def _ask(request: Any, body: bytes) -> Ask:
    url = request.url
    return Ask(
        method=request.method.upper(), scheme=url.scheme, host=url.host.lower(), port=url.port,
        path=url.raw_path.partition(b"?")[0].decode("ascii"),
        query=tuple(url.params.multi_items()) if url.query else (), headers=dict(request.headers.items()), body=body,
    )  # fmt: skip


def _transports(module: ModuleType) -> tuple[Any, Any]:
    """The two transports for a module: they are subclasses of its own ones."""
    Response = module.Response  # noqa: N806 - a class

    class SyncBody(module.SyncByteStream):  # type: ignore[name-defined,misc]
        """A live body, recorded as it is read."""

        def __init__(self, source: Iterator[bytes], exchange: Exchange, close: Any) -> None:
            self._source, self._exchange, self._close = source, exchange, close

        def __iter__(self) -> Iterator[bytes]:
            exchange = self._exchange
            try:
                for data in self._source:
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

        def close(self) -> None:
            try:
                self._exchange.left()
            finally:
                self._close()

    class AsyncBody(module.AsyncByteStream):  # type: ignore[name-defined,misc]
        """The same, for asynchronous clients."""

        def __init__(self, source: AsyncIterator[bytes], exchange: Exchange, close: Any) -> None:
            self._source, self._exchange, self._close = source, exchange, close

        async def __aiter__(self) -> AsyncIterator[bytes]:
            exchange = self._exchange
            try:
                async for data in self._source:
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
            await exchange.shown()

        async def aclose(self) -> None:
            try:
                self._exchange.left()
            finally:
                await self._close()

    class RecordedBody(module.SyncByteStream, module.AsyncByteStream):  # type: ignore[name-defined,misc]
        """A body from history."""

        def __init__(self, replayed: Replayed) -> None:
            self._replayed = replayed

        def __iter__(self) -> Iterator[bytes]:
            yield from self._replayed.chunks()
            self._break_off()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for data in self._replayed.chunks():
                yield data
            await self._replayed.cancelled_again()
            self._break_off()

        def _break_off(self) -> None:
            broken = self._replayed.broken_by()
            if broken is not None:
                kind = getattr(module, broken[0], module.ReadError)
                raise kind(broken[1])

    def recorded(replayed: Replayed) -> Any:
        return Response(replayed.status, headers=replayed.headers, stream=RecordedBody(replayed))

    def refused(exchange: Exchange, response: Any, body: bytes) -> Any:
        headers = [pair for pair in response.headers.multi_items() if pair[0] not in _UNDONE]
        exchange.refused(response.status_code, dict(headers), body)
        return Response(response.status_code, headers=headers, content=body, extensions=response.extensions)

    def answered(exchange: Exchange, response: Any, body: Any) -> Any:
        headers = dict(response.headers.items())
        if "content-encoding" not in headers and exchange.body is None and not response.is_stream_consumed:
            response.stream = body
        else:  # its content is there already, or no longer what its headers say
            headers = {name: value for name, value in headers.items() if name not in _UNDONE}
            kept = [pair for pair in response.headers.multi_items() if pair[0] in headers]
            response = Response(response.status_code, headers=kept, stream=body, extensions=response.extensions)
        exchange.answered(response.status_code, headers)
        return response

    def outgoing(exchange: Exchange, request: Any) -> Any:
        """The request that is sent: the program's own, unless something is added to it."""
        if exchange.body is None and not exchange.headers:
            return request
        headers = request.headers.copy()
        headers.update(exchange.headers)
        content = exchange.body if exchange.body is not None else request.content
        headers["content-length"] = str(len(content))
        return module.Request(
            request.method, request.url, headers=headers, content=content, extensions=request.extensions
        )

    class SyncTransport(module.BaseTransport):  # type: ignore[name-defined,misc]
        """Around the transport of a synchronous client."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def handle_request(self, request: Any) -> Any:
            exchange = exchange_for(_ask(request, request.read()), is_async=False)
            if exchange is None:
                with passing(request.url.host):
                    return self._inner.handle_request(request)
            if exchange.is_recorded:
                return recorded(exchange.recorded())
            inside = INSIDE.set(True)
            try:
                exchange.flush()
                response = self._inner.handle_request(outgoing(exchange, request))
                if response.status_code >= 400:
                    body = response.read()
                    response.close()
                    return refused(exchange, response, body)
            except BaseException as error:
                exchange.failed(error)
                raise
            finally:
                INSIDE.reset(inside)
            raw = response.stream
            source = response.iter_bytes() if "content-encoding" in response.headers else raw
            return answered(exchange, response, SyncBody(source, exchange, raw.close))

        def close(self) -> None:
            self._inner.close()

    class AsyncTransport(module.AsyncBaseTransport):  # type: ignore[name-defined,misc]
        """Around the transport of an asynchronous client."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def handle_async_request(self, request: Any) -> Any:
            exchange = exchange_for(_ask(request, await request.aread()), is_async=True)
            if exchange is None:
                with passing(request.url.host):
                    return await self._inner.handle_async_request(request)
            if exchange.is_recorded:
                return recorded(await exchange.recorded_async())
            inside = INSIDE.set(True)
            try:
                await exchange.flush_async()
                response = await self._inner.handle_async_request(outgoing(exchange, request))
                if response.status_code >= 400:
                    body = await response.aread()
                    await response.aclose()
                    return refused(exchange, response, body)
            except BaseException as error:
                exchange.failed(error)
                raise
            finally:
                INSIDE.reset(inside)
            raw = response.stream
            source = response.aiter_bytes() if "content-encoding" in response.headers else raw
            return answered(exchange, response, AsyncBody(source, exchange, raw.aclose))

        async def aclose(self) -> None:
            await self._inner.aclose()

    return SyncTransport, AsyncTransport
