"""``@step(compensate=...)``: what is kept of a step so that it can be undone later, and by which function of today."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from jupyter_durable.call import Call
from jupyter_durable.engine import payloads
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.steps import StepSpec, name_of
from jupyter_durable.engine.undoable import Registration
from jupyter_durable.errors import UnstorableValue, UsageError
from jupyter_durable.stored import Compensation
from jupyter_durable.values import encode_verified
from jupyter_durable.values.secrets import has_secret


def check_compensation(step: str, compensate: Any, *, pure: bool) -> None:
    """See whether a function can undo a step.

    Raises:
        UsageError: it cannot be called, or a pure step has nothing to undo.
    """
    if not callable(compensate) or inspect.isgeneratorfunction(compensate) or inspect.isasyncgenfunction(compensate):
        raise UsageError(
            f"`{step}`: `compensate` is the function that undoes the step, `compensate=cancel`, and no generator: it "
            f"is called with the step's value, and then the step's arguments."
        )
    if pure:
        raise UsageError(f"`{step}`: a pure step has no effect, so there is nothing that `compensate` could undo.")


def compensation_name(compensate: Any) -> str:
    """How the function that undoes a step is called."""
    spec = getattr(compensate, "__durable_spec__", None)
    return spec.name if isinstance(spec, StepSpec) else name_of(compensate)


def registration(
    execution: Execution, spec: StepSpec, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Registration:
    """Keep the arguments of a step that is about to be executed. Nothing has happened yet.

    Raises:
        UnstorableValue: one of them cannot be stored, or looks like a secret; the value is not named.
    """
    names, values = spec.bind(args, kwargs)
    names = names or [f"argument {number}" for number, _ in enumerate(values, 1)]
    for name, value in zip(names, values, strict=True):
        _check(execution, spec, name, value)
    encoded, _ = encode_verified([list(args), kwargs], "arguments")
    return Registration(
        execution,
        call,
        compensation_name(spec.compensate),
        _module(spec.subject),
        payloads.write(encoded, execution.writer),
    )


def _check(execution: Execution, spec: StepSpec, name: str, value: Any) -> None:
    way_out = (
        f"Give the step what can be stored, such as a name or an id, and let it and "
        f"`{compensation_name(spec.compensate)}` find the rest in the notebook."
    )
    try:
        encoded, _ = encode_verified(value, name)
    except UnstorableValue as error:
        problem = f"cannot be stored: {error}"
        facts = {**error.facts, "argument": name}
    else:
        if not has_secret(f'"{name}":{encoded.text.decode()}'):
            return
        problem = "holds what looks like a key or a password, which would be stored in clear."
        facts = {"argument": name, "path": name, "type": type(value).__qualname__}
    raise UnstorableValue(
        f"{execution.place_of_run()}, step `{spec.name}`: its arguments are kept, so that the step can be undone, and "
        f"`{name}` {problem} It was not executed. {way_out}",
        **{**facts, **execution.where, "step": spec.name},
    )


def _module(fn: Any) -> str:
    return getattr(fn, "__module__", "") or ""


class Known:
    """What undoes the steps of this process, as they are defined now: the newest definition of each counts."""

    def __init__(self) -> None:
        self._defined: dict[str, dict[str, Callable[..., Any]]] = {}

    def define(self, spec: StepSpec) -> None:
        """A step is defined, perhaps anew, perhaps without anything that undoes it."""
        module = _module(spec.subject)
        if spec.compensate is not None:
            self._defined.setdefault(spec.name, {})[module] = spec.compensate
        elif spec.name in self._defined:
            self._defined[spec.name].pop(module, None)

    def find(self, step: str, compensation: Compensation) -> Callable[..., Any] | None:
        """What undoes a step that is recorded; ``None`` if this process does not know it.

        Args:
            step: the step's name.
            compensation: what was recorded with it.
        """
        found = self._defined.get(step, {})
        if compensation.module in found:
            return found[compensation.module]
        return next(iter(found.values())) if len(found) == 1 else None

    def forget(self) -> None:
        """As in a process that has defined nothing yet."""
        self._defined.clear()


KNOWN = Known()
"""Of this process."""
