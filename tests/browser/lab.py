"""What a person does in JupyterLab, in the words of the tests."""

from __future__ import annotations

import json
from typing import Any

from tests.browser.conftest import AXE, TOKEN, Jupyter

# Step functions, and a client of the endpoint that the environment names.
SETUP = """\
%load_ext jupyter_durable
from openai import OpenAI
from jupyter_durable import step

client = OpenAI()

@step
def note(text):
    return {"text": text, "length": len(text)}

def ask(prompt):
    answer = client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": prompt}])
    return answer.choices[0].message.content
"""


# Other tabs stay in the page, hidden.
IN_FRONT = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"


class Lab:
    """One page of JupyterLab, or of Notebook 7, with one notebook open."""

    def __init__(self, page: Any, jupyter: Jupyter) -> None:
        self.page = page
        self.jupyter = jupyter
        self.panel = page.locator("#jupyter-durable-panel")
        # JupyterLab's own dialog lies over everything until somebody has read it; it may come twice.
        died = page.locator(".jp-Dialog", has_text="Kernel Restarting")
        page.add_locator_handler(died, lambda dialog: dialog.get_by_role("button", name="Ok").click())

    def open(self, notebook: str, *, notebook7: bool = False) -> None:
        """Open a notebook and wait for its kernel."""
        kind = "notebooks" if notebook7 else "lab/tree"
        self.page.goto(f"{self.jupyter.url}{kind}/{notebook}?token={TOKEN}" + ("" if notebook7 else "&reset"))
        self.ready()

    def ready(self) -> None:
        """Wait until the page is there and its kernel answers."""
        self.page.wait_for_selector(f"{IN_FRONT} .jp-CodeCell", timeout=60_000)
        # The mark in the toolbar says `idle` before there is a connection: a cell that is run then is lost.
        self.page.wait_for_function(
            "() => { const kernel = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;"
            " return kernel?.connectionStatus === 'connected' && ['idle', 'starting'].includes(kernel.status); }"
        )

    def command(self, name: str, args: dict[str, Any] | None = None) -> None:
        """Execute a command, as the palette does."""
        self.page.evaluate(
            "([name, args]) => { window.jupyterapp.commands.execute(name, args); }",
            [f"jupyter-durable:{name}", args or {}],
        )

    def execute(self, command: str, args: dict[str, Any] | None = None) -> None:
        """Execute a command of JupyterLab, and do not wait for its end, which may come after a dialog."""
        self.page.evaluate(
            "([command, args]) => { window.jupyterapp.commands.execute(command, args); }", [command, args or {}]
        )

    def show(self) -> None:
        """Open the panel."""
        self.command("open")
        self.panel.wait_for(state="visible")

    def run_cell(self, index: int) -> None:
        """Run a cell by keyboard, and do not wait for its end."""
        self.page.locator(f"{IN_FRONT} .jp-CodeCell").nth(index).locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")

    def edit_cell(self, index: int, source: str) -> None:
        """Put another text into a cell."""
        self.page.evaluate(
            "([i, source]) => window.jupyterapp.shell.currentWidget.content"
            ".widgets[i].model.sharedModel.setSource(source)",
            [index, source],
        )

    def wait_ran(self, index: int) -> None:
        """Wait until a cell has its number, which it has not while it waits or runs."""
        self.page.wait_for_function(
            f"i => /\\[\\d+\\]/.test(document.querySelectorAll('{IN_FRONT} .jp-CodeCell')[i]"
            ".querySelector('.jp-InputPrompt').textContent)",
            arg=index,
        )

    def asked(self, title: str) -> Any:
        """The dialog that asks something, once it is there."""
        dialog = self.page.get_by_role("dialog").filter(has_text=title)
        dialog.wait_for()
        return dialog

    def lines(self) -> list[str]:
        """The lines of the tree that are on the page, top to bottom, as they are read aloud."""
        found = self.panel.locator("[role=treeitem]").evaluate_all(
            "all => all.sort((a, b) => a.offsetTop - b.offsetTop).map(each => each.getAttribute('aria-label'))"
        )
        return list(found)

    def dress(self, theme: str) -> None:
        """Choose a theme, and wait until the page wears it."""
        self.page.evaluate(
            "async theme => { await window.jupyterapp.commands.execute('apputils:change-theme', {theme}); }", theme
        )
        self.page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")

    def violations(self, selector: str) -> list[str]:
        """What axe-core finds wrong in a part of the page."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate(
            "async selector => (await axe.run(selector)).violations.map(v => "
            "({id: v.id, help: v.help, nodes: v.nodes.map(n => n.html.slice(0, 200) + ' :: ' + n.failureSummary)}))",
            selector,
        )
        return [json.dumps(each, indent=1) for each in found]

    def listen(self) -> None:
        """Keep every sentence that is said aloud from now on."""
        self.page.evaluate(
            "() => { window.said = []; const node = document.querySelector('.jp-Durable-live');"
            " new MutationObserver(() => window.said.push(node.textContent)).observe(node, {childList: true}); }"
        )

    def said(self) -> list[str]:
        """What was said aloud, each time that something was."""
        return list(self.page.evaluate("() => window.said"))

    def menu(self, label: str) -> Any:
        """An entry of the menu that is open."""
        return self.page.locator(".lm-Menu .lm-Menu-item:not(.lm-mod-hidden) .lm-Menu-itemLabel", has_text=label)
