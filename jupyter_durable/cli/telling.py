"""The words of the command line with which a person tells a run something: decide, settle, approve, signal."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from jupyter_durable.cli.arguments import WrongArguments
from jupyter_durable.cli.printing import Arguments, answer
from jupyter_durable.cli.tables import inert, moment, table

_REUSE = {"reuse": "all", "pure": "pure", "rerun": "none"}
_DECIDED = {
    "reuse": "the recorded results of finished steps are taken",
    "pure": "the recorded results of pure steps are taken, and other steps are executed again",
    "rerun": "finished steps are executed again",
}


def decide(args: Arguments) -> int:
    """`jupyter durable decide RUN reuse|pure|rerun`."""
    from jupyter_durable import client
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    run = shapes.find_run(log, args.run)
    branch = client.decide(log, run, _REUSE[args.choice])  # type: ignore[arg-type]
    shape = {
        "format": shapes.FORMAT,
        "log": log.location,
        "run": run,
        "branch": branch.name,
        "reuse": _REUSE[args.choice],
    }
    name = f"Run {inert(branch.first.name)} ({inert(branch.name)})"
    answer(args, shape, lambda: f"{name}: {_DECIDED[args.choice]}. Run the cell again to go on.")
    return 0


def settle(args: Arguments) -> int:
    """`jupyter durable settle RUN STEP rerun|fail|salvage|value JSON`."""
    value = _given(args)
    from jupyter_durable import client
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    run = shapes.find_run(log, args.run)
    step = client.settle(log, run, args.step, args.choice, value, branch=args.branch)
    shape = {"format": shapes.FORMAT, "log": log.location, "run": run, "step": dataclasses.asdict(step)}

    def text() -> str:
        then = "will be executed again" if args.choice == "rerun" else f"counts as {step.status.replace('_', ' ')}"
        return f"Step {inert(step.name)} ({step.number}) {then}. Run the cell again to go on."

    answer(args, shape, text)
    return 0


def _given(args: Arguments) -> Any:
    """The value on the command line, for ``value``."""
    if args.choice != "value":
        if args.value is not None:
            raise WrongArguments(f"`{args.choice}` takes no value; leave {args.value!r} out.")
        return None
    if args.value is None:
        raise WrongArguments("`value` needs the value, as JSON: settle RUN STEP value '\"text\"'.")
    try:
        return json.loads(args.value)
    except ValueError as error:
        raise WrongArguments(f"The value is no JSON ({error}). Text needs quotes of its own: '\"text\"'.") from None


def waiting(args: Arguments) -> int:
    """`jupyter durable waiting`."""
    from jupyter_durable import answering
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    waits = answering.waiting(log)
    shape = {
        "format": shapes.FORMAT,
        "log": log.location,
        "waiting": [shapes.wait(each) for each in waits],
    }

    def text() -> str:
        if not waits:
            return "Nothing waits."
        return table(
            ["NUMBER", "RUN", "WAITS FOR", "ANSWER", "UNTIL", "SAID"],
            [
                [
                    str(each.number),
                    each.whose,
                    each.title,
                    "|".join(each.info.choices) or ("yes|no" if each.kind == "approval" else ""),
                    "" if each.info.until is None else moment(each.info.until),
                    f"answered by {each.answer.by}" if each.answer is not None else "",
                ]
                for each in waits
            ],
        )

    answer(args, shape, text)
    return 0


def approve(args: Arguments) -> int:
    """`jupyter durable approve NUMBER ANSWER`."""
    from jupyter_durable import answering
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    run = shapes.find_run(log, args.run) if args.run else ""
    found = answering.find(log, args.number, run)
    value = answering.value_of(args.answer, found.info)
    wait = answering.answer(log, args.number, value, run=found.run, by=args.by, via="command line")
    shape = {"format": shapes.FORMAT, "log": log.location, "wait": shapes.wait(wait)}
    then = "It goes on at once." if wait.running else "Run its cell again to go on."
    answer(args, shape, lambda: f"`{inert(wait.title)}` of run {inert(wait.run_name)} is answered. {then}")
    return 0


def signal(args: Arguments) -> int:
    """`jupyter durable signal RUN NAME [VALUE]`."""
    from jupyter_durable import answering, client
    from jupyter_durable.cli import shapes
    from jupyter_durable.event_data import WaitInfo

    log = shapes.open_existing(args.log)
    found, child = client.find_child(log, args.run)
    run = f"{found}/{child}" if child else found
    value = None if args.value is None else answering.value_of(args.value, WaitInfo())
    new = answering.send(log, run, args.name, value, signal_id=args.id, by=args.by, via="command line")
    shape = {"format": shapes.FORMAT, "log": log.location, "run": found, "name": args.name, "new": new}
    said = f"was sent; {answering.use_of(log, found)}" if new else "had been sent before, and counts once"
    answer(args, shape, lambda: f"Signal {inert(args.name)} {said}.")
    return 0
