"""The signals that were posted to a run, as one execution sees them: which are for its branch, which were used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_durable.engine.prospect import branch_of_number
from jupyter_durable.event_data import ExecutionHeader, Signal
from jupyter_durable.history import History

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution
    from jupyter_durable.engine.waits import Wait


class Mail:
    """See the module.

    A signal is for the branch that was the run's when it was sent. What nobody had used there is for the branch that
    goes on from it: after ``durable.continue_as_new``, and after an edit. A fork by a person is another story, and so
    is a fresh branch. An answer to a request that an edit comes after is such a signal, too.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._run, self._branch = execution.header.run, execution.header.branch
        self._used: set[str] = execution.replay.own.used_signals()
        """Ids of those that were used."""
        self._posted = -1
        self._signals: list[Signal] = []
        self._before: _Before | None = None

    def next_for(self, wait: Wait) -> Signal | None:
        """The oldest signal for a wait that was not used yet and fits; it counts as used from now on."""
        execution = self._execution
        for signal in self._look():
            if signal.id in self._used or not self._is_wanted(signal, wait) or not self._is_meant(signal):
                continue
            if signal.sent and wait.info.until is not None and signal.sent > wait.info.until:
                continue  # too late: it has lapsed, whoever looks first
            self._used.add(signal.id)
            try:
                wait.accept(signal.value)
            except Exception as error:
                execution.stats.notices.append(
                    f"a signal for `{wait.call.name}` by {signal.by or 'somebody'} does not fit and was not used "
                    f"({type(error).__name__})"
                )
                continue
            return signal
        return None

    def unused(self) -> tuple[str, ...]:
        """Ids of the signals that are for this branch and have ended no wait yet."""
        return tuple(s.id for s in self._look() if not s.request and s.id not in self._used and self._is_meant(s))

    def _look(self) -> list[Signal]:
        log = self._execution.log
        posted = log.posted(self._run)
        if posted != self._posted:
            self._posted = posted
            self._signals = log.signals(self._run)
        return self._signals

    def _is_wanted(self, signal: Signal, wait: Wait) -> bool:
        if signal.request:
            return signal.request in (wait.info.request, wait.asked_before)
        if wait.call.kind == "approval" or signal.name != wait.call.name:
            return False
        return not signal.child or self._execution.children.is_meant(signal, wait.call.place)

    def _is_meant(self, signal: Signal) -> bool:
        if signal.branch == self._branch:
            return True
        if not signal.branch:
            return self._branch == branch_of_number(self._run, 1)[0]
        if self._before is None:
            self._before = _Before(self._execution)
        return self._before.leaves(signal)


class _Before:
    """What the branches before this one have left."""

    def __init__(self, execution: Execution) -> None:
        log = execution.log
        firsts: dict[str, ExecutionHeader] = {}
        for record in log.executions(execution.header.run):
            firsts.setdefault(record.header.branch, record.header)
        self._branches: set[str] = set()
        self._used: set[str] = set()
        self._handed_on: frozenset[str] = frozenset()
        first: ExecutionHeader | None = firsts.get(execution.header.branch, execution.header)
        while first is not None and not self._handed_on:
            before = first.continues
            if before and first.carried is not None:
                self._handed_on = frozenset(first.carried.signals)
            elif not before and first.origin is not None and first.fork is None:
                before = first.origin.branch
            if not before:
                break
            self._branches.add(before)
            self._used |= History(log.history(before)).used_signals()
            first = None if first.continues else firsts.get(before)

    def leaves(self, signal: Signal) -> bool:
        """Whether a signal was for a branch before this one, and nobody has used it there."""
        return signal.id in self._handed_on or (signal.branch in self._branches and signal.id not in self._used)
