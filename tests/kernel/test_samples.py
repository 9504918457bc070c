"""`%%durable NAME --sample K`: one run of a cell is K independent samples."""

from __future__ import annotations

import re
from typing import Any

import pytest

COUNTS = """
import itertools, os, pathlib
@step
def ask(question):
    with open("asked.txt", "a") as file:
        file.write(f"{question}\\n")
    number = len(pathlib.Path("asked.txt").read_text().splitlines())
    if pathlib.Path("die").exists() and number == 4:
        os.kill(os.getpid(), 9)
    return number
def asked(): return pathlib.Path("asked.txt").read_text().split() if pathlib.Path("asked.txt").exists() else []
"""


@pytest.fixture
def cells(start_kernel: Any) -> Any:
    """A kernel of its own, with a step that counts."""
    kernel = start_kernel()
    kernel.ok(COUNTS)
    return kernel


def table(ran: Any) -> list[list[str]]:
    """The rows of the table of samples: number, branch, status, and the last value."""
    (text,) = ran.results
    rows = [line.split() for line in text.splitlines()[2:]]
    return [[row[0], row[1], row[2], row[-1]] for row in rows]


def test_one_run_of_the_cell_makes_all_samples(cells: Any) -> None:
    ran = cells.ok("%%durable poem --sample 3\nfirst = ask('a')\nask('b') * 10")

    assert ran.results[0].splitlines()[0] == "poem · 3 of 3 samples"
    assert table(ran) == [
        ["1", "main", "completed", "20"],
        ["2", "main-2", "completed", "40"],
        ["3", "main-3", "completed", "60"],
    ]
    assert cells.value("asked()") == ["a", "b"] * 3
    assert cells.value("first") == 5


def test_the_value_of_the_cell_is_the_list_of_the_values(cells: Any) -> None:
    cells.ok("%%durable poem --sample 2\nask('a')")

    assert cells.value("list(_)") == [1, 2]


def test_each_sample_is_labelled_and_has_a_summary(cells: Any) -> None:
    ran = cells.ok("%%durable poem --sample 2\nprint('said', ask('a'))")

    order = [
        content.get("text") or content["data"]["text/plain"].splitlines()[0]
        for kind, content in ran.outputs
        if kind in ("stream", "display_data")
    ]
    assert [re.sub(r"\d+(\.\d+)? m?s$", "T", text.strip()) for text in order] == [
        "sample 1 of 2",
        "said 1",
        "poem · main · sample 1 of 2 · 1 step · 1 new · T",
        "sample 2 of 2",
        "said 2",
        "poem · main-2 · sample 2 of 2 · 1 step · 1 new · T",
    ]


def test_a_kill_in_the_middle_is_resumed_where_it_was(cells: Any) -> None:
    cell = "%%durable poem --sample 3\nask('a')\nask('b')"
    cells.ok("open('die', 'w').close()")
    cells.send(cell)
    cells.manager.provisioner.process.wait(60)
    cells.end()
    cells.start()
    cells.ok("%load_ext jupyter_durable\nfrom jupyter_durable import step, durable")
    cells.ok(COUNTS + "\nos.remove('die')")

    ran = cells.ok(cell)

    assert [row[1] for row in table(ran)] == ["main", "main-2", "main-3"]
    # The step that was killed is begun again; no other one is.
    assert cells.value("asked()") == ["a", "b", "a", "b", "b", "a", "b"]


def test_run_again_all_samples_replay_and_more_can_be_made(cells: Any) -> None:
    cells.ok("%%durable poem --sample 2\nask('a')")
    again = cells.ok("%%durable poem --sample 2\nask('a')")
    more = cells.ok("%%durable poem --sample 3\nask('a')")

    assert [row[3] for row in table(again)] == ["1", "2"]
    assert [row[3] for row in table(more)] == ["1", "2", "3"]
    assert cells.value("asked()") == ["a"] * 3


def test_fresh_makes_a_new_set_and_goes_on_with_one_that_was_cut(cells: Any) -> None:
    cells.ok("import os\ndef fixed(): return os.path.exists('fixed')")
    cell = "n = ask('a')\nif n == 4 and not fixed(): 1 / 0\nn"
    cells.ok(f"%%durable poem --sample 2\n{cell}")
    assert cells.run(f"%%durable poem --sample 2 --fresh\n{cell}").status == "error"
    cells.ok("open('fixed', 'w').close()")

    cut = cells.ok(f"%%durable poem --sample 2 --fresh\n{cell}")
    anew = cells.ok(f"%%durable poem --sample 2 --fresh\n{cell}")

    assert [row[1] for row in table(cut)] == ["main-3", "main-4"]
    assert [row[3] for row in table(cut)] == ["3", "4"]
    assert [row[1] for row in table(anew)] == ["main-5", "main-6"]


def test_an_error_in_a_sample_ends_the_cell_and_the_next_run_goes_on_there(cells: Any) -> None:
    cell = "%%durable poem --sample 3\nn = ask('a')\nif n == 2 and not fixed(): raise ValueError('second')\nn"
    cells.ok("import os\ndef fixed(): return os.path.exists('fixed')")
    failed = cells.run(cell)
    assert failed.status == "error"
    assert "----> 3" in failed.error
    assert "ValueError: second" in failed.error
    cells.ok("open('fixed', 'w').close()")

    ran = cells.ok(cell)

    assert [row[3] for row in table(ran)] == ["1", "2", "3"]
    assert cells.value("asked()") == ["a"] * 3


def test_samples_begin_with_the_notebook_as_it_was(cells: Any) -> None:
    cells.ok("notes = ['start']\nseen = notes\ncount = 0")
    cells.ok(
        "%%durable poem --sample 3\n"
        "notes.append(ask('a'))\nnew = 'new' in dir()\ncount = len(notes)\n(count, list(notes))"
    )

    assert cells.value("[value for value in _]") == [
        (2, ["start", 1]),
        (2, ["start", 2]),
        (2, ["start", 3]),
    ]
    assert cells.value("seen is notes and not new") is True


def test_after_an_error_an_input_that_samples_changed_is_no_edit(cells: Any) -> None:
    cells.ok("notes = []\nimport os\ndef fixed(): return os.path.exists('fixed')")
    cell = "%%durable poem --sample 2\nnotes.append(ask('a'))\nif notes == [2] and not fixed(): 1 / 0\nlist(notes)"
    assert cells.run(cell).status == "error"
    cells.ok("open('fixed', 'w').close()")

    cells.ok(cell)

    assert cells.value("list(_)") == [[1], [2]]
    assert cells.value("asked()") == ["a"] * 2


def test_top_level_await_works_in_every_sample(cells: Any) -> None:
    cells.ok("@step\nasync def late(q):\n    await asyncio.sleep(0)\n    return ask.__wrapped__(q)")

    cells.ok("%%durable poem --sample 2\na = await late('a')\nawait asyncio.gather(late('b'), late('c'))")

    assert cells.value("list(_)") == [[2, 3], [5, 6]]


def test_the_stop_button_ends_the_sample_and_the_next_run_goes_on(cells: Any) -> None:
    cells.ok("import os\ndef fixed(): return os.path.exists('fixed')")
    cell = (
        "%%durable poem --sample 2\nn = ask('a')\n"
        "if n == 2 and not fixed():\n    print('waits', flush=True)\n    time.sleep(60)\nn"
    )
    request = cells.run_until("waits", cell)
    cells.interrupt()
    assert cells.collect(request).status == "error"
    cells.ok("open('fixed', 'w').close()")

    assert [row[3] for row in table(cells.ok(cell))] == ["1", "2"]
    assert cells.value("asked()") == ["a"] * 2


def test_an_edit_makes_a_new_set_of_fresh_samples(cells: Any) -> None:
    cells.ok("%%durable poem --sample 2\nask('a')")
    ran = cells.ok("%%durable poem --sample 2\nask('a')\nask('b')")

    assert [row[1] for row in table(ran)] == ["main-3", "main-4"]
    assert cells.value("asked()") == ["a", "a", "a", "b", "a", "b"]


def test_samples_are_listed_and_any_two_compared(cells: Any) -> None:
    cells.ok("%%durable poem --sample 3\nask('a')")

    (listed,) = cells.ok("%durable samples poem").displays
    (compared,) = cells.ok("%durable diff poem main main-3").displays

    assert listed.splitlines()[0] == "poem · 3 of 3 samples"
    assert re.search(r"^2 +main-2 +completed +1 +2$", listed, re.MULTILINE)
    assert re.search(r"^other value +ask +\d+ 1 +\d+ 3$", compared, re.MULTILINE)


def test_a_sample_that_was_chosen_is_taken_up_without_the_flag(cells: Any) -> None:
    cells.ok("%%durable poem --sample 3\nask('a')")
    cells.ok("%durable switch poem main-2")

    ran = cells.ok("%%durable poem\nask('a')")

    assert ran.results == ["2"]
    assert cells.value("asked()") == ["a"] * 3


def test_a_secret_and_an_escape_in_a_value_stay_text(cells: Any) -> None:
    ran = cells.ok("%%durable poem --sample 1\nask('a')\n'<script>\\x1b[2J Authorization: Bearer abc.def-123'")

    (content,) = ran.of("execute_result")
    assert "<script>" not in content["data"]["text/html"]
    assert "abc.def-123" not in str(content)
    assert "\x1b" not in content["data"]["text/plain"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--sample 0", "from 1 to 1000"),
        ("--sample many", "from 1 to 1000"),
        ("--sample 2 --from ask", "exclude each other"),
        ("--sample 2 --branch main", "exclude each other"),
        ("--sample 2 --plan", "exclude each other"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(kernel: Any, flags: str, said: str) -> None:
    ran = kernel.run(f"%%durable refused-samples {flags}\nprint('ran')")

    assert ran.status == "error"
    assert said in ran.error
    assert "ran" not in ran.text
