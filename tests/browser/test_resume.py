"""Resume runs what is needed, top to bottom; a cell that fails ends the round; who does not want to be asked is not."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.browser.conftest import Jupyter
from tests.browser.lab import SETUP, Lab

pytestmark = pytest.mark.timeout(300)

FIRST = """\
%%durable first
one = ask("one")
"""
BETWEEN = """\
from pathlib import Path
assert Path("table.csv").exists(), "the table is not there"
"""
SECOND = """\
%%durable second
two = ask(one)
three = ask(two)
"""


def test_a_failing_cell_ends_the_round_and_with_the_setting_off_nobody_is_asked(
    jupyter: Jupyter, page: Any, endpoint: Endpoint
):
    table = jupyter.root / "table.csv"
    table.touch()
    lab = Lab(page, jupyter)
    notebook = jupyter.notebook("round.ipynb", SETUP, FIRST, BETWEEN, SECOND)
    lab.open(notebook)
    lab.show()
    for index in (0, 1, 2):
        lab.run_cell(index)
        lab.wait_ran(index)
    endpoint.bill.hold(3)
    lab.run_cell(3)
    assert endpoint.bill.wait_in_flight(3, 60)
    jupyter.kill_kernel(notebook)
    page.locator(".Toastify__toast", has_text="The kernel of").wait_for()
    endpoint.bill.release()
    paid = len(endpoint.bill.requests())
    page.evaluate(
        "() => window.jupyterapp.serviceManager.settings.save("
        "'jupyter-durable:plugin', JSON.stringify({askBeforeResume: false}))"
    )
    page.reload()
    lab.ready()
    lab.show()

    table.unlink()
    lab.panel.get_by_role("button", name="Resume second").click()
    stopped = page.locator(".Toastify__toast", has_text="did not come to its end (AssertionError)")
    stopped.wait_for()
    assert "The cells after it were not run." in stopped.inner_text()
    assert len(endpoint.bill.requests()) == paid, "the durable cell above it came back from the log"

    table.touch()
    lab.panel.get_by_role("button", name="Resume second").click()
    stopped.wait_for(state="detached")
    lab.panel.locator(".jp-Durable-summary", has_text="1 replayed, 1 new").wait_for()
    assert page.get_by_role("dialog").count() == 0
    assert len(endpoint.bill.requests()) == paid + 1
