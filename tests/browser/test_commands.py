"""Every action can be reached by its menu and by keyboard, does what it says, and asks before it costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.browser.conftest import Jupyter
from tests.browser.lab import IN_FRONT, SETUP, Lab

pytestmark = pytest.mark.timeout(300)

PRICED = (
    SETUP
    + """
from jupyter_durable import durable
durable.price("gpt-4o-mini", input=1000, output=1000)
"""
)

CELL = """\
%%durable three
one, two, three = ask("one"), ask("two"), ask("three")
"""


def opened(jupyter: Jupyter, page: Any, name: str) -> Lab:
    """A notebook whose durable cell has completed."""
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook(name, PRICED, CELL))
    lab.show()
    for index in (0, 1):
        lab.run_cell(index)
        lab.wait_ran(index)
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    return lab


def test_run_from_here_keeps_what_is_before_the_step_and_buys_the_rest_again(
    jupyter: Jupyter, page: Any, endpoint: Endpoint, pictures: Path
):
    lab = opened(jupyter, page, "from.ipynb")
    lab.listen()
    line = lab.panel.get_by_role("treeitem", name="chat.completions").nth(1)
    line.focus()
    page.keyboard.press("Shift+F10")
    lab.menu("Run Durable Cell from the Chosen Step").wait_for()
    page.screenshot(path=str(pictures / "menu of a step.png"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    dialog = lab.asked("Run from this step?")
    assert "2 recorded steps of three are executed again" in dialog.inner_text()
    assert "They had cost $" in dialog.inner_text()
    assert len(endpoint.bill.requests()) == 3
    dialog.get_by_role("button", name="Yes, run again").click()
    lab.panel.locator(".jp-Durable-summary", has_text="1 replayed, 2 new").wait_for()
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    assert len(endpoint.bill.requests()) == 5
    assert [line.split(", ")[2] for line in lab.lines() if line.startswith("chat")] == ["kept", "new", "new"]
    assert "--from" not in page.locator(f"{IN_FRONT} .jp-CodeCell").nth(1).inner_text()
    assert lab.said() == ["Run three: completed."]


def test_a_step_is_copied_as_python_that_finds_it(jupyter: Jupyter, page: Any):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    lab = opened(jupyter, page, "copy.ipynb")
    line = lab.panel.get_by_role("treeitem", name="chat.completions").nth(1)
    line.focus()
    page.keyboard.press("ContextMenu")
    lab.menu("Copy the Chosen Step as Code").click()
    page.locator(".Toastify__toast", has_text="The step is in the clipboard").wait_for()
    code = page.evaluate("() => navigator.clipboard.readText()")

    # The last line shows the step in a notebook; a program prints it.
    program = code.rstrip().removesuffix("step") + "import json\nprint(json.dumps([step['name'], str(step['value'])]))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=jupyter.root,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    name, value = json.loads(done.stdout)
    assert name == "chat.completions"
    assert "gpt-4o-mini" in value or "choices" in value


def test_run_fresh_is_in_the_toolbar_and_menu_of_durable_cells_alone_and_asks(
    jupyter: Jupyter, page: Any, endpoint: Endpoint, pictures: Path
):
    lab = opened(jupyter, page, "fresh.ipynb")
    cells = page.locator(f"{IN_FRONT} .jp-CodeCell")
    cells.nth(1).locator(".jp-InputPrompt").click()
    fresh = page.locator(".jp-cell-toolbar [data-command='jupyter-durable:run-fresh']")
    fresh.wait_for()
    assert page.locator(".jp-cell-toolbar [data-command='jupyter-durable:show-history']").is_visible()
    page.screenshot(path=str(pictures / "cell toolbar.png"))
    fresh.click()
    dialog = lab.asked("Run fresh?")
    assert "3 recorded steps of three are executed again, on a new branch. They had cost $" in dialog.inner_text()
    dialog.get_by_role("button", name="No", exact=True).click()
    dialog.wait_for(state="detached")
    assert len(endpoint.bill.requests()) == 3

    # An ordinary cell has neither the buttons nor the entries.
    cells.nth(0).locator(".jp-InputPrompt").click()
    fresh.wait_for(state="hidden")
    cells.nth(0).locator(".jp-InputPrompt").click(button="right")
    page.locator(".lm-Menu").wait_for()
    lab.menu("Clear Cell Output").wait_for()
    assert lab.menu("Run Durable Cell Fresh").count() == 0
    page.keyboard.press("Escape")

    cells.nth(1).locator(".jp-InputPrompt").click(button="right")
    lab.menu("Show History of Durable Cell").wait_for()
    lab.menu("Run Durable Cell Fresh").click()
    dialog.get_by_role("button", name="Yes, run again").click()
    lab.panel.get_by_label("Branch").wait_for()
    lab.panel.locator(".jp-Durable-summary", has_text="3 new").wait_for()
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    assert len(endpoint.bill.requests()) == 6
