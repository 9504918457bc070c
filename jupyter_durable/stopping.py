"""The words for ending runs: ``durable.cancel``, ``durable.resume``."""

from __future__ import annotations

from jupyter_durable import client, clock
from jupyter_durable.cancelling import Cancelled
from jupyter_durable.engine.context import current
from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import Cancellation
from jupyter_durable.log.base import EventLog
from jupyter_durable.person import who


class StoppingWords:
    """A part of the namespace ``durable``."""

    def cancel(self, run: str = "", *, reason: str = "") -> Cancelled:
        """Cancel a run, or a child run: it ends at its next await or step, and no further step of it is executed.

        A run that was cancelled does not go on when its cell runs again, before somebody resumes it. A child run that
        was cancelled raises `ChildCancelled` in its parent, which may catch that and go on.

        Args:
            run: name or id of the run, with the path or number of a child run behind it: ``"report"``,
                ``"report/page-3"``.
                Nothing, inside of a run: that run itself.
            reason: why, for people; it is recorded.

        Returns:
            What was cancelled, and whether it is still being executed and has yet to come to an await or a step.

        Raises:
            UsageError: there is no such run, or nothing of it is left to cancel.
            RunCancelled: the run that calls it has cancelled itself.

        >>> from jupyter_durable import durable
        >>> durable.cancel()
        Traceback (most recent call last):
            ...
        jupyter_durable.errors.UsageError: Which run? Outside of a run its name is needed: `durable.cancel("report")`.
        """
        frame = current()
        if not isinstance(run, str) or not isinstance(reason, str):
            raise UsageError('Name of the run and reason are texts: `durable.cancel("report", reason="too long")`.')
        if run:
            log = _log()
            found, child = client.find_child(log, run)
            return client.cancel(log, found, child=child, reason=reason, via="python" if frame is None else "cell")
        if frame is None or frame.execution.ended:
            raise UsageError('Which run? Outside of a run its name is needed: `durable.cancel("report")`.')
        execution = frame.execution
        execution.cancel_watch.cancel(Cancellation(by=who(), via="cell", sent=clock.now(), reason=reason))
        execution.refuse()
        raise AssertionError  # it has raised

    def resume(self, run: str) -> None:
        """Let a cancelled run go on: when its cell runs again it goes on from where it was.

        Args:
            run: name or id of the run.

        Raises:
            UsageError: there is no such run, or it is not cancelled.

        >>> from jupyter_durable import durable
        >>> durable.resume("report")
        Traceback (most recent call last):
            ...
        jupyter_durable.errors.LogUnusable: ...
        """
        log = _log()
        client.resume(log, client.find_resumed(log, run))


def _log() -> EventLog:
    """The log of the run that asks, else the default one."""
    frame = current()
    return client.existing_log() if frame is None else frame.execution.log
