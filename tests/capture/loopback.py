"""A server on loopback that does what a test tells it to, byte by byte. What models say is in `provider`."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from jupyter_durable.log.local import LocalLog

ASK = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}
CHAT = "/v1/chat/completions"
PATIENCE = 30.0
"""Seconds after which a wait in a test has failed."""


class QuickLog(LocalLog):
    """A log on disk that is not folded after each run: that takes longer than most runs of these tests."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "log")

    def fold(self) -> Any:
        """Not now."""

    def holds(self, secret: str) -> bool:
        """Whether a text stands in any of its files."""
        return any(secret.encode() in path.read_bytes() for path in self.directory.rglob("*") if path.is_file())


class Loopback(ThreadingHTTPServer):
    """Serves what its routes say, and remembers what it was asked.

    Attributes:
        routes: path -> function that answers a request.
        seen: method, path, headers and body of each request, in order.
        gate: what a route may wait for.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.routes: dict[str, Callable[[Handler], None]] = {}
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.gate = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is what tests are about."""

    @property
    def chat(self) -> str:
        """URL of a model call."""
        return self.url + CHAT

    def on_chat(self, answer: Callable[[Handler], None]) -> None:
        """Say how model calls are answered."""
        self.routes[CHAT] = answer


class Handler(BaseHTTPRequestHandler):
    """One request, for a route to answer."""

    server: Loopback
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the base class gives it
        """Silence."""

    def do_POST(self) -> None:
        self.body = self._read()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.command, self.path, headers, self.body))
        self.server.routes[self.path.partition("?")[0]](self)

    def do_GET(self) -> None:
        self.do_POST()

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def begin(self, status: int = 200, **headers: str) -> None:
        """Send the head."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def send(self, body: bytes, status: int = 200, **headers: str) -> None:
        """Send a whole answer."""
        self.begin(status, content_length=str(len(body)), **headers)
        self.wfile.write(body)

    def chunk(self, data: bytes) -> None:
        """Send a chunk."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def end(self) -> None:
        """Send the end of the chunks."""
        self.wfile.write(b"0\r\n\r\n")

    def wait(self) -> None:
        """Wait for the gate."""
        assert self.server.gate.wait(PATIENCE)

    def hang_up(self) -> None:
        """Close the connection as it is."""
        self.wfile.flush()
        self.close_connection = True


def json_answer(handler: Handler) -> None:
    """A whole answer, always the same."""
    handler.send(b'{"n": 1, "text": "one"}', content_type="application/json")


EVENTS = [b'data: {"text": "one"}\n\n', b'data: {"text": "tw\xc3\xb6"}\n\n', b"data: [DONE]\n\n"]


def stream(handler: Handler) -> None:
    """A stream, always the same."""
    handler.begin(content_type="text/event-stream", transfer_encoding="chunked")
    for event in EVENTS:
        handler.chunk(event)
    handler.end()


def gzip_stream(handler: Handler) -> None:
    """The same, compressed."""
    packer = zlib.compressobj(wbits=31)
    handler.begin(content_type="text/event-stream", transfer_encoding="chunked", content_encoding="gzip")
    for event in EVENTS:
        handler.chunk(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH))
    handler.chunk(packer.flush())
    handler.end()


def gated_stream(handler: Handler) -> None:
    """A stream whose second half comes when the client opens the gate."""
    handler.begin(content_type="text/event-stream", transfer_encoding="chunked")
    handler.chunk(EVENTS[0])
    handler.wait()
    for event in EVENTS[1:]:
        handler.chunk(event)
    handler.end()


def cut_stream(handler: Handler) -> None:
    """A stream that breaks off after its first event."""
    handler.begin(content_type="text/event-stream", transfer_encoding="chunked")
    handler.chunk(EVENTS[0])
    handler.hang_up()
