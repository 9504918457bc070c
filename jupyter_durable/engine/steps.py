"""A step function with its options, and how a call of it gets its identity."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

import msgspec

from jupyter_durable import errors
from jupyter_durable.call import Call, OnCodeChange, Place
from jupyter_durable.engine.binding import Binder
from jupyter_durable.engine.context import Frame
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.limits import Limit
from jupyter_durable.engine.pulse import refuse_late
from jupyter_durable.errors import Undigestable, UnstorableValue
from jupyter_durable.retry import RetryPolicy
from jupyter_durable.values import digest


class StepSpec(msgspec.Struct):
    """A step function and how it is to be run."""

    fn: Callable[..., Any]
    name: str
    bind: Binder
    """Arguments of a call -> names and values in the order of the parameters, defaults filled in."""
    is_async: bool
    policy: RetryPolicy
    pure: bool = False
    at_most_once: bool = False
    rerun: Literal["ask", "always", "reuse"] = "ask"
    on_code_change: OnCodeChange | None = None
    key: Callable[..., Any] | None = None
    """Gives what identifies the call in place of its arguments."""
    mutates: frozenset[str] = frozenset()
    """Parameters that the body is known to change; no warning about them."""
    files: tuple[str, ...] = ()
    """Files that the body writes; a replay checks them before anything goes live."""
    outputs: bool = True
    version: str = ""
    kind: str = "step"
    carries: bool = False
    """The function carries values with it (closure cells, a partial's arguments, an instance)."""
    refused: str = ""
    """Why its value could never be stored, as far as its return annotation tells."""
    heartbeat: float | None = None
    """Seconds without a heartbeat after which it is said that nothing is heard of the body."""
    limit: Limit | None = None
    """How often, and how many at a time."""
    compensate: Callable[..., Any] | None = None
    """What undoes it, called with its value and then its arguments."""
    code: Callable[..., Any] | None = None
    """The function whose code is the evidence, where `fn` only leads to it: that of a framework's tool."""

    @property
    def subject(self) -> Callable[..., Any]:
        """The function that the user wrote."""
        return self.fn if self.code is None else self.code


def name_of(fn: Any) -> str:
    """How a function is called in history, if nobody says otherwise."""
    name = getattr(fn, "__qualname__", "") or getattr(getattr(fn, "func", None), "__qualname__", "")
    return (name or type(fn).__qualname__).replace("<locals>.", "")


def return_annotation(fn: Any) -> Any:
    """What a function says that it returns."""
    told = getattr(fn, "__annotations__", {}).get("return")
    if not isinstance(told, str):
        return told
    # A text, as `from __future__ import annotations` makes of each: a plain name is looked up, nothing is evaluated.
    first, *rest = told.strip().split(".")
    found: Any = getattr(fn, "__globals__", {}).get(first)
    for name in rest:
        found = vars(found).get(name) if isinstance(found, ModuleType | type) else None
    return found if isinstance(found, type) else told


def prepare(
    frame: Frame, spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Call, list[str], list[Any]]:
    """Give a call its identity. Nothing is executed or written.

    Returns:
        The call, the names of its parameters, and their values.
    """
    execution: Execution = frame.execution
    if execution.pid != os.getpid() or execution.ended or spec.refused:
        _refuse(execution, spec)
    if frame.attempt is not None:
        refuse_late(frame)
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
        way_out = "" if spec.kind == "tool" else "Give what identifies the call: `@step(key=lambda ...: ...)`, or pass"
        raise Undigestable(
            f"{execution.place_of_run()}, step `{spec.name}`: the call has no identity, because {error} It was not "
            f"executed. {way_out or 'Let the tool take'} plain data.",
            **{**error.facts, **execution.where, "step": spec.name},
        ) from None
    place, n = placed(frame, spec.name, identity)
    evidence = execution.evidence_of(spec.subject) if spec.kind == "step" or spec.code is not None else ""
    if spec.version:
        evidence = f"{evidence}@{spec.version}"
    call = Call(
        place, spec.name, identity, n, evidence, spec.kind, spec.pure, spec.at_most_once, spec.rerun,
        spec.on_code_change,
    )  # fmt: skip
    return call, names, values


def placed(frame: Frame, name: str, identity: str) -> tuple[Place, int]:
    """Where a call is made, and how many equal ones were made there before."""
    place = frame.place
    if frame.thread == threading.get_ident():
        return place, place.occurrence(name, identity)
    with frame.execution.lock:
        place = place.child(f"{name}:{identity[:6]}", loose=True)
        place.passes_on = True
        return place, place.occurrence(name, identity)


def _refuse(execution: Execution, spec: StepSpec) -> None:
    if execution.pid != os.getpid():
        raise errors.UsageError(
            f"Step `{spec.name}` was called in a child process of {execution.place_of_run()}. A child process never "
            f"writes the log: return the value from the child, and call the step in the kernel's process.",
            step=spec.name,
        )
    if execution.ended:
        raise errors.RunEnded(
            f"Step `{spec.name}` was called after the execution of {execution.place_of_run()} had ended; it was not "
            f"executed. Await or join what the cell starts before the cell ends.",
            step=spec.name,
        )
    raise UnstorableValue(
        f"{execution.place_of_run()}, step `{spec.name}`: {spec.refused} It was not executed. Return plain data "
        f"instead, and make such objects inside the step or outside of steps.",
        step=spec.name, **execution.where,
    )  # fmt: skip
