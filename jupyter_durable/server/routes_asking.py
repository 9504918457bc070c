"""Routes about a whole log: the bill, SQL, all events of a run."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web
from tornado.iostream import StreamClosedError

from jupyter_durable.errors import DurableError
from jupyter_durable.server import asking
from jupyter_durable.server.handling import DurableHandler
from jupyter_durable.server.logs import records_of
from jupyter_durable.server.shapes import SqlQuestion


class SpendHandler(DurableHandler):
    """What model calls have cost."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """GET spend."""
        by, run = self.text("by", "run"), self.text("run")
        await self.on_log(lambda view: asking.spend(view, by, run), slow=True)


class SqlHandler(DurableHandler):
    """One query, which can only read."""

    _track_activity = True

    @web.authenticated
    @authorized(action="read")  # type: ignore[untyped-decorator] # typed for its bare form only
    async def post(self) -> None:
        """POST sql."""
        try:
            question = self.question(SqlQuestion)
        except DurableError as error:
            await self.refuse(error)
            return
        limit = max(0, min(asking.LIMIT, question.limit))
        await self.on_log(lambda view: asking.sql(view, question.query, limit), slow=True)


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
