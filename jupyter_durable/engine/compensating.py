"""Undoing: each effect by a step of its own, newest first. The drivers of a run's own undo, and of a person's.

Each of these steps lies in a place of its own and is known by the id of the effect alone. So one that is done is done,
in whatever order, by whichever code, and however often an undo was killed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from jupyter_durable import errors
from jupyter_durable.call import Call, Execute
from jupyter_durable.engine import payloads
from jupyter_durable.engine.attempt import Attempt
from jupyter_durable.engine.context import Frame, current
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.handing_out import hand_out, wait_for_turn
from jupyter_durable.engine.registering import KNOWN
from jupyter_durable.engine.runner import carry_out, carry_out_async, run_async, run_sync
from jupyter_durable.engine.steps import StepSpec
from jupyter_durable.entries import Effect
from jupyter_durable.event_data import Notice, Payload
from jupyter_durable.events import StepCompleted
from jupyter_durable.history import History
from jupyter_durable.keys import inner_scope
from jupyter_durable.log.base import EventLog
from jupyter_durable.retry import RetryPolicy

KIND = "undo"
"""Kind of a step that undoes another one."""

SpecOf = Callable[[Callable[..., Any]], StepSpec]
"""Makes a step of a function, as calling it as one does."""


class Ready(msgspec.Struct):
    """An effect, and the function that undoes it."""

    effect: Effect
    spec: StepSpec

    @property
    def said(self) -> str:
        """As people say it."""
        return f"{self.effect.entry.label} by `{self.spec.name}`"


def ready(effects: Iterable[Effect], where: str, spec_of: SpecOf, *, awaits: bool) -> list[Ready]:
    """Find what undoes each effect, in the functions that this process has now.

    Args:
        effects: what is to be undone.
        where: the run, for messages.
        spec_of: makes a step of a function.
        awaits: the caller can await.

    Raises:
        UsageError: functions are missing, or would have to be awaited. Nothing was undone.
    """
    found, missing, waiting = [], [], []
    for effect in effects:
        fn = KNOWN.find(effect.entry.key.name, effect.compensation)
        if fn is None:
            missing.append(effect)
            continue
        spec = spec_of(fn)
        waiting += [spec.name] if spec.is_async and not awaits else []
        found.append(Ready(effect, msgspec.structs.replace(spec, kind=KIND, compensate=None)))
    if missing:
        steps = ", ".join(dict.fromkeys(f"`{effect.entry.key.name}`" for effect in missing))
        by = ", ".join(dict.fromkeys(f"`{effect.compensation.name}`" for effect in missing))
        raise errors.UsageError(
            f"{where}: nothing was undone, because this process does not know what undoes {steps}. Run the cell, or "
            f"import the module, that defines {steps} with `compensate=` ({by}), and undo again.",
            steps=[effect.entry.label for effect in missing],
        )  # fmt: skip
    if waiting:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(waiting))
        raise errors.UsageError(
            f"{where}: nothing was undone, because {names} must be awaited: say `await durable.undo(...)` in a "
            f"coroutine, or in the code of a cell."
        )
    return found


# One effect ----------------------------------------------------------------------------------------------------------


def undo_sync(frame: Frame, one: Ready) -> None:
    """Undo one effect, or take from history that it is undone."""
    __tracebackhide__ = True
    execution: Execution = frame.execution
    call = _call(frame, one)
    verdict: Any = execution.ask(call)
    if not isinstance(verdict, Execute):
        execution.order.passed(verdict.entry)
        hand_out(execution, call, verdict, [], [])
        return
    args, kwargs = _arguments(execution, one)
    carry_out(Attempt(execution, one.spec, call, verdict, *one.spec.bind(args, kwargs)), args, kwargs)


async def undo_async(frame: Frame, one: Ready) -> None:
    """The same, awaiting what must be awaited."""
    __tracebackhide__ = True
    execution: Execution = frame.execution
    call = _call(frame, one)
    verdict: Any = execution.ask(call)
    if not isinstance(verdict, Execute):
        await wait_for_turn(execution, verdict.entry)
        hand_out(execution, call, verdict, [], [])
        return
    args, kwargs = _arguments(execution, one)
    attempt = Attempt(execution, one.spec, call, verdict, *one.spec.bind(args, kwargs))
    if one.spec.is_async:
        await carry_out_async(attempt, args, kwargs)
    else:
        carry_out(attempt, args, kwargs)


def _call(frame: Frame, one: Ready) -> Call:
    identity = one.effect.compensation.id
    place = frame.place.child(f"undo:{identity[:8]}", loose=True)
    return Call(place, one.spec.name, identity, 0, kind=KIND, at_most_once=one.spec.at_most_once)


def _arguments(execution: Execution, one: Ready) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The step's value and its arguments, brought back from the log."""
    effect, log = one.effect, execution.log
    try:
        args, kwargs = payloads.read(effect.compensation.arguments, log)
        return (payloads.read(_value(effect, log), log), *args), kwargs
    except errors.UnloadableValue as error:
        raise errors.UnloadableValue(
            f"{execution.place_of_run()}: {effect.entry.label} cannot be undone, because its recorded value or "
            f"arguments cannot come back: {error}",
            **{**error.facts, **execution.where, "step": effect.entry.label},
        ) from None


def _value(effect: Effect, log: EventLog) -> Payload:
    payload = effect.payload
    assert payload is not None
    if payload.data is msgspec.UNSET and payload.blob is None:  # a long history was read without values
        event = log.reload(effect.execution, effect.end).event
        assert isinstance(event, StepCompleted)
        return event.data
    return payload


# A run's own undo ----------------------------------------------------------------------------------------------------


def undo_own(frame: Frame, spec_of: SpecOf, *, awaits: bool) -> Any:
    """Undo what a run has completed so far, as a step of this very run.

    Args:
        frame: where the program says so.
        spec_of: makes a step of a function.
        awaits: the caller awaits.

    Returns:
        Labels of the steps that were undone, newest first; if the caller awaits, an awaitable.
    """
    __tracebackhide__ = True
    policy = RetryPolicy()
    if awaits:

        async def undo() -> list[str]:
            __tracebackhide__ = True
            inside, todo = _todo(spec_of, awaits=True)
            for number, one in enumerate(todo):
                with _told(todo, number):
                    await undo_async(inside, one)
            return [one.effect.entry.label for one in todo]

        spec = StepSpec(undo, "durable.undo", _no_arguments, True, policy, kind=KIND, outputs=False)
        return run_async(frame, spec, (), {})

    def undo_now() -> list[str]:
        __tracebackhide__ = True
        inside, todo = _todo(spec_of, awaits=False)
        for number, one in enumerate(todo):
            with _told(todo, number):
                undo_sync(inside, one)
        return [one.effect.entry.label for one in todo]

    spec = StepSpec(undo_now, "durable.undo", _no_arguments, False, policy, kind=KIND, outputs=False)
    return run_sync(frame, spec, (), {})


def _no_arguments(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> tuple[list[str], list[Any]]:
    return [], []


@contextlib.contextmanager
def _told(todo: Sequence[Ready], number: int) -> Iterator[None]:
    """Say, at an exception of the user's, what was undone before it and what is left."""
    try:
        yield
    except Exception as error:
        error.add_note(f"durable.undo: {how_far(todo, number)}")
        raise


def how_far(todo: Sequence[Ready], number: int) -> str:
    """What is undone and what is not, when the one of this number has failed."""
    done = ", ".join(one.effect.entry.label for one in todo[:number]) or "nothing"
    left = ", ".join(one.effect.entry.label for one in todo[number:])
    return f"undone is {done}; not undone: {left}."


def _todo(spec_of: SpecOf, *, awaits: bool) -> tuple[Frame, list[Ready]]:
    """What a run's own undo has to do, those that it has done in an earlier execution included."""
    inside = current()
    assert inside is not None
    assert inside.step is not None
    execution: Execution = inside.execution
    own, live = execution.replay.own, execution.undoable
    _refuse_unknown(execution, own)
    scope = inner_scope(inside.step.key)
    effects = [effect for effect in {**own.effects, **live.effects}.values() if _is_left(own, effect, scope)]
    effects.sort(key=lambda effect: -effect.end)
    return inside, ready(effects, execution.place_of_run(), spec_of, awaits=awaits)


def _is_left(own: History, effect: Effect, scope: str) -> bool:
    """Not undone, or undone by this very undo."""
    identity = effect.compensation.id
    if identity not in own.undone:
        return True
    by = own.undone[identity]
    return by is not None and f"{by.key.scope}/".startswith(f"{scope}/")


def _refuse_unknown(execution: Execution, own: History) -> None:
    live, match = execution.undoable, execution.replay.match
    if live.running:
        names = ", ".join(live.running.values())
        raise errors.UsageError(
            f"{execution.place_of_run()}: nothing was undone, because {names} still runs: await or cancel what the "
            f"cell has started before `durable.undo()`.",
            steps=list(live.running.values()),
        )  # fmt: skip
    doubtful = [
        entry.label
        for entry in own.entries.values()
        if entry.compensation is not None
        and entry.state in ("open", "interrupted", "not_stored")
        and not match.is_served(entry)
    ]
    doubtful += [label for label, status in live.unknown.values() if status != "cancelled"]
    if doubtful:
        names = ", ".join(doubtful)
        raise errors.InDoubtError(
            f"{execution.place_of_run()}: nothing was undone, because nobody knows whether {names} happened. Say so: "
            f"`%durable settle STEP value EXPRESSION` or `%durable settle STEP fail`, then run the cell again.",
            **execution.where, steps=doubtful,
        )  # fmt: skip
    for label, _ in live.unknown.values():
        message = f"{label} was cancelled in its middle: it is not undone, and whether it happened is not known."
        execution.notice(-1, Notice(kind="note", message=message))


# A person's undo -----------------------------------------------------------------------------------------------------


class Effort(msgspec.Struct):
    """How far a person's undo has come."""

    todo: list[Ready]
    done: int = 0


def carry_out_all(frame: Frame, effort: Effort) -> None:
    """Undo one after the other."""
    for one in effort.todo:
        undo_sync(frame, one)
        effort.done += 1


async def carry_out_all_async(frame: Frame, effort: Effort) -> None:
    """The same, awaiting what must be awaited."""
    for one in effort.todo:
        await undo_async(frame, one)
        effort.done += 1
