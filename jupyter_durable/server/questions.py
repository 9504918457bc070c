"""A question to the log, whoever carries it: the Jupyter server by REST, or a widget by messages to the kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from jupyter_durable.errors import UsageError
from jupyter_durable.server.logs import Logs, LogView
from jupyter_durable.server.place import Place
from jupyter_durable.server.shapes import Shape

Body = TypeVar("Body", bound=Shape)


@dataclass(frozen=True, slots=True)
class Question:
    """One question. It is answered in a thread, so it holds all that the answer needs."""

    parts: Mapping[str, str]
    """Of the path: ``run``, ``branch``, ``number``."""
    parameters: Mapping[str, str]
    """Those that were given."""
    body: bytes
    """JSON; empty where none is sent."""
    find: Callable[[], Place]
    """Finds the log that is asked about."""
    logs: Logs
    person: str
    """Who asks, as decisions are signed."""

    @property
    def place(self) -> Place:
        """The log that is asked about.

        Raises:
            NotHere: the path leads out of what may be seen.
        """
        return self.find()

    @property
    def view(self) -> LogView:
        """The same, open.

        Raises:
            NotHere: there is none yet.
        """
        return self.logs.get(self.place)

    def text(self, name: str, default: str = "") -> str:
        """A parameter."""
        return self.parameters.get(name, default)

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A parameter that is a whole number, brought within its limits.

        Raises:
            UsageError: it is none.
        """
        told = self.text(name, str(default))
        if not re.fullmatch(r"-?[0-9]{1,18}", told, re.ASCII):
            raise UsageError(f"`{name}` must be a whole number.")
        return max(low, min(high, int(told)))

    def read(self, kind: type[Body]) -> Body:
        """The body.

        Raises:
            UsageError: it is not as it should be.
        """
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"The body of the request is not a {kind.__name__}: {error}.") from None
