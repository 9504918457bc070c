"""Folding, and what is left when the folder or the database dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import duckdb
import pytest

from jupyter_durable.errors import LogDamaged, LogTooNew, LogUntrusted, LogUnusable
from jupyter_durable.events import StepCompleted
from jupyter_durable.log.database import SCHEMA
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin, end, finish, header, last, plain, python, run_whole, step


def names(log: LocalLog) -> list[str]:
    return sorted(path.name for path in (log.directory / "journal").iterdir())


def count(log: LocalLog) -> int:
    with duckdb.connect(str(log.directory / "log.duckdb"), read_only=True) as connection:
        return connection.execute("SELECT count(*), count(DISTINCT (execution, seq)) FROM lines").fetchall()[0]


def test_journals_of_completed_branches_go_and_leave_a_stub(local: LocalLog) -> None:
    """Rule 26: a journal is deleted only when its branch has completed."""
    execution = run_whole(local)

    assert local.fold() == 8

    assert names(local) == [f"{execution}.folded"]
    [record] = local.executions()
    assert record.folded
    assert record.outcome.status == "completed"
    assert record.last.seq == 7
    assert list(local.directory.glob(".fold-*")) == []


def test_listing_and_choosing_a_branch_need_no_database(local: LocalLog) -> None:
    run_whole(local)
    local.fold()
    (local.directory / "log.duckdb").unlink()

    log = LocalLog(local.directory)

    assert log.executions()[0].outcome.status == "completed"
    assert log.damage() == []


@pytest.mark.parametrize("status", ["failed", "interrupted", "stopped", None])
def test_a_branch_that_can_resume_keeps_its_journals(local: LocalLog, status: str | None) -> None:
    """Rule 26: a branch that can resume does so from journals alone."""
    writer = begin(local)
    step(writer)
    writer.close() if status is None else end(writer, status)

    local.fold()

    assert names(local) == [f"{writer.execution}.jsonl"]
    (local.directory / "log.duckdb").write_bytes(b"gone")
    assert len(list(local.history("b1"))) >= 3
    begin(local).close()


def test_all_executions_of_a_completed_branch_go_together(local: LocalLog) -> None:
    first = begin(local)
    step(first)
    end(first, "failed")
    local.fold()
    second = run_whole(local)

    local.fold()

    assert names(local) == sorted([f"{first.execution}.folded", f"{second}.folded"])
    assert [each.seq for each in local.history("b1")] == list(range(12))


def test_a_completed_branch_that_an_unfinished_one_builds_on_keeps_its_journals(local: LocalLog) -> None:
    execution = run_whole(local)
    fork = local.begin(header("b2", head=local.point(execution, 2)))
    fork.close()
    local.fold()
    assert f"{execution}.jsonl" in names(local)

    end(begin(local, "b2"))
    local.fold()

    assert all(name.endswith(".folded") for name in names(local))
    assert [each.seq for each in local.history("b2")] == list(range(6))


def test_a_branch_made_from_a_folded_one_has_its_history(local: LocalLog) -> None:
    execution = run_whole(local)
    local.fold()

    fork = local.begin(header("b2", head=local.point(execution, 2)))
    step(fork, "new")
    end(fork)

    before = plain(local.history("b2"))
    assert [seq for seq, _, _ in before] == list(range(7))
    local.fold()
    assert plain(local.history("b2")) == before


def test_an_execution_that_runs_is_folded_up_to_its_last_line_and_again_later(local: LocalLog) -> None:
    writer = begin(local)
    step(writer)
    assert local.fold() == 3
    step(writer)
    assert local.fold() == 2
    end(writer)

    assert local.fold() == 1

    assert count(local) == (6, 6)
    assert names(local) == [f"{writer.execution}.folded"]
    assert len(list(local.history("b1"))) == 6


def test_a_torn_tail_and_what_follows_damage_are_not_folded(local: LocalLog) -> None:
    writer = begin(local)
    step(writer)
    writer.close()
    path = local.directory / "journal" / f"{writer.execution}.jsonl"
    with path.open("ab") as file:
        file.write(b'{"c":"0000')
    assert LocalLog(local.directory).fold() == 3

    spoilt = begin(local, "b2")
    for _ in range(5):
        step(spoilt)
    end(spoilt)
    path = local.directory / "journal" / f"{spoilt.execution}.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"seq":5,', b'"seq":4,'))
    log = LocalLog(local.directory)

    assert log.fold() == 5
    assert "is damaged at line 6" in log.fold_note
    assert path.exists()


FOLD_AND_DIE = """
import os, signal, sys
import duckdb
from jupyter_durable.log import files
from jupyter_durable.log.local import LocalLog

class Deadly(files.FileLayer):
    left = 0
    def tick(self):
        Deadly.left -= 1
        if Deadly.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

def deadly(name):
    real = getattr(files.FileLayer, name)
    def operation(self, *arguments):
        self.tick()
        result = real(self, *arguments)
        self.tick()
        return result
    return operation

for name in ("open", "write", "fdatasync", "fsync_dir", "rename", "unlink", "truncate", "reached"):
    setattr(Deadly, name, deadly(name))
for line in sys.stdin:
    death, _, directory = line.strip().partition(" ")
    child = os.fork()
    if child == 0:
        Deadly.left = int(death)
        files.hooks = Deadly()
        LocalLog(directory).fold()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
@pytest.mark.timeout(600)
def test_a_folder_killed_at_any_operation_folds_each_line_exactly_once(tmp_path: Path) -> None:
    original = LocalLog(tmp_path / "original")
    run_whole(original)
    original.fold()
    first = begin(original, "b2")
    step(first, "first")
    end(first, "failed")
    original.fold()
    run_whole(original, "b2")
    end(begin(original, "b3"), "stopped")
    branches = ("b1", "b2", "b3")
    right = [plain(original.history(branch)) for branch in branches]
    lines = sum(map(len, right))
    folder = python(FOLD_AND_DIE)

    for death in range(1, 200):
        directory = tmp_path / f"log-{death}"
        shutil.copytree(original.directory, directory)
        folder.stdin.write(f"{death} {directory}\n")
        folder.stdin.flush()
        status = int(folder.stdout.readline())
        assert status in {0, -signal.SIGKILL}
        log = LocalLog(directory)
        assert [plain(log.history(branch)) for branch in branches] == right, death

        log.fold()

        assert log.fold_note == ""
        assert count(log) == (lines, lines), death
        assert [plain(log.history(branch)) for branch in branches] == right, death
        assert [record.folded for record in log.executions()].count(False) == 1, death
        assert [path.name for path in directory.rglob(".*")] == [".gitignore"]
        shutil.rmtree(directory)
        if status == 0:
            break
    finish(folder)
    assert status == 0
    assert death > 30


HOLD_DATABASE = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def test_a_database_that_somebody_has_open_leaves_the_journals_and_says_so(local: LocalLog, monkeypatch) -> None:
    """Case G18, the other way round: the user's own duckdb shell."""
    monkeypatch.setattr("jupyter_durable.log.local._FOLD_PATIENCE", 0.05)
    monkeypatch.setattr("jupyter_durable.log.folded._PATIENCE", 0.05)
    run_whole(local)
    local.fold()
    execution = run_whole(local, "b2")
    with python(HOLD_DATABASE, local.directory / "log.duckdb") as other:
        assert other.stdout.readline() == "open\n"

        assert local.fold() == 0

        assert "is open in another program" in local.fold_note
        assert f"{execution}.jsonl" in names(local)
        assert len(list(local.history("b2"))) == 8
        begin(local, "b2").close()
        with pytest.raises(LogUnusable, match="Close it there"):
            list(local.history("b1"))
        finish(other)
    local.fold()
    assert local.fold_note == ""
    assert len(list(local.history("b1"))) == 8


def test_a_database_that_this_process_has_open_in_another_way_is_left_alone(local: LocalLog, monkeypatch) -> None:
    monkeypatch.setattr("jupyter_durable.log.local._FOLD_PATIENCE", 0.05)
    run_whole(local)
    local.fold()
    run_whole(local, "b2")
    with duckdb.connect(str(local.directory / "log.duckdb"), read_only=True):
        assert local.fold() == 0
        assert "is open in another program" in local.fold_note

    assert local.fold() == 8


@pytest.mark.parametrize(
    "spoil",
    [
        lambda whole: b"garbage" * 1000,
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:100],
        lambda whole: b"",
        lambda whole: whole[:5000] + b"\xff" * 3000 + whole[8000:],
    ],
    ids=["garbage", "half", "head", "empty", "hole"],
)
def test_a_damaged_database_is_a_sentence_and_never_a_fresh_file(local: LocalLog, spoil) -> None:
    run_whole(local)
    local.fold()
    path = local.directory / "log.duckdb"
    path.write_bytes(spoil(path.read_bytes()))
    before = path.read_bytes()
    log = LocalLog(local.directory)
    unfinished = begin(log, "b2")
    step(unfinished)
    unfinished.close()

    with pytest.raises((LogDamaged, LogUntrusted), match=r"log.duckdb"):
        list(log.history("b1"))
    with pytest.raises(LogDamaged, match=r"cannot be rebuilt.*report"):
        log.rebuild()

    assert len(list(log.history("b2"))) == 3
    begin(log, "b2").close()
    if path.read_bytes() == before:
        with pytest.raises(LogDamaged, match="journals"):
            log.fold()


def test_a_lost_database_is_a_sentence(local: LocalLog) -> None:
    run_whole(local)
    local.fold()
    (local.directory / "log.duckdb").unlink()
    begin(local, "b2").close()

    with pytest.raises(LogDamaged, match="is missing, and finished runs lie in nothing else"):
        list(local.history("b1"))
    with pytest.raises(LogDamaged, match="is missing, and finished runs lie in nothing else"):
        local.fold()

    assert not (local.directory / "log.duckdb").exists()


def test_a_damaged_database_is_rebuilt_while_journals_hold_everything(local: LocalLog) -> None:
    writer = begin(local)
    step(writer)
    end(writer, "failed")
    local.fold()
    path = local.directory / "log.duckdb"
    path.write_bytes(b"garbage" * 5000)
    with pytest.raises(LogDamaged, match="doctor"):
        local.fold()

    assert local.rebuild() == 4

    assert count(local) == (4, 4)
    [aside] = local.directory.glob("log.duckdb.damaged-*")
    assert aside.read_bytes() == b"garbage" * 5000


def test_a_database_of_something_else_is_left_alone(local: LocalLog) -> None:
    with duckdb.connect(str(local.directory / "log.duckdb")) as connection:
        connection.execute("CREATE TABLE mine (x INTEGER)")
    begin(local).close()

    with pytest.raises(LogDamaged, match="cannot be read"):
        local.fold()


def test_a_database_of_a_newer_schema_is_left_alone(local: LocalLog) -> None:
    begin(local).close()
    local.fold()
    with duckdb.connect(str(local.directory / "log.duckdb")) as connection:
        connection.execute(f"UPDATE schema_version SET version = {SCHEMA + 1}")
    begin(local).close()

    with pytest.raises(LogTooNew, match=f"schema {SCHEMA + 1}"):
        local.fold()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE lines SET data = replace(data, '1', '2') WHERE type = 'step_completed'",
        "UPDATE lines SET name = 'other' WHERE type = 'step_started'",
        "UPDATE lines SET time = time + 1 WHERE seq = 1",
        "UPDATE lines SET type = 'step_cancelled' WHERE seq = 2",
        "UPDATE lines SET pure = true WHERE seq = 1",
    ],
)
def test_rows_changed_after_the_fold_are_not_loaded(local: LocalLog, change: str) -> None:
    run_whole(local)
    local.fold()
    with duckdb.connect(str(local.directory / "log.duckdb")) as connection:
        connection.execute(change)

    with pytest.raises(LogUntrusted, match="is not what was signed"):
        list(local.history("b1"))


def test_rows_lost_after_the_fold_are_damage(local: LocalLog) -> None:
    run_whole(local)
    local.fold()
    with duckdb.connect(str(local.directory / "log.duckdb")) as connection:
        connection.execute("DELETE FROM lines WHERE seq = 3")

    with pytest.raises(LogDamaged, match="7 of 8 events"):
        list(local.history("b1"))


def test_a_damaged_stub_is_named(local: LocalLog) -> None:
    execution = run_whole(local)
    local.fold()
    stub = local.directory / "journal" / f"{execution}.folded"
    stub.write_bytes(stub.read_bytes().replace(b"completed", b"complexed"))
    log = LocalLog(local.directory)

    assert "folded is damaged" in log.damage()[0]
    with pytest.raises(LogDamaged, match="folded is damaged"):
        list(log.history("b1"))


def test_numbers_come_back_from_the_database_as_they_were_written(local: LocalLog) -> None:
    import msgspec

    from jupyter_durable.event_data import Payload

    text = b'{"x":1.10,"big":123456789012345678901234567890,"e":1e5,"z":-0.0,"s":"\\u00e9\\u0000 ,\\"data\\":"}'
    writer = begin(local)
    writer.append(StepCompleted(at=0.1, step=1, data=Payload(data=msgspec.Raw(text))))
    end(writer)

    local.fold()

    [_, found, _] = local.history("b1")
    assert found.event.at == 0.1
    assert bytes(found.event.data.data) == text
    assert json.loads(text)["big"] == 123456789012345678901234567890


def test_reload_and_point_work_in_a_folded_execution(local: LocalLog) -> None:
    execution = run_whole(local)
    local.fold()

    assert bytes(local.reload(execution, 2).event.data.data) == b"0"
    assert local.point(execution, 7) == last(local)
    with pytest.raises(LogDamaged):
        local.reload(execution, 99)
    with pytest.raises(LogDamaged):
        local.point(execution, 99)


def test_ten_thousand_steps_take_at_most_120_bytes_each_beside_their_values(local: LocalLog) -> None:
    writer = begin(local, durability="process")
    for number in range(10_000):
        step(writer, "x" * 100, digest=os.urandom(16).hex(), evidence="e" * 32, at=1796023456.5 + number / 7)
    end(writer)

    local.fold()

    assert sum(path.stat().st_size for path in local.directory.rglob("*") if path.is_file()) <= 120 * 10_000


def test_a_database_of_an_older_schema_gets_the_views_of_today(local: LocalLog) -> None:
    writer = begin(local)
    step(writer)
    end(writer)
    local.fold()
    with duckdb.connect(str(local.directory / "log.duckdb")) as connection:
        connection.execute("UPDATE schema_version SET version = 1; DROP VIEW spend; DROP VIEW llm_calls")

    begin(local).close()
    local.fold()

    with duckdb.connect(str(local.directory / "log.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [(SCHEMA,)]
        assert connection.execute("SELECT count(*) FROM spend").fetchall() == [(0,)]
        assert connection.execute("SELECT count(*) FROM steps").fetchall() == [(1,)]
