"""A call of a tool that a framework makes, as a step: what all hooks into such frameworks share.

A hook says what the tool is called, with which arguments, and whose code it runs (`ToolCall`), and gives the body, a
function without arguments that calls the tool as the framework would have done.

Frameworks turn what a tool raises into an answer for the model. That is right for a failure of the tool, which is
recorded and raised again on replay; an error that must stop the run leaves as `RunStopped` instead.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Coroutine, Mapping
from types import MethodType
from typing import Any

import msgspec

from jupyter_durable import errors
from jupyter_durable.engine.context import Frame
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.identity import DRIVERS
from jupyter_durable.engine.runner import run_async, run_sync
from jupyter_durable.engine.steps import StepSpec
from jupyter_durable.retry import RetryPolicy
from jupyter_durable.values import comparable

_ONCE = RetryPolicy()

_STOPPED: weakref.WeakKeyDictionary[Execution, errors.DurableError] = weakref.WeakKeyDictionary()
"""What has stopped an execution, for its other tools: a framework that calls several at once lets any error out."""


class ToolCall(msgspec.Struct):
    """One call of a tool."""

    name: str
    arguments: Mapping[str, Any]
    """What the model, or the program, gives; nothing that the framework adds."""
    code: Callable[..., Any] | None = None
    """The function of the tool, whose code is the evidence; ``None`` if it is not in this process."""
    identity: tuple[Any, ...] = ()
    """What identifies the call beside name and arguments."""
    at_most_once: bool = False
    shared: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Objects that the tool shares with others and may change in place, by what people call them."""


def run_tool(frame: Frame, call: ToolCall, body: Callable[[], Any]) -> Any:
    """Call a synchronous tool as a step.

    Raises:
        RunStopped: the run cannot go on.
    """
    __tracebackhide__ = True
    try:
        return run_sync(frame, _spec(frame.execution, call, body, is_async=False), (), {})
    except (errors.DurableError, errors.RunSealed) as error:
        raise _let_out(frame.execution, error) from None


def run_tool_async(
    frame: Frame, call: ToolCall, body: Callable[[], Coroutine[Any, Any, Any]]
) -> Coroutine[Any, Any, Any]:
    """Call an asynchronous tool as a step. Its identity is taken now.

    Raises:
        RunStopped: the run cannot go on.
    """
    __tracebackhide__ = True
    try:
        driver = run_async(frame, _spec(frame.execution, call, body, is_async=True), (), {})
    except (errors.DurableError, errors.RunSealed) as error:
        raise _let_out(frame.execution, error) from None
    return _drive(frame.execution, driver)


async def _drive(execution: Execution, driver: Coroutine[Any, Any, Any]) -> Any:
    __tracebackhide__ = True
    try:
        return await driver
    except (errors.DurableError, errors.RunSealed) as error:
        raise _let_out(execution, error) from None


DRIVERS.add(_drive.__code__)


def declared(*told: Mapping[str, Any] | None) -> bool:
    """Whether what a tool says of itself makes a second execution harmful: ``{"idempotent": False}``.

    Args:
        *told: dictionaries in which a framework keeps what it does not look at itself.
    """
    return any(each.get("idempotent") is False for each in told if each is not None)


def _let_out(execution: Execution, error: errors.DurableError | errors.RunSealed) -> BaseException:
    """The form in which one of our errors leaves a tool."""
    if isinstance(error, errors.RunSealed):
        first = _STOPPED.get(execution)
        return error if first is None else errors.RunStopped(first)
    if isinstance(error, errors.StepTimeout):
        return error  # a step that the tool calls failed: a failure like any other
    if isinstance(error, errors.InDoubtError) and not execution.sealed:
        return error  # a person has said that the tool failed, and the program goes on from there
    if execution.sealed:
        _STOPPED.setdefault(execution, error)
    return errors.RunStopped(error)


def _spec(execution: Execution, call: ToolCall, body: Callable[[], Any], *, is_async: bool) -> StepSpec:
    code = call.code
    shared = {name: value for name, value in _shared(call).items() if not comparable(value).startswith("?")}
    names, values = [*call.arguments, *shared], [*call.arguments.values(), *shared.values()]
    own: StepSpec | None = getattr(code, "__durable_spec__", None)
    spec = StepSpec(
        fn=body, name=call.name.replace("/", "|"), bind=lambda _args, _kwargs: (names, values), is_async=is_async,
        policy=_ONCE, at_most_once=call.at_most_once, kind="tool", code=code,
        key=lambda: [dict(call.arguments), *call.identity, _carried(execution, code)],
    )  # fmt: skip
    if own is not None:
        # What a person has declared about the function holds for the tool around it. Not `at_most_once`: the inner
        # step asks, and one question is enough.
        spec.pure, spec.rerun, spec.version = own.pure, own.rerun, own.version
    return spec


def _shared(call: ToolCall) -> dict[str, Any]:
    """What the body may change in place although it is no argument; a `@step` watches its own."""
    if hasattr(call.code, "__durable_spec__"):
        return {}
    owner = {"self": call.code.__self__} if isinstance(call.code, MethodType) else {}
    return {**owner, **call.shared}


def _carried(execution: Execution, code: Callable[..., Any] | None) -> str | None:
    """Digest of what a function carries with it: two tools made by one factory are two.

    Not the object of a method: what one call of a tool changes in it must not make the next call another one.
    """
    if isinstance(code, functools.partial) or (
        inspect.isfunction(code) and (code.__closure__ or hasattr(code, "__wrapped__"))
    ):
        return execution.book.bound_digest(code)
    return None
