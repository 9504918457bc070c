"""Fixtures for all tests. Each says why it exists."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

# Property tests choose the same examples on every machine, and a slow machine is not a failure.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
# To look for more: python3 dev.py test --hypothesis-profile=search
hypothesis.settings.register_profile("search", deadline=None, max_examples=2_000)
hypothesis.settings.load_profile("ci")


@pytest.fixture(autouse=True)
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key of the test's own, here and in every process it starts, so that the user's key is never touched."""
    path = tmp_path / "key-of-the-test" / "durable.key"
    monkeypatch.setenv("JUPYTER_DURABLE_KEY_FILE", str(path))
    # A log that the user has configured is not to be written into either.
    monkeypatch.delenv("JUPYTER_DURABLE_LOG", raising=False)
    return path


@pytest.fixture(scope="session", autouse=True)
def ipython_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An IPython profile of the tests' own, here and in every kernel: the user's history and startup stay out."""
    path = tmp_path_factory.mktemp("ipython")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(path))
        # A proxy of the machine must not come between a kernel and an endpoint on loopback.
        for name in ("NO_PROXY", "no_proxy"):
            patch.setenv(name, "127.0.0.1,localhost")
        yield path


@dataclass(frozen=True)
class Effects:
    """An outside file that counts effects: what a log says of itself is no proof that a step ran once."""

    path: Path

    @property
    def code(self) -> str:
        """Python source that defines ``hit(tag)`` in another process, such as a kernel."""
        return (
            "import os\n"
            "def hit(tag):\n"
            f"    with open({str(self.path)!r}, 'a') as file:\n"
            "        file.write(str(tag) + '\\n'); file.flush(); os.fsync(file.fileno())\n"
        )

    def hit(self, tag: object) -> None:
        """Add one effect; it survives the death of the process and of the machine."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{tag}\n")
            file.flush()
            os.fsync(file.fileno())

    def tags(self) -> list[str]:
        """All effects, in the order in which they happened."""
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []

    def wait(self, tag: object, seconds: float = 60.0) -> None:
        """Wait until an effect has happened. A file tells nobody when it changes, so it is looked at."""
        ends = time.monotonic() + seconds
        while not self.count(tag):
            assert time.monotonic() < ends, f"{tag} has not happened; what has: {self.tags()}"
            time.sleep(0.02)

    def count(self, tag: object) -> int:
        """How often an effect happened."""
        return self.tags().count(str(tag))


@pytest.fixture
def effects(tmp_path: Path) -> Effects:
    """An outside file that outlives every kernel of the test, to count what really happened."""
    return Effects(tmp_path / "effects.txt")
