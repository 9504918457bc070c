"""G18, G19, G20, G29: the files of the log, read, held and damaged by others, and the process that is too busy."""

from __future__ import annotations

import os
import signal
import time

import duckdb
import pytest

from tests.cases.conftest import refused

SLOW = """
@step
def first(): hit("first"); return 1
@step
def other(): hit("other"); return 2
"""
SLOW_CELL = "%%durable slow\na = first()\nhold()\na + 1"


def test_g18_the_command_line_reads_the_log_while_the_kernel_writes_it(case):
    """CLI part; the panel is issue 5's. Also a second kernel on the folder, and a third that wants the same run."""
    case.open(SLOW)
    request = case.kernel.run_until("at hold", SLOW_CELL)

    assert [(run["name"], run["status"]) for run in case.json("runs")["runs"]] == [("slow", "running")]
    assert [(each["name"], each["status"]) for each in case.json("show", "slow")["steps"]] == [
        ("first", "completed"), ("hold", "running"),
    ]  # fmt: skip
    assert case.json("sql", "SELECT name, status FROM runs")["rows"] == [["slow", "running"]]
    for words in (["runs"], ["show", "slow"], ["doctor"], ["fold"]):
        done = case.shell(*words)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr

    second = case.second()
    assert second.ok("%%durable elsewhere\nother()").results == ["2"]
    busy = second.run(SLOW_CELL)
    message = refused(busy, "BranchBusy", "`slow`", f"process {case.kernel.pid}")
    assert "IOException" not in message
    assert case.effects.tags() == ["first", "other"]

    (case.folder / "go").touch()
    assert case.kernel.collect(request).results == ["2"]
    assert {run["name"]: run["status"] for run in case.json("runs")["runs"]} == {
        "slow": "completed",
        "elsewhere": "completed",
    }


def test_g18_somebody_holds_the_database_open_for_writing(case):
    """A DuckDB client of the user's: the durable cell goes on beside it and loses nothing."""
    case.open(SLOW)
    case.kernel.ok("%%durable before\nfirst()")
    connection = duckdb.connect(str(case.durable / "log.duckdb"))
    try:
        ran = case.kernel.ok("%%durable beside\nother()")
        assert ran.results == ["2"]
        assert {run["name"] for run in case.json("runs")["runs"]} == {"before", "beside"}
    finally:
        connection.close()

    assert {row[0] for row in case.json("sql", "SELECT name FROM runs")["rows"]} == {"before", "beside"}


# G19 ----------------------------------------------------------------------------------------------------------------

TOUCH = """
import hashlib, pathlib, shutil
def touch_log():
    for path in pathlib.Path(".durable").rglob("*"):
        if path.is_file():
            with open(path, "rb") as f: f.read(4)
            hashlib.file_digest(path.open("rb"), "sha256")
    shutil.copytree(".durable", "backup", dirs_exist_ok=True)
"""


@pytest.mark.parametrize("how", ["in the same process", "in a child", "in a thread"])
def test_g19_something_in_the_kernel_opens_and_closes_the_files_of_the_log(case, how):
    run = {
        "in the same process": "touch_log()",
        "in a child": "pid = os.fork()\nif pid == 0: touch_log(); os._exit(0)\nos.waitpid(pid, 0)",
        "in a thread": "t = threading.Thread(target=touch_log); t.start(); t.join()",
    }[how]
    case.open(SLOW + TOUCH)
    case.kernel.ok("%%durable before\nother()")  # so that there is a database too
    cell = f"%%durable held\na = first()\n{run}\nhold()\n{run}\nb = other()\na + b"
    request = case.kernel.run_until("at hold", cell)
    second = case.second()

    refused(second.run(cell), "BranchBusy", "`held`", f"process {case.kernel.pid}")
    assert second.ok("%%durable second\nfirst()").results == ["1"]
    (case.folder / "go").touch()

    assert case.kernel.collect(request).results == ["3"]
    second.end(now=False)
    case.kernel.end(now=False)
    assert case.effects.tags() == ["other", "first", "first", "other"]
    assert case.statuses("held") == [("first", "completed"), ("hold", "completed"), ("other", "completed")]
    assert case.statuses("second") == [("first", "completed")]
    assert case.json("doctor")["ok"] is True
    with duckdb.connect(str(case.durable / "log.duckdb"), read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM steps").fetchall() == [(5,)]


# G20 ----------------------------------------------------------------------------------------------------------------

FIFTY = """
@step
def pay(n): hit(f"{n} {durable.idempotency_key()}"); return {"n": n, "receipt": f"receipt number {n}"}
"""
FIFTY_CELL = "%%durable fifty\npaid = [pay(n) for n in range(50)]\nhold()\nsum(each['n'] for each in paid)"


@pytest.fixture
def fifty(case):
    """Fifty steps are done, and the kernel is killed after the fiftieth; gives its journal."""
    case.open(FIFTY)
    case.kill_at("hold", FIFTY_CELL)
    (journal,) = (case.durable / "journal").glob("*.jsonl")
    return journal


def numbers(case):
    """How often each payment was made, and with how many different keys."""
    made = [tag.split() for tag in case.effects.tags()]
    return {int(n): ([m for m, _ in made].count(n), len({key for m, key in made if m == n})) for n, _ in made}


def test_g20_a_plain_kill_keeps_all_fifty(case, fifty):
    ran = case.rerun(FIFTY_CELL)

    assert ran.results == ["1225"], ran.errors
    assert numbers(case) == dict.fromkeys(range(50), (1, 1))


@pytest.mark.parametrize("tail", ["cut by 700 bytes", "cut by 7000 bytes", "zeroes"])
def test_g20_a_torn_tail_goes_on_from_the_first_step_without_a_result(case, fifty, tail):
    """With the same idempotency keys; what a resume reads is the journal, not DuckDB's own log file."""
    whole = fifty.read_bytes()
    cut = {"cut by 700 bytes": 700, "cut by 7000 bytes": 7000, "zeroes": 900}[tail]
    fifty.write_bytes(whole[:-cut] + (b"\0" * cut if tail == "zeroes" else b""))

    ran = case.rerun(FIFTY_CELL)

    assert ran.results == ["1225"], ran.errors
    made = numbers(case)
    again = [n for n in made if made[n][0] == 2]
    assert again == list(range(50 - len(again), 50))
    assert 0 < len(again) < 40
    assert all(keys == 1 for _, keys in made.values())


def _flip(lines):
    lines[60] = lines[60].replace(b"receipt number", b"receipt nUmber")


def _overwrite(lines):
    whole = b"\n".join(lines)
    place = len(whole) // 2
    lines[:] = (whole[:place] + b"#" * 64 + whole[place + 64 :]).split(b"\n")


def _edit_value(lines):
    """Somebody writes another receipt, with a right checksum of the line but without the key."""
    import json

    index = next(i for i, line in enumerate(lines) if b"receipt number 20" in line)
    lines[index] = lines[index].replace(b"number 20", b"number 99")
    assert json.loads(lines[index])


def _double(lines):
    lines.insert(40, lines[40])


def _swap(lines):
    lines[40], lines[41] = lines[41], lines[40]


def _take_out(lines):
    del lines[40:42]


def _zero(lines):
    lines[40] = b"\0" * len(lines[40])


def _change_key(lines):
    lines[40] = lines[40].replace(b'"digest":"', b'"digest":"x', 1)


DAMAGES = {
    "64 bytes overwritten": _overwrite, "byte flipped in a value": _flip, "value edited": _edit_value,
    "line twice": _double,
    "lines swapped": _swap, "lines taken out": _take_out, "line of zeroes": _zero,
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_g20_a_damaged_middle_is_noticed_and_nothing_is_billed_again(case, fifty, damage):
    lines = fifty.read_bytes().split(b"\n")
    before = list(lines)
    DAMAGES[damage](lines)
    assert lines != before
    fifty.write_bytes(b"\n".join(lines))
    kept = fifty.read_bytes()

    ran = case.rerun(FIFTY_CELL)

    assert ran.reply["ename"] in ("LogDamaged", "LogUntrusted"), (ran.reply, damage)
    refused(ran, ran.reply["ename"], fifty.name, "line", hidden=("receipt number",))
    assert len(case.effects.tags()) == 50
    assert fifty.read_bytes() == kept
    listed = case.shell("doctor")
    assert listed.returncode == 1
    assert fifty.name in listed.stdout
    # What the case says of a status: it can be asked for, and does not call the run sound.
    assert case.shell("runs").returncode in (0, 1)
    assert "Traceback" not in case.shell("runs").stderr
    # The file put back as it was, the run goes on.
    fifty.write_bytes(b"\n".join(before))
    assert case.rerun(FIFTY_CELL).results == ["1225"]
    assert len(case.effects.tags()) == 50


@pytest.mark.parametrize("how", ["torn", "damaged", "gone", "not a database"])
def test_g20_a_database_that_is_hurt_loses_nothing(case, fifty, how):
    """The completed history lies in log.duckdb; the kernel was killed after another run had been folded into it."""
    (case.folder / "go").touch()
    case.new_kernel()
    case.kernel.ok(FIFTY_CELL)
    case.kill()
    database = case.durable / "log.duckdb"
    content = database.read_bytes()
    middle = len(content) // 2
    if how == "gone":
        database.unlink()
    else:
        database.write_bytes(
            {"torn": content[:-5000], "damaged": content[:middle] + b"\0" * 4096 + content[middle + 4096 :]}.get(
                how, b"text"
            )
        )

    ran = case.rerun(FIFTY_CELL)

    if ran.status == "ok":
        assert ran.results == ["1225"]
    else:
        refused(ran, "LogDamaged", "log.duckdb")
    assert len(case.effects.tags()) == 50


# G29 ----------------------------------------------------------------------------------------------------------------

BUSY = """
import re, resource
resource.setrlimit(resource.RLIMIT_CPU, (150, 150))  # if the test cannot end it any more
@step
def parse(): hit("parse"); return bool(re.match(r"(a+)+$", "a" * 60 + "b"))
"""


@pytest.mark.parametrize("kind", ["busy", "stopped"])
def test_g29_an_owner_that_says_nothing_is_no_dead_owner(case, kind):
    """A regular expression that holds the GIL for years; and a process that is stopped by SIGSTOP."""
    case.open(BUSY + SLOW)
    cell = "%%durable parsing\nfirst()\nparse()" if kind == "busy" else SLOW_CELL.replace("slow", "parsing")
    if kind == "busy":
        case.kernel.send(cell)  # what it prints does not come: the thread that would send it waits for the GIL
        while "parse" not in case.effects.tags():
            time.sleep(0.05)
    else:
        case.kernel.run_until("at hold", cell)
        os.kill(case.kernel.pid, signal.SIGSTOP)
    second = case.second()
    before = case.effects.tags()

    for _ in range(2):
        time.sleep(1)  # there is no heartbeat that could be missed
        refused(second.run(cell), "BranchBusy", "`parsing`", f"process {case.kernel.pid}")
        assert [(run["name"], run["status"]) for run in case.json("runs")["runs"]] == [("parsing", "running")]
        assert case.json("show", "parsing")["steps"][-1]["status"] == "running"
    # Neither can a decision take it over while its process lives.
    number = case.json("show", "parsing")["steps"][-1]["number"]
    settled = case.shell("settle", "parsing", str(number), "rerun")
    assert settled.returncode == 1
    assert f"process {case.kernel.pid}" in settled.stderr
    assert case.effects.tags() == before

    case.kill()
    assert [run["status"] for run in case.json("runs")["runs"]] == ["interrupted"]
    assert case.effects.count("first") == 1


def test_g29_a_lock_is_not_inherited_by_a_child_that_outlives_the_kernel(case):
    """A child of the kernel holds its descriptors after the kernel was killed: the run must be free all the same."""
    case.open(SLOW + "import subprocess")
    cell = "%%durable orphan\na = first()\nchild = subprocess.Popen(['sleep', '60'], close_fds=False)\nhold()\na"
    case.kill_at("hold", cell)

    ran = case.rerun(cell.replace("subprocess.Popen(['sleep', '60'], close_fds=False)", "subprocess.Popen(['true'])"))

    assert ran.reply.get("ename") != "BranchBusy", ran.reply
    assert case.effects.tags() == ["first"]
