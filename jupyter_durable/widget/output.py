"""The widget: what is sent to the page, and how its messages are answered."""

from __future__ import annotations

import functools
import json
from contextvars import copy_context
from pathlib import Path
from typing import Any

import anywidget
import msgspec
import traitlets

from jupyter_durable import client, clock
from jupyter_durable.errors import UsageError
from jupyter_durable.widget import fallback
from jupyter_durable.widget.answering import Ask, Desk, notebook_of, place
from jupyter_durable.widget.watching import Listener, Watch

BUILT = Path(__file__).parent / "static"
_FILES = {"esm": "widget.js", "css": "widget.css"}
_LIMIT = 5000
"""Steps that are told unasked at once."""


@functools.cache
def desk() -> Desk:
    """What all panels of this process share."""
    return Desk()


@functools.cache
def watch() -> Watch:
    """The thread that tells them of changes."""
    return Watch(desk())


_NOT_BUILT = (
    "The page of durable.panel() is not built: this installation was made with JUPYTER_DURABLE_PANEL=skip, or lies in "
    "a checkout. Build it with `python3 dev.py panel`, or install a released wheel."
)


@functools.cache
def _built() -> dict[str, str]:
    """The page: module and styles. Where it is not built, one that says so."""
    try:
        return {f"_{kind}": (BUILT / name).read_text(encoding="utf-8") for kind, name in _FILES.items()}
    except FileNotFoundError:
        said = f"export default {{ render({{ el }}) {{ el.textContent = {json.dumps(_NOT_BUILT)}; }} }};"
        return {"_esm": said, "_css": ""}


class Panel(anywidget.AnyWidget):
    """The steps of the durable cells of this notebook, in an output cell. ``durable.panel()`` makes it."""

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    run = traitlets.Unicode(help="Name or id of the run that is shown; empty: the one that ran last.").tag(sync=True)
    height = traitlets.Int(480, help="Pixels.").tag(sync=True)
    notebook = traitlets.Unicode(help="Path of the notebook; empty if the kernel is not told.").tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(**_built(), **traits)
        self._told: dict[tuple[str, str], tuple[int, str]] = {}
        """Run and branch -> up to where the page knows the steps."""
        self._context = copy_context()
        """Of the last question. What is sent in it belongs to the page's channel to the kernel, and to no cell."""
        self._listener = Listener(self._hint)
        self.on_msg(self._asked)
        watch().add(self._listener)

    def close(self) -> None:
        """End the panel, in the page too."""
        listener = getattr(self, "_listener", None)
        if listener is not None:
            watch().remove(listener)
        super().close()

    def __repr__(self) -> str:
        """The runs as text: what a terminal shows, and what stays in a saved notebook."""
        return fallback.both(desk(), self.notebook)[0]

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        found = super()._repr_mimebundle_(**options)
        if found is None:
            return None
        data, metadata = found
        text, html = fallback.both(desk(), self.notebook)
        return {**data, "text/plain": text, "text/html": html}, metadata

    # Messages --------------------------------------------------------------------------------------------------------

    def _asked(self, _panel: Any, content: Any, _buffers: Any) -> None:
        """Answer a question. It runs on the thread that the kernel takes messages on."""
        if not isinstance(content, dict) or content.get("durable") != "ask":
            return
        try:
            ask = msgspec.convert(content, Ask)
        except msgspec.ValidationError as error:
            from jupyter_durable.server.shapes import Problem

            status: int = 400
            answer: Any = Problem(message=f"The message is not a question: {error}.", reason="Bad Request")
        else:
            desk().asked = clock.monotonic()
            self._context = copy_context()
            status, answer = desk().answer(ask, self.notebook)
            self._note(answer)
        self.send({"durable": "answer", "question": content.get("question"), "status": status, "answer": _text(answer)})
        watch().wake()  # now that the log is among those that were asked about

    def _note(self, answer: Any) -> None:
        from jupyter_durable.server.shapes import Page

        if isinstance(answer, Page):
            self._told[answer.run, answer.branch] = (answer.next, answer.epoch)

    def _hint(self, hint: Any) -> None:
        """Say that something changed, and answer what the page is going to ask.

        A kernel that takes messages on its main thread alone cannot be asked while a cell is running. It is then that
        people look, so the answers go along unasked. It runs on the thread of the watch.
        """
        after, epoch = self._told.get((hint.run, hint.branch), (-1, ""))
        position: dict[str, str | int | float | None] = {"after": after, "epoch": epoch, "limit": _LIMIT}
        asks = (
            Ask(question="", path=["runs"]),
            Ask(question="", path=["runs", hint.run]),
            Ask(question="", path=["runs", hint.run, "branches", hint.branch, "steps"], parameters=position),
        )
        fresh = []
        for ask in asks:
            status, answer = desk().answer(ask, self.notebook)
            if status == 200:  # a refusal is told to who asks
                self._note(answer)
                fresh.append({"path": ask.path, "parameters": ask.parameters, "answer": _text(answer)})
        message = {"durable": "hint", "hint": msgspec.structs.asdict(hint), "fresh": fresh}
        # ipykernel brings a page's next question to the thread whose parent message was sent last.
        self._context.copy().run(self.send, message)


def _text(answer: Any) -> str:
    """A shape as text: JSON inside of JSON, so that no front end and no packer changes a number on the way."""
    return msgspec.json.encode(answer).decode()


def make(run: str, height: int) -> Panel:
    """See `jupyter_durable.api.Durable.panel`.

    Raises:
        UsageError: there is no such run.
    """
    notebook = notebook_of(_shell())
    return Panel(run=_run_id(run, notebook) if run else "", height=height, notebook=notebook)


def _run_id(run: str, notebook: str) -> str:
    from jupyter_durable.server import listing

    where = place(notebook)
    view = desk().logs.find(where)
    if view is None:
        raise UsageError(f"There is no run `{run}` yet: there is no log in {where.log}.")
    # Another notebook of the same folder may have a run of the same name.
    here = [item.run for item in listing.runs(view, where).runs if item.here and item.name == run]
    return here[0] if here else client.find_run(view.log, run)


def _shell() -> Any:
    """The IPython that this runs in; ``None`` in a script."""
    from IPython import get_ipython

    return get_ipython()
