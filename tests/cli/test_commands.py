"""Every command on real logs: what people see, what programs get, and what it does."""

from __future__ import annotations

import shlex

import pytest

from jupyter_durable.cli.arguments import COMMANDS
from jupyter_durable.demo import main_job
from jupyter_durable.demo.kernels import NotebookFailed
from tests.cli.conftest import ASKING, COMPLETED, DYING


def columns(text: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in text.splitlines()]


def test_runs_lists_what_ran_last_first(script, cli):
    script(COMPLETED)
    script(DYING, "die")

    answer = cli("runs")

    assert answer.code == 0
    assert answer.err == ""
    head, *rows = columns(answer.out)
    assert head == "RUN STATUS BRANCH EXECUTIONS REPLAYED LIVE LAST ID NOTEBOOK".split()
    assert [row[:4] for row in rows] == [
        ["literature-review", "interrupted", "main", "1"],
        ["doubling", "completed", "main", "1"],
    ]


def test_runs_as_json_has_a_version_and_every_field(script, cli, folder):
    script(COMPLETED)
    script(DYING, "die")

    shape = cli("runs", "--json").json

    assert set(shape) == {"format", "log", "runs", "unreadable"}
    assert (shape["format"], shape["log"], shape["unreadable"]) == (1, str(folder / ".durable"), [])
    dying, doubling = shape["runs"]
    assert set(dying) == {
        "run", "name", "status", "branch", "branches", "executions", "replayed", "live", "last", "notebook"
    }  # fmt: skip
    assert (doubling["replayed"], doubling["live"]) == (0, 2)
    assert (dying["replayed"], dying["live"]) == (None, None)


def test_an_empty_log_has_no_run(script, cli):
    script("from jupyter_durable.log import open_log\nopen_log('.durable')")

    assert cli("runs").out.startswith("No run yet in ")
    assert cli("runs", "--json").json["runs"] == []
    assert "no run" in cli("show", "any").sentence


def test_show_tells_of_executions_and_steps(script, cli):
    script(DYING, "die")
    script(DYING)

    shape = cli("show", "literature-review", "--json").json

    assert set(shape) == {
        *("format", "log", "run", "branch", "untrusted"),
        *("branches", "executions", "steps", "notices", "decisions", "errors"),
    }
    assert shape["run"]["status"] == "completed"
    assert [each["status"] for each in shape["executions"]] == ["interrupted", "completed"]
    assert [(each["replayed"], each["live"]) for each in shape["executions"]] == [(None, None), (1, 2)]
    assert [(each["name"], each["status"], each["attempts"]) for each in shape["steps"]] == [
        ("plan", "completed", 1),
        ("search", "completed", 1),
        ("search", "completed", 1),
    ]
    assert all(each["seconds"] >= 0 for each in shape["steps"])
    assert shape["errors"] == []


def test_show_of_an_interrupted_run_says_which_step_is_in_doubt_and_whose_process_died(script, cli):
    script(DYING, "die")

    answer = cli("show", "literature-review")

    assert answer.code == 0
    assert ["3", "search", "in", "doubt", "1"] in columns(answer.out)
    assert " is gone" in answer.out


def test_show_tells_of_failures_attempts_and_scopes(script, cli):
    script(
        """
@step(retries=1, backoff=0)
def inner(): raise ValueError("no luck")
@step
def outer(): return inner()
with durable.run("failing"):
    outer()
"""
    )

    shape = cli("show", "failing", "--json").json
    text = cli("show", "failing").out

    outer, inner = shape["steps"]
    assert (outer["scope"], outer["status"]) == ("", "failed")
    assert (inner["scope"][:6], inner["status"], inner["attempts"]) == ("outer:", "failed", 2)
    assert {each["message"] for each in shape["errors"]} == {"ValueError: no luck"}
    assert "step 2: inner: ValueError: no luck" in text.splitlines()


def test_show_takes_the_beginning_of_an_id_and_a_branch(script, cli):
    script(COMPLETED)
    script(COMPLETED.replace('"doubling"', '"doubling", fresh=True'))
    run = cli("runs", "--json").json["runs"][0]["run"]

    newest = cli("show", run[:6], "--json").json
    first = cli("show", run[:6], "--branch", "main", "--json").json

    assert (newest["branch"], first["branch"]) == ("main-2", "main")
    assert [each["name"] for each in newest["branches"]] == ["main", "main-2"]
    assert "has no branch `side`" in cli("show", "doubling", "--branch", "side").sentence


def test_sql_answers_with_a_table_and_with_json(script, cli):
    script(COMPLETED)

    table = cli("sql", "SELECT name, status, value FROM steps ORDER BY seq")
    shape = cli("sql", "SELECT name, 1.5 AS half, [1, 2] AS list, NULL AS none FROM steps", "--json").json

    assert columns(table.out) == [
        ["name", "status", "value"],
        ["double", "completed", "2"],
        ["double", "completed", "4"],
        ["(2", "rows)"],
    ]
    assert shape["columns"] == ["name", "half", "list", "none"]
    assert shape["rows"] == [["double", 1.5, [1, 2], None]] * 2
    assert (shape["format"], shape["partial"]) == (1, False)


def test_sql_sees_what_no_fold_has_taken_in(script, cli):
    script(DYING, "die")

    shape = cli("sql", "SELECT name, status FROM steps ORDER BY seq", "--json").json

    assert shape["rows"] == [["plan", "completed"], ["search", "in_doubt"]]


def test_settle_gives_a_step_its_value_and_the_run_goes_on_with_it(script, cli):
    script(DYING, "die")

    answer = cli("settle", "literature-review", "search", "value", '"found"')

    assert answer.out == "Step search (3) counts as completed. Run the cell again to go on.\n"
    assert script(DYING).stdout == "['found', 'b!']\n"


def test_settle_by_number_lets_a_step_run_again_or_fail(script, cli):
    careful = DYING.replace("@step\ndef search", "@step(at_most_once=True)\ndef search")
    script(careful, "die")
    assert "InDoubtError" in script(careful).stderr

    again = cli("settle", "literature-review", "3", "rerun", "--json")

    assert again.json["step"]["name"] == "search"
    assert script(careful).stdout == "['a!', 'b!']\n"


def test_settle_fail_makes_the_step_fail(script, cli):
    careful = DYING.replace("@step\ndef search", "@step(at_most_once=True)\ndef search")
    script(careful, "die")

    answer = cli("settle", "literature-review", "search", "fail")

    assert answer.out == "Step search (3) counts as failed. Run the cell again to go on.\n"
    assert cli("show", "literature-review", "--json").json["steps"][1]["status"] == "failed"


def test_settle_salvage_takes_the_plainer_form(script, cli):
    unstorable = """
import threading
@step
def fetch(): return {"answer": 42, "lock": threading.Lock()}
with durable.run("salvage"):
    print(fetch())
"""
    assert "UnstorableValue" in script(unstorable).stderr

    answer = cli("settle", "salvage", "fetch", "salvage")

    assert answer.code == 0, answer.err
    assert "42" in script(unstorable).stdout


def test_settle_of_a_step_that_is_not_open_to_it_is_a_sentence(script, cli):
    script(COMPLETED)

    assert "Step `double` is not in doubt" in cli("settle", "doubling", "double", "rerun").sentence
    assert "Step `17` is not in doubt" in cli("settle", "doubling", "17", "rerun").sentence


EDITED = """
@step
def first(): return EDIT
@step
def second(): print("second executed", file=sys.stderr); return 2
with durable.run("edited"):
    first(); print(second())
"""


@pytest.mark.parametrize(("choice", "executed"), [("reuse", False), ("pure", True), ("rerun", True)])
def test_decide_says_what_becomes_of_finished_steps_after_an_edit(script, cli, choice, executed):
    script(EDITED.replace("EDIT", "1"))
    assert "DecisionNeeded" in script(EDITED.replace("EDIT", "3")).stderr

    answer = cli("decide", "edited", choice)
    after = script(EDITED.replace("EDIT", "3"))

    assert answer.code == 0
    assert answer.out.startswith("Run edited (main")
    assert after.stdout == "2\n", after.stderr
    assert ("second executed" in after.stderr) is executed


def test_decide_as_json_names_the_branch(script, cli):
    script(DYING, "die")

    shape = cli("decide", "literature-review", "rerun", "--json").json

    assert (shape["branch"], shape["reuse"]) == ("main", "none")
    assert cli("show", "literature-review", "--json").json["decisions"][0]["reuse"] == "none"


def test_fold_copies_what_is_not_in_the_database_yet(script, cli):
    script(DYING, "die")

    first, second = cli("fold"), cli("fold", "--json")

    assert first.out == "4 events copied into log.duckdb.\n"
    assert (second.json["events"], second.json["note"]) == (0, "")


def test_a_log_of_another_key_is_shown_and_replayed_only_when_trusted(script, cli, key_file):
    script(DYING, "die")
    key_file.rename(key_file.with_name("of-the-other"))
    script(COMPLETED.replace("doubling", "own"), "")  # refused: an existing log never gets a new key
    script("from jupyter_durable.values.trust import load_key\nload_key(True)")

    shown = cli("show", "literature-review", "--json").json

    assert "another key" in shown["untrusted"]
    assert [each["status"] for each in shown["steps"]] == ["completed", "in_doubt"]
    assert "unverified" in cli("show", "literature-review").out
    assert "LogUntrusted" in script(DYING).stderr

    execution = shown["executions"][0]["execution"]
    answer = cli("trust", execution[:20])

    assert answer.out.startswith(f"Execution {execution} of run literature-review (main), signed with key ")
    assert cli("show", "literature-review", "--json").json["untrusted"] == ""
    assert script(DYING).stdout == "['a!', 'b!']\n"


def test_trust_needs_one_execution(script, cli):
    script(COMPLETED)
    script(COMPLETED)

    assert "There is no execution `nope`" in cli("trust", "nope").sentence
    assert "Several executions begin with ``" in cli("trust", "").sentence


def test_an_execution_of_the_own_key_needs_no_trust(script, cli):
    script(DYING, "die")
    execution = cli("show", "literature-review", "--json").json["executions"][0]["execution"]

    assert "is signed with your own key" in cli("trust", execution).sentence


def test_demo_passes_its_options_on_and_its_verdict_back(cli, monkeypatch, tmp_path):
    asked = []

    class Report:
        ok = False

    monkeypatch.setattr(main_job, "run", lambda **options: asked.append(options) or Report())

    assert cli("demo", "--json", "--keep", str(tmp_path), "--notebook", "x.ipynb").code == 1
    assert asked[0]["json"] is True
    assert [asked[0]["keep"].name, asked[0]["notebook"].name] == [tmp_path.name, "x.ipynb"]


def test_demo_tells_why_a_notebook_failed_in_a_sentence(cli, monkeypatch):
    def fails(**options):
        raise NotebookFailed("Traceback\n  ...\n\x1b[31mZeroDivisionError\x1b[0m: division by zero\n")

    monkeypatch.setattr(main_job, "run", fails)

    assert cli("demo").sentence.endswith("ZeroDivisionError\\x1b[0m: division by zero")
    assert cli("demo", "--json").json["error"] == "NotebookFailed"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_example_of_every_command_works(command, script, cli, key_file, monkeypatch):
    script(DYING, "die")
    execution = cli("show", "literature-review", "--json").json["executions"][0]["execution"]
    monkeypatch.setattr(main_job, "run", lambda **options: type("Report", (), {"ok": True}))
    words = shlex.split(command.example.replace("8c1f", execution))
    if command.name == "approve":
        script(ASKING.replace("literature-review", "asks"))
        words[3] = str(cli("waiting", "--json").json["waiting"][0]["number"])
    if command.name == "resume":
        assert cli("cancel", "literature-review").code == 0
    if command.name == "diff":
        assert cli("fork", "literature-review", "--at", "plan").code == 0
    if command.name == "samples":
        script('from jupyter_durable.running import RunContext\nwith RunContext("literature-review", sample=2): pass')
    if command.name == "trust":
        key_file.write_bytes(b"k" * 32)

    answer = cli(*words[2:])

    assert words[:2] == ["jupyter", "durable"]
    assert answer.code == 0, answer.err


def test_what_waits_is_listed_answered_and_goes_on(script, cli):
    parked = script(ASKING)
    assert "waits for an answer to request" in parked.stderr

    listed = cli("waiting")
    assert "Go on?" in listed.out
    assert "yes|no" in listed.out
    (wait,) = cli("waiting", "--json").json["waiting"]
    assert {"kind": wait["kind"], "question": wait["question"], "answered": wait["answered"]} == {
        "kind": "approval", "question": "Go on?", "answered": None,
    }  # fmt: skip

    assert "must be yes or no" in cli("approve", str(wait["number"]), "perhaps").sentence
    assert "is answered. Run its cell again" in cli("approve", str(wait["number"]), "yes", "--by", "ada").out
    assert "was answered already by ada" in cli("approve", str(wait["number"]), "no").sentence
    assert cli("waiting", "--json").json["waiting"][0]["answered"]["by"] == "ada"

    script(ASKING)
    assert "signal payment" in cli("waiting").out
    assert "was sent" in cli("signal", "literature-review", "payment", "cash", "--id", "hook").out
    assert "counts once" in cli("signal", "literature-review", "payment", "cash", "--id", "hook").out
    assert script(ASKING).stdout == "True cash\n"
    assert cli("waiting").out == "Nothing waits.\n"


def test_a_parked_run_is_listed_as_parked_and_its_question_as_waiting(script, cli):
    script(ASKING)

    assert "parked" in cli("runs").out
    shown = cli("show", "literature-review", "--json").json
    assert shown["steps"][-1]["status"] == "waiting"
    assert cli("sql", "SELECT question, kind FROM waiting", "--json").json["rows"] == [["Go on?", "approval"]]
    assert cli("sql", "SELECT status FROM steps ORDER BY seq", "--json").json["rows"] == [["completed"], ["waiting"]]


def test_an_answer_to_nothing_says_what_waits(script, cli):
    script(COMPLETED)

    assert cli("approve", "7", "yes").sentence.endswith("Nothing waits for an answer to `7`. Waiting: nothing.")
