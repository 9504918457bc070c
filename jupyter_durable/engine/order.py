"""The recorded order of one replay: where a turnstile is needed, and what has passed before there was one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from jupyter_durable.engine.turnstile import Turnstile
from jupyter_durable.entries import Entry
from jupyter_durable.keys import TimerKey

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution


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
        """Tell the turnstile, if there is one, that an entry's moments are over."""
        execution, loop = self._execution, self._execution.loop
        if self._turnstile is None:
            self._passed.append(entry)
        elif threading.get_ident() == execution.thread:
            self._turnstile.passed(entry)
        elif loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._turnstile.passed, entry)

    def timer_is_recorded(self, key: TimerKey) -> bool:
        """Whether a sleep of glue code is recorded as over."""
        return key in self._replay.own.fired
