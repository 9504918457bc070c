"""A story: lives and deaths of one program, and what people, services and the clock do between and beside them.

Playing one looks at the log and at the outside after each life, and brings the program to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from jupyter_durable import answering, client, clock
from jupyter_durable.errors import DecisionNeeded, Parked
from tests.programs import laws
from tests.programs.language import Program
from tests.programs.laws import Forked
from tests.programs.lives import Fate, Life, Lived, MortalLog, unheard_errors
from tests.programs.model import Counting, Reading
from tests.programs.outside import People, StoryClock, World


@dataclass(frozen=True)
class Send:
    """Somebody sends a signal."""

    name: str
    twice: bool = False


@dataclass(frozen=True)
class Answer:
    """Somebody answers one of the open questions."""

    which: int
    choice: int
    twice: bool = False


@dataclass(frozen=True)
class Clock:
    """Hours go by, or the clock is put back."""

    hours: int


@dataclass(frozen=True)
class Live:
    """A life of the program: it may die behind so many events, and things happen outside behind some."""

    die: int | None = None
    posts: tuple[tuple[int, Send | Answer | Clock], ...] = ()
    new: bool = True
    """In a new process; else in the one before, if that has not died."""


@dataclass(frozen=True)
class Fork:
    """Somebody forks the newest branch at one of its steps."""

    which: int


@dataclass(frozen=True)
class Fold:
    """Somebody queries the log, which folds it."""


Post = Send | Answer | Clock
Act = Live | Post | Fork | Fold


@dataclass(frozen=True)
class Story:
    """A program and what becomes of it."""

    program: Program
    acts: tuple[Act, ...] = ()
    fork: int = 0
    """Where the finished run is forked in the end."""

    def __str__(self) -> str:
        acts = "\n".join(map(str, self.acts)) or "(nothing happens)"
        return f"\n{self.program}\n# what happens, before it comes to its end and is forked at {self.fork}\n{acts}"


def without_order(value: object) -> object:
    """A value without the order in which parts of a program have ended."""
    if not isinstance(value, list):
        return value
    plain = [without_order(each) for each in value]
    named = all(isinstance(each, list) and each and str(each[0]).startswith("part") for each in plain)
    return sorted(plain, key=repr) if named else plain


class Telling:
    """A story while it is told."""

    def __init__(self, story: Story, log: MortalLog) -> None:
        self.story = story
        self.log = log
        self.world = World()
        self.people = People(log)
        self.clock = StoryClock()
        self.process: Life | None = None
        self.deaths = 0
        self.forked: list[Forked] = []
        self.lives = 0

    def tell(self) -> None:
        """All of it, with what must hold in between and in the end."""
        unheard_errors.clear()
        with clock.use(self.clock):
            for act in self.story.acts:
                self.act(act)
            value = self.finish()
            if not self.forked and not self.deaths:
                self.counted()
            if self.fork(self.story.fork):
                old = self.forked[-1].old
                self.finish()
                self.back_to(old, value)
        assert not unheard_errors

    def act(self, act: Act) -> None:
        """One thing that happens."""
        if isinstance(act, Live):
            fate = Fate(act.die)
            for behind, post in act.posts:
                fate.posts.setdefault(behind, []).append(partial(self.post, post))
            self.life(fate, new=act.new, quiet=not act.posts)
        elif not self.lives:
            return
        elif isinstance(act, Fork):
            self.fork(act.which)
        elif isinstance(act, Fold):
            self.log.fold()
        else:
            self.post(act)

    def post(self, post: Post) -> None:
        """Something comes from outside."""
        if isinstance(post, Send):
            self.people.send(post.name, twice=post.twice)
        elif isinstance(post, Answer):
            self.people.answer(post.which, post.choice, twice=post.twice)
        else:
            self.clock.at += post.hours * 3600

    def life(self, fate: Fate | None = None, *, new: bool = True, quiet: bool = True, **flags: bool) -> Lived:
        """One life, and what must hold after it."""
        if new or self.process is None:
            self.process = Life(self.story.program, self.log, self.world)
        before = laws.Before.of(self.log, self.world)
        lived = self.process.live(fate, **flags)
        self.lives += 1
        if lived.died:
            self.deaths += 1
            self.process = None
        before.hold(lived)
        laws.everywhere(self.log, self.world, self.people, died=lived.died)
        if quiet and isinstance(lived.error, Parked):
            laws.no_signal_is_lost(self.log)
        return lived

    def finish(self) -> object:
        """Lives without deaths until the program has its value; then it replays."""
        for _ in range(150):
            lived = self.life()
            if lived.error is None:
                break
            self.go_on(lived)
        else:
            raise AssertionError("the program does not come to its end")
        self.right(lived.value)
        value = lived.value
        if self.lives > 1 or self.forked:
            # What was executed beside what was recorded may have ended first, and comes after it from now on.
            again = self.life().value
            assert without_order(again) == without_order(value)
            value = again
        self.replays(value)
        for forked in self.forked:
            forked.holds(self.log, self.world)
        return value

    def go_on(self, lived: Lived) -> None:
        """Do what the run says that is to be done."""
        if isinstance(lived.error, Parked):
            for wait in answering.waiting(self.log):
                if wait.kind == "signal":
                    self.people.send(wait.name)
                elif wait.kind == "approval":
                    self.people.answer(0, 0)
            moments = [wait.info.until or 0 for wait in answering.waiting(self.log) if wait.kind == "timer"]
            self.clock.at = max([self.clock.at, *(moment + 1 for moment in moments)])
        elif isinstance(lived.error, DecisionNeeded):
            stalled = "executions died before any step" in str(lived.error)
            in_doubt = any(forked.in_doubt for forked in self.forked)
            assert stalled or in_doubt, lived.error
            client.decide(self.log, client.find_run(self.log, "p"), "none")
        elif "Boom" not in repr(lived.error):
            raise AssertionError("the run has stopped") from lived.error

    def right(self, value: object) -> None:
        """The finished run is what the model says."""
        reading = Reading(self.story.program, self.world, self.people)
        reading.read(value)
        laws.finished(self.log, self.people, reading)

    def replays(self, value: object) -> None:
        """Nothing is executed, and everything is as it was; nothing may be executed, and it is the same."""
        effects = len(self.world.effects)
        for flags in ({}, {"replay_only": True}):
            again = self.life(**flags)
            assert again.error is None, again.error
            assert again.live == 0
            assert again.value == value
            assert len(self.world.effects) == effects
        run = client.find_run(self.log, "p")
        branch = client.find_branch(self.log, run).name
        assert {row.verdict for row in client.diff(self.log, run, branch, branch)} <= {"equal"}

    def counted(self) -> None:
        """Where nothing died, each body ran as often as the model says."""
        expected = Counting(self.story.program).play()
        if expected is not None:
            found = [ticket.what for ticket in self.world.effects]
            assert sorted(found) == sorted(expected.elements())

    def fork(self, which: int) -> bool:
        """Fork the newest branch, if it has a step; nothing is written into any branch that was there."""
        run = client.find_run(self.log, "p")
        steps = client.steps(self.log, run)
        if not steps:
            return False
        self.forked.append(Forked.at(self.log, run, steps[which % len(steps)].number))
        self.process = None
        return True

    def back_to(self, old: str, value: object) -> None:
        """The old branch replays as before."""
        client.switch(self.log, client.find_run(self.log, "p"), old)
        self.replays(value)
