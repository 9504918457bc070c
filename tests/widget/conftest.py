"""A log beside a notebook, and panels whose messages the test reads."""

from __future__ import annotations

import json
import queue
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_durable import durable, step
from jupyter_durable.widget import output as module


class Sent:
    """A panel, and what it sent to its page."""

    def __init__(self, panel: module.Panel) -> None:
        self.panel = panel
        self.messages: queue.Queue[dict[str, Any]] = queue.Queue()
        panel.send = lambda content, buffers=None: self.messages.put(content)

    def ask(self, *path: str, body: Any = None, number: int = 1, **parameters: Any) -> tuple[int, Any]:
        """Send a question as a page does, and take the answer: its status and shape."""
        content = {"durable": "ask", "question": str(number), "path": list(path), "parameters": parameters}
        if body is not None:
            content |= {"method": "POST", "body": body}
        self.panel._handle_custom_msg(content, [])
        while (answer := self.next())["durable"] != "answer":
            pass
        assert answer["question"] == str(number)
        return answer["status"], json.loads(answer["answer"])

    def next(self) -> dict[str, Any]:
        """The next message to the page."""
        return self.messages.get(timeout=30)

    def hint(self, status: str) -> dict[str, Any]:
        """The next hint that says so."""
        while True:
            message = self.next()
            if message["durable"] == "hint" and message["hint"]["status"] == status:
                return message


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook that this process takes itself for."""
    path = tmp_path / "notebook.py"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(path), raising=False)
    return path


@pytest.fixture
def run(notebook: Path) -> str:
    """A run of that notebook with two steps; its id."""
    with durable.run("doubling") as context:
        double(1)
        double([7])
    assert context.execution is not None
    return context.execution.header.run


@step
def double(value: Any) -> Any:
    """A step."""
    return value * 2


@pytest.fixture
def shown(notebook: Path) -> Iterator[Callable[..., Sent]]:
    """Makes panels; they are closed at the end of the test, and the process forgets what they shared."""
    made: list[Sent] = []

    def show(**options: Any) -> Sent:
        made.append(Sent(durable.panel(**options)))
        return made[-1]

    module.desk.cache_clear()
    module.watch.cache_clear()
    yield show
    for each in made:
        each.panel.close()
    thread = module.watch().thread
    if thread is not None:
        thread.join(10)
        assert not thread.is_alive()
