"""The words and options of ``jupyter durable``. Nothing is imported for it but the standard library.

`COMMANDS` is the list that the documentation and its tests read: every command has a sentence and an example.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

PROGRAM = "jupyter durable"

CHOICES = ("rerun", "fail", "salvage", "value")
"""What can be said about a step that is in doubt."""

BILLED_BY = ("run", "notebook", "cell", "branch", "step", "day", "model", "all")
"""What a bill may be added up by."""

DECISIONS = ("reuse", "pure", "rerun")
"""What can be said about finished steps after an edit."""


class WrongArguments(SystemExit):
    """The command line cannot be meant. As with any `argparse` parser, a process that does not catch it ends with 2.

    Attributes:
        message: what is wrong, as a sentence.
        usage: what could be meant; may be empty.
    """

    def __init__(self, message: str, usage: str = "") -> None:
        super().__init__(2)
        self.message = message
        self.usage = usage


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongArguments(message, self.format_usage())


Adding = Callable[[argparse.ArgumentParser], None]
"""Adds one argument to a parser."""


def _argument(*names: str, **options: Any) -> Adding:
    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(*names, **options)

    return add


_RUN = _argument("run", help="name or id of the run (the beginning of the id is enough)", metavar="RUN")
_LOG = _argument("--log", metavar="DIR", help="the log directory; default: JUPYTER_DURABLE_LOG, else .durable here")
_BRANCH = _argument("--branch", metavar="BRANCH", default="", help="name of the branch; default: the newest")
_BY = _argument("--by", metavar="WHO", default="", help="who says it; default: you at this machine")
_JSON = _argument("--json", action="store_true", help="print one JSON object, for programs")


@dataclass(frozen=True, slots=True)
class Command:
    """One word of the command line."""

    name: str
    summary: str
    """One sentence, for the list of commands."""
    example: str
    """A command line that works; the tests run it."""
    more: str
    """What a user has to know before the first use."""
    arguments: tuple[Adding, ...]


COMMANDS: tuple[Command, ...] = (
    Command(
        "demo",
        "Kill a notebook's kernel in the middle of a paid call, run it again, and compare the bills.",
        "jupyter durable demo",
        "Starts a model endpoint on loopback that counts what it bills. With OPENAI_BASE_URL and OPENAI_API_KEY set, "
        "that provider is asked instead. Needs: pip install 'jupyter_durable[demo]'",
        (
            _argument("--keep", metavar="DIR", help="leave the notebook and its log in this new folder"),
            _argument("--notebook", metavar="FILE", help="another notebook, with three model calls or more"),
            _JSON,
        ),
    ),
    Command(
        "runs",
        "List the runs of a log, the one that ran last first.",
        "jupyter durable runs",
        "A run that is being executed right now shows as running, one whose kernel died as interrupted.",
        (_LOG, _JSON),
    ),
    Command(
        "show",
        "Show one run: its branches, executions and steps, and what went wrong.",
        "jupyter durable show literature-review",
        "Values stay in the log: nothing that a step returned is loaded or printed.",
        (_RUN, _BRANCH, _LOG, _JSON),
    ),
    Command(
        "sql",
        "Ask the log with DuckDB's SQL.",
        'jupyter durable sql "SELECT name, status FROM runs"',
        "The views are runs, branches, executions, events, steps, llm_calls and spend. What running kernels have "
        "recorded so far is included.",
        (_argument("query", help="the query, as one argument", metavar="QUERY"), _LOG, _JSON),
    ),
    Command(
        "spend",
        "Show what model calls cost: billed, wasted, and saved by replaying.",
        "jupyter durable spend --by day",
        "The provider charged billed and wasted together. Wasted is what is in doubt, was retried, or lies on a branch "
        "that was left. What a provider did not tell is unknown, not 0.",
        (
            _argument("run", help="name or id of a run; all of them if left out", metavar="RUN", nargs="?"),
            _argument("--by", help="what to add up by", choices=BILLED_BY, default=""),
            _LOG,
            _JSON,
        ),
    ),
    Command(
        "doctor",
        "Examine the log, the machine and the installation, and say what to do.",
        "jupyter durable doctor",
        "Changes nothing, unless --rebuild is given. The exit code is 1 if there is a problem.",
        (
            _argument("--rebuild", action="store_true", help="first replace a damaged log.duckdb by a new one"),
            _LOG,
            _JSON,
        ),
    ),
    Command(
        "decide",
        "Say what becomes of finished steps after an edit; the next execution of the cell goes by it.",
        "jupyter durable decide literature-review reuse",
        "reuse: take the recorded results. pure: take those of pure steps only. rerun: execute all of them again.",
        (_RUN, _argument("choice", help="what becomes of them", choices=DECISIONS), _LOG, _JSON),
    ),
    Command(
        "settle",
        "Say what happened to a step that is in doubt, or whose value could not be stored.",
        'jupyter durable settle literature-review search value \'["a", "b"]\'',
        "rerun: execute it again. fail: it counts as failed. salvage: it happened, and the plainer form that was saved "
        "is its value. value: it happened, and the JSON that follows is its value.",
        (
            _RUN,
            _argument("step", help="number or name of the step, as `show` prints it", metavar="STEP"),
            _argument("choice", help="what happened", choices=CHOICES),
            _argument("value", help="the value, for `value`", metavar="JSON", nargs="?"),
            _BRANCH,
            _LOG,
            _JSON,
        ),
    ),
    Command(
        "fork",
        "Make a new branch of a run that begins anew at a step; the cell takes it up when it runs next.",
        "jupyter durable fork literature-review --at search",
        "What is before the step is kept, the step and what follows is executed. The old branch stays as it is. --set "
        "gives a notebook variable that the cell reads another value on the new branch.",
        (
            _RUN,
            _argument("--at", metavar="STEP", required=True, help="number or name of the step, as `show` prints it"),
            _BRANCH,
            _argument(
                "--set",
                metavar="NAME=JSON",
                action="append",
                default=[],
                dest="values",
                help="such as 'topic=\"tides\"'; may be repeated",
            ),
            _BY,
            _LOG,
            _JSON,
        ),
    ),
    Command(
        "switch",
        "Choose which branch of a run its cell takes up next.",
        "jupyter durable switch literature-review main",
        "It holds until another branch is made or chosen.",
        (_RUN, _argument("branch", help="name of the branch", metavar="BRANCH"), _BY, _LOG, _JSON),
    ),
    Command(
        "undo",
        "List what an undo of a run would undo, newest step first, and what would stay.",
        "jupyter durable undo literature-review",
        "It only lists: the functions that undo are in the notebook. `%durable undo RUN --yes` there does it.",
        (
            _RUN,
            _BRANCH,
            _argument("--from", metavar="STEP", default="", dest="step", help="this step and all that completed after"),
            _LOG,
            _JSON,
        ),
    ),
    Command(
        "diff",
        "Compare two branches of a run, step by step.",
        "jupyter durable diff literature-review main main-2",
        "Without names the newest branch is compared with the one that it was made from.",
        (
            _RUN,
            _argument("a", help="name of a branch", metavar="A", nargs="?", default=""),
            _argument("b", help="name of a branch", metavar="B", nargs="?", default=""),
            _LOG,
            _JSON,
        ),
    ),
    Command(
        "samples",
        "List the samples that a cell with --sample has made: how each ended, what it cost and came to.",
        "jupyter durable samples literature-review",
        "The newest set of samples. `diff` compares any two of them.",
        (_RUN, _LOG, _JSON),
    ),
    Command(
        "waiting",
        "List what runs wait for: answers, signals, timers.",
        "jupyter durable waiting",
        "Also what was answered already and not taken yet, because the cell has not run again.",
        (_LOG, _JSON),
    ),
    Command(
        "approve",
        "Answer what a run asks: yes, no, one of its choices, or a value that fits its schema.",
        "jupyter durable approve 7 yes",
        "Works with a kernel or without, also while it is busy. The first answer counts; a second one, or one that "
        "comes too late, is refused.",
        (
            _argument("number", help="number of the step, as `waiting` lists it", metavar="NUMBER"),
            _argument("answer", help="yes, no, a choice, or JSON", metavar="ANSWER"),
            _argument("--run", metavar="RUN", default="", help="name or id of the run, where several wait"),
            _BY,
            _LOG,
            _JSON,
        ),
    ),
    Command(
        "signal",
        "Send a signal to a run: a value that it waits for, or will wait for.",
        "jupyter durable signal literature-review payment '{\"sum\": 3}'",
        "It is kept until the run waits for it; each is used once, the oldest first.",
        (
            _RUN,
            _argument("name", help="name of the signal", metavar="NAME"),
            _argument("value", help="its value: JSON; what is no JSON is text", metavar="VALUE", nargs="?"),
            _argument("--id", metavar="ID", default="", help="your id of it: sent twice, it counts once"),
            _BY,
            _LOG,
            _JSON,
        ),
    ),
    Command(
        "children",
        "List the child runs of a run as a tree, and how each stands.",
        "jupyter durable children literature-review",
        "A child run is what `durable.run(name)` begins inside of a run.",
        (_RUN, _BRANCH, _LOG, _JSON),
    ),
    Command(
        "cancel",
        "Cancel a run, or a child run of it: it ends at its next await or step.",
        "jupyter durable cancel literature-review --reason 'wrong source'",
        "What is under way in it is in doubt, nothing recorded is lost. A run that was cancelled goes on only after "
        "`resume`; a child run that was cancelled raises ChildCancelled in its parent.",
        (
            _argument(
                "run", help="name or id of the run, with the path or number of a child run behind it", metavar="RUN"
            ),
            _argument("--reason", metavar="TEXT", default="", help="why; it is recorded"),
            _BY,
            _LOG,
            _JSON,
        ),
    ),
    Command(
        "resume",
        "Let a cancelled run go on when its cell runs again.",
        "jupyter durable resume literature-review",
        "It goes on from where it was cancelled.",
        (_RUN, _BY, _LOG, _JSON),
    ),
    Command(
        "fold",
        "Copy what the journals hold into log.duckdb, for programs that read it there.",
        "jupyter durable fold",
        "Every cell does that at its end; it is needed after a kernel was killed, or to read a run that goes on.",
        (_LOG, _JSON),
    ),
    Command(
        "trust",
        "Accept an execution that another key has signed, exactly as its bytes are now.",
        "jupyter durable trust 8c1f",
        "Only for a log whose origin you know: replaying it loads the values in it, and loading a value can run code.",
        (
            _argument("execution", help="id of the execution (the beginning is enough)", metavar="EXECUTION"),
            _LOG,
            _JSON,
        ),
    ),
)
"""Every command, in the order in which ``--help`` lists them."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line.

    >>> build_parser().parse_args(["show", "report", "--json"]).run
    'report'
    """
    parser = _Parser(
        prog=PROGRAM,
        description="Look at the log of durable runs, and say what a run needs to go on. Works on the files alone, "
        "also while kernels write them; runs none of your code.",
        epilog="`jupyter durable COMMAND --help` shows an example of each.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in COMMANDS:
        inner = commands.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary}\n{command.more}",
            epilog=f"example:\n  {command.example}",
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        for add in command.arguments:
            add(inner)
    return parser


class _Formatter(argparse.HelpFormatter):
    """Keeps the lines of an example, and fills those of a description."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return "\n".join(indent + line for line in text.splitlines())
        return "\n\n".join(super(_Formatter, self)._fill_text(part, width, indent) for part in text.split("\n"))
