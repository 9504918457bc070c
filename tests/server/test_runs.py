"""Listings over REST: which log a notebook has, which runs are in it, and how they stand."""

from __future__ import annotations

import os
import signal

from jupyter_durable import durable
from jupyter_durable.server import shapes
from tests.server.conftest import RUN, double
from tests.server.events import ended, started


def test_a_folder_has_a_log_of_its_own(ask, root):
    about = ask("about", notebook="deep/er/x.ipynb").as_(shapes.About)

    assert about.log == str(root / "deep" / "er" / ".durable")
    assert (about.exists, about.configured, about.notebook) == (False, False, "deep/er/x.ipynb")


def test_a_configured_log_is_the_one_of_every_notebook(ask, root, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DURABLE_LOG", str(tmp_path / "elsewhere"))

    about = ask("about", notebook="deep/x.ipynb").as_(shapes.About)

    assert (about.log, about.configured) == (str(tmp_path / "elsewhere"), True)


def test_a_relative_configured_log_lies_where_the_kernel_of_the_notebook_starts(ask, root, monkeypatch):
    monkeypatch.setenv("JUPYTER_DURABLE_LOG", "logs/here")

    assert ask("about", notebook="deep/x.ipynb").as_(shapes.About).log == str(root / "deep" / "logs" / "here")


def test_a_log_in_the_memory_of_a_kernel_is_refused_in_words(ask, monkeypatch):
    monkeypatch.setenv("JUPYTER_DURABLE_LOG", "memory:mine")

    answer = ask("runs", notebook="x.ipynb")

    assert (answer.status, answer.problem.error) == (503, "LogUnusable")
    assert "Name a directory" in answer.problem.message


def test_without_a_log_there_are_no_runs_and_no_folder_is_made(ask, root):
    runs = ask("runs", notebook="x.ipynb").as_(shapes.Runs)

    assert (runs.exists, runs.runs) == (False, [])
    assert list(root.iterdir()) == []


def test_a_run_is_listed(ask, doubled):
    (run,) = ask("runs").as_(shapes.Runs).runs

    assert (run.run, run.name, run.status, run.branch_name, run.live) == (doubled, "doubling", "completed", "main", 3)
    assert run.head == 7


def test_each_folder_lists_its_own_runs(ask, root):
    for folder in ("a", "b"):
        with durable.run(f"run-of-{folder}", log=str(root / folder / ".durable")):
            double(1)

    listed = {f: [r.name for r in ask("runs", notebook=f"{f}/x.ipynb").as_(shapes.Runs).runs] for f in ("a", "b")}

    assert listed == {"a": ["run-of-a"], "b": ["run-of-b"]}


def test_runs_of_the_notebook_are_told_from_others_of_its_folder(ask, root, begin):
    begin(path=str(root / "mine.ipynb")).append(ended())
    begin(run="bbbb", branch="bbbb.1", path=str(root / "other.ipynb")).append(ended())

    runs = ask("runs", notebook="mine.ipynb").as_(shapes.Runs).runs

    assert {run.run: run.here for run in runs} == {RUN: True, "bbbb": False}


def test_runs_from_before_a_rename_are_still_the_notebooks(ask, root, begin):
    begin(path=str(root / "old.ipynb"), notebook="n1").append(ended())
    begin(run="bbbb", branch="bbbb.1", path=str(root / "new.ipynb"), notebook="n1").append(ended())

    runs = ask("runs", notebook="new.ipynb").as_(shapes.Runs).runs

    assert [run.here for run in runs] == [True, True]


def test_one_run_has_its_branches_and_executions(ask, doubled):
    found = ask(f"runs/{doubled}").as_(shapes.RunDetail)

    assert [(b.name, b.status, b.origin) for b in found.branches] == [("main", "completed", None)]
    assert [(e.purpose, e.status, e.live) for e in found.executions] == [("run", "completed", 3)]
    assert found.run.run == doubled


def test_a_run_that_is_not_there_is_not_found(ask, doubled):
    answer = ask("runs/no-such-run")

    assert (answer.status, answer.problem.error) == (404, "NotHere")


def test_while_a_kernel_writes_a_run_is_running_and_when_it_is_killed_interrupted(ask, root, program):
    source = """
@step
def wait():
    print("begun", flush=True)
    sys.stdin.readline()
with durable.run("waits"):
    wait()
"""
    kernel = program(source, root)
    (before,) = ask("runs").as_(shapes.Runs).runs
    os.kill(kernel.pid, signal.SIGKILL)
    kernel.wait()
    (after,) = ask("runs").as_(shapes.Runs).runs

    assert (before.status, before.ended) == ("running", None)
    assert (after.status, after.ended, after.live) == ("interrupted", None, None)


def test_a_journal_whose_beginning_is_damaged_is_named_and_hides_no_other(ask, log, begin):
    begin().append(ended())
    (log / "journal" / "bbbb0000-0001.jsonl").write_bytes(b'{"c":"broken"}\n')

    runs = ask("runs").as_(shapes.Runs)

    assert [run.run for run in runs.runs] == [RUN]
    assert "bbbb0000-0001" in runs.unreadable[0]


def test_a_run_fails_with_the_error_of_its_newest_execution(ask, begin):
    from tests.server.events import error

    writer = begin()
    writer.append(started("work"))
    writer.append(ended("failed", error=error("the disk is full")))

    (run,) = ask("runs").as_(shapes.Runs).runs

    assert (run.status, run.error.message) == ("failed", "the disk is full")
