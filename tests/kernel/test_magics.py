"""`%durable`: the words of the operator in a notebook."""

from __future__ import annotations

import re

import pytest

from jupyter_durable.kernel.magics import WORDS

STEPS = """
import os
@step
def ask(n): return n
@step(at_most_once=True)
def transfer(n):
    if not os.path.exists(f"allowed{n}"): raise KeyboardInterrupt
    return n
@step
def opens(): return (x for x in "abc")
"""


@pytest.fixture
def cells(kernel):
    """The kernel with steps that come to need a person."""
    kernel.ok(STEPS)
    return kernel


def shown(ran):
    (text,) = ran.displays
    return text


def refused(cells, line):
    ran = cells.run(line)
    assert (ran.status, ran.error) == ("error", f"{ran.reply['ename']}: {ran.reply['evalue']}")
    return ran.error


def test_without_a_word_it_lists_the_runs_of_the_notebook(cells):
    cells.ok("%%durable listed\nask(1)\nask(2)")
    cells.run("%%durable broken\nask(1)\n1 / 0")

    text = shown(cells.ok("%durable"))

    assert re.search(r"^listed +completed +main +0 +2 ", text, re.MULTILINE)
    assert re.search(r"^broken +failed +main +0 +1 ", text, re.MULTILINE)


def test_history_lists_the_steps(cells):
    cells.ok('%%durable "past tense"\nask(1)\nask(1)')
    text = shown(cells.ok("%durable history past tense"))

    assert text.startswith("past tense · main · 2 steps · 1 execution")
    assert re.search(r"^\d+ +ask +completed +1", text, re.MULTILINE)
    assert re.search(r"^\d+ +ask#1 +completed +1", text, re.MULTILINE)
    assert shown(cells.ok("%durable history")) == text
    assert "<table>" in cells.ok("%durable history").of("display_data")[0]["data"]["text/html"]


def test_why_tells_of_each_step_in_this_kernel(cells):
    cells.ok("%%durable whys\nask(1)")
    cells.ok("%%durable whys\nask(1)")

    text = shown(cells.ok("%durable why whys"))

    assert re.search(r"ask +replayed +recorded", text)


def test_why_names_the_variables_that_cannot_be_compared(cells):
    """Rule 7: a client may change unseen, so it is said that it was not looked at."""
    cells.ok("import threading; client = threading.Lock()")
    cells.ok("%%durable compared\nwith client:\n    ask(1)")

    assert "not compared: client (lock)" in shown(cells.ok("%durable why compared"))


def test_a_step_in_doubt_is_settled_by_a_value(cells):
    cell = "%%durable money\ntransfer(1) + ask(1)"
    cells.run(cell)
    asked = cells.run(cell)
    assert asked.reply["ename"] == "InDoubtError"
    number = re.search(r"%durable settle (\d+) rerun", asked.reply["evalue"])[1]

    answer = shown(cells.ok(f"%durable settle {number} value max(40, 41)"))
    after = cells.ok(cell)

    assert answer == f"Step `transfer` ({number}) counts as completed. Run the cell again to go on."
    assert after.results == ["42"]


def test_a_step_in_doubt_is_executed_again_by_name(cells):
    cell = "%%durable money2\ntransfer(2)"
    cells.run(cell)
    cells.ok("%durable settle money2 transfer rerun")
    (cells.folder / "allowed2").touch()

    assert cells.ok(cell).results == ["2"]


def test_a_value_that_could_not_be_stored_is_settled_by_what_was_saved(cells):
    cell = "%%durable unstored\nopens()\nask(3)"
    assert cells.run(cell).reply["ename"] == "UnstorableValue"
    assert cells.run(cell).reply["ename"] == "ValueNotStored"

    cells.ok("%durable settle unstored opens salvage")

    assert cells.ok(cell).results == ["3"]


def test_a_decision_after_an_edit_is_taken_once(cells):
    cells.run("%%durable edited\nask(1)\nask(2)\n1 / 0")
    cell = "%%durable edited\nask(0)\nask(2)"
    assert cells.run(cell).reply["ename"] == "DecisionNeeded"

    answer = shown(cells.ok("%durable decide edited reuse"))
    after = cells.ok(cell)

    assert "the recorded results of finished steps are taken" in answer
    assert after.results == ["2"]
    assert "1 replayed, kept 1" in after.summary  # `ask(0)` is new, and was executed before the question came up


def test_sql_asks_the_log(cells):
    cells.ok("%%durable asked\nask(5)")

    text = shown(cells.ok("%durable sql \"SELECT name, status FROM runs WHERE name = 'asked'\""))

    assert re.search(r"^asked +completed$", text, re.MULTILINE)
    assert "DuckDB does not accept the query" in refused(cells, "%durable sql SELEC 1")


def test_braces_and_dollars_reach_the_word_as_written(cells):
    assert shown(cells.ok("%durable sql SELECT '{x}' AS a, '$HOME' AS b")) == "a    b\n{x}  $HOME"


def test_help_lists_every_word_and_flag(cells):
    text = shown(cells.ok("%durable help"))

    assert all(word.usage in text for word in WORDS.values())
    assert "--replay-only" in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%durable histry", "has no word `histry`. Did you mean `history`? Its words: `runs`, `history`"),
        ("%durable history nowhere", "There is no run `nowhere` in this log"),
        ("%durable runs all", "`%durable runs` takes nothing after it"),
        ("%durable decide", "Say `%durable decide [RUN] reuse`"),
        ("%durable settle", "Say `%durable settle [RUN] STEP rerun`"),
        ("%durable settle 3 value", "needs an expression"),
        ("%durable settle 3 fail 7", "takes no expression"),
        ("%durable settle 99999 value 1 / 0", "ZeroDivisionError"),
        ("%durable settle 99999 rerun", "Step `99999` is not in doubt"),
        ("%durable trust", "Say `%durable trust EXECUTION`"),
        ("%durable trust zzz", "There is no such execution"),
        ("%durable sql", "Say `%durable sql"),
    ],
)
def test_what_cannot_be_meant_is_said_in_a_sentence(cells, line, said):
    cells.ok("%%durable some\nask(1)")

    assert said in refused(cells, line)


def test_looking_makes_no_log(start_kernel, tmp_path):
    kernel = start_kernel()

    assert "There is no log at" in refused(kernel, "%durable")
    assert not (tmp_path / ".durable").exists()


def test_doctor_examines_the_log(cells):
    cells.ok("%%durable healthy\nask(1)")

    text = shown(cells.ok("%durable doctor"))

    assert text.splitlines()[0].endswith(".durable")
    assert re.search(r"^level +what +advice", text, re.MULTILINE)
