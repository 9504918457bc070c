"""A notebook is executed in a real kernel, which can be killed, and whose failure is told."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.demo.kernels import NotebookFailed, NotebookRun
from jupyter_durable.demo.main_job import NotKilled, _until

ASK = """
import os, openai
client = openai.OpenAI(max_retries=0)
for number in range(5):
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"call {number}"}])
    print(answer.choices[0].message.content)
"""


def write(folder: Path, *cells: str) -> Path:
    path = folder / "notebook.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(cell) for cell in cells]), path)
    return path


def environment(endpoint: Endpoint) -> dict[str, str]:
    return {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "any"}


def printed(path: Path) -> str:
    cells = nbformat.read(path, as_version=4).cells
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))


def test_a_notebook_is_executed_in_its_folder_and_written_back(tmp_path):
    path = write(tmp_path, "import os; print(os.getcwd(), os.environ['WORD'])")

    with NotebookRun(path, {"WORD": "given"}) as kernel:
        assert kernel.wait() == "completed"

    assert printed(path) == f"{tmp_path} given\n"
    assert kernel.seconds > 0


def test_a_kernel_killed_in_the_middle_of_a_call_dies_and_the_call_is_cut(tmp_path):
    path = write(tmp_path, ASK)
    with Endpoint() as endpoint:
        endpoint.bill.hold(3)
        with NotebookRun(path, environment(endpoint)) as kernel:
            assert endpoint.bill.wait_in_flight(3, 60) == "in_flight"
            kernel.kill()
            assert kernel.wait() == "died"
        assert endpoint.bill.wait_ended(3, 10) == "cut"
        states = [request.state for request in endpoint.bill.requests()]

    assert states == ["completed", "completed", "cut"]
    assert nbformat.read(path, as_version=4).cells[0].source == ASK


def test_leaving_the_block_ends_a_kernel_that_still_runs(tmp_path):
    path = write(tmp_path, ASK)
    with Endpoint() as endpoint:
        endpoint.bill.hold(1)
        with NotebookRun(path, environment(endpoint)) as kernel:
            assert endpoint.bill.wait_in_flight(1, 60) == "in_flight"

        assert not kernel.running
        assert endpoint.bill.wait_ended(1, 10) == "cut"


def test_a_cell_that_raises_is_told_with_its_error(tmp_path):
    path = write(tmp_path, "raise ValueError('the reason')")

    with NotebookRun(path, {}) as kernel, pytest.raises(NotebookFailed, match="the reason"):
        kernel.wait()


def test_a_kernel_that_does_not_start_is_told_with_what_it_said(tmp_path):
    path = write(tmp_path, "1 + 1")

    with NotebookRun(path, {"PYTHONHOME": "/nowhere"}) as kernel, pytest.raises(NotebookFailed, match="encodings"):
        kernel.wait()


def test_a_notebook_that_ends_before_the_call_is_told(tmp_path):
    path = write(tmp_path, "1 + 1")

    with NotebookRun(path, {}) as kernel, pytest.raises(NotKilled):
        _until(lambda: False, kernel)
