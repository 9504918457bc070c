"""Routes of steps: pages of them, one in detail, two branches side by side."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_durable.errors import DurableError, UsageError
from jupyter_durable.server import comparing, details, pages
from jupyter_durable.server.handling import DurableHandler

_HIGHEST = 2**53


class StepsHandler(DurableHandler):
    """The steps of a branch that are new or changed."""

    @web.authenticated
    @authorized
    async def get(self, run: str, branch: str) -> None:
        """GET steps."""
        try:
            after = self.number("after", -1, -1, _HIGHEST)
            limit = self.number("limit", 1000, 0, pages.LIMIT)
        except DurableError as error:
            await self.refuse(error)
            return
        epoch = self.text("epoch")
        await self.on_log(lambda view: pages.page(view, run, branch, after=after, epoch=epoch, limit=limit))


class StepHandler(DurableHandler):
    """One step."""

    @web.authenticated
    @authorized
    async def get(self, run: str, branch: str, number: str) -> None:
        """GET steps/NUMBER."""
        await self.on_log(lambda view: details.detail(view, run, branch, int(number)))


class DiffHandler(DurableHandler):
    """Two branches side by side."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """GET diff."""
        try:
            after = self.number("after", 0, 0, _HIGHEST)
            limit = self.number("limit", 1000, 0, pages.LIMIT)
            only = self.text("only")
            if only not in {"", "changed"}:
                raise UsageError("`only` can be `changed`, or be left out.")
        except DurableError as error:
            await self.refuse(error)
            return
        run, a, b = self.text("run"), self.text("a"), self.text("b")
        await self.on_log(
            lambda view: comparing.diff(view, run, a, b, after=after, limit=limit, changed=only == "changed")
        )
