"""All routes, in one table: REST, the widget, ``openapi.json`` and ``docs/rest.md`` are made of it.

Nothing here belongs to a web server: `handlers` carries questions and answers for the Jupyter server, and
`jupyter_durable.widget` for an output cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

import msgspec

from jupyter_durable.errors import UsageError
from jupyter_durable.server import answering, asking, comparing, deciding, details, listing, pages
from jupyter_durable.server.place import check
from jupyter_durable.server.questions import Question
from jupyter_durable.server.shapes import (
    About,
    AnswerQuestion,
    Bill,
    CancelQuestion,
    DecideQuestion,
    Diff,
    Done,
    ForkQuestion,
    Page,
    ResumeQuestion,
    RunDetail,
    Runs,
    SettleQuestion,
    Shape,
    SignalQuestion,
    SqlAnswer,
    SqlQuestion,
    StepDetail,
    SwitchQuestion,
    Waits,
)
from jupyter_durable.server.watching import SCHEMA_ID

PREFIX = "jupyter-durable/v1"
"""Behind the server's base URL."""
_HIGHEST = 2**53


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of an address."""

    name: str
    says: str
    kind: str = "string"
    required: bool = False


class Route(msgspec.Struct, frozen=True):
    """One route."""

    method: str
    path: str
    """With the names of its parts in braces."""
    does: Callable[[Question], Shape] | None
    """Answers, in a thread; ``None``: the answer is no shape, and only the server gives it."""
    says: str
    answer: type[Shape] | None = None
    question: type[Shape] | None = None
    parameters: tuple[Parameter, ...] = ()
    slow: bool = False
    """It may take seconds, and must not keep others from listing runs."""

    @property
    def pattern(self) -> str:
        """What the server matches, behind its base URL. A part may hold everything but a slash that is not escaped."""
        escaped = re.escape(self.path).replace(r"\{number\}", r"([0-9]{1,15})")
        return f"/{PREFIX}/" + re.sub(r"\\\{[a-z]+\\\}", "([^/]+)", escaped)

    @property
    def names(self) -> list[str]:
        """The names of its parts, in order."""
        return re.findall(r"\{([a-z]+)\}", self.path)


def find(method: str, words: Sequence[str]) -> tuple[Route, dict[str, str]] | None:
    """The route that a path leads to, and its parts; ``None`` if there is none.

    Args:
        method: ``GET`` or ``POST``.
        words: of the path; a word may hold slashes.
    """
    for route in ROUTES:
        known = route.path.split("/")
        if route.method == method and len(known) == len(words):
            parts = {one[1:-1]: word for one, word in zip(known, words, strict=True) if one.startswith("{")}
            fixed = all(one.startswith("{") or one == word for one, word in zip(known, words, strict=True))
            if fixed and re.fullmatch(r"[0-9]{1,15}", parts.get("number", "0"), re.ASCII):
                return route, parts
    return None


# What they do -------------------------------------------------------------------------------------------------------


def _about(asked: Question) -> About:
    place = asked.place
    try:
        ours = version("jupyter_durable")
    except PackageNotFoundError:
        ours = ""
    return About(
        version=ours,
        notebook=place.notebook,
        log=str(place.log.absolute()),
        exists=check(place),
        configured=place.configured,
        elsewhere=place.elsewhere,
        user=asked.person,
        hints=SCHEMA_ID,
    )


def _runs(asked: Question) -> Runs:
    place = asked.place
    return listing.runs(asked.logs.find(place), place)


def _run(asked: Question) -> RunDetail:
    return listing.run(asked.view, asked.place, asked.parts["run"])


def _steps(asked: Question) -> Page:
    after = asked.number("after", -1, -1, _HIGHEST)
    limit = asked.number("limit", 1000, 0, pages.LIMIT)
    run, branch, epoch = asked.parts["run"], asked.parts["branch"], asked.text("epoch")
    return pages.page(asked.view, run, branch, after=after, epoch=epoch, limit=limit)


def _step(asked: Question) -> StepDetail:
    return details.detail(asked.view, asked.parts["run"], asked.parts["branch"], int(asked.parts["number"]))


def _spend(asked: Question) -> Bill:
    return asking.spend(asked.view, asked.text("by", "run"), asked.text("run"))


def _diff(asked: Question) -> Diff:
    after = asked.number("after", 0, 0, _HIGHEST)
    limit = asked.number("limit", 1000, 0, pages.LIMIT)
    only = asked.text("only")
    if only not in {"", "changed"}:
        raise UsageError("`only` can be `changed`, or be left out.")
    run, a, b = asked.text("run"), asked.text("a"), asked.text("b")
    return comparing.diff(asked.view, run, a, b, after=after, limit=limit, changed=only == "changed")


def _sql(asked: Question) -> SqlAnswer:
    query = asked.read(SqlQuestion)
    return asking.sql(asked.view, query.query, max(0, min(asking.LIMIT, query.limit)))


def _decide(asked: Question) -> Done:
    question = asked.read(DecideQuestion)
    return deciding.decide(asked.view, question, asked.person)


def _settle(asked: Question) -> Done:
    question = asked.read(SettleQuestion)
    return deciding.settle(asked.view, question, asked.person)


def _fork(asked: Question) -> Done:
    return deciding.fork(asked.view, asked.read(ForkQuestion), asked.person)


def _switch(asked: Question) -> Done:
    return deciding.switch(asked.view, asked.read(SwitchQuestion), asked.person)


def _cancel(asked: Question) -> Done:
    return deciding.cancel(asked.view, asked.read(CancelQuestion), asked.person)


def _resume(asked: Question) -> Done:
    return deciding.resume(asked.view, asked.read(ResumeQuestion), asked.person)


def _waiting(asked: Question) -> Waits:
    place = asked.place
    return answering.waits(asked.logs.find(place), str(place.log))


def _answer(asked: Question) -> Done:
    return answering.answer(asked.view, asked.read(AnswerQuestion), asked.person)


def _signal(asked: Question) -> Done:
    return answering.signal(asked.view, asked.read(SignalQuestion), asked.person)


# The table ----------------------------------------------------------------------------------------------------------

_NOTEBOOK = Parameter("notebook", "The server's path of a notebook, to find its log; without it, the root's.")
_RUN = Parameter("run", "Id of a run.", required=True)
_LIMIT = Parameter("limit", "Rows at most: 1,000 unless said, up to 10,000.", "integer")

ROUTES: tuple[Route, ...] = (
    Route("GET", "about", _about, "Who answers, and which log a notebook has.", About, None, (_NOTEBOOK,)),
    Route("GET", "runs", _runs, "The runs of the log, the last one first.", Runs, None, (_NOTEBOOK,)),
    Route("GET", "runs/{run}", _run, "One run: its branches and executions.", RunDetail, None, (_NOTEBOOK,)),
    Route(
        "GET",
        "runs/{run}/branches/{branch}/steps",
        _steps,
        "The steps that are new or have changed since `after`, and totals.",
        Page,
        None,
        (
            _NOTEBOOK,
            Parameter("after", "`next` of the last page; -1 or absent for everything.", "integer"),
            Parameter("epoch", "`epoch` of the last page."),
            _LIMIT,
        ),
    ),
    Route(
        "GET",
        "runs/{run}/branches/{branch}/steps/{number}",
        _step,
        "One step: value, error, attempts, output, and the conversation of a model call.",
        StepDetail,
        None,
        (_NOTEBOOK,),
    ),
    Route(
        "GET",
        "spend",
        _spend,
        "The bill: billed, wasted, replayed.",
        Bill,
        None,
        (
            _NOTEBOOK,
            Parameter("by", "`run` (unless said), `notebook`, `cell`, `branch`, `step`, `day`, `model` or `all`."),
            Parameter("run", "Id of a run, to look at that one alone."),
        ),
        slow=True,
    ),
    Route(
        "GET",
        "diff",
        _diff,
        "Two branches of a run, side by side.",
        Diff,
        None,
        (
            _NOTEBOOK,
            _RUN,
            Parameter("a", "Name or id of a branch; without it, the one that `b` comes from."),
            Parameter("b", "Name or id of a branch; without it, the newest."),
            Parameter("after", "`next` of the last answer.", "integer"),
            _LIMIT,
            Parameter("only", "`changed` leaves out what is equal."),
        ),
    ),
    Route("POST", "sql", _sql, "One query that reads the views.", SqlAnswer, SqlQuestion, (_NOTEBOOK,), slow=True),
    Route("GET", "export", None, "Every event of a run, one a line (NDJSON).", None, None, (_NOTEBOOK, _RUN)),
    Route("POST", "decide", _decide, "Say what becomes of finished steps.", Done, DecideQuestion, (_NOTEBOOK,)),
    Route("POST", "settle", _settle, "Say what happened to a step in doubt.", Done, SettleQuestion, (_NOTEBOOK,)),
    Route("POST", "fork", _fork, "Make a branch that begins anew at a step.", Done, ForkQuestion, (_NOTEBOOK,)),
    Route("POST", "switch", _switch, "Choose which branch is taken up next.", Done, SwitchQuestion, (_NOTEBOOK,)),
    Route("POST", "cancel", _cancel, "Cancel a run, or a child run of it.", Done, CancelQuestion, (_NOTEBOOK,)),
    Route("POST", "resume", _resume, "Let a cancelled run go on.", Done, ResumeQuestion, (_NOTEBOOK,)),
    Route("GET", "waiting", _waiting, "What runs wait for.", Waits, None, (_NOTEBOOK,)),
    Route("POST", "answer", _answer, "Answer what a run asks.", Done, AnswerQuestion, (_NOTEBOOK,)),
    Route("POST", "signal", _signal, "Send a signal to a run.", Done, SignalQuestion, (_NOTEBOOK,)),
    Route("GET", "openapi.json", None, "This description."),
)  # fmt: skip
