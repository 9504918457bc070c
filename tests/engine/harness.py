"""Runs programs on the real engine over a log in memory, and lets the process "die" at any event.

A death is a `BaseException` out of the log writer: from that event on nothing is written any more, as after a SIGKILL.
(`tests/crash` does the same with real processes and real signals.)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from jupyter_durable.engine.execution import Execution
from jupyter_durable.errors import DurableError, RunCancelled
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.events import AnyEvent
from jupyter_durable.log.memory import MemoryLog, MemoryWriter
from jupyter_durable.running import RunContext


class World:
    """What lies outside of the program and outlives its death: effects that happened, and the state of services.

    It holds a lock, so it is not comparable, as a client or a connection in a notebook is not: steps that use it do not
    change with it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.effects: list[str] = []
        self.broken = False
        """Whether services answer with errors."""

    def hit(self, tag: str) -> int:
        """An effect happens; return how many effects of this tag there are now."""
        with self._lock:
            self.effects.append(tag)
            return self.effects.count(tag)

    def clear(self) -> None:
        """A new world."""
        self.effects.clear()
        self.broken = False


class Died(BaseException):
    """The process died."""


class MortalWriter:
    """A writer that stops for good after a number of events."""

    def __init__(self, inner: MemoryWriter, log: MortalLog) -> None:
        self._inner = inner
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def append(self, event: AnyEvent) -> int:
        if self._log.left is not None:
            if self._log.left <= 0:
                raise Died
            self._log.left -= 1
        self._log.appended += 1
        return self._inner.append(event)


class MortalLog(MemoryLog):
    """A log whose process dies when ``left`` events have been written."""

    left: int | None = None
    appended = 0

    def begin(self, header: ExecutionHeader) -> Any:
        return MortalWriter(super().begin(header), self)


@dataclass
class Result:
    """What one execution of a program came to."""

    value: Any = None
    error: BaseException | None = None
    died: bool = False
    events: int = 0
    execution: Execution | None = None
    effects: list[str] = field(default_factory=list)

    @property
    def live(self) -> int:
        """Steps that were executed."""
        assert self.execution is not None
        return self.execution.stats.live


Program = Callable[[], Awaitable[Any]]


def play(program: Program, log: MortalLog, die_after: int | None = None, **flags: Any) -> Result:
    """Run an async program as the run ``p``; what it raises is in the result.

    Args:
        program: a coroutine function without arguments.
        log: where its history is.
        die_after: events after the first line of the execution after which the process dies.
        flags: of ``durable.run``.
    """

    async def main() -> Result:
        result = Result()
        log.left, log.appended = die_after, 0
        context = RunContext("p", log, **flags)
        try:
            async with context:
                result.execution = context.execution
                result.value = await program()
        except Died:
            result.died = True
        except (DurableError, Exception, asyncio.CancelledError, RunCancelled) as error:
            result.error = error
            result.died = _died_inside(error)
        finally:
            result.events = log.appended
            log.left = None
            if context.execution is not None:
                context.execution.writer.close()
        return result

    return asyncio.run(main())


def _died_inside(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(isinstance(one, Died) or _died_inside(one) for one in error.exceptions)
    return False
