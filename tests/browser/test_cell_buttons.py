"""A cell that waits is answered in its own output: while its kernel is busy, and, once parked, when it was saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from jupyter_durable.kernel.wait_buttons import MIME
from tests.browser.conftest import TOKEN, Jupyter
from tests.browser.lab import IN_FRONT, Lab
from tests.browser.test_answering import ORDER, SETUP, effects

pytestmark = pytest.mark.timeout(300)

BUSY = """\
%%durable busy --grace 10m
happened("drafted")
ok = durable.approve("Send these mails?", show="# To ada\\nDear Ada <img src=x onerror='window.owned=1'>")
happened(f"sent-{ok}")
"""


def buttons(page: Any, index: int) -> Any:
    """What stands below the summary of a cell."""
    cell = page.locator(f"{IN_FRONT} .jp-CodeCell").nth(index)
    return cell.get_by_role("group", name="What this cell waits for")


def test_a_cell_is_answered_in_its_output_while_it_waits_and_from_a_saved_output_and_a_stranger_cannot_ask_there(
    jupyter: Jupyter, page: Any, pictures: Path
):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("asks.ipynb", SETUP, BUSY, ORDER.replace("10m", "0s")))
    lab.run_cell(0)
    lab.wait_ran(0)

    # The kernel is busy with the cell itself.
    lab.run_cell(1)
    asked = buttons(page, 1)
    yes = asked.get_by_role("button", name="Yes")
    yes.wait_for()
    assert "# To ada\nDear Ada <img" in asked.get_by_role("group", name="What was shown").inner_text()
    assert page.locator(f"{IN_FRONT} .jp-CodeCell").nth(1).locator("details summary").count() == 1
    assert asked.get_by_role("button", name="Run the cell").count() == 0
    assert lab.violations(".jp-Durable-cellWaits") == []
    page.screenshot(path=str(pictures / "cell busy.png"))
    assert effects(jupyter) == ["drafted"]
    yes.click()
    lab.wait_ran(1)
    assert effects(jupyter) == ["drafted", "sent-True"]
    asked.wait_for(state="detached")
    assert page.evaluate("() => document.activeElement.closest('.jp-Notebook') !== null"), "the focus stays near"

    # Parked and saved; the page is loaded anew, in Notebook 7.
    lab.run_cell(2)
    buttons(page, 2).get_by_role("button", name="Send").wait_for()
    page.locator(".jp-Durable-dot[aria-label*='parked']").wait_for()
    page.evaluate("async () => { await window.jupyterapp.commands.execute('docmanager:save'); }")
    saved = nbformat.read(jupyter.root / "asks.ipynb", as_version=4)
    (summary,) = [output for output in saved.cells[2].outputs if MIME in output.get("data", {})]
    stranger = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=[summary], execution_count=1)])
    nbformat.write(stranger, jupyter.root / "stranger.ipynb")
    lab.open("asks.ipynb", notebook7=True)
    asked = buttons(page, 2)
    money = asked.get_by_label("sum")
    money.fill("-3")
    asked.get_by_label("kind").select_option("card")
    asked.get_by_role("button", name="Send").click()
    asked.get_by_role("alert").filter(has_text="The answer does not fit its schema").wait_for()
    page.screenshot(path=str(pictures / "cell parked.png"))
    assert lab.violations(".jp-Durable-cellWaits") == []

    # Another notebook with the same output has nothing to be answered: its log knows better.
    other = page.context.new_page()
    other.goto(f"{jupyter.url}notebooks/stranger.ipynb?token={TOKEN}")
    group = buttons(other, 0)
    group.get_by_text("1 request of this cell no longer waits.").wait_for()
    assert group.get_by_role("button").count() == 0
    other.close()

    page.bring_to_front()
    money.fill("31.5")
    page.keyboard.press("Enter")
    asked.get_by_text("Answered by").wait_for()
    run = asked.get_by_role("button", name="Run the cell")
    run.wait_for()
    page.wait_for_function("() => document.activeElement.textContent === 'Run the cell'")
    page.screenshot(path=str(pictures / "cell answered.png"))
    assert effects(jupyter) == ["drafted", "sent-True", "ordered"]
    page.keyboard.press("Enter")
    page.locator(".jp-Durable-dot[aria-label='Durable run order: completed']").wait_for()
    asked.wait_for(state="detached")
    assert effects(jupyter) == ["drafted", "sent-True", "ordered", "paid-31.5-card"]
    page.locator(f"{IN_FRONT} .jp-OutputArea-executeResult", has_text="'paid-31.5-card'").wait_for()
    assert page.get_by_role("dialog").count() == 0
    assert page.evaluate("() => typeof window.owned") == "undefined"
