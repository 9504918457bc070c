"""The words of the command line for branches: fork, switch, diff, samples."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from jupyter_durable.cli.arguments import WrongArguments
from jupyter_durable.cli.printing import Arguments, answer
from jupyter_durable.cli.tables import count, inert, table


def fork(args: Arguments) -> int:
    """`jupyter durable fork RUN --at STEP`."""
    values = dict(_value(text) for text in args.values)
    from jupyter_durable import client
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    run = shapes.find_run(log, args.run)
    made = client.fork(log, run, args.at, branch=args.branch, values=values, by=args.by)
    branch = _branch(log, run, made.branch)
    shape = {"format": shapes.FORMAT, "log": log.location, "run": run, "branch": branch}

    def text() -> str:
        where = f"{inert(branch['fork']['name'])} (step {branch['fork']['at']} of {inert(branch['origin']['name'])})"
        said = "".join(f" On it {inert(name)} = {inert(told)}." for name, told in branch["set"].items())
        return f"Branch {inert(branch['name'])} begins anew at {where}.{said} Run the cell to go on with it."

    answer(args, shape, text)
    return 0


def _value(text: str) -> tuple[str, Any]:
    name, equals, told = text.partition("=")
    if not equals or not name.isidentifier():
        raise WrongArguments(f"`--set {text}` is not of the form NAME=JSON.")
    try:
        return name, json.loads(told)
    except ValueError as error:
        raise WrongArguments(
            f"The value of {name} is no JSON ({error}). Text needs quotes: '{name}=\"text\"'."
        ) from None


def _branch(log: Any, run: str, branch: str) -> dict[str, Any]:
    from jupyter_durable import client
    from jupyter_durable.cli import shapes

    views = client.views_of(log, run)[run]
    return shapes.branch_shape(next(view for view in views if view.branch == branch), views)


def switch(args: Arguments) -> int:
    """`jupyter durable switch RUN BRANCH`."""
    from jupyter_durable import client
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    run = shapes.find_run(log, args.run)
    view = client.switch(log, run, args.branch, by=args.by)
    shape = {"format": shapes.FORMAT, "log": log.location, "run": run, "branch": _branch(log, run, view.branch)}
    name, branch = inert(view.first.name), inert(view.name)
    answer(args, shape, lambda: f"The cell of run {name} takes up branch {branch} when it runs next.")
    return 0


def diff(args: Arguments) -> int:
    """`jupyter durable diff RUN [A B]`."""
    if args.a and not args.b:
        raise WrongArguments("Two branches are compared: `diff RUN A B`, or `diff RUN` for the newest and its origin.")
    from jupyter_durable import client
    from jupyter_durable.cli import shapes
    from jupyter_durable.comparing import WORDS

    log = shapes.open_existing(args.log)
    run = shapes.find_run(log, args.run)
    found = client.diff(log, run, args.a, args.b)
    shape = {
        "format": shapes.FORMAT,
        "log": log.location,
        "run": run,
        "a": _side(found.a),
        "b": _side(found.b),
        "more": found.more,
        "counts": found.counts,
        "rows": [dataclasses.asdict(row) for row in found.rows],
    }

    def text() -> str:
        rows = [
            [
                WORDS[row.verdict],
                row.name,
                row.number_a,
                row.value_a if row.status_a in ("completed", "kept") else row.status_a,
                row.number_b,
                row.value_b if row.status_b in ("completed", "kept") else row.status_b,
                row.tokens_a or None,
                row.tokens_b or None,
            ]
            for row in found.rows
        ]
        lines = [_said("A", found.a), _said("B", found.b)]
        lines += [f"B against A: {found.more}"] if found.more else []
        lines.append(table(["", "STEP", "A", "VALUE", "B", "VALUE", "TOKENS A", "TOKENS B"], rows))
        return "\n".join(lines)

    answer(args, shape, text)
    return 0


def _side(side: Any) -> dict[str, Any]:
    return {**dataclasses.asdict(side), "spent": _spent(side.spent)}


def _spent(tally: Any) -> dict[str, Any]:
    return {
        "calls": tally.calls, "unknown": tally.unknown, "unpriced": tally.unpriced, "tokens": tally.tokens,
        "cost": tally.cost, "text": tally.text(),
    }  # fmt: skip


def _said(letter: str, side: Any) -> str:
    spent = side.spent.text()
    parts = [part for part in (side.forked, side.set and f"with {side.set}", spent and f"{spent} billed") if part]
    return f"{letter} is {inert(side.name)}" + (f" ({inert('; '.join(parts))})" if parts else "")


def samples(args: Arguments) -> int:
    """`jupyter durable samples RUN`."""
    from jupyter_durable import client
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    run = shapes.find_run(log, args.run)
    found = client.samples(log, run)
    shape = {
        "format": shapes.FORMAT,
        "log": log.location,
        "run": run,
        "samples": [{**dataclasses.asdict(each), "spent": _spent(each.spent)} for each in found],
    }

    def text() -> str:
        rows = [
            [each.number, each.branch_name, each.status, each.steps, each.spent.text(), each.value] for each in found
        ]
        head = f"{len(found)} of {count(max(each.of for each in found), 'sample')}"
        return f"{head}\n" + table(["SAMPLE", "BRANCH", "STATUS", "STEPS", "BILLED", "LAST VALUE"], rows)

    answer(args, shape, text)
    return 0
