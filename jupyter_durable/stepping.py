"""``step``: a function becomes a step, with its options checked once, where it is defined."""

from __future__ import annotations

import asyncio
import datetime
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, cast, overload

from jupyter_durable.call import OnCodeChange
from jupyter_durable.engine.binding import binder
from jupyter_durable.engine.context import current
from jupyter_durable.engine.limits import limit_of
from jupyter_durable.engine.registering import KNOWN, check_compensation
from jupyter_durable.engine.runner import run_async, run_sync
from jupyter_durable.engine.steps import StepSpec, name_of, return_annotation
from jupyter_durable.errors import UsageError
from jupyter_durable.retry import RetryPolicy, parse_duration
from jupyter_durable.values.refused import unstorable_annotation

F = TypeVar("F", bound=Callable[..., Any])


@overload
def step(fn: F, /) -> F: ...
@overload
def step(
    *,
    name: str = ...,
    retries: int = ...,
    backoff: Any = ...,
    timeout: str | float | datetime.timedelta | None = ...,
    retry_on: Any = ...,
    pure: bool = ...,
    rerun: Literal["ask", "always", "reuse"] = ...,
    on_code_change: OnCodeChange | None = ...,
    at_most_once: bool = ...,
    key: Callable[..., Any] | None = ...,
    mutates: Iterable[str] = ...,
    files: Iterable[str] = ...,
    outputs: bool = ...,
    version: str | int = ...,
    rate: str | None = ...,
    concurrency: int | None = ...,
    heartbeat: str | float | datetime.timedelta | None = ...,
    compensate: Callable[..., Any] | None = ...,
) -> Callable[[F], F]: ...
def step(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    retries: int = 0,
    backoff: Any = 1.0,
    timeout: str | float | datetime.timedelta | None = None,
    retry_on: Any = Exception,
    pure: bool = False,
    rerun: Literal["ask", "always", "reuse"] = "ask",
    on_code_change: OnCodeChange | None = None,
    at_most_once: bool = False,
    key: Callable[..., Any] | None = None,
    mutates: Iterable[str] = (),
    files: Iterable[str] = (),
    outputs: bool = True,
    version: str | int = "",
    rate: str | None = None,
    concurrency: int | None = None,
    heartbeat: str | float | datetime.timedelta | None = None,
    compensate: Callable[..., Any] | None = None,
) -> Any:
    """Make a function a step: inside a durable run its result is recorded, and replayed instead of computed again.

    Works on functions, methods and lambdas, synchronous or asynchronous. Outside of a run the function simply runs.

    Args:
        name: how the step is called in history; default: the function's qualified name.
        retries: how many times a failed body is tried again.
        backoff: seconds before the first retry, doubled each time up to a minute; or ``(first, factor, cap)``, or a
            function of the number of the attempt.
        timeout: longest time for one attempt, in seconds or as text such as ``"30s"``.
        retry_on: exception type, tuple of types, or a predicate of the exception, that is worth a retry.
        pure: the result depends on nothing but the arguments and the step's code; after an edit elsewhere it is reused.
        rerun: what becomes of the finished step after an edit before it: ``"ask"`` (the run stops and asks once),
            ``"always"`` or ``"reuse"``.
        on_code_change: what becomes of the finished step after an edit of its own code, or of what that reads:
            ``"rerun"`` (executed again on a new branch), ``"reuse"`` (its result is used as if nothing had changed) or
            ``"error"`` (the run stops, and names it). ``None``: as after an edit before it, by `pure` and `rerun`.
        at_most_once: if the process died inside the body, do not run it again but ask what happened.
        key: function of the arguments that gives what identifies the call; for arguments without a digest.
        mutates: names of parameters that the body changes in place on purpose; no warning about them.
        files: paths of files that the body writes; a replay checks them before anything goes live.
        outputs: record what the body prints and displays, and show it again on replay.
        version: part of the step's identity as evidence: raise it to say that the meaning has changed.
        rate: how often attempts may begin, such as ``"60/min"``: one limit for all calls of the step in this process.
        concurrency: how many of them run at the same time, the same way.
        heartbeat: if the body does not call ``durable.heartbeat()`` for that long, it is said so.
        compensate: undoes what the step did, when the run is undone: a function, a coroutine function or a step, called
            with the step's value and then its arguments. They are recorded before the body runs.

    Returns:
        The function as a step; in a coroutine function's place a function that returns an awaitable.

    Raises:
        UsageError: an option that cannot be meant.

    >>> @step(retries=2)
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """
    if fn is None:
        again: Any = step
        return lambda decorated: again(
            decorated, name=name, retries=retries, backoff=backoff, timeout=timeout, retry_on=retry_on, pure=pure,
            rerun=rerun, on_code_change=on_code_change, at_most_once=at_most_once, key=key, mutates=mutates,
            files=files, outputs=outputs, version=version, rate=rate, concurrency=concurrency, heartbeat=heartbeat,
            compensate=compensate,
        )  # fmt: skip
    if isinstance(fn, (staticmethod, classmethod)):
        raise UsageError("Put `@staticmethod` or `@classmethod` above `@step`, not below it.")
    if not callable(fn):
        raise UsageError(f"`@step` goes on a function; this is a `{type(fn).__qualname__}`.")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise UsageError(
            f"`{name_of(fn)}` is a generator: what it yields later cannot be recorded as the result of a step. Return "
            f"a list, or make a step of what produces one item."
        )
    if rerun not in ("ask", "always", "reuse"):
        raise UsageError(f'`rerun` is "ask", "always" or "reuse", not {rerun!r}.')
    if on_code_change not in (None, "rerun", "reuse", "error"):
        raise UsageError(f'`on_code_change` is "rerun", "reuse" or "error", not {on_code_change!r}.')
    mutates = mutates if isinstance(mutates, str) or not isinstance(mutates, Iterable) else tuple(mutates)
    _check(fn, name, key, pure, mutates, version)
    if compensate is not None:
        check_compensation(name or name_of(fn), compensate, pure=pure)
    spec = StepSpec(
        fn=fn,
        name=name or name_of(fn),
        bind=binder(fn),
        is_async=inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__),
        policy=RetryPolicy(retries=retries, backoff=backoff, timeout=timeout, retry_on=retry_on),
        pure=pure,
        at_most_once=at_most_once,
        rerun=rerun,
        on_code_change=on_code_change,
        key=key,
        mutates=frozenset(mutates),
        files=tuple(map(str, files)),
        outputs=outputs,
        version=str(version),
        heartbeat=None if heartbeat is None else parse_duration(heartbeat, "heartbeat"),
        limit=limit_of(name or name_of(fn), rate, concurrency),
        carries=not inspect.isfunction(fn) or bool(inspect.unwrap(fn).__closure__) or hasattr(fn, "__wrapped__"),
        refused=unstorable_annotation(return_annotation(fn)) or "",
        compensate=compensate,
    )
    KNOWN.define(spec)
    return _wrapped(spec)


def _check(fn: Any, name: Any, key: Any, pure: Any, mutates: Any, version: Any) -> None:
    """Refuse what would be taken for something else without a word.

    Raises:
        UsageError: an option is of another kind than it must be.
    """
    step_name = name or name_of(fn)
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise UsageError(f"`@step(name=...)` of `{name_of(fn)}` is a text that is not empty.")
    if key is not None and not callable(key):
        raise UsageError(f"`key` of step `{step_name}` is a function of the step's arguments: `key=lambda ...: ...`.")
    if not isinstance(pure, bool):
        raise UsageError(f"`pure` of step `{step_name}` is `True` or `False`.")
    if isinstance(version, bool) or not isinstance(version, str | int):
        raise UsageError(f"`version` of step `{step_name}` is a text or a whole number.")
    if not isinstance(mutates, tuple) or not all(isinstance(each, str) for each in mutates):
        raise UsageError(f'`mutates` of step `{step_name}` is a list of names of parameters: `mutates=["messages"]`.')
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    if unknown := [each for each in mutates if each not in parameters]:
        raise UsageError(
            f"Step `{step_name}` has no parameter `{unknown[0]}`, which `mutates` names. Its parameters: "
            f"{', '.join(parameters) or 'none'}."
        )


def _wrapped(spec: StepSpec) -> Any:
    fn = spec.fn
    if spec.is_async:

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            frame = current()
            return fn(*args, **kwargs) if frame is None else run_async(frame, spec, args, kwargs)

    else:

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            frame = current()
            return fn(*args, **kwargs) if frame is None else run_sync(frame, spec, args, kwargs)

    functools.update_wrapper(wrapper, fn)
    wrapper.__durable_step__ = fn  # type: ignore[attr-defined]
    wrapper.__durable_spec__ = spec  # type: ignore[attr-defined]
    if spec.is_async:
        if sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(wrapper)
        else:
            wrapper._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]
    return wrapper


def spec_of(fn: Callable[..., Any]) -> StepSpec:
    """The step that a function is, or is made by being called as one."""
    return getattr(fn, "__durable_spec__", None) or _spec_of(fn)


@functools.lru_cache(maxsize=1024)
def _spec_of(fn: Callable[..., Any]) -> StepSpec:
    made: Any = step(fn)
    return cast("StepSpec", made.__durable_spec__)
