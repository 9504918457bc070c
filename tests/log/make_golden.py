"""Writes the golden histories of the present format into a new directory: once for each release, then never again.

python -m tests.log.make_golden tests/histories/v1 log

The second word begins the names: a kind of event that came later has histories of its own (``log-calls``).
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from jupyter_durable import clock
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin, completed, end, header, plain, step
from tests.log.test_contract import EVERY_KIND

KEY = bytes(range(32))


class _Noon(clock.SystemClock):
    """Time stands still, so that the files say when the format was released and not when this ran."""

    time = staticmethod(lambda: 1796040000.0)


def write(target: Path, *, fold: bool) -> None:
    """One history: every kind of event, a resumed branch, a branch from the middle of another, a blob."""
    with tempfile.TemporaryDirectory() as name, clock.use(_Noon()):
        key = Path(name) / "key"
        key.write_bytes(KEY)
        key.chmod(0o600)
        os.environ["JUPYTER_DURABLE_KEY_FILE"] = str(key)
        log = LocalLog(Path(name) / "durable")
        first = begin(log, execution="e1")
        for event in EVERY_KIND:
            first.append(event)
            first.flush()
        first.put_blob(b"a large payload " * 5000)
        end(first, "failed")
        second = begin(log, execution="e2")
        step(second, {"text": "caf\u00e9 \U0001f600", "numbers": [1, 2.5, -0.0, 1e300]})
        end(second)
        other = log.begin(header("b2", execution="e3", head=log.point("e1", 3)))
        other.append(completed(1, "on the other branch"))
        end(other)
        right = {branch: plain(log.history(branch)) for branch in ("b1", "b2")}
        if fold:
            log.fold()
        target.mkdir(parents=True)
        shutil.copytree(log.directory, target / "durable", ignore=shutil.ignore_patterns(".gitignore", "*.lock"))
    for database in (target / "durable").glob("*.duckdb"):
        database.with_name(f"{database.name}.gz").write_bytes(gzip.compress(database.read_bytes(), mtime=0))
        database.unlink()
    (target / "key.hex").write_text(KEY.hex() + "\n", encoding="ascii")
    (target / "events.json").write_text(json.dumps(right, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for folded in (False, True):
        write(Path(sys.argv[1]) / f"{sys.argv[2]}-{'folded' if folded else 'journals'}", fold=folded)
