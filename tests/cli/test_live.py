"""Looking at a log while others write it, hold it or have died in it (cases G18, G19, G29), and at hostile names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import COMPLETED, DYING, LIVE


def statuses(cli) -> dict[str, str]:
    """Name of each run -> its status."""
    return {view["name"]: view["status"] for view in cli("runs", "--json").json["runs"]}


def test_g18_a_live_run_shows_as_running_while_its_kernel_holds_the_branch_and_others_write(live, script, cli):
    process = live(LIVE, "first")
    live(LIVE, "second")
    script(COMPLETED)

    assert statuses(cli) == {"first": "running", "second": "running", "doubling": "completed"}
    shown = cli("show", "first", "--json").json
    assert [each["status"] for each in shown["steps"]] == ["completed", "running"]
    assert shown["executions"][0]["pid"] == process.pid
    assert f"process {process.pid} on " in cli("show", "first").out
    rows = cli("sql", "SELECT name, status FROM runs ORDER BY name", "--json").json
    assert rows["rows"] == [["doubling", "completed"], ["first", "running"], ["second", "running"]]
    assert rows["partial"] is False
    assert cli("fold").code == 0
    doctor = cli("doctor", "--json").json
    assert f"Run first (main) is being executed by process {process.pid} on " in str(doctor)
    assert doctor["ok"] is True


def test_g18_a_live_run_ends_undisturbed(live, cli):
    process = live(LIVE, "first")
    for words in (["runs"], ["show", "first"], ["sql", "SELECT 1"], ["fold"], ["doctor"]):
        assert cli(*words).code == 0

    process.communicate("go on\n", timeout=60)

    assert process.returncode == 0
    assert statuses(cli) == {"first": "completed"}


def test_a_killed_run_shows_as_interrupted_and_its_step_as_in_doubt(live, cli):
    process = live(LIVE, "first")
    process.kill()
    process.wait()

    assert statuses(cli) == {"first": "interrupted"}
    assert [each["status"] for each in cli("show", "first", "--json").json["steps"]] == ["completed", "in_doubt"]
    assert "Run first (main) was interrupted." in cli("doctor").out


@pytest.mark.parametrize("words", [["decide", "first", "rerun"], ["settle", "first", "wait", "rerun"]])
def test_a_branch_that_is_being_executed_cannot_be_decided_about(live, cli, words):
    process = live(LIVE, "first")

    assert f"is being executed by process {process.pid}" in cli(*words).sentence
    assert cli(*words, "--json").json["error"] == "BranchBusy"


def test_g18_a_program_that_holds_the_database_is_named_and_nothing_fails(script, cli, live):
    script(COMPLETED)
    script(DYING, "die")
    holder = live(
        "import duckdb\nc = duckdb.connect('.durable/log.duckdb')\nprint('begun', flush=True)\nsys.stdin.read()"
    )

    assert statuses(cli) == {"literature-review": "interrupted", "doubling": "completed"}
    assert cli("show", "literature-review").code == 0
    answer = cli("sql", "SELECT name FROM runs ORDER BY name", "--json")
    assert answer.json["rows"] == [["doubling"], ["literature-review"]]
    assert answer.json["partial"] is True
    assert "open in another program" in answer.err
    assert f"is held open by process {holder.pid} (" in cli("doctor").out


def test_g19_the_database_is_never_opened_as_a_plain_file(script, folder):
    """In a process that holds it, closing any descriptor of the file would drop DuckDB's lock."""
    script(COMPLETED)
    script(DYING, "die")
    code = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "from jupyter_durable.cli import main\n"
        "for words in (['doctor'], ['runs'], ['show', 'doubling'], ['sql', 'SELECT 1'], ['fold']):\n"
        "    assert main(words) == 0\n"
        "assert any('format.json' in name for name in opened)\n"
        "print([name for name in opened if 'log.duckdb' in name], file=sys.stderr)\n"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)

    assert done.stderr == "[]\n"


def test_g29_a_kernel_that_is_too_busy_to_say_anything_is_running(live, cli, effects, script):
    busy = f"""
import re
{effects.code}
@step
def parse():
    hit("parse")
    print("begun", flush=True)
    return bool(re.match(r"(a+)+$", "a" * 60 + "b"))  # holds the GIL for years
with durable.run("busy"):
    parse()
"""
    live(busy)

    second = script(busy)

    assert statuses(cli) == {"busy": "running"}
    assert "BranchBusy" in second.stderr
    assert effects.count("parse") == 1


HOSTILE = "\x1b[2J\x1b]0;owned\x07<img src=x onerror=alert(1)>\u202e\u200b\r\nfake  completed\x9b31m" + "x" * 3000


@pytest.fixture
def hostile(script, folder):
    """A log whose run, step, error and notice want to do something to the terminal."""
    done = script(
        f"""
NAME = {HOSTILE!r}
@step(name=NAME)
def named(): return NAME
@step
def fails(): raise ValueError(NAME)
@step(name=NAME + "!")
def dies(): os.kill(os.getpid(), signal.SIGKILL)
with durable.run(NAME):
    named()
    try: fails()
    except ValueError: dies()
"""
    )
    assert done.returncode == -9


@pytest.mark.parametrize("command", ["runs", "show", "sql", "doctor", "unknown", "settle", "decide", "trust"])
def test_names_that_attack_the_terminal_are_inert(hostile, cli, command):
    run = cli("runs", "--json").json["runs"][0]["run"]
    words = {
        "sql": ["sql", "SELECT name, run, value FROM steps"],
        "show": ["show", run],
        "unknown": ["show", "nope"],
        "settle": ["settle", run, "named", "rerun"],
        "decide": ["decide", run, "pure"],
        "trust": ["trust", cli("show", run, "--json").json["executions"][0]["execution"]],
    }.get(command, [command])

    answer = cli(*words)

    for text in (answer.out, answer.err):
        assert all(line.isprintable() for line in text.split("\n"))
        assert "\nfake" not in text
    assert "\\x1b[2J" in answer.out + answer.err


@pytest.mark.parametrize("command", ["runs", "show"])
def test_a_name_of_any_length_takes_a_column_of_a_table(hostile, cli, command):
    run = cli("runs", "--json").json["runs"][0]["run"]

    answer = cli(*(["runs"] if command == "runs" else ["show", run]))

    rows = [line for line in answer.out.splitlines() if "…" in line]
    assert len(rows) == (1 if command == "runs" else 2)
    assert all(len(row) < 300 for row in rows)


def test_json_has_names_as_they_are_in_pure_ascii(hostile, cli):
    answer = cli("runs", "--json")

    assert answer.json["runs"][0]["name"] == HOSTILE
    assert answer.out.isascii()
    assert all(line.isprintable() for line in answer.out.splitlines())
