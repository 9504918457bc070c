"""What every handler does: find the log, work in a thread, answer with a shape or a problem.

Who asks is the server's affair: every method of every route is behind its authentication and its authorisation (the
resource is `RESOURCE`), and a POST behind its XSRF check.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from jupyter_server.base.handlers import APIHandler
from tornado import web

from jupyter_durable import client
from jupyter_durable.errors import DurableError
from jupyter_durable.server.logs import Logs
from jupyter_durable.server.place import Place, place_of
from jupyter_durable.server.questions import Question
from jupyter_durable.server.renaming import Renaming
from jupyter_durable.server.routes import Route
from jupyter_durable.server.shapes import Problem, Shape
from jupyter_durable.server.statuses import problem, status_of
from jupyter_durable.server.watching import Watcher

RESOURCE = "jupyter_durable"
"""What an authoriser of the server is asked about, with ``read`` or ``write``."""

_NAMELESS = re.compile(r"[0-9a-f]{32}")
_encode = msgspec.json.Encoder().encode
Result = TypeVar("Result")


class Desk:
    """What the routes of one server share."""

    def __init__(self, watcher: Watcher, logs: Logs, renaming: Renaming) -> None:
        self.logs = logs
        self.watcher = watcher
        self.renaming = renaming
        # A query may take long; it must not keep others from listing runs.
        self._quick = ThreadPoolExecutor(4, "jupyter_durable")
        self._slow = ThreadPoolExecutor(2, "jupyter_durable_sql")

    async def work(self, does: Callable[[], Result], *, slow: bool = False) -> Result:
        """Do something that blocks, in a thread; what was renamed before it is asked for is known by then."""
        await self.renaming.done()
        return await asyncio.get_running_loop().run_in_executor(self._slow if slow else self._quick, does)

    async def close(self) -> None:
        """Stop what runs."""
        await self.watcher.stop()
        await self.renaming.done()
        for pool in (self._quick, self._slow):
            pool.shutdown(wait=False, cancel_futures=True)


class DurableHandler(APIHandler):
    """Base of all handlers."""

    auth_resource = RESOURCE
    # A panel that polls is no reason to keep an idle server from being culled.
    _track_activity = False

    def initialize(self, desk: Desk, route: Route) -> None:
        """Take what the routes share, and the one that this is."""
        self.desk = desk
        self.route = route

    @property
    def notebook(self) -> Place:
        """The log that is asked about.

        Raises:
            NotHere: the path leads out of the root.
        """
        manager = self.contents_manager
        root = getattr(manager, "root_dir", "") or self.settings.get("server_root_dir", "")
        hidden = bool(getattr(manager, "allow_hidden", False))
        return place_of(str(root), self.text("notebook"), hidden=hidden)

    @property
    def person(self) -> str:
        """Who asks, as decisions are signed. A server with a token alone makes up a name; then it is who runs it."""
        name = str(getattr(self.current_user, "username", "") or "")
        return name if name and not _NAMELESS.fullmatch(name) else client.who()

    def asked(self, route: Route, parts: Sequence[str]) -> Question:
        """The question of this request."""
        given = self.request.query_arguments
        return Question(
            parts=dict(zip(route.names, parts, strict=True)),
            parameters={one.name: self.text(one.name) for one in route.parameters if one.name in given},
            body=self.request.body,
            find=lambda: self.notebook,
            logs=self.desk.logs,
            person=self.person,
        )

    def text(self, name: str, default: str = "") -> str:
        """A parameter of the address."""
        return str(self.get_query_argument(name, default, strip=False))

    async def reply(self, does: Callable[[], Shape], *, slow: bool = False) -> None:
        """Answer with what is found in a thread."""
        try:
            body = await self.desk.work(lambda: _encode(does()), slow=slow)
        except DurableError as error:
            await self.refuse(error)
        else:
            self.desk.watcher.wake()  # now that the log is among those that were asked about
            self.set_header("Cache-Control", "no-store")
            await self.finish(body)

    async def refuse(self, error: DurableError) -> None:
        """Answer with a problem."""
        self.set_status(status_of(error))
        await self.finish(_encode(problem(error)))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """What the server itself refuses, and what nobody expected, is a problem too."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        reason = HTTPStatus(status_code).phrase
        message = ""
        if isinstance(error, web.HTTPError):
            message = error.log_message or ""
            reason = error.reason or reason
        elif error is not None:
            message = "jupyter_durable failed here; the log of the server says how."
        self.set_header("Content-Type", "application/json")
        self.finish(_encode(Problem(message=message or f"{reason}.", reason=reason)))
