"""Branches in a notebook: fork one, set a value on it, choose one, compare two."""

from __future__ import annotations

import re
from typing import Any

import pytest

STEPS = """
topic, tone = 'tides', 'dry'
def note(what):
    with open('effects.txt', 'a') as file: file.write(what + ' ')
@step
def draft(topic, tone):
    note('draft'); return f'{tone} {topic}'
@step
def send(text):
    note('send'); return 'sent'
"""

CELL = "%%durable letter\ntext = draft(topic, tone)\nsend(text)"


@pytest.fixture
def cells(start_kernel: Any) -> Any:
    """A kernel in which the run `letter` has completed."""
    kernel = start_kernel()
    kernel.ok(STEPS)
    kernel.ok(CELL)
    return kernel


def shown(ran: Any) -> str:
    (text,) = ran.displays
    return str(text)


def effects(kernel: Any) -> list[str]:
    return (kernel.folder / "effects.txt").read_text().split()


def refused(kernel: Any, line: str) -> str:
    ran = kernel.run(line)
    assert ran.status == "error"
    return str(ran.error)


def test_a_fork_is_taken_up_by_the_next_run_of_the_cell(cells: Any) -> None:
    said = shown(cells.ok("%durable fork letter --at send"))
    ran = cells.ok(CELL)

    assert said == (
        "Branch `main-2` of run `letter` begins anew at `send` (step 3 of `main`). Run the cell to go on with it; "
        "`%durable switch main` goes back."
    )
    assert effects(cells) == ["draft", "send", "send"]
    assert "letter · main-2 · 2 steps · kept 1, 1 new" in ran.summary


def test_a_value_is_an_expression_of_the_notebook(cells: Any) -> None:
    cells.ok("moods = ['warm --at heart', 'loud']")

    said = shown(cells.ok("%durable fork letter --at draft --set tone=moods[0] --set topic='deep --set sea'"))
    ran = cells.ok(CELL)

    assert 'On it `tone` = "warm --at heart", `topic` = "deep --set sea".' in said
    assert cells.value("text, tone, topic") == ("warm --at heart deep --set sea", "dry", "tides")
    assert 'set on this branch: `tone` = "warm --at heart"' in ran.summary


def test_history_says_where_the_branch_is_from(cells: Any) -> None:
    cells.ok("%durable fork letter --at send --set tone='warm'")
    cells.ok(CELL)

    assert re.match(
        r'letter · main-2 · 2 steps · 2 executions · forked from main at send \(step 3\) by .+ · `tone` = "warm"\n',
        shown(cells.ok("%durable history letter")),
    )


def test_the_plan_of_a_fork_says_what_is_kept_and_what_is_executed(cells: Any) -> None:
    cells.ok("%durable fork letter --at send")

    text = shown(cells.ok("%durable plan letter"))

    assert re.search(r"^\d+ +draft +replay", text, re.MULTILINE), text
    assert re.search(r"^\d+ +send +again", text, re.MULTILINE), text
    assert "branch `main-2`" in text
    assert effects(cells) == ["draft", "send"]


def test_a_fork_survives_the_kernel(cells: Any) -> None:
    cells.ok("%durable fork letter --at send --set tone='warm'")
    cells.restart()
    cells.ok("%load_ext jupyter_durable\nfrom jupyter_durable import step")
    cells.ok(STEPS)

    cells.ok(CELL)

    assert cells.value("tone") == "dry"
    assert cells.value("text") == "warm tides"
    assert effects(cells) == ["draft", "send", "draft", "send"]


def test_a_diff_shows_what_is_equal_and_what_is_not(cells: Any) -> None:
    cells.ok("%durable fork letter --at draft --set tone='warm'")
    cells.ok(CELL)

    text = shown(cells.ok("%durable diff letter"))

    assert text.startswith(
        "letter · 2 other arguments · A is main · B is main-2 (forked from main at draft (step 1) by"
    )
    assert re.search(r'^other arguments +draft +\d+ "dry tides" +\d+ "warm tides"$', text, re.MULTILINE)
    assert shown(cells.ok("%durable diff letter main main-2")) == text
    assert shown(cells.ok("%durable diff main main-2")) == text


def test_a_diff_is_html_in_which_nothing_is_run(cells: Any) -> None:
    cells.ok("tone = '<script>alert(1)</script>'")
    cells.ok(CELL)

    (content,) = cells.ok("%durable diff letter").of("display_data")
    assert "<script>" not in content["data"]["text/html"]


def test_a_switch_goes_back_and_forth_without_paying(cells: Any) -> None:
    cells.ok("%durable fork --at send")
    cells.ok(CELL)

    assert "takes up branch `main` when it runs next" in shown(cells.ok("%durable switch main"))
    assert "letter · 2 steps · 2 replayed" in cells.ok(CELL).summary
    cells.ok("%durable switch letter main-2")
    assert "letter · main-2 · 2 steps · 2 replayed" in cells.ok(CELL).summary
    assert effects(cells) == ["draft", "send", "send"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%durable fork letter", "--at STEP"),
        ("%durable fork letter --at nothing", "no step `nothing`"),
        ("%durable fork letter --at send --set moon='x'", "`moon` is no variable"),
        ("%durable fork letter --at send --set tone", "NAME=EXPRESSION"),
        ("%durable fork letter --at send --set tone=1/0", "ZeroDivisionError"),
        ("%durable fork letter --at send --branch mian", "no branch `mian`"),
        ("%durable switch", "%durable switch [RUN] BRANCH"),
        ("%durable switch mian", "no branch `mian`"),
        ("%durable diff letter main main-2 main-3", "two branches"),
        ("%durable diff letter", "only one branch"),
        ("%durable samples letter", "--sample 3"),
    ],
)
def test_what_cannot_be_meant_is_a_sentence_and_changes_nothing(cells: Any, line: str, said: str) -> None:
    assert said in refused(cells, line)
    assert "letter · 2 steps · 2 replayed" in cells.ok(CELL).summary


def test_a_cell_cannot_fork_its_own_branch_while_it_runs(cells: Any) -> None:
    ran = cells.run("%%durable other\ndraft(topic, tone)\n%durable fork other --at draft")

    assert "is being executed right now" in ran.error


def test_a_diff_as_a_frame(cells: Any) -> None:
    cells.ok("%durable fork letter --at send")
    cells.ok(CELL)
    cells.ok("from jupyter_durable import client\nlog = client.existing_log()\nrun = client.find_run(log, 'letter')")

    frame = "client.diff_frame(log, run)"
    assert cells.value(f"list({frame}.verdict)") == ["equal", "equal"]
    assert cells.value(f"list({frame}.status_b)") == ["kept", "completed"]
    assert cells.value("[row.name for row in client.diff(log, run)]") == ["draft", "send"]


def test_without_pandas_a_frame_is_refused_with_a_sentence(cells: Any) -> None:
    cells.ok("%durable fork letter --at send")
    ran = cells.run(
        "import sys\nsys.modules['pandas'] = None\nfrom jupyter_durable import client\n"
        "log = client.existing_log()\nclient.diff_frame(log, client.find_run(log, 'letter'))"
    )

    assert 'pip install "jupyter_durable[pandas]"' in ran.error
