"""The words of ``%durable`` for ending runs: cancel, resume, children."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from jupyter_durable import client
from jupyter_durable.errors import UsageError
from jupyter_durable.kernel.display import Shown, table

if TYPE_CHECKING:
    from jupyter_durable.kernel.magics import Console

_SAY = "Say `%durable cancel RUN[/CHILD] [REASON]`; `%durable runs` and `%durable children` list them."


def cancel(console: Console, rest: str) -> str:
    """``%durable cancel``."""
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"{str(error).capitalize()}. {_SAY}") from None
    if not words:
        raise UsageError(_SAY)
    run, child = client.find_child(console.log, words[0], console.hooks.surroundings.notebook_id or None)
    done = client.cancel(console.log, run, child=child, reason=" ".join(words[1:]), via="magic")
    what = f"Child run `{done.child}` of run `{done.run_name}`" if done.child else f"Run `{done.run_name}`"
    if done.alive:
        return f"{what} ends at its next await or step."
    if done.child:
        return f"{what} is cancelled: it ends when the cell comes to it again."
    return f"{what} is cancelled. `%durable resume {done.run_name}` lets it go on."


def resume(console: Console, rest: str) -> str:
    """``%durable resume``."""
    text = rest.strip("\"'")
    notebook = console.hooks.surroundings.notebook_id or None
    run = client.find_resumed(console.log, text, notebook) if text else console.find("")
    view = client.resume(console.log, run)
    return f"Run `{view.first.name}`, branch `{view.name}` may go on: run its cell again."


def children(console: Console, rest: str) -> Shown | str:
    """``%durable children``."""
    log, run = console.log, console.find(rest)
    listed = client.children(log, run)
    name = client.find_branch(log, run).first.name
    if not listed:
        return f"Run `{name}` has no child runs."
    rows = [(f"{'  ' * each.depth}{each.path}", each.number, each.status, each.steps) for each in listed]
    return table(["child run", "number", "status", "steps"], rows, f"Child runs of {name}")
