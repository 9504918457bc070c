"""The recorded order of one replay, as coroutines, threads and waits meet it.

Coroutines stand at the turnstile. Threads wait here, each until all that had ended before its step has. A wait that
history has not ended is ended by nothing new before what history holds was handed out.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from jupyter_durable.call import RUN
from jupyter_durable.engine.turnstile import Turnstile
from jupyter_durable.entries import Entry
from jupyter_durable.keys import TimerKey, inner_scope, inside

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution

LOOK = 0.05
"""Seconds between two looks of a thread that waits."""

LOOKS = 20
"""Looks of a thread (one second), or of the waits of a run, in which nothing recorded comes to its end, after which
what is to come counts as never coming: there may be fewer threads than there were, or the program has changed."""


class Order:
    """See the module. It belongs to one branch: an execution that goes over to another gets a new one."""

    def __init__(self, execution: Execution, *, handed_out: bool = False) -> None:
        """Args:
        execution: whose order it is.
        handed_out: all that its branch holds was handed out already.
        """
        self._execution = execution
        self._replay = execution.replay
        self._turnstile = Turnstile((), execution.members.tasks) if handed_out else None
        self._passed: list[Entry] = []
        self._ends: list[Entry] | None = [] if handed_out else None
        """What glue code of the run has asked and has a recorded end, in order of the ends; made when first needed.
        What bodies of steps have asked is theirs: they may be executed again in any order."""
        self._places: dict[int, int] = {}
        """Id of such an entry -> its place among them."""
        self._over: set[int] = set()
        """Ids of the entries whose end was handed out, or will never be."""
        self._at = 0
        self._looks = 0
        """Looks since something recorded came to its end."""
        self._condition = threading.Condition()
        self._waiting = 0
        self._given_up = False

    @property
    def turnstile(self) -> Turnstile:
        """Made when the first asynchronous step is replayed; what was handed out before counts as passed."""
        if self._turnstile is None:
            turnstile = Turnstile(self._replay.own.order(), self._execution.members.tasks)
            for entry in self._passed:
                turnstile.passed(entry)
            self._passed.clear()
            self._turnstile = turnstile
        return self._turnstile

    def passed(self, entry: Entry) -> None:
        """An entry's moments are over: its end was handed out without waiting, or will never be."""
        execution, loop = self._execution, self._execution.loop
        self.ended(entry)
        if self._turnstile is None:
            self._passed.append(entry)
        elif threading.get_ident() == execution.thread:
            self._turnstile.passed(entry)
        elif loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._turnstile.passed, entry)

    def ended(self, entry: Entry) -> None:
        """The same, of one that the turnstile knows about already."""
        self._over.add(id(entry))
        self._looks = 0
        if self._waiting:
            with self._condition:
                self._condition.notify_all()

    def in_turn(self, entry: Entry) -> None:
        """Let a synchronous caller go on with a recorded end: in a thread, when all that had ended before it has.

        The thread of an event loop never waits here, since the tasks of the loop could not go on. Where nothing comes
        to its end for a second, the order cannot be kept, and is given up for the rest of the replay.
        """
        execution = self._execution
        of_loop = execution.loop is not None and threading.get_ident() == execution.thread
        if not (of_loop or self._given_up or not execution.members.threads):
            with self._condition:
                self._waiting += 1
                try:
                    while not (self._given_up or self._is_next(entry)):
                        self._looks += not self._condition.wait(LOOK)
                        if self._looks > LOOKS and not self._is_next(entry):
                            self._given_up = self._replay.relaxed = True
                            self._condition.notify_all()
                finally:
                    self._waiting -= 1
        self.passed(entry)

    def is_behind(self) -> bool:
        """Whether recorded ends are still to be handed out, as far as can be seen. Asked at every look of the waits."""
        ends = self._all_ends()
        with self._condition:
            self._advance()
        self._looks += 1
        return self._at < len(ends) and self._looks <= LOOKS

    def timer_is_recorded(self, key: TimerKey) -> bool:
        """Whether a sleep of glue code is recorded as over."""
        return key in self._replay.own.fired

    def _is_next(self, entry: Entry) -> bool:
        self._all_ends()
        self._advance()
        place = self._places.get(id(entry))
        return place is None or place <= self._at

    def _all_ends(self) -> list[Entry]:
        if self._ends is None:
            own = self._replay.own
            bodies = {inner_scope(entry.key) for entry in own.entries.values() if entry.kind != RUN}
            ends = (what for what, is_end in own.order() if is_end and isinstance(what, Entry))
            self._ends = [entry for entry in ends if not inside(entry.key.scope, bodies)]
            self._places = {id(entry): place for place, entry in enumerate(self._ends)}
        return self._ends

    def _advance(self) -> None:
        ends = self._ends or []
        while self._at < len(ends) and id(ends[self._at]) in self._over:
            self._at += 1
