"""Hints on the server's event bus: something changed in a log that somebody looks at.

A look costs what a listing costs: the ends of the journals that have grown. It takes no lock, and runs in a thread.
With nobody to ask about a log, nothing watches it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from jupyter_durable import clock
from jupyter_durable.errors import LogError
from jupyter_durable.server.listing import branch_status
from jupyter_durable.server.logs import Logs, LogView, branches_of
from jupyter_durable.server.shapes import Hint

logger = logging.getLogger("jupyter_durable")

SCHEMA_ID = "https://schema.jupyter.org/jupyter_durable/changed/v1"
"""``schema_id`` of the hints. It is a name; nothing is fetched from it."""

SCHEMA: dict[str, Any] = {
    "$id": SCHEMA_ID,
    "version": "1",
    "title": "A durable run has changed",
    "description": "A hint: ask the REST routes of jupyter_durable for what has changed.",
    "personal-data": True,
    "type": "object",
    "properties": {
        "log": {"title": "Log", "description": "As `about` and `runs` name it.", "type": "string"},
        "run": {"title": "Run", "description": "Id of the run.", "type": "string"},
        "branch": {"title": "Branch", "description": "Id of the branch.", "type": "string"},
        "seq": {"title": "Seq", "description": "Of the last event of the branch.", "type": "integer"},
        "status": {"title": "Status", "description": "How the branch stands.", "type": "string"},
    },
    "required": ["log", "run", "branch", "seq", "status"],
}

INTERVAL = 0.5
"""Seconds between two looks."""
WATCHED = 600.0
"""Seconds for which a log is watched after somebody asked about it."""
_LATELY = 5.0
_SHARE = 20
"""A look that takes long is followed by a pause of this many times its length."""


class Watcher:
    """Looks at logs and emits hints. It lives on the loop of the server."""

    def __init__(self, logs: Logs, emit: Callable[[Hint], None], *, interval: float = INTERVAL) -> None:
        self._logs = logs
        self._emit = emit
        self._interval = interval
        self._task: asyncio.Task[None] | None = None
        self._seen: dict[Path, dict[str, Hint]] = {}

    def wake(self) -> None:
        """Somebody asks: watch from now on. To be called on the loop."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._watch(), name="jupyter_durable hints")

    async def stop(self) -> None:
        """Stop watching."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        while True:
            began = clock.monotonic()
            expected = self._logs.expected_since(began - WATCHED)
            if expected:
                await asyncio.to_thread(self._logs.arrived)
            views = self._logs.asked_since(began - WATCHED)
            if not (views or expected):
                return
            for view in views:
                for hint in await asyncio.to_thread(partial(self._look_safely, view)):
                    self._emit(hint)
            for gone in self._seen.keys() - {view.log.directory for view in views}:
                del self._seen[gone]
            await asyncio.sleep(max(self._interval, _SHARE * (clock.monotonic() - began)))

    def _look_safely(self, view: LogView) -> list[Hint]:
        try:
            return self.look(view)
        except Exception:
            # One strange log is no reason to leave all others unwatched.
            logger.exception("jupyter_durable cannot watch %s", view.name)
            return []

    def look(self, view: LogView) -> list[Hint]:
        """What has changed in a log since the last look.

        The first look hints at what runs or has just ended: it may have changed since the client was answered.
        """
        try:
            listing = view.look()
        except (LogError, OSError):
            return []  # who asks by REST is told why
        found: dict[str, Hint] = {}
        fresh: set[str] = set()
        lately = clock.now() - _LATELY
        by_run: dict[str, list[Any]] = {}
        for record in listing.records():
            by_run.setdefault(record.header.run, []).append(record)
        for run, records in by_run.items():
            for branch in branches_of(records):
                last = max(r.last.seq for r in records if r.header.branch == branch.branch)
                found[branch.branch] = Hint(
                    log=view.name, run=run, branch=branch.branch, seq=last, status=branch_status(branch)
                )
            fresh |= {r.header.branch for r in records if r.running or (r.ended or 0.0) > lately}
        before = self._seen.get(view.log.directory)
        self._seen[view.log.directory] = found
        if before is None:
            return [hint for branch, hint in found.items() if branch in fresh]
        return [hint for branch, hint in found.items() if before.get(branch) != hint]


def data_of(hint: Hint) -> dict[str, Any]:
    """A hint as the event bus takes it."""
    return msgspec.structs.asdict(hint)
