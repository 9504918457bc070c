"""The words of ``%durable`` for branches: fork one, choose one, compare two, list samples."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jupyter_durable import client
from jupyter_durable.branches import BranchView
from jupyter_durable.comparing import WORDS as VERDICTS
from jupyter_durable.comparisons import Comparison, DiffRow, Side, forked
from jupyter_durable.engine.setting import shown
from jupyter_durable.engine.tally import money, tokens_text
from jupyter_durable.errors import UsageError
from jupyter_durable.kernel.display import Shown, table
from jupyter_durable.sampled import SampleView

if TYPE_CHECKING:
    from jupyter_durable.kernel.magics import Console

_SAY_FORK = "Say `%durable fork [RUN] --at STEP [--branch BRANCH] [--set NAME=EXPRESSION]`."
_FLAG = re.compile(r"(?:^|(?<=\s))--(at|branch|set)(?:\s+|=)")
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")


def fork(console: Console, rest: str) -> str:
    """``%durable fork``."""
    run_text, given = _flags(rest)
    if len(given.get("at", ())) != 1 or len(given.get("branch", ())) > 1:
        raise UsageError(f"{_SAY_FORK} `%durable history` has the numbers of the steps.")
    values = {}
    for text in given.get("set", ()):
        name, equals, expression = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise UsageError(f"`--set {text}` is not of the form NAME=EXPRESSION. {_SAY_FORK}")
        values[name.strip()] = _evaluated(console, expression)
    log, run = console.log, console.find(run_text)
    at, branch = _unquoted(given["at"][0]), _unquoted(given.get("branch", [""])[0])
    made = client.fork(log, run, at, branch=branch, values=values)
    header = made.first
    assert header.fork is not None
    said = f" On it {shown(header.set)}." if header.set else ""
    before = client.find_branch(log, run, header.origin.branch if header.origin is not None else "").name
    return (
        f"Branch `{made.name}` of run `{header.name}` begins anew at `{header.fork.name}` (step {header.fork.at} of "
        f"`{before}`).{said} Run the cell to go on with it; `%durable switch {before}` goes back."
    )


def switch(console: Console, rest: str) -> str:
    """``%durable switch``."""
    words = _words(rest)
    if not 1 <= len(words) <= 2:
        raise UsageError("Say `%durable switch [RUN] BRANCH`; `%durable diff` and the panel name the branches.")
    log, run = console.log, console.find(words[0] if len(words) == 2 else "")
    view = client.switch(log, run, words[-1])
    values = f" On it {shown(view.first.set)}." if view.first.set else ""
    return f"The cell of run `{view.first.name}` takes up branch `{view.name}` when it runs next.{values}"


def diff(console: Console, rest: str) -> Shown:
    """``%durable diff``."""
    words = _words(rest)
    if len(words) > 3:
        raise UsageError("Say `%durable diff [RUN] [A B]`, with the names of two branches.")
    log, run = console.log, console.find(words[0] if len(words) in (1, 3) else "")
    a, b = words[-2:] if len(words) > 1 else ("", "")
    return shown_diff(client.diff(log, run, a, b))


def samples(console: Console, rest: str) -> Shown:
    """``%durable samples``."""
    log, run = console.log, console.find(rest)
    return samples_table(client.samples(log, run), client.find_branch(log, run).first.name)


def made(view: BranchView, branches: list[BranchView]) -> str:
    """How a branch was made, to be put behind its name; empty for one that nobody has forked."""
    parts = [forked(view, branches), shown(view.first.set)]
    if view.first.sample is not None:
        parts.append(f"sample {view.first.sample.number} of {view.first.sample.of}")
    return "".join(f" · {part}" for part in parts if part)


def shown_diff(found: Comparison) -> Shown:
    """Two branches as a table, with what each cost."""
    rows = [
        (
            VERDICTS[row.verdict],
            row.name,
            _step(row.number_a, row.status_a, row.value_a),
            _step(row.number_b, row.status_b, row.value_b),
            *(_billed(row) if found.more else ()),
        )
        for row in found.rows
    ]
    columns = [
        "",
        "step",
        f"A: {found.a.name}",
        f"B: {found.b.name}",
        *(["billed A", "billed B"] if found.more else ()),
    ]
    counts = ", ".join(f"{number} {VERDICTS[verdict]}" for verdict, number in found.counts.items())  # type: ignore[index]
    said = [found.run_name, counts or "no steps", _side("A", found.a), _side("B", found.b)]
    if found.more:
        said.append(f"B against A: {found.more}")
    return table(columns, rows, " · ".join(said))


def _side(letter: str, side: Side) -> str:
    parts = [part for part in (side.forked, side.set and f"with {side.set}") if part]
    spent = side.spent.text()
    parts += [f"{spent} billed"] if spent else []
    return f"{letter} is {side.name}" + (f" ({'; '.join(parts)})" if parts else "")


def _step(number: int | None, status: str | None, value: str | None) -> str:
    if number is None:
        return ""
    return " ".join(part for part in (f"{number}", status if status != "completed" else "", value) if part)


def _billed(row: DiffRow) -> tuple[str, str]:
    return _amount(row.cost_a, row.tokens_a), _amount(row.cost_b, row.tokens_b)


def _amount(cost: float | None, tokens: int | None) -> str:
    if not tokens and not cost:
        return ""
    return f"{tokens_text(tokens or 0)} tokens" + (f", {money(cost)}" if cost else "")


def samples_table(found: Sequence[SampleView], name: str) -> Shown:
    """Samples as a table."""
    rows = [(each.number, each.branch_name, each.status, each.steps, each.spent.text(), each.value) for each in found]
    of = max(each.of for each in found)
    return table(
        ["sample", "branch", "status", "steps", "billed", "last value"], rows, f"{name} · {len(found)} of {of} samples"
    )


def _flags(rest: str) -> tuple[str, dict[str, list[str]]]:
    """The text before the flags, and what stands after each. A flag in quotes is none."""
    masked = _QUOTED.sub(lambda found: "x" * len(found[0]), rest)
    places = list(_FLAG.finditer(masked))
    given: dict[str, list[str]] = {}
    ends = [place.start() for place in places[1:]] + [len(rest)]
    for place, end in zip(places, ends if places else [], strict=True):
        given.setdefault(place[1], []).append(rest[place.end() : end].strip())
    before = rest[: places[0].start()].strip() if places else rest.strip()
    if before.startswith("-"):
        raise UsageError(_SAY_FORK)
    return before, given


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"`{rest}` cannot be read: {error}.") from None


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _evaluated(console: Console, expression: str) -> Any:
    try:
        return eval(expression, console.shell.user_global_ns, console.shell.user_ns)  # noqa: S307 - the user's own words
    except Exception as error:
        raise UsageError(f"The value cannot be computed: {type(error).__name__}: {error}") from None
