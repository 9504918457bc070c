"""A notebook got another path through this server: its history goes along, and its kernel is told.

The log remembers what was renamed (`log.renames`), from what the contents manager says on the server's event bus. When
a notebook is moved to another folder, its log stays where it is and is named in the new folder, so that a running
kernel goes on undisturbed and nothing is paid for twice.

A kernel is told its notebook in an environment variable, once. The server knows better when a front end updates the
session: after a rename, and after *Save As*. That is written into a file in the runtime directory, which a durable cell
reads before it runs; a kernel that is restarted is told the same by the server itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_durable import clock
from jupyter_durable.errors import DurableError
from jupyter_durable.log import renames
from jupyter_durable.log.local import LocalLog
from jupyter_durable.notebooks import Known, Renamed, owners
from jupyter_durable.server.logs import Logs
from jupyter_durable.server.place import place_of

CONTENTS = "https://events.jupyter.org/jupyter_server/contents_service/v1"
NOTES = "jupyter_durable"
"""Folder beside the connection files of kernels."""

logger = logging.getLogger("jupyter_durable")


class Renaming:
    """What the server does when a notebook gets another path. It lives on the loop of the server."""

    def __init__(self, logs: Logs, root: Callable[[], str], *, hidden: Callable[[], bool] = lambda: False) -> None:
        self._logs = logs
        self._root = root
        self._hidden = hidden
        # A kernel is told of a path only when the log that it will look into knows it too.
        self._order = asyncio.Lock()

    async def on_contents(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:  # noqa: ARG002 - as asked
        """Listener of the event bus."""
        action, path = data.get("action"), data.get("path", "")
        if action == "rename":
            await self._safely(lambda: self.renamed(data.get("source_path", ""), path))
        elif action == "delete":
            await self._safely(lambda: self.deleted(path))

    async def _safely(self, does: Callable[[], None]) -> None:
        async with self._order:
            try:
                await asyncio.to_thread(does)
            except (DurableError, OSError) as error:
                logger.warning("jupyter_durable could not follow a rename, so a history may seem lost: %s", error)

    async def done(self) -> None:
        """Wait until all that was told before has been taken in."""
        async with self._order:
            pass

    def _path(self, path: str) -> Path:
        return Path(self._root(), *path.removeprefix("RTC:").strip("/").split("/"))

    def renamed(self, before: str, after: str) -> None:
        """A file or a folder has another path.

        Raises:
            DurableError: the log cannot be used.
        """
        old, new = self._path(before), self._path(after)
        moment = clock.now()
        if new.is_dir():
            if (new / ".durable" / "format.json").is_file():
                renames.add(new / ".durable", Renamed(at=moment, before=str(old), after=str(new)))  # it went along
            return
        if new.suffix != ".ipynb":
            return
        place = place_of(self._root(), before, hidden=self._hidden())
        view = self._logs.find(place)
        if view is None:
            return
        log = view.log.directory
        listing = view.look()
        known = [Known(record.started, record.header) for record in listing.records()]
        where = owners(sorted(known, key=lambda each: each.started), renames.read(log))
        # As kernels write it, which may lead through a link.
        written = next((each for each in where if os.path.realpath(each) == os.path.realpath(old)), None)
        if written is None:
            return  # it has no history here
        renames.add(log, Renamed(at=moment, before=written, after=str(new)))
        if place.configured:
            return
        if old.parent != new.parent:
            renames.set_elsewhere(old, None)
        if new.parent / ".durable" == log:
            renames.set_elsewhere(new, None)
        elif old.parent != new.parent or renames.elsewhere(old) is not None:
            LocalLog(new.parent / ".durable")
            renames.set_elsewhere(old, None)
            renames.set_elsewhere(new, log)

    def deleted(self, path: str) -> None:
        """A file is gone: one that gets its name later has a log of its own.

        Raises:
            DurableError: the folder cannot be written.
        """
        notebook = self._path(path)
        if notebook.suffix == ".ipynb":
            renames.set_elsewhere(notebook, None)

    def follow(self, sessions: Any) -> None:
        """Let kernels be told when a session gets another path.

        Args:
            sessions: the server's session manager.
        """
        update = sessions.update_session

        async def update_session(session_id: str, **changes: Any) -> None:
            before = await sessions.get_session(session_id=session_id) if "path" in changes else {}
            await update(session_id, **changes)
            old, new = before.get("path"), changes.get("path")
            if before.get("type") == "notebook" and old and new and old != new:
                async with self._order:
                    try:
                        kernel = sessions.kernel_manager.get_kernel(before["kernel"]["id"])
                        tell(Path(kernel.connection_file), self._path(old), self._path(new))
                    except Exception:
                        # The rename itself has worked; an old name in a kernel is no reason to refuse it.
                        logger.exception("jupyter_durable could not tell a kernel the new path of its notebook")

        sessions.update_session = update_session


def tell(connection: Path, before: Path, after: Path) -> None:
    """Tell a kernel that its notebook has another path.

    Args:
        connection: its connection file.
        before: absolute path.
        after: absolute path.
    """
    folder = connection.parent / NOTES
    folder.mkdir(mode=0o700, exist_ok=True)
    for left in folder.glob("*.jsonl"):
        if not connection.with_name(f"{left.stem}.json").exists():
            left.unlink(missing_ok=True)  # of a kernel that has ended
    fd = os.open(folder / f"{connection.stem}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, json.dumps({"before": str(before), "after": str(after)}).encode() + b"\n")
    finally:
        os.close(fd)
