"""What capture keeps about one execution: open streams, refusals that an SDK may answer by trying again."""

from __future__ import annotations

import gc
import threading
from types import FrameType
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from jupyter_durable.call import Call
from jupyter_durable.capture.answers import Recorded
from jupyter_durable.capture.conversation import Conversations
from jupyter_durable.capture.purse import Purse
from jupyter_durable.engine.attempt import Attempt
from jupyter_durable.engine.execution import Execution
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import Notice

if TYPE_CHECKING:
    from jupyter_durable.capture.recording import Recording


class Refusal(msgspec.Struct):
    """A call that was answered by an error, now or on replay."""

    call: Call
    frames: list[FrameType]
    """The functions that were running when it was made."""
    attempt: Attempt | None = None
    """Live: what a retry continues."""
    entry: Entry | None = None
    """Replayed: what a retry gets again, `left` times."""
    answer: Recorded | None = None
    error: BaseException | None = None
    left: int = 0


class CaptureState:
    """See the module."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.refusals: dict[tuple[object, ...], Refusal] = {}
        """Where, and of what name and digest -> the last refusal."""
        self.purse = Purse(execution) if execution.budget.of_models or execution.spec.notebook_budget else None
        """What the budget leaves, if there is one."""
        self.conversations = Conversations()
        self._open: dict[int, Recording] = {}
        self._lock = threading.Lock()
        self._said: set[str] = set()

    @classmethod
    def of(cls, execution: Execution) -> CaptureState:
        """The state of an execution; made when it is first asked for."""
        state = _states.get(execution)
        if state is None:
            state = _states.setdefault(execution, cls(execution))
            if not execution.before_end or execution.before_end[-1] != state.finish:
                execution.before_end.append(state.finish)
        return state

    def opened(self, recording: Recording) -> None:
        """Follow a recording until its answer is read."""
        with self._lock:
            self._open[id(recording)] = recording

    def closed(self, recording: Recording) -> None:
        """Its answer is read, or will not be."""
        with self._lock:
            self._open.pop(id(recording), None)

    def finish(self) -> None:
        """Write down what was read of streams that were left: the cell ends.

        A stream that the program left in the middle may sit in a reference cycle, so that nobody closes it.
        """
        self.refusals.clear()
        if not self._open or self.execution.interrupted:
            return  # what the stop button cuts is in doubt
        if any(not each.is_of_loop for each in self._open.values()):
            gc.collect()
        for recording in list(self._open.values()):
            if not recording.is_being_streamed:
                continue  # its answer was on its way when the cell ended: nobody knows it, so it is in doubt
            if recording.is_of_loop or not self.execution.members.threads:
                recording.left()

    def say_once(self, what: str, step: int, message: str) -> None:
        """A notice that the user gets once in an execution."""
        if what not in self._said:
            self._said.add(what)
            self.execution.notice(step, Notice(kind="note", message=message))


_states: WeakKeyDictionary[Execution, CaptureState] = WeakKeyDictionary()
