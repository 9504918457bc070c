"""Shapes of what is asked across steps and written down: the bill, a comparison, SQL, decisions."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from jupyter_durable.server.shapes.base import FORMAT, Shape, Totals
from jupyter_durable.server.shapes.runs import BranchItem
from jupyter_durable.server.shapes.steps import StepRow


class Amount(Shape, frozen=True, kw_only=True):
    """A sum over model calls; tokens and dollars over those that told them."""

    calls: int
    unknown: int
    """Calls that did not tell their tokens."""
    tokens: int
    cost: float
    unpriced: int
    """Calls that told their tokens and have no known price."""
    text: str
    """In words."""


By = Literal["run", "notebook", "cell", "branch", "step", "day", "model", "all"]


class BillLine(Shape, frozen=True, kw_only=True):
    """One line of a bill."""

    what: str
    """The run, day, model and so on."""
    billed: Amount
    """Charged, and its answer is in use."""
    wasted: Amount
    """Charged, or perhaps charged, and of no use."""
    replayed: Amount
    """Taken from history instead of being bought."""


class Bill(Shape, frozen=True, kw_only=True):
    """GET spend."""

    format: int = FORMAT
    log: str
    by: By
    run: str
    """Id of the run that it is about; empty: all."""
    lines: list[BillLine]
    """The dearest first; by day and by step in order of time."""


class DiffRow(Shape, frozen=True, kw_only=True):
    """One step of two branches, side by side."""

    a: StepRow | None
    b: StepRow | None
    verdict: Literal["equal", "value", "status", "arguments", "only_a", "only_b"]
    """``equal``; another ``value``; the same call with another end (``status``); a call of the same name at the same
    place with other ``arguments``; or only in one of them."""


class Diff(Shape, frozen=True, kw_only=True):
    """GET diff: rows in order of ``b``; what is only in ``a`` stands where it stood there."""

    format: int = FORMAT
    log: str
    run: str
    a: BranchItem
    b: BranchItem
    rows: list[DiffRow]
    next: int | None
    """What to pass as ``after`` for the next rows; ``null``: these were the last."""
    counts: dict[str, int]
    """Verdict -> how many rows in all."""
    totals_a: Totals
    totals_b: Totals
    untrusted: str


class SqlQuestion(Shape, frozen=True, kw_only=True):
    """Body of POST sql."""

    query: str
    limit: int = 1000
    """Rows at most; up to 10,000."""


class SqlAnswer(Shape, frozen=True, kw_only=True):
    """What a query found."""

    format: int = FORMAT
    log: str
    columns: list[str]
    types: list[str]
    """DuckDB's names of the types."""
    rows: list[list[Any]]
    cut: bool
    """Whether there are more rows, or a long text was cut."""
    partial: bool
    """Whether another program has ``log.duckdb`` open, so that only unfolded journals were asked."""
    seconds: float


class DecideQuestion(Shape, frozen=True, kw_only=True):
    """Body of POST decide: what becomes of finished steps after an edit, on the newest branch of a run."""

    run: str
    """Its id."""
    reuse: Literal["all", "pure", "none"]
    steps: list[str] = msgspec.field(default_factory=list)
    """Names of the steps that it speaks of; empty: all."""


class SettleQuestion(Shape, frozen=True, kw_only=True):
    """Body of POST settle: what happened to a step that is in doubt, or whose value could not be stored."""

    run: str
    step: int
    """Its number."""
    choice: Literal["rerun", "value", "salvage", "fail"]
    value: Any = None
    """The value (JSON), for ``value``."""
    json: str | None = None
    """The same as JSON text, from where numbers of many digits do not survive; goes before `value`."""
    branch: str = ""
    """Name or id of the branch; empty: the newest."""


class ForkQuestion(Shape, frozen=True, kw_only=True):
    """Body of POST fork: a new branch that begins anew at a step."""

    run: str
    """Its id."""
    step: int
    """Its number: it and what follows is executed, what is before it is kept."""
    branch: str = ""
    """Name or id of the branch that it is a step of; empty: the newest."""
    set: dict[str, Any] = msgspec.field(default_factory=dict)
    """Notebook variables that the cell reads -> the values (JSON) that they have on the new branch."""
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    """The same with the values as text, JSON or a Python literal, from where numbers of many digits do not survive."""


class SwitchQuestion(Shape, frozen=True, kw_only=True):
    """Body of POST switch: which branch the cell takes up next."""

    run: str
    """Its id."""
    branch: str
    """Name or id."""


class CancelQuestion(Shape, frozen=True, kw_only=True):
    """Body of POST cancel: a run, or a child run of it, is to end."""

    run: str
    """Its id."""
    child: str = ""
    """Path or number of the child run that alone is cancelled; empty: the whole run."""
    reason: str = ""


class ResumeQuestion(Shape, frozen=True, kw_only=True):
    """Body of POST resume: a cancelled run may go on when its cell runs again."""

    run: str
    """Its id."""


class Done(Shape, frozen=True, kw_only=True):
    """Answer to POST decide, settle, fork, switch, cancel, resume, answer and signal."""

    format: int = FORMAT
    log: str
    run: str
    branch: str
    branch_name: str
    by: str
    """Who it was signed by."""
    message: str
    """What was written down, as a sentence."""
