"""From the panel: a running cell is cancelled and resumed, and one of two child runs is cancelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Jupyter
from tests.browser.lab import Lab

pytestmark = pytest.mark.timeout(300)

SETUP = """\
%load_ext jupyter_durable
import asyncio
from pathlib import Path
from jupyter_durable import durable, step
from jupyter_durable.errors import ChildCancelled

@step
def happened(what):
    with Path("effects.txt").open("a") as effects:
        effects.write(what + "\\n")
    return what
"""

COUNT = """\
%%durable count
happened("first")
while not Path("go").exists():
    await asyncio.sleep(0.05)
happened("second")
"""

BOOK = """\
%%durable book --grace 10m

async def page(name):
    try:
        async with durable.run(name):
            happened(f"drafted-{name}")
            word = await durable.wait_for("word")
            return happened(f"{word}-{name}")
    except ChildCancelled:
        return happened(f"without-{name}")

await asyncio.gather(page("ada"), page("bob"))
"""


def effects(jupyter: Jupyter) -> list[str]:
    """What really happened, in order."""
    return Path(jupyter.root / "effects.txt").read_text(encoding="utf-8").split()


def test_runs_and_child_runs_are_cancelled_and_resumed(jupyter: Jupyter, page: Any, pictures: Path):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("book.ipynb", SETUP, COUNT, BOOK))
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    a_running_cell_ends_with_run_cancelled(lab, pictures)
    it_is_resumed_after_a_question_and_repeats_nothing(lab)
    a_child_run_is_cancelled_and_its_sister_goes_on(lab, pictures)


def a_running_cell_ends_with_run_cancelled(lab: Lab, pictures: Path) -> None:
    """By keyboard, with a reason."""
    page, panel = lab.page, lab.panel
    lab.run_cell(1)
    panel.get_by_role("treeitem", name="happened, new").wait_for()
    panel.get_by_role("button", name="Cancel …").click()
    form = panel.get_by_role("form", name="Cancel count")
    form.get_by_text("ends at its next await or step").wait_for()
    page.screenshot(path=str(pictures / "cancel.png"))
    assert lab.violations("#jupyter-durable-panel") == []
    page.keyboard.type("wrong edition")
    page.keyboard.press("Enter")
    panel.get_by_text("(wrong edition). It goes on only when it is resumed.").wait_for()
    page.locator(".jp-OutputArea-output", has_text="RunCancelled").wait_for()
    page.locator(".jp-Durable-dot[aria-label='Durable run count: cancelled']").wait_for()
    page.locator(".jp-Durable-status", has_text="1 durable cell cancelled").wait_for()
    assert panel.locator(".jp-Durable-waiting").count() == 0
    assert panel.get_by_role("button", name="Cancel …").count() == 0
    page.screenshot(path=str(pictures / "cancelled.png"))
    assert lab.violations("#jupyter-durable-panel") == []


def it_is_resumed_after_a_question_and_repeats_nothing(lab: Lab) -> None:
    """Replay comes first; nothing new is executed without a yes."""
    Path(lab.jupyter.root / "go").touch()
    lab.panel.get_by_role("button", name="Resume count").click()
    asked = lab.asked("count: execute new steps?")
    assert effects(lab.jupyter) == ["first"]
    asked.get_by_role("button", name="Yes, go on").click()
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    assert effects(lab.jupyter) == ["first", "second"]


def a_child_run_is_cancelled_and_its_sister_goes_on(lab: Lab, pictures: Path) -> None:
    """It is a group of the tree; its wait names it, and goes with it."""
    page, panel = lab.page, lab.panel
    lab.run_cell(2)
    waits = panel.locator(".jp-Durable-wait[data-request]")
    waits.get_by_role("button", name="book / ada: signal word").wait_for()
    ada = panel.get_by_role("treeitem", name="ada, child run, waiting, 2 steps")
    ada.wait_for()
    assert ada.get_attribute("aria-expanded") == "true"
    page.screenshot(path=str(pictures / "children.png"))
    ada.click()
    panel.get_by_role("button", name="Cancel the child run …").click()
    form = panel.get_by_role("form", name="Cancel book / ada")
    form.get_by_text("Its parent receives ChildCancelled").wait_for()
    page.screenshot(path=str(pictures / "child.png"))
    assert lab.violations("#jupyter-durable-panel") == []
    page.keyboard.press("Enter")
    panel.get_by_role("treeitem", name="ada, child run, cancelled, 2 steps").wait_for()
    waits.get_by_role("button", name="book / ada: signal word").wait_for(state="detached")

    bob = waits.filter(has=page.get_by_role("button", name="book / bob: signal word"))
    bob.get_by_label("Value").fill('"kept"')
    bob.get_by_role("button", name="Send").click()
    panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    panel.get_by_role("treeitem", name="bob, child run, completed, 3 steps").wait_for()
    assert sorted(effects(lab.jupyter)[2:]) == ["drafted-ada", "drafted-bob", "kept-bob", "without-ada"]
    page.screenshot(path=str(pictures / "children done.png"))
