"""Single events read again, whole, for the details of a step; and the requests of model calls put together again.

Nothing is built: a payload is used only if it is plain JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_durable.errors import LogError
from jupyter_durable.event_data import RequestInfo
from jupyter_durable.events import AnyEvent, Recorded, StepStarted
from jupyter_durable.log import folded
from jupyter_durable.log.local import LocalLog
from jupyter_durable.log.reader import read_line
from jupyter_durable.server.index import BranchIndex
from jupyter_durable.server.inert import NotShown, text_of, tree_of

_LONGEST_CHAIN = 2000
"""Requests that one may build on, each on the one before."""


class Events:
    """Reads events of a branch, and of the executions that it took results from."""

    def __init__(self, index: BranchIndex, database: Callable[[str, int], Recorded]) -> None:
        self.log: LocalLog = index.log
        self._segments = {segment.execution: segment for segment in index.segments}
        self._database = database

    def get(self, execution: str, seq: int) -> AnyEvent:
        """One event.

        Raises:
            NotShown: it is not there (any more), or may not be read.
        """
        try:
            return self._get(execution, seq)
        except (LogError, OSError, ValueError) as error:
            raise NotShown(f"The log does not have it: {error}") from error

    def _get(self, execution: str, seq: int) -> AnyEvent:
        segment = self._segments.get(execution)
        if segment is None:
            return self.log.reload(execution, seq).event
        place = seq - segment.places.first
        if segment.entry.stub is None and 0 <= place < len(segment.places.offsets):
            places = segment.places
            try:
                return read_line(
                    segment.entry.path, places.offsets[place], places.lengths[place], places.before[place]
                ).event
            except FileNotFoundError:
                pass  # it has been folded away since
        return self._database(execution, seq).event

    def body(self, info: RequestInfo, execution: str) -> Any:
        """The JSON of a recorded request; ``None`` if it had none. See `capture.conversation`.

        Raises:
            NotShown: the log no longer has a request that it builds on, or they do not fit together.
        """
        if info.body is None:
            return None
        chain = [info]
        before: int | None = None
        while (base := chain[-1].base) is not None:
            if len(chain) > _LONGEST_CHAIN or (before is not None and base >= before):
                raise NotShown("The requests that it builds on do not fit together.")
            before = base
            event = self.get(execution, base)
            if not isinstance(event, StepStarted) or event.data is None:
                raise NotShown("The log does not have a request that it builds on.")
            chain.append(event.data)
        body: Any = {}
        for one in reversed(chain):
            read = self._json(one)
            if one.base is not None:
                try:
                    kept = {name: body[name] for name in one.same}
                    read = {**kept, **{n: _joined(body, n, v, one.shared) for n, v in read.items()}}
                except (KeyError, TypeError, AttributeError):
                    raise NotShown("The requests that it builds on do not fit together.") from None
            body = read
        return body

    def _json(self, info: RequestInfo) -> Any:
        if info.body is None or info.body.codec != "json":
            raise NotShown("A request that it builds on is no JSON.")
        return tree_of(text_of(self.log, info.body))


def _joined(body: Any, name: str, value: Any, shared: dict[str, int]) -> Any:
    return [*body[name][: shared[name]], *value] if name in shared else value


@contextmanager
def events_of(index: BranchIndex) -> Iterator[Events]:
    """Reads events; a connection to the database, if one is needed, is closed at the end."""
    with folded.one_by_one(index.log.directory) as database:
        yield Events(index, database)
