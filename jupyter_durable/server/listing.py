"""Runs, branches and executions as shapes: made of first and last lines alone, so a listing is quick."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import structs

from jupyter_durable.branches import BranchView, asked_for
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.comparing import text_of
from jupyter_durable.event_data import ErrorInfo
from jupyter_durable.log import renames
from jupyter_durable.log.base import ExecutionRecord
from jupyter_durable.log.listing import Listing
from jupyter_durable.notebooks import Known, Renamed, find_notebook, owners
from jupyter_durable.server.logs import LogView, branches_of, newest_of, pid_of, records_of
from jupyter_durable.server.place import Place
from jupyter_durable.server.shapes import (
    BranchItem,
    ExecutionItem,
    Failure,
    ForkItem,
    OriginItem,
    RunDetail,
    RunItem,
    Runs,
    RunStatus,
    SampleItem,
    UndoneItem,
)
from jupyter_durable.server.waiting import waiting

_MESSAGE = 1000
_SET = 200
"""Characters of a value that was set for a branch."""
_CODE = ("module:", "code:")
"""How digests of inputs begin that nobody can set."""
_LARGEST = 64 << 20
"""A notebook file of more bytes is not searched for the ids of its cells."""


def runs(view: LogView | None, place: Place) -> Runs:
    """Answer to GET runs."""
    if view is None:
        return Runs(log=str(place.log), exists=False, runs=[], unreadable=[])
    listing = view.look()
    found: dict[str, list[ExecutionRecord]] = {}
    for record in listing.records():
        found.setdefault(record.header.run, []).append(record)
    here = _Here(place, listing)
    items = [run_item(records, here) for records in found.values()]
    return Runs(
        log=view.name,
        exists=True,
        runs=sorted(items, key=lambda item: -item.started),
        unreadable=[str(error) for error in listing.errors.values()],
    )


def run(view: LogView, place: Place, run_id: str) -> RunDetail:
    """Answer to GET runs/RUN."""
    listing = view.look()
    records = records_of(listing, run_id)
    branches = branches_of(records)
    return RunDetail(
        log=view.name,
        run=run_item(records, _Here(place, listing)),
        branches=[branch_item(branch, branches, records) for branch in branches],
        executions=[_execution(record, view) for record in records],
    )


class _Here:
    """Whether a run is one of the notebook that is asked about: as the kernel finds its notebook, or by path alone."""

    def __init__(self, place: Place, listing: Listing) -> None:
        self._file = "" if place.file is None else os.path.realpath(place.file)
        self._known: dict[str, str] = {}
        self._id = self._find(place.file, place, listing) if place.file is not None else ""

    def _find(self, file: Path, place: Place, listing: Listing) -> str:
        known = sorted((Known(each.started, each.header) for each in listing.records()), key=lambda each: each.started)
        real = [
            each  # a folder that is reached through a link is the same folder
            if (path := self._real(each.header.path)) == each.header.path
            else Known(each.started, structs.replace(each.header, path=path))
            for each in known
        ]
        renamed = [
            Renamed(at=each.at, before=self._real(each.before), after=self._real(each.after))
            for each in renames.read(place.log)
        ]
        beside = file.parent

        def exists(other: str) -> bool:
            moved = beside / Path(other).name  # the folder as a whole may have moved, with its log
            return Path(other).exists() or (str(moved) != str(file) and moved.exists())

        if self._file in owners(real, renamed):
            return find_notebook(self._file, (), real, renamed, exists)[0]
        return find_notebook(self._file, _cells_of(file), real, renamed, exists)[0]

    def _real(self, path: str) -> str:
        found = self._known.get(path)
        if found is None:
            try:
                found = os.path.realpath(path) if path else ""
            except (OSError, ValueError):
                found = ""
            self._known[path] = found
        return found

    def __call__(self, record: ExecutionRecord) -> bool:
        header = record.header
        if header.notebook:
            return header.notebook == self._id
        return bool(self._file) and self._real(header.path) == self._file


def _cells_of(file: Path) -> frozenset[str]:
    """Ids of the cells of a notebook as it was saved last; empty if the file cannot be read."""
    try:
        found = file.stat()
        if found.st_size > _LARGEST:
            return frozenset()
        return _read_cells(str(file), found.st_mtime_ns, found.st_size)
    except (OSError, ValueError):
        return frozenset()


@lru_cache(maxsize=32)
def _read_cells(path: str, _changed: int, _size: int) -> frozenset[str]:
    book = msgspec.json.decode(Path(path).read_bytes(), type=_Book)
    return frozenset(cell.id for cell in book.cells if cell.id)


class _Cell(msgspec.Struct):
    id: str = ""


class _Book(msgspec.Struct):
    cells: list[_Cell] = []


def run_item(records: list[ExecutionRecord], here: _Here) -> RunItem:
    """One run, from its executions."""
    branches = branches_of(records)
    branch = newest_of(branches, records)
    by_id = {record.header.execution: record for record in records}
    newest = by_id[branch.newest.header.execution]
    header, outcome = newest.header, newest.outcome
    return RunItem(
        run=header.run,
        name=header.name,
        status=run_status(branch),
        branch=branch.branch,
        branch_name=branch.name,
        next="" if (chosen := asked_for(branches)) is None else chosen.branch,
        branches=len(branches),
        executions=len(records),
        replayed=None if outcome is None else outcome.replayed,
        live=None if outcome is None else outcome.live,
        started=newest.started,
        ended=newest.ended,
        head=max(by_id[each.header.execution].last.seq for each in branch.executions),
        notebook=header.path,
        here=any(here(record) for record in records),
        cell=header.cell,
        error=_failure(None if outcome is None else outcome.error),
        waits=waiting(branch, branches, records),
    )


def run_status(branch: BranchView) -> RunStatus:
    """How a run stands on a branch: by its newest execution, unless somebody has cancelled or undone it."""
    if branch.cancelled is not None and not branch.newest.running:
        return "cancelled"
    if branch.undone is not None and not branch.newest.running:
        return "undone"
    word = _status(branch.newest)
    if word == "cancelled":
        return "interrupted"  # it was resumed since, and its cell has not run yet
    return "stopped" if word == "decided" else word


def _status(execution: Seen) -> RunStatus:
    if execution.running:
        return "running"
    return "interrupted" if execution.outcome is None else execution.outcome.status


def branch_item(branch: BranchView, branches: list[BranchView], records: list[ExecutionRecord]) -> BranchItem:
    """One branch."""
    by_id = {record.header.execution: record for record in records}
    names = {each.branch: each.name for each in branches}
    origin = branch.first.origin
    mine = [by_id[each.header.execution] for each in branch.executions]
    return BranchItem(
        branch=branch.branch,
        name=branch.name,
        status=run_status(branch),
        executions=len(mine),
        started=mine[0].started,
        ended=by_id[branch.newest.header.execution].ended,
        head=max(record.last.seq for record in mine),
        origin=None
        if origin is None
        else OriginItem(branch=origin.branch, name=names.get(origin.branch, origin.branch), seq=origin.seq),
        fork=_fork(branch),
        set={name: text_of(payload, _SET) for name, payload in branch.first.set.items()},
        sample=_sample(branch),
        undone=_undone(branch),
        reads=[name for name, said in branch.newest.header.inputs.items() if not said.startswith(_CODE)],
        switched=next((e.header.switched for e in reversed(branch.executions) if e.header.switched), ""),
        source=branch.newest.header.source,
    )


def _fork(branch: BranchView) -> ForkItem | None:
    fork = branch.first.fork
    if fork is None:
        return None
    return ForkItem(number=fork.at, label=fork.name if fork.n == 0 else f"{fork.name}#{fork.n}", by=fork.by)


def _sample(branch: BranchView) -> SampleItem | None:
    sample, outcome = branch.first.sample, branch.newest.outcome
    if sample is None:
        return None
    value = "" if outcome is None else outcome.shown
    return SampleItem(number=sample.number, of=sample.of, first=sample.first, value=value)


def _undone(branch: BranchView) -> UndoneItem | None:
    undone = branch.undone
    return None if undone is None else UndoneItem(by=undone.by, at=undone.at, finished=undone.finished)


def _execution(record: ExecutionRecord, view: LogView) -> ExecutionItem:
    header, outcome = record.header, record.outcome
    return ExecutionItem(
        execution=header.execution,
        branch=header.branch,
        branch_name=header.branch_name,
        purpose=header.purpose,
        status=_status(Seen(header, outcome, record.running)),
        started=record.started,
        ended=record.ended,
        replayed=None if outcome is None else outcome.replayed,
        live=None if outcome is None else outcome.live,
        pid=pid_of(view, record),
        host=header.host,
        python=header.python,
        flags=header.flags,
        cell=header.cell,
        durability=header.durability,
        error=_failure(None if outcome is None else outcome.error),
        torn=record.torn,
        folded=record.folded,
    )


def _failure(error: ErrorInfo | None) -> Failure | None:
    return None if error is None else Failure(type=error.type, message=error.message[:_MESSAGE])
