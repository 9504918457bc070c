"""A runner without effects for the tests of the pure engine: it plays programs against `Replay` and writes events.

A program is a list of `Do` instructions for one scope. Playing it yields what a runner would have done: which steps
were handed out, which were executed, and the events that an execution would have written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from jupyter_durable.call import Adopt, Call, Execute, Place, Policy, Recorded, Stop
from jupyter_durable.event_data import Adopted, AttemptInfo, ErrorInfo, ExecutionHeader, Outcome, Payload
from jupyter_durable.events import (
    FORMAT,
    AnyEvent,
    ExecutionEnded,
    ExecutionStarted,
    StepAdopted,
    StepCompleted,
    StepFailed,
    StepStarted,
)
from jupyter_durable.events import Recorded as Line
from jupyter_durable.history import History
from jupyter_durable.replay import Replay


@dataclass(frozen=True)
class Do:
    """One call of a program: a step by name and arguments, perhaps with steps inside, perhaps failing."""

    name: str
    args: str = ""
    pure: bool = False
    evidence: str = "v1"
    inside: tuple[Do, ...] = ()
    fails: bool = False
    """The body raises, and the program catches it and goes on."""


@dataclass
class Played:
    """What playing a program did."""

    events: list[Line]
    executed: list[str] = field(default_factory=list)
    handed_out: list[str] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    """Label of each call -> the value the program saw."""
    stop: Stop | None = None
    killed: bool = False


class Killed(Exception):
    """The simulated process died."""


class Stopped(Exception):
    """Replay stopped the run."""


class Simulation:
    """Plays one program over a history, up to a number of written events."""

    def __init__(
        self,
        own: Iterable[Line] = (),
        source: Iterable[Line] | None = None,
        policy: Policy | None = None,
        kill_after: int | None = None,
        execution: str = "e1",
    ) -> None:
        self.before = list(own)
        self.replay = Replay(History(self.before), None if source is None else History(source), policy)
        self.kill_after = kill_after
        self.seq = self.before[-1].seq if self.before else -1
        self.played = Played(events=[])
        self.execution = execution

    def play(self, program: Iterable[Do], place: Place | None = None) -> Played:
        """Run a whole program; a kill or a stop ends it early."""
        try:
            self.write(ExecutionStarted(at=0.0, data=header(self.execution)))
            self.scope(program, place or Place(), "")
            self.write(ExecutionEnded(at=0.0, data=Outcome(status="completed")))
        except Killed:
            self.played.killed = True
        except Stopped:
            self.played.events.append(Line(self.seq + 1, ExecutionEnded(at=0.0, data=Outcome(status="stopped"))))
        return self.played

    def write(self, event: AnyEvent) -> int:
        if self.kill_after is not None and len(self.played.events) >= self.kill_after:
            raise Killed
        self.seq += 1
        self.played.events.append(Line(self.seq, event))
        return self.seq

    def scope(self, program: Iterable[Do], place: Place, path: str) -> None:
        for do in program:
            self.call(do, place, path)

    def call(self, do: Do, place: Place, path: str) -> None:
        n = place.occurrence(do.name, do.args)
        label = f"{path}/{do.name}({do.args})#{n}"
        call = Call(place, do.name, do.args, n, do.evidence, pure=do.pure)
        verdict = self.replay.ask(call)
        if isinstance(verdict, Stop):
            self.played.stop = verdict
            raise Stopped
        if isinstance(verdict, Recorded):
            self.played.handed_out.append(label)
            self.played.values[label] = value_of(verdict.entry)
            return
        if isinstance(verdict, Adopt):
            entry = verdict.entry
            adopted = Adopted(execution=entry.execution, seq=entry.end, payload=entry.payload, error=entry.error)
            self.write(
                StepAdopted(
                    at=0.0, name=do.name, digest=do.args, n=n, scope=call.key.scope, evidence=do.evidence, data=adopted
                )
            )
            self.played.adopted.append(label)
            self.played.values[label] = value_of(entry)
            return
        assert isinstance(verdict, Execute), verdict
        key = call.key
        started = StepStarted(
            at=0.0, name=do.name, digest=do.args, n=n, scope=key.scope, evidence=do.evidence, pure=do.pure
        )
        step = self.write(started)
        self.played.executed.append(label)
        body = place.body(key)
        self.scope(do.inside, body, label)
        body.finished()
        if do.fails:
            error = ErrorInfo(type="ValueError", message=label)
            self.write(StepFailed(at=0.0, step=step, data=AttemptInfo(error=error)))
            self.played.values[label] = f"raised {label}"
        else:
            text = msgspec.json.encode(f"{label} by {self.execution}")
            self.write(StepCompleted(at=0.0, step=step, data=Payload(data=msgspec.Raw(text))))
            self.played.values[label] = text.decode()


def value_of(entry: object) -> str:
    """What an entry holds, as text."""
    payload, error = entry.payload, entry.error  # type: ignore[attr-defined]
    return bytes(payload.data).decode() if payload is not None else f"raised {error.message}"


def header(execution: str) -> ExecutionHeader:
    """A first line."""
    return ExecutionHeader(format=FORMAT, execution=execution, run="r", name="r", branch="r.1", branch_name="main")
