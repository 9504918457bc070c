"""Routes that write down what a person says. Nothing is executed by them."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_durable.errors import DurableError
from jupyter_durable.server import deciding
from jupyter_durable.server.handling import DurableHandler
from jupyter_durable.server.shapes import DecideQuestion, SettleQuestion


class DecideHandler(DurableHandler):
    """What becomes of finished steps after an edit."""

    _track_activity = True

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """POST decide."""
        try:
            question = self.question(DecideQuestion)
        except DurableError as error:
            await self.refuse(error)
            return
        person = self.person
        await self.on_log(lambda view: deciding.decide(view, question, person))


class SettleHandler(DurableHandler):
    """What happened to a step that is in doubt, or whose value could not be stored."""

    _track_activity = True

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """POST settle."""
        try:
            question = self.question(SettleQuestion)
        except DurableError as error:
            await self.refuse(error)
            return
        person = self.person
        await self.on_log(lambda view: deciding.settle(view, question, person))
