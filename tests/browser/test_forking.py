"""From the panel: forking at a step, choosing and comparing branches, progress of a long step, an early signal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Jupyter
from tests.browser.lab import Lab
from tests.browser.test_output import Cell, cell  # noqa: F401 - a fixture

pytestmark = pytest.mark.timeout(300)

SETUP = """\
%load_ext jupyter_durable
import time
from pathlib import Path
from jupyter_durable import durable, step

def happened(what):
    with Path("effects.txt").open("a") as effects:
        effects.write(what + "\\n")

@step
def outline(topic):
    happened("outline")
    return f"three thoughts about {topic}"

@step
def write(plan, tone):
    happened(f"write-{tone}")
    return f"a {tone} letter of {plan}"

@step(heartbeat="30s")
def crawl(pages):
    while not Path("go").exists():
        durable.heartbeat()
        durable.progress(3, pages, "pages")
        time.sleep(0.05)
    happened("crawled")

topic, tone = "tides", "dry"
"""

LETTER = """\
%%durable letter
plan = outline(topic)
letter = write(plan, tone)
"""

ORDER = """\
%%durable order --grace 10m
crawl(10)
payment = durable.wait_for("payment")
happened(f"paid-{payment['sum']}")
"""


def effects(jupyter: Jupyter) -> list[str]:
    """What really happened, in order."""
    return Path(jupyter.root / "effects.txt").read_text(encoding="utf-8").split()


def test_forking_choosing_progress_and_an_early_signal(jupyter: Jupyter, page: Any, pictures: Path):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("letters.ipynb", SETUP, LETTER, ORDER))
    lab.show()
    for index in (0, 1):
        lab.run_cell(index)
        lab.wait_ran(index)
    summary = lab.panel.locator(".jp-Durable-summary")
    summary.filter(has_text="completed").wait_for()
    forks_at_a_step_by_keyboard(lab, pictures)
    runs_the_fork_and_executes_what_differs_alone(lab, pictures)
    takes_up_the_old_branch_again_and_pays_for_nothing(lab)
    shows_how_far_a_running_step_is_also_after_a_reload(lab, pictures)
    uses_a_signal_that_was_sent_early(lab, pictures)


def test_in_an_output_cell_branches_are_made_and_chosen_and_signals_sent_by_messages(
    cell: Cell,  # noqa: F811 - the fixture
    page: Any,
    pictures: Path,
):
    page.set_viewport_size({"width": 300, "height": 620})
    cell.open("reading-list", height=600)
    panel = cell.panel
    panel.get_by_role("treeitem", name="fail, failed").focus()
    page.keyboard.press("f")
    form = panel.get_by_role("form", name="Fork at fail")
    form.get_by_text("The cell reads no variable of the notebook that could be set.").wait_for()
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.getAttribute('role') === 'treeitem'")
    page.keyboard.press("f")
    form.get_by_role("button", name="Fork").click()
    panel.get_by_text("(fail) on branch main-2.").wait_for()
    assert panel.get_by_role("button", name="Run the cell").count() == 0
    assert cell.violations() == []

    panel.get_by_label("Branch").select_option(index=0)
    panel.get_by_role("button", name="Take up main next").click()
    panel.get_by_text("Run the cell: it takes up branch main.").wait_for()
    panel.get_by_role("button", name="Send a signal").click()
    panel.get_by_label("Name of the signal").fill("payment")
    panel.get_by_label("Value (JSON)").fill("3")
    panel.get_by_label("For branch").select_option(label="main-2")
    page.keyboard.press("Control+Enter")
    panel.get_by_text("reading-list (main-2): signal payment").wait_for()
    page.screenshot(path=str(pictures / "output forked.png"))
    assert cell.violations() == []


def forks_at_a_step_by_keyboard(lab: Lab, pictures: Path) -> None:
    """A line of the tree, `f`, a form; what cannot be meant is refused in a sentence."""
    page, panel = lab.page, lab.panel
    panel.get_by_role("treeitem", name="write").focus()
    page.keyboard.press("f")
    form = panel.get_by_role("form", name="Fork at write")
    form.get_by_label("Variable", exact=True).fill("mood")
    form.get_by_label("Value on the new branch").fill("'warm'")
    page.screenshot(path=str(pictures / "fork form.png"))
    assert lab.violations("#jupyter-durable-panel") == []
    page.keyboard.press("Enter")
    panel.get_by_role("alert").filter(has_text="`mood` is no variable of the notebook that the cell reads").wait_for()
    form.get_by_label("Variable", exact=True).fill("tone")
    page.keyboard.press("Enter")

    panel.get_by_text("Run the cell: it goes on from step 3 (write) on branch main-2.").wait_for()
    told = panel.locator(".jp-Durable-branch").inner_text()
    assert "Forked at write (step 3 of main) by " in told
    assert 'Set on it: tone = "warm".' in told
    chosen = panel.get_by_label("Branch").locator("option:checked").inner_text()
    assert 'taken up next · fork at write · tone = "warm"' in chosen
    assert effects(lab.jupyter) == ["outline", "write-dry"]
    page.screenshot(path=str(pictures / "forked.png"))
    assert lab.violations("#jupyter-durable-panel") == []


def runs_the_fork_and_executes_what_differs_alone(lab: Lab, pictures: Path) -> None:
    """The focus is where it goes on; before it spends it asks."""
    page, panel = lab.page, lab.panel
    page.wait_for_function("() => document.activeElement.textContent === 'Run the cell'")
    page.keyboard.press("Enter")
    dialog = lab.asked("letter: execute new steps?")
    assert "1 step came back from the log." in dialog.inner_text()
    assert effects(lab.jupyter) == ["outline", "write-dry"]
    dialog.get_by_role("button", name="Yes, go on").click()
    panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    panel.get_by_role("treeitem", name="write, new").wait_for()
    assert effects(lab.jupyter) == ["outline", "write-dry", "write-warm"]
    assert [line.split(", ")[:2] for line in lab.lines()[1:]] == [["outline", "kept"], ["write", "new"]]

    panel.get_by_role("button", name="Compare with main").click()
    page.locator("#jupyter-durable-views").get_by_text("1 equal, 1 other").wait_for()
    page.screenshot(path=str(pictures / "compared.png"))


def takes_up_the_old_branch_again_and_pays_for_nothing(lab: Lab) -> None:
    """A branch that had completed is chosen, and replays."""
    panel = lab.panel
    panel.get_by_label("Branch").select_option(label="main · completed")
    panel.get_by_role("button", name="Take up main next").click()
    panel.get_by_text("Run the cell: it takes up branch main.").wait_for()
    panel.get_by_role("button", name="Run the cell of letter").click()
    panel.get_by_role("treeitem", name="write, replayed").wait_for()
    panel.get_by_text("Run the cell: it takes up branch main.").wait_for(state="detached")
    assert lab.page.get_by_role("dialog").count() == 0
    assert effects(lab.jupyter) == ["outline", "write-dry", "write-warm"]
    told = panel.locator(".jp-Durable-branch").inner_text()
    assert "Chosen by" in told


def shows_how_far_a_running_step_is_also_after_a_reload(lab: Lab, pictures: Path) -> None:
    """A bar in the line and in the details."""
    page, panel = lab.page, lab.panel
    lab.run_cell(2)
    bars = panel.get_by_role("progressbar", name="Progress of crawl")
    panel.get_by_label("Run", exact=True).select_option(label="order · running")
    bars.first.wait_for()
    assert (bars.first.get_attribute("aria-valuenow"), bars.first.get_attribute("aria-valuetext")) == (
        "30",
        "3/10 pages",
    )
    panel.get_by_role("treeitem", name="crawl, running, 3/10 pages").click()
    panel.get_by_role("region", name="Step crawl").get_by_text("Heard of last:").wait_for()
    assert bars.count() == 2
    page.screenshot(path=str(pictures / "progress.png"))
    assert lab.violations("#jupyter-durable-panel") == []

    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.reload()
    page.wait_for_selector(".jp-NotebookPanel", timeout=60_000)
    lab.show()
    panel.get_by_role("treeitem", name="crawl, running, 3/10 pages").wait_for()
    bars.first.wait_for()


def uses_a_signal_that_was_sent_early(lab: Lab, pictures: Path) -> None:
    """It is kept, and listed, until the run waits for it."""
    page, panel = lab.page, lab.panel
    panel.get_by_role("button", name="Send a signal").click()
    form = panel.get_by_role("form", name="Send a signal to order")
    form.get_by_label("Name of the signal").fill("payment")
    form.get_by_label("Value (JSON)").fill("{'sum': 3}")
    page.keyboard.press("Control+Enter")
    form.get_by_role("alert").filter(has_text="This is no JSON").wait_for()
    form.get_by_label("Value (JSON)").fill('{"sum": 3}')
    page.keyboard.press("Control+Enter")
    panel.get_by_role("status").filter(has_text="It is used when the run waits for it.").wait_for()
    kept = panel.get_by_role("list", name="Signals that are kept")
    kept.get_by_text("order (main): signal payment").wait_for()
    page.screenshot(path=str(pictures / "kept.png"))
    assert lab.violations("#jupyter-durable-panel") == []

    Path(lab.jupyter.root / "go").touch()
    panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    kept.wait_for(state="detached")
    assert effects(lab.jupyter)[-2:] == ["crawled", "paid-3"]
    assert panel.get_by_role("progressbar").count() == 0
