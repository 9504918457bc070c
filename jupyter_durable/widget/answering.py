"""Questions of a page, as messages of a widget, and their answers: those of the REST routes, by the same table.

A message may come on any thread (a kernel with subshells takes them while a cell is running), and several at once.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from jupyter_durable import client, clock
from jupyter_durable.errors import DurableError, UsageError
from jupyter_durable.running import log_directory

logger = logging.getLogger("jupyter_durable")

_SENT = 2**16
"""Characters of a body or a parameter at most; queries are the longest."""


class Ask(msgspec.Struct, frozen=True):
    """A question, as the page sends it."""

    question: str
    """The page's own number of it; the answer carries it. It is not called ``id``: ipykernel keeps each ``id`` that a
    widget sends, to bring what the page says to it back to the thread that sent it."""
    path: list[str]
    method: str = "GET"
    parameters: dict[str, str | int | float | None] = {}
    body: Any = None


class Desk:
    """What all panels of a process share: the logs that they look at."""

    def __init__(self) -> None:
        from jupyter_durable.server.logs import Logs

        self.logs = Logs()
        self.asked = clock.monotonic()
        """When a page last asked."""

    def answer(self, ask: Ask, notebook: str) -> tuple[int, Any]:
        """Answer a question about the log of a notebook.

        Args:
            ask: the question.
            notebook: path of the notebook; empty if the kernel is not told.

        Returns:
            The status, as HTTP has it, and a shape. It never raises: whoever waits is told.
        """
        from jupyter_durable.server.questions import Question
        from jupyter_durable.server.shapes import Problem
        from jupyter_durable.server.statuses import problem, status_of

        try:
            does, parts = _found(ask)
            asked = Question(
                parts=parts,
                parameters=_texts(ask.parameters),
                body=msgspec.json.encode(ask.body),
                find=lambda: place(notebook),
                logs=self.logs,
                person=client.who(),
            )
            return 200, does(asked)
        except DurableError as error:
            return status_of(error), problem(error)
        except Exception:
            logger.exception("jupyter_durable cannot answer %s %s", ask.method, "/".join(ask.path))
            message = "jupyter_durable failed here; the log of the kernel says how."
            return 500, Problem(message=message, reason="Internal Server Error")


def _found(ask: Ask) -> tuple[Callable[[Any], Any], dict[str, str]]:
    """What the table of routes does about a question, and the parts of its path."""
    from jupyter_durable.server.routes import find

    found = find(ask.method, ask.path)
    if found is None or found[0].does is None:
        raise UsageError(f"There is no {ask.method} {'/'.join(ask.path)} for a widget.")
    return found[0].does, found[1]


def _texts(parameters: Mapping[str, str | int | float | None]) -> dict[str, str]:
    """Parameters as an address would have them."""
    texts = {name: str(value) for name, value in parameters.items() if value is not None}
    for name, value in texts.items():
        if len(value) > _SENT:
            raise UsageError(f"`{name}` is too long.")
    return texts


def place(notebook: str) -> Any:
    """The log of a notebook, where this process writes it: a `jupyter_durable.server.place.Place`.

    Raises:
        LogUnusable: it is configured, and in memory.
    """
    from jupyter_durable.server.place import place_of

    folder = Path(notebook).absolute().parent if notebook else Path.cwd()
    found = place_of(str(folder), "")
    log = found.log if found.configured else Path(log_directory(notebook))
    file = Path(notebook).absolute() if notebook else None
    return msgspec.structs.replace(found, notebook=notebook, file=file, log=log)


def notebook_of(shell: Any) -> str:
    """Absolute path of the notebook of this kernel, or of the script; empty if nobody knows it."""
    from jupyter_durable.kernel.identity import Notebook

    if shell is not None:
        return Notebook(shell).path
    script = getattr(sys.modules.get("__main__"), "__file__", "") or ""
    return os.path.abspath(script) if script else ""  # noqa: PTH100 - as the run was recorded: links are not followed
