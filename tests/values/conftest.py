"""Fixtures for values: other processes and other Python versions, because one process hides twins and hash seeds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., str]


@pytest.fixture
def in_process(tmp_path: Path) -> Run:
    """Run a script as ``__main__`` of a new process and return what it prints: what a new kernel would see."""

    def run(source: str, python: str = sys.executable, hash_seed: str = "random") -> str:
        script = tmp_path / "script.py"
        script.write_text(source, encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]), "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [python, "-W", "error", str(script)], capture_output=True, text=True, env=env, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(params=["3.11", "3.12", "3.13"])
def other_python(request: pytest.FixtureRequest) -> str:
    """An interpreter of that version that can import the package; skipped only where there is no such Python."""
    version = request.param
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    found = _interpreter(version)
    if found is None:
        pytest.skip(f"there is no Python {version} on this machine")
    assert request.config.cache is not None
    home = request.config.cache.mkdir("pythons") / version
    python = home / "bin" / "python"
    with filelock.FileLock(f"{home}.lock"):
        if not (home / "ready").exists():
            subprocess.run([found, "-m", "venv", "--clear", str(home)], check=True)
            needed = ["msgspec", "cloudpickle", "platformdirs", "filelock", "numpy", "pydantic"]
            subprocess.run([str(python), "-m", "pip", "install", "-q", *needed], check=True)
            (home / "ready").touch()
    return str(python)


def _interpreter(version: str) -> str | None:
    places = [shutil.which(f"python{version}"), *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    for place in places:
        if place is None:
            continue
        asked = subprocess.run(
            [str(place), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return str(place)
    return None
