"""The executing of one step, over all its attempts: intent, body, end. Both drivers of `runner` act through it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

from jupyter_durable import clock, errors
from jupyter_durable.call import Call, Execute
from jupyter_durable.engine import payloads
from jupyter_durable.engine.blame import causes, mark_failure
from jupyter_durable.engine.context import Frame
from jupyter_durable.engine.elsewhere import Delivered
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.hidden import IMMUTABLE, changed_arguments, changed_globals, digests, written_files
from jupyter_durable.engine.pulse import Pulse, pulse_of
from jupyter_durable.engine.stats import Status, StepRow
from jupyter_durable.engine.steps import StepSpec
from jupyter_durable.engine.undoable import Registration
from jupyter_durable.event_data import AttemptInfo, ErrorInfo, OutputItem, Payload, Unstored, Usage
from jupyter_durable.events import (
    AttemptFailed,
    StepBilled,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepNotStored,
    StepOutput,
    StepStarted,
)
from jupyter_durable.keys import inner_scope
from jupyter_durable.values import Encoded, comparable, decode, encode_verified, redact, salvage

SHOWN_AFTER = 0.005
"""Seconds after which a step's end is flushed before its value is returned: what was shown must stay."""

now = clock.now
monotonic = clock.monotonic


class Attempt:
    """See the module."""

    __slots__ = (
        "arguments",
        "begun",
        "body",
        "call",
        "dead",
        "details",
        "entry",
        "execution",
        "failed_at",
        "failures",
        "globals_before",
        "key",
        "lost",
        "outputs",
        "pulse",
        "retried",
        "row",
        "seq",
        "shown",
        "spec",
        "spent",
        "thread",
        "tries",
        "undo",
        "values_before",
        "watched",
        "why",
    )

    def __init__(
        self,
        execution: Execution,
        spec: StepSpec,
        call: Call,
        verdict: Execute,
        names: list[str],
        values: list[Any],
    ) -> None:
        self.execution = execution
        self.spec = spec
        self.call = call
        self.key = call.key
        self.why = verdict.why
        self.entry = verdict.entry
        """The unfinished entry that is continued, if there is one."""
        self.failures = verdict.entry.attempts if verdict.entry is not None else 0
        """Attempts that failed, earlier executions included."""
        self.tries = 0
        """Attempts of this execution."""
        self.spent = verdict.entry.tried if verdict.entry is not None else 0  # retries used up by earlier executions
        self.seq = -1
        """Seq of the newest intent."""
        self.dead = False
        """The execution has ended over it: nothing more of it is recorded."""
        self.shown = False
        """It took long enough that its end must be flushed before its value is returned."""
        self.lost = -1
        """Seq of the newest intent that was given up: what its body does from then on is not recorded."""
        self.details = verdict.entry.details if verdict.entry is not None else None
        """What an attempt said about itself last, in JSON."""
        self.pulse: Pulse | None = None
        self.undo: Registration | None = None
        self.thread = threading.get_ident()
        self.retried: frozenset[int] = frozenset()
        self.failed_at = -1
        """Seq at which the last attempt of this execution failed."""
        self.watched: dict[str, Any] | None = None
        """Arguments that the body could change in place."""
        for value in values:
            if type(value) not in IMMUTABLE:
                self.watched = {
                    name: value
                    for name, value in zip(names, values, strict=False)
                    if type(value) not in IMMUTABLE and name not in spec.mutates
                }
                break
        self.values_before: dict[str, str] = {}
        self.globals_before: dict[str, str] = {}
        self.arguments = values
        self.body: Frame | None = None
        self.outputs: list[OutputItem] | None = None
        self.begun = 0.0
        self.row: StepRow | None = None

    # Begin -------------------------------------------------------------------------------------------------------

    def intend(self) -> Frame:
        """Write the intent of an attempt; the caller flushes before it runs the body in the returned frame."""
        execution, call, key = self.execution, self.call, self.key
        if self.tries == 0:
            if execution.stale:
                self._refuse_stale()
            if self.entry is not None:
                execution.order.passed(self.entry)
            execution.stats.live += 1
            execution.say_saved()
        self.begun = monotonic()
        event = StepStarted(
            at=now(), name=key.name, digest=key.digest, n=key.n, scope=key.scope, evidence=call.evidence,
            kind=call.kind, attempt=self.failures, pure=call.pure, why=self.why, data=call.request,
        )  # fmt: skip
        self.seq = seq = execution.append(event)
        if self.row is None:
            self.row = StepRow(seq, key.name, "running", 0.0, self.why, call.kind)
            execution.stats.rows.append(self.row)
        if key.scope:
            execution.replay.begun(seq, event)
        if self.undo is not None and not self.tries:
            self.undo.begun(seq)
        if self.tries:
            execution.replay.match.reopen(inner_scope(key))
        self.tries += 1
        self.outputs = [] if execution.spec.capture_outputs and self.spec.outputs else None
        self.body = body = Frame(execution, None, call, self.outputs)
        body.retried, body.failed_at = self.retried, self.failed_at
        body.attempt, body.seq = self, seq
        self.pulse = None
        if self.spec.heartbeat is not None:
            pulse_of(body)
        execution.in_flight[seq] = self
        if len(execution.in_flight) == 1:  # beside siblings nobody could say who changed what
            self.values_before = digests(self.watched) if self.watched else {}
            names = execution.changing.names(self.spec.subject) if call.evidence else ()
            namespace = execution.spec.namespace
            self.globals_before = {name: comparable(namespace.get(name)) for name in names}
        return body

    def _refuse_stale(self) -> None:
        execution = self.execution
        parts = execution.book.of(self.spec.subject).parts if self.call.evidence else ()
        reads = [name.removeprefix("var:") for name in parts if name.startswith("var:")]
        message = execution.stale.read_by(self.arguments, reads)
        if not message:
            return
        execution.sealed = message
        raise errors.HiddenEffectError(
            f"{execution.place_of_run()}, step {self.call.label}: it would read what a replayed step had changed on "
            f"its first run, and replay does not repeat such changes: {message} Nothing was executed. Let that step "
            f"return what it changes, use what it returns, and run the cell again.",
            step=self.call.name, **execution.where,
        )  # fmt: skip

    # Ends --------------------------------------------------------------------------------------------------------

    def completed(self, value: Any) -> Any:
        """Record the value; return it as replay will return it."""
        if self.dead:
            return value
        returned = monotonic()
        try:
            encoded, restored = encode_verified(value)
            payload = payloads.write(encoded, self.execution.writer)
        except errors.ValueBoundaryError as error:
            raise self._not_stored(salvage(value), type(value).__qualname__, error) from None
        self.completed_with(payload, returned)
        return restored

    def delivered(self, value: Delivered) -> Any:
        """Record a value that a worker has sent in its stored form; return it as replay will return it."""
        returned, encoded = monotonic(), value.encoded
        if value.unstored is not None:
            raise self._not_stored(encoded, value.value_type, value.unstored)
        try:
            restored = decode(encoded.codec, encoded.text, encoded.blobs.__getitem__)
            payload = payloads.write(encoded, self.execution.writer)
        except (errors.UnloadableValue, errors.UnstorableValue) as error:
            raise self._not_stored(None, "value", error) from None
        if not self.dead:
            self.completed_with(payload, returned)
        return restored

    def is_given_up(self, seq: int) -> bool:
        """Whether the attempt that began with this intent has failed, was cancelled or cut."""
        return seq <= self.lost or self.dead

    def _ends(self, *, lost: bool = False) -> None:
        """Before its end is written: nobody may say anything for it from now on."""
        if self.pulse is not None:
            self.pulse.end()
        if lost:
            self.lost = self.seq

    def completed_with(self, payload: Payload, returned: float) -> None:
        """Record a value that is encoded already.

        Args:
            payload: its stored form.
            returned: when the body returned, by the monotonic clock: the other one may be set meanwhile.
        """
        execution = self.execution
        took = returned - self.begun
        if self.outputs or self.values_before or self.globals_before or self.spec.files:
            self._record_side_effects()
        self._ends()
        event = StepCompleted(at=now(), step=self.seq, data=payload)
        end = execution.append(event)
        if took > SHOWN_AFTER:
            self.shown = True
            if not self.spec.is_async:
                execution.flush()
        if self.key.scope:
            execution.replay.own.apply(end, event)
        if self.undo is not None:
            self.undo.completed(self.seq, end, payload)
        if end >= execution.long_at:
            execution.say_long()
        self._over("live", took)

    def billed(self, usage: Usage) -> None:
        """Record what an attempt of a model call used; before its end."""
        if self.dead:
            return
        event = StepBilled(at=now(), step=self.seq, attempt=self.failures, data=usage)
        end = self.execution.append(event)
        if self.key.scope:
            self.execution.replay.own.apply(end, event)
        self.execution.stats.spent.add(usage)
        if self.row is not None:
            self.row.usage = usage

    def _record_side_effects(self) -> None:
        """Output that the body wrote, and changes that its value does not show."""
        execution = self.execution
        if self.outputs:
            execution.append(StepOutput(at=now(), step=self.seq, data=tuple(self.outputs)))
        notices = []
        if self.values_before and self.watched:
            notices.append(changed_arguments(self.call.name, self.values_before, digests(self.watched)))
        if self.globals_before:
            namespace = dict(execution.spec.namespace)
            notices.append(changed_globals(self.call.name, self.globals_before, namespace))
        if self.spec.files:
            notices.append(written_files(self.call.name, self.spec.files))
        for notice in notices:
            if notice is not None:
                execution.notice(self.seq, notice)

    def _not_stored(
        self, plainer: Encoded | None, kind: str, error: errors.ValueBoundaryError
    ) -> errors.UnstorableValue:
        """The effect has happened and is not repeated; what can be saved is saved, a person settles the rest."""
        execution = self.execution
        saved = None if plainer is None else payloads.write(plainer, execution.writer)
        data = Unstored(
            path=error.facts.get("path", "result"), value_type=error.facts.get("type", kind),
            reason=redact(str(error)), salvage=saved,
        )  # fmt: skip
        self._ends()
        execution.append(StepNotStored(at=now(), step=self.seq, data=data))
        execution.flush()
        self._over("not stored", monotonic() - self.begun)
        execution.sealed = f"the value of step `{self.call.name}` could not be stored."
        return errors.UnstorableValue(
            f"{execution.place_of_run()}, step {self.call.label} (step {self.seq}): the step was executed and its "
            f"effect DID happen, but its value cannot be stored: {error} A plainer form was saved. It will not be "
            f"executed again by itself; the next run asks what to do, and `%durable settle {self.seq} salvage|value "
            f"EXPRESSION|rerun|fail` answers.",
            **{**error.facts, **execution.where, "step": self.call.name, "number": self.seq},
        )

    def failed(self, error: BaseException) -> float | None:
        """Record how the body ended by an exception.

        Returns:
            Seconds until the next attempt; ``None`` if the exception is to be raised on.
        """
        execution = self.execution
        took = monotonic() - self.begun
        if self.dead:
            return None
        if isinstance(error, errors.LogError):
            with suppress(errors.LogError):  # that it can write nothing is told already; nobody must wait for it
                execution.attempt_over(self.seq)
            return None
        self._ends(lost=True)
        if isinstance(error, asyncio.CancelledError):
            cancelled = not execution.interrupted
            execution.append((StepCancelled if cancelled else StepInterrupted)(at=now(), step=self.seq))
            self._over("cancelled" if cancelled else "interrupted", took)
            return None
        in_doubt = self.spec.at_most_once and isinstance(error, errors.StepTimeout | errors.WorkerFailed)
        if in_doubt or isinstance(
            error, KeyboardInterrupt | errors.DurableControl | errors.ReplayError | errors.ValueBoundaryError
        ):
            execution.append(StepInterrupted(at=now(), step=self.seq))
            self._over("interrupted", took)
            return None
        return self._attempt_failed(error, took)

    def _attempt_failed(self, error: BaseException, took: float) -> float | None:
        execution = self.execution
        self.failures += 1
        inner = tuple(seq for seq in causes(error) if seq != self.seq)
        self.retried |= frozenset(inner)
        delay = None
        if isinstance(error, Exception) and not execution.sealed:
            chance = int.from_bytes(clock.token_bytes(4), "big") / 2**32
            delay = self.spec.policy.next(self.spent + self.tries, error, chance)
        info = payloads.write_error(error, execution.writer)
        data = AttemptInfo(error=info, retry_in=delay or 0.0, caused_by=inner)
        if delay is None:
            mark_failure(error, self.seq)
            self._record_failure(StepFailed, data, took)
            return None
        self._record_failure(AttemptFailed, data, took)
        self.why = f"attempt {self.failures} failed"
        execution.attempt_over(self.seq)
        return delay

    def refused(self, info: ErrorInfo) -> None:
        """Record that a model call was answered by an error; its SDK may try again (`again`), or raise."""
        if self.dead:
            return
        self.failures += 1
        self._record_failure(StepFailed, AttemptInfo(error=info), monotonic() - self.begun)

    def again(self) -> Frame:
        """Write the intent of a further attempt that an SDK makes by itself after a refusal."""
        self.execution.stats.failed -= 1
        self.why = f"attempt {self.failures} failed"
        return self.intend()

    def _record_failure(self, kind: type[StepFailed | AttemptFailed], data: AttemptInfo, took: float) -> None:
        execution = self.execution
        if self.outputs:
            execution.append(StepOutput(at=now(), step=self.seq, data=tuple(self.outputs)))
        event = kind(at=now(), step=self.seq, attempt=self.failures - 1, data=data)
        self.failed_at = execution.append(event)
        if self.key.scope:
            execution.replay.own.apply(self.failed_at, event)
        if kind is StepFailed:
            execution.flush()
            execution.stats.failed += 1
            self._over("failed", took)

    def leave(self) -> None:
        """Its driver ends by an error: if that came from the log, nobody may wait for an end that is never written."""
        if self.execution.in_flight.get(self.seq) is self and threading.get_ident() != self.execution.thread:
            self.execution.attempt_over(self.seq)

    def _over(self, status: Status, took: float) -> None:
        execution, row = self.execution, self.row
        if self.undo is not None:
            self.undo.over(status)
        if self.body is not None:
            self.body.finished()
        if row is not None:
            row.status, row.seconds = status, took
        execution.attempt_over(self.seq)
        if execution.on_change is not None:
            execution.on_change()
        if execution.pending_interrupt:
            execution.safe_point()
