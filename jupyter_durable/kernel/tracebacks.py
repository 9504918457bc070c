"""How the errors of a durable cell are shown: with the user's lines, without ours, an interrupt as an interrupt.

IPython hands every error of a cell to the handler of this file while a durable cell runs.
"""

from __future__ import annotations

import asyncio
import os
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from jupyter_durable.engine.context import CURRENT
from jupyter_durable.engine.execution import Execution
from jupyter_durable.errors import DurableControl, DurableError, RunStopped
from jupyter_durable.kernel.cell import as_sentence

_HOME = str(Path(__file__).absolute().parents[1]) + os.sep
_ON_PURPOSE = (DurableError, DurableControl, KeyboardInterrupt, asyncio.CancelledError)


class ErrorHandler:
    """Takes the place of IPython's handler of custom exceptions while durable cells run: with subshells, several."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._before: tuple[Any, Any] = ((), None)
        self._mine: Any = None
        self._ended: dict[Execution, tuple[BaseException, BaseException] | None] = {}
        """Live execution -> the exception that was shown for its cell, and the one that it stands for."""

    def begin(self, execution: Execution) -> None:
        """Begin to show the errors of a cell."""
        if not self._ended:
            self._before = (self._shell.custom_exceptions, self._shell.CustomTB)
            self._shell.set_custom_exc((BaseException,), self._handle)
            self._mine = self._shell.CustomTB
        self._ended[execution] = None

    def end(self, execution: Execution) -> None:
        """Leave the errors of a cell to IPython again, unless somebody else has taken them over since."""
        self._ended.pop(execution, None)
        if not self._ended and self._shell.CustomTB is self._mine:
            self._shell.custom_exceptions, self._shell.CustomTB = self._before

    def original(self, execution: Execution, error: BaseException | None) -> BaseException | None:
        """The exception behind one that was shown as another."""
        shown = self._ended.get(execution)
        return shown[1] if shown is not None and shown[0] is error else error

    def _handle(
        self,
        shell: Any,
        kind: type[BaseException],
        error: BaseException,
        tb: TracebackType | None,
        tb_offset: Any = None,  # noqa: ARG002 - IPython gives it by name
    ) -> list[str] | None:
        frame = CURRENT.get()
        before, custom = self._before
        if frame is None or frame.execution not in self._ended:  # a plain cell of a subshell
            if before and isinstance(error, before):
                custom(kind, error, tb)
            else:
                shell.showtraceback((kind, error, tb), running_compiled_code=True)
            return None
        execution = frame.execution
        if execution.continued is not None and not execution.interrupted:
            return None  # nothing is wrong: the cell begins again
        ended = execution.reason if execution.cancelled is not None else execution.parked
        if ended is not None and (execution.cancelled is not None or not execution.interrupted):
            as_sentence(ended)
        shown = ended or self._as_shown(error, interrupted=frame.execution.interrupted)
        self._ended[frame.execution] = (shown, error)
        clean(shown)
        result = getattr(shell.displayhook, "exec_result", None)
        if result is not None and shown is not error:
            result.error_in_exec = shown
        if before and isinstance(shown, before):
            custom(type(shown), shown, shown.__traceback__)
        elif isinstance(shown, BaseExceptionGroup):
            # IPython prints a group to stderr and tells the front end of no error.
            shell._showtraceback(type(shown), shown, "".join(traceback.format_exception(shown)).splitlines())
        else:
            shell.showtraceback((type(shown), shown, shown.__traceback__), running_compiled_code=True)
        return None

    def _as_shown(self, error: BaseException, *, interrupted: bool) -> BaseException:
        if isinstance(error, BaseExceptionGroup):
            error = without_echoes(error)
        if isinstance(error, RunStopped):
            return error.error.with_traceback(error.__traceback__)
        if isinstance(error, asyncio.CancelledError) and interrupted:
            interrupt = KeyboardInterrupt()
            interrupt.__traceback__ = error.__traceback__
            interrupt.__suppress_context__ = True
            return interrupt
        return error


def without_echoes(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What a group of errors says: when one stops the run, its siblings raise only that it has stopped."""
    carried = group.subgroup(RunStopped)
    if carried is not None:
        return _first(carried)
    rest = group.split(DurableControl)[1]
    if rest is None:
        return _first(group)
    leaves = _leaves(rest)
    if all(isinstance(each, DurableError) for each in leaves) and len({str(each) for each in leaves}) == 1:
        return leaves[0]
    return rest


def _first(error: BaseException) -> BaseException:
    return _leaves(error)[0]


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for each in error.exceptions for leaf in _leaves(each)]


def clean(error: BaseException) -> None:
    """Take our frames out of the traceback of an error and of everything chained to it.

    They stay in an error that we did not raise on purpose and that came out of our own code: that is a bug of ours, and
    whoever reads about it needs them.
    """
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, _ON_PURPOSE) or not _came_from_us(one.__traceback__):
            one.__traceback__ = _without_ours(one.__traceback__)
        todo += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions


def _came_from_us(tb: TracebackType | None) -> bool:
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    return tb is not None and _is_ours(tb)


def _without_ours(tb: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while tb is not None:
        if not _is_ours(tb):
            kept.append(tb)
        tb = tb.tb_next
    following: TracebackType | None = None
    for one in reversed(kept):
        following = TracebackType(following, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return following


def _is_ours(tb: TracebackType) -> bool:
    return tb.tb_frame.f_code.co_filename.startswith(_HOME)
