"""Histories of every released format read for ever. A file in tests/histories is never edited; new ones are added."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from jupyter_durable.log.local import LocalLog
from tests.log.making import plain

HISTORIES = Path(__file__).resolve().parents[1] / "histories"


@pytest.mark.parametrize(
    "history", sorted(HISTORIES.glob("*/log-*")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_a_history_of_an_older_version_reads_as_it_was_written(history: Path, tmp_path: Path, key_file: Path) -> None:
    shutil.copytree(history / "durable", tmp_path / ".durable")
    for packed in (tmp_path / ".durable").glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    key_file.parent.mkdir()
    key_file.write_bytes(bytes.fromhex((history / "key.hex").read_text()))
    key_file.chmod(0o600)
    log = LocalLog(tmp_path / ".durable")
    right = json.loads((history / "events.json").read_text(encoding="utf-8"))

    for _ in range(2):
        found = {branch: json.loads(json.dumps(plain(log.history(branch)))) for branch in right}
        assert found == right
        for path in (history / "durable" / "blobs").iterdir():
            assert log.read_blob(path.name)
        assert log.damage() == []
        log.fold()
