"""The samples of a cell: which branches they are, how each ended, what it came to and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_durable import errors
from jupyter_durable.branches import BranchView, group, sample_sets
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.engine.tally import Tally
from jupyter_durable.history import History
from jupyter_durable.log.base import EventLog


@dataclass(frozen=True, slots=True)
class SampleView:
    """One sample of a cell in a listing."""

    number: int
    of: int
    branch: str
    branch_name: str
    status: str
    """``running``, ``completed``, ``failed``, ``interrupted``, ``stopped``, ``parked`` or ``undone``."""
    steps: int
    spent: Tally
    """What was billed on its branch, over all executions."""
    value: str
    """The cell's last expression as text; empty where there is none (yet)."""


def samples(log: EventLog, run: str, first: str = "") -> list[SampleView]:
    """The samples of a run that were made together, by their numbers. Reads events; loads no value.

    Args:
        log: where the run is.
        run: id of the run.
        first: id of the branch of the first sample; default: of those that were made last.

    Raises:
        UsageError: the run has no samples.

    >>> from jupyter_durable.log import open_log
    >>> samples(open_log("memory:"), "0a1b")
    Traceback (most recent call last):
    jupyter_durable.errors.UsageError: This run has no samples. `%%durable NAME --sample 3` makes some.
    """
    records = log.executions(run)
    sets = sample_sets(group(Seen(r.header, r.outcome, r.running) for r in records))
    if not sets:
        raise errors.UsageError("This run has no samples. `%%durable NAME --sample 3` makes some.")
    newest = sets[first or list(sets)[-1]]
    return [_view(log, number, newest[number]) for number in sorted(newest)]


def _view(log: EventLog, number: int, view: BranchView) -> SampleView:
    history = History(log.history(view.branch))
    spent = Tally()
    for entry in history.entries.values():
        for usage in entry.billed:
            spent.add(usage)
    newest = view.newest
    outcome = newest.outcome
    sample = view.first.sample
    assert sample is not None
    status = "running" if newest.running else "interrupted" if outcome is None else outcome.status
    if view.undone is not None and not newest.running:
        status = "undone"
    value = outcome.shown if outcome is not None else ""
    return SampleView(
        number, sample.of, view.branch, view.name, status, len(history.entries), spent, value
    )  # fmt: skip
