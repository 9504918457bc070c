"""The logs that somebody looks at, each with the branches that were read of it: read once, extended ever after."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_durable import clock
from jupyter_durable.branches import BranchView, group
from jupyter_durable.branches import Execution as Seen
from jupyter_durable.errors import LogError
from jupyter_durable.log import lease
from jupyter_durable.log.base import ExecutionRecord
from jupyter_durable.log.listing import Listing
from jupyter_durable.log.local import LocalLog
from jupyter_durable.server.index import BranchIndex
from jupyter_durable.server.place import NotHere, Place, check

_LOGS = 32
_BRANCHES = 12
"""Branches of one log that are kept in memory; who asks for another waits until it is read again."""
_STEPS = 300_000
"""Steps of them all together, about."""


class LogView:
    """One log as the server sees it. Safe for several threads; each of them waits for the others."""

    def __init__(self, directory: Path) -> None:
        self.log = LocalLog(directory, create=False)
        self.lock = threading.RLock()
        self.asked = clock.monotonic()
        """When a client last asked about it."""
        self._branches: OrderedDict[str, BranchIndex] = OrderedDict()

    @property
    def name(self) -> str:
        """What answers and hints call it."""
        return self.log.location

    def look(self) -> Listing:
        """The listing of the log as it is now."""
        with self.lock:
            return self.log.look()

    @contextmanager
    def looking(self) -> Iterator[Listing]:
        """A fresh listing that stays the newest: nobody else reads further into a branch meanwhile."""
        with self.lock:
            yield self.log.look()

    @contextmanager
    def branch(self, listing: Listing, branch: str, enough: float | None = None) -> Iterator[tuple[BranchIndex, bool]]:
        """A branch, read up to its end or until it is enough; it is not touched by others meanwhile.

        Args:
            listing: of `looking`.
            branch: id of the branch.
            enough: seconds to read at most.

        Yields:
            The branch, and whether it was read to its end.
        """
        with self.lock:
            index = self._branches.pop(branch, None) or BranchIndex(self.log, branch)
            self._branches[branch] = index
            self._make_room()
            until = None if enough is None else clock.monotonic() + enough
            whole = index.update(listing.segments(branch), until)
            yield index, whole

    def _make_room(self) -> None:
        """Forget the branches that were asked about longest ago, but not the newest two: a diff needs both."""
        while len(self._branches) > 2 and (
            len(self._branches) > _BRANCHES or sum(len(each.tracks) for each in self._branches.values()) > _STEPS
        ):
            self._branches.popitem(last=False)


class Logs:
    """The logs of a server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._views: OrderedDict[str, LogView] = OrderedDict()
        self._missing: OrderedDict[str, tuple[Place, float]] = OrderedDict()
        """Where clients have asked about a log that was not there yet, and when."""

    def find(self, place: Place) -> LogView | None:
        """The log of a notebook; ``None`` if there is none yet.

        Raises:
            LogUnusable, LogTooNew: it cannot be opened.
        """
        key = str(place.log)
        if not check(place):
            with self._lock:
                self._missing.pop(key, None)
                self._missing[key] = (place, clock.monotonic())
                while len(self._missing) > _LOGS:
                    self._missing.popitem(last=False)
            return None
        with self._lock:
            self._missing.pop(key, None)
            view = self._views.pop(key, None)
            if view is not None:
                self._views[key] = view
        if view is None or not view.log.directory.is_dir():
            view = LogView(place.log)
            with self._lock:
                view = self._views.setdefault(key, view)
                while len(self._views) > _LOGS:
                    self._views.popitem(last=False)
        view.asked = clock.monotonic()
        return view

    def get(self, place: Place) -> LogView:
        """The log of a notebook.

        Raises:
            NotHere: there is none yet.
        """
        view = self.find(place)
        if view is None:
            raise NotHere(f"There is no log in {place.log} yet. Run a cell that begins with %%durable.")
        return view

    def asked_since(self, moment: float) -> list[LogView]:
        """The logs that clients have asked about since then."""
        with self._lock:
            return [view for view in self._views.values() if view.asked >= moment]

    def expected_since(self, moment: float) -> bool:
        """Whether clients have asked since then about a log that is not there yet: the first durable cell makes it."""
        with self._lock:
            return any(asked >= moment for _, asked in self._missing.values())

    def arrived(self) -> None:
        """Take in the logs that clients asked about before they were there."""
        with self._lock:
            missing = list(self._missing.values())
        for place, asked in missing:
            try:
                view = self.find(place) if check(place) else None
            except LogError:
                # Half made, or not to be used; who asks by REST is told. It is looked at again.
                with self._lock:
                    self._missing.setdefault(str(place.log), (place, asked))
                continue
            if view is not None:
                view.asked = asked


def records_of(listing: Listing, run: str) -> list[ExecutionRecord]:
    """The executions of a run, oldest first.

    Raises:
        NotHere: there is no such run.
    """
    found = listing.records(run)
    if not found:
        raise NotHere("There is no such run in this log.")
    return found


def branches_of(records: list[ExecutionRecord]) -> list[BranchView]:
    """The branches of a run, oldest first."""
    return group(Seen(record.header, record.outcome, record.running) for record in records)


def branch_of(branches: list[BranchView], name: str) -> BranchView:
    """A branch by its name or id.

    Raises:
        NotHere: the run has no such branch.
    """
    found = next((b for b in branches if b.branch == name), None) or next((b for b in branches if b.name == name), None)
    if found is None:
        raise NotHere("The run has no such branch.")
    return found


def newest_of(branches: list[BranchView], records: list[ExecutionRecord]) -> BranchView:
    """The branch that ran last."""
    started = {record.header.execution: record.started for record in records}
    return max(branches, key=lambda branch: started[branch.newest.header.execution])


def pid_of(view: LogView, record: ExecutionRecord) -> int:
    """The process of an execution; of a running one, the one that holds its branch."""
    holder = lease.holder(view.log.directory / "locks" / f"{record.header.branch}.lock") if record.running else None
    return record.header.pid if holder is None or not holder.pid else holder.pid
