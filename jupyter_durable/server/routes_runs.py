"""Routes of listings: who answers, runs, one run."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_durable.server import listing
from jupyter_durable.server.handling import DurableHandler
from jupyter_durable.server.place import check
from jupyter_durable.server.shapes import About, Runs
from jupyter_durable.server.watching import SCHEMA_ID


class AboutHandler(DurableHandler):
    """Who answers, and which log a notebook has."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """GET about."""
        person = self.person

        def about() -> About:
            place = self.notebook
            try:
                ours = version("jupyter_durable")
            except PackageNotFoundError:
                ours = ""
            return About(
                version=ours,
                notebook=place.notebook,
                log=str(place.log.absolute()),
                exists=check(place),
                configured=place.configured,
                user=person,
                hints=SCHEMA_ID,
            )

        await self.reply(about)


class RunsHandler(DurableHandler):
    """The runs of a log."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """GET runs."""

        def runs() -> Runs:
            place = self.notebook
            return listing.runs(self.desk.logs.find(place), place)

        await self.reply(runs)


class RunHandler(DurableHandler):
    """One run."""

    @web.authenticated
    @authorized
    async def get(self, run: str) -> None:
        """GET runs/RUN."""
        await self.on_log(lambda view: listing.run(view, self.notebook, run))
