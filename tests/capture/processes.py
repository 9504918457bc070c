"""Fresh processes that run scenarios against a provider, to their end or to their death."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.capture.provider import Provider

PROGRAM = Path(__file__).with_name("run_scenario.py")
MCP_SERVER = Path(__file__).with_name("mcp_server.py")
LONGEST = 100
"""Seconds after which a process hangs."""

Results = dict[str, dict[str, Any]]


class Bench:
    """A provider, and a directory for the log of the processes that use it."""

    def __init__(self, provider: Provider, directory: Path, environment: dict[str, str] | None = None) -> None:
        self.provider = provider
        self.desk = provider.desk
        self.directory = directory
        self.log = directory / "log"
        self.effects = directory / "effects.txt"
        self._errors = directory / "stderr.txt"
        self._environment = {
            **os.environ,
            "JUPYTER_DURABLE_KEY_FILE": str(directory / "key" / "durable.key"),
            "CAPTURE_EFFECTS": str(self.effects),
            **(environment or {}),
        }
        self._environment.pop("JUPYTER_DURABLE_LOG", None)

    def start(self, names: list[str], *flags: str) -> subprocess.Popen[str]:
        """Begin a process that runs scenarios."""
        command = [sys.executable, str(PROGRAM), "--url", self.provider.url, "--log", str(self.log), *flags, *names]
        with self._errors.open("a", encoding="utf-8") as errors:
            return subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, env=self._environment, cwd=self.directory
            )

    def results_of(self, process: subprocess.Popen[str]) -> dict[str, Results]:
        """Wait for the end of a process: what it tells, by kind of pass and scenario."""
        try:
            told, _ = process.communicate(timeout=LONGEST)
        finally:
            process.kill()
        assert process.returncode == 0, f"exit code {process.returncode}\n{self.errors()}"
        results: dict[str, Results] = json.loads(told.splitlines()[-1])
        return results

    def run(self, names: list[str], *flags: str) -> dict[str, Results]:
        """Run scenarios in a fresh process."""
        return self.results_of(self.start(names, *flags))

    def errors(self) -> str:
        """The end of what all processes have written to stderr."""
        return self._errors.read_text(encoding="utf-8")[-4_000:]

    def requests(self) -> Counter[str]:
        """How many model requests each chapter has made so far."""
        return self.desk.by_chapter()

    def effect_count(self) -> int:
        """How many MCP tool calls have had their effect so far."""
        return len(self.effects.read_text(encoding="utf-8").splitlines()) if self.effects.exists() else 0


def kill(process: subprocess.Popen[str]) -> None:
    """End a process at once, and see it dead."""
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=LONGEST)


@contextlib.contextmanager
def bench(directory: Path, *, with_mcp: bool = False) -> Iterator[Bench]:
    """A bench with a provider of its own, and an MCP server over HTTP if one is wanted."""
    directory.mkdir(parents=True, exist_ok=True)
    with Provider() as provider, contextlib.ExitStack() as stack:
        environment = {}
        if with_mcp:
            environment["CAPTURE_MCP_URL"] = stack.enter_context(_mcp_server(directory / "effects.txt"))
        yield Bench(provider, directory, environment)


@contextlib.contextmanager
def _mcp_server(effects: Path) -> Iterator[str]:
    command = [sys.executable, str(MCP_SERVER), "--http", "--effects", str(effects)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        ready, url = server.stdout.readline().split()
        assert ready == "ready"
        yield url
    finally:
        server.kill()
        server.communicate()
