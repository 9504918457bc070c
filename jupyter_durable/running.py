"""``with durable.run(...)``: a durable run in an ordinary script, by the same engine as a cell."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextvars import Token
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jupyter_durable.engine.child import Child
from jupyter_durable.engine.context import CURRENT, Frame, current
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.flags import Flags
from jupyter_durable.engine.opening import begin
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.errors import RunSealed, RunStopped, UsageError
from jupyter_durable.log import open_log
from jupyter_durable.log.base import EventLog
from jupyter_durable.log.renames import log_of
from jupyter_durable.sentences import wrong_name


def log_directory(beside: str = "") -> str:
    """Where the log lies: ``JUPYTER_DURABLE_LOG``, else ``.durable`` beside a notebook or script, else in the folder.

    Args:
        beside: path of the notebook or script; empty if it is not known.

    Raises:
        LogUnusable: the notebook was moved, and the log that it came with is gone.
    """
    configured = os.environ.get("JUPYTER_DURABLE_LOG")
    if configured:
        return configured
    return str(log_of(Path(beside).absolute()) if beside else Path.cwd() / ".durable")


logger = logging.getLogger("jupyter_durable")


def _tell(execution: Execution, *, again: bool) -> None:
    """Say what the user must not miss; a script has no summary line."""
    stats = execution.stats
    for notice in stats.notices:
        logger.warning("%s: %s", execution.place_of_run(), notice)
    if again and stats.replayed and not stats.live:
        logger.warning(
            "%s had completed before: everything (%d step%s) was replayed from history. `fresh=True`, or another name, "
            "begins anew.",
            execution.place_of_run(),
            stats.replayed,
            "s" * (stats.replayed != 1),
        )
    logger.info("%s: %d steps, %d replayed, %d new", execution.place_of_run(), stats.steps, stats.replayed, stats.live)


class RunContext:
    """What ``durable.run`` returns: a context manager, synchronous and asynchronous."""

    def __init__(
        self, name: str, log: str | EventLog | None = None, *, after: str = "", repeats: bool = False, **flags: Any
    ) -> None:
        """Args:
        name: of the run.
        log: where it is kept.
        after: id of the branch that has just ended, to go on anew.
        repeats: its block is in a loop that enters it again then, so that nothing need be raised.
        **flags: see `Flags`.
        """
        if not isinstance(name, str) or not name.strip():
            raise UsageError('A run needs a name: `with durable.run("report"):`.')
        self.name = name
        self.flags = Flags(**flags)
        if self.flags.plan:
            raise UsageError("A block of a script cannot be planned: it runs as soon as it is entered.")
        self.log = log
        self._after, self._repeats = after, repeats
        self.execution: Execution | None = None
        """The live execution, inside of the block."""
        self._child: Child | None = None
        self._token: Token[Frame | None] | None = None
        self._cut = False
        self._task: asyncio.Task[Any] | None = None
        """What runs the block, if that can be cancelled."""

    def _end_await(self) -> None:
        """Somebody has cancelled the run: what the block awaits ends."""
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._cut_now)

    def _cut_now(self) -> None:
        """The block may have come to a step first, and have been left by then."""
        if self._task is not None and self.execution is not None and not self.execution.ended:
            self._cut = self._task.cancel()

    def _begin(self, loop: asyncio.AbstractEventLoop | None) -> Self:
        frame = current()
        if frame is not None and not frame.execution.ended:
            self._begin_child(frame)
            return self
        script = getattr(sys.modules.get("__main__"), "__file__", "") or ""
        spec = RunSpec(
            self.name, path=script, namespace=vars(sys.modules["__main__"]), flags=self.flags, loop=loop,
            after=self._after,
        )  # fmt: skip
        where = self.log or log_directory(script)
        self.execution = begin(spec, open_log(where) if isinstance(where, str | os.PathLike) else where)
        self._token = CURRENT.set(Frame(self.execution, self.execution.root))
        return self

    def _begin_child(self, frame: Frame) -> None:
        if self.flags != Flags() or self.log is not None:
            raise UsageError(
                f"Child run `{self.name}` was begun inside of run `{frame.execution.run_name}` with options of its "
                f"own. It shares branch, log and budget with its parent: give it a name alone, and the options to the "
                f"parent."
            )
        if wrong := wrong_name(self.name):
            raise UsageError(f"Child run {self.name!r} cannot be called so: {wrong}.")
        self.execution = frame.execution
        self._child = Child(frame, self.name)

    def _end(self, error: BaseException | None) -> None:
        carried = _carried(error)
        if carried is not None:
            error = carried.error
        assert self.execution is not None
        assert self._token is not None
        try:
            CURRENT.reset(self._token)
        except ValueError:
            CURRENT.set(None)  # the block was left in another context than it was entered in
        again = self.execution.replay.own.completed_branch()
        self.execution.end(error)
        _tell(self.execution, again=again)
        if not self.execution.draining:
            self.execution.log.fold()

    def __enter__(self) -> Self:
        try:
            loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        return self._begin(loop)

    @property
    def continued(self) -> bool:
        """Whether ``durable.continue_as_new`` has ended the block."""
        outcome = None if self.execution is None else self.execution.outcome
        return outcome is not None and outcome.status == "continued"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> bool:
        if self._child is not None:
            _raise_instead(self._child.leave(error))
            return False
        self._end(error)
        return self._leave(error)

    async def __aenter__(self) -> Self:
        self._begin(asyncio.get_running_loop())
        if self._child is not None:
            return self
        self._task = asyncio.current_task()
        assert self.execution is not None
        self.execution.on_cancel = self._end_await
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> bool:
        if self._child is not None:
            _raise_instead(await self._child.leave_in_turn(error))
            return False
        self._end(error)
        return self._leave(error)

    def _leave(self, error: BaseException | None) -> bool:
        if self.continued and self._repeats:
            return True
        self._raise_carried(error)
        return False

    def _raise_carried(self, error: BaseException | None) -> None:
        """Raise what stopped the run as itself: it may have been carried past an SDK, or caught on the way."""
        carried = _carried(error)
        if carried is not None:
            raise carried.error.with_traceback(carried.__traceback__) from None
        execution = self.execution
        if execution is not None and execution.cancelled is not None and execution.reason is not None:
            if self._cut and self._task is not None:
                self._task.uncancel()
            raise execution.reason from None
        if error is None and execution is not None and execution.forgotten is not None:
            raise execution.forgotten
        ended = None if execution is None else execution.parked or execution.continued
        if ended is not None and error is not ended:
            raise ended from None
        if execution is not None and execution.reason is not None and (error is None or isinstance(error, RunSealed)):
            raise execution.reason from None


def _raise_instead(error: BaseException | None) -> None:
    if error is not None:
        raise error from None


def _carried(error: BaseException | None) -> RunStopped | None:
    """What carries such an error; task groups, such as those of MCP clients, put it into groups of exceptions."""
    while isinstance(error, BaseExceptionGroup) and (group := error.subgroup(RunStopped)) is not None:
        error = group.exceptions[0]
    return error if isinstance(error, RunStopped) else None
