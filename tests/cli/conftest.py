"""Real logs, made by programs on the real engine, and the command line to look at them with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jupyter_durable.cli import main

ROOT = Path(__file__).resolve().parents[2]

HEAD = """\
import os, signal, sys
from jupyter_durable import durable, step
"""

COMPLETED = """
@step
def double(x): return 2 * x
with durable.run("doubling"):
    double(1), double(2)
"""

DYING = """
@step
def plan(): return ["a", "b"]
@step
def search(q): os.kill(os.getpid(), signal.SIGKILL) if "die" in sys.argv else None; return q + "!"
with durable.run("literature-review"):
    print([search(q) for q in plan()])
"""

ASKING = """
@step
def plan(): return ["a", "b"]
with durable.run("literature-review", grace="0s"):
    plan()
    print(durable.approve("Go on?", timeout="3d"), durable.wait_for("payment"))
"""
"""Waits for an answer, and then for a signal."""

LIVE = """
@step
def quick(): return 1
@step
def wait():
    print("begun", flush=True)
    return sys.stdin.readline()
with durable.run(sys.argv[1]):
    quick(); wait()
"""
"""Is in the middle of a step when it prints, and stays there until it is told something."""


@dataclass(frozen=True)
class Answer:
    """What one command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)

    @property
    def sentence(self) -> str:
        """The one line on stderr, of a command that failed and said nothing else."""
        assert self.code == 1
        assert self.out == ""
        assert "Traceback" not in self.err
        (line,) = self.err.splitlines()
        return line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's, which is also where commands are given, so that the default log is the one in it."""
    path = tmp_path / "work"
    path.mkdir()
    monkeypatch.chdir(path)
    # Only this checkout, also in processes that stand in another folder.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return path


@pytest.fixture
def script(folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program in the folder, as a user would, to its end or death."""

    def run(source: str, *words: str) -> subprocess.CompletedProcess[str]:
        path = folder / "agent.py"
        path.write_text(HEAD + source, encoding="utf-8")
        return subprocess.run(
            [sys.executable, str(path), *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )

    return run


@pytest.fixture
def live(folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts programs that stay in the middle of a step, as a kernel does; they are killed at the end of the test."""
    with ExitStack() as stack:

        def start(source: str, *words: str) -> subprocess.Popen[str]:
            path = folder / f"live-{len(list(folder.glob('live-*')))}.py"
            path.write_text(HEAD + source, encoding="utf-8")
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, str(path), *words],
                    cwd=folder,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            return process

        yield start


@pytest.fixture
def cli(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Gives a command line in this process."""

    def run(*words: str) -> Answer:
        capsys.readouterr()
        code = main(words)
        out, err = capsys.readouterr()
        return Answer(code, out, err)

    return run


@pytest.fixture
def shell(folder: Path) -> Callable[..., Answer]:
    """Gives a command line in a process of its own."""

    def run(*words: str, **environment: str) -> Answer:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "jupyter_durable.cli", *words],
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def journal(folder: Path) -> Callable[[], Path]:
    """The only journal of the log."""

    def find() -> Path:
        (path,) = (folder / ".durable" / "journal").glob("*.jsonl")
        return path

    return find
