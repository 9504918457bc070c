"""Fixtures for the tests of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_durable.log.base import EventLog
from jupyter_durable.log.local import LocalLog
from jupyter_durable.log.memory import MemoryLog


@pytest.fixture
def local(tmp_path: Path) -> LocalLog:
    """A log on the disk, for what only that can do (wrong)."""
    return LocalLog(tmp_path / ".durable")


@pytest.fixture(params=["local", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> EventLog:
    """A log of each kind, for the contract that all keep."""
    return MemoryLog() if request.param == "memory" else LocalLog(tmp_path / ".durable")
