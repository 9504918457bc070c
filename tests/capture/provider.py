"""A fake model provider on loopback: OpenAI's, Anthropic's and Gemini's protocols, with its requests counted.

Every model request has a number, and its answer carries it: a replayed answer is told from a fresh one. What was seen
and what happens next is on the desk (`Provider.desk`). A model named ``...gzip...`` answers compressed.

Other processes do the same over HTTP: ``GET /_seen``, and ``POST /_desk`` with ``{"word": "hold_from", "number": 2}``
(any method of the desk that takes plain arguments). ``python provider.py --port 0`` prints ``ready URL``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

if __package__ in {None, ""}:
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.capture import answers_anthropic, answers_gemini, answers_openai, answers_responses
from tests.capture.desk import Desk, Fault, Kind, Seen
from tests.capture.invented import mark

Body = dict[str, Any]
WORDS = {"begin", "fail_next", "hang_up_next", "cut_next", "hold_from", "hold", "release", "forget"}
STREAM = "text/event-stream; charset=utf-8"

# The last part of a path, whole answer and stream. What is left of it may be any gateway's prefix.
ROUTES: list[tuple[str, Callable[[Body, int], Body], Callable[[Body, int], Iterator[str]] | None]] = [
    (r"/chat/completions$", answers_openai.chat, answers_openai.chat_events),
    (r"/responses$", answers_responses.response, answers_responses.response_events),
    (r"/embeddings$", answers_openai.embeddings, None),
    (r"/moderations$", answers_openai.moderation, None),
    (r"/images/generations$", answers_openai.image, None),
    (r"/messages$", answers_anthropic.message, answers_anthropic.message_events),
    (r"/messages/count_tokens$", answers_anthropic.count_tokens, None),
]
GEMINI = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent|embedContent|batchEmbedContents)$")
TRANSCRIPTION = re.compile(r"/audio/(transcriptions|translations)$")
TELEMETRY = re.compile(r"/traces/ingest$")


def kind_of(path: str) -> Kind | None:
    """What a path is for; ``None`` if there is nothing."""
    if GEMINI.search(path) or TRANSCRIPTION.search(path) or any(re.search(end, path) for end, _, _ in ROUTES):
        return "model"
    if TELEMETRY.search(path):
        return "telemetry"
    return "plain" if path.startswith("/plain") else None


def answer_to(path: str, raw: bytes, number: int) -> tuple[Body, Iterator[str] | None, str]:
    """The answer to a model request: whole, as a stream if one is asked for, and the model that was asked."""
    if TRANSCRIPTION.search(path):
        return answers_openai.transcription(raw, number), None, ""
    body: Body = json.loads(raw)
    found = GEMINI.search(path)
    if found:
        model, word = found.groups()
        if word == "embedContent":
            return answers_gemini.embedded(body, number), None, model
        if word == "batchEmbedContents":
            return answers_gemini.embedded_batch(body, number), None, model
        stream = answers_gemini.generated_events(body, number, model) if word.startswith("stream") else None
        return answers_gemini.generated(body, number, model), stream, model
    whole, events = next((whole, events) for end, whole, events in ROUTES if re.search(end, path))
    stream = events(body, number) if events and body.get("stream") else None
    return whole(body, number), stream, str(body.get("model"))


class Provider(ThreadingHTTPServer):
    """The provider as a context manager; it listens from its making on."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.desk = Desk()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.desk.close()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is what tests are about, not an error; anything else is shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the base class gives it
        """Silence."""

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/_seen":
            self._send(200, self.server.desk.as_json())
        else:
            self.do_POST()

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        raw = self._read()
        if url.path == "/_desk":
            self._desk(json.loads(raw))
            return
        kind = kind_of(url.path)
        if kind is None:
            self._send(404, {"error": {"message": f"There is nothing at {url.path}.", "type": "not_found"}})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = self.server.desk.receive(kind, self.command, url.path, url.query, headers, raw)
        fault = self.server.desk.fault_for(seen)
        self.server.desk.wait_while_held(seen)
        try:
            self._serve(seen, fault)
        except OSError:
            self.server.desk.end(seen, "cut")
            self.close_connection = True

    def _serve(self, seen: Seen, fault: Fault | None) -> None:
        desk = self.server.desk
        if fault and fault.after is None:
            # Noted before it goes out: a client that has the answer must find it on the desk.
            desk.end(seen, "refused" if fault.status else "cut")
            if fault.status:
                refusal = {
                    "type": "error",
                    "error": {"message": "Refused by the test.", "type": "refused", "code": None},
                }
                # Said, not only done: else a client may send its next request into a connection that is going away.
                self._send(fault.status, refusal, headers=(*fault.headers, ("Connection", "close")))
            self.close_connection = True
            return
        if seen.kind != "model":
            desk.end(seen, "answered")
            self._send(200, {"plain": seen.number})
            return
        whole, stream, model = answer_to(seen.path, seen.body, seen.number)
        gzip = "gzip" in model and "gzip" in seen.headers.get("accept-encoding", "")
        extra = (("x-request-id", f"req_{mark(seen.number)}"), ("request-id", f"req_{mark(seen.number)}"))
        if stream is None:
            desk.end(seen, "answered")
            self._send(200, whole, headers=extra, gzip=gzip)
        else:
            self._stream(seen, stream, extra, gzip=gzip, after=fault.after if fault else None)

    def _desk(self, order: Body) -> None:
        word = order.pop("word")
        if word not in WORDS:
            self._send(404, {"error": f"The desk does not know {word}."})
            return
        getattr(self.server.desk, word)(*order.pop("numbers", ()), **order)
        self._send(200, {"done": word})

    # -- bytes ---------------------------------------------------------------------------------------------------

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _head(self, status: int, content_type: str, headers: tuple[tuple[str, str], ...], *, gzip: bool) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", content_type), ("Set-Cookie", "visitor=secret-cookie"), *headers):
            self.send_header(name, value)
        if gzip:
            self.send_header("Content-Encoding", "gzip")

    def _send(self, status: int, answer: Any, *, headers: tuple[tuple[str, str], ...] = (), gzip: bool = False) -> None:
        content = json.dumps(answer).encode()
        if gzip:
            packer = zlib.compressobj(wbits=31)
            content = packer.compress(content) + packer.flush()
        self._head(status, "application/json", headers, gzip=gzip)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def _stream(
        self, seen: Seen, events: Iterator[str], headers: tuple[tuple[str, str], ...], *, gzip: bool, after: int | None
    ) -> None:
        packer = zlib.compressobj(wbits=31) if gzip else None
        self._head(200, STREAM, headers, gzip=gzip)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at, event in enumerate(events):
            if at == after:
                self.wfile.flush()
                raise ConnectionAbortedError
            content = event.encode()
            self._chunk(packer.compress(content) + packer.flush(zlib.Z_SYNC_FLUSH) if packer else content)
        if packer:
            self._chunk(packer.flush())
        self.server.desk.end(seen, "answered")
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))
        self.wfile.flush()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--port", type=int, default=0)
    with Provider(parser.parse_args().port) as provider, contextlib.suppress(KeyboardInterrupt):
        print("ready", provider.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
