"""What waits for a person: it is listed, counted and said aloud once, answered in the panel, and the run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Jupyter
from tests.browser.lab import Lab

pytestmark = pytest.mark.timeout(300)

SETUP = """\
%load_ext jupyter_durable
import os, signal
from pathlib import Path
from jupyter_durable import step

def happened(what):
    with Path("effects.txt").open("a") as effects:
        effects.write(what + "\\n")

@step
def note(text):
    happened("note")
    return text

@step(at_most_once=True)
def pay(amount):
    happened("paid")
    os.kill(os.getpid(), signal.SIGKILL)

@step
def send(text):
    happened("sent")
    return f"sent {text}"
"""

PAYS = """\
%%durable payment
before = note("before")
receipt = pay(7)
after = note(f"receipt {receipt['number']}")
"""

MAILS = """\
%%durable mail
draft = note("one")
answer = send("to all")
"""


def effects(jupyter: Jupyter) -> list[str]:
    """What really happened, in order."""
    return Path(jupyter.root / "effects.txt").read_text(encoding="utf-8").split()


def test_a_step_in_doubt_is_settled_with_a_value_by_keyboard_and_nothing_is_paid_twice(
    jupyter: Jupyter, page: Any, pictures: Path
):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("payment.ipynb", SETUP, PAYS))
    lab.show()
    lab.run_cell(0)
    lab.wait_ran(0)
    lab.listen()
    lab.run_cell(1)

    # The kernel died in the step. Resume replays, comes to it, and stops: nobody guesses.
    lab.panel.get_by_text("1 waiting").wait_for()
    lab.panel.get_by_role("button", name="Resume payment").click()
    stopped = page.locator(".Toastify__toast", has_text="waits for you: it asks what becomes of a step")
    stopped.wait_for()
    lab.panel.get_by_text("1 step waits for you").wait_for()
    page.locator(".jp-Durable-status", has_text="1 waiting").wait_for()
    assert effects(jupyter) == ["note", "paid"]
    assert page.get_by_role("dialog").count() == 0
    assert lab.said() == ["Run payment: interrupted.", "Run payment waits for you."]
    stopped.get_by_role("button", name="Show").click()

    step = lab.panel.get_by_role("region", name="Step pay")
    step.get_by_text("The run waits for you.").wait_for()
    assert lab.panel.locator("[role=treeitem][aria-selected=true]").get_attribute("aria-label") == "pay, in doubt"
    button = step.get_by_role("button", name="It happened, with this value")
    button.focus()
    page.keyboard.press("Enter")
    field = step.get_by_label("Value of the step")
    field.wait_for()
    page.keyboard.type('{"number": 31,}')
    page.keyboard.press("Control+Enter")
    step.get_by_role("alert").filter(has_text="This is no JSON").wait_for()
    assert field.get_attribute("aria-invalid") == "true"
    page.screenshot(path=str(pictures / "settle.png"))
    assert lab.violations("#jupyter-durable-panel") == []

    # What the server refuses is said in its own words.
    problem = {"format": 1, "message": "Another execution holds the branch.", "error": "BranchBusy", "facts": {}}
    page.route("**/jupyter-durable/v1/settle?*", lambda route: route.fulfill(status=409, json=problem))
    field.fill('{"number": 31}')
    page.keyboard.press("Control+Enter")
    step.get_by_role("alert").filter(has_text="Another execution holds the branch.").wait_for()
    page.unroute("**/jupyter-durable/v1/settle?*")

    field.focus()
    page.keyboard.press("Control+Enter")
    said = step.get_by_role("status").filter(has_text="counts as completed. Run the cell again to go on.")
    said.wait_for()
    step.get_by_role("button", name="Resume").focus()
    page.keyboard.press("Enter")

    dialog = lab.asked("payment: execute new steps?")
    assert "2 steps came back from the log." in dialog.inner_text()
    assert "The next step has no result there: note (step)." in dialog.inner_text()
    # One Enter too many must not spend: No is where the focus is.
    assert page.evaluate("() => document.activeElement.textContent") == "No"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    assert effects(jupyter) == ["note", "paid", "note"]
    assert lab.panel.get_by_text("1 waiting").count() == 0
    assert lab.said()[-1] == "Run payment: completed."
    assert lab.said().count("Run payment: completed.") == 1


def test_after_an_edit_a_person_says_what_becomes_of_a_step_that_had_finished(
    jupyter: Jupyter, page: Any, pictures: Path
):
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("mail.ipynb", SETUP, MAILS))
    lab.show()
    for index in (0, 1):
        lab.run_cell(index)
        lab.wait_ran(index)
    lab.edit_cell(1, MAILS.replace('"one"', '"two"'))
    lab.run_cell(1)

    waiting = lab.panel.get_by_role("button", name="mail: after an edit: say what becomes of send")
    waiting.wait_for()
    assert lab.panel.get_by_role("button", name="Use the recorded results").is_visible()
    page.screenshot(path=str(pictures / "decide.png"))
    assert lab.violations("#jupyter-durable-panel") == []
    waiting.click()
    # The step is one of the branch before the edit, and it is shown there.
    step = lab.panel.get_by_role("region", name="Step send")
    step.get_by_role("button", name="Use its recorded result").click()
    page.locator(".jp-Durable-waiting", has_text="mail: can be resumed").wait_for()
    assert effects(jupyter) == ["note", "sent", "note"]

    # Everything is recorded or kept now: it comes to its end without a question.
    lab.panel.get_by_role("button", name="Resume mail").click()
    page.locator(".jp-Durable-waiting").wait_for(state="detached")
    page.locator(".jp-Durable-dot[aria-label*='completed']").wait_for()
    assert page.get_by_role("dialog").count() == 0
    assert effects(jupyter) == ["note", "sent", "note"]
