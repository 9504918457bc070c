"""The model: what a program comes to, said by plain Python that knows no log.

It reads the value of a finished cell beside the program, with what the outside remembers, and says what does not fit.
Where nothing died and no failure met a program that works in parallel, it also says exactly how often each body ran.
"""

from __future__ import annotations

import datetime
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.programs.language import Approve, Call, Chance, Child, Many, Map, Node, Program, Same, Sleep, WaitFor
from tests.programs.outside import People, World


class Reading:
    """Reads a value beside the program that has made it."""

    def __init__(self, program: Program, world: World, people: People) -> None:
        self.program = program
        self.world = world
        self.people = people
        self.tickets: list[str] = []
        self.signals: list[int] = []
        self.answers: list[tuple[str, str]] = []
        """What was shown, and what the program was answered."""
        self.parts = 0
        self.sites: Iterator[int] = iter(range(1000))

    def read(self, value: Any) -> None:
        """All of it. What was used is used once."""
        self.nodes(self.program.cell, value)
        assert len(set(self.tickets)) == len(self.tickets), "the result of one execution was handed out twice"
        assert len(set(self.signals)) == len(self.signals), "a signal was used twice"

    def nodes(self, nodes: tuple[Node, ...], out: Any) -> None:
        """Each node has appended one value."""
        assert isinstance(out, list)
        assert len(out) == len(nodes), (nodes, out)
        for node, value in zip(nodes, out, strict=True):
            self.node(node, value)

    def node(self, node: Node, value: Any) -> None:
        """One node and its value."""
        if isinstance(node, Call):
            self.call(node.fn, node.arg, value, caught=node.caught)
        elif isinstance(node, Map):
            assert len(value) == len(node.items)
            for item, each in zip(node.items, value, strict=True):
                self.call(node.fn, item, each)
        elif isinstance(node, Sleep):
            assert value is None
        elif isinstance(node, WaitFor):
            assert (node.name, value) in self.people.signals.values(), f"nobody has sent {value!r} as {node.name}"
            self.signals.append(value)
        elif isinstance(node, Approve):
            self.answers.append((f"site {next(self.sites)}", value))
            assert node.hours or value != "lapsed"
        elif isinstance(node, Chance):
            kinds: dict[str, Any] = {"now": datetime.datetime.fromisoformat, "random": float, "uuid": uuid.UUID}
            kinds[node.word](value)
        elif isinstance(node, Child):
            self.parts += 1
            self.part(f"part{self.parts}", node.part, value)
        elif isinstance(node, Same):
            self.same(node, value)
        else:
            self.many(node, value)

    def same(self, node: Same, value: Any) -> None:
        """The text of the part exists once, so its questions are at one site."""
        self.parts += 1
        name, before = f"part{self.parts}", self.parts
        sites = next(self.sites)
        assert len(value) == node.times
        for out in value:
            self.parts, self.sites = before, iter(range(sites, 1000))
            self.part(name, node.part, out)

    def many(self, node: Many, value: Any) -> None:
        """Parts come in the order of the text, or in that of their ends."""
        assert len(value) == len(node.parts)
        if node.how == "as_completed":
            value = sorted(value, key=lambda out: int(out[0].removeprefix("part")))
        for part, out in zip(node.parts, value, strict=True):
            self.parts += 1
            self.part(f"part{self.parts}", part, out)

    def part(self, name: str, nodes: tuple[Node, ...], out: Any) -> None:
        """A part says its name first."""
        assert out[0] == name
        self.nodes(nodes, out[1:])

    def call(self, number: int, arg: int, value: Any, *, caught: bool = False) -> None:
        """The value of a step is that of its last execution, whichever that was."""
        fn = self.program.fns[number]
        if isinstance(value, str):
            assert caught, value
            ticket = value.removeprefix("caught ")
            assert self.outcome(ticket) == "failed"
            return
        ticket, *inside = value
        assert ticket.split()[0] == f"f{number}({arg})", f"asked was f{number}({arg}), what came is of {ticket}"
        assert self.outcome(ticket) == "value"
        parts, self.parts = self.parts, 0
        self.nodes(fn.inside, inside)
        self.parts = parts

    def outcome(self, ticket: str) -> str:
        """How the execution ended that this ticket is of; there must be no later one of its step."""
        self.tickets.append(ticket)
        how, last = self.world.outcomes[ticket.split()[1]]
        assert last == ticket, f"{ticket} was handed out, and the step was executed once more: {last}"
        return how


class Failed(Exception):
    """The model's program has failed."""


class Counting:
    """Plays a program without a log, and counts how often each body is executed if nothing dies."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.counts: Counter[str] = Counter()
        self.raised: Counter[tuple[int, ...]] = Counter()
        self.done: dict[tuple[int, ...], bool] = {}
        """Place of a call -> whether it has a value; a failure that the program caught has none."""
        self.exact = True
        """No failure went through a body or through parts beside each other: there, more may be executed again."""

    def play(self) -> Counter[str] | None:
        """Effects by function and argument, all lives until the end together; nothing if that is not certain."""
        for _ in range(200):
            try:
                self.nodes(self.program.cell, ())
                break
            except Failed:
                continue
        return self.counts if self.exact else None

    def nodes(self, nodes: tuple[Node, ...], place: tuple[int, ...]) -> None:
        """One after the other."""
        for number, node in enumerate(nodes):
            here = (*place, number)
            if isinstance(node, Call):
                self.call(node.fn, node.arg, here, caught=node.caught)
            elif isinstance(node, Map):
                self.beside([partial(self.call, node.fn, i, (*here, n)) for n, i in enumerate(node.items)])
            elif isinstance(node, Child):
                self.nodes(node.part, here)
            elif isinstance(node, Same):
                self.beside([partial(self.nodes, node.part, (*here, n)) for n in range(node.times)])
            elif isinstance(node, Many):
                self.beside([partial(self.nodes, part, (*here, n)) for n, part in enumerate(node.parts)])

    def beside(self, parts: list[Callable[[], None]]) -> None:
        """Parts beside each other; in the model one after the other, so a failure in them is not predicted."""
        for part in parts:
            try:
                part()
            except Failed:
                self.exact = False
                raise

    def call(self, number: int, arg: int, place: tuple[int, ...], *, caught: bool = False) -> None:
        """A step with its attempts."""
        if place in self.done:
            return
        fn = self.program.fns[number]
        for attempt in range(fn.retries + 1):
            self.counts[f"f{number}({arg})"] += 1
            try:
                self.nodes(fn.inside, place)
            except Failed:
                self.exact = False
                raise
            if self.raised[place] >= fn.fails:
                self.done[place] = True
                return
            self.raised[place] += 1
            self.exact &= not fn.inside or attempt == fn.retries
        if not caught:
            raise Failed
        self.done[place] = False
