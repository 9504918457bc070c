"""G26: which run a cell takes up, when its notebook was renamed, copied, or is not known at all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from jupyter_durable.log import open_log, renames
from jupyter_durable.notebooks import Renamed
from jupyter_durable.server.renaming import tell
from tests.cases.conftest import refused

PLAN = """
@step
def plan(): hit("plan"); return "plan"
@step
def act(p): hit("act"); stand("act"); return p + " done"
"""
CELL = "%%durable\np = plan()\nact(p)"
NAMED = "%%durable trip\np = plan()\nact(p)"


def write(path, cells):
    """A notebook file with these cells, by their ids."""
    written = [
        {"cell_type": "code", "id": each, "source": source, "metadata": {}, "outputs": [], "execution_count": None}
        for each, source in cells.items()
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"cells": written, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
    return str(path)


@pytest.mark.parametrize("cell", [CELL, NAMED], ids=["without a name", "named"])
def test_g26_a_notebook_renamed_between_crash_and_rerun(case, cell):
    path = case.folder / "plan.ipynb"
    case.open(PLAN, JPY_SESSION_NAME=write(path, {"aaaa0001": cell}))
    case.kill_at("act", cell, "aaaa0001")
    renamed = path.rename(case.folder / "plan-v2.ipynb")

    ran = case.rerun(cell, "aaaa0001", JPY_SESSION_NAME=str(renamed))

    assert ran.results == ["'plan done'"], ran.errors
    assert "1 replayed, 1 new" in ran.summary
    assert "it was plan.ipynb before" in ran.summary
    assert case.effects.tags() == ["plan", "act", "act"]


def test_g26_renamed_while_the_kernel_lives(case):
    """Lab renames the file of a live kernel, whose variable keeps the old name."""
    path = case.folder / "plan.ipynb"
    case.open(PLAN, JPY_SESSION_NAME=write(path, {"aaaa0001": CELL}))
    (case.folder / "go").touch()
    case.kernel.ok(CELL, "aaaa0001")
    renamed = path.rename(case.folder / "plan-v2.ipynb")
    before = case.kernel.ok(CELL, "aaaa0001")

    after = case.rerun(CELL, "aaaa0001", JPY_SESSION_NAME=str(renamed))

    assert "2 replayed" in before.summary
    assert "2 replayed" in after.summary
    assert case.effects.tags() == ["plan", "act"]


def test_g26_renamed_while_the_kernel_lives_and_the_server_tells_it(case):
    """The run is one of the notebook's new name from then on; a notebook under the old name has runs of its own."""
    path = case.folder / "plan.ipynb"
    case.open(PLAN, JPY_SESSION_NAME=write(path, {"aaaa0001": CELL}))
    (case.folder / "go").touch()
    case.kernel.ok(CELL, "aaaa0001")
    renamed = path.rename(case.folder / "plan-v2.ipynb")
    renames.add(case.durable, Renamed(at=time.time(), before=str(path), after=str(renamed)))
    tell(case.kernel.connection, path, renamed)
    write(path, {"aaaa0001": CELL})

    ran = case.kernel.ok(CELL, "aaaa0001")

    assert "2 replayed" in ran.summary
    assert "it was plan.ipynb before" in ran.summary
    newest = max(open_log(str(case.durable)).executions(), key=lambda each: each.started)
    assert newest.header.path == str(renamed)
    taken = case.rerun(CELL, "aaaa0001", JPY_SESSION_NAME=str(path))
    assert "2 new" in taken.summary
    assert case.effects.tags() == ["plan", "act"] * 2


def test_g26_moved_to_another_folder_while_the_kernel_lives_and_after_it(case):
    """The log stays where it is; nothing is paid for again, and the cell says where its history lies."""
    path = case.folder / "plan.ipynb"
    case.open(PLAN, JPY_SESSION_NAME=write(path, {"aaaa0001": CELL}))
    (case.folder / "go").touch()
    case.kernel.ok(CELL, "aaaa0001")
    (case.folder / "archive").mkdir()
    moved = path.rename(case.folder / "archive" / "plan.ipynb")
    renames.add(case.durable, Renamed(at=time.time(), before=str(path), after=str(moved)))
    open_log(str(moved.parent / ".durable"))
    renames.set_elsewhere(moved, case.durable)
    tell(case.kernel.connection, path, moved)

    alive = case.kernel.ok(CELL, "aaaa0001")
    after = case.rerun(CELL, "aaaa0001", JPY_SESSION_NAME=str(moved))
    case.durable.rename(case.folder / "away")
    lost = case.kernel.run(CELL, "aaaa0001")

    assert "2 replayed" in alive.summary
    assert f"its log is still {case.durable}" in alive.summary
    assert "2 replayed" in after.summary
    refused(lost, "LogUnusable", "its history stayed in", "Put that folder back")
    assert case.effects.tags() == ["plan", "act"]


def test_g26_the_folder_was_moved_with_notebook_and_log(case):
    path = case.folder / "plan.ipynb"
    case.open(PLAN, JPY_SESSION_NAME=write(path, {"aaaa0001": CELL}))
    case.kill_at("act", CELL, "aaaa0001")
    case.kernel.end()
    case.folder = case.folder.rename(case.folder.with_name("moved"))
    (case.folder / "go").touch()

    case.open(PLAN, JPY_SESSION_NAME=str(case.folder / "plan.ipynb"))
    ran = case.kernel.run(CELL, "aaaa0001")

    assert "1 replayed, 1 new" in ran.summary, ran.errors
    assert case.effects.tags() == ["plan", "act", "act"]


@pytest.mark.parametrize("cell", [CELL, NAMED], ids=["without a name", "named"])
def test_g26_a_copy_that_runs_at_the_same_time_does_not_take_over_the_originals_run(case, cell, start_kernel):
    path = case.folder / "plan.ipynb"
    case.open(PLAN, JPY_SESSION_NAME=write(path, {"aaaa0001": cell}))
    request = case.kernel.run_until("at act", cell, "aaaa0001")
    copy = shutil.copy(path, case.folder / "plan-copy.ipynb")
    original = case.kernel
    case.open(PLAN, JPY_SESSION_NAME=str(copy))
    beside = case.kernel.run_until("at act", cell, "aaaa0001")
    case.kernel, other = original, case.kernel

    case.kill()
    (case.folder / "go").touch()
    copied = other.collect(beside)
    resumed = case.rerun(cell, "aaaa0001")

    assert copied.results == ["'plan done'"], copied.errors
    assert copied.summary.split(" · ")[1:3] == ["2 steps", copied.summary.split(" · ")[2]]
    assert "2 new" in copied.summary
    assert "1 replayed, 1 new" in resumed.summary
    assert case.effects.tags() == ["plan", "act", "plan", "act", "act"]
    assert len(case.json("runs")["runs"]) == 2
    assert request


def test_g26_a_copy_made_after_the_crash_starts_its_own_run(case):
    path = case.folder / "plan.ipynb"
    case.open(PLAN, JPY_SESSION_NAME=write(path, {"aaaa0001": CELL}))
    case.kill_at("act", CELL, "aaaa0001")
    copy = shutil.copy(path, case.folder / "plan-copy.ipynb")

    copied = case.rerun(CELL, "aaaa0001", JPY_SESSION_NAME=str(copy))
    original = case.rerun(CELL, "aaaa0001", JPY_SESSION_NAME=str(path))

    assert "2 new" in copied.summary
    assert "1 replayed, 1 new" in original.summary
    assert case.effects.count("plan") == 2


@pytest.mark.parametrize("cell_id", ["", "aaaa0001"], ids=["nothing is known", "cell id alone"])
def test_g26_a_bare_client_that_says_no_notebook(case, cell_id):
    """No session name, no metadata: the run is known by its code, or by the id of its cell."""
    case.open(PLAN)
    assert case.kernel.value("'JPY_SESSION_NAME' in os.environ") is False
    case.kill_at("act", CELL, cell_id)

    ran = case.rerun(CELL, cell_id)

    assert "1 replayed, 1 new" in ran.summary, ran.errors
    assert case.effects.tags() == ["plan", "act", "act"]
    assert len(case.json("runs")["runs"]) == 1


def test_g26_two_different_cells_of_a_bare_client_are_two_runs(case):
    (case.folder / "go").touch()
    case.open(PLAN)

    case.kernel.ok(CELL)
    other = case.kernel.ok(CELL.replace("act(p)", "act(p + '!')"))

    assert other.results == ["'plan! done'"]
    assert len(case.json("runs")["runs"]) == 2


def test_g26_an_executed_notebook_is_renamed_after_it_was_killed(case):
    """``jupyter execute`` says no path; its execution is resumed as the pass that was cut short."""
    setup = "%load_ext jupyter_durable\nfrom jupyter_durable import step\nimport os\n" + case.effects.code
    die = PLAN.replace('stand("act")', 'os.path.exists("go") or os.kill(os.getpid(), 9)')
    path = case.folder / "plan.ipynb"
    write(path, {"aaaa0000": setup + die, "aaaa0001": CELL})

    def execute(name):
        command = [sys.executable, "-m", "jupyter", "execute", "--inplace", "--kernel_name=python3", name]
        environment = {key: value for key, value in os.environ.items() if key != "JPY_SESSION_NAME"}
        return subprocess.run(
            command, cwd=case.folder, env=environment, capture_output=True, text=True, timeout=100, check=False
        )

    killed = execute("plan.ipynb")
    assert killed.returncode != 0
    assert case.effects.tags() == ["plan", "act"]
    path.rename(case.folder / "plan-v2.ipynb")
    (case.folder / "go").touch()

    done = execute("plan-v2.ipynb")

    assert done.returncode == 0, done.stderr
    assert case.effects.tags() == ["plan", "act", "act"]


def test_g26_two_cells_that_give_one_name_are_refused_by_name(case):
    cells = {"aaaa0001": NAMED, "aaaa0002": NAMED.replace("act(p)", "act('sk-live-other')")}
    (case.folder / "go").touch()
    case.open(PLAN, JPY_SESSION_NAME=write(case.folder / "plan.ipynb", cells))
    case.kernel.ok(cells["aaaa0001"], "aaaa0001")

    ran = case.kernel.run(cells["aaaa0002"], "aaaa0002")

    refused(ran, "UsageError", "`trip`", "`aaaa0001`", hidden=("sk-live-other",))
    assert case.effects.tags() == ["plan", "act"]
