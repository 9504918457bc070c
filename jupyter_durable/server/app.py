"""The extension as Jupyter Server loads it."""

from __future__ import annotations

from typing import Any

from jupyter_events import EventLogger
from jupyter_server.extension.application import ExtensionApp

from jupyter_durable.server.handlers import handler_of
from jupyter_durable.server.handling import Desk
from jupyter_durable.server.logs import Logs
from jupyter_durable.server.renaming import CONTENTS, Renaming
from jupyter_durable.server.routes import ROUTES
from jupyter_durable.server.shapes import Hint
from jupyter_durable.server.watching import SCHEMA, SCHEMA_ID, Watcher, data_of


class DurableApp(ExtensionApp):
    """REST and hints for the panel. Nothing watches or reads before somebody asks."""

    name = "jupyter_durable"
    description = "Durable runs: look at them, compare, query, decide."
    desk: Desk

    def initialize_handlers(self) -> None:
        """Add the routes; `ExtensionApp` puts the base URL in front."""
        logs = Logs()
        self._bus().register_event_schema(SCHEMA)
        self.desk = Desk(Watcher(logs, self._emit), logs, self._follow_renames(logs))
        self.handlers.extend(
            (route.pattern, handler_of(route), {"desk": self.desk, "route": route}) for route in ROUTES
        )

    def _follow_renames(self, logs: Logs) -> Renaming:
        assert self.serverapp is not None
        server, contents = self.serverapp, self.serverapp.contents_manager
        renaming = Renaming(
            logs,
            lambda: str(getattr(contents, "root_dir", "") or server.root_dir),
            hidden=lambda: bool(getattr(contents, "allow_hidden", False)),
        )
        self._bus().add_listener(schema_id=CONTENTS, listener=renaming.on_contents)
        renaming.follow(server.session_manager)
        return renaming

    def _bus(self) -> EventLogger:
        assert self.serverapp is not None
        assert self.serverapp.event_logger is not None
        return self.serverapp.event_logger

    def _emit(self, hint: Hint) -> None:
        self._bus().emit(schema_id=SCHEMA_ID, data=data_of(hint))

    async def stop_extension(self) -> None:
        """Cancel the watcher and let the threads go."""
        await self.desk.close()


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """What Jupyter Server asks `jupyter_durable` for."""
    return [{"module": "jupyter_durable.server.app", "app": DurableApp}]
