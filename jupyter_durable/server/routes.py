"""All routes, in one table: the server's handlers, ``openapi.json`` and ``docs/rest.md`` are made of it."""

from __future__ import annotations

import re

import msgspec
from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_durable.server.handling import DurableHandler
from jupyter_durable.server.routes_asking import ExportHandler, SpendHandler, SqlHandler
from jupyter_durable.server.routes_deciding import DecideHandler, SettleHandler
from jupyter_durable.server.routes_runs import AboutHandler, RunHandler, RunsHandler
from jupyter_durable.server.routes_steps import DiffHandler, StepHandler, StepsHandler
from jupyter_durable.server.shapes import (
    About,
    Bill,
    DecideQuestion,
    Diff,
    Done,
    Page,
    RunDetail,
    Runs,
    SettleQuestion,
    Shape,
    SqlAnswer,
    SqlQuestion,
    StepDetail,
)

PREFIX = "jupyter-durable/v1"
"""Behind the server's base URL."""


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
    handler: type[DurableHandler]
    says: str
    answer: type[Shape] | None = None
    question: type[Shape] | None = None
    parameters: tuple[Parameter, ...] = ()

    @property
    def pattern(self) -> str:
        """What the server matches, behind its base URL. A part may hold everything but a slash that is not escaped."""
        escaped = re.escape(self.path).replace(r"\{number\}", r"([0-9]{1,15})")
        return f"/{PREFIX}/" + re.sub(r"\\\{[a-z]+\\\}", "([^/]+)", escaped)


class OpenApiHandler(DurableHandler):
    """The description of all routes."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """GET openapi.json."""
        from jupyter_durable.server.openapi import document

        await self.finish(msgspec.json.encode(document(self.base_url)))


_NOTEBOOK = Parameter("notebook", "The server's path of a notebook, to find its log; without it, the root's.")
_RUN = Parameter("run", "Id of a run.", required=True)
_LIMIT = Parameter("limit", "Rows at most: 1,000 unless said, up to 10,000.", "integer")

ROUTES: tuple[Route, ...] = (
    Route("GET", "about", AboutHandler, "Who answers, and which log a notebook has.", About, None, (_NOTEBOOK,)),
    Route("GET", "runs", RunsHandler, "The runs of the log, the last one first.", Runs, None, (_NOTEBOOK,)),
    Route("GET", "runs/{run}", RunHandler, "One run: its branches and executions.", RunDetail, None, (_NOTEBOOK,)),
    Route(
        "GET",
        "runs/{run}/branches/{branch}/steps",
        StepsHandler,
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
        StepHandler,
        "One step: value, error, attempts, output, and the conversation of a model call.",
        StepDetail,
        None,
        (_NOTEBOOK,),
    ),
    Route(
        "GET",
        "spend",
        SpendHandler,
        "The bill: billed, wasted, replayed.",
        Bill,
        None,
        (
            _NOTEBOOK,
            Parameter("by", "`run` (unless said), `notebook`, `cell`, `branch`, `step`, `day`, `model` or `all`."),
            Parameter("run", "Id of a run, to look at that one alone."),
        ),
    ),
    Route(
        "GET",
        "diff",
        DiffHandler,
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
    Route("POST", "sql", SqlHandler, "One query that reads the views.", SqlAnswer, SqlQuestion, (_NOTEBOOK,)),
    Route("GET", "export", ExportHandler, "Every event of a run, one a line (NDJSON).", None, None, (_NOTEBOOK, _RUN)),
    Route("POST", "decide", DecideHandler, "Say what becomes of finished steps.", Done, DecideQuestion, (_NOTEBOOK,)),
    Route("POST", "settle", SettleHandler, "Say what happened to a step in doubt.", Done, SettleQuestion, (_NOTEBOOK,)),
    Route("GET", "openapi.json", OpenApiHandler, "This description."),
)  # fmt: skip
