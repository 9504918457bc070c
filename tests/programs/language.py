"""A small language of durable programs: what a program may be made of, and its Python text.

A program is a table of step functions and a cell. It is data, so that hypothesis can make and shrink it, and it is
written out as a notebook's code, so that the real engine runs it and a person can read what failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

CHOICES = ("red", "blue", "grey")


@dataclass(frozen=True)
class Call:
    """A call of a step function; a failure may be caught by the program."""

    fn: int
    arg: int
    caught: bool = False


@dataclass(frozen=True)
class Many:
    """Parts of the program beside each other."""

    how: Literal["gather", "group", "as_completed", "threads"]
    parts: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True)
class Same:
    """One coroutine function, several times beside itself."""

    times: int
    part: tuple[Node, ...]


@dataclass(frozen=True)
class Child:
    """A child run of this name, and what it does."""

    name: str
    part: tuple[Node, ...]


@dataclass(frozen=True)
class Map:
    """``durable.map`` of a step function."""

    fn: int
    items: tuple[int, ...]
    concurrency: int


@dataclass(frozen=True)
class Sleep:
    """A timer of some hours."""

    hours: int


@dataclass(frozen=True)
class WaitFor:
    """A signal."""

    name: str


@dataclass(frozen=True)
class Approve:
    """A question, perhaps one that lapses."""

    question: str
    hours: int = 0


@dataclass(frozen=True)
class Chance:
    """A value that no program can know."""

    word: Literal["now", "random", "uuid"]


Node = Call | Many | Same | Child | Map | Sleep | WaitFor | Approve | Chance


@dataclass(frozen=True)
class Fn:
    """A step function: it fails so many times, then it works. It calls only functions before it in the table."""

    awaits: bool = False
    fails: int = 0
    retries: int = 0
    pauses: int = 0
    """How often an asynchronous body lets others go first."""
    inside: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Program:
    """Step functions, and the cell that uses them."""

    fns: tuple[Fn, ...]
    cell: tuple[Node, ...]
    awaits: bool = False
    """Its cell and the parts of it are coroutines."""

    @property
    def setup(self) -> str:
        """The cell that defines the steps."""
        text = Text(self)
        for number, fn in enumerate(self.fns):
            text.function(number, fn)
        return text.text()

    @property
    def source(self) -> str:
        """The durable cell."""
        text = Text(self)
        text.line(0, "out = []")
        text.nodes(0, self.cell, self.awaits)
        text.line(0, "out")
        return text.text()

    def __str__(self) -> str:
        return f"{self.setup}\n# the durable cell\n{self.source}"


@dataclass
class Text:
    """Python text of a program."""

    program: Program
    lines: list[str] = field(default_factory=list)
    parts: int = 0
    sites: Iterator[int] = field(default_factory=lambda: iter(range(1000)))

    def line(self, depth: int, text: str) -> None:
        """One line."""
        self.lines.append("    " * depth + text)

    def text(self) -> str:
        """All of it."""
        return "\n".join(self.lines) + "\n"

    def function(self, number: int, fn: Fn) -> None:
        """A step function."""
        self.parts = 0
        self.line(0, f"@step(retries={fn.retries}, backoff=0)" if fn.retries else "@step")
        self.line(0, f"{'async ' if fn.awaits else ''}def f{number}(arg):")
        self.line(1, f"ticket = world.begins(durable.idempotency_key(), 'f{number}', arg)")
        self.line(1, "out = []")
        for _ in range(fn.pauses if fn.awaits else 0):
            self.line(1, "await asyncio.sleep(0)")
        self.nodes(1, fn.inside, fn.awaits)
        self.line(1, f"return world.ends(ticket, out, {fn.fails})")

    def nodes(self, depth: int, nodes: tuple[Node, ...], awaits: bool) -> None:
        """One after the other."""
        for node in nodes:
            self.node(depth, node, awaits)

    def node(self, depth: int, node: Node, awaits: bool) -> None:
        """One of them."""
        wait = "await " if awaits else ""
        if isinstance(node, Call):
            now = "await " if self.program.fns[node.fn].awaits else ""
            call = f"out.append({now}f{node.fn}({node.arg}))"
            if node.caught:
                self.guarded(depth, call, "Boom as boom", 'f"caught {boom}"')
            else:
                self.line(depth, call)
        elif isinstance(node, Map):
            items = ", ".join(map(str, node.items))
            self.line(depth, f"out.append({wait}durable.map(f{node.fn}, [{items}], concurrency={node.concurrency}))")
        elif isinstance(node, Sleep):
            self.line(depth, f'out.append({wait}durable.sleep("{node.hours}h"))')
        elif isinstance(node, WaitFor):
            self.line(depth, f'out.append({wait}durable.wait_for("{node.name}"))')
        elif isinstance(node, Approve):
            timeout = f', timeout="{node.hours}h"' if node.hours else ""
            asks = f'durable.approve("{node.question}", show="site {next(self.sites)}", choices={CHOICES}{timeout})'
            if node.hours:
                self.guarded(depth, f"out.append({wait}{asks})", "TimeoutError", '"lapsed"')
            else:
                self.line(depth, f"out.append({wait}{asks})")
        elif isinstance(node, Chance):
            self.line(depth, f"out.append(str(durable.{node.word}()))")
        elif isinstance(node, Child):
            name = self.part(depth, node.part, awaits=awaits)
            self.line(depth, f'{"async " if awaits else ""}with durable.run("{node.name}"):')
            self.line(depth + 1, f"out.append({wait}{name}())")
        elif isinstance(node, Same):
            name = self.part(depth, node.part, awaits=True)
            self.line(depth, f"out.append(await asyncio.gather(*[{name}() for _ in range({node.times})]))")
        else:
            self.many(depth, node)

    def guarded(self, depth: int, call: str, error: str, value: str) -> None:
        """A call whose error the program catches."""
        self.line(depth, "try:")
        self.line(depth + 1, call)
        self.line(depth, f"except {error}:")
        self.line(depth + 1, f"out.append({value})")

    def many(self, depth: int, node: Many) -> None:
        """Parts beside each other."""
        names = [self.part(depth, part, awaits=node.how != "threads") for part in node.parts]
        if node.how == "gather":
            self.line(depth, f"out.append(await asyncio.gather({', '.join(f'{name}()' for name in names)}))")
        elif node.how == "as_completed":
            calls = ", ".join(f"{name}()" for name in names)
            self.line(depth, f"out.append([await each for each in asyncio.as_completed([{calls}])])")
        elif node.how == "threads":
            self.line(depth, "with ThreadPoolExecutor() as pool:")
            self.line(depth + 1, f"doing = [{', '.join(f'pool.submit({name})' for name in names)}]")
            self.line(depth, "out.append([each.result() for each in doing])")
        else:
            group = f"group{self.parts}"
            self.line(depth, f"async with asyncio.TaskGroup() as {group}:")
            self.line(depth + 1, f"doing = [{', '.join(f'{group}.create_task({name}())' for name in names)}]")
            self.line(depth, "out.append([each.result() for each in doing])")

    def part(self, depth: int, nodes: tuple[Node, ...], *, awaits: bool) -> str:
        """A part of the program as a function of its own."""
        self.parts += 1
        name = f"part{self.parts}"
        self.line(depth, f"{'async ' if awaits else ''}def {name}():")
        self.line(depth + 1, f'out = ["{name}"]')
        self.nodes(depth + 1, nodes, awaits)
        self.line(depth + 1, "return out")
        return name
