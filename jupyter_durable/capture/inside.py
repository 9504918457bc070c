"""Which requests a hook looks into: not those of a request that another hook has in hand already.

Clients send through one another's libraries (litellm: httpx over aiohttp), and one call must be one step.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jupyter_durable.capture.providers.base import Ask
from jupyter_durable.capture.providers.finding import is_possible
from jupyter_durable.capture.settings import SETTINGS

INSIDE: ContextVar[bool] = ContextVar("jupyter_durable_inside_call", default=False)
"""Inside a request that a hook has looked at: whatever it is sent through leaves it alone."""

_passing: Counter[str] = Counter()
"""Hosts of requests that were looked at and are no model calls. Names are looked up in a pool, which has no context."""
_lock = threading.Lock()


@contextmanager
def passing(host: str) -> Iterator[None]:
    """While a request goes on its way that was looked at and is no model call."""
    token = INSIDE.set(True)
    with _lock:
        _passing[host] += 1
    try:
        yield
    finally:
        with _lock:
            _passing[host] -= 1
            if not _passing[host]:
                del _passing[host]
        INSIDE.reset(token)


def is_passing(host: str) -> bool:
    """Whether a request to this host is on its way that is known to be no model call."""
    return host in _passing


def may_be_call(ask: Ask) -> bool:
    """Whether a request may be a model call, before its body is known: an upload of gigabytes is not to be read for
    nothing.
    """
    return is_possible(ask.method, ask.host, ask.path) or SETTINGS.api_for(ask) is not None
