"""The panel in an output cell: in JupyterLab by anywidget, and on a bare page as other front ends draw it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jupyter_durable import durable, step
from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.widget.answering import Ask, Desk
from tests.browser.conftest import AXE, BUILT, Jupyter
from tests.browser.lab import SETUP, Lab

pytestmark = pytest.mark.timeout(300)

STATIC = BUILT.parent / "widget" / "static"
ADDRESS = "http://output.test/"

PAGE = """\
<!doctype html>
<html lang="en" style="STYLE">
<head><title>An output cell</title><link rel="stylesheet" href="widget.css"></head>
<body style="margin: 8px"><main><h1>A notebook</h1><h2>Steps</h2><div id="cell"></div></main>
<script type="module">
  import widget from './widget.js';
  const listeners = {};
  const traits = TRAITS;
  const fire = content => (listeners['msg:custom'] ?? []).forEach(take => take(content, []));
  const model = {
    get: name => traits[name],
    set: (name, value) => { traits[name] = value; },
    save_changes: () => undefined,
    on: (name, take) => { (listeners[name] ??= []).push(take); },
    off: (name, take) => { listeners[name] = (listeners[name] ?? []).filter(each => each !== take); },
    send: content => { window.sent.push(content); window.answer(content).then(answer => answer && fire(answer)); }
  };
  window.sent = [];
  window.fire = fire;
  window.listeners = listeners;
  window.end = await widget.render({ model, el: document.getElementById('cell') });
</script></body></html>
"""


class Cell:
    """A bare page with the panel in it. Its kernel is this process, which may be told not to answer."""

    def __init__(self, page: Any, notebook: Path) -> None:
        self.page = page
        self.notebook = notebook
        self.desk = Desk()
        self.away = False
        self.panel = page.get_by_role("region", name="Durable cells")

    def answer(self, content: Any) -> Any:
        """What the kernel sends back; nothing while it is busy."""
        if self.away:
            return None
        status, shape = self.desk.answer(msgspec.convert(content, Ask), str(self.notebook))
        return {
            "durable": "answer",
            "question": content["question"],
            "status": status,
            "answer": msgspec.json.encode(shape).decode(),
        }

    def open(self, run: str = "", height: int = 480, style: str = "") -> None:
        """Draw the panel, at a run by its name if one is given, on a page of this style."""
        if run:
            _, found = self.desk.answer(Ask(question="", path=["runs"]), str(self.notebook))
            run = next(item.run for item in found.runs if item.name == run)
        traits = {"run": run, "height": height, "notebook": str(self.notebook)}
        files = {
            "": ("text/html", PAGE.replace("TRAITS", json.dumps(traits)).replace("STYLE", style)),
            "widget.js": ("text/javascript", (STATIC / "widget.js").read_text(encoding="utf-8")),
            "widget.css": ("text/css", (STATIC / "widget.css").read_text(encoding="utf-8")),
        }

        def serve(route: Any) -> None:
            kind, body = files.get(route.request.url.removeprefix(ADDRESS), ("text/plain", ""))
            route.fulfill(content_type=f"{kind}; charset=utf-8", body=body)

        self.page.route(f"{ADDRESS}**", serve)
        self.page.expose_function("answer", self.answer)
        self.page.goto(ADDRESS)

    def violations(self) -> list[str]:
        """What axe-core finds wrong with the panel."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate(
            "async () => (await axe.run('.jp-Durable-output')).violations.map(v => "
            "JSON.stringify([v.id, v.help, v.nodes.map(n => n.html.slice(0, 200) + ' :: ' + n.failureSummary)]))"
        )
        return list(found)


@pytest.fixture
def cell(page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cell:
    """A bare page, and a log beside its notebook with a run of steps, some inside of others, one of which failed."""

    @step(name="look_up")
    def look_up(word: str) -> dict[str, Any]:
        print("looking", word)
        return {"word": word, "length": len(word)}

    @step(name="summary of everything that was looked up")
    def summary(words: list[str]) -> list[Any]:
        return [look_up(word) for word in words]

    @step(name="fail")
    def fail(word: str) -> None:
        raise ValueError(f"no {word} here")

    notebook = tmp_path / "notebook.ipynb"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(notebook), raising=False)
    with durable.run("earlier"):
        look_up("first")
    with pytest.raises(ValueError, match="no luck here"), durable.run("reading-list"):
        look_up("logs")
        summary(["locks", "leases"])
        fail("luck")
    return Cell(page, notebook)


SIZES = [(300, "light"), (300, "dark"), (800, "light"), (800, "dark")]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_without_jupyterlab_the_panel_is_whole_readable_and_accessible(
    cell: Cell, page: Any, pictures: Path, width: int, scheme: str
):
    page.set_viewport_size({"width": width, "height": 620})
    page.emulate_media(color_scheme=scheme)
    cell.open()
    cell.panel.get_by_role("treeitem", name="fail, failed").wait_for()
    page.screenshot(path=str(pictures / f"output {width} {scheme} steps.png"))
    assert cell.violations() == []

    cell.panel.get_by_role("treeitem", name="look_up").first.click()
    details = cell.panel.get_by_role("region", name="Step look_up")
    details.get_by_role("region", name="Result").wait_for()
    assert '"word": "logs"' in details.get_by_role("region", name="Result").inner_text()
    page.screenshot(path=str(pictures / f"output {width} {scheme} details.png"))
    assert cell.violations() == []

    for view, row in (("Timeline", "listitem"), ("Spend", "heading"), ("SQL", "button")):
        cell.panel.get_by_role("button", name=view).or_(cell.panel.get_by_role("tab", name=view)).first.click()
        cell.panel.get_by_role("tabpanel").get_by_role(row).first.wait_for()
        page.screenshot(path=str(pictures / f"output {width} {scheme} {view}.png"))
        assert cell.violations() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    colors = page.evaluate(
        "(() => { const style = getComputedStyle(document.querySelector('.jp-Durable'));"
        " return [style.color, style.backgroundColor]; })()"
    )
    assert colors == (["rgb(228, 228, 228)", "rgb(24, 24, 24)"] if scheme == "dark" else
                      ["rgb(31, 31, 31)", "rgb(255, 255, 255)"])  # fmt: skip


def test_the_colours_are_those_of_vs_code_where_it_has_some(cell: Cell, page: Any, pictures: Path):
    page.set_viewport_size({"width": 600, "height": 620})
    theme = {"editor-background": "#1e1e2e", "editor-foreground": "#cdd6f4", "sideBar-background": "#181825"}
    style = "background: #1e1e2e; " + " ".join(f"--vscode-{name}: {color};" for name, color in theme.items())
    cell.open(style=style)
    cell.panel.get_by_role("treeitem", name="fail, failed").click()
    cell.panel.get_by_role("region", name="Step fail").get_by_text("Traceback").first.wait_for()
    page.screenshot(path=str(pictures / "output vscode.png"))

    colors = page.evaluate(
        "(() => { const style = getComputedStyle(document.querySelector('.jp-Durable'));"
        " return [style.color, style.backgroundColor]; })()"
    )
    assert colors == ["rgb(205, 214, 244)", "rgb(30, 30, 46)"]
    assert cell.violations() == []


# While there is no answer --------------------------------------------------------------------------------------------


def test_a_busy_kernel_is_no_error_and_is_asked_again(cell: Cell, page: Any, pictures: Path):
    page.set_viewport_size({"width": 600, "height": 620})
    page.clock.install()
    cell.away = True
    cell.open()
    cell.panel.get_by_text("Loading …").wait_for()
    page.clock.run_for(1_500)
    cell.panel.get_by_role("heading", name="No answer from the kernel").wait_for()
    page.screenshot(path=str(pictures / "output silent.png"))
    assert cell.violations() == []

    cell.away = False
    page.clock.run_for(10_000)
    cell.panel.get_by_role("treeitem", name="fail, failed").wait_for()

    cell.away = True
    cell.panel.get_by_role("treeitem", name="look_up").first.click()
    page.clock.run_for(1_500)
    cell.panel.get_by_text("The kernel is busy.").wait_for()
    page.screenshot(path=str(pictures / "output busy.png"))
    assert cell.violations() == []
    assert cell.panel.get_by_role("treeitem", name="fail, failed").is_visible()


def test_a_saved_notebook_whose_kernel_is_gone_shows_a_sentence(cell: Cell, page: Any):
    cell.away = True
    cell.open()
    cell.panel.get_by_text("run this cell again: the steps are in the log").wait_for()
    assert page.locator("[role=alert]").count() == 0


def test_a_panel_that_is_removed_leaves_nothing_on_the_page(cell: Cell, page: Any):
    cell.open()
    cell.panel.get_by_role("treeitem", name="fail, failed").wait_for()

    page.evaluate("window.end()")

    assert page.locator("#cell").inner_html() == ""
    assert page.evaluate("Object.values(window.listeners).every(each => each.length === 0)")


def test_the_tree_is_used_by_keyboard_and_what_has_no_button_can_be_copied(cell: Cell, page: Any):
    with durable.run("by hand"):
        pass
    cell.open(run="reading-list")
    cell.panel.get_by_role("treeitem", name="look_up").first.click()
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("fail, failed")
    assert cell.panel.get_by_role("region", name="Step fail").is_visible()

    cell.panel.get_by_text("As code").click()
    code = cell.panel.get_by_role("region", name="Code that asks for this step").inner_text()
    assert "SELECT * FROM steps WHERE" in code
    buttons = cell.panel.get_by_role("button").all_inner_texts()
    assert not {"Resume", "Show cell", "Run from here", "Copy as code"} & set(buttons)
    page.keyboard.press("Escape")


# In JupyterLab --------------------------------------------------------------------------------------------------------

DURABLE = """\
%%durable topics
answers = [ask(f"Say something about {topic}.") for topic in ("logs", "locks")]
total = note(" ".join(answers))
"""

PANEL = "from jupyter_durable import durable\n\ndurable.panel(height=420)"

ASYNC = """\
%%durable slowly
from openai import AsyncOpenAI

asked = AsyncOpenAI()
for word in ("first", "second"):
    message = {"role": "user", "content": word}
    await asked.chat.completions.create(model="gpt-4o-mini", messages=[message])
"""

BLOCKED = """\
%%durable blocked
one = ask("one")
two = ask("two")
"""


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_in_jupyterlab_the_output_shows_steps_as_they_come(
    jupyter: Jupyter, page: Any, endpoint: Endpoint, theme: str, pictures: Path
):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("output.ipynb", SETUP, DURABLE, PANEL, ASYNC, BLOCKED))
    for index in (0, 1, 2):
        lab.run_cell(index)
        lab.wait_ran(index)
    panel = page.locator(".jp-OutputArea").get_by_role("region", name="Durable cells")
    panel.get_by_role("treeitem", name="chat.completions").first.click()
    panel.get_by_text("Say something about logs.").first.wait_for()
    panel.get_by_text("Run from here, or as code").click()
    first_line = panel.get_by_role("region", name="First line of the cell").inner_text()
    assert first_line.startswith("%%durable topics --from ")
    page.screenshot(path=str(pictures / f"output in {theme}.png"))
    assert lab.violations(".jp-Durable-output") == []

    endpoint.bill.hold(4)
    lab.run_cell(3)
    assert endpoint.bill.wait_in_flight(4, 60)
    panel.locator(".jp-Durable-summary", has_text="running").wait_for()
    panel.get_by_role("treeitem", name="chat.completions, model, new").wait_for()
    panel.get_by_role("treeitem", name="chat.completions, model, running").wait_for()
    page.screenshot(path=str(pictures / f"output running in {theme}.png"))
    assert lab.violations(".jp-Durable-output") == []
    endpoint.bill.release()
    panel.locator(".jp-Durable-summary", has_text="completed").wait_for()

    endpoint.bill.hold(6)
    lab.run_cell(4)
    assert endpoint.bill.wait_in_flight(6, 60)
    panel.get_by_role("treeitem", name="chat.completions, model, running").wait_for()
    assert panel.get_by_label("Run", exact=True).input_value() == jupyter.run("output.ipynb", "blocked")
    panel.get_by_role("treeitem", name="chat.completions, model, new").click()
    panel.get_by_text("Answer #0005 to 'one'").first.wait_for()  # on JupyterLab's subshell: the cell blocks the kernel
    endpoint.bill.release()
    panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    panel.get_by_label("Run", exact=True).select_option(label="topics · completed")
    panel.get_by_role("treeitem", name="note, new").wait_for()
