"""What must hold of a log and of the outside, whatever has happened."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from jupyter_durable import answering, client
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.events import StepCompleted, StepStarted, WaitStarted
from jupyter_durable.history import History
from jupyter_durable.keys import Key, inner_scope, inside, is_of_map, make_key
from jupyter_durable.log.base import EventLog
from tests.programs.lives import Lived
from tests.programs.model import Reading
from tests.programs.outside import People, World, site_of

OPEN = {"in_doubt", "interrupted", "running", "waiting"}


def branches(log: EventLog) -> dict[str, tuple[ExecutionHeader, History]]:
    """Id of each branch -> its first line and its history."""
    found = {}
    for views in client.views_of(log).values():
        for view in views:
            found[view.branch] = (view.first, History(log.history(view.branch)))
    return found


def idempotency_key(header: ExecutionHeader, key: Key) -> str:
    """The name of a step's effect on a branch, as the documentation says that it is made."""
    parts = (header.run, header.root, str(header.generation), *map(str, key))
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def bytes_of(log: EventLog, branch: str) -> list[bytes]:
    """A branch as its events are written."""
    return [msgspec.json.encode([each.seq, each.event]) for each in log.history(branch)]


@dataclass
class Before:
    """What the log said before a life."""

    world: World
    completed: set[str]
    """Idempotency keys of steps that have their value."""
    counts: Counter[str]
    effects: int

    @classmethod
    def of(cls, log: EventLog, world: World) -> Before:
        """Now."""
        completed = {
            idempotency_key(header, entry.key)
            for header, history in branches(log).values()
            for entry in history.entries.values()
            if entry.state == "completed" and entry.kind == "step"
        }
        return cls(world, completed, world.counts(), len(world.effects))

    def hold(self, lived: Lived) -> None:
        """What had its value was not executed again."""
        counts = self.world.counts()
        for key in self.completed:
            assert counts[key] == self.counts[key], "a step whose value is recorded was executed again"
        assert lived.died or lived.live or len(self.world.effects) == self.effects


def everywhere(log: EventLog, world: World, people: People, *, died: bool) -> None:
    """After every life, on every branch."""
    for view in client.runs(log):
        assert view.status != "running", "a dead process looks alive"
        assert not died or view.status == "interrupted"
    assert not any(wait.running for wait in answering.waiting(log))
    intents: Counter[str] = Counter()
    for branch, (header, history) in branches(log).items():
        timers: dict[Key, float | None] = {}
        waits: dict[int, Key] = {}
        for recorded in log.history(branch):
            event = recorded.event
            if isinstance(event, StepStarted):
                key = make_key((event.scope, event.name, event.digest, event.n))
                intents[idempotency_key(header, key)] += 1
            elif isinstance(event, WaitStarted) and event.kind == "timer":
                key = waits[recorded.seq] = make_key((event.scope, event.name, event.digest, event.n))
                assert timers.setdefault(key, event.data.until) == event.data.until, "a timer's moment has moved"
            elif isinstance(event, StepCompleted) and event.step in waits:
                assert event.at >= (timers[waits[event.step]] or 0), "a timer was over too early"
        receipts_are_right(history, people)
    for key, count in world.counts().items():
        assert count <= intents[key], "an effect without its intent"


def receipts_are_right(history: History, people: People) -> None:
    """Signals and answers are used once, by whoever they were meant for."""
    used = [e.receipt.signal for e in history.entries.values() if e.receipt is not None and e.state == "completed"]
    assert len(used) == len(set(used)), "a signal was used twice"
    for entry in history.entries.values():
        if entry.receipt is None or entry.wait is None:
            continue
        if entry.kind == "signal":
            assert people.signals[entry.receipt.signal][0] == entry.key.name
        else:
            assert entry.receipt.signal == entry.wait.request
            assert people.answers[entry.wait.request][0] == site_of(entry.wait.shown)


def no_signal_is_lost(log: EventLog) -> None:
    """A life that nobody has disturbed has taken all that had come."""
    for wait in answering.waiting(log):
        assert wait.answer is None, f"{wait.title} was answered, and still waits"


def finished(log: EventLog, people: People, reading: Reading) -> None:
    """A run that has its value."""
    run = client.find_run(log, "p")
    assert client.runs(log)[0].status == "completed"
    assert answering.waiting(log) == []
    history = History(log.history(client.find_branch(log, run).branch))
    # A body that fails may leave what it has begun beside that: nobody waits for it, and what it did is unknown.
    left = {inner_scope(entry.key) for entry in history.entries.values() if entry.state == "failed"}
    assert [s for s in client.steps(log, run) if s.status in OPEN and not inside(s.scope, left)] == []
    for entry in history.entries.values():
        said = None if entry.wait is None else people.answers.get(entry.wait.request)
        if entry.kind == "approval" and said is not None:
            assert entry.receipt is not None, "an answer was lost"
    given = Counter(
        (site_of(entry.wait.shown), "lapsed" if entry.receipt is None else people.answers[entry.receipt.signal][1])
        for entry in history.entries.values()
        if entry.kind == "approval" and entry.wait is not None
    )
    assert Counter(reading.answers) == given, "an answer went to another question"


@dataclass
class Forked:
    """A fork, and what was there before it."""

    old: str
    """Name of the branch that was forked."""
    branch: str
    """Id of the new one."""
    entry: Entry
    """The step that it was forked at."""
    before: History
    bytes: dict[str, list[bytes]]
    """Branches that were there, as they were written."""
    in_doubt: bool

    @classmethod
    def at(cls, log: EventLog, run: str, number: int) -> Forked:
        """Fork the newest branch."""
        view = client.find_branch(log, run)
        history = History(log.history(view.branch))
        written = {branch: bytes_of(log, branch) for branch in branches(log)}
        made = client.fork(log, run, number)
        entry = next(each for each in history.entries.values() if each.begun == number)
        doubt = any(
            e.state in ("open", "interrupted", "cancelled") and e.wait is None for e in history.entries.values()
        )
        forked = cls(view.name, made.branch, entry, history, written, doubt)
        forked.old_is_as_it_was(log)
        return forked

    def old_is_as_it_was(self, log: EventLog) -> None:
        """Nothing is written into a branch by a fork, nor by what is executed on it."""
        for branch, lines in self.bytes.items():
            assert bytes_of(log, branch) == lines, "the old branch was written into"

    def holds(self, log: EventLog, world: World) -> None:
        """The old branch is as it was; what came before the step was kept, the step and what follows it was not."""
        self.old_is_as_it_was(log)
        header, new = branches(log)[self.branch]
        counts = world.counts()
        for entry in self.before.entries.values():
            made = new.entries.get(entry.key)
            if entry.state != "completed" or made is None or entry.kind == "run":
                continue  # the code of a child run runs in any case
            if entry.end < self.entry.begun:  # what is not, and lies in the same place, follows: but for items of a map
                assert made.adopted is not None, f"{entry.label} came before the fork, and was not kept"
                assert counts[idempotency_key(header, entry.key)] == 0
            elif entry is self.entry or (entry.key.scope == self.entry.key.scope and not is_of_map(entry.key.scope)):
                stays = entry is not self.entry and entry.kind not in ("step", "signal", "approval")
                assert stays or made.adopted is None, f"{entry.label} follows the fork, and was taken over"
        if new.completed_branch():
            assert self.entry.key in new.entries, "the step of the fork was not executed"
