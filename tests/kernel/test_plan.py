"""Before it costs: what a plan says of a cell, and that running the cell then does just that."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.log import open_log

SETUP = """
%load_ext jupyter_durable
from jupyter_durable import step, durable
import asyncio, httpx, os, time
durable.price("meter", input=1_000_000, output=0)
def ask(prompt):
    body = {"model": "meter", "messages": [{"role": "user", "content": prompt}]}
    answer = httpx.post(os.environ["ENDPOINT"] + "/chat/completions", json=body, timeout=60)
    return answer.json()["choices"][0]["message"]["content"]
@step
def note(text): return len(text)
@step(pure=True)
def tidy(text): return text.strip()
"""

THREE = """%%durable agent
a = ask("one")
b = ask("two words")
note(b)
c = ask("three words here")"""


@pytest.fixture
def endpoint():
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def kernel(start_kernel, endpoint):
    """A kernel whose model counts what it is asked."""
    return start_kernel(setup=SETUP, ENDPOINT=endpoint.url)


@pytest.fixture
def planned(kernel, endpoint, tmp_path):
    """Plans a cell, and proves of each plan that it asked no model and wrote nothing."""

    def planned(cell, cell_id=""):
        before = state(tmp_path), endpoint.bill.summary()
        text = shown(kernel.ok(cell, cell_id))
        assert (state(tmp_path), endpoint.bill.summary()) == before
        return text

    return planned


def state(folder: Path):
    """All that lies in the log: files with their size and time."""
    found = sorted(p for p in (folder / ".durable").rglob("*") if p.is_file())
    return [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in found]


def shown(ran):
    """The one display of a cell that has run nothing."""
    (text,) = ran.displays
    assert not ran.results
    assert not ran.text
    return text


def fates(text):
    """Name and fate of each step of a plan."""
    rows = [re.split(r"  +", line) for line in text.splitlines() if re.match(r"\d", line)]
    return [(row[1], row[2]) for row in rows]


def head(text):
    return text.splitlines()[0]


def requests(endpoint):
    return endpoint.bill.summary()["requests"]


def lines_of(folder):
    """Lines at which the model calls of the log were asked."""
    log = open_log(folder / ".durable")
    return [
        recorded.event.data.line
        for record in log.executions()
        for recorded in log.history(record.header.branch)
        if getattr(getattr(recorded.event, "data", None), "api", "")
    ]


def test_a_cell_of_which_nothing_is_recorded_is_planned_without_a_log(planned, tmp_path):
    text = planned(THREE.replace("agent", "agent --plan"))

    assert head(text) == "Plan: agent · main. Nothing was run."
    assert "cannot be known before it runs" in text
    assert not (tmp_path / ".durable").exists()


def test_a_completed_cell_is_replayed_and_buys_nothing(kernel, planned, endpoint):
    kernel.ok(THREE)
    paid = requests(endpoint)

    text = planned(THREE.replace("agent", "agent --plan"))
    ran = kernel.ok(THREE)

    assert [fate for _, fate in fates(text)] == ["replay"] * 4
    assert "4 replayed" in head(text)
    assert "to buy" not in text
    saved = re.search(r"\$[\d.]+ saved", head(text))[0]
    assert saved in ran.summary
    assert requests(endpoint) == paid == 3


def test_the_word_plans_the_cell_that_ran_last_where_no_file_tells(kernel, planned):
    kernel.ok(THREE)

    text = planned("%durable plan")

    assert [fate for _, fate in fates(text)] == ["replay"] * 4
    assert "planned for the cell as it ran last" in text
    assert planned("%durable plan agent") == text


def test_a_cell_killed_in_a_call_asks_that_one_again(kernel, planned, endpoint):
    endpoint.bill.hold(2)
    kernel.send(THREE)
    assert endpoint.bill.wait_in_flight(2, 60) == "in_flight"
    kernel.restart()
    kernel.ok(SETUP)
    endpoint.bill.release(2)
    paid = requests(endpoint)

    text = planned(THREE.replace("agent", "agent --plan"))
    ran = kernel.ok(THREE)

    assert [fate for _, fate in fates(text)] == ["replay", "again: in doubt"]
    assert "branch `main` is continued" in re.sub("note: ", "", text)
    assert "1 call of unknown use to buy at least" in head(text)
    assert "has not come to its end yet" in text
    assert "1 replayed, 3 new" in ran.summary
    assert requests(endpoint) == paid + 2


def test_an_edit_at_the_end_keeps_all_that_is_before_it(kernel, planned, endpoint):
    kernel.ok(THREE)
    edited = THREE + '\nd = ask("and a fourth")'
    paid = requests(endpoint)

    text = planned(edited.replace("agent", "agent --plan"))
    ran = kernel.ok(edited)

    assert [fate for _, fate in fates(text)] == ["replay"] * 4
    assert "branch `main-2` is made from `main`: the cell's code changed" in text
    assert "New calls of the edited part" in text
    assert "kept 4, 1 new" in ran.summary
    assert requests(endpoint) == paid + 1


def test_an_edited_prompt_is_bought_if_it_differs_and_what_follows_may_be_reused(kernel, planned, endpoint):
    cell = '%%durable agent\na = ask("one")\nb = ask("two words")\nc = ask("three words here")'
    kernel.ok(cell)
    edited = cell.replace("two words", "two other words")
    paid = requests(endpoint)

    text = planned(edited.replace("agent", "agent --plan"))
    ran = kernel.ok(edited)

    assert [fate for _, fate in fates(text)] == ["replay", "reuse if asked the same", "reuse if asked the same"]
    assert "first difference: line 3 is new or changed" in text
    assert "more at most" in head(text)
    assert "kept 2, 1 new" in ran.summary
    assert requests(endpoint) == paid + 1


def test_a_second_edit_knows_the_lines_of_what_the_first_had_taken_over(kernel, planned):
    cell = '%%durable agent\na = ask("one")\nb = ask("two words")\nc = ask("three words here")'
    kernel.ok(cell)
    kernel.ok(cell.replace("here", "there"))

    text = planned(cell.replace("here", "everywhere").replace("agent", "agent --plan"))

    assert [fate for _, fate in fates(text)] == ["replay", "replay", "reuse if asked the same"]


def test_lines_are_those_of_the_cell_also_below_an_await_and_in_tasks(kernel, planned, tmp_path):
    kernel.ok(
        "%%durable lines\n\n"
        'a = ask("one")\n'
        "await asyncio.sleep(0)\n"
        'b = ask("two")\n'
        "async def inner():\n"
        '    return ask("three")\n'
        "await asyncio.gather(inner())\n"
        'c = await asyncio.to_thread(lambda: ask("four"))'
    )

    assert lines_of(tmp_path) == [3, 5, 7, 9]


def test_a_finished_step_past_an_edit_asks_you(kernel, planned):
    cell = THREE.replace("note(b)", "note('fixed')")
    kernel.ok(cell)
    edited = cell.replace("two words", "two other words")

    text = planned(edited.replace("agent", "agent --plan"))
    ran = kernel.run(edited)

    assert fates(text)[2] == ("note", "ask you")
    assert "1 to be decided by you" in head(text)
    assert ran.reply["ename"] == "DecisionNeeded"
    assert "`note`" in ran.error


def test_reuse_in_the_header_answers_the_question(kernel, planned):
    cell = THREE.replace("note(b)", "note('fixed')")
    kernel.ok(cell)
    edited = cell.replace("two words", "two other words").replace("agent", "agent --reuse all")

    text = planned(edited.replace("agent", "agent --plan"))
    ran = kernel.ok(edited)

    assert fates(text)[2] == ("note", "reuse if asked the same")
    assert "to be decided" not in text
    assert "kept 3, 1 new" in ran.summary


def test_an_edited_pure_step_is_executed_again(kernel, planned):
    cell = '%%durable tidied\na = tidy(" x ")\nb = ask("one")'
    kernel.ok(cell)
    kernel.ok("@step(pure=True)\ndef tidy(text): return text.strip() + '!'")

    text = planned(cell.replace("tidied", "tidied --plan"))
    ran = kernel.ok(cell)

    assert fates(text)[0] == ("tidy", "again: its code changed")
    assert fates(text)[1][1] == "reuse if asked the same"
    assert "kept 1, 1 new" in ran.summary


def test_an_edited_step_that_is_not_pure_asks_you(kernel, planned):
    cell = '%%durable noted\na = ask("one")\nnote(a)'
    kernel.ok(cell)
    kernel.ok("@step\ndef note(text): return -len(text)")

    text = planned(cell.replace("noted", "noted --plan"))
    ran = kernel.run(cell)

    assert [fate for _, fate in fates(text)] == ["replay", "ask you"]
    assert "its code changed" in text
    assert ran.reply["ename"] == "DecisionNeeded"


def test_a_step_that_the_cell_itself_defines_is_compared_by_its_code(kernel, planned):
    cell = "%%durable own\n@step(pure=True)\ndef double(n): return 2 * n\na = double(1)\nb = tidy('x')"
    kernel.ok(cell)
    edited = cell.replace("2 * n", "n * 2")

    text = planned(edited.replace("own", "own --plan"))
    ran = kernel.ok(edited)

    assert fates(text) == [("double", "again: its code changed"), ("tidy", "reuse if asked the same")]
    assert "kept 1, 1 new" in ran.summary


def test_a_changed_variable_counts_from_the_line_that_reads_it(kernel, planned, endpoint):
    kernel.ok("topic = 'whales'")
    cell = '%%durable topics\na = ask("one")\nb = ask(topic)'
    kernel.ok(cell)
    kernel.ok("topic = 'sea birds'")

    text = planned(cell.replace("topics", "topics --plan"))
    ran = kernel.ok(cell)

    assert [fate for _, fate in fates(text)] == ["replay", "reuse if asked the same"]
    assert "line 3 reads `topic`, which changed" in text
    assert "kept 1, 1 new" in ran.summary


def test_fresh_buys_everything_anew(kernel, planned, endpoint):
    kernel.ok(THREE)
    fresh = THREE.replace("agent", "agent --fresh")
    paid = requests(endpoint)

    text = planned(fresh.replace("agent", "agent --plan"))
    ran = kernel.ok(fresh)

    assert {fate for _, fate in fates(text)} == {"again: asked for a fresh branch"}
    assert "saved" not in head(text)
    spent = re.search(r"\$[\d.]+ to buy at least", head(text))[0].split()[0]
    assert f"{spent} spent" in ran.summary
    assert "4 new" in ran.summary
    assert requests(endpoint) == 2 * paid


def test_from_buys_that_step_and_what_comes_after(kernel, planned, endpoint):
    cell = '%%durable agent\na = ask("one")\nnote(a)\nnote("later")'
    kernel.ok(cell)
    again = cell.replace("agent", "agent --from note")

    text = planned(again.replace("agent", "agent --plan"))
    ran = kernel.ok(again)

    assert [fate.split(":")[0] for _, fate in fates(text)] == ["replay", "again", "again"]
    assert "kept 1, 2 new" in ran.summary


def test_strict_and_replay_only_stop_where_something_differs(kernel, planned):
    cell = '%%durable held\na = ask("one")\nnote(a)'
    kernel.ok(cell)
    kernel.ok("@step\ndef note(text): return 0")

    strict = planned(cell.replace("held", "held --plan --strict"))
    replay_only = planned(cell.replace("held", "held --plan --replay-only"))

    assert [fate for _, fate in fates(strict)] == ["replay", "stop"]
    assert [fate for _, fate in fates(replay_only)] == ["replay", "stop"]
    assert kernel.run(cell.replace("held", "held --strict")).reply["ename"] == "DecisionNeeded"
    assert kernel.run(cell.replace("held", "held --replay-only")).reply["ename"] == "ReplayOnlyError"


def test_a_failed_step_that_ended_the_cell_is_tried_again(kernel, planned):
    kernel.ok("import pathlib\n@step\ndef load(path): return pathlib.Path(path).read_text()")
    cell = '%%durable loads\na = ask("one")\nload("a file")'
    kernel.run(cell)

    text = planned(cell.replace("loads", "loads --plan"))
    kernel.ok("pathlib.Path('a file').write_text('x')")
    ran = kernel.ok(cell)

    assert [fate for _, fate in fates(text)] == ["replay", "again: its attempt failed"]
    assert "1 replayed, 1 new" in ran.summary


def test_planning_runs_on_and_takes_no_branch(kernel, planned):
    """Other cells go on after it, and the run can begin afterwards."""
    planned('%%durable free --plan\na = ask("one")')

    assert kernel.value("'a' in globals()") is False
    assert kernel.ok('%%durable free\na = ask("one")').status == "ok"


def test_own_changes_of_an_input_are_not_put_back_by_a_plan(kernel, planned):
    kernel.ok("messages = ['hello']")
    cell = "%%durable chat\nmessages.append(ask(messages[-1]))"
    kernel.ok(cell)

    text = planned(cell.replace("chat", "chat --plan"))

    assert [fate for _, fate in fates(text)] == ["replay"]
    assert kernel.value("len(messages)") == 2


def test_the_word_plans_the_cell_as_it_is_saved_in_the_notebook(start_kernel, endpoint, tmp_path):
    notebook = tmp_path / "notebook.ipynb"
    kernel = start_kernel(setup=SETUP, ENDPOINT=endpoint.url, JPY_SESSION_NAME=str(notebook))
    cell = '%%durable saved\na = ask("one")\nb = ask("two words")'

    def save(text):
        nbformat.write(new_notebook(cells=[new_code_cell(text, id="cell-1")]), notebook)

    save(cell)
    kernel.ok(cell, "cell-1")
    save(cell.replace("two words", "two other words"))

    text = shown(kernel.ok("%durable plan saved"))

    assert "planned for the cell as it is saved in the notebook" in text
    assert [fate for _, fate in fates(text)] == ["replay", "reuse if asked the same"]


def test_a_plan_is_a_table_in_a_notebook(kernel):
    kernel.ok(THREE)

    (shown,) = kernel.ok(THREE.replace("agent", "agent --plan")).of("display_data")

    assert "<table>" in shown["data"]["text/html"]
    assert "<script" not in shown["data"]["text/html"]


def test_a_plan_of_a_cell_that_could_not_run_is_an_error(kernel):
    ran = kernel.run("%%durable agent --plan --branch nowhere\nask('x')")

    assert ran.reply["ename"] == "UsageError"
    assert "no branch `nowhere`" in ran.error
