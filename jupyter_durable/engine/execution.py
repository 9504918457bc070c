"""One live execution: it asks replay, writes events, follows the tasks and threads of its run, and ends.

The step drivers of `runner` act through it; `opening.begin` makes it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from jupyter_durable import clock, errors
from jupyter_durable.call import Branch, Call, Execute, Place, Stop, Verdict
from jupyter_durable.engine import payloads
from jupyter_durable.engine.awaited import Awaited, never_awaited
from jupyter_durable.engine.blame import with_difference
from jupyter_durable.engine.budget import Budget, StepCount, parse_budget
from jupyter_durable.engine.cancellation import CancelWatch
from jupyter_durable.engine.children import Children
from jupyter_durable.engine.ending import about, leave_nothing_running, outcome_of, unasked
from jupyter_durable.engine.flushing import GroupFlush
from jupyter_durable.engine.hidden import Changing, Stale, too_large
from jupyter_durable.engine.identity import PATCHES
from jupyter_durable.engine.length import NEVER, first_notice, long_notice
from jupyter_durable.engine.members import Members
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.engine.order import Order
from jupyter_durable.engine.stats import Stats
from jupyter_durable.engine.tally import Savings
from jupyter_durable.engine.undoable import Undoable, undone_before
from jupyter_durable.event_data import Cancellation, Carried, ExecutionHeader, Notice, Outcome
from jupyter_durable.events import ExecutionEnded, Noticed, Replayed, TimerFired
from jupyter_durable.evidence import EvidenceBook
from jupyter_durable.keys import Key, TimerKey
from jupyter_durable.log.base import EventLog, Writer
from jupyter_durable.replay import Replay
from jupyter_durable.sentences import quoted

if TYPE_CHECKING:
    from jupyter_durable.engine.attempt import Attempt
    from jupyter_durable.engine.waits import Room


def _nothing() -> None:
    """Nothing is to be done."""


class Execution:
    """See the module."""

    def __init__(
        self,
        spec: RunSpec,
        log: EventLog,
        writer: Writer,
        header: ExecutionHeader,
        replay: Replay,
        book: EvidenceBook,
        branch_off: Callable[[Execution, str], tuple[Writer, ExecutionHeader, Replay]],
    ) -> None:
        self.spec = spec
        self.log = log
        self.header = header
        self.replay = replay
        self.book = book
        self.pid = os.getpid()
        self.thread = threading.get_ident()
        self.loop = spec.loop
        self.started = clock.monotonic()
        self.stats = Stats()
        self.savings = Savings()
        self.budget = parse_budget(spec.flags.budget) if spec.flags.budget else Budget()
        self._count = StepCount(self.budget, replay.own.entries.values(), header.carried)
        self.long_at = first_notice(replay.own)
        """Seq from which on the history is long, and that is still to be said."""
        self.root = Place()
        self.lock = threading.RLock()
        """Guards replay, places that threads share, and the end."""
        self.on_change: Callable[[], None] | None = None
        """Called after every step; the cell's summary hangs here."""
        self.on_interrupt: Callable[[], None] | None = None
        """Called at a safe point for an interrupt that came while a result was being written."""
        self.before_end: list[Callable[[], None]] = []
        """Called first of all when the execution ends, and again when the last thread after that has ended."""
        self.put_back: Callable[[], None] = _nothing
        """Gives the notebook's variables their own values back, where others were set for the branch."""
        self.on_closed: list[Callable[[Execution], None]] = []  # called when the branch has been released
        self.pending_interrupt = False
        self.interrupted = False
        """The stop button was pressed: what is cancelled from now on is in doubt, not cancelled by the program."""
        self.sealed = ""
        """Why no further step may run, once the run has stopped; empty before."""
        self.reason: errors.DurableError | errors.RunCancelled | None = None
        """The error that stopped it."""
        self.parked: errors.Parked | None = None
        """It waits for a signal or a timer, and its cell ends because of that."""
        self.cancelled: Cancellation | None = None
        """Somebody has cancelled the run."""
        self.on_cancel: Callable[[], None] | None = None
        """Called then, to end what the cell awaits."""
        self.continued: errors.ContinuedAsNew | None = None
        """Its branch has ended, to go on anew."""
        self.carried: Carried | None = None
        """What it hands on then."""
        self.members = Members(self)
        self.order = Order(self)
        self.room: Room | None = None  # where its waits are
        self.ended = False
        self.outcome: Outcome | None = None
        self.unawaited: dict[int, Awaited] = {}  # what words gave to be awaited, and nobody has awaited yet
        self.forgotten: errors.UsageError | None = None
        """What the end of the cell must say about them, although it came to its end."""
        self.in_flight: dict[int, Attempt] = {}
        """Seq of the intent -> attempt that runs right now."""
        self.undoable = Undoable()
        self.stale = Stale()
        self.changing = Changing(spec.namespace, spec.reads, book)
        self.end_inputs: Callable[[], dict[str, str]] = dict
        """Gives the digests of the mutable inputs as they are now."""
        self.flushes = header.durability == "power"
        self.group = GroupFlush(self.flush, spec.loop, needed=self.flushes)
        self.write_to(writer)
        self._evidence: dict[int, tuple[Any, str]] = {}
        self._branch_off = branch_off
        self._closed = threading.Event()
        self.cancel_watch = CancelWatch(self)
        self.children = Children(self)
        PATCHES.install(self.loop)

    def write_to(self, writer: Writer) -> None:
        """Write events to this writer from now on."""
        self.writer = writer
        self.append = writer.append
        """Write an event; after return it survives the death of the process."""

    # Identity ----------------------------------------------------------------------------------------------------

    @property
    def run_name(self) -> str:
        """Name of the run as people say it."""
        return self.header.name

    @property
    def where(self) -> dict[str, str]:
        """Facts for errors."""
        return {"run": self.header.name, "branch": self.header.branch_name}

    def place_of_run(self) -> str:
        """Run and branch, for messages."""
        return f"Run `{self.header.name}`, branch `{self.header.branch_name}`"

    def idempotency_key(self, key: Key) -> str:
        """Stable name of a step's effect: the same after a crash, an edit and a torn tail; new after ``--fresh``.

        Derived from run, root branch, generation and step key; 32 hexadecimal digits.
        """
        entry = self.replay.own.entries.get(key)
        again = 1 if entry is not None and entry.settlement is not None and entry.unstored is not None else 0
        parts = (self.header.run, self.header.root, str(self.header.generation + again), *map(str, key))
        return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    def evidence_of(self, fn: Any) -> str:
        """Digest of the code that a step function depends on, as of its first use in this execution."""
        known = self._evidence.get(id(fn))
        if known is not None:
            return known[1]
        evidence = self.book.of(fn)
        digest = evidence.digest
        if evidence.not_comparable and self.replay.own.entries and (unseen := too_large(evidence.not_comparable)):
            self.stats.notices.append(unseen)
        if self.book.is_settled(fn):
            self._evidence[id(fn)] = (fn, digest)
        return digest

    # Decide ------------------------------------------------------------------------------------------------------

    def ask(self, call: Call, *, early: bool = False, counts: bool = True) -> Verdict:
        """What to do about a call; raises what must stop the run. Without ``counts`` the caller counts the step."""
        self.cancel_watch.look()
        with self.lock:
            if self.sealed:
                self.refuse()
            verdict = self.replay.ask(call, early=early)
            if call.differs is not None:
                verdict = with_difference(verdict, call.differs)
            if type(verdict) is Branch:
                self.branch_at(verdict.reason)
                verdict = self.replay.ask(call)
            if self.children:
                self.children.check(call, verdict)
            if type(verdict) is Stop:
                self.stop(verdict, call)
            if counts:
                self.count_step(call, verdict)
            return verdict

    def count_step(self, call: Call, verdict: Verdict) -> None:
        """Count a step that is about to be executed, if there is a budget of steps."""
        if self.budget.steps is not None and type(verdict) is Execute and verdict.entry is None:
            try:
                self._count.one_more(call.kind, call.label, self.place_of_run())
            except errors.RunStopped as stopped:
                self.seal(str(stopped), stopped.error)
                raise

    def branch_at(self, reason: str) -> None:
        """Go over to a new branch; nothing was executed yet."""
        if self.spec.flags.strict:
            self.stop(Stop(errors.DecisionNeeded, f"`--strict` makes any difference an error: {reason}."))
        if self.in_flight or self.stats.live:
            self.stop(
                Stop(
                    errors.DecisionNeeded,
                    f"{reason[:1].upper()}{reason[1:]}, and steps were already executed on this branch in this "
                    f"execution. Run the cell again: it goes on, on a new branch, from here.",
                )
            )
        if said := undone_before(self.replay):
            self.stop(Stop(errors.DecisionNeeded, f"{reason[:1].upper()}{reason[1:]}, and {said}"))
        writer, self.header, self.replay = self._branch_off(self, reason)
        self.write_to(writer)
        self.order = Order(self, handed_out=True)
        self._count = StepCount(self.budget, self.replay.own.entries.values(), self.header.carried)
        self.long_at = first_notice(self.replay.own)

    def refuse(self) -> None:
        """Raise, because the run has stopped."""
        if self.cancelled is not None and self.reason is not None:
            raise self.reason
        raise errors.RunSealed(
            f"{self.place_of_run()} has stopped, so no further step is executed: {self.sealed} If your code caught "
            f"the error with `except`, let it through.",
            **self.where,
        )

    def stop(self, stop: Stop, call: Call | None = None) -> None:
        """Seal the run and raise. A step that `--replay-only` did not execute is told as a fact."""
        unloadable = payloads.unloadable(stop.entries, self.log) if stop.error is errors.DecisionNeeded else ""
        message = f"{stop.message}{unloadable}".replace("`%%durable --", f"`%%durable {quoted(self.run_name)} --")
        facts: dict[str, Any] = {"steps": [entry.label for entry in stop.entries], "about": about(stop, self.replay)}
        if call is not None and stop.error is errors.ReplayOnlyError:
            facts |= {"step": call.label.strip("`"), "kind": call.kind, "asks": stop.asks}
        self.seal(message, stop.error(f"{self.place_of_run()}: {message}", **self.where, **facts))
        assert self.reason is not None
        raise self.reason

    def seal(self, why: str, reason: errors.DurableError | errors.RunCancelled) -> None:
        """No further step may run. The first reason is what the user is told in the end, whatever code caught."""
        self.sealed = why
        if self.reason is None:
            self.reason = reason

    def flush(self) -> None:
        """Make everything so far survive loss of power, unless the run asked for less."""
        if self.flushes:
            self.writer.flush()

    # Things written beside the steps ----------------------------------------------------------------------------------

    def timer_fired(self, key: TimerKey) -> None:
        """Record that a sleep of glue code is over."""
        if not self.ended:
            self.append(TimerFired(at=clock.now(), scope=key.scope, n=key.n))

    def say_saved(self) -> None:
        """Write down what was replayed and not bought since this was last done: by who would have bought it."""
        saved = self.savings.take()
        if saved is not None and not self.spec.flags.replay_only:
            self.append(Replayed(at=clock.now(), data=saved))

    def notice(self, step: int, notice: Notice) -> None:
        """Tell the user something once, and record that it was told."""
        self.append(Noticed(at=clock.now(), step=step, data=notice))
        if notice.kind != "file":
            self.stats.notices.append(notice.message)

    def say_long(self) -> None:
        """The history has become long: say so, once on a branch."""
        with self.lock:
            if self.long_at < NEVER:
                self.long_at = NEVER
                self.notice(-1, long_notice())

    def safe_point(self) -> None:
        """Let an interrupt through that came while a result was being written."""
        if self.pending_interrupt:
            self.pending_interrupt = False
            if self.on_interrupt is not None:
                self.on_interrupt()

    # The end -----------------------------------------------------------------------------------------------------

    def end(self, error: BaseException | None) -> Outcome:
        """End the execution: record how, release the branch.

        Steps still running in threads finish and are recorded first; until then the branch stays held. Other
        leftovers are cancelled and in doubt.

        Args:
            error: what ended the cell, or ``None`` if it came to its end.
        """
        with self.lock:
            if self.outcome is not None:
                return self.outcome
            self._before_end()
            self.ended = True
            PATCHES.uninstall(self.loop)
            left_out = never_awaited(self)
            if error is None and not self.sealed:
                error = self.forgotten = left_out
            try:
                leave_nothing_running(self)
                self.say_saved()
                if error is None and (left := unasked(self.replay)) and not self.sealed:
                    self.notice(-1, left)
                if error is None and not self.sealed and (late := self.cancel_watch.came_too_late()):
                    self.notice(-1, late)
                self.outcome = outcome_of(self, error)
                if not self.in_flight:
                    self._close()
            except BaseException:
                self._release()  # the log takes no more: nothing can be recorded, and nobody must wait for it
                raise
            return self.outcome

    def last_thread_ended(self) -> None:
        """No thread of the run runs any more; an execution that has ended sees once more to what it does at its end."""
        if self.ended:
            self._before_end()

    def _before_end(self) -> None:
        self.put_back()
        self.close_left()

    def close_left(self) -> None:
        """Write down what the program has left open, such as a stream, and will not come back to."""
        for call in self.before_end:
            call()

    def attempt_over(self, seq: int) -> None:
        """A running attempt has ended; the last one of an ended execution closes it."""
        self.in_flight.pop(seq, None)
        if self.ended:
            with self.lock:
                if self.outcome is not None and not self.in_flight:
                    self._close()

    def _close(self) -> None:
        if self._closed.is_set():
            return
        try:
            if self.outcome is not None:
                self.append(ExecutionEnded(at=clock.now(), data=self.outcome))
        finally:
            self._release()

    def _release(self) -> None:
        if self._closed.is_set():
            return
        try:
            self.writer.close()
        finally:
            self._closed.set()
            for call in self.on_closed:
                call(self)

    @property
    def draining(self) -> bool:
        """Ended, but steps in threads still run."""
        return self.ended and not self._closed.is_set()

    def wait_closed(self, seconds: float | None = None) -> bool:
        """Wait until the last thread's step has ended; return whether it has."""
        return self._closed.wait(seconds)
