"""Functions that travel to workers: those of a module, and what they need."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from jupyter_durable import step


@dataclass
class Page:
    """A value of a class of its own."""

    number: int
    text: str


class Odd(ValueError):
    """An error of a class of its own."""


def page(n: int) -> Page:
    """Says where it ran."""
    print(f"page {n}")
    return Page(n, "here" if os.environ.get("KERNEL") == str(os.getpid()) else "elsewhere")


def odd(n: int) -> int:
    """Fails for odd numbers."""
    if n % 2:
        raise Odd(f"{n} is odd")
    return n


def unstorable(n: int) -> Any:
    """Returns what cannot be stored."""
    return {"n": n, "lock": threading.Lock()}


def deadly(argument: tuple[str, int]) -> int:
    """Kills its worker once, at the number 2."""
    mark, n = Path(argument[0]), argument[1]
    if n == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return n


@step
def inner(n: int) -> int:
    """A step, called where no log is."""
    return n


def calls_a_step(n: int) -> int:
    """Calls a step from a worker."""
    return inner(n)


def asks_a_model(url: str) -> int:
    """Asks a model from a worker."""
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "hello"}]}
    return httpx.post(f"{url}/v1/chat/completions", json=body, headers={"authorization": "Bearer none"}).status_code
