"""What of a live execution can be undone: registered with the intent of a step, counted when it completes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from jupyter_durable import clock
from jupyter_durable.entries import Effect, Entry
from jupyter_durable.event_data import Payload
from jupyter_durable.events import CompensationRegistered
from jupyter_durable.keys import inner_scope
from jupyter_durable.sentences import listed
from jupyter_durable.stored import Compensation
from jupyter_durable.values import digest

if TYPE_CHECKING:
    from jupyter_durable.call import Call
    from jupyter_durable.engine.execution import Execution
    from jupyter_durable.engine.stats import Status
    from jupyter_durable.replay import Replay


class Undoable:
    """What one execution has done that can be undone. The index of its history knows what was done before."""

    def __init__(self) -> None:
        self.effects: dict[str, Effect] = {}
        """Steps that it has completed or taken over: id of the effect -> effect."""
        self.running: dict[str, str] = {}
        """Steps that run right now: id of the effect -> label."""
        self.unknown: dict[str, tuple[str, Status]] = {}
        """Steps that were cut, so that nobody knows whether their effect happened: label, and how they were cut."""

    def adopted(self, entry: Entry, compensation: Compensation, payload: Payload, execution: str, seq: int) -> None:
        """A result was taken over from the branch of origin."""
        self.effects[compensation.id] = Effect(entry, compensation, payload, execution, seq, seq)


class Registration(msgspec.Struct):
    """What undoes one step that is about to be executed."""

    execution: Execution
    call: Call
    name: str
    module: str
    arguments: Payload
    compensation: Compensation | None = None

    def begun(self, seq: int) -> None:
        """Write it behind the intent; one flush makes both last."""
        execution = self.execution
        identity = digest([execution.header.execution, seq])
        self.compensation = Compensation(
            id=identity, name=self.name, module=self.module, arguments=self.arguments
        )  # fmt: skip
        event = CompensationRegistered(at=clock.now(), step=seq, data=self.compensation)
        written = execution.append(event)
        if self.call.key.scope:
            execution.replay.own.apply(written, event)
        execution.undoable.running[identity] = f"`{self.call.name}` (step {seq})"

    def completed(self, step: int, end: int, payload: Payload) -> None:
        """The step has its value."""
        done = self.compensation
        assert done is not None
        execution, key = self.execution, self.call.key
        known = execution.replay.own.entries.get(key)
        begun = known.begun if known is not None else step
        entry = Entry(key, begun, step, execution.header.execution, self.call.evidence, self.call.kind, self.call.pure)
        entry.state, entry.end, entry.payload, entry.compensation = "completed", end, payload, done
        effect = Effect(entry, done, payload, execution.header.execution, end, step)
        execution.undoable.effects[done.id] = effect

    def over(self, status: Status) -> None:
        """The step has ended, however."""
        if self.compensation is None:
            return
        label = self.execution.undoable.running.pop(self.compensation.id, "")
        if status not in ("live", "failed"):
            self.execution.undoable.unknown[self.compensation.id] = (label, status)


def undone_before(replay: Replay) -> str:
    """What is wrong if a run goes over to a new branch here: it was given results that it has undone later on.

    Returns:
        The sentence about it, from its second word on; empty if nothing is.
    """
    own = replay.own
    undoing = [inner_scope(e.key) for e in own.entries.values() if e.kind == "undo" and replay.match.is_served(e)]
    lost: list[Entry] = []
    for identity, by in own.undone.items():
        effect = own.effects.get(identity)
        if effect is None or not replay.match.is_served(effect.entry) or by is None:
            continue
        if not any(f"{by.key.scope}/".startswith(f"{scope}/") for scope in undoing):
            lost.append(effect.entry)
    if not lost:
        return ""
    lost.sort(key=lambda entry: entry.begun)
    return (
        f"{listed(lost)} came before that and was undone by this run. Nothing was executed. `%%durable --from "
        f"{lost[0].begun}` begins anew there, `%%durable --fresh` at the beginning."
    )
