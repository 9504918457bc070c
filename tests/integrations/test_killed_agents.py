"""Agents that are killed and run again in a fresh process: each tool has its effect once, and the end is the same."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.capture.processes import MCP_SERVER, _mcp_server

pytest.importorskip("langchain")
pytest.importorskip("pydantic_ai")
pytest.importorskip("agents")
pytest.importorskip("mcp")

PROGRAMS = Path(__file__).with_name("programs.py")
AGENTS = ["langchain_async", "langchain_in_threads", "pydantic_ai", "openai_agents"]
OVER_MCP = ["openai_agents_mcp", "mcp_session", "mcp_client_http"]
STDIO = ["openai_agents_mcp", "mcp_session"]
ASKING = ["langchain_in_threads", "pydantic_ai"]
"""Where `book` says that it must not be called twice."""
EFFECTS = ["book 12A", "look_up log", "look_up step"]


class Place:
    """A folder with a program, its log and its effects."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.program = folder / "program.py"
        self.program.write_text(PROGRAMS.read_text(encoding="utf-8"), encoding="utf-8")
        self._effects = folder / "effects.txt"
        self._environment = {
            **os.environ, "EFFECTS": str(self._effects), "LOG": str(folder / "log"), "MCP_SERVER": str(MCP_SERVER),
            "MCP_URL": url,
        }  # fmt: skip

    def start(self, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(self.program), name], capture_output=True, text=True, cwd=self.folder, timeout=100,
            env={**self._environment, **variables}, check=False,
        )  # fmt: skip

    def run(self, name: str, **variables: str) -> dict[str, Any]:
        done = self.start(name, **variables)
        assert done.returncode == 0, done.stderr[-4_000:]
        return json.loads(done.stdout.splitlines()[-1])

    def effects(self) -> list[str]:
        return sorted(self._effects.read_text(encoding="utf-8").splitlines()) if self._effects.exists() else []


@pytest.fixture
def place(tmp_path, request):
    with contextlib.ExitStack() as stack:
        over_http = request.node.callspec.params["name"] == "mcp_client_http"
        yield Place(tmp_path, stack.enter_context(_mcp_server(tmp_path / "effects.txt")) if over_http else "")


@pytest.mark.parametrize("name", AGENTS + OVER_MCP)
def test_an_agent_killed_between_its_turns_calls_no_tool_twice(place, name):
    killed = place.start(name, DIE_BEFORE="2")
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-4_000:]
    assert place.effects() == EFFECTS

    first = place.run(name)
    # Over stdio a replay starts the server as well, which `--replay-only` does not allow.
    again = place.run(name, **({} if name in STDIO else {"REPLAY_ONLY": "1"}))

    assert place.effects() == EFFECTS
    assert [status for _, status, _ in first["steps"]] == ["replayed"] * 3
    assert {kind for *_, kind in first["steps"]} == {"tool"}
    assert again["output"] == first["output"]
    assert not first["notices"]
    if name in AGENTS:  # a server of MCP numbers its answers as they come, which differs from run to run
        lived = place.run(name, LOG=str(place.folder / "another"), EFFECTS=str(place.folder / "others"))
        assert lived["output"] == first["output"]


@pytest.mark.parametrize("name", ASKING)
def test_a_tool_that_must_not_be_called_twice_is_asked_about_when_the_process_died_in_it(place, name):
    assert place.start(name, DIE_IN="book").returncode == -signal.SIGKILL

    again = place.run(name)

    assert again["error"]["type"] == "InDoubtError"
    assert "was begun and its end is not known" in again["error"]["message"]
    assert place.effects() == EFFECTS


@pytest.mark.parametrize("name", ["langchain_async", "openai_agents"])
def test_a_tool_that_says_nothing_is_called_again_when_the_process_died_in_it(place, name):
    assert place.start(name, DIE_IN="book").returncode == -signal.SIGKILL

    again = place.run(name)

    assert "output" in again
    assert place.effects() == sorted([*EFFECTS, "book 12A"])


@pytest.mark.parametrize("name", AGENTS)
def test_an_edit_of_the_body_of_a_tool_is_a_difference_and_it_is_called_again(place, name):
    place.run(name)
    source = place.program.read_text(encoding="utf-8")
    edited = source.replace('hit("look_up", word)', 'hit("look_up", word.upper())')
    assert edited != source
    place.program.write_text(edited, encoding="utf-8")

    asked = place.run(name)
    assert asked["error"]["type"] == "DecisionNeeded"
    assert "look_up" in asked["error"]["message"]
    assert place.effects() == EFFECTS

    again = place.run(name, REUSE="none")
    assert "output" in again
    assert place.effects() == sorted([*EFFECTS, "book 12A", "look_up LOG", "look_up STEP"])


@pytest.mark.parametrize("name", ["pydantic_ai"])
def test_comments_in_a_tool_are_no_difference(place, name):
    first = place.run(name)
    source = place.program.read_text(encoding="utf-8")
    place.program.write_text(source.replace('hit("look_up", word)', 'hit("look_up", word)  # now'), encoding="utf-8")

    again = place.run(name)

    assert again["output"] == first["output"]
    assert place.effects() == EFFECTS
