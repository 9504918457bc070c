"""What ``doctor`` finds in a log, under it and around it, and what it says to do."""

from __future__ import annotations

import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import duckdb
import pytest

from jupyter_durable import clock
from jupyter_durable.diagnose import Finding, doctor, machine, storage
from tests.cli.conftest import COMPLETED, DYING

LARGE = """
import random
@step
def large(): return random.Random(1).randbytes(300_000).hex()
@step
def die(): os.kill(os.getpid(), signal.SIGKILL)
with durable.run("large"):
    large(); "die" in sys.argv and die()
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No further process for each examination: locks between processes and the loading of the extension are tried in
    tests of their own.
    """
    monkeypatch.setattr(storage, "probe_locks", lambda path: None)
    monkeypatch.setattr(machine, "_loaded_here", lambda: True)


@pytest.fixture
def log(folder: Path) -> Path:
    """The log directory of the folder."""
    return folder / ".durable"


def serious(findings: list[Finding], level: str = "problem") -> str:
    """What findings of a level say, with their advice, one a line."""
    return "\n".join(f"{finding.what} {finding.advice}" for finding in findings if finding.level == level)


def test_a_healthy_log_has_no_problem(script, cli, log):
    script(COMPLETED)

    shape = cli("doctor", "--json").json

    assert set(shape) == {"format", "log", "ok", "findings"}
    assert shape["log"] == str(log)
    assert shape["ok"] is True
    assert {finding["level"] for finding in shape["findings"]} <= {"ok", "note"}
    assert all(set(finding) == {"level", "what", "advice"} for finding in shape["findings"])


def test_a_problem_makes_the_exit_code_1(script, cli, key_file):
    script(COMPLETED)
    key_file.unlink()

    answer = cli("doctor")

    assert answer.code == 1
    assert answer.out.endswith("\n1 problem.\n")


def test_no_log_yet_is_a_note_and_the_machine_is_examined(log):
    findings = doctor(log)

    assert not serious(findings)
    assert "There is no log at" in serious(findings, "note")
    assert any("free on the disk" in finding.what for finding in findings)
    assert any("There is no key yet" in finding.what for finding in findings)
    assert not log.exists()


def test_a_folder_that_is_no_log_a_newer_one_and_a_damaged_marker(script, log):
    log.mkdir()
    assert "There is no log in" in serious(doctor(log))

    (log / "format.json").write_text('{"format": 99, "log": "x"}')
    assert "has format 99" in serious(doctor(log))

    (log / "format.json").write_text("{")
    assert "format.json is damaged" in serious(doctor(log))


def test_a_log_that_cannot_be_written(script, log):
    script(COMPLETED)
    shutil.rmtree(log / "blobs")
    (log / "blobs").write_text("a file in the place of a folder")

    assert "Cannot write to the log" in serious(doctor(log))


def test_probes_leave_nothing_behind(script, log, monkeypatch):
    script(COMPLETED)
    before = sorted(path.name for path in log.rglob("*"))
    monkeypatch.undo()

    findings = doctor(log)

    assert Finding("ok", "Locks work between two processes.") in findings
    assert sorted(path.name for path in log.rglob("*")) == before


def test_locks_that_do_not_work_or_cannot_be_tried(script, log, monkeypatch):
    script(COMPLETED)

    def no_process(path):
        raise subprocess.TimeoutExpired("python", 60)

    monkeypatch.setattr(storage, "probe_locks", lambda path: "Locks do not work there.")
    assert "Locks do not work there." in serious(doctor(log))
    monkeypatch.setattr(storage, "probe_locks", no_process)
    assert "Locks could not be tried" in serious(doctor(log), "note")


def test_a_key_that_others_can_read_or_that_lies_beside_the_log(script, log, key_file, folder, monkeypatch):
    script(COMPLETED)
    key_file.chmod(0o644)
    assert "chmod 600" in serious(doctor(log))

    beside = Path(shutil.copy(key_file, folder / "key"))
    beside.chmod(0o600)
    monkeypatch.setenv("JUPYTER_DURABLE_KEY_FILE", str(beside))
    assert "beside the log that it protects" in serious(doctor(log), "note")


def test_executions_of_another_key(script, log, key_file):
    script(COMPLETED)
    key_file.write_bytes(b"k" * 32)

    findings = doctor(log)

    assert "signed with another key" in serious(findings, "note")
    assert not serious(findings)


def test_damage_and_a_missing_journal(script, log, journal):
    script(DYING, "die")
    lines = journal().read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"plan", b"plam")
    journal().write_bytes(b"\n".join(lines))
    assert "is damaged at line 2" in serious(doctor(log))

    lines[1] = lines[1].replace(b"plam", b"plan")
    journal().write_bytes(b"\n".join(lines))
    first = journal()
    script(DYING, "die")
    first.unlink()
    assert f"{first} is missing" in serious(doctor(log))


def test_a_torn_line_is_a_note(script, log, journal):
    script(DYING, "die")
    with journal().open("ab") as file:
        file.write(b'{"c":"0000')

    findings = doctor(log)

    assert "ends in a torn line of 10 bytes" in serious(findings, "note")
    assert not serious(findings)


@pytest.mark.parametrize("word", ["die", "live"], ids=["in a journal", "folded"])
def test_a_missing_blob(script, log, word):
    script(LARGE, word)
    (blob,) = (log / "blobs").iterdir()
    assert not serious(doctor(log))
    blob.unlink()

    assert f"The blob {blob} is missing; a step of run large" in serious(doctor(log))


def test_journals_that_are_not_folded_are_a_note_until_they_are(script, cli, log):
    script(DYING, "die")
    script(COMPLETED)
    script(DYING, "die")
    assert "Not in log.duckdb yet: 2 events in 1 journal." in serious(doctor(log), "note")

    cli("fold")

    assert "Not in log.duckdb" not in serious(doctor(log), "note")


def test_a_damaged_database_is_rebuilt_while_journals_hold_everything(script, cli, log):
    script(DYING, "die")
    cli("fold")
    (log / "log.duckdb").write_bytes(b"not a database" * 1000)
    assert "jupyter durable doctor --rebuild" in serious(doctor(log))

    answer = cli("doctor", "--rebuild")

    assert answer.code == 0
    assert answer.err == "log.duckdb was made anew from the journals, 4 events; the old one lies beside it.\n"
    assert cli("sql", "SELECT name FROM runs", "--json").json["rows"] == [["literature-review"]]


def test_a_database_that_finished_runs_lie_in_is_not_rebuilt(script, cli, log):
    script(COMPLETED)
    (log / "log.duckdb").write_bytes(b"not a database" * 1000)
    assert "cannot be read" in serious(doctor(log))
    assert "--rebuild" not in serious(doctor(log))

    assert (
        "cannot be rebuilt: finished runs lie in nothing else: doubling (main)" in cli("doctor", "--rebuild").sentence
    )


def test_a_database_that_is_gone_or_was_changed(script, log):
    script(COMPLETED)
    with duckdb.connect(str(log / "log.duckdb")) as connection:
        connection.execute("UPDATE lines SET data = '5' WHERE type = 'step_completed'")
    assert "does not hold execution" in serious(doctor(log))
    assert "(changed)" in serious(doctor(log))

    with duckdb.connect(str(log / "log.duckdb")) as connection:
        connection.execute("DELETE FROM lines WHERE type = 'step_completed'")
    assert "(only 4 of 6 events)" in serious(doctor(log))

    (log / "log.duckdb").unlink()
    assert "finished runs lie in nothing else: doubling (main)" in serious(doctor(log))


def test_a_database_that_this_process_has_open_is_a_note(script, log):
    script(COMPLETED)

    with duckdb.connect(str(log / "log.duckdb")):
        findings = doctor(log)

    assert "held open by another connection of this process" in serious(findings, "note")


class Ahead(clock.SystemClock):
    """Clocks that differ by an hour."""

    time = staticmethod(lambda: clock.SystemClock.time() - 3600)


def test_events_in_the_future_are_a_note(script, log):
    script(COMPLETED)

    with clock.use(Ahead()):
        findings = doctor(log)

    assert "1 execution up to 3" in serious(findings, "note")
    assert not any("clock agrees" in finding.what for finding in findings)


def test_a_run_that_needs_a_person_is_a_note(script, log):
    edited = """
@step
def first(): return EDIT
@step
def second(): return 2
with durable.run("edited"): first(), second()
"""
    script(edited.replace("EDIT", "1"))
    script(edited.replace("EDIT", "3"))

    assert "Run edited (main-2) has stopped and needs you." in serious(doctor(log), "note")


# -- The machine -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("free", "level"), [(5 << 30, "ok"), (500 << 20, "note"), (5 << 20, "problem")])
def test_free_space(log, monkeypatch, free, level):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 40, (1 << 40) - free, free))

    assert "free on the disk" in serious(list(machine.disk(log)), level)


MOUNTS = """\
22 1 0:20 / / rw - overlay overlay rw
30 22 0:44 / /home rw,relatime shared:1 - ext4 /dev/sda1 rw
31 22 0:45 / /home/ann\\040b/team rw - nfs4 server:/team rw
32 22 0:46 / /tmp rw - tmpfs tmpfs rw
33 22 0:47 / /s3 rw - fuse.s3fs s3fs rw
nonsense
"""


@pytest.mark.parametrize(
    ("place", "kind", "said"),
    [
        ("/srv/x", "overlay", "goes with the container"),
        ("/home/ann/x", "ext4", ""),
        ("/home/ann b/team/x", "nfs4", "network file system (nfs4)"),
        ("/tmp/x", "tmpfs", "gone when the machine restarts"),
        ("/s3/x", "fuse.s3fs", "network file system (fuse.s3fs)"),
    ],
)
def test_the_kind_of_file_system(tmp_path, monkeypatch, place, kind, said):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)

    assert machine.file_system(Path(place), mounts) == kind
    monkeypatch.setattr(machine, "file_system", lambda path: kind)
    notes = serious(list(machine.disk(tmp_path)), "note")
    assert said in notes
    assert bool(notes) is bool(said)


def test_a_system_that_lists_no_mounts(tmp_path):
    assert machine.file_system(tmp_path, tmp_path / "none") == ""


def test_packages_that_are_missing_or_too_old(tmp_path, monkeypatch):
    def version(name):
        if name == "filelock":
            raise metadata.PackageNotFoundError(name)
        return {"duckdb": "1.4.2"}.get(name, "99.0")

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(
        metadata, "requires", lambda name: ["duckdb>=2", "filelock>=3.15", "pandas>=2; extra == 'test'"]
    )

    findings = list(machine.packages(tmp_path))

    assert "duckdb 1.4.2 is installed, and 2 or newer is needed." in serious(findings)
    assert "The package filelock is not installed." in serious(findings)
    assert "pandas" not in str(findings)


def test_the_extension_is_loaded_in_a_process_of_its_own_and_nothing_of_the_folder_runs(folder, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    (folder / "msgspec.py").write_text("open('ran', 'w')")

    (finding,) = machine.extension(folder)

    assert finding.level == "ok", finding.what
    assert not (folder / "ran").exists()


def test_an_extension_that_does_not_load_is_a_problem(folder, monkeypatch):
    monkeypatch.setattr(machine, "_loaded_here", lambda: False)
    monkeypatch.setattr(machine, "_LOAD", "raise ImportError('no module named nope')")

    (finding,) = machine.extension(folder)

    assert finding.what == "IPython cannot load the extension: ImportError: no module named nope."
