"""An `Api` that cannot break the call it is asked about: what it cannot read is unknown.

A provider's answer may be of a shape that nobody has seen, and a plugin may have a fault. The request was sent and paid
for all the same; it must reach the program, and be recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.event_data import Usage

T = TypeVar("T")


class Guarded(Api):
    """See the module.

    Attributes:
        problems: a sentence for each question that the API could not answer.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self.name = api.name
        self.problems: list[str] = []

    def _try(self, what: str, ask: Callable[[], T], default: T) -> T:
        try:
            return ask()
        except Exception as error:
            self.problems.append(
                f"{what} of a call of `{self.name}` could not be told ({type(error).__name__} in "
                f"{type(self._api).__module__}); it counts as unknown"
            )
            return default

    def provider_of(self, ask: Ask) -> str:
        """See `Api`."""
        return self._try("the provider", lambda: self._api.provider_of(ask), "")

    def model(self, ask: Ask) -> str:
        """See `Api`."""
        return self._try("the model", lambda: self._api.model(ask), "")

    def streams(self, ask: Ask) -> bool:
        """See `Api`."""
        return self._try("whether the answer is a stream", lambda: self._api.streams(ask), True)

    def most_output(self, ask: Ask) -> int | None:
        """See `Api`."""
        return self._try("the limit of the answer", lambda: self._api.most_output(ask), None)

    def is_billed(self, ask: Ask) -> bool:
        """See `Api`."""
        return self._try("whether it costs", lambda: self._api.is_billed(ask), True)

    def is_pure(self, ask: Ask) -> bool:
        """See `Api`."""
        return self._try("what the answer depends on", lambda: self._api.is_pure(ask), False)

    def with_usage(self, ask: Ask) -> bytes | None:
        """See `Api`."""
        return self._try("how to ask for the use", lambda: self._api.with_usage(ask), None)

    def is_usage_only(self, event: Any) -> bool:
        """See `Api`."""
        return self._try("an event", lambda: self._api.is_usage_only(event), False)

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """See `Api`."""
        unknown = Usage(provider=self.provider_of(ask), model=self.model(ask))
        return self._try("the use", lambda: self._api.usage(ask, answer), unknown)

    def is_over(self, tail: bytes) -> bool:
        """See `Api`."""
        return self._try("the end of a stream", lambda: self._api.is_over(tail), False)
