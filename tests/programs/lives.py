"""One life of a program after another, over a log whose process can die after any event it writes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jupyter_durable.engine.context import CURRENT, Frame
from jupyter_durable.engine.flags import Flags
from jupyter_durable.engine.opening import begin
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.errors import DurableControl
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.events import AnyEvent
from jupyter_durable.log.local import LocalLog
from jupyter_durable.log.memory import MemoryLog
from jupyter_durable.source import cell_digest, names_bound, names_mutated, names_read, uses_nondeterminism
from tests.engine.cells import Kernel
from tests.engine.harness import Died
from tests.programs.language import Program
from tests.programs.outside import Boom, World


@dataclass
class Fate:
    """What befalls a life: when it dies, and what happens outside behind which of its events."""

    die: int | None = None
    posts: dict[int, list[Callable[[], None]]] = field(default_factory=dict)
    written: int = 0
    world: World | None = None
    on_death: Callable[[], object] = lambda: None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def before(self) -> None:
        """An event is to be written."""
        assert self.world is not None
        with self.lock:
            if self.world.dead or (self.die is not None and self.written >= self.die):
                self.world.dead = True
                self.on_death()
                raise Died
            self.written += 1

    def after(self) -> None:
        """It was written."""
        with self.lock:
            for post in self.posts.pop(self.written, ()):
                post()


class MortalWriter:
    """A writer of a process that dies when its time has come."""

    def __init__(self, inner: Any, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def append(self, event: AnyEvent) -> int:
        """Write an event, or die."""
        self._fate.before()
        seq: int = self._inner.append(event)
        self._fate.after()
        return seq


class MortalMemory(MemoryLog):
    """A log in memory."""

    fate: Fate | None = None

    def begin(self, header: ExecutionHeader) -> Any:
        writer = super().begin(header)
        return writer if self.fate is None else MortalWriter(writer, self.fate)


class MortalLocal(LocalLog):
    """A log on a disk."""

    fate: Fate | None = None

    def begin(self, header: ExecutionHeader) -> Any:
        writer = super().begin(header)
        return writer if self.fate is None else MortalWriter(writer, self.fate)


MortalLog = MortalMemory | MortalLocal


@dataclass
class Lived:
    """What one life came to."""

    value: Any = None
    error: BaseException | None = None
    died: bool = False
    live: int = 0
    events: int = 0
    notices: list[str] = field(default_factory=list)


class Life(Kernel):
    """A process in which the steps of a program are defined."""

    def __init__(self, program: Program, log: MortalLog, world: World) -> None:
        self.program = program
        self.fated = log
        self.world = world
        super().__init__(log, world, "")  # type: ignore[arg-type]
        self.namespace |= {"ThreadPoolExecutor": ThreadPoolExecutor, "Boom": Boom}
        self.plain(program.setup)

    def live(self, fate: Fate | None = None, **flags: Any) -> Lived:
        """Run the cell, until its end or the death of the process."""
        fate = fate or Fate()
        fate.world, self.world.dead = self.world, False
        lived = Lived()
        source = self.program.source

        async def main() -> None:
            loop = asyncio.get_running_loop()
            task = asyncio.current_task()
            assert task is not None
            # Where nobody awaits what has died, as in a callback of the loop, the end is brought to the cell.
            fate.on_death = lambda: loop.call_soon_threadsafe(task.cancel)
            loop.set_exception_handler(lambda _, context: unheard(context, self.world))
            self.fated.fate = fate
            execution = None
            try:
                execution = begin(self._spec(source, flags, loop), self.fated)
                CURRENT.set(Frame(execution, execution.root))
                lived.value = await self._run(source)
            except (Died, Exception, DurableControl, BaseExceptionGroup, asyncio.CancelledError) as error:
                lived.error = error
            finally:
                self.fated.fate = None
                try:
                    if execution is not None:
                        execution.end(lived.error)
                except Died:
                    pass
                if execution is not None:
                    if not self.world.dead:  # bodies in threads come to their end; a death waits for nobody
                        assert execution.wait_closed(30)
                    execution.writer.close()
                    # As a cell does: what stopped the run is told, whatever a task group has made of it.
                    lived.error = execution.parked or execution.reason or lived.error
                    lived.live, lived.notices = execution.stats.live, list(execution.stats.notices)

        try:
            asyncio.run(main())
        except asyncio.CancelledError:
            assert self.world.dead
        lived.died, lived.events = self.world.dead, fate.written
        return lived

    def _spec(self, source: str, flags: dict[str, Any], loop: asyncio.AbstractEventLoop) -> RunSpec:
        return RunSpec(
            name="p",
            source=source,
            namespace=self.namespace,
            flags=Flags(grace="0s", **flags),
            loop=loop,
            **said_by(source),
        )


@lru_cache(16)
def said_by(source: str) -> dict[str, Any]:
    """What source says by itself: it is the same in each life."""
    return {
        "code": cell_digest(source),
        "reads": frozenset(names_read(source)),
        "binds": frozenset(names_bound(source) | names_mutated(source)),
        "causes": tuple(uses_nondeterminism(source)),
    }


def unheard(context: dict[str, Any], world: World) -> None:
    """An error that nobody has awaited: none but that the process has died."""
    error = context.get("exception")
    if world.dead or isinstance(error, Died) or "never retrieved" in str(context.get("message")):
        return
    unheard_errors.append(context)


unheard_errors: list[dict[str, Any]] = []
"""Errors in callbacks of the loop; there must be none."""
