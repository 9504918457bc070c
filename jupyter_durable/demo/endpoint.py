"""A model endpoint on loopback that speaks the protocols of OpenAI and Anthropic, without a model, and counts its bill.

It serves the demo and the tests: the official SDKs talk to it unchanged. In a process of its own::

    python -m jupyter_durable.demo.endpoint --port 0 --hold 3      prints: ready http://127.0.0.1:PORT/v1

or inside the program, as ``with Endpoint() as endpoint: endpoint.url``. What it answers::

    POST /v1/chat/completions          plain, or with `stream: true` as server-sent events (`include_usage` too)
    POST /v1/messages                  Anthropic's, plain or as server-sent events
    POST /v1/responses                 plain, without tools
    GET  /v1/models                    one model
    GET  /_bill                        requests and tokens billed, as JSON; bill.py has the rules
    GET  /_wait?in_flight=3            blocks until request 3 is in flight (`&timeout=60`, in seconds)
    POST /_hold     {"requests": [3]}  request 3 will stay open until it is released or its client is gone
    POST /_release  {"requests": [3]}  without a list: all of them

If a request offers tools, the answer calls each of them once, over one or several turns, and quotes their results in
the end; conversation.py has the rules. Any key is accepted. Sampling options and limits are ignored: it is a meter, not
a model.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from jupyter_durable import clock
from jupyter_durable.demo import chat, messages, protocol, responses
from jupyter_durable.demo.bill import Bill, Request
from jupyter_durable.demo.protocol import MODEL, BadRequest

_TURN = 0.02  # seconds between two looks at the client of a request that waits


class Endpoint:
    """The endpoint, serving from a thread of this process.

    Attributes:
        bill: what was asked for and billed so far; it also holds requests open.
        url: the base URL that clients take, ending in ``/v1``.
    """

    def __init__(self, *, port: int = 0, delay: float = 0.0) -> None:
        """Bind, without serving yet.

        Args:
            port: where to listen on 127.0.0.1; 0 for any free port.
            delay: seconds that every answer takes.

        Raises:
            OSError: the port is taken.
        """
        self.bill = Bill()
        self._server = _Server(("127.0.0.1", port), self.bill, delay)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop: requests that wait are cut, connections are closed, threads are joined. Idempotent."""
        self.bill.close()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._server.hang_up()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    """One thread for each connection; knows its connections, so that it can close them."""

    daemon_threads = True
    # Clients connect many at once in the tests; the default of 5 makes some of them wait a second.
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], bill: Bill, delay: float) -> None:
        super().__init__(address, _Handler)
        self.bill = bill
        self.delay = delay
        self.connections: dict[threading.Thread, socket.socket] = {}

    def hang_up(self) -> None:
        """Close every connection and wait for its thread."""
        for thread, connection in list(self.connections.items()):
            with contextlib.suppress(OSError):  # its client was faster
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=5)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away; they are counted as cut."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection, with as many requests as its client sends over it."""

    protocol_version = "HTTP/1.1"
    # Head and body are two writes: without this, the second waits for the client's delayed acknowledgement (40 ms).
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.connections[threading.current_thread()] = self.connection

    def finish(self) -> None:
        self.server.connections.pop(threading.current_thread(), None)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is the base class's)
        """Write no access log: the bill is the log."""

    # -- routes --------------------------------------------------------------------------------------------------

    def do_GET(self) -> None:
        """Answer the reads."""
        url = urlsplit(self.path)
        model = protocol.model()
        if url.path == "/v1/models":
            self._send(200, {"object": "list", "data": [model]})
        elif url.path == f"/v1/models/{MODEL}":
            self._send(200, model)
        elif url.path == "/_bill":
            self._send(200, self.server.bill.summary())
        elif url.path == "/_wait":
            self._wait(parse_qs(url.query))
        else:
            self._refuse(404, f"There is nothing at GET {url.path}.")

    def do_POST(self) -> None:
        """Answer the calls of the model, and the words that hold and release requests."""
        path = urlsplit(self.path).path
        try:
            body = self._body()
            if path == "/v1/chat/completions":
                self._chat(body)
            elif path == "/v1/messages":
                self._messages(body)
            elif path == "/v1/responses":
                self._response(body)
            elif path in {"/_hold", "/_release"}:
                numbers = [int(number) for number in body.get("requests", [])]
                word = self.server.bill.hold if path == "/_hold" else self.server.bill.release
                word(*numbers)
                self._send(200, {"requests": numbers})
            else:
                self._refuse(404, f"There is nothing at POST {path}.")
        except BadRequest as error:
            self._refuse(400, str(error))

    def _wait(self, query: dict[str, list[str]]) -> None:
        try:
            number, timeout = int(query["in_flight"][0]), float(query.get("timeout", ["60"])[0])
        except (KeyError, ValueError):
            self._refuse(400, "Ask as /_wait?in_flight=3&timeout=60.")
            return
        state = self.server.bill.wait_in_flight(number, timeout)
        if state == "in_flight":
            self._send(200, {"in_flight": number})
        elif state is None:
            self._refuse(504, f"Request {number} did not come within {timeout:g} s.")
        else:
            self._refuse(409, f"Request {number} has already ended ({state}).")

    # -- the model -----------------------------------------------------------------------------------------------

    def _chat(self, body: dict[str, Any]) -> None:
        request = self.server.bill.receive("/v1/chat/completions", chat.conversation(body))
        if not self._answerable(request):
            return
        model = body.get("model") or MODEL
        if body.get("stream"):
            usage_wanted = bool((body.get("stream_options") or {}).get("include_usage"))
            self._stream(request, _events(chat.chunks(request, model, usage_wanted=usage_wanted)), b"data: [DONE]\n\n")
            return
        self._answer(request, chat.answer(request, model))

    def _messages(self, body: dict[str, Any]) -> None:
        request = self.server.bill.receive("/v1/messages", messages.conversation(body))
        if not self._answerable(request):
            return
        model = body.get("model") or MODEL
        if body.get("stream"):
            *events, last = _events(messages.events(request, model), named=True)
            self._stream(request, events, last)
            return
        self._answer(request, messages.answer(request, model))

    def _response(self, body: dict[str, Any]) -> None:
        request = self.server.bill.receive("/v1/responses", responses.conversation(body))
        if self._answerable(request):
            self._answer(request, responses.answer(request, body))

    def _answerable(self, request: Request) -> bool:
        """Let a request take its time, and watch its client meanwhile.

        Returns:
            Whether there is still somebody to answer; if not, the request is marked as cut.
        """
        bill = self.server.bill
        end = clock.monotonic() + self.server.delay
        held = bill.pause(request, 0)
        while True:
            if bill.closed or self._client_gone():
                bill.finish(request, "cut")
                self.close_connection = True
                return False
            left = end - clock.monotonic()
            if not held and left <= 0:
                return True
            held = bill.pause(request, _TURN if held else min(left, _TURN))

    def _client_gone(self) -> bool:
        """Whether the client has closed its connection; a dead process's system does that for it."""
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            # Readable without a byte is the end; a byte would be the next request, sent early.
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    # -- bytes ---------------------------------------------------------------------------------------------------

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            self.close_connection = True  # where this request ends is not known, so nothing can follow it
            raise BadRequest("A body with a Content-Length is needed.")
        content = self.rfile.read(int(length))
        try:
            body = json.loads(content or b"{}")
        except ValueError:
            raise BadRequest("The body is not JSON.") from None
        if not isinstance(body, dict):
            raise BadRequest("The body is not a JSON object.")
        return body

    def _answer(self, request: Request, answer: dict[str, Any]) -> None:
        # Said before the answer goes out: a caller that has it must not find the request in flight on the bill.
        self.server.bill.finish(request, "completed")
        try:
            self._send(200, answer)
        except OSError:
            self.server.bill.finish(request, "cut")
            raise

    def _stream(self, request: Request, events: Iterable[bytes], last: bytes) -> None:
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Cache-Control", "no-cache")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in events:
                if self._client_gone():
                    raise ConnectionAbortedError
                self._chunk(event)
            self.server.bill.finish(request, "completed")
            self._chunk(last)
            self._chunk(b"")
        except OSError:
            self.server.bill.finish(request, "cut")
            self.close_connection = True

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, status: int, message: str) -> None:
        self._send(status, protocol.error(message))


def _events(chunks: Iterable[dict[str, Any]], *, named: bool = False) -> Iterator[bytes]:
    """Objects as server-sent events, whose name stands in the object if they have one."""
    for chunk in chunks:
        name = f"event: {chunk['type']}\n" if named else ""
        yield f"{name}data: {json.dumps(chunk)}\n\n".encode()


def main(words: list[str] | None = None) -> int:
    """Serve until interrupted; print ``ready URL`` once there is somebody to answer."""
    parser = argparse.ArgumentParser(prog="python -m jupyter_durable.demo.endpoint", description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any free one)")
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS", help="how long every answer takes")
    parser.add_argument("--hold", type=int, action="append", default=[], metavar="N", help="hold request N open")
    arguments = parser.parse_args(words)
    endpoint = Endpoint(port=arguments.port, delay=arguments.delay)
    endpoint.bill.hold(*arguments.hold)
    with endpoint, contextlib.suppress(KeyboardInterrupt):
        print("ready", endpoint.url, flush=True)
        threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
