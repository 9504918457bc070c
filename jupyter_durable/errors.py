"""The errors of jupyter_durable, as one tree.

::

    DurableError (Exception)             every error below has facts as attributes and says what to do next
    ├── UsageError                       bad flags, names, options: nothing has happened yet
    │   ├── CannotHook                   a library is not as its hook knows it: its calls go unrecorded
    │   ├── NotInRun                     a word that needs a run was used outside of one
    │   ├── AttemptOver                  a body goes on although its attempt was given up: nothing of it counts
    │   └── RunEnded                     a step was called after its execution had ended
    ├── LogError                         the log cannot be used as asked
    │   ├── LogUnusable                  cannot be created, read or written (rights, full disk, file system)
    │   ├── LogDamaged                   bytes that were written are missing or changed
    │   ├── LogTooNew                    written by a newer version of jupyter_durable
    │   ├── LogUntrusted                 written with another person's key, or changed by somebody without the key
    │   └── BranchBusy                   another execution holds this branch
    │       └── BranchMoved              another execution has continued it since it was read
    ├── ReplayError                      history and program do not fit; no effect was made
    │   ├── NondeterminismError          nothing recorded changed, and still the program asks for something else
    │   ├── DecisionNeeded               after an edit: finished or in-doubt steps that a person must settle
    │   ├── BranchClosed                 a person has undone the branch: it is neither replayed nor continued
    │   ├── InDoubtError                 a step has an intent and no end, and its policy forbids to guess
    │   ├── HiddenEffectError            a live step would read what an earlier, replayed step changed in place
    │   ├── ReplayOnlyError              `--replay-only` met a step that history does not have
    │   └── StreamNotRecorded            more of a model's stream is asked for than was read when it was recorded
    ├── BudgetExceeded                   the next call or step could pass the budget; it was not executed
    ├── ValueBoundaryError               the boundary of stored values
    │   ├── UnstorableValue              a value that cannot be stored, with the path to the offender
    │   ├── UnloadableValue              a stored value that today's code cannot bring back
    │   ├── Undigestable                 an argument that has no digest, so the call has no identity
    │   └── ValueNotStored               a step is done, its value could not be stored; a person settles it
    ├── ChildCancelled                   somebody has cancelled a child run; its parent may catch that and go on
    ├── UndoFailed                       what undoes a step failed: what came before it is undone, the rest is not
    ├── NotAnswered                      nobody had answered within the `timeout` of a wait
    ├── WorkerFailed                     a worker of `durable.map(executor=...)` died, or could not take its item
    └── StepTimeout                      one attempt of a step took longer than its `timeout`

    DurableControl (BaseException)       not errors: a cell's `except Exception` must not eat them
    ├── Parked                           the run waits for a signal or a timer, and its cell has ended
    ├── RunCancelled                     somebody has cancelled the run from outside
    ├── ContinuedAsNew                   the branch has ended, and the cell begins again with the state handed on
    ├── RunSealed                        the run has stopped; every further step refuses
    └── RunStopped                       carries an error of the tree above past an SDK that would swallow it

Messages name run, branch and step, what was recorded and what was asked, and what to do.
They never contain the value of an argument: it may be a prompt or a key.
"""

from __future__ import annotations

from typing import Any


class DurableError(Exception):
    """Base of every error that jupyter_durable raises on purpose.

    Attributes:
        facts: what is known about the place of the error (``run``, ``branch``, ``step``, ``path`` and so on).
    """

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts: dict[str, Any] = facts

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.facts))


class DurableControl(BaseException):
    """Base of what stops a run without being an error; ``except Exception`` lets it through."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts: dict[str, Any] = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.facts))


def _rebuild(cls: type[Any], args: tuple[Any, ...], facts: dict[str, Any]) -> Any:
    return cls(*args, **facts)


class UsageError(DurableError):
    """Something was asked in a way that cannot work; nothing has happened yet."""


class NotInRun(UsageError):
    """A word that needs a run was used outside of one."""


class CannotHook(UsageError):
    """A library is not as its hook knows it; nothing was patched, and its calls go unrecorded."""


class RunEnded(UsageError):
    """A step was called after its execution had ended; it was not executed."""


class AttemptOver(UsageError):
    """A body called a step, or beat its heart, after its attempt had been given up; nothing was recorded."""


class LogError(DurableError):
    """The log cannot be used as asked."""


class LogUnusable(LogError):
    """The log cannot be created, read or written."""


class LogDamaged(LogError):
    """Bytes of the log are missing or changed. Facts: ``file``, ``line`` (from 1), ``readable`` (events before it)."""


class LogTooNew(LogError):
    """The log was written by a newer version."""


class LogUntrusted(LogError):
    """The log was written with another key, or changed by somebody without it; nothing of it is loaded."""


class BranchBusy(LogError):
    """Another live execution holds the branch. Facts: ``pid``, ``host``, ``notebook``, ``since``."""


class BranchMoved(BranchBusy):
    """Another execution has continued the branch since it was read; read it again."""


class ReplayError(DurableError):
    """History and program do not fit together; no effect was made."""


class NondeterminismError(ReplayError):
    """Nothing recorded changed, and still the program asks for something else than history has."""


class DecisionNeeded(ReplayError):
    """After an edit there are steps about which a person must decide. Fact: ``steps`` (their labels)."""


class BranchClosed(ReplayError):
    """A person has undone the branch; nothing of it is replayed or continued. Facts: ``by``, ``at``."""


class InDoubtError(ReplayError):
    """A step was begun and its end is not known; its policy forbids to guess."""


class HiddenEffectError(ReplayError):
    """A live step would read what a replayed step had changed in place on the first run."""


class ReplayOnlyError(ReplayError):
    """``--replay-only`` met a step that history does not have; nothing was executed."""


class StreamNotRecorded(ReplayError):
    """More of a model's stream is asked for than the program had read when it was recorded; nothing was asked anew."""


class BudgetExceeded(DurableError):
    """The next call or step could pass the budget; it was not executed. Facts: ``budget``, ``spent``, ``next``."""


class ValueBoundaryError(DurableError):
    """A value cannot cross the boundary between program and log."""


class UnstorableValue(ValueBoundaryError):
    """A value cannot be stored. Facts: ``path`` (such as ``result['client']``), ``type``, ``advice``."""


class UnloadableValue(ValueBoundaryError):
    """A stored value cannot come back with today's code. Facts: ``missing``, ``reason``."""


class Undigestable(ValueBoundaryError):
    """A value has no digest that is equal in every process. Facts: ``path``, ``type``."""


class ValueNotStored(ValueBoundaryError):
    """A step is done, but its value could not be stored; a person settles it with ``%durable settle``."""


class StepTimeout(DurableError, TimeoutError):
    """One attempt of a step took longer than its ``timeout``."""


class WorkerFailed(DurableError, ConnectionError):
    """A worker of ``durable.map(executor=...)`` died over an item, or could not take it: one attempt that failed."""


class ChildCancelled(DurableError):
    """Somebody has cancelled a child run; no further step of it is executed.

    Facts: ``run``, ``branch``, ``child`` (its path), ``by``, ``via``, ``reason``, ``sent``.
    """


class UndoFailed(DurableError):
    """What undoes a step failed. Facts: ``undone``, ``left`` (labels of steps). The failure itself is its cause."""


class NotAnswered(DurableError, TimeoutError):
    """Nobody had answered a request, or sent a signal, within its ``timeout``."""


class Parked(DurableControl):
    """The run waits for a signal or a timer; its cell has ended and goes on when it is run again.

    Facts: ``run``, ``branch``, ``waits`` (what for, as sentences), ``until`` (when a timer fires, if one does),
    ``requests`` (ids of what somebody may answer).
    """


class RunCancelled(DurableControl):
    """Somebody has cancelled the run; it goes on only when somebody has resumed it.

    Facts: ``run``, ``branch``, ``by``, ``via``, ``reason``, ``sent`` (seconds since 1970-01-01 UTC).
    """


class ContinuedAsNew(DurableControl):
    """``durable.continue_as_new`` has ended the branch; its cell begins again, on a new one, with the state handed on.

    Facts: ``run``, ``branch`` (the one that has ended).
    """


class RunSealed(DurableControl):
    """The run has stopped (it needs a decision, or it was interrupted); no further step is executed."""


class RunStopped(DurableControl):
    """Carries an error past code that takes every `Exception` for a broken connection and tries again.

    SDKs of model providers do. The cell, or the ``with`` block of the run, raises `error` in its place.

    Attributes:
        error: what is wrong.
    """

    def __init__(self, error: DurableError) -> None:
        super().__init__(str(error), **error.facts)
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return (RunStopped, (self.error,))
