"""``%durable``: the words of the operator inside a notebook. `client` has the facts; this file finds and shows them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from jupyter_durable import client, spending
from jupyter_durable.engine.budget import parse_budget
from jupyter_durable.engine.stats import StepRow
from jupyter_durable.errors import DurableError, LogUnusable, UsageError
from jupyter_durable.kernel.branch_words import diff, fork, made, samples, switch
from jupyter_durable.kernel.cell import as_sentence
from jupyter_durable.kernel.display import Shown, code_marked, duration, table
from jupyter_durable.kernel.header import flags_help, nearest
from jupyter_durable.kernel.stopping_words import cancel, children, resume
from jupyter_durable.kernel.undo_magic import USAGE as UNDO
from jupyter_durable.kernel.undo_magic import undo
from jupyter_durable.kernel.waiting_words import approve, signal, waiting
from jupyter_durable.log.base import EventLog

if TYPE_CHECKING:
    from jupyter_durable.kernel.cell import Hooks

MOST_ROWS = 1000
"""Rows of an SQL answer that are shown."""

_REUSE: dict[str, Literal["all", "pure", "none"]] = {"reuse": "all", "pure": "pure", "rerun": "none"}
_DECIDED = {
    "reuse": "the recorded results of finished steps are taken",
    "pure": "the recorded results of pure steps are taken, other steps are executed again",
    "rerun": "finished steps are executed again",
}
_CHOICES = ("rerun", "fail", "salvage", "value")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of ``%durable``."""

    usage: str
    help: str
    run: Callable[[Console, str], Shown | str]


def run(hooks: Hooks, line: str) -> None:
    """Do what a ``%durable`` line says, and show the answer.

    Raises:
        DurableError: shown as a sentence.
    """
    try:
        answer = dispatch(Console(hooks), line)
    except DurableError as error:
        as_sentence(error)
        raise
    from IPython.display import display

    display(answer if isinstance(answer, Shown) else sentence(answer))


def sentence(text: str) -> Shown:
    """A sentence, with what stands between back quotes shown as code."""
    return Shown(text, f"<div>{code_marked(text)}</div>")


def dispatch(console: Console, line: str) -> Shown | str:
    """Find the word and let it answer.

    Raises:
        UsageError: there is no such word, or what follows it cannot be meant.
    """
    name, _, rest = line.strip().partition(" ")
    word = WORDS.get(name)
    if word is None:
        words = ", ".join(f"`{each}`" for each in WORDS if each)
        raise UsageError(f"`%durable` has no word `{name}`.{nearest(name, list(WORDS))} Its words: {words}.")
    return word.run(console, rest.strip())


class Console:
    """What the words of ``%durable`` work with."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self.shell = hooks.shell

    @property
    def log(self) -> EventLog:
        """The log of this notebook; looking at it does not make one.

        Raises:
            LogUnusable: there is none yet.
        """
        where = self.hooks.surroundings.directory
        if not where.startswith("memory:") and not Path(where).is_dir():
            raise LogUnusable(f"There is no log at {where} yet: the first durable cell makes it.", file=where)
        return self.hooks.surroundings.log

    def find(self, text: str) -> str:
        """Id of the run that is meant; without a word, the one that this kernel ran last, else the newest."""
        around = self.hooks.surroundings
        text = text.strip("\"'")
        if not text and around.last_run:
            return around.last_run
        return client.find_run(self.log, text, around.notebook_id or None)


# The words ----------------------------------------------------------------------------------------------------------


def _status(console: Console, rest: str) -> Shown | str:
    _nothing_after("", rest)
    path = console.hooks.surroundings.notebook.path
    listed = client.runs(console.log)
    own = console.hooks.surroundings.notebook_id
    # Those from before a rename have the old path; the notebook's id binds them to it.
    mine = {record.header.run for record in console.log.executions() if own and record.header.notebook == own}
    here = [view for view in listed if view.notebook == path or view.run in mine] if path else listed
    on = " Every cell is durable (`%durable off` ends that)." if console.hooks.all_cells else ""
    if not here:
        return f"No durable run in this notebook yet; `%durable runs` lists the {len(listed)} of the whole log.{on}"
    return _runs_table(here, "Durable runs of this notebook." + on)


def _runs(console: Console, rest: str) -> Shown:
    _nothing_after("runs", rest)
    return _runs_table(client.runs(console.log), f"Durable runs in {console.hooks.surroundings.directory}")


def _runs_table(views: list[client.RunView], title: str) -> Shown:
    rows = [
        (
            view.name,
            view.status,
            view.branch if view.branches == 1 else f"{view.branch} ({view.branches} branches)",
            view.replayed,
            view.live,
            datetime.datetime.fromtimestamp(view.last).astimezone().strftime("%Y-%m-%d %H:%M:%S"),
            Path(view.notebook).name,
            view.run,
        )
        for view in views
    ]
    return table(["run", "status", "branch", "replayed", "new", "last begun", "notebook", "id"], rows, title)


def _history(console: Console, rest: str) -> Shown:
    log, run = console.log, console.find(rest)
    branch = client.find_branch(log, run)
    steps = client.steps(log, run)
    rows = [
        (
            step.number,
            step.name,
            step.scope,
            f"{step.status.replace('_', ' ')} {step.progress}".rstrip(),
            step.attempts,
            step.error or "; ".join(step.notices),
        )
        for step in steps
    ]
    count = len(branch.executions)
    title = f"{branch.first.name} · {branch.name} · {len(steps)} steps · {count} execution{'' if count == 1 else 's'}"
    title += made(branch, client.views_of(log, run)[run])
    return table(["number", "step", "inside", "status", "attempts", "said"], rows, title)


def _why(console: Console, rest: str) -> Shown:
    log, run = console.log, console.find(rest)
    columns = ["number", "step", "status", "why", "time"]
    branch = client.find_branch(log, run)
    last = console.hooks.surroundings.ran.get(run)
    if last is not None:
        title = f"{last.name} · {last.branch} · as this kernel ran it last"
        rows: list[tuple[object, ...]] = [_why_row(row) for row in last.rows]
    else:
        title = f"{branch.first.name} · {branch.name}"
        rows = [(s.number, s.name, s.status.replace("_", " "), s.why or "new", "") for s in client.steps(log, run)]
    return table(columns, rows, title + _not_comparable(branch.newest.header.inputs))


def _not_comparable(inputs: dict[str, str]) -> str:
    """What the cell reads and nobody can compare: a change of it is no difference, and goes unseen."""
    names = [f"{name} ({text.removeprefix('?')})" for name, text in inputs.items() if text.startswith("?")]
    return " · not compared: " + ", ".join(names) if names else ""


def _why_row(row: StepRow) -> tuple[object, ...]:
    return row.number, row.name, row.status, row.why or "new", duration(row.seconds) if row.seconds else ""


def _plan(console: Console, rest: str) -> Shown:
    from jupyter_durable.kernel.planned import plan_of_run

    return plan_of_run(console.hooks.surroundings, console.log, console.find(rest))


def _decide(console: Console, rest: str) -> str:
    words = rest.split()
    choice = next((word for word in words if word in _REUSE), None)
    if choice is None or len(words) > 2:
        raise UsageError("Say `%durable decide [RUN] reuse`, `rerun` or `pure`.")
    words.remove(choice)
    run = console.find(" ".join(words))
    branch = client.decide(console.log, run, _REUSE[choice])
    return f"Run `{branch.first.name}` ({branch.name}): {_DECIDED[choice]}. Run the cell again to go on."


def _settle(console: Console, rest: str) -> str:
    words = rest.split(None, 3)
    place = next((i for i in (1, 2) if len(words) > i and words[i] in _CHOICES), None)
    if place is None:
        raise UsageError(
            "Say `%durable settle [RUN] STEP rerun`, `fail`, `salvage` or `value EXPRESSION`; `%durable history` has "
            "the numbers of the steps."
        )
    words = rest.split(None, place + 1)
    choice = cast("Literal['rerun', 'value', 'salvage', 'fail']", words[place])
    expression = words[place + 1] if len(words) > place + 1 else ""
    if (choice == "value") != bool(expression):
        needs = "needs an expression: `value EXPRESSION`" if choice == "value" else "takes no expression"
        raise UsageError(f"`{choice}` {needs}.")
    run = console.find(words[0] if place == 2 else "")
    value = _evaluated(console, expression) if expression else None
    step = client.settle(console.log, run, words[place - 1], choice, value)
    then = "will be executed again" if choice == "rerun" else f"counts as {step.status.replace('_', ' ')}"
    return f"Step `{step.name}` ({step.number}) {then}. Run the cell again to go on."


def _evaluated(console: Console, expression: str) -> Any:
    try:
        return eval(expression, console.shell.user_global_ns, console.shell.user_ns)  # noqa: S307 - the user's own words
    except Exception as error:
        raise UsageError(f"The value cannot be computed: {type(error).__name__}: {error}") from None


def _sql(console: Console, rest: str) -> Shown:
    query = rest[1:-1] if len(rest) > 1 and rest[0] == rest[-1] and rest[0] in "\"'" else rest
    if not query.strip(" ;"):
        raise UsageError('Say `%durable sql "SELECT name, status FROM runs"`.')
    console.log  # noqa: B018 - says in words that there is none yet
    columns, rows = client.sql(console.hooks.surroundings.directory, query)
    more = f" (the first {MOST_ROWS} of {len(rows)} rows)" if len(rows) > MOST_ROWS else ""
    return table(columns, rows[:MOST_ROWS], more.strip())


def _spend(console: Console, rest: str) -> Shown:
    console.log  # noqa: B018 - says in words that there is none yet
    words = rest.split()
    by = words.pop() if words and words[-1] in get_args(spending.By) else ""
    run = console.find(" ".join(words)) if words else ""
    chosen = cast("spending.By", by or ("step" if run else "run"))
    lines = spending.bill(console.hooks.surroundings.directory, chosen, run)
    rows = [(line.what, str(line.billed), str(line.wasted), str(line.replayed)) for line in lines]
    return table([chosen, "billed", "wasted", "saved"], rows, "" if rows else "No model call is recorded yet.")


def _budget(console: Console, rest: str) -> str:
    around = console.hooks.surroundings
    if not rest:
        return f"The budget of this notebook is {around.budget}." if around.budget else "This notebook has no budget."
    if rest == "off":
        around.budget = ""
        return "This notebook has no budget any more."
    budget = parse_budget(rest)
    if not budget.of_models or budget.steps is not None:
        raise UsageError(
            "The budget of a notebook is money or tokens: `%durable budget 5usd`, `200k tokens`, or `off`."
        )
    around.budget = str(budget)
    return (
        f"All durable runs of this notebook together may spend {budget}, what is recorded already included. It holds "
        f"until the kernel ends: keep this line in a cell at the top."
    )


def _doctor(console: Console, rest: str) -> Shown:
    _nothing_after("doctor", rest)
    from jupyter_durable import diagnose

    where = console.hooks.surroundings.directory
    rows = [(finding.level, finding.what, finding.advice) for finding in diagnose.doctor(where)]
    return table(["level", "what", "advice"], rows, where)


def _trust(console: Console, rest: str) -> str:
    log = console.log
    known = [record.header for record in log.executions()]
    found = [h for h in known if rest and h.execution.startswith(rest)]
    if len(found) != 1:
        said = "Several executions begin with it; write more of the id." if found else "There is no such execution."
        raise UsageError(f"Say `%durable trust EXECUTION` with the id of one execution. {said if rest else ''}".strip())
    accept = getattr(log, "trust", None)
    if accept is None:
        raise UsageError(f"{log.location} has no signatures, so there is nothing to accept.")
    accept(found[0].execution)
    return f"Execution {found[0].execution} of run `{found[0].name}` is accepted as its bytes are now."


def _on(console: Console, rest: str) -> str:
    _nothing_after("on", rest)
    console.hooks.all_cells = True
    return "From now on every cell is durable, without a header; `%durable off` ends that."


def _off(console: Console, rest: str) -> str:
    _nothing_after("off", rest)
    console.hooks.all_cells = False
    return "Only cells with a header are durable."


def _help(_: Console, rest: str) -> Shown:
    _nothing_after("help", rest)
    width = max(len(word.usage) for word in WORDS.values())
    words = "\n".join(f"    %durable {word.usage:<{width}}  {word.help}" for word in WORDS.values())
    text = f"Words:\n{words}\n\nA durable cell begins with `%%durable [NAME] [flags]`. Flags:\n{flags_help()}"
    return Shown(text, f"<pre>{code_marked(text)}</pre>")


def _nothing_after(word: str, rest: str) -> None:
    if rest:
        raise UsageError(f"`%durable {word}` takes nothing after it.".replace("durable `", "durable`"))


WORDS: dict[str, Word] = {
    "": Word("", "the runs of this notebook", _status),
    "runs": Word("runs", "all runs of the log", _runs),
    "history": Word("history [RUN]", "the steps of a run, and how each ended", _history),
    "why": Word("why [RUN]", "why each step was replayed or executed", _why),
    "plan": Word("plan [RUN]", "before it costs: what running its cell would replay, and what it would buy", _plan),
    "decide": Word("decide [RUN] reuse|rerun|pure", "after an edit: what becomes of finished steps", _decide),
    "settle": Word(
        "settle [RUN] STEP rerun|fail|salvage|value EXPRESSION", "what happened to a step that is in doubt", _settle
    ),
    "fork": Word(
        "fork [RUN] --at STEP [--branch BRANCH] [--set NAME=EXPRESSION]",
        "a new branch: what is before the step is kept, the rest is executed anew when the cell runs",
        fork,
    ),
    "switch": Word("switch [RUN] BRANCH", "which branch the cell takes up next", switch),
    "undo": Word(UNDO, "what steps with `compensate` have done, newest first; `--yes` undoes it", undo),
    "diff": Word("diff [RUN] [A B]", "two branches side by side; without names the newest and its origin", diff),
    "samples": Word("samples [RUN]", "the samples that `%%durable NAME --sample K` has made", samples),
    "waiting": Word("waiting [RUN]", "what runs wait for, and how to answer", waiting),
    "approve": Word("approve [[RUN] NUMBER] ANSWER", "answer what a run asks: yes, no, or one of its choices", approve),
    "signal": Word("signal [RUN/]NAME [VALUE]", "send a signal to a run; the value is JSON or text", signal),
    "children": Word("children [RUN]", "the child runs of a run, as a tree, and how each stands", children),
    "cancel": Word("cancel RUN[/CHILD] [REASON]", "end a run, or a child run, at its next await or step", cancel),
    "resume": Word("resume [RUN]", "let a cancelled run go on when its cell runs again", resume),
    "spend": Word("spend [RUN] [run|cell|step|branch|notebook|day|model|all]", "what model calls cost", _spend),
    "budget": Word(
        "budget [LIMIT|off]", "the most that all runs of the notebook may spend: 5usd, 200k tokens", _budget
    ),
    "sql": Word('sql "QUERY"', "ask the log; views: runs, branches, executions, events, steps, llm_calls, spend", _sql),
    "on": Word("on", "make every cell durable", _on),
    "off": Word("off", "only cells with a header", _off),
    "doctor": Word("doctor", "examine the log and the machine", _doctor),
    "trust": Word("trust EXECUTION", "accept an execution that another key has signed", _trust),
    "help": Word("help", "this list", _help),
}
"""Word -> what it does, in the order of help. The documentation and its tests read this table."""
