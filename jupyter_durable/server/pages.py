"""Steps as rows, in pages that a client catches up and polls with."""

from __future__ import annotations

from collections.abc import Iterable

from jupyter_durable.entries import Entry
from jupyter_durable.event_data import Notice, Progress, Usage
from jupyter_durable.server.index import BranchIndex
from jupyter_durable.server.listing import run_status
from jupyter_durable.server.logs import LogView, branch_of, branches_of, records_of
from jupyter_durable.server.shapes import (
    Failure,
    NoticeItem,
    Page,
    ProgressItem,
    StepRow,
    StepStatus,
    Totals,
    UsageItem,
)
from jupyter_durable.server.tracks import BEGUN, Sum, Track, raw_state

LIMIT = 10_000
"""Rows of a page at most."""
_TEXT = 200
_ENOUGH = 0.4
"""Seconds that one request reads of a branch that is long and new to the server: first rows are to come soon."""


def page(view: LogView, run: str, branch: str, *, after: int = -1, epoch: str = "", limit: int = 1000) -> Page:
    """Answer to GET steps.

    Args:
        view: the log.
        run: id of the run.
        branch: name or id of the branch.
        after: seq up to which the client has everything; -1: it has nothing.
        epoch: what the last page said.
        limit: rows at most.
    """
    with view.looking() as listing:
        records = records_of(listing, run)
        found = branch_of(branches_of(records), branch)
        newest = found.newest
        running = newest.header.execution if newest.running else ""
        with view.branch(listing, found.branch, _ENOUGH) as (index, whole):
            reset = after >= 0 and not _continues(index, after, epoch)
            tracks, up_to, more = index.since(-1 if reset else after, limit)
            at = index.segment_of(up_to)
            return Page(
                log=view.name,
                run=run,
                branch=found.branch,
                branch_name=found.name,
                rows=[row(track, running) for track in tracks],
                next=up_to,
                epoch="" if at is None else at.execution,
                reset=reset,
                more=more or not whole,
                head=max([index.head, *(r.last.seq for r in records if r.header.branch == found.branch)]),
                running=running,
                newest=newest.header.execution,
                newest_status=run_status(found),
                progress=None if found.completed else _progress(index.progress),
                totals=totals(index, running),
                notices=notices(index.notices),
                untrusted=index.untrusted,
                damaged=index.damaged,
            )


def _continues(index: BranchIndex, after: int, epoch: str) -> bool:
    """Whether what a client has is the beginning of this branch."""
    at = index.segment_of(after)
    return at is not None and epoch in {"", at.execution}


def row(track: Track, running: str) -> StepRow:
    """One step in a listing.

    Args:
        track: the step.
        running: the execution that runs now, if one does.
    """
    entry = track.entry
    name = entry.key.name
    saved = entry.adopted.usage if entry.adopted is not None else None
    return StepRow(
        number=entry.begun,
        changed=track.changed,
        name=name,
        label=name if entry.key.n == 0 else f"{name}#{entry.key.n}",
        kind=entry.kind,
        status=status(track, running),
        scope=entry.key.scope,
        parent=None if track.parent < 0 else track.parent,
        cell=track.cell,
        line=track.line,
        execution=entry.execution,
        started=track.started,
        ended=None if track.ended < 0 else track.ended,
        seconds=None if track.seconds < 0 else track.seconds,
        attempts=entry.attempts + (0 if entry.state == "failed" else 1),
        why=entry.why,
        error=_error(entry),
        usage=_sum(track, entry.billed),
        saved=None if saved is None else usage_item(saved),
        outputs=track.outputs,
        notices=len(entry.notices),
        progress=None if entry.finished else _progress(entry.progress),
        beat=entry.beat if entry.beat >= 0 else None,
        missed=track.missed,
    )


def status(track: Track, running: str) -> StepStatus:
    """The status word of a step."""
    word = raw_state(track)
    if word == BEGUN:
        return "running" if running else "interrupted"
    if word == "open" and running and track.entry.execution == running:
        return "running"
    return "in_doubt" if word in {"open", "interrupted"} else word  # type: ignore[return-value] # the rest are words of both


def _progress(said: Progress | None) -> ProgressItem | None:
    if said is None:
        return None
    return ProgressItem(done=said.done, total=said.total, text=said.text[:_TEXT])


def _error(entry: Entry) -> Failure | None:
    if entry.error is None or entry.state not in {"failed", "open", "interrupted"}:
        return None
    return Failure(type=entry.error.type, message=entry.error.message)


def _sum(track: Track, billed: tuple[Usage, ...]) -> UsageItem | None:
    """All attempts of a model call together; of a call that has told nothing, only whose it was."""
    if track.entry.kind != "model":
        return None
    names = ("input", "output", "cached", "cache_write", "reasoning", "cost")
    sums = {name: _total(getattr(usage, name) for usage in billed) for name in names}
    return UsageItem(provider=track.provider, model=track.model, **sums)  # type: ignore[arg-type]


def _total(told: Iterable[float | None]) -> float | None:
    known = [one for one in told if one is not None]
    return sum(known) if known else None


def usage_item(usage: Usage) -> UsageItem:
    """What one attempt used."""
    return UsageItem(
        provider=usage.provider,
        model=usage.model,
        input=usage.input,
        output=usage.output,
        cached=usage.cached,
        cache_write=usage.cache_write,
        reasoning=usage.reasoning,
        cost=usage.cost,
    )


def totals(index: BranchIndex, running: str) -> Totals:
    """Sums over what was read of a branch."""
    spent: Sum = index.spent
    by_status: dict[str, int] = {}
    for word, count in index.states.items():
        shown = "in_doubt" if word in {"open", "interrupted"} else word
        if count:
            by_status[shown] = by_status.get(shown, 0) + count
    now = sum(1 for track in index.open.values() if running and track.entry.execution == running)
    if now:
        by_status["running"] = now
        by_status["in_doubt"] -= now
        if not by_status["in_doubt"]:
            del by_status["in_doubt"]
    return Totals(
        steps=sum(index.states.values()),
        by_status=by_status,
        calls=spent.calls,
        tokens=spent.tokens,
        cost=spent.cost,
        unpriced=spent.unpriced,
        unknown=spent.unknown,
        replayed_calls=index.saved.calls,
        replayed_tokens=index.saved.tokens,
        replayed_cost=index.saved.cost,
    )


def notices(found: Iterable[Notice]) -> list[NoticeItem]:
    """Notices as shapes."""
    return [NoticeItem(kind=one.kind, message=one.message, names=list(one.names)) for one in found]
