"""Notebooks that are renamed, moved and copied by hand, several of them at once, and several pages of one server."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.browser.conftest import Jupyter
from tests.browser.lab import IN_FRONT, SETUP, Lab

pytestmark = pytest.mark.timeout(300)

CELL = """\
%%durable review
first = ask("first")
note(first)
"""

# A model call inside of a step that must not happen twice: when its kernel dies, a person has to say what happened.
PAY = """
@step(at_most_once=True)
def pay():
    return ask("pay")
"""
DOUBT = """\
%%durable review
pay()
"""

# How many listeners our code has on the document and the window, in net terms.
COUNT_LISTENERS = """
window.listening = 0;
const ours = () => (new Error().stack || '').includes('jupyter-durable');
for (const target of [document, window]) {
  const known = new Map();
  const add = target.addEventListener.bind(target);
  const remove = target.removeEventListener.bind(target);
  target.addEventListener = (type, listener, ...rest) => {
    const of = known.get(type) ?? known.set(type, new Set()).get(type);
    if (ours() && !of.has(listener)) {
      of.add(listener);
      window.listening += 1;
    }
    add(type, listener, ...rest);
  };
  target.removeEventListener = (type, listener, ...rest) => {
    if (known.get(type)?.delete(listener)) {
      window.listening -= 1;
    }
    remove(type, listener, ...rest);
  };
}
"""


class Files:
    """The file browser of JupyterLab, used as a person uses it."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def item(self, name: str) -> Any:
        """A file or folder of the folder that is shown."""
        return self.page.locator(".jp-DirListing-item").filter(
            has=self.page.locator(".jp-DirListing-itemName", has_text=name)
        )

    def rename(self, before: str, after: str) -> None:
        """Select it, F2, a new name, Enter."""
        self.item(before).click()
        self.page.keyboard.press("F2")
        editor = self.page.locator("input.jp-DirListing-editor")
        editor.fill(after)
        editor.press("Enter")
        self.item(after).wait_for()

    def move(self, name: str, folder: str) -> None:
        """Cut it, go into the folder, paste it."""
        self.item(name).click()
        self.page.keyboard.press("Control+x")
        self.item(folder).dblclick()
        self.page.locator(".jp-BreadCrumbs-item", has_text=folder).wait_for()
        self.page.locator(".jp-DirListing-content").click(button="right", position={"x": 60, "y": 200})
        self.page.get_by_role("menuitem", name="Paste").click()
        self.item(name).wait_for()

    def duplicate(self, name: str) -> None:
        """By the context menu."""
        self.item(name).click(button="right")
        self.page.get_by_role("menuitem", name="Duplicate").click()


def test_a_renamed_and_a_moved_notebook_keep_their_runs_and_pay_for_nothing_again(
    jupyter: Jupyter, page: Any, endpoint: Endpoint
):
    lab, files = Lab(page, jupyter), Files(page)
    (jupyter.root / "archive").mkdir()
    lab.open(jupyter.notebook("plan.ipynb", SETUP, CELL))
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    summary = lab.panel.locator(".jp-Durable-summary")
    summary.filter(has_text="2 new").wait_for()
    run = jupyter.run("plan.ipynb", "review")

    files.rename("plan.ipynb", "plan-v2.ipynb")
    page.locator(".jp-NotebookPanel-toolbar").wait_for()
    # Before anything runs again.
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.context.path === 'plan-v2.ipynb'")
    summary.filter(has_text="completed").wait_for()
    assert lab.panel.get_by_label("Run", exact=True).input_value() == run
    lab.run_cell(1)
    summary.filter(has_text="2 replayed").wait_for()
    assert jupyter.run("plan-v2.ipynb", "review") == run
    assert "it was plan.ipynb before" in page.locator(f"{IN_FRONT} .jp-OutputArea-output").last.text_content()

    lab.execute("docmanager:save")
    files.move("plan-v2.ipynb", "archive")
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.context.path === 'archive/plan-v2.ipynb'")
    lab.panel.get_by_text("This notebook was moved here").wait_for()
    summary.filter(has_text="completed").wait_for()
    lab.run_cell(1)
    lab.wait_ran(1)
    assert jupyter.run("archive/plan-v2.ipynb", "review") == run

    lab.execute("notebook:restart-clear-output")
    page.get_by_role("dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    page.wait_for_function(f"() => !/\\d/.test(document.querySelectorAll('{IN_FRONT} .jp-InputPrompt')[1].textContent)")
    lab.ready()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.wait_ran(1)
    assert jupyter.run("archive/plan-v2.ipynb", "review") == run
    assert len(endpoint.bill.requests()) == 1, "the first run paid, and nobody after it"

    # A copy has no runs, and pays for its own.
    lab.execute("docmanager:save")
    files.duplicate("plan-v2.ipynb")
    files.item("plan-v2-Copy1.ipynb").dblclick()
    lab.panel.get_by_role("heading", name="No durable run yet").wait_for()
    lab.ready()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    summary.filter(has_text="2 new").wait_for()
    assert len(endpoint.bill.requests()) == 2


OTHER = """\
%%durable other
answers = [ask(f"other {number}") for number in (1, 2)]
"""


def test_g18_two_notebooks_write_into_one_log_at_once_and_each_keeps_what_was_chosen_in_it(
    jupyter: Jupyter, page: Any, endpoint: Endpoint
):
    """Case G18, the panel's side: it reads while a kernel writes, and a second kernel writes into the same folder."""
    lab = Lab(page, jupyter)
    one = jupyter.notebook("one.ipynb", SETUP, CELL, CELL.replace("review", "again"))
    two = jupyter.notebook("two.ipynb", SETUP, OTHER)
    runs, steps = lab.panel.get_by_label("Run", exact=True), lab.panel.get_by_role("treeitem")
    lab.open(one)
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.panel.locator(".jp-Durable-summary", has_text="2 new").wait_for()
    endpoint.bill.hold(2)
    lab.run_cell(2)
    assert endpoint.bill.wait_in_flight(2, 60)
    lab.panel.locator(".jp-Durable-summary", has_text="running").wait_for()
    runs.select_option(jupyter.run(one, "review"))
    steps.filter(has_text="note").click()
    lab.panel.get_by_placeholder("Filter steps").fill("note")
    steps.filter(has_text="chat.completions").wait_for(state="detached")

    lab.execute("docmanager:open", {"path": two})
    lab.panel.get_by_role("heading", name="No durable run yet").wait_for()
    lab.ready()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.panel.locator(".jp-Durable-summary", has_text="2 new").wait_for()
    assert [each.get_attribute("value") for each in runs.locator("option").all()] == [jupyter.run(two, "other")]
    assert lab.panel.get_by_placeholder("Filter steps").input_value() == ""
    steps.filter(has_text="chat.completions").last.click()

    lab.execute("docmanager:open", {"path": one})
    lab.panel.locator(".jp-Durable-filter input").and_(page.locator("[type=search]")).wait_for()
    runs.locator("option", has_text="review").wait_for(state="attached")
    steps.and_(page.locator("[aria-selected=true]")).filter(has_text="note").wait_for()
    assert runs.input_value() == jupyter.run(one, "review")
    assert lab.panel.get_by_placeholder("Filter steps").input_value() == "note"
    endpoint.bill.release()
    lab.wait_ran(2)
    runs.locator("option", has_text="again · completed").wait_for(state="attached")

    lab.execute("docmanager:open", {"path": two})
    runs.locator("option", has_text="other").wait_for(state="attached")
    steps.and_(page.locator("[aria-selected=true]")).filter(has_text="chat.completions").wait_for()
    assert page.locator(".jp-OutputArea-output", has_text="IOException").count() == 0


def test_two_folders_have_a_log_each_and_two_pages_of_a_server_see_the_same(
    jupyter: Jupyter, page: Any, browser: Any, endpoint: Endpoint
):
    lab = Lab(page, jupyter)
    (jupyter.root / "apart").mkdir()
    shared = jupyter.notebook("shared.ipynb", SETUP + PAY, DOUBT)
    apart = jupyter.notebook("apart/shared.ipynb", SETUP, CELL)
    lab.open(shared)
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)

    context = browser.new_context(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    other = Lab(context.new_page(), jupyter)
    other.open(shared)
    other.show()
    other.panel.get_by_role("heading", name="No durable run yet").wait_for()
    endpoint.bill.hold(1)
    lab.run_cell(1)
    assert endpoint.bill.wait_in_flight(1, 60)
    for each in (lab, other):
        each.panel.get_by_role("treeitem", name="pay, running").wait_for()
    jupyter.kill_kernel(shared)
    for each in (lab, other):
        each.panel.get_by_role("treeitem", name="pay, in doubt").wait_for()

    # Said in one page, seen in the other.
    run = jupyter.run(shared, "review")
    said = lab.page.evaluate(
        "async ([url, body]) => (await fetch(url, { method: 'POST', body: JSON.stringify(body), headers:"
        " { 'X-XSRFToken': document.cookie.match(/_xsrf=([^;]*)/)[1] } })).status",
        [
            f"{jupyter.url}jupyter-durable/v1/settle?notebook={shared}",
            {"run": run, "step": 1, "choice": "value", "value": 7},
        ],
    )
    assert said == 200
    for each in (lab, other):
        each.panel.get_by_role("treeitem", name="pay, in doubt").wait_for(state="detached")
        each.panel.get_by_role("treeitem", name="pay").wait_for()
    context.close()
    endpoint.bill.release()

    lab.execute("docmanager:open", {"path": apart})
    lab.panel.get_by_role("heading", name="No durable run yet").wait_for()
    assert lab.panel.get_by_text("in the same log").count() == 0
    lab.ready()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.panel.locator(".jp-Durable-summary", has_text="2 new").wait_for()
    assert (jupyter.root / "apart" / ".durable" / "journal").is_dir()
    assert jupyter.run(apart, "review") != run


def test_panel_views_and_notebooks_that_come_and_go_leave_no_listener_behind(jupyter: Jupyter, page: Any):
    page.add_init_script(COUNT_LISTENERS)
    lab = Lab(page, jupyter)
    for name in ("one.ipynb", "two.ipynb"):
        jupyter.notebook(name, SETUP, CELL)
    lab.open("one.ipynb")
    lab.show()
    views = page.locator("#jupyter-durable-views")

    def come_and_go(times: int) -> int:
        for _ in range(times):
            lab.command("view", {"view": "timeline"})
            views.wait_for()
            page.evaluate("() => window.jupyterapp.shell.collapseRight()")
            page.evaluate(
                "() => document.querySelector('#jupyter-durable-views')"
                " && [...window.jupyterapp.shell.widgets('main')].find("
                "each => each.id === 'jupyter-durable-views-area').close()"
            )
            views.wait_for(state="detached")
            lab.show()
        return int(page.evaluate("() => window.listening"))

    def open_and_close(times: int) -> int:
        for _ in range(times):
            lab.execute("docmanager:open", {"path": "two.ipynb"})
            page.wait_for_function("() => window.jupyterapp.shell.currentWidget?.context?.path === 'two.ipynb'")
            page.evaluate("() => window.jupyterapp.shell.currentWidget.dispose()")
            lab.execute("docmanager:open", {"path": "one.ipynb"})
            page.wait_for_function("() => window.jupyterapp.shell.currentWidget?.context?.path === 'one.ipynb'")
        return int(page.evaluate("() => window.listening"))

    first = come_and_go(2) and open_and_close(2)
    assert first > 0, "those that belong to the page itself"
    come_and_go(18)
    assert open_and_close(8) == first
