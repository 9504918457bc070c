"""The notebooks run, are kept clean, and replay: executed a second time, they ask for nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.demo.kernels import NotebookRun

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs_and_with_names_for_its_cells(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)

    for cell in notebook.cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        assert not cell.metadata
        # A generated id is noise in every difference; a word tells what the cell is for.
        assert cell.id.replace("-", "").isalpha()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_asks_the_model_once_however_often_it_is_run(path, tmp_path):
    copy = Path(shutil.copy(path, tmp_path))
    with Endpoint() as endpoint:
        variables = {
            "OPENAI_BASE_URL": endpoint.url,
            "OPENAI_API_KEY": "any",
            # As under a Jupyter server: the kernel knows its notebook, and a person sits in front of it.
            "JPY_SESSION_NAME": str(copy),
        }
        bills = []
        for _ in range(2):
            with NotebookRun(copy, variables) as kernel:
                assert kernel.wait() == "completed"
            bills.append(endpoint.bill.summary()["requests"])

    assert bills[0] > 0
    assert bills[1] == bills[0]
