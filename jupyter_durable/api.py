"""The words of the program: ``step`` and ``durable``.

They depend on the current frame and on the step drivers; a call outside of a durable run simply runs.
"""

from __future__ import annotations

import datetime
import uuid as _uuid
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Literal, cast

from jupyter_durable import clock
from jupyter_durable.engine.context import current
from jupyter_durable.engine.runner import run_async, run_sync
from jupyter_durable.engine.steps import StepSpec
from jupyter_durable.errors import NotInRun, UsageError
from jupyter_durable.lives import LongLifeWords
from jupyter_durable.log.base import EventLog
from jupyter_durable.retry import RetryPolicy
from jupyter_durable.running import RunContext
from jupyter_durable.stepping import spec_of, step
from jupyter_durable.stopping import StoppingWords
from jupyter_durable.undo_words import UndoWords
from jupyter_durable.versions import VersioningWords
from jupyter_durable.waiting import WaitingWords
from jupyter_durable.working import WorkingWords

__all__ = ["Durable", "durable", "spec_of", "step"]


class Durable(WaitingWords, WorkingWords, StoppingWords, UndoWords, VersioningWords, LongLifeWords):
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
