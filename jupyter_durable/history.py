"""The history of one branch as an index: which steps it holds, how each ended, in which order.

Pure: built from `Recorded` events alone, in any number of portions. Applying a prefix of a history and
then the rest gives the same index as applying all of it at once (`tests/test_history.py`).

An *entry* is one step of the program. Several events, perhaps of several executions, belong to it: an
intent, failed attempts, an intent again after a crash, an end.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import intern  # names and evidence are few, and every line brings a copy of its own

import msgspec

from jupyter_durable.entries import Effect, Entry, State
from jupyter_durable.event_data import (
    Decision,
    ExecutionHeader,
    Notice,
    Outcome,
)
from jupyter_durable.events import (
    AttemptFailed,
    CompensationRegistered,
    Decided,
    ExecutionEnded,
    ExecutionStarted,
    Noticed,
    Progressed,
    Recorded,
    SignalReceived,
    StepAdopted,
    StepBeat,
    StepBilled,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepNotStored,
    StepOutput,
    StepSettled,
    StepStarted,
    StepUndone,
    TimerFired,
    WaitStarted,
)
from jupyter_durable.keys import Key, TimerKey, inner_scope, inside, is_of_map, make_key, parent_scope, stem

PATCHED = "patched"
"""Kind of the entries that hold the answers of ``durable.patched``."""


class History:
    """Index over the events of one branch."""

    def __init__(self, events: Iterable[Recorded] = ()) -> None:
        self.entries: dict[Key, Entry] = {}
        self.scopes: dict[str, list[Entry]] = {}  # scope -> its entries in order of their first start
        self.siblings: dict[str, dict[str, None]] = {}
        """Stem of a scope -> the scopes with that stem, in order of appearance (a dict as an ordered set)."""
        self.by_seq: dict[int, Entry] = {}
        """Seq of every intent of unfinished business, and of the newest intent of each entry -> entry."""
        self.models: list[Entry] = []  # the captured model calls
        self.last_start: dict[str, int] = {}  # scope -> seq of the last intent made in it
        self.headers: list[ExecutionHeader] = []
        self.uncaught: set[int] = set()  # steps (seq of their intent) whose failure has ended an execution
        self.outcome: Outcome | None = None
        """How the newest execution that ran the cell ended; ``None`` if it did not."""
        self.decisions: list[Decision] = []
        self.notices: list[tuple[int, Notice]] = []
        self.fired: dict[TimerKey, int] = {}  # sleeps of glue code that were over, and when (seq)
        self.waits: list[Entry] = []  # over or not
        self.effects: dict[str, Effect] = {}
        """What can be undone, in order of completion: id of the effect -> effect."""
        self.undone: dict[str, Entry | None] = {}
        """Id of an effect that was undone -> the step that did it, if it is one of this branch."""
        self.patches: dict[str, Entry] = {}
        """Digest of an id -> its answer (`patches`). They have no place, so they stand in nobody's order or way."""
        self.stalled = 0
        """How many of the newest executions in a row were cut without having recorded any end of a step."""
        self.seq = -1
        self._progress = False
        self._decides = False
        self._execution = ""  # the newest one: the events to come are its
        self.extend(events)

    def extend(self, events: Iterable[Recorded]) -> None:
        """Apply further events, in order of seq."""
        by_seq = self.by_seq
        for recorded in events:
            event, seq = recorded.event, recorded.seq
            kind = type(event)
            if kind is StepStarted:
                self._started(seq, event)  # type: ignore[arg-type]
                self.seq = seq
            elif kind is StepCompleted:  # the commonest end, without the calls of the others
                entry = by_seq[event.step]  # type: ignore[union-attr]
                entry.state, entry.end, entry.payload = "completed", seq, event.data  # type: ignore[union-attr,assignment]
                self._progress = True
                self.seq = seq
                if entry.compensation is not None or entry.kind == "undo":
                    self._effect(entry, seq)
            else:
                self.apply(seq, event)

    def apply(self, seq: int, event: object) -> None:
        """Apply one event."""
        self.seq = seq
        if isinstance(event, StepStarted | WaitStarted):
            self._started(seq, event)
            return
        if isinstance(event, ExecutionStarted):
            self._execution_started(event.data)
            return
        if isinstance(event, StepBeat | Progressed | CompensationRegistered):  # no end of anything
            self._said(event)
            return
        self._progress = True
        if isinstance(event, StepCompleted):
            entry = self._end(event.step, seq, "completed")
            entry.payload = event.data
            self._effect(entry, seq)
        elif isinstance(event, StepAdopted):
            self._adopted(seq, event)
        elif isinstance(event, StepOutput):
            self.by_seq[event.step].outputs += event.data
        elif isinstance(event, AttemptFailed | StepFailed):
            self._failed(seq, event)
        elif isinstance(event, StepNotStored):
            entry = self._end(event.step, seq, "not_stored")
            entry.unstored = event.data
        elif isinstance(event, StepCancelled):
            self._end(event.step, seq, "cancelled")
        elif isinstance(event, StepInterrupted):
            self._end(event.step, seq, "interrupted")
        else:
            self._rare(event)

    def _rare(self, event: object) -> None:
        if isinstance(event, StepBilled):
            self.by_seq[event.step].billed += (event.data,)
        elif isinstance(event, SignalReceived):
            self.by_seq[event.step].receipt = event.data
        elif isinstance(event, TimerFired):
            self.fired[TimerKey(event.scope, event.n)] = self.seq
        elif isinstance(event, ExecutionEnded):
            self.uncaught.update(event.data.failed)
            if not self._decides:
                self.outcome = event.data
            self.stalled = 0
        elif isinstance(event, Decided):
            self.decisions.append(event.data)
        elif isinstance(event, Noticed):
            self.notices.append((event.step, event.data))
            if (entry := self.by_seq.get(event.step)) is not None:
                entry.notices += (event.data,)
        elif isinstance(event, StepSettled):
            self._settled(event)
        elif isinstance(event, StepUndone):
            self.undone.setdefault(event.data.id, None)

    def _effect(self, entry: Entry, seq: int) -> None:
        """A step has completed: it can be undone now, or it has undone another one."""
        if entry.compensation is not None:
            effect = Effect(entry, entry.compensation, entry.payload, self._execution, seq, entry.seq)
            self.effects[entry.compensation.id] = effect
        elif entry.kind == "undo":
            self.undone[entry.key.digest] = entry

    def is_undone(self, entry: Entry) -> bool:
        """Whether the effect of a step was undone, so that its recorded result is true no more."""
        return entry.compensation is not None and entry.compensation.id in self.undone

    def _said(self, event: StepBeat | Progressed | CompensationRegistered) -> None:
        entry = self.by_seq.get(event.step)
        if isinstance(event, CompensationRegistered):
            if entry is not None:
                entry.compensation = event.data
            return
        if isinstance(event, Progressed):
            if entry is not None:
                entry.progress = event.data
        elif entry is not None:
            entry.beat, said = event.at, event.data.details
            entry.details = said if isinstance(said, msgspec.Raw) else entry.details

    def _execution_started(self, header: ExecutionHeader) -> None:
        before, self._decides = self._decides, header.purpose == "decide"
        if self.headers and not before:
            cut = self.outcome is None and not self._progress
            self.stalled = self.stalled + 1 if cut else 0
        self.headers.append(header)
        self._execution = header.execution
        if not self._decides:
            self.outcome = None
            self._progress = False

    @property
    def stalled_now(self) -> int:
        """`stalled`, with the newest execution counted as cut if it has no outcome."""
        if self._progress or self.outcome is not None or not self.headers:
            return 0
        return self.stalled + 1

    def _started(self, seq: int, event: StepStarted | WaitStarted) -> None:
        if event.kind == PATCHED:
            self._patched(seq, event)
            return
        key = make_key((intern(event.scope), intern(event.name), event.digest, event.n))
        entry = self.entries.get(key)
        if entry is None:
            entry = self._new(key, seq, event)
        else:
            entry.seq, entry.execution, entry.evidence, entry.pure = seq, self._execution, event.evidence, event.pure
            entry.state, entry.end, entry.settlement, entry.beat = "open", -1, None, -1.0
            entry.payload = entry.error = entry.unstored = entry.receipt = entry.progress = None
        if event.why:
            entry.why = event.why
        if type(event) is WaitStarted:
            if entry.wait is None:
                self.waits.append(entry)
            entry.wait = event.data
        self.by_seq[seq] = entry
        if event.kind != "run" or entry.begun == seq:  # one that goes on has not been begun because of anything
            self.last_start[key.scope] = seq

    def _patched(self, seq: int, event: StepStarted | StepAdopted | WaitStarted) -> Entry:
        """The answer to an id. One over which an execution died is given again."""
        known = self.patches.get(event.digest)
        if known is not None and not known.finished:
            known.seq, known.execution, known.why = seq, self._execution, event.why
            self.by_seq[seq] = known
            return known
        key = make_key((event.scope, event.name, event.digest, event.n))
        entry = Entry(key, seq, seq, self._execution, "", event.kind, event.pure, why=event.why)
        self.patches[event.digest] = self.by_seq[seq] = entry
        return entry

    def _new(self, key: Key, seq: int, event: StepStarted | StepAdopted | WaitStarted) -> Entry:
        entry = Entry(key, seq, seq, self._execution, intern(event.evidence), event.kind, event.pure)
        self.entries[key] = entry
        in_scope = self.scopes.get(key.scope)
        if in_scope is None:
            in_scope = self.scopes[key.scope] = []
            self._index_scope(key.scope)
        in_scope.append(entry)
        if event.kind == "model":
            self.models.append(entry)
        return entry

    def _index_scope(self, scope: str) -> None:
        """Enter a scope, and the scopes around it, among its siblings."""
        while scope:
            known = self.siblings.setdefault(stem(scope), {})
            if scope in known:
                return
            known[scope] = None
            scope = parent_scope(scope)

    def _end(self, step: int, seq: int, state: State) -> Entry:
        entry = self.by_seq[step]
        entry.state, entry.end = state, seq
        return entry

    def _failed(self, seq: int, event: AttemptFailed | StepFailed) -> None:
        final = isinstance(event, StepFailed)
        entry = self.by_seq[event.step]
        entry.attempts += 1
        entry.tried = 0 if final else entry.tried + 1
        entry.failed_at = seq
        entry.error, entry.caused_by = event.data.error, event.data.caused_by
        entry.inner_failures |= frozenset(event.data.caused_by)
        if final:
            entry.state, entry.end = "failed", seq

    def _adopted(self, seq: int, event: StepAdopted) -> None:
        key = Key(event.scope, event.name, event.digest, event.n)
        patched = event.kind == PATCHED
        entry = self._patched(seq, event) if patched else self.entries.get(key)
        if entry is None:
            entry = self._new(key, seq, event)
        entry.adopted, entry.why = event.data, event.why
        entry.payload, entry.error = event.data.payload, event.data.error
        entry.wait, entry.receipt = event.data.wait, event.data.receipt
        entry.state = "completed" if event.data.payload is not None else "failed"
        entry.seq = entry.end = seq
        entry.compensation = event.data.compensation
        if entry.state == "completed":
            self._effect(entry, seq)
        self.by_seq[seq] = entry
        if not patched:
            self.last_start[key.scope] = seq

    def _settled(self, event: StepSettled) -> None:
        entry = self.by_seq[event.step]
        entry.settlement = event.data
        if event.data.choice == "value":
            entry.state, entry.payload = "completed", event.data.payload
            self._effect(entry, self.seq)
        elif event.data.choice == "rerun":
            entry.state = "interrupted"
        else:
            entry.state = "failed"

    # What replay asks --------------------------------------------------------------------------------------------

    def ended_the_execution(self, entry: Entry) -> bool:
        """Whether the failure of this entry is the one to be tried again, not raised again.

        It is, if it, or one inside it that it let through, has ended an execution; or if the newest one was cut and
        nothing was begun after the failure in the same scope or around it, so that nobody can have caught it.
        """
        if not self.uncaught.isdisjoint((entry.seq, *entry.caused_by)):
            return True
        stopped = self.outcome is None or (self.outcome.status == "interrupted" and is_of_map(entry.key.scope))
        return stopped and self.nobody_went_on(entry)

    def nobody_went_on(self, entry: Entry) -> bool:
        """Whether nothing was begun after the failure of an entry, in its scope or around it, nor did the cell end."""
        if self.completed_branch():
            return False
        scope = entry.key.scope
        # Items of a map begin beside each other, and none of them because another has failed.
        while is_of_map(scope) or self.last_start.get(scope, -1) < entry.end:
            if not scope:
                return True
            scope = parent_scope(scope)
        return False

    def used_signals(self) -> set[str]:
        """Ids of the signals that have ended waits. One whose wait was cut before it ended is free again."""
        return {e.receipt.signal for e in self.waits if e.receipt is not None and e.state == "completed"}

    def completed_branch(self) -> bool:
        """Whether the newest execution that ran the cell came to its end, there or by going on anew."""
        return self.outcome is not None and self.outcome.status in ("completed", "continued")

    def after(self, entry: Entry) -> list[Entry]:
        """Finished entries of the same scope that began after an entry had ended: because of that, perhaps.

        What began beside it did not.
        """
        return [
            e
            for e in self.scopes.get(entry.key.scope, ())
            if e.begun > max(entry.end, entry.begun) and e.finished and e.kind != "run"
        ]

    def order(self) -> list[tuple[Entry | TimerKey, bool]]:
        """Starts (``False``) and ends (``True``) in recorded order, as a replay meets them.

        What lies inside a step whose body does not run again is left out.
        """
        over = (inner_scope(entry.key) for entry in self.entries.values() if self._is_over(entry))
        done = {scope for scope in over if scope in self.siblings.get(stem(scope), ())}
        moments: list[tuple[int, bool, Entry | TimerKey]] = []
        for scope, entries in self.scopes.items():
            if done and inside(scope, done):
                continue
            for entry in entries:
                moments.append((entry.begun, False, entry))
                if entry.end >= 0:
                    moments.append((entry.end, True, entry))
        moments += [(seq, True, key) for key, seq in self.fired.items() if not (done and inside(key.scope, done))]
        moments.sort(key=lambda moment: moment[:2])
        return [(what, is_end) for _, is_end, what in moments]

    def _is_over(self, entry: Entry) -> bool:
        """Whether a body does not run again: it has its value, or its program has gone on without one.

        The code of a child run always runs.
        """
        if entry.kind == "run":
            return False
        caught = entry.state == "failed" and not self.ended_the_execution(entry)
        return caught or entry.finished or entry.state == "cancelled"
