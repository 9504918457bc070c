"""Who may write a branch: proved with real processes."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from jupyter_durable.errors import BranchBusy
from jupyter_durable.log import lease, locks
from jupyter_durable.log.lease import probe_locks
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin, finish, header, last, python, run_whole, step

HOLD = """
import sys
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin, step
log = LocalLog(sys.argv[1])
writer = begin(log)
step(writer)
print("held", flush=True)
sys.stdin.read()
writer.close()
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="open-file-description locks")


@pytest.fixture(params=[locks.DescriptionLocks, locks.LibraryLocks])
def any_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> locks.Locks:
    """Both kinds of locks: the ones of this system, and those that stand in elsewhere."""
    if request.param is locks.DescriptionLocks and sys.platform != "linux":
        pytest.skip("open-file-description locks are of Linux")
    chosen = request.param()
    monkeypatch.setattr(locks, "locks", chosen)
    return chosen


def test_another_process_is_refused_at_once_and_told_who_holds_the_branch(local: LocalLog) -> None:
    with python(HOLD, local.directory) as other:
        assert other.stdout.readline() == "held\n"

        with pytest.raises(BranchBusy) as caught:
            local.begin(header(head=last(local)))

        assert caught.value.pid == other.pid
        assert local.holder("b1").pid == other.pid
        assert local.executions()[0].running
        finish(other)
    assert local.holder("b1") is None
    assert not local.executions()[0].running


def test_the_death_of_the_holder_frees_the_branch_and_keeps_what_it_recorded(local: LocalLog) -> None:
    with python(HOLD, local.directory) as other:
        assert other.stdout.readline() == "held\n"
        other.kill()
        other.wait()

    [record] = local.executions()

    assert not record.running
    assert record.outcome is None
    writer = begin(local)
    assert writer.append is not None
    assert [each.seq for each in local.history("b1")] == [0, 1, 2, 3]
    writer.close()


@linux
def test_a_forked_child_does_not_keep_the_branch(local: LocalLog) -> None:
    code = """
import os, signal, sys
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin
writer = begin(LocalLog(sys.argv[1]))
child = os.fork()
if child == 0:
    os.close(1)
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with python(code, local.directory) as other:
        child = int(other.stdout.readline())
        other.wait()
        try:
            os.kill(child, 0)  # it lives, and holds nothing

            assert local.holder("b1") is None
            begin(local).close()
        finally:
            os.kill(child, signal.SIGKILL)


@linux
def test_a_child_forked_by_c_code_keeps_the_lock_and_not_the_branch(local: LocalLog) -> None:
    """Such a child never runs Python's hooks; the name in the lock file tells that the owner is gone."""
    code = """
import ctypes, os, signal, sys
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin
writer = begin(LocalLog(sys.argv[1]))
libc = ctypes.CDLL(None)
child = ctypes.PyDLL(None).fork()
if child == 0:
    libc.close(1)
    libc.read(0, ctypes.create_string_buffer(1), 1)
    libc._exit(0)
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with python(code, local.directory) as other:
        child = int(other.stdout.readline())
        other.wait()
        try:
            path = local.directory / "locks" / "b1.lock"
            assert locks.locks.is_held(path, 0)
            assert local.holder("b1") is None
            assert not local.executions()[0].running

            writer = begin(local)

            assert local.holder("b1").pid == os.getpid()
            with pytest.raises(BranchBusy):
                local.begin(header(head=writer.head))
            writer.close()
            assert local.holder("b1") is None
        finally:
            os.kill(child, signal.SIGKILL)
    begin(local).close()


@linux
def test_the_parent_keeps_the_branch_when_it_forks(local: LocalLog) -> None:
    code = """
import os, sys
from jupyter_durable.errors import LogUnusable
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin, started, step
writer = begin(LocalLog(sys.argv[1]))
child = os.fork()
if child == 0:
    try:
        writer.append(started())
    except LogUnusable as error:
        assert "forked" in str(error) and "durable.map" in str(error)
        writer.close()
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
step(writer)
print("forked", flush=True)
sys.stdin.read()
writer.close()
"""
    with python(code, local.directory) as other:
        assert other.stdout.readline() == "forked\n", other.stderr.read()

        with pytest.raises(BranchBusy):
            local.begin(header(head=last(local)))

        finish(other)
    assert len(list(local.history("b1"))) == 3


def test_opening_and_closing_files_of_the_log_elsewhere_loses_nothing(local: LocalLog) -> None:
    """Case G19: POSIX locks would be lost here."""
    import duckdb

    run_whole(local, "done")
    local.fold()
    writer = begin(local)
    for name in ("locks/b1.lock", "log.duckdb", "log.lock", "fold.lock"):
        with (local.directory / name).open("rb") as file:
            file.read(4)
    duckdb.connect(str(local.directory / "log.duckdb")).close()

    out = finish(
        python(
            """
import sys
from jupyter_durable.errors import BranchBusy
from jupyter_durable.log.local import LocalLog
from tests.log.making import header, last
log = LocalLog(sys.argv[1])
try:
    log.begin(header(head=last(log)))
except BranchBusy as error:
    print("refused", error.pid)
""",
            local.directory,
        )
    )

    assert out.split() == ["refused", str(os.getpid())]
    step(writer)
    writer.close()
    assert len(list(local.history("b1"))) == 3


def test_of_many_takers_exactly_one_gets_the_branch(local: LocalLog) -> None:
    code = """
import sys
from jupyter_durable.errors import BranchBusy
from jupyter_durable.log.local import LocalLog
from tests.log.making import header
log = LocalLog(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    writer = log.begin(header())
    print("granted", flush=True)
except BranchBusy as error:
    print("refused", flush=True)
sys.stdin.read()
"""
    takers = [python(code, local.directory) for _ in range(6)]
    for taker in takers:
        assert taker.stdout.readline() == "ready\n"
    for taker in takers:
        taker.stdin.write("go\n")
        taker.stdin.flush()

    answers = [taker.stdout.readline().strip() for taker in takers]

    for taker in takers:
        finish(taker)
    assert sorted(answers) == ["granted"] + ["refused"] * 5


def test_asking_takes_no_lock_and_a_lock_file_is_never_removed(local: LocalLog, any_locks: locks.Locks) -> None:
    path = local.directory / "locks" / "b1.lock"
    assert lease.holder(path) is None
    assert not path.exists()

    mine = lease.take(path, branch="main", notebook="plan.ipynb", execution="e1")

    who = lease.holder(path)
    assert who is not None
    assert who.pid == os.getpid()
    with pytest.raises(BranchBusy, match="process"):
        lease.take(path, branch="main", notebook="", execution="e2")
    mine.release()
    mine.release()
    assert lease.holder(path) is None
    assert path.exists()
    lease.take(path, branch="main", notebook="", execution="e2").release()
    assert lease.last_execution(path) == "e2"


def test_many_share_what_one_alone_can_have(tmp_path: Path, any_locks: locks.Locks) -> None:
    path = tmp_path / "log.lock"
    one = any_locks.take(path, 0, shared=True)
    two = any_locks.take(path, 0, shared=True)

    assert any_locks.take(path, 0) is None
    one.release()
    assert any_locks.take(path, 0) is None
    two.release()

    alone = any_locks.take(path, 0)
    assert alone is not None
    assert any_locks.take(path, 0, shared=True) is None
    assert any_locks.is_held(path, 0)
    assert not any_locks.is_held(path, 1)
    alone.release()
    assert not any_locks.is_held(path, 0)


def test_the_log_can_be_had_alone_only_while_no_execution_runs(local: LocalLog) -> None:
    """Rule 30: executions hold a lock on the log that they share; who collects garbage needs it alone."""
    writer = begin(local)
    assert local.exclusive() is None
    writer.close()

    alone = local.exclusive()

    assert alone is not None
    alone.release()
    begin(local).close()


def test_a_lock_file_with_nonsense_in_it_holds_nobody_up(local: LocalLog) -> None:
    path = local.directory / "locks" / "b1.lock"
    for nonsense in (b"", b"{", b"\xff\xfe", b'{"pid": "x"}', b"\0" * 512):
        path.write_bytes(nonsense)

        assert local.holder("b1") is None
        begin(local).close()

    assert json.loads(path.read_bytes())["pid"] == os.getpid()


def test_locks_that_work_are_found_to_work(tmp_path: Path) -> None:
    assert probe_locks(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_locks_that_do_not_work_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Useless(locks.LibraryLocks):
        def take(self, path: Path, byte: int, *, shared: bool = False) -> locks.Held | None:
            return super().take(path.with_name(f"other-{path.name}"), byte, shared=shared)

    monkeypatch.setattr(locks, "locks", Useless())

    assert "Locks do not work" in (probe_locks(tmp_path) or "")
