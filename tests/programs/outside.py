"""What lies outside of a program and outlives its deaths: effects, services that fail at first, people, the clock.

All that the tests say of a run is told by this, or by the log; nothing by the engine.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

from jupyter_durable import answering, clock
from jupyter_durable.errors import UsageError
from jupyter_durable.log.base import EventLog
from tests.engine.harness import Died
from tests.programs.language import CHOICES


class StoryClock(clock.SystemClock):
    """A clock that goes on by itself only a little, so that a story takes the same way each time it is told."""

    def __init__(self) -> None:
        self.at = 1_795_000_000.0
        self.ticks = 0.0

    def time(self) -> float:  # type: ignore[override]
        """A millisecond later at every look."""
        self.at += 0.001
        return self.at

    def monotonic(self) -> float:  # type: ignore[override]
        """It never goes back, whatever becomes of the other one."""
        self.ticks += 0.0001
        return self.ticks

    def sleep(self, seconds: float) -> None:  # type: ignore[override]
        """Time goes by at once."""
        self.at += seconds
        self.ticks += seconds


@dataclass(frozen=True)
class Ticket:
    """One beginning of one body."""

    key: str
    what: str
    nonce: int

    def __str__(self) -> str:
        return f"{self.what} {self.key} {self.nonce}"


class Boom(Exception):
    """What a service answers that does not work yet."""


class World:
    """Where steps have their effects. It holds a lock, so it is not comparable, as a client is not."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.dead = False
        """The process that runs is dead: nothing of it happens any more."""
        self.effects: list[Ticket] = []
        self.outcomes: dict[str, tuple[str, str]] = {}
        """Idempotency key -> how its last body ended, and on which ticket."""
        self.raised: Counter[str] = Counter()

    def begins(self, key: str, name: str, arg: int) -> str:
        """The effect of a body."""
        with self._lock:
            if self.dead:
                raise Died
            ticket = Ticket(key, f"{name}({arg})", len(self.effects))
            self.effects.append(ticket)
            return str(ticket)

    def ends(self, ticket: str, out: list[Any], fails: int) -> Any:
        """A body comes to its end: it fails as often as its service does, then it has a value."""
        key = ticket.split()[1]
        with self._lock:
            if self.dead:
                raise Died
            if self.raised[key] < fails:
                self.raised[key] += 1
                self.outcomes[key] = ("failed", ticket)
                raise Boom(ticket)
            self.outcomes[key] = ("value", ticket)
            return [ticket, *out]

    def counts(self) -> Counter[str]:
        """Effects by idempotency key."""
        return Counter(ticket.key for ticket in self.effects)


class People:
    """Whoever sends signals and answers questions, and remembers what was said."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.signals: dict[str, tuple[str, int]] = {}
        """Id -> name and value; each value is sent once."""
        self.answers: dict[str, tuple[str, str]] = {}
        """Id of the request -> what was shown with it, and what was answered."""

    def send(self, name: str, *, twice: bool = False) -> None:
        """Send a signal; a second time by a sender that has heard nothing."""
        number = len(self.signals)
        signal = f"signal-{number}"
        assert answering.send(self.log, "p", name, number, signal_id=signal)
        self.signals[signal] = (name, number)
        assert not twice or not answering.send(self.log, "p", name, number, signal_id=signal)

    def answer(self, which: int, choice: int, *, twice: bool = False) -> None:
        """Answer one of the open questions, if there is one; a second time by another door, which must be refused."""
        waits = [each for each in answering.waiting(self.log) if each.kind == "approval" and each.answer is None]
        waits = [each for each in waits if each.info.until is None or each.info.until > clock.now()]
        if not waits:
            self.too_late()
            return
        wait, said = waits[which % len(waits)], CHOICES[choice]
        answering.answer(self.log, wait.info.request, said, run=wait.run, by="ada")
        self.answers[wait.info.request] = (site_of(wait.info.shown), said)
        if twice:
            refused(self.log, wait.info.request)

    def too_late(self) -> None:
        """Answer again what was answered: it is refused, and whatever is asked now stays open."""
        for request in list(self.answers)[-1:]:
            refused(self.log, request)


def refused(log: EventLog, request: str) -> None:
    """Nobody takes an answer to this request any more."""
    try:
        answering.answer(log, request, CHOICES[0], by="eve")
    except UsageError:
        return
    raise AssertionError(f"a second answer to request {request} was taken")


def site_of(shown: tuple[Any, ...]) -> str:
    """The text that was shown with a question."""
    text = bytes(shown[0].data).decode()
    return text[text.index("site") :].split('"')[0]
