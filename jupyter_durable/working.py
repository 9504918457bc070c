"""The words for much work and long work: ``durable.map``, ``durable.heartbeat``, ``durable.progress``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any, Literal

import msgspec

from jupyter_durable.engine.context import current
from jupyter_durable.engine.crew import Tasks, Threads, Work
from jupyter_durable.engine.elsewhere import Delivered, Pool, sent_to
from jupyter_durable.engine.mapping import map_async, map_sync, mapped
from jupyter_durable.engine.pulse import beat, show
from jupyter_durable.engine.steps import StepSpec
from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import Progress
from jupyter_durable.values import decode
from jupyter_durable.values.secrets import has_secret
from jupyter_durable.waiting import caller_awaits

MOST_AT_ONCE = 10_000
LARGEST_DETAILS = 64 * 1024


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
        if frame is not None and len(things) > 1:
            here, name = frame, spec.name
            work.on_item = lambda done: show(here, Progress(done=done, total=len(things), text=name))
        if frame is None:
            return _plainly(spec, things, work, pool, awaits=awaits)
        return (map_async if awaits else map_sync)(mapped(frame, spec, things, work, pool))

    def heartbeat(self, details: Any = None) -> None:
        """Say, in the body of a long step, that it lives, and how far it is. Recorded, about once a second at most.

        If the step is begun again, after a crash or a failure, its next attempt reads the details with
        `heartbeat_details`, and can go on from there.

        Args:
            details: JSON (texts, numbers, lists, dictionaries), up to 64 kB.

        Raises:
            AttemptOver: this attempt was given up, and nothing of it is recorded any more: let the body end.
            UsageError: the details are no JSON, or too large; or it is called between the steps.

        >>> from jupyter_durable import durable
        >>> durable.heartbeat({"page": 3})
        """
        said = None if details is None else _json(details)
        frame = current()
        if frame is None or frame.execution.pid != os.getpid():
            return  # outside of a run, and in a worker, nobody keeps it
        if frame.attempt is None:
            raise UsageError("`durable.heartbeat()` is a sign of life of a step: call it inside the step's body.")
        beat(frame, said)

    def heartbeat_details(self) -> Any:
        """What an earlier attempt of the step whose body runs has said about itself last; ``None`` if nothing.

        >>> from jupyter_durable import durable
        >>> durable.heartbeat_details() is None
        True
        """
        frame = current()
        if frame is None or frame.attempt is None:
            return None
        details = frame.attempt.details
        return None if details is None else msgspec.json.decode(details)

    def progress(self, i: float, n: float | None = None, text: str = "") -> None:
        """Show how far something is: in the cell's summary, the panel, ``jupyter durable show``.

        In the body of a step it is the step's; between the steps it is the cell's. It is written down about once a
        second, so that it is there after a reload, and changes nothing on replay. ``tqdm`` inside of a step reports
        by itself.

        Args:
            i: how much is done.
            n: how much there is; ``None`` if that is not known.
            text: what is counted, or what happens right now.

        >>> from jupyter_durable import durable
        >>> durable.progress(3, 10, "pages")
        """
        numbers = [each for each in (i, n) if each is not None]
        if i is None or not all(hasattr(each, "__float__") or hasattr(each, "__index__") for each in numbers):
            raise UsageError("`durable.progress(i, n)` takes numbers: how much is done, and how much there is.")
        frame = current()
        if frame is not None and frame.execution.pid == os.getpid():
            show(frame, Progress(done=float(i), total=None if n is None else float(n), text=str(text)))


def _json(details: Any) -> msgspec.Raw:
    try:
        text = msgspec.json.encode(details)
        wrong = "" if msgspec.json.decode(text) == details else "they would come back as something else"
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        text, wrong = b"", str(error)
    if len(text) > LARGEST_DETAILS:
        wrong = "they are too large"
    elif has_secret(text.decode()):
        wrong = "they hold something that looks like a key"
    if wrong:
        raise UsageError(
            f"The details of a heartbeat are JSON of up to {LARGEST_DETAILS // 1024} kB: texts, numbers, lists and "
            f"dictionaries, and no keys; {wrong}. Write what is larger to a file, and say where it is."
        )
    return msgspec.Raw(text)


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
