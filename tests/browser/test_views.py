"""What the panel and the views beside the notebook show of runs and branches, and that everybody can use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Jupyter
from tests.browser.lab import SETUP, Lab

pytestmark = pytest.mark.timeout(300)

CELL = """\
%%durable topics
answers = [ask(f"Say something about {topic}.") for topic in ("logs", "locks")]
total = note(" ".join(answers))
"""

BROKEN = """\
%%durable broken
note("before")

@step
def fail(reason):
    raise ValueError(f"no {reason} here")

fail("luck")
"""


def test_a_failed_step_shows_its_error_and_the_cell_is_offered_again(jupyter: Jupyter, page: Any):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("broken.ipynb", SETUP, BROKEN))
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.panel.get_by_role("treeitem", name="fail, failed").click()

    details = lab.panel.get_by_role("region", name="Step fail")
    details.get_by_text("no luck here").first.wait_for()
    details.get_by_text("Traceback").first.click()
    assert 'raise ValueError(f"no {reason} here")' in details.get_by_role("region", name="Traceback").inner_text()
    lab.panel.get_by_role("button", name="Resume").wait_for()

    lab.panel.get_by_role("searchbox").fill("luck")
    lab.panel.get_by_text("1 step matches").wait_for()
    lab.panel.get_by_role("treeitem", name="Cell [2]").wait_for()
    assert [line.split(",")[0] for line in lab.lines()] == ["Cell [2]", "fail"]


def test_an_edit_makes_a_branch_and_both_stand_side_by_side(jupyter: Jupyter, page: Any, pictures: Path):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("edited.ipynb", SETUP, CELL))
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()

    lab.edit_cell(1, CELL.replace('"locks"', '"locks", "leases"'))
    lab.run_cell(1)
    lab.panel.get_by_label("Branch").wait_for()
    lab.panel.get_by_role("treeitem", name="kept").first.wait_for()

    lab.command("view", {"view": "compare"})
    views = page.locator("#jupyter-durable-views")
    views.get_by_role("table").wait_for()
    table = views.get_by_role("table").inner_text()
    assert "equal" in table
    assert "only after" in table or "other arguments" in table
    page.screenshot(path=str(pictures / "compare.png"))
    assert lab.violations("#jupyter-durable-views") == []

    views.get_by_role("tab", name="Timeline").click()
    views.get_by_role("listitem").first.wait_for()
    page.screenshot(path=str(pictures / "timeline.png"))
    assert lab.violations("#jupyter-durable-views") == []

    views.get_by_role("tab", name="Spend").click()
    views.get_by_role("row", name="gpt-4o-mini").or_(views.get_by_role("row").nth(1)).first.wait_for()
    page.screenshot(path=str(pictures / "spend.png"))
    assert lab.violations("#jupyter-durable-views") == []

    views.get_by_role("tab", name="SQL").click()
    views.get_by_label("SQL query").fill("SELECT name, count(*) AS n FROM steps GROUP BY name ORDER BY name")
    views.get_by_role("button", name="Run query").click()
    views.get_by_role("cell", name="note").wait_for()
    page.screenshot(path=str(pictures / "sql.png"))
    assert lab.violations("#jupyter-durable-views") == []
    views.get_by_label("SQL query").fill("SELECT nothing FROM nowhere")
    views.get_by_label("SQL query").press("Control+Enter")
    views.get_by_role("alert").wait_for()


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast"])
def test_axe_finds_nothing_wrong_with_the_panel(jupyter: Jupyter, page: Any, theme: str, pictures: Path):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("axe.ipynb", SETUP, CELL))
    lab.show()
    lab.panel.get_by_text("No durable run yet").wait_for()
    assert lab.violations("#jupyter-durable-panel") == []

    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    lab.panel.get_by_role("treeitem", name="chat.completions").first.click()
    lab.panel.get_by_text("Say something about logs.").first.wait_for()
    page.screenshot(path=str(pictures / f"panel {theme}.png"))
    assert lab.violations("#jupyter-durable-panel") == []


def test_the_tree_is_used_by_keyboard_alone(jupyter: Jupyter, page: Any):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("keys.ipynb", SETUP, CELL))
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()

    lab.panel.get_by_role("treeitem", name="note").wait_for()
    lab.panel.get_by_role("treeitem", name="Cell [2]").wait_for()

    def focused() -> str:
        return page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName")

    lab.panel.get_by_role("searchbox").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert focused().startswith("Cell [2]")
    page.keyboard.press("ArrowDown")
    assert focused().startswith("chat.completions")
    page.keyboard.press("n")
    page.keyboard.press("ArrowDown")
    assert focused().startswith("note")
    page.keyboard.press("Enter")
    lab.panel.get_by_role("region", name="Step note").wait_for()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    lab.panel.locator("[role=treeitem][aria-expanded=false]").wait_for()
    page.keyboard.press("/")
    assert focused().startswith("Filter steps")
    page.keyboard.press("Shift+Tab")
    assert lab.panel.locator("[role=treeitem]").count() == 1


def test_notebook_7_has_the_panel_too(jupyter: Jupyter, page: Any, pictures: Path):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("seven.ipynb", SETUP, CELL), notebook7=True)
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    lab.panel.get_by_role("treeitem", name="note").wait_for()
    lab.command("view", {"view": "timeline"})
    page.locator("#jupyter-durable-views").get_by_role("listitem").first.wait_for()
    page.wait_for_function("() => document.querySelector('#jupyter-durable-views').clientHeight > 200")
    page.screenshot(path=str(pictures / "notebook 7.png"))
    assert lab.violations("#jupyter-durable-panel") == []


def test_ten_thousand_steps_scroll(jupyter: Jupyter, page: Any):
    lab = Lab(page, jupyter)
    many = "%%durable many --durability process\nfor i in range(10_000):\n    note(i)\n"
    setup = "%load_ext jupyter_durable\nfrom jupyter_durable import step\n\n@step\ndef note(n):\n    return n\n"
    lab.open(jupyter.notebook("many.ipynb", setup, many))
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for(timeout=150_000)
    lab.panel.locator(".jp-Durable-summary", has_text="10000 steps").wait_for()

    assert lab.panel.locator("[role=treeitem]").count() < 100
    most = page.evaluate(
        """async () => {
          const tree = document.querySelector('#jupyter-durable-panel [role=tree]');
          let most = 0;
          for (let i = 1; i <= 60; i++) {
            tree.scrollTop = (tree.scrollHeight * i) / 60;
            await new Promise(requestAnimationFrame);
            most = Math.max(most, tree.querySelectorAll('[role=treeitem]').length);
          }
          return most;
        }"""
    )
    assert most < 100  # however far one scrolls; what a frame takes depends on the machine, and is measured elsewhere
    assert lab.lines()[-1].startswith("note")
