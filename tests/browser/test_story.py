"""The main story: steps arrive while the cell runs, the kernel dies, the panel resumes, nothing is paid for twice."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.browser.conftest import Jupyter
from tests.browser.lab import SETUP, Lab

pytestmark = pytest.mark.timeout(300)

CELL = """\
%%durable research
plan = ask("Which questions?")
note(plan)
answers = [ask(f"Answer question {number}.") for number in (1, 2, 3)]
note("done")
"""


def test_a_kernel_is_killed_and_resumed_from_the_panel_and_nothing_is_paid_twice(
    jupyter: Jupyter, page: Any, endpoint: Endpoint
):
    lab = Lab(page, jupyter)
    notebook = jupyter.notebook("story.ipynb", SETUP, CELL)
    lab.open(notebook)
    lab.show()
    lab.panel.get_by_text("No durable run yet").wait_for()
    lab.run_cell(0)
    lab.wait_ran(0)

    # The third request hangs: two calls are paid for, and the cell still runs.
    endpoint.bill.hold(3)
    lab.run_cell(1)
    assert endpoint.bill.wait_in_flight(3, 60)
    lab.panel.locator("[role=treeitem]", has_text="running").wait_for()
    assert any(re.match(r"note, (new|recorded)", line) for line in lab.lines()), lab.lines()
    page.locator(".jp-Durable-dot[aria-label*='running']").wait_for()

    jupyter.kill_kernel(notebook)
    notice = page.locator(".Toastify__toast", has_text="The kernel of")
    notice.wait_for()
    assert "1 durable cell can be resumed. Recorded steps that come back: 3." in notice.inner_text()
    lab.panel.locator(".jp-Durable-summary", has_text="interrupted").wait_for()
    lab.panel.locator("[role=treeitem]", has_text="in doubt").wait_for()
    page.locator(".jp-Durable-dot[aria-label*='interrupted']").wait_for()
    paid = len(endpoint.bill.requests())

    endpoint.bill.release()
    notice.get_by_role("button", name="Resume").click()
    dialog = lab.asked("execute new steps?")
    assert "3 steps came back from the log." in dialog.inner_text()
    assert "chat.completions (model call, gpt-4o-mini, in doubt, at most " in dialog.inner_text()
    assert len(endpoint.bill.requests()) == paid, "nothing is bought before a person has said yes"
    dialog.get_by_role("button", name="Yes, go on").click()
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for(timeout=60_000)
    assert len(endpoint.bill.requests()) == paid + 2, "the one that was cut, and the one after it"
    lab.panel.locator(".jp-Durable-summary", has_text="3 replayed, 3 new").wait_for()

    before = len(endpoint.bill.requests())
    lab.run_cell(1)
    lab.panel.locator(".jp-Durable-summary", has_text="6 replayed").wait_for()
    assert len(endpoint.bill.requests()) == before
