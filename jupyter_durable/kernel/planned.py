"""The plan of a cell, by ``--plan`` or ``%durable plan``: what it would replay and buy. Nothing of it runs."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from jupyter_durable import client, planning
from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.kernel import header as headers
from jupyter_durable.kernel.display import MOST_ROWS, Shown, code_marked, html_table, text_table
from jupyter_durable.kernel.header import Header
from jupyter_durable.kernel.identity import CellFacts, cell_ids
from jupyter_durable.kernel.live import Surroundings
from jupyter_durable.kernel.transform import blanked, marked, parsed
from jupyter_durable.log.base import EventLog
from jupyter_durable.source import cell_digest

if TYPE_CHECKING:
    from jupyter_durable.kernel.cell import Hooks

_COLUMNS = ("step", "name", "what", "recorded use", "why")


def show_plan_of_cell(hooks: Hooks, info: Any, code: str, header: Header) -> None:
    """Show the plan of a cell that asks for it in its header.

    Args:
        hooks: the shell's hooks.
        info: what IPython tells of the cell.
        code: the cell as Python, with an empty line in the place of the header.
        header: what the header says.

    Raises:
        DurableError: the cell could not run either.
    """
    around = hooks.surroundings
    cell = CellFacts(*cell_ids(info.cell_id), header.name, cell_digest(code))
    log = around.log_as_it_is
    spec, notices = around.spec(cell, info.raw_cell, code, header.flags, log)
    shown = as_shown(planning.plan(spec, log), notices)
    hooks.shell.display_pub.publish({"text/plain": shown.text, "text/html": shown.html}, {})


def plan_of_run(around: Surroundings, log: EventLog, run: str) -> Shown:
    """The plan of a run's cell, to be shown.

    Raises:
        UsageError: its code cannot be read.
    """
    return as_shown(*made_plan(around, log, run))


def made_plan(around: Surroundings, log: EventLog, run: str) -> tuple[planning.Plan, list[str]]:
    """The plan of a run's cell as it is saved in the notebook, or else as it ran last; and what to say of it.

    Raises:
        UsageError: its code cannot be read.
    """
    recorded = client.find_branch(log, run).newest.header
    text, which = _source(around, recorded)
    transformed = around.shell.transform_cell(text)
    tree = parsed(transformed)
    if tree is None:
        raise UsageError(f"The cell of run `{recorded.name}`, {which}, is not Python, so there is nothing to plan.")
    said = marked(tree)
    header = headers.parse(said or "")
    code = transformed if said is None else blanked(transformed)
    name = "" if recorded.name.startswith(("cell-", "code-")) else recorded.name
    cell = CellFacts(recorded.cell, "", header.name or name, cell_digest(code))
    spec, notices = around.spec(cell, text, code, header.flags, log)
    if spec.run != run:  # a cell without a name and without an id, or a run of another notebook
        spec.name, spec.notebook = recorded.name, recorded.notebook
    return planning.plan(spec, log), [f"planned for the cell {which}", *notices]


def _source(around: Surroundings, recorded: ExecutionHeader) -> tuple[str, str]:
    """The code of a run's cell, and where it is from."""
    saved = around.notebook.facts().sources
    if around.notebook.path != recorded.path:
        saved = None  # of another notebook, or of one that was renamed since
    for text in (saved or {}).values():
        found = headers.find(text.splitlines())
        if found is not None and _name(found[1]) == recorded.name:
            return text, "as it is saved in the notebook"
    if saved and recorded.cell in saved:
        return saved[recorded.cell], "as it is saved in the notebook"
    return recorded.source, "as it ran last (the notebook file does not tell)"


def _name(text: str) -> str:
    try:
        return headers.parse(text).name
    except UsageError:
        return ""


def as_shown(plan: planning.Plan, notices: list[str]) -> Shown:
    """A plan as a table, in HTML and as plain text."""
    rows = [
        (
            str(step.number),
            step.name if not step.inside else f"{step.name} (in {step.inside.rpartition('/')[2].partition(':')[0]})",
            step.what,
            step.used.text(),
            "" if step.fate == "again" else step.why,
        )
        for step in plan.steps[:MOST_ROWS]
    ]
    said = [f"branch `{plan.branch}` {plan.does}", *plan.notes, *notices]
    if len(plan.steps) > MOST_ROWS:
        said.append(f"{len(plan.steps) - MOST_ROWS} more steps are counted above and not listed")
    head = f"Plan: {plan.totals()}. Nothing was run."
    lines = [f"note: {each}" for each in said]
    text = "\n".join([head, *([text_table(_COLUMNS, rows)] if rows else []), *lines, plan.unknown])
    html = "".join(
        [
            f"<div><strong>{escape(head)}</strong></div>",
            html_table(_COLUMNS, rows) if rows else "",
            *(f"<div>{code_marked(each)}</div>" for each in lines),
            f"<div>{code_marked(plan.unknown)}</div>",
        ]
    )
    return Shown(text, f"<div>{html}</div>")
