"""Finds who knows a request: the APIs of the entry-point group ``jupyter_durable.providers``, asked in order.

Every HTTP request of a durable cell comes by here, so the answer for one that is no model call costs a look into a
dictionary: which APIs a method, a host and a path leave possible is remembered, and only those are asked further.

Those of other packages come before our own, so that they can read a dialect better than we do. One that cannot be
loaded, or that raises when asked, is left out and told about once; its calls then run as if nobody knew them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import EntryPoint

from jupyter_durable.capture.providers.base import Api, Ask
from jupyter_durable.engine.plugins import entry_points

GROUP = "jupyter_durable.providers"

_lock = threading.Lock()
_added: tuple[Api, ...] = ()
_found: tuple[Api, ...] | None = None
_broken: set[int] = set()
"""``id`` of the APIs that raised; the APIs live as long as the process."""
_problems: list[str] = []


def api_for(ask: Ask) -> Api | None:
    """The API that a request belongs to; ``None`` for what is no model call.

    >>> chat = Ask(method="POST", scheme="https", host="api.openai.com", port=None, path="/v1/chat/completions")
    >>> api_for(chat).name
    'chat.completions'
    >>> api_for(Ask(method="POST", scheme="https", host="api.openai.com", port=None, path="/v1/traces/ingest"))
    """
    for api in _possible(ask.method, ask.host, ask.path):
        try:
            if api.recognises(ask):
                return api
        except Exception as error:
            _leave_out(api, error)
    return None


def is_possible(method: str, host: str, path: str) -> bool:
    """Whether a request may belong to an API, as far as that can be told without its body."""
    return bool(_possible(method, host, path))


def apis() -> tuple[Api, ...]:
    """All APIs in the order in which they are asked; the first call loads them."""
    global _found
    with _lock:
        if _found is None:
            _found = _load(entry_points(GROUP))
        return _added + _found


def add(*more: Api) -> None:
    """Put APIs in front of all others, for this process: what a package does with an entry point, from a notebook."""
    global _added
    with _lock:
        _added = more + _added
    _forget_answers()


def problems() -> tuple[str, ...]:
    """What could not be used and why, a sentence each, for the user to read."""
    apis()
    return tuple(_problems)


def forget() -> None:
    """Find everything anew at the next question, as in a fresh process; for tests, and after an installation."""
    global _added, _found
    with _lock:
        _added, _found = (), None
        _broken.clear()
        _problems.clear()
    _forget_answers()


# Paths with ids in them never end; 4,096 of them are a few hundred kilobytes.
@lru_cache(maxsize=4096)
def _possible(method: str, host: str, path: str) -> tuple[Api, ...]:
    """The APIs that a request may belong to, whatever its body is."""
    # One without a path of its own decides by `Api.recognises` alone.
    return tuple([api for api in _at(method, host) if api.path is Api.path or api.path.search(path) is not None])


@lru_cache(maxsize=256)
def _at(method: str, host: str) -> tuple[Api, ...]:
    """The APIs that a host may have: most of them live at hosts that this is not."""
    possible = []
    for api in apis():
        try:
            if id(api) not in _broken and (
                api.path is Api.path
                or (method in api.methods and (not api.hosts or host.endswith(api.hosts)) and _is_pattern(api.path))
            ):
                possible.append(api)
        except Exception as error:
            _leave_out(api, error)
    return tuple(possible)


def _is_pattern(path: re.Pattern[str]) -> bool:
    path.search("")
    return True


def _forget_answers() -> None:
    _possible.cache_clear()
    _at.cache_clear()


def _load(found: Iterable[EntryPoint]) -> tuple[Api, ...]:
    # An installation that is listed twice (a checkout above a wheel) names the same entry twice.
    unique = {(entry.name, entry.value): entry for entry in found}
    own = [entry for entry in unique.values() if entry.value.startswith("jupyter_durable.")]
    others = [entry for entry in unique.values() if entry not in own]
    if not own:
        _problems.append(
            f"The installed jupyter_durable lists no providers (entry points `{GROUP}`), so no model call is recorded. "
            "Install it again: `pip install --force-reinstall --no-deps jupyter_durable`."
        )
    return tuple(api for entry in [*others, *own] for api in _apis_of(entry))


def _apis_of(entry: EntryPoint) -> tuple[Api, ...]:
    try:
        loaded = entry.load()
    except Exception as error:
        _problems.append(_sentence(entry, f"loading it raised {type(error).__name__}: {error}"))
        return ()
    given = (loaded,) if isinstance(loaded, Api) else loaded
    if not isinstance(given, tuple | list) or not all(isinstance(api, Api) for api in given):
        _problems.append(_sentence(entry, "it is no tuple of `Api` objects"))
        return ()
    return tuple(given)


def _sentence(entry: EntryPoint, reason: str) -> str:
    owner = f" of the package {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
    return (
        f"The provider `{entry.name}`{owner} (`{entry.value}`) cannot be used: {reason}. "
        "Its model calls run unrecorded until the package is repaired or removed."
    )


def _leave_out(api: Api, error: Exception) -> None:
    kind = f"{type(api).__module__}.{type(api).__qualname__}"
    with _lock:
        if id(api) not in _broken:
            _broken.add(id(api))
            _problems.append(
                f"`{kind}` raised {type(error).__name__} when it was asked about a request, and is asked no more; "
                "its model calls run unrecorded."
            )
    _forget_answers()
