"""What the user says about capture: which further requests count as model calls, and what is asked of known hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from jupyter_durable.capture.providers.base import Api, Ask
from jupyter_durable.capture.providers.finding import api_for as known_api
from jupyter_durable.capture.providers.openai import ALLOWS_USAGE
from jupyter_durable.errors import UsageError

Predicate = Callable[[str, str], object]
"""Takes method and URL (without its query), returns whether the request is a model call."""


class _Given(Api):
    """A request that the user declared to be a model call, of a protocol that is not known here."""

    def __init__(self, name: str, *, pure: bool) -> None:
        self.name = name
        self._pure = pure

    def is_pure(self, ask: Ask) -> bool:
        return self._pure and ask.method == "POST"


class _Rule(msgspec.Struct, frozen=True):
    hosts: tuple[str, ...]
    paths: tuple[re.Pattern[str], ...]
    when: Predicate | None
    pure: bool

    def fits(self, ask: Ask) -> bool:
        if self.hosts and not any(ask.host == host or ask.host.endswith("." + host) for host in self.hosts):
            return False
        if self.paths and not any(path.search(ask.path) for path in self.paths):
            return False
        return self.when is None or bool(self.when(ask.method, f"{ask.scheme}://{ask.host}{ask.path}"))


class Settings:
    """The settings of this process."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._left_alone: list[_Rule] = []
        self.idempotency_header = ""
        """Header in which a step's idempotency key is sent; empty: it is not."""

    def capture(
        self,
        *,
        hosts: Iterable[str] = (),
        paths: Iterable[str] = (),
        when: Predicate | None = None,
        pure: bool = True,
        exclude: bool = False,
        include_usage: bool = False,
        idempotency_header: str | None = None,
    ) -> None:
        """Add a rule; all that is given of it must fit. See ``durable.capture``."""
        given_hosts, given_paths = _texts(hosts, "hosts"), _texts(paths, "paths")
        if idempotency_header is not None:
            self.idempotency_header = idempotency_header
            if not (given_hosts or given_paths or when):
                return
        if not (given_hosts or given_paths or when):
            raise UsageError("`durable.capture` needs `hosts=`, `paths=` or `when=`: which requests are model calls?")
        if when is not None and not callable(when):
            raise UsageError("`when=` of `durable.capture` is a function of method and URL.")
        try:
            patterns = tuple(re.compile(path) for path in given_paths)
        except re.error as error:
            raise UsageError(f"`paths=` of `durable.capture` are regular expressions: {error}.") from None
        if include_usage:
            if not given_hosts:
                raise UsageError("`include_usage=True` of `durable.capture` needs `hosts=`: whose streams tell usage?")
            ALLOWS_USAGE.update(host.lower() for host in given_hosts)
        rule = _Rule(tuple(host.lower() for host in given_hosts), patterns, when, pure)
        (self._left_alone if exclude else self._rules).append(rule)

    def api_for(self, ask: Ask) -> Api | None:
        """What kind of model call a request is; ``None`` if it is none."""
        if self._left_alone and any(rule.fits(ask) for rule in self._left_alone):
            return None
        api = known_api(ask)
        if api is None and self._rules:
            for rule in self._rules:
                if rule.fits(ask):
                    return _Given(f"{ask.method} {ask.host}", pure=rule.pure)
        return api

    def reset(self) -> None:
        """Forget everything that was said."""
        self.__init__()  # type: ignore[misc]


def _texts(given: Iterable[str], name: str) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(text, str) and text for text in texts):
        raise UsageError(f"`{name}=` of `durable.capture` takes texts.")
    return texts


SETTINGS = Settings()
"""The ones in force."""
