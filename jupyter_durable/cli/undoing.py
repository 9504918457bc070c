"""`jupyter durable undo`: what would be undone. Undoing itself needs the functions of the notebook."""

from __future__ import annotations

from jupyter_durable.cli.printing import Arguments, answer
from jupyter_durable.cli.tables import inert, table


def undo(args: Arguments) -> int:
    """`jupyter durable undo RUN`."""
    from jupyter_durable import client
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    run = shapes.find_run(log, args.run)
    plan = client.plan_undo(log, run, branch=args.branch, from_step=args.step)
    undone = plan.view.undone
    shape = {
        "format": shapes.FORMAT,
        "log": log.location,
        "run": run,
        "branch": plan.view.name,
        "undone": None if undone is None else {"by": undone.by, "at": undone.at, "finished": undone.finished},
        "steps": [
            {
                "number": row.number,
                "name": row.name,
                "scope": row.scope,
                "compensation": row.compensation,
                "fate": row.fate,
            }
            for row in plan.rows
        ],
    }

    def text() -> str:
        name, branch = inert(plan.run_name), inert(plan.view.name)
        if not plan.rows:
            return f"Branch {branch} of run {name} has no step that could be undone."
        rows = [
            [row.number, inert(row.name), inert(row.scope), inert(row.compensation), row.fate.replace("_", " ")]
            for row in plan.rows
        ]
        command = f'%durable undo "{name}" --branch {branch} --yes'
        return (
            f"{table(['number', 'step', 'inside', 'undone by', 'what becomes of it'], rows)}\n"
            f"Nothing was undone. The functions that undo are in the notebook: say there\n  {command}"
        )

    answer(args, shape, text)
    return 0
