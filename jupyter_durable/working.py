"""The words for much work and long work: ``durable.map``, ``durable.heartbeat``, ``durable.progress``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any, Literal

import msgspec

from jupyter_durable.engine.context import current
from jupyter_durable.engine.crew import Tasks, Threads, Work
from jupyter_durable.engine.elsewhere import Delivered, Pool, sent_to
from jupyter_durable.engine.mapping import map_async, map_sync, mapped
from jupyter_durable.engine.steps import StepSpec
from jupyter_durable.errors import UsageError
from jupyter_durable.values import decode
from jupyter_durable.waiting import caller_awaits

MOST_AT_ONCE = 10_000


class WorkingWords:
    """A part of the namespace ``durable``."""

    def map(
        self,
        fn: Callable[..., Any],
        items: Iterable[Any],
        *,
        concurrency: int = 8,
        executor: Executor | Callable[[], Executor] | None = None,
        on_error: Literal["raise", "keep"] = "raise",
        key: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Call a step for each item, some at a time. What is finished stays finished, whatever happens to the others.

        Args:
            fn: a step, or any function of one argument, which becomes a step as by ``durable.step``.
            items: the arguments, one for each call. Equal ones are calls of their own.
            concurrency: how many run at the same time.
            executor: who runs the function in place of threads of the kernel: an executor of ``concurrent.futures``,
                of loky, of Dask (``client.get_executor()``); or a function that makes one, which is used again if it
                breaks. The log stays in the kernel.
            on_error: ``"raise"``: after the first failure no further item is begun, what runs comes to its end, and
                the error is raised, or an ``ExceptionGroup`` of several. ``"keep"``: all items are worked on, and the
                list holds the exceptions of those that failed.
            key: function of the item that gives what identifies it; for items without a digest.

        Returns:
            The results in order of the items; in a coroutine, a cell that awaits, or for a coroutine function,
            something to ``await``.

        Raises:
            UsageError: an argument that cannot be meant.
            Undigestable: an item has no digest and there is no ``key``; nothing was executed.

        >>> from jupyter_durable import durable
        >>> durable.map(abs, [-1, 2, -3])
        [1, 2, 3]
        """
        __tracebackhide__ = True
        from jupyter_durable.api import spec_of

        spec = spec_of(fn) if callable(fn) else None
        _check(fn, concurrency, executor, on_error, spec)
        assert spec is not None
        if key is not None:
            spec = msgspec.structs.replace(spec, key=key)
        things = list(items)
        work = Work(len(things), keeps=on_error == "keep", concurrency=concurrency)
        pool = None if executor is None else Pool(executor)
        frame, awaits = current(), caller_awaits() or spec.is_async
        if frame is None:
            return _plainly(spec, things, work, pool, awaits=awaits)
        return (map_async if awaits else map_sync)(mapped(frame, spec, things, work, pool))


def _check(fn: Any, concurrency: Any, executor: Any, on_error: Any, spec: StepSpec | None) -> None:
    if spec is None:
        raise UsageError(f"`durable.map(fn, items)` takes a function first; this is a `{type(fn).__qualname__}`.")
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or not 0 < concurrency <= MOST_AT_ONCE:
        raise UsageError(f"`concurrency` is a whole number from 1 to {MOST_AT_ONCE}: how many items run at once.")
    if on_error not in ("raise", "keep"):
        raise UsageError(f'`on_error` is "raise" or "keep", not {on_error!r}.')
    if executor is not None and not callable(executor) and not hasattr(executor, "submit"):
        raise UsageError(
            f"`executor` is an executor of `concurrent.futures`, or a function that makes one; this is a "
            f"`{type(executor).__qualname__}`. Dask has one: `client.get_executor()`."
        )
    if executor is not None and spec.is_async:
        raise UsageError(f"`{spec.name}` is a coroutine function: the loop runs it, and no executor can.")


def _plainly(spec: StepSpec, items: list[Any], work: Work, pool: Pool | None, *, awaits: bool) -> Any:
    """Outside of a run nothing is recorded; everything else is the same."""
    fn = spec.fn if pool is None else sent_to(pool, spec.fn, None)
    for index, item in enumerate(items):
        work.add(index, _plain_job(fn, index, item, work, is_async=spec.is_async))
    crew = Tasks(work) if spec.is_async else Threads(work, None)
    if awaits:
        return _awaited(crew, work, pool)
    assert isinstance(crew, Threads)
    crew.begin(bool)
    try:
        crew.wait()
    finally:
        if pool is not None:
            pool.close()
    return work.result()


def _plain_job(fn: Callable[..., Any], index: int, item: Any, work: Work, *, is_async: bool) -> Callable[[], Any]:
    def job() -> None:
        try:
            value = fn(item)
            work.value(index, _opened(value) if isinstance(value, Delivered) else value)
        except BaseException as error:
            work.failed(index, error, recorded=isinstance(error, Exception))

    async def task() -> None:
        try:
            work.value(index, await fn(item))
        except Exception as error:
            work.failed(index, error, recorded=True)

    return task if is_async else job


def _opened(value: Delivered) -> Any:
    if value.unstored is not None:
        raise value.unstored
    return decode(value.encoded.codec, value.encoded.text, value.encoded.blobs.__getitem__)


async def _awaited(crew: Tasks | Threads, work: Work, pool: Pool | None) -> list[Any]:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    crew.begin(lambda: loop.call_soon_threadsafe(done.set))
    try:
        await done.wait()
    except BaseException:
        await crew.leave()
        raise
    finally:
        if pool is not None:
            pool.close()
    return work.result()
