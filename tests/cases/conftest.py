"""A notebook in a real kernel, to be killed where a case says KILL and run again in a new one."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_durable import client
from jupyter_durable.log import open_log
from tests.conftest import Effects
from tests.kernel.conftest import SETUP, Kernel, Ran, kernel, plain, start_kernel

__all__ = ["ROOT", "Case", "Kernel", "Ran", "case", "kernel", "plain", "refused", "start_kernel"]

ROOT = Path(__file__).resolve().parents[2]

STAND = """
import os
def stand(place):
    if not os.path.exists("go"):
        print("at", place, flush=True)
        while not os.path.exists("go"):
            time.sleep(0.02)
async def stand_async(place):
    if not os.path.exists("go"):
        print("at", place, flush=True)
        while not os.path.exists("go"):
            await asyncio.sleep(0.02)
@step
def hold():
    stand("hold")
"""
"""``stand`` is a place to be killed at without luck: it waits for a file. ``hold()`` is a step that does only that; it
is in the place of the cases' ``durable.sleep``, which is not there yet."""


class Case:
    """One notebook of a case: its setup cells, its durable cell, and the kernel that it has at the moment."""

    def __init__(self, start: Callable[..., Kernel], effects: Effects, folder: Path) -> None:
        self._start = start
        self.effects = effects
        self.folder = folder
        self.setup = ""
        self.kernel: Kernel
        self.pids: set[int] = set()
        """Kernels that live, or lived: at the end of the test none may be left."""

    def open(self, setup: str = "", **environment: str) -> Kernel:
        """A kernel that has run the setup cells."""
        self.setup = setup
        self.kernel = self._start(folder=self.folder, setup=SETUP + self.effects.code + STAND, **environment)
        self.pids.add(self.kernel.pid)
        self._set_up()
        return self.kernel

    def second(self) -> Kernel:
        """Another kernel in the same folder, with the same setup cells, while the first one lives."""
        kernel = self._start(folder=self.folder, setup=SETUP + self.effects.code + STAND)
        self.pids.add(kernel.pid)
        if self.setup:
            kernel.ok(self.setup)
        return kernel

    def _set_up(self) -> None:
        if self.setup:
            self.kernel.ok(self.setup)

    def kill_at(self, place: str, cell: str, cell_id: str = "", **options: Any) -> None:
        """Run a cell until it stands at a place, then KILL."""
        self.kernel.run_until(f"at {place}", cell, cell_id, **options)
        self.kill()

    def kill(self) -> None:
        """KILL: the process gets no chance to do anything."""
        self.kernel.kill()
        os.waitid(os.P_PID, self.kernel.pid, os.WEXITED | os.WNOWAIT)  # jupyter_client is to collect it

    def again(self, setup: str | None = None, **environment: str) -> None:
        """A new kernel that has run the setup cells; nothing stands any more."""
        (self.folder / "go").touch()
        self.new_kernel(setup, **environment)

    def new_kernel(self, setup: str | None = None, **environment: str) -> None:
        """A new kernel that has run the setup cells, where ``stand`` stands as before."""
        self.setup = self.setup if setup is None else setup
        self.pids.discard(self.kernel.pid)
        self.kernel.restart(**environment)
        self.pids.add(self.kernel.pid)
        self.kernel.ok(SETUP + self.effects.code + STAND)
        self._set_up()

    def rerun(self, cell: str, cell_id: str = "", setup: str | None = None, **environment: str) -> Ran:
        """RERUN: new kernel, setup cells, the durable cell."""
        self.again(setup, **environment)
        return self.kernel.run(cell, cell_id)

    def killed_and_rerun(self, setup: str, place: str, cell: str) -> Ran:
        """The whole course of most cases."""
        self.open(setup)
        self.kill_at(place, cell)
        return self.rerun(cell)

    # What the log and the command line say, each without a kernel --------------------------------------------------

    @property
    def durable(self) -> Path:
        """The log directory."""
        return self.folder / ".durable"

    def journals(self) -> dict[str, bytes]:
        """All journals, byte by byte."""
        return {path.name: path.read_bytes() for path in sorted((self.durable / "journal").glob("*.jsonl"))}

    def statuses(self, run: str, branch: str = "") -> list[tuple[str, str]]:
        """Name and status of each step of a run; nothing is unpickled for it."""
        log = open_log(str(self.durable))
        return [(each.name, each.status) for each in client.steps(log, client.find_run(log, run), branch)]

    def copy(self, name: str) -> Path:
        """A copy of the folder as a crash has left it."""
        to = self.folder.parent / f"{self.folder.name}-{name}"
        shutil.copytree(self.folder, to, ignore=shutil.ignore_patterns("key-of-the-test", "effects.txt"))
        return to

    def shell(self, *words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """``jupyter durable ...`` in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "jupyter_durable.cli", *words],
            cwd=folder or self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def json(self, *words: str, folder: Path | None = None) -> Any:
        """``jupyter durable ... --json``."""
        done = self.shell(*words, "--json", folder=folder)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def stored(self) -> bytes:
        """Every byte that the log holds: files as they are, blobs unpacked, base64 undone, values from the database."""
        log = open_log(str(self.durable))
        found = []
        for path in self.durable.rglob("*"):
            if path.is_file():
                found.append(path.read_bytes())
                if path.parent.name == "blobs":
                    found.append(log.read_blob(path.name))
        rows = self.json("sql", "SELECT * FROM events")["rows"] + self.json("sql", "SELECT * FROM steps")["rows"]
        found += [str(field).encode() for row in rows for field in row]
        found += [decoded for content in list(found) for decoded in _base64_inside(content)]
        return b"\n".join(found)


def _base64_inside(content: bytes) -> Iterator[bytes]:
    import re

    for text in re.findall(rb"[A-Za-z0-9+/]{24,}={0,2}", content):
        yield base64.b64decode(text[: len(text) - len(text) % 4])


def refused(ran: Ran, kind: str, *words: str, hidden: tuple[str, ...] = ()) -> str:
    """The cell was refused by one error of ours that says these words, in one sentence, and betrays nothing.

    Args:
        ran: what the kernel said.
        kind: name of the error.
        words: what the message must name: run, step, the way out.
        hidden: argument values and secrets, which must not be in it, nor in the summary.

    Returns:
        The message.
    """
    assert (ran.status, ran.reply.get("ename")) == ("error", kind), (ran.errors, ran.text)
    message = str(ran.reply["evalue"])
    assert [word for word in words if word not in message] == [], message
    shown = "\n".join(
        [message, *ran.displays, *(line for text in ran.errors for line in text.splitlines() if kind in line)]
    )
    assert [word for word in hidden if word in shown] == [], shown
    return message


@pytest.fixture
def case(start_kernel: Callable[..., Kernel], effects: Effects, tmp_path: Path) -> Iterator[Case]:
    """The notebook of a case, in a folder of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    made = Case(start_kernel, effects, folder)
    yield made
    for pid in made.pids:
        # Before jupyter_client asks them to end: a kernel that is stopped or holds the GIL would let it wait.
        if Path(f"/proc/{pid}/cwd").exists() and Path(f"/proc/{pid}/cwd").resolve().is_relative_to(tmp_path):
            os.kill(pid, signal.SIGKILL)
