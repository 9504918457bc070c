"""Whether a request is one that an SDK makes again by itself, after an answer that refused it.

Such a request is a further attempt of the same step; a request that the user's own loop makes is a step of its own, or
a replay would take another way through that loop. The SDKs made with Stainless (openai, anthropic) number their
retries in a header. For the others the stack tells: the retry is made by a function that was running at the first
request too, and that function belongs to a library, not to the user.
"""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from types import FrameType

from jupyter_durable.capture.providers.base import Ask

_COUNT = "x-stainless-retry-count"
_LOOPS = ("/asyncio/", "/concurrent/", "/threading.py", "/IPython/", "/ipykernel/", "/anyio/_backends/")
"""Libraries that run whatever they are given: that one of them was running at both requests says nothing."""


def stack() -> list[FrameType]:
    """The functions that are running, innermost first."""
    found = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def is_retry(ask: Ask, before: list[FrameType]) -> bool:
    """Whether a request is a library's retry of one that was refused.

    Args:
        ask: the request.
        before: the functions that were running when the refused one was made.
    """
    if ask.headers.get(_COUNT, "0") != "0":
        return True
    known = set(map(id, before))
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if id(frame) in known:
            return _is_library(frame.f_code.co_filename)
        frame = frame.f_back
    return False


@cache
def _is_library(file: str) -> bool:
    file = file.replace("\\", "/")
    if any(part in file for part in _LOOPS):
        return False
    if "/site-packages/" in file or "/dist-packages/" in file:
        return True
    return any(file.startswith(sysconfig.get_path(name).replace("\\", "/")) for name in ("stdlib", "platstdlib"))
