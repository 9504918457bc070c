"""The drivers of a step: one synchronous, one asynchronous, over one `Attempt` that both share.

A step's life: a key is taken at the call; replay decides; if it is to be executed, its intent is written and flushed,
the body runs, its value is encoded, checked by decoding, written; and the *decoded* value is returned, on the first
run as on every replay.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, cast

from jupyter_durable import clock, errors
from jupyter_durable.call import LATER, Adopt, Call, Execute, Recorded
from jupyter_durable.engine.attempt import Attempt
from jupyter_durable.engine.context import CURRENT, Frame
from jupyter_durable.engine.elsewhere import Delivered
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.handing_out import hand_out, wait_for_turn
from jupyter_durable.engine.identity import DRIVERS
from jupyter_durable.engine.registering import registration
from jupyter_durable.engine.steps import StepSpec, prepare
from jupyter_durable.engine.timers import is_settled, plain_sleep
from jupyter_durable.errors import DurableControl, StepTimeout
from jupyter_durable.event_data import Notice


def run_sync(frame: Frame, spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a synchronous step inside of a run."""
    __tracebackhide__ = True
    execution: Execution = frame.execution
    call, names, values = prepare(frame, spec, args, kwargs)
    verdict = execution.ask(call)
    if type(verdict) is not Execute:
        assert isinstance(verdict, Recorded | Adopt)
        execution.order.in_turn(verdict.entry)
        return hand_out(execution, call, verdict, names, values)
    return carry_out(Attempt(execution, spec, call, verdict, names, values), args, kwargs)


def carry_out(attempt: Attempt, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Execute a synchronous step: attempt after attempt, until its value is recorded or no retry is left."""
    __tracebackhide__ = True
    execution, spec = attempt.execution, attempt.spec
    try:
        if spec.compensate is not None:
            attempt.undo = registration(execution, spec, attempt.call, args, kwargs)
        while True:
            leave = None if spec.limit is None else spec.limit.enter()
            try:
                body = attempt.intend()
                if execution.flushes:
                    execution.flush()
                    attempt.begun = clock.monotonic()  # a slow disk is no slow body, whose end would need a flush too
                if execution.pending_interrupt:
                    execution.safe_point()
                token = CURRENT.set(body)
                try:
                    value = spec.fn(*args, **kwargs) if spec.policy.timeout is None else _in_time(attempt, args, kwargs)
                except BaseException as error:
                    CURRENT.reset(token)
                    delay = attempt.failed(error)
                    if delay is None:
                        raise
                else:
                    CURRENT.reset(token)
                    return attempt.completed(value) if type(value) is not Delivered else attempt.delivered(value)
            finally:
                if leave is not None:
                    leave.give_back()
            clock.sleep(delay)
    except BaseException:
        attempt.leave()
        raise


def run_async(frame: Frame, spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, Any]:
    """Call an asynchronous step inside of a run. Its identity is taken, and decided about, now, before any await."""
    call, names, values = prepare(frame, spec, args, kwargs)
    verdict = frame.execution.ask(call, early=True)
    driver: Any = _drive(frame.execution, spec, call, verdict, names, values, args, kwargs)
    driver.__name__, driver.__qualname__ = spec.name, getattr(spec.fn, "__qualname__", spec.name)
    return cast("Coroutine[Any, Any, Any]", driver)


async def _drive(
    execution: Execution,
    spec: StepSpec,
    call: Call,
    verdict: Any,
    names: list[str],
    values: list[Any],
    args: Any,
    kwargs: Any,
) -> Any:
    __tracebackhide__ = True
    if verdict is LATER:
        verdict = execution.ask(call)
    if not isinstance(verdict, Execute):
        entry = verdict.entry
        await wait_for_turn(execution, entry)
        return hand_out(execution, call, verdict, names, values)
    if execution.ended:
        raise _too_late(spec)
    return await carry_out_async(Attempt(execution, spec, call, verdict, names, values), args, kwargs)


def _too_late(spec: StepSpec) -> errors.RunEnded:
    return errors.RunEnded(f"Step `{spec.name}` was awaited after its execution had ended; it was not executed.")


async def carry_out_async(
    attempt: Attempt, args: tuple[Any, ...], kwargs: dict[str, Any], *, in_order: bool = True
) -> Any:
    """Execute an asynchronous step: attempt after attempt, until its value is recorded or no retry is left.

    Args:
        attempt: the attempt.
        args: arguments of the body.
        kwargs: the same.
        in_order: return after those whose ends were recorded before; else the caller sees to that.
    """
    __tracebackhide__ = True
    execution, spec = attempt.execution, attempt.spec
    if spec.compensate is not None:
        attempt.undo = registration(execution, spec, attempt.call, args, kwargs)
    while True:
        leave = None if spec.limit is None else await spec.limit.enter_async()
        try:
            if leave is not None and execution.ended:
                raise _too_late(spec)
            body = attempt.intend()
            token = CURRENT.set(body)
            try:
                await execution.group.together()
                attempt.begun = clock.monotonic()
                value = await (spec.fn(*args, **kwargs) if spec.policy.timeout is None else _within(spec, args, kwargs))
            except BaseException as error:
                CURRENT.reset(token)
                delay = attempt.failed(error)
                if delay is None:
                    raise
            else:
                # No await from here to the end of `completed`: what has a result cannot be cancelled any more.
                CURRENT.reset(token)
                value = attempt.completed(value)
                waits = attempt.shown or execution.group.returning or not is_settled(asyncio.get_running_loop())
                if in_order and waits:
                    await execution.group.return_in_order(flush=attempt.shown)
                return value
        finally:
            if leave is not None:
                leave.give_back()
        await plain_sleep(delay)


DRIVERS.update((_drive.__code__, carry_out_async.__code__))


async def _within(spec: StepSpec, args: Any, kwargs: Any) -> Any:
    deadline = asyncio.timeout(spec.policy.timeout)
    try:
        async with deadline:
            return await spec.fn(*args, **kwargs)
    except TimeoutError as error:
        if deadline.expired():
            raise _timed_out(spec) from error
        raise


class _TimeIsUp(DurableControl):
    """Ends a body that took too long. No `Exception`: an SDK would take it for its own time-out, and ask again."""


def _in_time(attempt: Attempt, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a synchronous body, stopped by a signal when it takes longer than its timeout.

    Only the main thread can receive a signal. In another thread a body cannot be stopped; there a late value is
    taken all the same, since it is paid for, and the user is told.
    """
    __tracebackhide__ = True
    spec = attempt.spec
    seconds = spec.policy.timeout
    assert seconds is not None
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        value = spec.fn(*args, **kwargs)
        if clock.monotonic() - attempt.begun > seconds:
            message = (
                f"step `{spec.name}` took longer than its timeout of {seconds:g} s; a synchronous step in a thread "
                f"cannot be stopped, so its late value was taken."
            )
            attempt.execution.notice(attempt.seq, Notice(kind="note", message=message))
        return value

    def ring(_signum: int, _frame: Any) -> None:
        raise _TimeIsUp("")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return spec.fn(*args, **kwargs)
    except _TimeIsUp:
        raise _timed_out(spec) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _timed_out(spec: StepSpec) -> StepTimeout:
    return StepTimeout(f"Step `{spec.name}` took longer than its timeout of {spec.policy.timeout:g} s.", step=spec.name)
