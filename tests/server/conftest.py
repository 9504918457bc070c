"""A real Jupyter Server with the extension, below a base URL, and real logs in the folders that it serves.

The fixtures of pytest-jupyter are taken by name: as a plugin it would run the asynchronous tests of all other folders.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tornado.httpclient import HTTPClientError

pytest.importorskip("pytest_jupyter.jupyter_server", reason="needs the extra `test`")

from pytest_jupyter.jupyter_core import (  # noqa: F401
    echo_kernel_spec,
    jp_asyncio_loop,
    jp_config_dir,
    jp_data_dir,
    jp_env_config_path,
    jp_env_jupyter_path,
    jp_environ,
    jp_home_dir,
    jp_kernel_dir,
    jp_runtime_dir,
    jp_system_config_path,
    jp_system_jupyter_path,
)
from pytest_jupyter.jupyter_server import (  # noqa: F401
    jp_argv,
    jp_auth_header,
    jp_base_url,
    jp_configurable_serverapp,
    jp_fetch,
    jp_http_port,
    jp_logging_stream,
    jp_nbconvert_templates,
    jp_root_dir,
    jp_server_cleanup,
    jp_serverapp,
    jp_web_app,
    jp_ws_fetch,
)
from pytest_jupyter.pytest_tornasync import http_server, http_server_client, http_server_port, io_loop  # noqa: F401

from jupyter_durable import durable, step
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.log.local import LocalLog, LocalWriter
from jupyter_durable.server import shapes

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Answer:
    """What the server answered."""

    status: int
    body: bytes
    headers: Any

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    def as_(self, kind: type[Any]) -> Any:
        """The body as a shape; every field of it must be there and be what it says."""
        assert self.status == 200, self.body
        return msgspec.json.decode(self.body, type=kind)

    @property
    def problem(self) -> shapes.Problem:
        """The body of a refusal."""
        assert self.status >= 400, self.body
        return msgspec.json.decode(self.body, type=shapes.Problem)


@pytest.fixture
def jp_server_config() -> dict[str, Any]:
    """Ours, and nothing that is not needed: every extension costs time."""
    return {"ServerApp": {"jpserver_extensions": {"jupyter_durable": True, "jupyter_server_terminals": False}}}


@pytest.fixture
def root(jp_root_dir: Path) -> Path:  # noqa: F811
    """The folder that is served."""
    return jp_root_dir


@pytest.fixture
def ask(jp_asyncio_loop: Any, jp_fetch: Any) -> Callable[..., Answer]:  # noqa: F811
    """Asks a route, as a user who is logged in by a token."""

    def ask(path: str, *, body: Any = None, headers: dict[str, str] | None = None, **params: Any) -> Answer:
        more = {} if body is None else {"method": "POST", "body": body if isinstance(body, bytes) else json.dumps(body)}

        async def fetch() -> Any:
            # The client of the tests escapes all but slashes; parts with slashes come escaped already.
            parts = [urllib.parse.unquote(part) for part in ["jupyter-durable", "v1", *path.split("/")]]
            return await jp_fetch(*parts, params=params, headers=dict(headers or {}), **more)

        try:
            response = jp_asyncio_loop.run_until_complete(fetch())
        except HTTPClientError as error:
            assert error.response is not None
            response = error.response
        return Answer(response.code, response.body, response.headers)

    return ask


@pytest.fixture
def log(root: Path) -> Path:
    """Where the log of notebooks in the root lies."""
    return root / ".durable"


@step
def double(x: Any) -> Any:
    """A step that succeeds."""
    return x * 2


@step
def fail(x: Any) -> Any:
    """A step that fails."""
    raise ValueError(f"no {x}")


@pytest.fixture
def doubled(log: Path) -> str:
    """A run of three steps, the last of them nested in another; its id."""

    @step
    def outer() -> Any:
        print("inside")
        return double([7])

    with durable.run("doubling", log=str(log)) as run:
        double(1)
        outer()
    assert run.execution is not None
    return run.execution.header.run


RUN = "aaaabbbbccccdddd"


@pytest.fixture
def begin(log: Path) -> Iterator[Callable[..., LocalWriter]]:
    """Begins executions of which the test writes each event itself; what is left open ends as if it was killed."""
    made: list[LocalWriter] = []

    def begin(after: LocalWriter | None = None, *, where: Path = log, **said: Any) -> LocalWriter:
        facts: dict[str, Any] = {
            "format": 1,
            "execution": f"aaaabbbb-{len(made):04d}",
            "run": RUN,
            "name": "crafted",
            "branch": f"{RUN}.1",
            "branch_name": "main",
            "head": None if after is None else after.head,
            "durability": "process",
        }
        made.append(LocalLog(where).begin(ExecutionHeader(**{**facts, **said})))
        return made[-1]

    yield begin
    for writer in made:
        writer.close()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts programs that work in a folder, as a kernel does; they are killed at the end of the test."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with ExitStack() as stack:

        def start(source: str, folder: Path, *, until: str = "begun") -> subprocess.Popen[str]:
            path = folder / f"agent-{len(list(folder.glob('agent-*')))}.py"
            path.write_text("import os, signal, sys\nfrom jupyter_durable import durable, step\n" + source)
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, str(path)], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline().strip() == until
            return process

        yield start
