"""What the panel says where there is nothing good to show, and what it offers after a page was loaded anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.browser.conftest import TOKEN, Jupyter
from tests.browser.lab import SETUP, Lab

pytestmark = pytest.mark.timeout(300)

CELL = """\
%%durable review
first = ask("first")
second = ask("second")
"""


@pytest.mark.parametrize("enabled", [False])
def test_a_server_without_the_extension_is_told_apart_from_a_failure(jupyter: Jupyter, page: Any):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("plain.ipynb", SETUP, CELL))
    lab.show()

    lab.panel.get_by_role("heading", name="The server extension is not enabled").wait_for()
    assert "jupyter server extension enable jupyter_durable" in lab.panel.inner_text()


RUNS = "**/jupyter-durable/v1/runs?*"
THEMES = ("JupyterLab Light", "JupyterLab Dark")


def test_each_face_where_there_is_nothing_to_show_says_why_and_can_be_read(jupyter: Jupyter, page: Any, pictures: Path):
    lab = Lab(page, jupyter)
    notebook = jupyter.notebook("faces.ipynb", SETUP, CELL)

    def check(heading: str) -> None:
        lab.panel.get_by_role("heading", name=heading).wait_for()
        for theme in THEMES:
            lab.dress(theme)
            assert lab.violations("#jupyter-durable-panel") == [], (heading, theme)
            page.screenshot(path=str(pictures / f"face {heading} {theme}.png"))

    # No notebook is open.
    page.goto(f"{jupyter.url}lab?token={TOKEN}&reset")
    page.wait_for_function("() => window.jupyterapp")
    page.wait_for_selector(".jp-Launcher")
    lab.show()
    check("No notebook")

    # The server takes its time.
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route(RUNS, hold)
    page.evaluate("path => { window.jupyterapp.commands.execute('docmanager:open', {path}); }", notebook)
    check("Loading …")

    # It cannot be reached; one asks again.
    page.route(RUNS, lambda route: route.abort())
    for route in held:
        route.abort()
    check("The log cannot be shown")
    page.unroute(RUNS)
    lab.panel.get_by_role("button", name="Try again").click()
    check("No durable run yet")

    # The extension is gone: somebody else answers.
    page.route(RUNS, lambda route: route.fulfill(status=404, body="<html>404</html>"))
    lab.command("refresh")
    check("The server extension is not enabled")


def test_a_server_that_fails_later_leaves_in_sight_what_was_shown(jupyter: Jupyter, page: Any):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("away.ipynb", SETUP, CELL))
    lab.show()
    for index in (0, 1):
        lab.run_cell(index)
        lab.wait_ran(index)
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()

    page.route(RUNS, lambda route: route.abort())
    lab.command("refresh")
    lab.panel.get_by_role("alert").filter(has_text="what is shown may be old").wait_for()
    assert lab.panel.get_by_role("treeitem", name="chat.completions").count() == 2
    assert lab.violations("#jupyter-durable-panel") == []

    page.unroute(RUNS)
    lab.command("refresh")
    lab.panel.get_by_role("alert").wait_for(state="detached")


def test_a_history_of_a_strangers_key_is_shown_as_not_verified(
    jupyter: Jupyter, page: Any, key_file: Path, pictures: Path
):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("mailed.ipynb", SETUP, CELL))
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.run_cell(1)
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    key_file.unlink()
    jupyter.restart()

    lab.open("mailed.ipynb")
    lab.show()
    lab.panel.get_by_text("Not verified.").wait_for()
    assert lab.panel.get_by_role("treeitem", name="chat.completions").count() == 2
    for theme in THEMES:
        lab.dress(theme)
        page.screenshot(path=str(pictures / f"not trusted {theme}.png"))
        assert lab.violations("#jupyter-durable-panel") == []


def test_after_a_reload_resume_asks_before_it_spends(jupyter: Jupyter, page: Any, endpoint: Endpoint, pictures: Path):
    lab = Lab(page, jupyter)
    notebook = jupyter.notebook("later.ipynb", SETUP, CELL)
    lab.open(notebook)
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    endpoint.bill.hold(2)
    lab.run_cell(1)
    assert endpoint.bill.wait_in_flight(2, 60)
    jupyter.kill_kernel(notebook)
    lab.panel.locator(".jp-Durable-summary", has_text="interrupted").wait_for()
    endpoint.bill.release()

    page.reload()
    lab.ready()
    lab.show()
    paid = len(endpoint.bill.requests())
    lab.panel.get_by_role("button", name="Resume", exact=True).click()
    dialog = lab.asked("review: execute new steps?")
    assert "1 step came back from the log. Nothing was executed and nothing was paid so far." in dialog.inner_text()
    page.screenshot(path=str(pictures / "resume.png"))
    dialog.get_by_role("button", name="No", exact=True).click()
    dialog.wait_for(state="detached")
    assert len(endpoint.bill.requests()) == paid
    # It is no failure: no traceback, and the run says that it can be resumed.
    outputs = page.locator(".jp-OutputArea").all_inner_texts()
    assert "1 replayed" in " ".join(outputs)
    assert "Error" not in " ".join(outputs)
    lab.panel.locator(".jp-Durable-summary", has_text="to be resumed").wait_for()
    page.screenshot(path=str(pictures / "resume declined.png"))

    lab.panel.get_by_role("button", name="Resume", exact=True).click()
    dialog.get_by_role("button", name="Yes, go on").click()
    lab.panel.locator(".jp-Durable-summary", has_text="1 replayed, 1 new").wait_for()
    assert len(endpoint.bill.requests()) == paid + 1


def test_start_fresh_after_a_death_pays_for_everything_on_a_branch_of_its_own(
    jupyter: Jupyter, page: Any, endpoint: Endpoint
):
    lab = Lab(page, jupyter)
    notebook = jupyter.notebook("fresh.ipynb", SETUP, CELL)
    lab.open(notebook)
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    endpoint.bill.hold(2)
    lab.run_cell(1)
    assert endpoint.bill.wait_in_flight(2, 60)
    jupyter.kill_kernel(notebook)
    notice = page.locator(".Toastify__toast", has_text="The kernel of")
    endpoint.bill.release()
    notice.get_by_role("button", name="Start fresh").click()
    dialog = lab.asked("Start fresh?")
    assert "executed again" in dialog.inner_text()
    assert "nobody knows how it ended" in dialog.inner_text()
    dialog.get_by_role("button", name="Yes, run again").click()

    lab.panel.get_by_label("Branch").wait_for()
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    assert len(endpoint.bill.requests()) == 4
    assert "--fresh" not in page.locator(".jp-Notebook .jp-CodeCell").nth(1).inner_text()


def test_the_panel_follows_the_notebook_in_front(jupyter: Jupyter, page: Any):
    lab = Lab(page, jupyter)
    one = jupyter.notebook("one.ipynb", SETUP, CELL)
    two = jupyter.notebook("two.ipynb", SETUP, CELL.replace("review", "other"))
    for notebook, name in ((one, "review"), (two, "other")):
        lab.open(notebook)
        lab.show()
        lab.panel.get_by_role("heading", name="No durable run yet").wait_for()
        lab.run_cell(0)
        lab.wait_ran(0)
        lab.run_cell(1)
        lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
        assert lab.panel.get_by_label("Run", exact=True).input_value() == jupyter.run(notebook, name)

    page.evaluate("path => window.jupyterapp.commands.execute('docmanager:open', {path})", one)
    lab.panel.get_by_label("Run", exact=True).locator("option", has_text="review").wait_for(state="attached")
    assert lab.panel.get_by_label("Run", exact=True).input_value() == jupyter.run(one, "review")
