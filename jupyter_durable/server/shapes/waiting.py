"""Shapes of what runs wait for, and of answers and signals."""

from __future__ import annotations

from typing import Any, Literal

from jupyter_durable.server.shapes.base import FORMAT, Shape
from jupyter_durable.server.shapes.detail import AnswerItem, OutputView


class WaitItem(Shape, frozen=True, kw_only=True):
    """Something that a run waits for."""

    run: str
    """Id of the run."""
    run_name: str
    branch: str
    branch_name: str
    number: int
    """Of the step."""
    request: str
    """Id by which POST answer names it."""
    kind: Literal["timer", "signal", "approval"]
    signal: str
    """Name of the signal; empty for others."""
    child: str
    """Path of the child run that waits; empty: the run itself."""
    question: str
    choices: list[str]
    """What may be answered; empty for yes and no, or whatever fits `schema`."""
    schema: Any
    """JSON schema of the answer; ``null``: any JSON."""
    shown: list[OutputView]
    """What was shown with the question."""
    until: float | None
    """When the timer fires, or the request lapses."""
    running: bool
    """Its cell waits in a kernel right now, and goes on at once; else it goes on when the cell runs again."""
    cell: str
    notebook: str
    answered: AnswerItem | None
    """The answer that the run has not taken yet."""


class KeptItem(Shape, frozen=True, kw_only=True):
    """A signal that was sent before anybody waited for it. It is used by the first wait for its name."""

    run: str
    """Id of the run."""
    run_name: str
    branch: str
    """Id of the branch that it is for."""
    branch_name: str
    signal: str
    """Its name."""
    id: str
    """As its sender gave it."""
    by: str
    via: str
    at: float
    """When it was sent."""


class Waits(Shape, frozen=True, kw_only=True):
    """GET waiting: what the runs of a log wait for, and what was sent to them and is not used yet."""

    format: int = FORMAT
    log: str
    waits: list[WaitItem]
    kept: list[KeptItem]


class AnswerQuestion(Shape, frozen=True, kw_only=True):
    """Body of POST answer: the answer to a request."""

    run: str
    """Its id."""
    request: str
    """Id of the request, or number of the step."""
    value: Any
    """``true``, ``false``, a choice, or JSON that fits the schema."""


class SignalQuestion(Shape, frozen=True, kw_only=True):
    """Body of POST signal: a value that the run waits for, or will wait for."""

    run: str
    """Its id."""
    name: str
    """Of the signal."""
    value: Any = None
    json: str | None = None
    """The value as JSON text, from where numbers of many digits do not survive; goes before `value`."""
    id: str = ""
    """Made by the sender: sent twice, it counts once."""
    branch: str = ""
    """Name or id of the branch that it is for; empty: the newest."""
