"""Bodies of answers as ``aiohttp`` hands them out: a stream reader that fetches, live or from history.

aiohttp's parser pushes into its reader. Ours is another one, which fetches a piece when the program wants more than it
has: from aiohttp's, which is recorded on the way, or from history. The pieces are the same both times (each counts as a
chunk of HTTP), so a program that acts on every piece takes the same way on replay.
"""

from __future__ import annotations

import asyncio
import builtins
import sys
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any, Protocol

from jupyter_durable.capture.answers import CANCELLED
from jupyter_durable.capture.exchange import Exchange
from jupyter_durable.capture.replayed import Replayed

_MOST = 1024 * 1024
"""Bytes above which a chunk of HTTP is handed out in parts."""


class Source(Protocol):
    """Where the pieces come from."""

    async def piece(self) -> bytes:
        """The next one; empty at the end."""

    def ready(self) -> bytes:
        """The next one if it is there; empty if it is not."""

    def left(self, error: BaseException) -> None:
        """The program reads no further."""


class NoFlow:
    """Stands for a protocol that a reader tells to pause and to go on: ours holds one piece, nothing is to be paused.

    Attributes:
        connected: as a reader asks before it waits.
    """

    connected = True
    upgraded = False

    def pause_reading(self, *_: Any, **__: Any) -> None:
        """Nothing."""

    def resume_reading(self, *_: Any, **__: Any) -> None:
        """Nothing."""


def reader_class(streams: ModuleType) -> Any:
    """The reader that fetches: aiohttp's own, but for how it waits.

    Args:
        streams: ``aiohttp.streams``.
    """

    class StreamReader(streams.StreamReader):  # type: ignore[name-defined,misc]
        __slots__ = ("_durable_busy", "_durable_source")

        def __init__(self, source: Source, limit: int, loop: Any) -> None:
            super().__init__(NoFlow(), limit, loop=loop)
            self._durable_source = source
            self._durable_busy = False
            self.begin_http_chunk_receiving()

        async def _wait(self, func_name: str) -> None:
            if self._durable_busy:
                raise RuntimeError(f"{func_name}() called while another coroutine is already waiting for incoming data")
            self._durable_busy = True
            try:
                data = await self._durable_source.piece()
            finally:
                self._durable_busy = False
            if data:
                self._durable_feed(data)
            else:
                self.feed_eof()

        def _durable_feed(self, data: bytes) -> None:
            self.feed_data(data)
            self.end_http_chunk_receiving()

        def read_nowait(self, n: int = -1) -> bytes:
            while data := self._durable_source.ready():
                self._durable_feed(data)
            data = super().read_nowait(n)
            return bytes(data)

        async def wait_eof(self) -> None:
            """All is there, as far as the program can tell."""

        def set_exception(self, exc: BaseException, *cause: Any) -> None:
            super().set_exception(exc, *cause)
            self._durable_source.left(exc)

    return StreamReader


def methods_that_read(streams: ModuleType) -> set[CodeType]:
    """The code of a reader's own coroutines: a task that runs one of them is made for a single read."""
    names = ("read", "readany", "readchunk", "readexactly", "readline", "readuntil")
    iterators = (streams.AsyncStreamIterator.__anext__, streams.ChunkTupleAsyncStreamIterator.__anext__)
    return {fn.__code__ for fn in (*(getattr(streams.StreamReader, name) for name in names), *iterators)}


class Live:
    """A body that arrives, recorded as it is read.

    Args:
        exchange: the call.
        inner: aiohttp's reader.
        is_chunked: whether the provider sends chunks, whose ends it tells.
        reading: what `methods_that_read` gives.
    """

    def __init__(self, exchange: Exchange, inner: Any, reading: set[CodeType], *, is_chunked: bool) -> None:
        self._exchange = exchange
        self._inner = inner
        self._is_chunked = is_chunked
        self._reading = reading
        self._parts: list[bytes] = []
        self._over = False
        self._cancelled = False
        self._watched: asyncio.Task[Any] | None = None

    async def piece(self) -> bytes:
        """See `Source`."""
        try:
            while not self._over:
                data = await self._chunk()
                self._cancelled = False
                self._over = not data
                if shown := self._exchange.chunk(data) if data else self._exchange.rest():
                    return shown
        except asyncio.CancelledError as error:
            self._cut(error)
            raise
        except BaseException as error:
            self._exchange.failed(error)
            raise
        self._exchange.finished()
        await self._exchange.shown()
        return b""

    async def _chunk(self) -> bytes:
        """A chunk as the provider sent it: in how many packets it comes is chance, and replay knows only one way."""
        while True:
            data, ends = await self._inner.readchunk()
            self._parts.append(data)
            at_end = not data and (not ends or self._inner.at_eof())
            whole = at_end or ends or not self._is_chunked or sum(map(len, self._parts)) > _MOST
            if whole and (at_end or any(self._parts)):
                parts, self._parts = self._parts, []
                return b"".join(parts)

    def ready(self) -> bytes:
        """See `Source`."""
        data = b"" if self._over else self._inner.read_nowait()
        return self._exchange.chunk(data) if data else b""

    def left(self, error: BaseException) -> None:
        """See `Source`; a task that is being cancelled closes what it reads, too."""
        if self._inner.exception() is None:
            self._inner.set_exception(error)
        active = sys.exception()
        if self._cancelled and isinstance(active, asyncio.CancelledError):
            self._exchange.failed(active)
        self._exchange.left()

    def _cut(self, error: asyncio.CancelledError) -> None:
        """A read was cancelled: that ends the call if it ends the task, but not if the program reads on later."""
        self._cancelled = True
        task = asyncio.current_task()
        coroutine: Any = task.get_coro() if task is not None else None
        if task is None or task is self._watched or getattr(coroutine, "cr_code", None) in self._reading:
            return
        self._watched = task

        def ended(task: asyncio.Task[Any]) -> None:
            if task.cancelled() and self._cancelled:
                self._exchange.failed(error)

        task.add_done_callback(ended)


class Kept:
    """A body that is there: of history, or of an answer that was read before.

    Args:
        pieces: the body, and whatever error ended it.
        replayed: the answer, if it is one of history.
    """

    def __init__(self, pieces: Iterator[bytes], replayed: Replayed | None = None) -> None:
        self._pieces = pieces
        self._replayed = replayed

    async def piece(self) -> bytes:
        """See `Source`."""
        data = next(self._pieces, b"")
        if not data and self._replayed is not None:
            await self._replayed.cancelled_again()
        return data

    def ready(self) -> bytes:
        """See `Source`; nothing arrives by itself."""
        return b""

    def left(self, error: BaseException) -> None:
        """See `Source`."""


def again(replayed: Replayed, client: ModuleType) -> Iterator[bytes]:
    """A body from history, with the error that ended it.

    Args:
        replayed: the answer.
        client: a module that has aiohttp's errors.
    """
    yield from replayed.chunks()
    broken = replayed.broken_by()
    if broken is not None and broken[0] != CANCELLED:
        kind: Any = getattr(client, broken[0], None) or getattr(builtins, broken[0], None)
        if not isinstance(kind, type) or not issubclass(kind, OSError | client.ClientError):
            kind = client.ClientPayloadError
        # Past its constructor: what it wants is in the message already.
        raise kind.__new__(kind, broken[1])
