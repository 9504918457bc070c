"""The words for runs that outlive their code and their histories: ``durable.patched``, ``durable.continue_as_new``,
``durable.state``, and ``durable.runs``.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

from jupyter_durable.engine.context import current
from jupyter_durable.engine.continuing import end_and_go_on, handed_on
from jupyter_durable.engine.patching import is_patched
from jupyter_durable.errors import NotInRun, UsageError
from jupyter_durable.running import RunContext


class LongLifeWords:
    """A part of the namespace ``durable``."""

    def patched(self, id: str) -> bool:  # noqa: A002 - the word for it
        """Whether the new code runs: ``if durable.patched("new-mailer"): new() else: old()``.

        For code that must differ for histories that were begun with the old one. The answer is recorded: one for each
        id and branch, in loops, tasks and steps alike, and branches that are made from this one take it over.

        Args:
            id: a name for the change, 1 to 200 characters; another one for each change.

        Returns:
            ``False`` where history has gone past this place without the question, so that the old code goes on;
            ``True`` in a new run, where history had not come here, after a difference, and outside of a run.

        Raises:
            UsageError: no id, or a child process or worker asks.

        >>> from jupyter_durable import durable
        >>> durable.patched("new-mailer")
        True
        """
        if not isinstance(id, str) or not id.strip() or len(id) > 200:
            raise UsageError('A patch has an id of 1 to 200 characters: `durable.patched("new-mailer")`.')
        frame = current()
        return True if frame is None else is_patched(frame, id)

    def state(self, **defaults: Any) -> SimpleNamespace:
        """What ``durable.continue_as_new`` has handed on to this branch, or these values where nothing was.

        Args:
            **defaults: the values the first time; also of names that were not handed on.

        Returns:
            An object with the values as attributes.

        Raises:
            UnloadableValue: today's code cannot bring back what was handed on.
            UsageError: a child process or worker asks.

        >>> from jupyter_durable import durable
        >>> durable.state(cursor=0, seen=[])
        namespace(cursor=0, seen=[])
        """
        frame = current()
        if frame is None:
            return SimpleNamespace(**defaults)
        return SimpleNamespace(**{**defaults, **handed_on(frame.execution)})

    def continue_as_new(self, **state: Any) -> NoReturn:
        """End this branch, and begin the cell again at its first line, on a new one with an empty history.

        For loops without an end, whose history would grow for ever. The old branch stays in the log. In a script the
        block of the run is left, and ``durable.runs`` enters it again.

        Args:
            **state: what `state` gives on the new branch; it must be storable, as the value of a step.

        Raises:
            ContinuedAsNew: always, if nothing is wrong; ``except Exception`` lets it through.
            NotInRun: outside of a durable run.
            UsageError: a step's body calls it, or what the cell has started has not ended; the run goes on.
            UnstorableValue: the state cannot be stored; the run goes on.

        >>> from jupyter_durable import durable
        >>> durable.continue_as_new(cursor=7)
        Traceback (most recent call last):
            ...
        jupyter_durable.errors.NotInRun: `durable.continue_as_new` ends a branch: use it in a durable run.
        """
        __tracebackhide__ = True
        frame = current()
        if frame is None:
            raise NotInRun("`durable.continue_as_new` ends a branch: use it in a durable run.")
        end_and_go_on(frame, state)

    def runs(self, name: str, **options: Any) -> Iterator[RunContext]:
        """The run of a script, again and again until its block comes to its end without ``durable.continue_as_new``.

        ``for run in durable.runs("watch"):`` and in it ``with run:``, or ``async with run:``.

        Args:
            name: name of the run in its log.
            **options: as of ``durable.run``.

        Returns:
            The run, to be entered; after ``continue_as_new`` the same run again.

        Raises:
            UsageError: the block was not entered.

        >>> from jupyter_durable import durable
        >>> for run in durable.runs("count", log="memory:"):
        ...     with run:
        ...         state = durable.state(n=0)
        ...         if state.n < 3:
        ...             durable.continue_as_new(n=state.n + 1)
        >>> state.n
        3
        """
        after = ""
        while True:
            run = RunContext(name, after=after, repeats=True, **options)
            yield run
            if run.execution is None:
                raise UsageError(f'Enter the run in the loop: `for run in durable.runs("{name}"):`, then `with run:`.')
            if not run.continued:
                return
            after = run.execution.header.branch
            options = {**options, "log": run.execution.log, "branch": ""}
