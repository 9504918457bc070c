"""Bodies of steps in other processes and on other machines, by any executor. The log stays in the kernel.

The plain function travels, by cloudpickle, and a stored form of its value comes back: what cannot be stored fails
there, with the path. A worker that dies fails one attempt, not the run.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, cast

import msgspec

from jupyter_durable.call import Place
from jupyter_durable.engine.context import CURRENT, Frame, current, in_thread
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.errors import UnstorableValue, UsageError, WorkerFailed
from jupyter_durable.event_data import ErrorInfo
from jupyter_durable.values import Encoded, describe_error, encode_verified, restore_error, salvage

Answer = dict[str, Any]
"""What a worker sends back: plain data, so that nothing of the user's has to be unpickled in the pool's own threads."""


class Delivered(msgspec.Struct):
    """The value of a body that ran elsewhere, in its stored form; or why it has none."""

    encoded: Encoded
    """The value, or what was saved of one that cannot be stored."""
    unstored: UnstorableValue | None = None
    value_type: str = ""


# In the worker -------------------------------------------------------------------------------------------------------


class Far:
    """Stands for an execution in a process that is not its own: whoever asks is told that it is not."""

    pid = -1
    ended = True

    def __init__(self, where: str) -> None:
        self._where = where
        self.spec = RunSpec("elsewhere")
        self.unrecorded: list[str] = []
        """Model calls that were made here, and that no log has."""

    def place_of_run(self) -> str:
        """Run and branch, for messages."""
        return self._where


_printed: ContextVar[io.StringIO | None] = ContextVar("jupyter_durable_printed", default=None)


class _Stdout:
    """Takes what bodies print, each its own, and passes everything else on."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        mine = _printed.get()
        return cast("int", (self._stream if mine is None else mine).write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def run_elsewhere(function: bytes, arguments: bytes, where: str, kernel: tuple[str, int]) -> Answer:
    """Run one body, in a worker. Raises nothing of the body's: that is a part of the answer.

    Args:
        function: the function, pickled by cloudpickle.
        arguments: its arguments and keyword arguments, the same way.
        where: the run that it is for, for messages.
        kernel: host and process of the kernel.
    """
    import platform

    far = Far(where)
    printed = io.StringIO()
    with _apart(far, printed, captures=(platform.node(), os.getpid()) != kernel):
        answer = _answer(function, arguments)
    return {**answer, "stdout": printed.getvalue(), "unrecorded": far.unrecorded}


@contextlib.contextmanager
def _apart(far: Far, printed: io.StringIO, *, captures: bool) -> Iterator[None]:
    if captures:
        from jupyter_durable.engine.hooks import HOOKS

        HOOKS.set()  # a model call is noticed here too, and said to be unrecorded
        if not isinstance(sys.stdout, _Stdout):
            sys.stdout = cast("Any", _Stdout(sys.stdout))
    frame = CURRENT.set(Frame(far, Place()))
    mine = _printed.set(printed if captures else None)
    try:
        yield
    finally:
        _printed.reset(mine)
        CURRENT.reset(frame)


def _answer(function: bytes, arguments: bytes) -> Answer:
    import cloudpickle

    try:
        fn = cloudpickle.loads(function)
        _name_classes(fn)
        args, kwargs = cloudpickle.loads(arguments)
        value = fn(*args, **kwargs)
    except Exception as error:
        info, encoded = describe_error(error)
        return {"error": msgspec.json.encode(info), "encoded": None if encoded is None else _parts(encoded)}
    try:
        return {"encoded": _parts(encode_verified(value)[0])}
    except UnstorableValue as error:
        return {
            "unstored": str(error), "facts": error.facts, "type": type(value).__qualname__,
            "encoded": _parts(salvage(value)),
        }  # fmt: skip


def _parts(encoded: Encoded) -> tuple[str, bytes, dict[str, bytes]]:
    return encoded.codec, encoded.text, encoded.blobs


def _name_classes(fn: Any) -> None:
    """Let the notebook's classes be found by their names here too: a stored value names its class."""
    main = sys.modules.get("__main__")
    for found in (fn, *getattr(fn, "__globals__", {}).values()):
        if isinstance(found, type) and found.__module__ == "__main__" and not hasattr(main, found.__qualname__):
            setattr(main, found.__qualname__, found)


# In the kernel -------------------------------------------------------------------------------------------------------


class Pool:
    """An executor that is handed to us; one that breaks is made again, if it is known how."""

    def __init__(self, given: Executor | Callable[[], Executor]) -> None:
        self._make = None if isinstance(given, Executor) or hasattr(given, "submit") else given
        self._lock = threading.Lock()
        self._mine: list[Executor] = []
        self.executor: Executor = self._made() if self._make is not None else cast("Executor", given)

    def _made(self) -> Executor:
        assert self._make is not None
        executor = self._make()
        if not hasattr(executor, "submit"):
            raise UsageError(
                f"`executor=` takes an executor of `concurrent.futures`, or a function that makes one; this one made a "
                f"`{type(executor).__qualname__}`."
            )
        self._mine.append(executor)
        return executor

    @property
    def is_here(self) -> bool:
        """Whether it runs bodies in threads of this process, where they are a part of the run."""
        return isinstance(self.executor, ThreadPoolExecutor)

    def submit(self, fn: Callable[..., Any], *args: Any) -> tuple[Executor, Future[Any]]:
        """Hand a job over; the executor that has it, and its future."""
        executor = self.executor
        try:
            return executor, executor.submit(fn, *args)
        except BrokenExecutor:
            if self.renew(executor) is executor:
                raise
            return self.executor, self.executor.submit(fn, *args)

    def renew(self, broken: Executor) -> Executor:
        """Another executor in the place of a broken one; the same, if nobody knows how to make it."""
        with self._lock:
            if self.executor is broken:
                self.executor = self._again(broken)
            return self.executor

    def _again(self, broken: Any) -> Executor:
        if self._make is not None:
            return self._made()
        workers: int = getattr(broken, "_max_workers", 1)
        if type(broken) is ProcessPoolExecutor:
            known = {name: getattr(broken, f"_{name}", None) for name in ("mp_context", "initializer", "initargs")}
            fresh = ProcessPoolExecutor(workers, **cast("dict[str, Any]", known))
            self._mine.append(fresh)
            return fresh
        if type(broken).__module__.startswith("loky."):
            loky: Any = sys.modules["loky"]
            return cast("Executor", loky.get_reusable_executor(max_workers=workers))
        return cast("Executor", broken)

    def close(self) -> None:
        """End the executors that were made here."""
        for executor in self._mine:
            executor.shutdown(wait=False)


def sent_to(pool: Pool, fn: Callable[..., Any], frame: Frame | None) -> Callable[..., Any]:
    """A function that has ``fn`` run by an executor, and waits for it: what the driver of a step calls as its body.

    Args:
        pool: the executor.
        fn: the plain function.
        frame: where it is called; ``None`` outside of a run.
    """
    if pool.is_here:
        return lambda *args, **kwargs: _in_pool_thread(pool, fn, args, kwargs)
    import platform

    where = "a durable run" if frame is None else frame.execution.place_of_run()
    kernel = (platform.node(), os.getpid())
    function = _pickled(fn, "the function")
    return lambda *args, **kwargs: _far(pool, function, _pickled((args, kwargs), "the item"), where, kernel)


def _in_pool_thread(pool: Pool, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    body = current()
    job = functools.partial(fn, *args, **kwargs)
    token = CURRENT.set(None)  # the pool's own threads are nobody's place
    try:
        future = pool.executor.submit(job if body is None else lambda: in_thread(body, job))
    finally:
        CURRENT.reset(token)
    return future.result()


def _pickled(value: Any, what: str) -> bytes:
    import cloudpickle

    try:
        return cast("bytes", cloudpickle.dumps(value))
    except Exception as error:
        raise UsageError(
            f"`executor=`: {what} cannot be sent to a worker ({type(error).__name__}: {error}). Pass plain data, and "
            f"make clients, locks and files inside the function."
        ) from error


def _far(pool: Pool, function: bytes, arguments: bytes, where: str, kernel: tuple[str, int]) -> Any:
    body, executor = current(), pool.executor
    token = CURRENT.set(None)
    try:
        executor, future = pool.submit(run_elsewhere, function, arguments, where, kernel)
        answer = future.result()
    except Exception as error:
        # Whatever the body raises is a part of the answer: this comes from the executor itself.
        if isinstance(error, BrokenExecutor):
            pool.renew(executor)
        raise WorkerFailed(
            f"{where}: a worker of the executor died, or could not take its item ({type(error).__name__}: {error}). "
            f"With `@step(retries=...)` another one gets it.",
        ) from None
    finally:
        CURRENT.reset(token)
    if answer["stdout"]:
        sys.stdout.write(answer["stdout"])
    if body is not None:
        for name in dict.fromkeys(answer["unrecorded"]):
            body.execution.stats.notices.append(
                f"a model was asked ({name}) in a worker: the call is not recorded, and its cost not counted"
            )
    return _value(answer)


def _value(answer: Answer) -> Any:
    parts = answer["encoded"]
    encoded = None if parts is None else Encoded(*parts)
    if "error" in answer:
        raise _failure(msgspec.json.decode(answer["error"], type=ErrorInfo), encoded)
    assert encoded is not None
    if "unstored" in answer:
        return Delivered(encoded, UnstorableValue(answer["unstored"], **answer["facts"]), answer["type"])
    return Delivered(encoded)


def _failure(info: ErrorInfo, encoded: Encoded | None) -> BaseException:
    from jupyter_durable.errors import UnloadableValue

    try:
        if encoded is not None:
            error = restore_error(info, encoded=encoded)
            error.add_note(f"In the worker:\n{info.traceback.rstrip()}")
            return error
    except UnloadableValue:
        pass  # its class is not here: told as text
    return WorkerFailed(f"The function raised {info.type} in a worker: {info.message}\n{info.traceback.rstrip()}")
