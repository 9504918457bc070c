"""Keys: whose history is replayed, and what an explicit act of trust covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_durable.errors import LogUntrusted
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin, run_whole, step


@pytest.fixture
def somebody_elses(local: LocalLog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LocalLog:
    """A log that came with a notebook: its journals were signed with a key that is not here."""
    writer = begin(local)
    step(writer, "paid")
    writer.close()
    monkeypatch.setenv("JUPYTER_DURABLE_KEY_FILE", str(tmp_path / "mine" / "key"))
    run_whole(LocalLog(tmp_path / "my-own-log"))
    return LocalLog(local.directory)


def journal(log: LocalLog) -> Path:
    [path] = (log.directory / "journal").glob("*")
    return path


def test_a_log_of_another_key_is_listed_and_not_loaded(somebody_elses: LocalLog) -> None:
    [record] = somebody_elses.executions()

    with pytest.raises(LogUntrusted, match="recorded with another key") as caught:
        somebody_elses.history("b1")

    assert caught.value.key == record.header.key
    assert caught.value.execution == record.header.execution
    assert somebody_elses.damage() == []


def test_trust_accepts_exactly_the_bytes_that_are_there(somebody_elses: LocalLog) -> None:
    [record] = somebody_elses.executions()

    somebody_elses.trust(record.header.execution)

    assert len(list(somebody_elses.history("b1"))) == 3
    path = journal(somebody_elses)
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])
    with pytest.raises(LogUntrusted, match="has changed since you accepted it"):
        LocalLog(somebody_elses.directory).history("b1")


def test_an_accepted_branch_goes_on_under_ones_own_key(somebody_elses: LocalLog) -> None:
    somebody_elses.trust(somebody_elses.executions()[0].header.execution)

    writer = begin(somebody_elses)
    step(writer)
    writer.close()

    assert len(list(LocalLog(somebody_elses.directory).history("b1"))) == 6
    keys = {record.header.key for record in somebody_elses.executions()}
    assert len(keys) == 2


def test_anothers_trust_is_worth_nothing(somebody_elses: LocalLog, monkeypatch, tmp_path: Path) -> None:
    somebody_elses.trust(somebody_elses.executions()[0].header.execution)
    monkeypatch.setenv("JUPYTER_DURABLE_KEY_FILE", str(tmp_path / "third" / "key"))
    run_whole(LocalLog(tmp_path / "third-log"))

    with pytest.raises(LogUntrusted, match="recorded with another key"):
        LocalLog(somebody_elses.directory).history("b1")


def test_a_lost_key_is_never_replaced_by_a_fresh_one(local: LocalLog, key_file: Path) -> None:
    """Rule 29: a missing key stops the run."""
    begin(local).close()
    key_file.unlink()
    log = LocalLog(local.directory)

    assert len(log.executions()) == 1
    with pytest.raises(LogUntrusted, match="There is no key"):
        begin(log)
    with pytest.raises(LogUntrusted, match="There is no key"):
        log.history("b1")
    with pytest.raises(LogUntrusted, match="There is no key"):
        log.fold()

    assert not key_file.exists()
    assert log.holder("b1") is None


def test_journals_of_another_key_are_not_folded(somebody_elses: LocalLog) -> None:
    run_whole(somebody_elses, "b2")

    assert somebody_elses.fold() == 8

    assert "written with another key" in somebody_elses.fold_note
    assert len(list((somebody_elses.directory / "journal").glob("*.jsonl"))) == 1


def test_a_folded_history_of_another_key_is_loaded_only_when_accepted(local: LocalLog, monkeypatch, tmp_path) -> None:
    execution = run_whole(local)
    local.fold()
    monkeypatch.setenv("JUPYTER_DURABLE_KEY_FILE", str(tmp_path / "mine" / "key"))
    run_whole(LocalLog(tmp_path / "my-own-log"))
    log = LocalLog(local.directory)
    with pytest.raises(LogUntrusted):
        log.history("b1")

    log.trust(execution)

    assert len(list(log.history("b1"))) == 8
