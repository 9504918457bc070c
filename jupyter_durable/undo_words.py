"""The word for undoing: ``durable.undo``, inside of a run and outside of it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, cast

from jupyter_durable import undoing
from jupyter_durable.engine.compensating import undo_own
from jupyter_durable.engine.context import current
from jupyter_durable.errors import NotInRun, UsageError
from jupyter_durable.listings import find_run
from jupyter_durable.log import open_log
from jupyter_durable.log.base import EventLog
from jupyter_durable.running import log_directory
from jupyter_durable.stepping import spec_of
from jupyter_durable.waiting import caller_awaits


class UndoWords:
    """A part of the namespace ``durable``."""

    def undo(self, run: str = "", *, branch: str = "", from_step: str = "", log: str | EventLog | None = None) -> Any:
        """Undo what steps with ``compensate`` have done, newest first, by recorded steps.

        Inside of a run, without a name: what this run has completed so far, as a step of this run. Outside of a run,
        with a name: a branch of that run, as ``%durable undo RUN --yes`` does; the branch is closed then.

        Args:
            run: name or id of the run; empty: the run that is being executed.
            branch: name of the branch, if it is not the newest.
            from_step: number or name of the first step that is undone, with all that completed after it.
            log: directory of the log, or an open log; default as for `run`; in a kernel that of the notebook.

        Returns:
            Labels of the steps that were undone, newest first; in a coroutine, something to ``await``.

        Raises:
            NotInRun: without a name, outside of a run.
            UsageError: the function that undoes a step is not defined here. Nothing was undone.
            InDoubtError: nobody knows whether a step happened that could be undone. Nothing was undone.
            UndoFailed: what undoes a step of the named run has failed. Inside of a run, its own error is raised.

        >>> from jupyter_durable import durable
        >>> durable.undo()
        Traceback (most recent call last):
            ...
        jupyter_durable.errors.NotInRun: `durable.undo()` undoes what a run has done: name the run, or use it in one.
        """
        __tracebackhide__ = True
        awaits = caller_awaits()
        if run:
            where = open_log(log) if isinstance(log, str) else log or _log_here()
            act = undoing.undo_async if awaits else undoing.undo
            return act(where, find_run(where, run), spec_of, branch=branch, from_step=from_step)
        frame = current()
        if frame is None or frame.execution.ended:
            raise NotInRun("`durable.undo()` undoes what a run has done: name the run, or use it in one.")
        if branch or from_step or log is not None:
            raise UsageError("`durable.undo()` without the name of a run undoes all of the run that it is in.")
        if frame.step is not None:
            raise UsageError(
                f"{frame.execution.place_of_run()}, step `{frame.step.name}`: `durable.undo()` cannot be used inside "
                f"the body of a step, which is not done itself. Use it in the cell's own code.",
                step=frame.step.name, **frame.execution.where,
            )  # fmt: skip
        return undo_own(frame, spec_of, awaits=awaits)


def _log_here() -> EventLog:
    """The log of the notebook in a kernel, of the script elsewhere."""
    if "jupyter_durable.kernel.extension" in sys.modules:
        # By name: what knows the notebook stands a floor above.
        log = import_module("jupyter_durable.kernel.undo_magic").log_of_notebook()
        if log is not None:
            return cast("EventLog", log)
    return open_log(log_directory(getattr(sys.modules.get("__main__"), "__file__", "") or ""), create=False)
