"""Fixtures of the crash suite."""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.crash import outside
from tests.crash.harness import Server, World

if sys.platform != "linux":
    collect_ignore_glob = ["*.py"]
    """The layers look at /proc, and forks of the server are as cheap as that only here."""


@pytest.fixture(scope="session")
def endpoint() -> Iterator[Endpoint]:
    """A model that counts what it bills, outside of every process that dies."""
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where worlds are made: in memory if there is such a place. What a dead process wrote is the kernel's to keep, so
    the disk takes no part in these deaths; loss of power is played by a layer.
    """
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < 1 << 30:
        yield tmp_path_factory.mktemp("worlds")
        return
    with tempfile.TemporaryDirectory(prefix="durable-crash-", dir=memory) as path:
        yield Path(path)


@pytest.fixture(scope="session")
def server(ground: Path, endpoint: Endpoint) -> Iterator[Server]:
    """The process that forks lives, with one key for all worlds, so that a world can be copied."""
    key = ground / "key-of-the-tests" / "durable.key"
    server = Server({"JUPYTER_DURABLE_KEY_FILE": str(key), outside.ENDPOINT: endpoint.url})
    yield server
    server.close()


@pytest.fixture
def new_world(
    server: Server, ground: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], World]]:
    """Makes worlds, which are gone after the test."""
    monkeypatch.setenv("JUPYTER_DURABLE_KEY_FILE", server.environment["JUPYTER_DURABLE_KEY_FILE"])
    path = Path(tempfile.mkdtemp(prefix="test-", dir=ground))
    numbers = itertools.count()
    yield lambda: World(server, path / str(next(numbers)))
    shutil.rmtree(path)
