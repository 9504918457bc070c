"""The words of the command line for ending runs: cancel, resume, children."""

from __future__ import annotations

import dataclasses

from jupyter_durable.cli.printing import Arguments, answer
from jupyter_durable.cli.tables import inert, table


def cancel(args: Arguments) -> int:
    """`jupyter durable cancel RUN[/CHILD]`."""
    from jupyter_durable import client
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    run, child = client.find_child(log, args.run)
    done = client.cancel(log, run, child=child, reason=args.reason, by=args.by, via="command line")
    shape = {
        "format": shapes.FORMAT, "log": log.location, "run": run, "name": done.run_name, "branch": done.branch_name,
        "child": done.child or None, "alive": done.alive,
    }  # fmt: skip

    def text() -> str:
        name = inert(f"{done.run_name}/{done.child}" if done.child else done.run_name)
        if done.alive:
            return f"Run {name} ends at its next await or step."
        if done.child:
            return f"Run {name} is cancelled: it ends when the cell comes to it again."
        return f"Run {name} is cancelled. `jupyter durable resume` lets it go on."

    answer(args, shape, text)
    return 0


def resume(args: Arguments) -> int:
    """`jupyter durable resume RUN`."""
    from jupyter_durable import client
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    run = client.find_resumed(log, args.run)
    view = client.resume(log, run, by=args.by)
    shape = {"format": shapes.FORMAT, "log": log.location, "run": run, "branch": view.name}
    answer(args, shape, lambda: f"Run {inert(view.first.name)} may go on: run its cell again.")
    return 0


def children(args: Arguments) -> int:
    """`jupyter durable children RUN`."""
    from jupyter_durable import client
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    run = shapes.find_run(log, args.run)
    listed = client.children(log, run, args.branch)
    shape = {
        "format": shapes.FORMAT, "log": log.location, "run": run,
        "children": [dataclasses.asdict(each) for each in listed],
    }  # fmt: skip

    def text() -> str:
        if not listed:
            return "The run has no child runs."
        rows = [[f"{'  ' * each.depth}{each.path}", each.number, each.status, each.steps] for each in listed]
        return table(["CHILD RUN", "NUMBER", "STATUS", "STEPS"], rows)

    answer(args, shape, text)
    return 0
