"""Which notebook and which run a cell belongs to: the decisions alone, then in real kernels."""

from __future__ import annotations

import json
import shutil

import pytest

from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.kernel.identity import (
    CellFacts,
    NotebookFacts,
    _own_session,
    other_owner,
    run_name,
)


def header(notebook="", path="", name="", cell="", code="c0"):
    return ExecutionHeader(
        format=1, execution=f"{notebook}{path}{name}{cell}{code}", run="r", name=name, branch="b", branch_name="main",
        notebook=notebook, path=path, cell=cell, code=code,
    )  # fmt: skip


def cell(cell_id="", name="", code="c0", handle=""):
    return CellFacts(cell_id, handle, name, code)


# Runs ---------------------------------------------------------------------------------------------------------------


def test_a_run_is_called_after_its_cell():
    assert run_name(cell("0123abcd-4567"), NotebookFacts(), []) == "cell-0123abcd"


def test_a_cell_with_the_code_of_one_that_is_gone_takes_up_its_run():
    known = [header(name="cell-oldone12", cell="oldone12", code="c1")]
    gone = NotebookFacts(sources={"newone12": "..."})
    deleted = NotebookFacts(deleted={"oldone12"})

    assert run_name(cell("newone12", code="c1"), gone, known) == "cell-oldone12"
    assert run_name(cell("newone12", code="c1"), deleted, known) == "cell-oldone12"


@pytest.mark.parametrize(
    "facts",
    [
        NotebookFacts(sources={"newone12": "...", "oldone12": "..."}),
        NotebookFacts(sources={"oldone12": "..."}),
        NotebookFacts(sources={"another1": "..."}),
        NotebookFacts(sources={"newone12": "..."}, seen={"oldone12": "cell-oldone12"}),
        NotebookFacts(sources=None),
    ],
    ids=["both", "not saved since", "saved before both", "ran in this kernel", "no file"],
)
def test_a_copied_cell_is_a_run_of_its_own(facts):
    known = [header(name="cell-oldone12", cell="oldone12", code="c1")]

    assert run_name(cell("newone12", code="c1"), facts, known) == "cell-newone12"


def test_a_file_without_ids_lets_a_cell_be_found_by_its_code():
    known = [header(name="cell-oldone12", cell="oldone12", code="c1")]

    assert run_name(cell("newone12", code="c1"), NotebookFacts(sources={}), known) == "cell-oldone12"


def test_a_run_that_a_user_named_is_never_taken_up_by_its_code():
    known = [header(name="report", cell="oldone12", code="c1")]

    assert run_name(cell("newone12", code="c1"), NotebookFacts(sources={"newone12": ""}), known) == "cell-newone12"


def test_a_handle_holds_while_the_notebook_is_open_and_the_code_after_that():
    known = [header(name="code-c1", code="c1")]
    facts = NotebookFacts(seen={"vs:#W1": "code-c1"})

    assert run_name(cell(handle="vs:#W1", code="edited"), facts, known) == "code-c1"
    assert run_name(cell(handle="vs:#W9", code="c1"), NotebookFacts(), known) == "code-c1"
    assert run_name(cell(handle="vs:#W2", code="c1"), facts, known) == "code-c1-2"


# Names on two cells -------------------------------------------------------------------------------------------------


def test_a_name_on_two_cells_asks():
    known = [header(name="report", cell="first123")]
    both = NotebookFacts(sources={"first123": "%%durable report\nx", "second12": "%%durable report\ny"})
    seen = NotebookFacts(seen={"first123": "report"})

    assert other_owner(cell("second12", "report"), both, known) == "first123"
    assert other_owner(cell("second12", "report"), seen, known) == "first123"
    assert other_owner(cell("", "report", handle="vs:#2"), NotebookFacts(seen={"vs:#1": "report"}), []) == "vs:#1"


@pytest.mark.parametrize(
    "facts",
    [
        NotebookFacts(sources={"second12": "%%durable report"}),
        NotebookFacts(sources={"second12": "%%durable report", "first123": "%%durable other"}),
        NotebookFacts(sources={"second12": "%%durable report", "first123": "plain"}),
        NotebookFacts(deleted={"first123"}, seen={"first123": "report"}, sources={"first123": "%%durable report"}),
        NotebookFacts(seen={"first123": "renamed"}),
        NotebookFacts(seen={"first123": "report"}, sources={"second12": "%%durable report"}),
    ],
    ids=["gone", "has another name now", "is plain now", "deleted", "renamed in this kernel", "saved without it"],
)
def test_a_name_that_moved_to_another_cell_does_not_ask(facts):
    assert other_owner(cell("second12", "report"), facts, [header(name="report", cell="first123")]) == ""


def test_a_notebook_name_inherited_from_another_kernel_is_not_ours(monkeypatch):
    assert _own_session({"JPY_SESSION_NAME": "/x/a.ipynb"}) == "/x/a.ipynb"
    assert _own_session({"JPY_SESSION_NAME": "console"}) == ""
    assert _own_session({}) == ""


# In kernels ---------------------------------------------------------------------------------------------------------

SETUP = """
%load_ext jupyter_durable
from jupyter_durable import step
@step
def ask(n): hit(f"ask{n}"); return n
"""


@pytest.fixture
def notebook(tmp_path, start_kernel, effects):
    """Writes notebook files, and starts kernels that are told of one, as a Jupyter server does."""

    def notebook(name, cells=None, same=None):
        path = tmp_path / name
        if cells is not None:
            path.write_text(
                json.dumps(
                    {
                        "cells": [
                            {"cell_type": "code", "id": each, "source": source, "metadata": {}, "outputs": []}
                            for each, source in cells.items()
                        ],
                        "metadata": {},
                        "nbformat": 4,
                        "nbformat_minor": 5,
                    }
                )
            )
        if same is not None:
            same.restart(JPY_SESSION_NAME=str(path))
            same.ok(effects.code + SETUP)
            return path, same
        return path, start_kernel(setup=effects.code + SETUP, JPY_SESSION_NAME=str(path))

    return notebook


def test_a_renamed_notebook_resumes_and_says_so(notebook, effects, tmp_path):
    """G26: nothing is paid for again after a rename."""
    path, kernel = notebook("plan.ipynb", {"aaaa0001": "%%durable\nask(1)"})
    kernel.ok("%%durable\nask(1)", "aaaa0001")
    path.rename(tmp_path / "plan-v2.ipynb")
    _, kernel = notebook("plan-v2.ipynb", same=kernel)

    ran = kernel.ok("%%durable\nask(1)", "aaaa0001")

    assert ran.summary.startswith("cell-aaaa0001 · 1 step · 1 replayed")
    assert "found again under its new name; it was plan.ipynb before" in ran.summary
    assert effects.tags() == ["ask1"]
    assert "aaaa0001" in kernel.ok("%durable").displays[0]


def test_a_copy_has_runs_of_its_own(notebook, effects, tmp_path):
    """G26: the copy does not take over the original's run."""
    path, kernel = notebook("plan.ipynb", {"aaaa0001": "%%durable plan\nask(1)"})
    kernel.ok("%%durable plan\nask(1)", "aaaa0001")
    shutil.copy(path, tmp_path / "copy.ipynb")
    _, kernel = notebook("copy.ipynb", same=kernel)

    copied = kernel.ok("%%durable plan\nask(1)", "aaaa0001")
    shared = kernel.ok("%%durable plan --shared\nask(1)", "aaaa0001")
    _, kernel = notebook("plan.ipynb", same=kernel)
    original = kernel.ok("%%durable plan\nask(1)", "aaaa0001")
    again = kernel.ok("%%durable plan --shared\nask(1)", "aaaa0001")

    assert "1 new" in copied.summary
    assert "1 new" in shared.summary
    assert "1 replayed" in original.summary
    assert "1 replayed" in again.summary
    assert effects.tags() == ["ask1"] * 3


def test_two_cells_with_one_name_ask(notebook, effects):
    """Rule 21: the second would go on with the history of the first."""
    cells = {"aaaa0001": "%%durable plan\nask(1)", "aaaa0002": "%%durable plan\nask(2)"}
    _, kernel = notebook("plan.ipynb", cells)
    kernel.ok(cells["aaaa0001"], "aaaa0001")

    refused = kernel.run(cells["aaaa0002"], "aaaa0002")
    deleted = kernel.ok(cells["aaaa0002"], "aaaa0002", deletedCells=["aaaa0001"])

    assert refused.reply["ename"] == "UsageError"
    assert "belongs to another cell of this notebook (`aaaa0001`)" in refused.error
    assert deleted.status == "ok"
    assert effects.tags() == ["ask1", "ask2"]


def test_the_log_lies_beside_the_notebook(notebook, tmp_path):
    (tmp_path / "sub").mkdir()
    _, kernel = notebook("sub/plan.ipynb", {})
    kernel.ok("%%durable plan\nask(1)")

    assert (tmp_path / "sub" / ".durable" / "journal").is_dir()
    assert not (tmp_path / ".durable").exists()


def test_vs_code_tells_the_notebook_in_a_variable(start_kernel, effects, tmp_path):
    kernel = start_kernel(setup=effects.code + SETUP)
    (tmp_path / "code").mkdir()
    kernel.ok(f"__vsc_ipynb_file__ = {str(tmp_path / 'code' / 'nb.ipynb')!r}")
    first = kernel.ok("%%durable\nask(1)", "vscode-notebook-cell:/code/nb.ipynb#W0sZmlsZQ==")
    edited = kernel.ok("%%durable\nask(1)\nask(2)", "vscode-notebook-cell:/code/nb.ipynb#W0sZmlsZQ==")

    assert (tmp_path / "code" / ".durable").is_dir()
    assert first.summary.split(" · ")[0] == edited.summary.split(" · ")[0]
    assert edited.summary.split(" · ")[1] == "main-2"
    assert effects.tags() == ["ask1", "ask2"]
