"""``%durable undo``: list what would be undone, or do it. `undoing` has the facts.

A line magic cannot await. What undoes by a coroutine runs in an event loop of its own, in a thread that the magic waits
for; ``await durable.undo(RUN)`` in a cell uses the loop of the notebook instead.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import threading
from typing import TYPE_CHECKING, Any, NoReturn

from jupyter_durable import undoing
from jupyter_durable.engine.identity import start_apart
from jupyter_durable.engine.prospect import undone_text
from jupyter_durable.errors import UsageError
from jupyter_durable.kernel.display import Shown, table
from jupyter_durable.log.base import EventLog
from jupyter_durable.sentences import quoted
from jupyter_durable.stepping import spec_of

if TYPE_CHECKING:
    from jupyter_durable.kernel.magics import Console

USAGE = "undo RUN [--branch BRANCH] [--from STEP] [--yes]"

FATES: dict[undoing.Fate, str] = {
    "undo": "to be undone",
    "undone": "undone",
    "stays": "stays: nothing says how to undo it",
    "in_doubt": "in doubt",
    "cancelled": "stays: cancelled in its middle, so nobody knows whether it happened",
}
"""What is said of a step in the listing."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:]}. Say `%durable {USAGE}`.")


def undo(console: Console, rest: str) -> Shown | str:
    """``%durable undo``."""
    given = _read(rest)
    log, run = console.log, console.find(given.run)
    plan = undoing.plan_undo(log, run, branch=given.branch, from_step=given.step)
    if not given.yes:
        return shown_plan(plan)
    chosen = {"branch": plan.view.name, "from_step": given.step}
    in_a_loop = undoing.awaits(plan, spec_of)
    done = _in_a_loop(log, run, chosen) if in_a_loop else undoing.undo(log, run, spec_of, **chosen)
    if not done and not plan.rows:
        return f"Branch `{plan.view.name}` of run `{plan.run_name}` has no step that could be undone."
    after = undoing.plan_undo(log, run, **chosen)
    return shown_plan(after, done)


def _read(rest: str) -> argparse.Namespace:
    parser = _Parser(prog="%durable undo", add_help=False)
    parser.add_argument("run")
    parser.add_argument("--branch", default="")
    parser.add_argument("--from", dest="step", default="")
    parser.add_argument("--yes", action="store_true")
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"`{rest}` cannot be read: {error}.") from None
    return parser.parse_args(words)


def shown_plan(plan: undoing.UndoPlan, done: list[str] | None = None) -> Shown:
    """An undo as a table, newest step first, with what to do next above it."""
    rows = [
        (row.number, row.name, row.scope, row.compensation, _known(row), FATES[row.fate])
        for row in plan.rows
    ]  # fmt: skip
    said = [plan.run_name, plan.view.name]
    if done is not None:
        said.append(f"{len(done)} step{'s' * (len(done) != 1)} undone just now")
    elif plan.doubtful:
        row = plan.doubtful[0]
        said.append(f"first say what happened: `%durable settle {quoted(plan.run_name)} {row.number} fail` or `value`")
    elif plan.effects:
        said.append(f"nothing was undone yet: `%durable undo {quoted(plan.run_name)} --yes` does it, from the top")
    else:
        said.append("nothing is to be undone")
    if plan.view.undone is not None:
        said.append(undone_text(plan.view))
    return table(["number", "step", "inside", "undone by", "known here", ""], rows, " · ".join(said))


def _known(row: undoing.UndoRow) -> str:
    if row.fate != "undo":
        return ""
    return "yes" if row.known else f"no: run the cell that defines `{row.name.partition('#')[0]}`"


def _in_a_loop(log: EventLog, run: str, chosen: dict[str, str]) -> list[str]:
    """Undo in an event loop of its own, in a thread; the stop button cancels it."""
    ended = threading.Event()
    outcome: dict[str, Any] = {}
    running: dict[str, Any] = {}

    async def act() -> None:
        running["loop"], running["task"] = asyncio.get_running_loop(), asyncio.current_task()
        outcome["done"] = await undoing.undo_async(log, run, spec_of, **chosen)

    def thread() -> None:
        try:
            asyncio.run(act())
        except BaseException as error:
            outcome["error"] = error
        finally:
            ended.set()

    start_apart(threading.Thread(target=thread, name="durable-undo"))
    while not ended.is_set():
        try:
            ended.wait()
        except KeyboardInterrupt as error:
            outcome["stopped"] = error
            if running:
                running["loop"].call_soon_threadsafe(running["task"].cancel)
    if "stopped" in outcome:
        raise outcome["stopped"]
    if "error" in outcome:
        raise outcome["error"]
    done: list[str] = outcome["done"]
    return done


def log_of_notebook() -> EventLog | None:
    """The log of the notebook that this kernel runs; ``None`` where the extension is not loaded."""
    from IPython.core.getipython import get_ipython

    from jupyter_durable.kernel.extension import loaded

    shell = get_ipython()
    hooks = None if shell is None else loaded(shell)
    return None if hooks is None else hooks.surroundings.log
