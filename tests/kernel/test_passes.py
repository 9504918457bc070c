"""Notebooks that nobody watches: nbclient, papermill, `jupyter execute`. What a pass is, and which one is resumed."""

from __future__ import annotations

import os
import subprocess
import sys

import nbclient
import nbformat
import pytest

from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import ExecutionHeader, Head, Origin, Outcome
from jupyter_durable.kernel.passes import Passes, attended, choose, left_open
from jupyter_durable.log.base import ExecutionRecord


def record(pass_id, started, name="r"):
    head = ExecutionHeader(
        format=1, execution=f"e{started}", run="r", name=name, branch="b", branch_name="main", pass_id=pass_id
    )
    return ExecutionRecord(head, started, Head(execution="e", seq=0, chain=""), None, None, running=False, folded=False)


# The decision -------------------------------------------------------------------------------------------------------


def test_the_newest_pass_is_resumed_while_it_is_open():
    records = [record("p1", 1.0), record("p2", 2.0), record("", 3.0)]

    assert choose(records, lambda name: name == "p1") == "p2"
    assert choose(records, lambda name: name == "p2") is None
    assert choose([], lambda name: False) is None


def test_a_kernel_has_one_pass(tmp_path):
    passes = Passes({})

    first = passes.of(str(tmp_path), list)

    assert passes.of(str(tmp_path), lambda: [record("other", 1.0)]) == first


def test_a_pass_is_closed_only_after_success(tmp_path):
    passes = Passes({})
    name = passes.of(str(tmp_path), list)

    passes.close(succeeded=False, records=list)
    resumed = Passes({}).of(str(tmp_path), lambda: [record(name, 1.0)])
    passes.close(succeeded=True, records=list)
    after = Passes({}).of(str(tmp_path), lambda: [record(name, 1.0)])

    assert resumed == name
    assert after != name
    assert [path.name for path in (tmp_path / "passes").iterdir()] == [f"{name}.closed"]


def ended(branch, *, code="c", status="completed", origin="", continues=""):
    """One execution of a branch of the pass ``p``; without a status it was killed."""
    header = ExecutionHeader(
        format=1, execution=f"e-{branch}", run="r", name="r", branch=branch, branch_name=branch, pass_id="p", code=code,
        origin=Origin(branch=origin, execution="e", seq=0) if origin else None, continues=continues,
    )  # fmt: skip
    outcome = Outcome(status=status) if status else None
    head = Head(execution="e", seq=0, chain="")
    return ExecutionRecord(header, 0.0, head, outcome, None, running=False, folded=False)


def test_a_pass_stays_open_while_other_parameters_of_it_are_unfinished():
    """Papermill with A was killed, with B came to its end: A is still to be resumed."""
    a, b = ended("a", status=""), ended("b", origin="a")

    assert left_open([a, b], "p")
    assert not left_open([ended("a"), b], "p")


def test_a_branch_that_was_given_up_for_an_edited_one_does_not_keep_a_pass_open():
    assert not left_open([ended("a", status="failed"), ended("b", code="edited", origin="a")], "p")


def test_a_pass_stays_open_between_two_branches_of_a_run_that_goes_on_anew():
    a, b = ended("a", status="continued"), ended("b", continues="a")

    assert left_open([a], "p")
    assert not left_open([a, b], "p")


def test_the_environment_can_name_the_pass(tmp_path):
    passes = Passes({"JUPYTER_DURABLE_PASS": "2026-11-30"})

    assert passes.of(str(tmp_path), list) == "2026-11-30"
    passes.close(succeeded=True, records=list)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="cannot name a pass"):
        Passes({"JUPYTER_DURABLE_PASS": "../x"}).of(str(tmp_path), list)


def test_a_person_is_told_by_the_notebook_or_by_the_request():
    class Shell:
        kernel = object()

        def __init__(self, stdin):
            self.stdin = stdin

        def get_parent(self):
            return {"content": {"allow_stdin": self.stdin}}

    assert attended(Shell(stdin=False), "/a.ipynb")
    assert attended(Shell(stdin=True), "")
    assert attended(object(), "")
    assert not attended(Shell(stdin=False), "")


# Whole notebooks ----------------------------------------------------------------------------------------------------


@pytest.fixture
def execute(tmp_path, effects):
    """Executes a notebook as a scheduler does; returns the executed notebook, or what it failed with."""
    setup = effects.code + "%load_ext jupyter_durable\nfrom jupyter_durable import step\nimport asyncio, os\n"

    def execute(*cells, by="nbclient", **environment):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (setup, *cells)])
        path = tmp_path / "report.ipynb"
        nbformat.write(notebook, path)
        if by == "nbclient":
            client = nbclient.NotebookClient(
                notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
            )
            client.execute(env={**os.environ, **environment})
            return notebook
        command = {
            "papermill": [
                sys.executable,
                "-m",
                "papermill",
                "-k",
                "python3",
                "--cwd",
                str(tmp_path),
                str(path),
                str(path),
            ],
            "jupyter execute": [
                sys.executable,
                "-m",
                "jupyter",
                "execute",
                "--inplace",
                "--kernel_name=python3",
                str(path),
            ],
        }[by]
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return nbformat.read(path, as_version=4)

    return execute


STEPS = """
@step
def ask(n): hit(f"ask{n}"); return n
@step
async def fetch(n): hit(f"fetch{n}"); return n
"""
FIRST = "%%durable first\na = ask(1)\na"
SECOND = "%%durable second\nb = await fetch(2)\nif os.path.exists('broken'): raise RuntimeError('no disk')\nb + 1"


def said(notebook, cell):
    outputs = notebook.cells[cell].outputs
    return "".join(str(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in outputs)


@pytest.mark.parametrize("by", ["nbclient", "papermill", "jupyter execute"])
def test_a_failed_notebook_is_resumed_and_a_completed_one_begins_anew(execute, effects, tmp_path, by):
    """Rule 19: a daily notebook must not report yesterday for ever, nor pay twice because it was cut short."""
    (tmp_path / "broken").touch()
    with pytest.raises((nbclient.exceptions.CellExecutionError, RuntimeError), match="no disk"):
        execute(STEPS, FIRST, SECOND, by=by)
    assert effects.tags() == ["ask1", "fetch2"]

    (tmp_path / "broken").unlink()
    resumed = execute(STEPS, FIRST, SECOND, by=by)

    assert effects.tags() == ["ask1", "fetch2"]
    assert "first · 1 step · 1 replayed" in said(resumed, 2)
    assert said(resumed, 3).startswith("3second · ")
    assert "--fresh" not in said(resumed, 2)

    execute(STEPS, FIRST, SECOND, by=by)
    assert effects.tags() == ["ask1", "fetch2"] * 2


def test_a_killed_notebook_is_resumed(execute, effects, tmp_path):
    (tmp_path / "deadly").touch()
    die = "%%durable second\nb = await fetch(2)\nif os.path.exists('deadly'): os.kill(os.getpid(), 9)\nb"
    with pytest.raises(nbclient.exceptions.DeadKernelError):
        execute(STEPS, FIRST, die)

    (tmp_path / "deadly").unlink()
    execute(STEPS, FIRST, die)

    assert effects.tags() == ["ask1", "fetch2"]


def test_a_named_pass_is_the_same_pass_also_after_success(execute, effects):
    execute(STEPS, FIRST, JUPYTER_DURABLE_PASS="monday")
    execute(STEPS, FIRST, JUPYTER_DURABLE_PASS="monday")
    execute(STEPS, FIRST, JUPYTER_DURABLE_PASS="tuesday")

    assert effects.count("ask1") == 2


def test_equal_cells_of_one_pass_are_runs_of_their_own(execute, effects):
    execute(STEPS, "%%durable\nask(7)", "%%durable\nask(7)", JUPYTER_DURABLE_PASS="p")
    again = execute(STEPS, "%%durable\nask(7)", "%%durable\nask(7)", JUPYTER_DURABLE_PASS="p")

    assert effects.tags() == ["ask7"] * 2
    assert said(again, 2).split(" · ")[0] + "-2" == said(again, 3).split(" · ")[0]


def test_the_last_expression_and_one_summary_are_in_the_executed_notebook(execute):
    """G14 under nbclient; the stored notebook is valid and its summary static."""
    notebook = execute(STEPS, "%%durable hello\nx = await fetch(41)\nx + 1", "x")

    outputs = notebook.cells[2].outputs
    assert [output.output_type for output in outputs] == ["execute_result", "display_data"]
    assert outputs[0]["data"]["text/plain"] == "42"
    html = outputs[1]["data"]["text/html"]
    assert "<details>" in html
    assert "<script" not in html
    assert said(notebook, 3) == "41"
    nbformat.validate(notebook)


def test_a_failed_durable_cell_fails_the_execution(execute, effects):
    """G15 by command line: the exit status is not 0, later cells do not run."""
    with pytest.raises(RuntimeError, match="declined"):
        execute(
            STEPS,
            "@step\ndef charge(n): raise ValueError('declined')",
            "%%durable pay\ncharge(12)",
            "hit('ship goods')",
            by="jupyter execute",
        )

    assert effects.tags() == []
