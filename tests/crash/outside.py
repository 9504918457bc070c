"""What lies outside of a program and outlives its death: a file of effects, a file of what was seen, an endpoint.

Each execution of a step's body gets a *ticket*, ``TAG~NONCE``, which no other execution has: a value that comes back
with another ticket was made by executing the body again. The directory of a world is in the environment, so that step
functions that use it depend on no global variable of a test.
"""

from __future__ import annotations

import http.client
import json
import os
import stat
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jupyter_durable import durable
from jupyter_durable.log import files

WORLD = "CRASH_WORLD"
"""Environment variable: the directory of the world."""
ENDPOINT = "CRASH_ENDPOINT"
"""Environment variable: base URL of the counting endpoint."""


def world() -> Path:
    """The directory of the world."""
    return Path(os.environ[WORLD])


def hit(tag: str) -> str:
    """An effect of the step whose body is running; returns its ticket. It survives the death of the machine."""
    ticket = f"{tag}~{os.urandom(4).hex()}"
    _tell("effects", f"{durable.idempotency_key()} {ticket}")
    return ticket


def times(tag: str) -> int:
    """How many effects of a tag there are."""
    return sum(line.split(" ", 1)[1].rpartition("~")[0] == tag for line in lines("effects"))


def saw(ticket: str) -> str:
    """The program has a value in its hands, and shows it."""
    _tell("seen", ticket)
    return ticket


def saw_value(tag: str, value: object) -> None:
    """`saw` for a value without a ticket of its own."""
    saw(f"{tag}~{zlib.crc32(repr(value).encode()):08x}")


def slowly(seconds: float = 0.01) -> None:
    """Let time go by, as far as engine and event loop can tell; nobody waits for that.

    A step counts as shown after 5 ms.
    """
    getattr(files.hooks, "advance", lambda _: None)(seconds)


def ask(tag: str, prompt: str) -> str:
    """Ask the model; the request is billed by the counting endpoint, and its answer has the number of the request."""
    hit(tag)
    url = urlsplit(os.environ[ENDPOINT])
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    try:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": prompt}]})
        connection.request("POST", f"{url.path}/chat/completions", body, {"Content-Type": "application/json"})
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return str(answer["choices"][0]["message"]["content"])


def wait_at_the_gate() -> None:
    """Block for ever, if the world has a gate: whoever made it kills this process, or opens it."""
    gate = world() / "gate"
    if gate.exists():
        gate.read_bytes()


def lines(name: str) -> list[str]:
    """Lines of one of the world's files."""
    path = world() / name
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _tell(name: str, text: str) -> None:
    fd = os.open(world() / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, f"{text}\n".encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    getattr(files.hooks, "mark", lambda *_: None)(name, text)
    _message(f"{name} {text}\n")


def _message(text: str) -> None:
    """To whoever listens at the world's pipe."""
    pipe = world() / "messages"
    try:
        if stat.S_ISFIFO(pipe.stat().st_mode):
            fd = os.open(pipe, os.O_WRONLY)
            try:
                os.write(fd, text.encode())
            finally:
                os.close(fd)
    except FileNotFoundError:
        return
