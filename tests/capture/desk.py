"""What the fake provider has seen, and what it was told to do with the requests that come next."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["open", "answered", "refused", "cut"]
Kind = Literal["model", "telemetry", "plain"]

PATIENCE = 60.0
"""Seconds after which a wait in a test has failed; nothing takes that long."""


@dataclass
class Seen:
    """One request, as it arrived."""

    number: int
    """Counts the requests of its kind from 1."""
    kind: Kind
    method: str
    path: str
    query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes = field(repr=False)
    chapter: str
    """What the client said it was doing, by `Desk.begin`."""
    state: State = "open"


@dataclass(frozen=True)
class Fault:
    """What happens to a request instead of a whole answer."""

    status: int = 0
    """HTTP status of a refusal; 0 hangs up without an answer, or in the middle of one if ``after`` is given."""
    headers: tuple[tuple[str, str], ...] = ()
    after: int | None = None
    """How many events of a stream are sent before the connection is cut."""


def _nothing(_: Seen) -> bool:
    return False


def _models(seen: list[Seen], chapter: str | None) -> list[Seen]:
    return [one for one in seen if one.kind == "model" and chapter in {None, one.chapter}]


class Desk:
    """Counters and controls of a provider. Safe to use from several threads."""

    def __init__(self) -> None:
        self._seen: list[Seen] = []
        self._faults: list[Fault] = []
        self._held: Callable[[Seen], bool] = _nothing
        self._chapter = ""
        self._closed = False
        self._changed = threading.Condition()

    # -- what the provider does ----------------------------------------------------------------------------------

    def receive(self, kind: Kind, method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> Seen:
        """Note a request that has arrived whole."""
        with self._changed:
            number = 1 + sum(one.kind == kind for one in self._seen)
            seen = Seen(number, kind, method, path, query, headers, body, self._chapter)
            self._seen.append(seen)
            self._changed.notify_all()
        return seen

    def fault_for(self, seen: Seen) -> Fault | None:
        """The fault that a model request is to meet, if any are left."""
        with self._changed:
            return self._faults.pop(0) if self._faults and seen.kind == "model" else None

    def wait_while_held(self, seen: Seen) -> None:
        """Block until a model request may be answered."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or seen.kind != "model" or not self._held(seen), PATIENCE)

    def end(self, seen: Seen, state: State) -> None:
        """Say how a request ended."""
        with self._changed:
            seen.state = state
            self._changed.notify_all()

    def close(self) -> None:
        """Wake everybody who waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # -- what a test does ----------------------------------------------------------------------------------------

    def begin(self, chapter: str) -> None:
        """Say what the next requests belong to; faults that the chapter before did not meet are gone."""
        with self._changed:
            self._chapter = chapter
            self._faults.clear()

    def fail_next(self, count: int = 1, status: int = 500, **headers: str) -> None:
        """Refuse the next model requests: ``fail_next(2, 429, retry_after="0")``."""
        listed = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        self._add(count, Fault(status=status, headers=listed))

    def hang_up_next(self, count: int = 1) -> None:
        """Close the connection of the next model requests without an answer."""
        self._add(count, Fault())

    def cut_next(self, after: int, count: int = 1) -> None:
        """Cut the streams of the next model requests after some events."""
        self._add(count, Fault(after=after))

    def _add(self, count: int, fault: Fault) -> None:
        with self._changed:
            self._faults.extend([fault] * count)

    def hold_from(self, number: int, chapter: str | None = None) -> None:
        """Leave model requests unanswered from this number on, until `release`; of a chapter, its own count."""
        with self._changed:
            self._held = lambda seen: self._place_of(seen, chapter) >= number

    def hold(self, *numbers: int) -> None:
        """Leave these model requests unanswered, until `release`."""
        with self._changed:
            self._held = lambda seen: seen.number in numbers

    def release(self) -> None:
        """Answer all that is held, and hold nothing any more."""
        with self._changed:
            self._held = _nothing
            self._changed.notify_all()

    def look_again(self) -> None:
        """Have whoever waits look again: what he waits for depends on something that the desk does not know."""
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[list[Seen]], bool], timeout: float = PATIENCE) -> bool:
        """Block until something holds for the requests so far; says whether it came to be."""
        with self._changed:
            return self._changed.wait_for(lambda: condition(self._seen), timeout)

    def wait_open(self, number: int, chapter: str | None = None, timeout: float = PATIENCE) -> bool:
        """Block until so many model requests have arrived; of a chapter, or all. Says whether they did."""
        return self.wait_for(lambda seen: len(_models(seen, chapter)) >= number, timeout)

    def _place_of(self, seen: Seen, chapter: str | None) -> int:
        """The how-manieth of its chapter a request is; 0 if it is of another one."""
        same = _models(self._seen, chapter)
        return next((place for place, one in enumerate(same, 1) if one is seen), 0)

    def seen(self, kind: Kind | None = "model", chapter: str | None = None) -> list[Seen]:
        """The requests so far: of a kind, or all; of a chapter, or all."""
        with self._changed:
            return [
                one
                for one in self._seen
                if (kind is None or one.kind == kind) and (chapter is None or one.chapter == chapter)
            ]

    def by_path(self, kind: Kind | None = None) -> Counter[str]:
        """How many requests each path has got."""
        return Counter(one.path for one in self.seen(kind))

    def by_chapter(self) -> Counter[str]:
        """How many model requests each chapter has made."""
        return Counter(one.chapter for one in self.seen("model"))

    def forget(self) -> None:
        """Begin anew: nothing seen, nothing held, no faults. For a provider that serves one test after the other."""
        with self._changed:
            self._seen.clear()
            self._faults.clear()
            self._held = _nothing
            self._chapter = ""
            self._changed.notify_all()

    def as_json(self) -> list[dict[str, Any]]:
        """All requests, without headers (they hold keys) and bodies."""
        return [
            {name: value for name, value in vars(one).items() if name not in {"headers", "body"}}
            for one in self.seen(kind=None)
        ]
