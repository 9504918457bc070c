"""What each word of the command line does: ask, and print the answer for people or for programs.

Every function takes the parsed arguments and returns the exit code. Facts come from ``shapes.py``, so a table never
shows what the JSON does not have.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_durable.cli import branching, stopping, telling, undoing
from jupyter_durable.cli.arguments import WrongArguments
from jupyter_durable.cli.printing import Arguments, Failed, answer, remark
from jupyter_durable.cli.tables import count, duration, facts, inert, moment, sentence, table


def demo(args: Arguments) -> int:
    """`jupyter durable demo`."""
    from jupyter_durable.demo import main_job
    from jupyter_durable.demo.kernels import NotebookFailed

    try:
        report = main_job.run(
            json=args.json,
            keep=Path(args.keep) if args.keep else None,
            notebook=Path(args.notebook) if args.notebook else None,
        )
    except (NotebookFailed, main_job.NotKilled) as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise Failed(type(error).__name__, lines[-1] if lines else "The notebook could not be executed.") from None
    return 0 if report.ok else 1


def runs(args: Arguments) -> int:
    """`jupyter durable runs`."""
    from jupyter_durable.cli import shapes

    shape = shapes.runs(shapes.open_existing(args.log))

    def text() -> str:
        if not shape["runs"]:
            return f"No run yet in {inert(shape['log'])}."
        return table(
            ["RUN", "STATUS", "BRANCH", "EXECUTIONS", "REPLAYED", "LIVE", "LAST", "ID", "NOTEBOOK"],
            [
                [
                    view["name"],
                    view["status"],
                    view["branch"] if view["branches"] == 1 else f"{view['branch']} (of {view['branches']})",
                    view["executions"],
                    view["replayed"],
                    view["live"],
                    moment(view["last"]),
                    view["run"],
                    view["notebook"],
                ]
                for view in shape["runs"]
            ],
        )

    answer(args, shape, text)
    for reason in shape["unreadable"]:
        remark(f"Left out: {reason}")
    return 0


def spend(args: Arguments) -> int:
    """`jupyter durable spend [RUN]`."""
    from jupyter_durable.cli import shapes

    by = args.by or ("step" if args.run else "run")
    shape = shapes.spend(shapes.open_existing(args.log), args.run or "", by)

    def text() -> str:
        if not shape["bill"]:
            return f"No model call is recorded in {inert(shape['log'])}."
        rows = [[line["what"], *(line[kind]["text"] for kind in shapes.KINDS)] for line in shape["bill"]]
        return table([by.upper(), "BILLED", "WASTED", "SAVED"], rows)

    answer(args, shape, text)
    return 0


def show(args: Arguments) -> int:
    """`jupyter durable show RUN`."""
    from jupyter_durable.cli import shapes

    shape = shapes.show(shapes.open_existing(args.log), args.run, args.branch)
    answer(args, shape, lambda: _shown(shape))
    return 0


def _shown(shape: dict[str, Any]) -> str:
    run = shape["run"]
    parts = [
        facts(
            [
                ("run", run["name"]),
                ("id", run["run"]),
                ("status", run["status"]),
                ("notebook", run["notebook"]),
                ("log", shape["log"]),
                ("unverified", shape["untrusted"] and sentence(shape["untrusted"])),
            ]
        ),
        _branches(shape),
        "Executions of " + inert(shape["branch"]) + "\n" + _executions(shape["executions"]),
        _steps(shape["steps"]),
    ]
    if shape["decisions"]:
        said = [f"finished steps: reuse {each['reuse']} (by {inert(each['by'])})" for each in shape["decisions"]]
        parts.append("Decisions\n" + "\n".join(said))
    if shape["notices"]:
        said = [_at(each["step"]) + sentence(each["message"]) for each in shape["notices"]]
        parts.append("Notices\n" + "\n".join(said))
    if shape["errors"]:
        said = [
            _at(each["step"]) + f"{inert(each['where'], 60)}: {sentence(each['message'])}" for each in shape["errors"]
        ]
        parts.append("Errors\n" + "\n".join(said))
    return "\n\n".join(parts)


def _at(step: int | None) -> str:
    return "" if step is None else f"step {step}: "


def _branches(shape: dict[str, Any]) -> str:
    rows = [
        [
            ("* " if each["name"] == shape["branch"] else "  ") + each["name"],
            each["status"],
            each["executions"],
            _made_from(each),
        ]
        for each in shape["branches"]
    ]
    return table(["  BRANCH", "STATUS", "EXECUTIONS", "MADE FROM"], rows)


def _made_from(branch: dict[str, Any]) -> str:
    said = "" if branch["origin"] is None else f"{branch['origin']['name']} at event {branch['origin']['seq']}"
    if branch["fork"] is not None:
        said = f"{branch['origin']['name']}, forked at {branch['fork']['name']} (step {branch['fork']['at']})"
    if branch["sample"] is not None:
        said = f"sample {branch['sample']['number']} of {branch['sample']['of']}"
    return said + "".join(f", {name} = {text}" for name, text in branch["set"].items())


def _executions(executions: list[dict[str, Any]]) -> str:
    rows = []
    for each in executions:
        note = []
        if each["status"] == "running":
            note.append(f"process {each['pid']} on {each['host']}")
        elif each["ended"] is None:
            note.append(f"process {each['pid']} is gone")
        if each["torn"] and each["status"] != "running":
            note.append(f"{count(each['torn'], 'byte')} of a torn line left out")
        note += [f"--{name}" if value == "1" else f"--{name} {value}" for name, value in each["flags"].items()]
        rows.append(
            [
                each["execution"],
                each["status"],
                moment(each["started"]),
                "" if each["ended"] is None else duration(each["ended"] - each["started"]),
                each["replayed"],
                each["live"],
                ", ".join(note),
            ]
        )
    return table(["EXECUTION", "STATUS", "BEGAN", "TOOK", "REPLAYED", "LIVE", "NOTE"], rows)


def _steps(steps: list[dict[str, Any]]) -> str:
    if not steps:
        return "No step yet."
    return table(
        ["STEP", "SCOPE", "NAME", "STATUS", "ATTEMPTS", "TOOK", "WHY"],
        [
            [
                each["number"],
                each["scope"],
                each["name"],
                f"{each['status'].replace('_', ' ')} {each['progress']}".rstrip(),
                each["attempts"],
                duration(each["seconds"]),
                each["why"],
            ]
            for each in steps
        ],
    )


def sql(args: Arguments) -> int:
    """`jupyter durable sql "QUERY"`."""
    from jupyter_durable.cli import shapes

    if not args.query.strip(" \t\r\n;"):
        raise WrongArguments('The query is empty. An example: "SELECT name, status FROM runs".')
    log = shapes.open_existing(args.log)
    shape = shapes.query(log.location, args.query)

    def text() -> str:
        head = table(shape["columns"], [[_cell(cell) for cell in row] for row in shape["rows"]])
        return f"{head}\n({count(len(shape['rows']), 'row')})"

    answer(args, shape, text)
    if shape["partial"]:
        remark(
            "log.duckdb is open in another program: finished runs that were folded are shown by their first and last "
            "event only. `jupyter durable doctor` says which program."
        )
    return 0


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def doctor(args: Arguments) -> int:
    """`jupyter durable doctor`."""
    from jupyter_durable import client, diagnose
    from jupyter_durable.cli import shapes

    directory = client.directory(args.log)
    if args.rebuild:
        events = shapes.open_existing(args.log).rebuild()
        remark(f"log.duckdb was made anew from the journals, {count(events, 'event')}; the old one lies beside it.")
    findings = diagnose.doctor(directory)
    problems = sum(finding.level == "problem" for finding in findings)
    shape = {
        "format": shapes.FORMAT,
        "log": str(Path(directory).absolute()),
        "ok": not problems,
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }

    def text() -> str:
        lines = []
        for finding in findings:
            lines.append(f"{finding.level:<7}  {sentence(finding.what)}")
            if finding.advice:
                lines.append(f"{'':<7}  -> {sentence(finding.advice)}")
        lines.append(f"\n{count(problems, 'problem')}." if problems else "\nNo problem found.")
        return "\n".join(lines)

    answer(args, shape, text)
    return 1 if problems else 0


def fold(args: Arguments) -> int:
    """`jupyter durable fold`."""
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    events = log.fold()
    shape = {"format": shapes.FORMAT, "log": log.location, "events": events, "note": log.fold_note}
    answer(args, shape, lambda: f"{count(events, 'event')} copied into log.duckdb.")
    if log.fold_note:
        remark(log.fold_note)
    return 0


def trust(args: Arguments) -> int:
    """`jupyter durable trust EXECUTION`."""
    from jupyter_durable import errors
    from jupyter_durable.cli import shapes

    log = shapes.open_existing(args.log)
    found = [record.header for record in log.executions() if record.header.execution.startswith(args.execution)]
    found = [header for header in found if header.execution == args.execution] or found
    if len(found) != 1:
        which = ", ".join(header.execution for header in found[:10])
        raise errors.UsageError(
            f"Several executions begin with `{args.execution}`: {which}. Write more of the id."
            if found
            else f"There is no execution `{args.execution}` in {log.location}. `jupyter durable show RUN` lists them."
        )
    header = found[0]
    place = f"Execution {header.execution} of run {header.name} ({header.branch_name})"
    if header.key == log.keys.own(create=True).id:
        raise errors.UsageError(
            f"{place} is signed with your own key, so there is nothing to accept. If it was changed, put the original "
            "file back: a changed line is never loaded."
        )
    log.trust(header.execution)
    shape = {
        "format": shapes.FORMAT,
        "log": log.location,
        "execution": header.execution,
        "run": header.run,
        "branch": header.branch_name,
        "key": header.key,
    }
    answer(
        args, shape, lambda: f"{inert(place)}, signed with key {inert(header.key)}, is accepted as its bytes are now."
    )
    return 0


WORDS: dict[str, Callable[[Arguments], int]] = {
    "demo": demo,
    "runs": runs,
    "show": show,
    "spend": spend,
    "sql": sql,
    "doctor": doctor,
    "decide": telling.decide,
    "settle": telling.settle,
    "fork": branching.fork,
    "switch": branching.switch,
    "undo": undoing.undo,
    "diff": branching.diff,
    "samples": branching.samples,
    "waiting": telling.waiting,
    "approve": telling.approve,
    "signal": telling.signal,
    "children": stopping.children,
    "cancel": stopping.cancel,
    "resume": stopping.resume,
    "fold": fold,
    "trust": trust,
}
"""Command -> what it does."""
