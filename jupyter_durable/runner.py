"""The drivers of a step: one synchronous, one asynchronous, over one `Attempt` that both share.

A step's life: a key is taken at the call; replay decides; if it is to be executed, its intent is written and flushed,
the body runs, its value is encoded, checked by decoding, written; and the *decoded* value is returned, on the first
run as on every replay.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from jupyter_durable import clock, errors
from jupyter_durable.call import Adopt, Call, Execute, Recorded
from jupyter_durable.context import CURRENT, Frame
from jupyter_durable.errors import DurableError, ReplayError, RunSealed, StepTimeout, Undigestable, UnstorableValue
from jupyter_durable.events import (
    AttemptFailed,
    AttemptInfo,
    Notice,
    OutputItem,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepNotStored,
    StepOutput,
    StepStarted,
    Unstored,
)
from jupyter_durable.execution import SHOWN_AFTER, Execution, Status, StepRow, causes, mark_failure
from jupyter_durable.history import Entry
from jupyter_durable.identity import DRIVERS
from jupyter_durable.cancelling import cancelled_again
from jupyter_durable.retry import RetryPolicy
from jupyter_durable.timers import plain_sleep
from jupyter_durable.values import digest, encode_verified, redact, salvage

IMMUTABLE = frozenset({int, str, float, bool, bytes, type(None), complex})
"""Types of arguments that a body cannot change in place."""


@dataclass(slots=True)
class StepSpec:
    """A step function and how it is to be run."""

    fn: Callable[..., Any]
    name: str
    bind: Callable[[tuple[Any, ...], dict[str, Any]], tuple[list[str], list[Any]]]
    """Arguments of a call -> names and values in the order of the parameters, defaults filled in."""
    is_async: bool
    policy: RetryPolicy
    pure: bool = False
    at_most_once: bool = False
    rerun: Literal["ask", "always", "reuse"] = "ask"
    key: Callable[..., Any] | None = None
    """Gives what identifies the call in place of its arguments."""
    mutates: frozenset[str] = frozenset()
    """Parameters that the body is known to change; no warning about them."""
    outputs: bool = True
    version: str = ""
    kind: str = "step"
    carries: bool = False
    """The function carries values with it (closure cells, a partial's arguments, an instance)."""
    refused: str = ""
    """Why its value could never be stored, as far as its return annotation tells."""


def prepare(frame: Frame, spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Call, dict[str, Any]]:
    """Give a call its identity. Nothing is executed or written.

    Returns:
        The call, and its arguments by parameter name.
    """
    execution: Execution = frame.execution
    if execution.pid != os.getpid():
        raise errors.UsageError(
            f"Step `{spec.name}` was called in a child process of {execution.place_of_run()}. A child process never writes "
            f"the log: return the value from the child, and call the step in the kernel's process.",
            step=spec.name,
        )
    if execution.ended:
        raise errors.RunEnded(
            f"Step `{spec.name}` was called after the execution of {execution.place_of_run()} had ended; it was not "
            f"executed. Await or join what the cell starts before the cell ends.",
            step=spec.name,
        )
    execution.refuse_if_sealed()
    if spec.refused:
        raise UnstorableValue(
            f"{execution.place_of_run()}, step `{spec.name}`: {spec.refused} It was not executed. Return plain data "
            f"instead, and make such objects inside the step or outside of steps.",
            step=spec.name, **execution.where,
        )  # fmt: skip
    names, values = spec.bind(args, kwargs)
    try:
        if spec.key is not None:
            identity = digest([spec.key(*args, **kwargs)])
        elif spec.carries:
            # ``lambda: get(q)`` is another call for another ``q``.
            identity = digest([*values, execution.book.bound_digest(spec.fn)])
        else:
            identity = digest(values)
    except Undigestable as error:
        raise Undigestable(
            f"{execution.place_of_run()}, step `{spec.name}`: the call has no identity, because {error} It was not "
            f"executed. Give what identifies the call: `@step(key=lambda ...: ...)`, or pass plain data.",
            **{**error.facts, **execution.where, "step": spec.name},
        ) from None
    place = frame.place
    if frame.thread != threading.get_ident():
        with execution._lock:  # noqa: SLF001 - the numbers of a place are the execution's
            place = place.child(f"{spec.name}:{identity[:6]}")
            n = place.occurrence(spec.name, identity)
    else:
        n = place.occurrence(spec.name, identity)
    evidence = execution.evidence_of(spec.fn) if spec.kind == "step" else ""
    if spec.version:
        evidence = f"{evidence}@{spec.version}"
    call = Call(place, spec.name, identity, n, evidence, spec.kind, spec.pure, spec.at_most_once, spec.rerun)
    return call, dict(zip(names, values, strict=False))


class Attempt:
    """The executing of one step, over all its attempts."""

    def __init__(
        self, execution: Execution, frame: Frame, spec: StepSpec, call: Call, verdict: Execute, args: dict[str, Any]
    ) -> None:
        self.execution = execution
        self.frame = frame
        self.spec = spec
        self.call = call
        self.args = args
        self.why = verdict.why
        self.entry: Entry | None = verdict.entry
        self.failures = verdict.entry.attempts if verdict.entry is not None else 0
        self.tries = 0
        self.seq = -1
        self.dead = False
        """The execution has ended over it: nothing more of it is recorded."""
        self.shown = False
        """It took long enough that its end must be flushed before its value is returned."""
        self.thread = threading.get_ident()
        self.key = call.key
        self.body: Frame | None = None
        self.retried: frozenset[int] = frozenset()
        self.outputs: list[OutputItem] | None = None
        self.begun = 0.0
        self.row = StepRow(-1, call.name, "running", 0.0, verdict.why)
        self._watched = {
            name: value for name, value in args.items() if type(value) not in IMMUTABLE and name not in spec.mutates
        }
        self._before: dict[str, str] = {}

    # Begin -------------------------------------------------------------------------------------------------------

    def intend(self) -> Frame:
        """Write the intent of an attempt; the caller flushes before it runs the body in the returned frame."""
        execution, call, key = self.execution, self.call, self.key
        if self.tries == 0:
            self._refuse_stale()
            if self.entry is not None:
                execution.mark_passed(self.entry)
            execution.stats.live += 1
            execution.stats.rows.append(self.row)
        event = StepStarted(
            at=clock.now(), name=key.name, digest=key.digest, n=key.n, scope=key.scope, evidence=call.evidence,
            kind=call.kind, attempt=self.failures, pure=call.pure, why=self.why,
        )  # fmt: skip
        self.seq = seq = execution.append(event)
        self.row.number = seq if self.row.number < 0 else self.row.number
        if key.scope:
            execution.replay.begun(seq, event)
        place = call.place.body(key)
        place.retried = self.retried
        if self.tries:
            execution.replay.match.reopen(place.path)
        self.outputs = [] if execution.spec.capture_outputs and self.spec.outputs else None
        self.body = Frame(execution, place, key, self.outputs)
        self.tries += 1
        execution.in_flight[seq] = self
        if self._watched and len(execution.in_flight) == 1:
            self._before = _digests(self._watched)
        else:
            self._before = {}
        self.begun = clock.monotonic()
        return self.body

    def _refuse_stale(self) -> None:
        execution = self.execution
        for value in self.args.values() if execution.stale else ():
            for stale, message in execution.stale:
                if _holds(value, stale):
                    self._hidden(message)
        if execution.stale_names:
            parts = execution.book.of(self.spec.fn).parts
            for name, message in execution.stale_names.items():
                if f"var:{name}" in parts:
                    self._hidden(message)

    def _hidden(self, message: str) -> None:
        execution = self.execution
        execution.sealed = message
        raise errors.HiddenEffectError(
            f"{execution.place_of_run()}, step {self.call.label}: it would read what a replayed step had changed in place "
            f"on its first run, and replay does not repeat such changes: {message} Nothing was executed. Return the "
            f"changed value from that step and use what it returns; then run the cell again.",
            step=self.call.name, **execution.where,
        )  # fmt: skip

    # Ends --------------------------------------------------------------------------------------------------------

    def completed(self, value: Any) -> Any:
        """Record the value; return it as replay will return it."""
        execution = self.execution
        took = clock.monotonic() - self.begun
        if self.dead:
            return value
        try:
            encoded, restored = encode_verified(value)
        except UnstorableValue as error:
            self._not_stored(value, error)
            raise
        if self.outputs:
            execution.append(StepOutput(at=clock.now(), step=self.seq, data=tuple(self.outputs)))
        if self._before:
            self._look_for_changes()
        event = StepCompleted(at=clock.now(), step=self.seq, data=execution.payload(encoded))
        end = execution.append(event)
        self.shown = took > SHOWN_AFTER
        if self.shown and not self.spec.is_async:
            execution.flush()
        if self.key.scope:
            execution.replay.own.apply(end, event)
        self._over("live", took)
        return restored

    def _not_stored(self, value: Any, error: UnstorableValue) -> None:
        """The effect has happened and is not repeated; what can be saved is saved, a person settles the rest."""
        execution = self.execution
        saved = execution.payload(salvage(value))
        data = Unstored(
            path=error.facts.get("path", "result"), value_type=error.facts.get("type", type(value).__qualname__),
            reason=redact(str(error)), salvage=saved,
        )  # fmt: skip
        execution.append(StepNotStored(at=clock.now(), step=self.seq, data=data))
        execution.flush()
        self._over("not stored", clock.monotonic() - self.begun)
        execution.sealed = f"the value of step `{self.call.name}` could not be stored"
        error.args = (
            f"{execution.place_of_run()}, step {self.call.label} (step {self.seq}): the step was executed and its effect "
            f"DID happen, but its value cannot be stored: {error} A plainer form was saved. It will not be executed again "
            f"by itself; the next run asks what to do, and `%durable settle {self.seq} salvage|value EXPRESSION|rerun|fail` "
            f"answers.",
        )
        error.facts.update(execution.where, step=self.call.name, number=self.seq)

    def failed(self, error: BaseException) -> float | None:
        """Record how the body ended by an exception.

        Returns:
            Seconds until the next attempt; ``None`` if the exception is to be raised on.
        """
        execution = self.execution
        took = clock.monotonic() - self.begun
        if self.dead:
            return None
        if isinstance(error, errors.LogError):
            execution.in_flight.pop(self.seq, None)
            return None
        if isinstance(error, asyncio.CancelledError):
            cancelled = not execution.interrupted
            event = StepCancelled if cancelled else StepInterrupted
            execution.append(event(at=clock.now(), step=self.seq))
            self._over("cancelled" if cancelled else "interrupted", took)
            return None
        in_doubt = self.spec.at_most_once and isinstance(error, StepTimeout)
        if in_doubt or isinstance(error, KeyboardInterrupt | RunSealed | ReplayError | errors.ValueBoundaryError):
            execution.append(StepInterrupted(at=clock.now(), step=self.seq))
            self._over("interrupted", took)
            return None
        self.failures += 1
        inner = tuple(seq for seq in causes(error) if seq != self.seq)
        self.retried |= frozenset(inner)
        delay = None
        if isinstance(error, Exception) and not execution.sealed:
            delay = self.spec.policy.next(self.tries, error, _random())
        info = AttemptInfo(error=execution.error_info(error), retry_in=delay or 0.0, caused_by=inner)
        if self.outputs:
            execution.append(StepOutput(at=clock.now(), step=self.seq, data=tuple(self.outputs)))
        kind = StepFailed if delay is None else AttemptFailed
        event = kind(at=clock.now(), step=self.seq, attempt=self.failures - 1, data=info)
        end = execution.append(event)
        if self.key.scope:
            execution.replay.own.apply(end, event)
        if delay is None:
            execution.flush()
            mark_failure(error, self.seq)
            execution.stats.failed += 1
            self._over("failed", took)
            return None
        self.why = f"attempt {self.failures} failed"
        execution.attempt_over(self.seq)
        return delay

    def _over(self, status: Status, took: float) -> None:
        if self.body is not None:
            self.body.place.finished()
        self.row.status, self.row.seconds = status, took
        self.execution.attempt_over(self.seq)
        self.execution.on_change()
        self.execution.safe_point()

    def _look_for_changes(self) -> None:
        """Notice arguments that the body changed in place: replay returns the value and cannot repeat the change."""
        after = _digests(self._watched)
        changed = tuple(sorted(name for name, before in self._before.items() if after.get(name) != before))
        if not changed:
            return
        which = ", ".join(f"`{name}`" for name in changed)
        message = (
            f"step `{self.call.name}` changed its argument {which} in place; on replay its body does not run and the change "
            f"is not repeated. Return the new value and use what the step returns, or declare "
            f"`@step(mutates=[...])` if nothing reads the change."
        )
        self.execution.notice(self.seq, Notice(kind="mutated_argument", message=message, names=changed))


def run_sync(frame: Frame, spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a synchronous step inside of a run."""
    __tracebackhide__ = True
    execution: Execution = frame.execution
    call, named = prepare(frame, spec, args, kwargs)
    verdict = execution.ask(call)
    if not isinstance(verdict, Execute):
        entry = verdict.entry  # type: ignore[union-attr]
        _emit(execution, entry)
        execution.mark_passed(entry)
        return _hand_out(execution, call, verdict, named)
    attempt = Attempt(execution, frame, spec, call, verdict, named)
    while True:
        body = attempt.intend()
        execution.flush()
        execution.safe_point()
        token = CURRENT.set(body)
        try:
            value = _call(attempt, spec, args, kwargs)
        except BaseException as error:
            CURRENT.reset(token)
            delay = attempt.failed(error)
            if delay is None:
                raise
        else:
            CURRENT.reset(token)
            return attempt.completed(value)
        clock.sleep(delay)


def run_async(
    frame: Frame, spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Coroutine[Any, Any, Any]:
    """Call an asynchronous step inside of a run. Its identity is taken, and decided about, now, before any await."""
    execution: Execution = frame.execution
    call, named = prepare(frame, spec, args, kwargs)
    verdict = execution.ask(call)
    driver = _drive(frame, spec, call, verdict, named, args, kwargs)
    driver.__name__, driver.__qualname__ = spec.name, getattr(spec.fn, "__qualname__", spec.name)
    return driver


async def _drive(
    frame: Frame, spec: StepSpec, call: Call, verdict: Any, named: dict[str, Any], args: Any, kwargs: Any
) -> Any:
    __tracebackhide__ = True
    execution: Execution = frame.execution
    if not isinstance(verdict, Execute):
        entry = verdict.entry
        await _turn(execution, entry)
        _emit(execution, entry)
        return _hand_out(execution, call, verdict, named)
    if execution.ended:
        raise errors.RunEnded(f"Step `{spec.name}` was awaited after its execution had ended; it was not executed.")
    attempt = Attempt(execution, frame, spec, call, verdict, named)
    while True:
        body = attempt.intend()
        token = CURRENT.set(body)
        try:
            await execution.flush_together()
            if spec.policy.timeout is None:
                value = await spec.fn(*args, **kwargs)
            else:
                value = await _within(spec, args, kwargs)
        except BaseException as error:
            CURRENT.reset(token)
            delay = attempt.failed(error)
            if delay is None:
                raise
        else:
            # No await from here to the end of `completed`: what has a result cannot be cancelled any more.
            CURRENT.reset(token)
            value = attempt.completed(value)
            if attempt.shown or execution.returning:
                await execution.return_in_order(flush=attempt.shown)
            return value
        await plain_sleep(delay)


DRIVERS.add(_drive.__code__)


async def _within(spec: StepSpec, args: Any, kwargs: Any) -> Any:
    deadline = asyncio.timeout(spec.policy.timeout)
    try:
        async with deadline:
            return await spec.fn(*args, **kwargs)
    except TimeoutError as error:
        if deadline.expired():
            raise _timed_out(spec) from error
        raise


def _timed_out(spec: StepSpec) -> StepTimeout:
    return StepTimeout(f"Step `{spec.name}` took longer than its timeout of {spec.policy.timeout:g} s.", step=spec.name)


async def _turn(execution: Execution, entry: Entry) -> None:
    """Wait until it is the turn of a recorded result."""
    if asyncio.get_running_loop() is not execution.loop:
        execution.mark_passed(entry)
        return
    turnstile = execution.turnstile
    turnstile.started(entry)
    if entry.state == "cancelled":
        # The program cancelled this step, and being the same program it will do so again, at this moment or later.
        await turnstile.turn(entry)
        await cancelled_again()
    if not turnstile.ready(entry):
        await turnstile.turn(entry)
        execution.replay.relaxed |= turnstile.relaxed


def _hand_out(execution: Execution, call: Call, verdict: Recorded | Adopt, named: dict[str, Any]) -> Any:
    entry = verdict.entry
    if isinstance(verdict, Adopt):
        if entry.state == "cancelled":
            raise asyncio.CancelledError
        execution.adopt(entry, call, verdict.why)
    execution.note_replayed(entry, verdict, call, named)
    execution.safe_point()
    return execution.result(entry, call)


def _emit(execution: Execution, entry: Entry) -> None:
    """Write again what the step wrote when it was executed."""
    if entry.outputs and execution.spec.capture_outputs:
        from jupyter_durable.outputs import emit

        emit(entry.outputs)


def _call(attempt: Attempt, spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a synchronous body, stopped by a signal when it takes longer than its timeout.

    Only the main thread can receive a signal. In another thread a body cannot be stopped; there a late value is
    taken all the same, since it is paid for, and the user is told.
    """
    __tracebackhide__ = True
    seconds = spec.policy.timeout
    if seconds is None:
        return spec.fn(*args, **kwargs)
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        value = spec.fn(*args, **kwargs)
        if clock.monotonic() - attempt.begun > seconds:
            message = (
                f"step `{spec.name}` took longer than its timeout of {seconds:g} s; a synchronous step in a thread "
                f"cannot be stopped, so its late value was taken."
            )
            attempt.execution.notice(attempt.seq, Notice(kind="note", message=message))
        return value

    def ring(signum: int, frame: Any) -> None:
        raise _timed_out(spec)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return spec.fn(*args, **kwargs)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _digests(values: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name, value in values.items():
        try:
            found[name] = digest(value)
        except DurableError:
            continue  # identified by `key=`; what has no digest cannot be compared
    return found


def _holds(value: Any, stale: Any, depth: int = 3) -> bool:
    """Whether a value is, or contains near its surface, an object that replay left unchanged."""
    if value is stale:
        return True
    if depth == 0:
        return False
    if isinstance(value, dict):
        return any(_holds(inner, stale, depth - 1) for inner in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds(inner, stale, depth - 1) for inner in value)
    inside = getattr(value, "__dict__", None)
    return isinstance(inside, dict) and any(_holds(inner, stale, depth - 1) for inner in inside.values())


def _random() -> float:
    return int.from_bytes(clock.token_bytes(4), "big") / 2**32
