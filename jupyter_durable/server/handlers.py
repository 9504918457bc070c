"""The routes as Jupyter Server serves them. What each does stands in the table of `routes`."""

from __future__ import annotations

import msgspec
from jupyter_server.auth.decorator import authorized
from tornado import web
from tornado.iostream import StreamClosedError

from jupyter_durable.errors import DurableError
from jupyter_durable.server import asking
from jupyter_durable.server.handling import DurableHandler
from jupyter_durable.server.logs import records_of
from jupyter_durable.server.routes import Route


class AnswerHandler(DurableHandler):
    """A route that answers with a shape."""

    async def answer(self, parts: tuple[str, ...]) -> None:
        """Do what the table says."""
        does, asked = self.route.does, self.asked(self.route, parts)
        assert does is not None
        await self.reply(lambda: does(asked), slow=self.route.slow)


class ReadHandler(AnswerHandler):
    """A route that looks."""

    @web.authenticated
    @authorized
    async def get(self, *parts: str) -> None:
        """GET."""
        await self.answer(parts)


class SayHandler(AnswerHandler):
    """A route that writes down what a person says. Nothing is executed by it."""

    _track_activity = True

    @web.authenticated
    @authorized
    async def post(self, *parts: str) -> None:
        """POST."""
        await self.answer(parts)


class SqlHandler(AnswerHandler):
    """One query, which can only read, whatever its method."""

    _track_activity = True

    @web.authenticated
    @authorized(action="read")  # type: ignore[untyped-decorator] # typed for its bare form only
    async def post(self) -> None:
        """POST sql."""
        await self.answer(())


class ExportHandler(DurableHandler):
    """Every event of a run, one JSON object a line."""

    _track_activity = True

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """GET export."""
        run = self.text("run")
        try:
            view = await self.desk.work(lambda: self.desk.logs.get(self.notebook))
            await self.desk.work(lambda: records_of(view.look(), run))
        except DurableError as error:
            await self.refuse(error)
            return
        lines = asking.export(view, run)
        self.set_header("Content-Disposition", 'attachment; filename="durable-events.ndjson"')
        self.set_header("Cache-Control", "no-store")
        try:
            while (chunk := await self.desk.work(lambda: next(lines, None))) is not None:
                # `APIHandler` would say that it is JSON.
                self.set_header("Content-Type", "application/x-ndjson")
                self.write(chunk)
                await self.flush()
            await self.finish(set_content_type="application/x-ndjson")
        except StreamClosedError:
            return  # the client has gone


class OpenApiHandler(DurableHandler):
    """The description of all routes."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """GET openapi.json."""
        from jupyter_durable.server.openapi import document

        await self.finish(msgspec.json.encode(document(self.base_url)))


_OWN: dict[str, type[DurableHandler]] = {"sql": SqlHandler, "export": ExportHandler, "openapi.json": OpenApiHandler}
"""Those that are unlike the others."""


def handler_of(route: Route) -> type[DurableHandler]:
    """What serves a route."""
    return _OWN.get(route.path) or (ReadHandler if route.method == "GET" else SayHandler)
