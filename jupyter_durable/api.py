"""The words of the program: ``step`` and ``durable``.

They depend on the current frame and on the step drivers; a call outside of a durable run simply runs.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import inspect
import sys
import uuid as _uuid
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Literal, TypeVar, cast, overload

from jupyter_durable import clock
from jupyter_durable.engine.binding import binder
from jupyter_durable.engine.context import current
from jupyter_durable.engine.limits import limit_of
from jupyter_durable.engine.runner import run_async, run_sync
from jupyter_durable.engine.steps import StepSpec, name_of, return_annotation
from jupyter_durable.errors import NotInRun, UsageError
from jupyter_durable.log.base import EventLog
from jupyter_durable.retry import RetryPolicy, parse_duration
from jupyter_durable.running import RunContext
from jupyter_durable.values.refused import unstorable_annotation
from jupyter_durable.versions import VersioningWords
from jupyter_durable.waiting import WaitingWords
from jupyter_durable.working import WorkingWords

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
    at_most_once: bool = ...,
    key: Callable[..., Any] | None = ...,
    mutates: Iterable[str] = ...,
    files: Iterable[str] = ...,
    outputs: bool = ...,
    version: str | int = ...,
    rate: str | None = ...,
    concurrency: int | None = ...,
    heartbeat: str | float | datetime.timedelta | None = ...,
) -> Callable[[F], F]: ...
def step(
    fn: Any = None,
    /,
    *,
    name: str = "",
    retries: int = 0,
    backoff: Any = 1.0,
    timeout: str | float | datetime.timedelta | None = None,
    retry_on: Any = Exception,
    pure: bool = False,
    rerun: Literal["ask", "always", "reuse"] = "ask",
    at_most_once: bool = False,
    key: Callable[..., Any] | None = None,
    mutates: Iterable[str] = (),
    files: Iterable[str] = (),
    outputs: bool = True,
    version: str | int = "",
    rate: str | None = None,
    concurrency: int | None = None,
    heartbeat: str | float | datetime.timedelta | None = None,
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
        at_most_once: if the process died inside the body, do not run it again but ask what happened.
        key: function of the arguments that gives what identifies the call; for arguments without a digest.
        mutates: names of parameters that the body changes in place on purpose; no warning about them.
        files: paths of files that the body writes; a replay checks them before anything goes live.
        outputs: record what the body prints and displays, and show it again on replay.
        version: part of the step's identity as evidence: raise it to say that the meaning has changed.
        rate: how often attempts may begin, such as ``"60/min"``: one limit for all calls of the step in this process.
        concurrency: how many of them run at the same time, the same way.
        heartbeat: if the body does not call ``durable.heartbeat()`` for that long, it is said so.

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
            rerun=rerun, at_most_once=at_most_once, key=key, mutates=mutates, files=files, outputs=outputs,
            version=version, rate=rate, concurrency=concurrency, heartbeat=heartbeat,
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
    spec = StepSpec(
        fn=fn,
        name=name or name_of(fn),
        bind=binder(fn),
        is_async=inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__),
        policy=RetryPolicy(retries=retries, backoff=backoff, timeout=timeout, retry_on=retry_on),
        pure=pure,
        at_most_once=at_most_once,
        rerun=rerun,
        key=key,
        mutates=frozenset(mutates),
        files=tuple(map(str, files)),
        outputs=outputs,
        version=str(version),
        heartbeat=None if heartbeat is None else parse_duration(heartbeat, "heartbeat"),
        limit=limit_of(name or name_of(fn), rate, concurrency),
        carries=not inspect.isfunction(fn) or bool(inspect.unwrap(fn).__closure__) or hasattr(fn, "__wrapped__"),
        refused=unstorable_annotation(return_annotation(fn)) or "",
    )
    return _wrapped(spec)


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


class Durable(WaitingWords, WorkingWords, VersioningWords):
    """The namespace ``durable``: words for the code of a durable run."""

    def step(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function that cannot be decorated as a step.

        Args:
            fn: any callable, also one of a library.
            *args: its arguments.
            **kwargs: its keyword arguments.

        Returns:
            What it returns; for a coroutine function, an awaitable.

        >>> Durable().step(max, 3, 5)
        5
        """
        __tracebackhide__ = True
        if not callable(fn):
            raise UsageError(
                "`durable.step(fn, *args)` calls `fn` with the arguments: give the function, not its result."
            )
        spec = spec_of(fn)
        frame = current()
        if frame is None:
            return fn(*args, **kwargs)
        return (run_async if spec.is_async else run_sync)(frame, spec, args, kwargs)

    def run(
        self,
        name: str,
        *,
        log: str | EventLog | None = None,
        fresh: bool = False,
        from_step: str = "",
        strict: bool = False,
        replay_only: bool = False,
        reuse: Literal["", "all", "pure", "none"] = "",
        durability: Literal["power", "process"] = "power",
        budget: str = "",
        grace: str = "",
    ) -> RunContext:
        """Make a block of an ordinary script a durable run: ``with durable.run("report"):``, or ``async with``.

        Args:
            name: name of the run in its log. A completed run of the same name is replayed; give it another name, or
                ``fresh=True``, for a new one.
            log: directory of the log, or an open log; default ``JUPYTER_DURABLE_LOG``, or ``.durable`` beside the
                script.
            fresh: start a new branch with nothing reused.
            from_step: keep what is before this step, execute the rest again.
            strict: make any difference an error.
            replay_only: execute nothing.
            reuse: what to do with finished steps after a difference.
            durability: ``"power"`` flushes before each effect; ``"process"`` survives the process only.
            budget: the most that the branch may spend: ``"2usd"``, ``"50k tokens"``, ``"40 steps"``.
            grace: how long a run in which everything waits stays in its process before it parks: ``"10m"``, ``"0s"``.

        Raises:
            BranchBusy: another process runs it right now.
        """
        return RunContext(
            name, log, fresh=fresh, from_step=from_step, strict=strict, replay_only=replay_only, reuse=reuse,
            durability=durability, budget=budget, grace=grace,
        )  # fmt: skip

    def now(self) -> datetime.datetime:
        """The time now, aware, in UTC; recorded, so that a replay sees the same."""
        value = _helper(_NOW)
        return datetime.datetime.fromtimestamp(value, datetime.UTC)

    def random(self) -> float:
        """A random number in [0, 1); recorded, so that a replay sees the same."""
        return cast("float", _helper(_RANDOM))

    def uuid(self) -> _uuid.UUID:
        """A random UUID; recorded, so that a replay sees the same."""
        return _uuid.UUID(_helper(_UUID))

    def capture(
        self,
        *,
        hosts: Iterable[str] = (),
        paths: Iterable[str] = (),
        when: Callable[[str, str], object] | None = None,
        pure: bool = True,
        exclude: bool = False,
        include_usage: bool = False,
        idempotency_header: str | None = None,
    ) -> None:
        """Say which further requests are model calls, or which are to be left alone. Holds for this process.

        The APIs of the known providers are captured without a word, on any host.

        Args:
            hosts: names such as ``"models.example.com"``; what is below such a name counts too.
            paths: regular expressions that are searched in the path of the URL. Hosts and paths must both fit.
            when: takes method and URL (without query) and returns whether the request is meant.
            pure: the answer depends on the request alone, so that it may be used again after an edit.
            exclude: leave requests that fit alone, even if they are known model calls.
            include_usage: the servers of these hosts know ``stream_options``: ask their streams for tokens.
            idempotency_header: name of a header in which every captured call sends its idempotency key, for gateways
                that de-duplicate; empty for none.

        Raises:
            UsageError: nothing says which requests are meant, or a pattern is none.

        >>> from jupyter_durable import durable
        >>> durable.capture(hosts=["models.example.com"], paths=["/ask$"])
        """
        from jupyter_durable.capture.settings import SETTINGS

        SETTINGS.capture(
            hosts=hosts, paths=paths, when=when, pure=pure, exclude=exclude, include_usage=include_usage,
            idempotency_header=idempotency_header,
        )  # fmt: skip

    def price(
        self,
        model: str,
        *,
        input: float,  # noqa: A002 - the words of the bill
        output: float,
        cached: float | None = None,
        provider: str = "",
    ) -> None:
        """Set the price of a model, for this process. It goes before every list of prices.

        Args:
            model: as the request or the answer names it; dated names (``NAME-2026-01-31``) follow.
            input: US dollars per million input tokens.
            output: US dollars per million output tokens.
            cached: US dollars per million input tokens read from a cache; as ``input`` if not given.
            provider: only at this provider; empty for all, local servers included.

        Raises:
            UsageError: no name, or a price that is no number of dollars.

        >>> from jupyter_durable import durable
        >>> durable.price("my-model", input=0.5, output=1.5)
        """
        from jupyter_durable.capture.prices import set_price

        set_price(model, input=input, output=output, cached=cached, provider=provider)

    def panel(self, run: str = "", height: int = 480) -> Any:
        """The steps of this notebook's durable cells in an output cell, kept up to date: the panel of JupyterLab for
        VS Code, Colab, marimo and other front ends that draw widgets.

        Needs anywidget: ``pip install "jupyter_durable[widget]"``. Where no widget is drawn, the runs stay as text.

        Args:
            run: name or id of the run to show; default: the one that ran last, whichever that is.
            height: in pixels, from 200 to 4000.

        Returns:
            A widget. As the last line of a cell it is shown; ``close()`` ends it.

        Raises:
            UsageError: anywidget is not installed, or there is no such run.

        >>> from jupyter_durable import durable
        >>> durable.panel(height=400)
        Durable cells: no run yet. Begin a cell with %%durable.
        """
        # By name: what shows runs stands a floor above what makes them.
        return import_module("jupyter_durable.widget").panel(run, height)

    def idempotency_key(self) -> str:
        """A stable name for the effect of the step whose body is running, for services that de-duplicate.

        The same when the step is executed again after a crash; another after ``--fresh``.

        Raises:
            NotInRun: outside of a step's body.
        """
        frame = current()
        if frame is None or frame.step is None:
            raise NotInRun("`durable.idempotency_key()` names the effect of a step: call it inside the step's body.")
        return cast("str", frame.execution.idempotency_key(frame.step.key))


def spec_of(fn: Callable[..., Any]) -> StepSpec:
    """The step that a function is, or is made by being called as one."""
    return getattr(fn, "__durable_spec__", None) or _spec_of(fn)


@functools.lru_cache(maxsize=1024)
def _spec_of(fn: Callable[..., Any]) -> StepSpec:
    made: Any = step(fn)
    return cast("StepSpec", made.__durable_spec__)


def _no_arguments(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> tuple[list[str], list[Any]]:
    return [], []


def _helper_spec(name: str, kind: str, fn: Callable[[], Any]) -> StepSpec:
    return StepSpec(fn, name, _no_arguments, False, RetryPolicy(), kind=kind, outputs=False)


_NOW = _helper_spec("durable.now", "now", clock.now)
_RANDOM = _helper_spec("durable.random", "random", lambda: int.from_bytes(clock.token_bytes(7), "big") / 2**56)
_UUID = _helper_spec("durable.uuid", "uuid", lambda: str(_uuid.UUID(bytes=clock.token_bytes(16), version=4)))


def _helper(spec: StepSpec) -> Any:
    frame = current()
    return spec.fn() if frame is None else run_sync(frame, spec, (), {})


durable = Durable()
"""The words for the code of a durable run."""
