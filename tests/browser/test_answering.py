"""What a run waits for is answered in the panel: by mouse, by keyboard, by a form; and the run goes on, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import TOKEN, Jupyter
from tests.browser.lab import Lab
from tests.browser.test_hostile import ELSEWHERE, EVIL, MADE, SVG

pytestmark = pytest.mark.timeout(300)

SETUP = """\
%load_ext jupyter_durable
from pathlib import Path
from jupyter_durable import durable, step

@step
def happened(what):
    with Path("effects.txt").open("a") as effects:
        effects.write(what + "\\n")
    return what
"""

MAILS = """\
%%durable mails --grace 0s
happened("drafted")
ok = durable.approve("Send these mails?", show="# To ada\\nDear Ada")
happened(f"sent-{ok}")
when = durable.approve("And the rest?", choices=["now", "tomorrow"])
happened(f"rest-{when}")
"""

ORDER = """\
%%durable order --grace 10m
happened("ordered")
schema = {"type": "object", "required": ["sum", "kind"], "properties": {
    "sum": {"type": "number", "minimum": 0, "description": "In euros"}, "kind": {"enum": ["card", "cash"]}}}
payment = durable.wait_for("payment", schema=schema, timeout="50h30m")
happened(f"paid-{payment['sum']}-{payment['kind']}")
"""

NAP = """\
%%durable nap --grace 0s
durable.sleep("{}")
happened("awake")
"""


def effects(jupyter: Jupyter) -> list[str]:
    """What really happened, in order."""
    return Path(jupyter.root / "effects.txt").read_text(encoding="utf-8").split()


def begin(lab: Lab, *sources: str) -> None:
    """Open a notebook with some cells, and run those that are not durable."""
    lab.open(lab.jupyter.notebook("asks.ipynb", SETUP, *sources))
    lab.run_cell(0)
    lab.wait_ran(0)


def item(lab: Lab, title: str) -> Any:
    """What stands in the section about one wait."""
    return lab.panel.locator(".jp-Durable-wait[data-request]", has=lab.page.get_by_role("button", name=title))


def test_questions_are_answered_by_mouse_and_by_keyboard_the_run_goes_on_and_a_late_answer_is_refused(
    jupyter: Jupyter, page: Any, pictures: Path
):
    lab = Lab(page, jupyter)
    begin(lab, MAILS)
    lab.show()
    lab.run_cell(1)
    asked = item(lab, "mails: Send these mails?")
    asked.wait_for()
    assert "# To ada\nDear Ada" in asked.get_by_role("group", name="What was shown").inner_text()
    page.locator(".jp-Durable-dot[aria-label*='parked']").wait_for()
    page.locator(".jp-Durable-status", has_text="1 durable cell parked · 1 waiting").wait_for()
    assert "mails · parked" in lab.panel.get_by_label("Run", exact=True).inner_text()
    assert "approve, question, waiting" in lab.lines()
    assert asked.get_by_role("button", name="Resume").count() == 0

    # A second page, in Notebook 7, does not hear of what happens in the first one.
    late = page.context.new_page()
    late.goto(f"{jupyter.url}notebooks/asks.ipynb?token={TOKEN}")
    there = Lab(late, jupyter)
    there.ready()
    there.show()
    item(there, "mails: Send these mails?").wait_for()
    old = jupyter.ask("jupyter-durable/v1/waiting?notebook=asks.ipynb")
    late.route("**/jupyter-durable/v1/waiting?*", lambda route: route.fulfill(json=old))

    page.bring_to_front()
    asked.get_by_role("button", name="Yes").click()
    asked.get_by_text("Answered by").wait_for()
    assert effects(jupyter) == ["drafted"]

    late.bring_to_front()
    item(there, "mails: Send these mails?").get_by_role("button", name="No").click()
    refused = there.panel.get_by_role("alert").filter(has_text="was answered already by")
    refused.wait_for()
    late.screenshot(path=str(pictures / "late.png"))
    late.close()
    page.bring_to_front()

    # Who has answered here wants it to go on: nobody is asked again, and the next question comes.
    asked.get_by_role("button", name="Resume mails").click()
    second = item(lab, "mails: And the rest?")
    second.get_by_role("button", name="tomorrow").focus()
    assert effects(jupyter) == ["drafted", "sent-True"]
    page.keyboard.press("Enter")
    resume = second.get_by_role("button", name="Resume mails")
    resume.wait_for()
    page.wait_for_function("() => document.activeElement.textContent === 'Resume'")
    page.keyboard.press("Enter")
    lab.panel.locator(".jp-Durable-summary", has_text="completed").wait_for()
    lab.panel.locator(".jp-Durable-waiting").wait_for(state="detached")
    assert page.get_by_role("dialog").count() == 0
    assert effects(jupyter) == ["drafted", "sent-True", "rest-tomorrow"]
    assert lab.panel.locator("[role=treeitem]:focus").count() == 1

    # The step remembers what was asked, what was shown, and who answered.
    lab.panel.locator("[role=treeitem][aria-label^='approve, question']").first.click()
    details = lab.panel.get_by_role("region", name="Step approve")
    details.get_by_text("Answered by").wait_for()
    told = details.inner_text()
    assert "Send these mails?" in told
    assert "Dear Ada" in told
    assert "(panel)" in told
    page.screenshot(path=str(pictures / "answered.png"))
    assert lab.violations("#jupyter-durable-panel") == []


def test_a_notice_leads_to_the_form_and_a_cell_that_waits_in_its_kernel_goes_on_at_once(
    jupyter: Jupyter, page: Any, pictures: Path
):
    lab = Lab(page, jupyter)
    begin(lab, NAP.format("50h30m"), ORDER)
    lab.run_cell(1)
    page.locator(".jp-Durable-status", has_text="1 durable cell parked · 1 waiting").wait_for()
    lab.listen()
    lab.run_cell(2)
    notice = page.locator(".Toastify__toast", has_text="Run order waits for the signal payment.")
    notice.wait_for()
    assert effects(jupyter) == ["ordered"]
    notice.get_by_role("button", name="Answer").click()

    timer = item(lab, "nap: timer")
    timer.get_by_text("goes off in 2 d 2 h").wait_for()
    assert timer.get_by_role("button").count() == 1, "a timer has nothing to be answered"
    asked = item(lab, "order: signal payment")
    asked.get_by_text("lapses in 2 d 2 h").wait_for()
    asked.get_by_role("button", name="Answer signal payment").click()
    money = asked.get_by_label("sum")
    page.wait_for_function("() => document.activeElement.dataset.field === '0'")
    page.keyboard.type("much")
    page.keyboard.press("Enter")
    asked.get_by_role("alert").filter(has_text="This must be a number.").wait_for()
    asked.get_by_role("alert").filter(has_text="Choose one.").wait_for()
    assert money.get_attribute("aria-invalid") == "true"
    page.screenshot(path=str(pictures / "form.png"))
    assert lab.violations("#jupyter-durable-panel") == []

    # What the schema asks beyond names and types is refused by the log, in its own words.
    money.fill("-3")
    asked.get_by_label("kind").select_option("cash")
    asked.get_by_role("button", name="Send").click()
    asked.get_by_role("alert").filter(has_text="The answer does not fit its schema").wait_for()
    assert effects(jupyter) == ["ordered"]

    money.fill("31.5")
    page.keyboard.press("Enter")
    asked.wait_for(state="detached")
    lab.wait_ran(2)
    assert effects(jupyter) == ["ordered", "paid-31.5-cash"]
    notice.wait_for(state="detached")
    assert page.get_by_role("dialog").count() == 0
    assert lab.said().count("Run order waits for the signal payment.") == 1


def test_with_the_switch_on_a_cell_goes_on_by_itself_when_it_is_answered_or_its_timer_is_over(
    jupyter: Jupyter, page: Any
):
    lab = Lab(page, jupyter)
    begin(lab, MAILS, NAP.format("1500ms"))
    lab.show()
    lab.run_cell(1)
    asked = item(lab, "mails: Send these mails?")
    switch = lab.panel.get_by_label("Resume cells of this notebook when they are answered")
    switch.wait_for()
    assert not switch.is_checked()
    switch.check()
    asked.get_by_role("button", name="No").click()
    item(lab, "mails: And the rest?").wait_for()
    assert effects(jupyter) == ["drafted", "sent-False"]

    lab.run_cell(2)
    page.locator(".jp-Durable-dot[aria-label='Durable run nap: completed']").wait_for()
    assert effects(jupyter) == ["drafted", "sent-False", "awake"]
    assert switch.is_checked()
    assert page.get_by_role("dialog").count() == 0


def test_a_question_of_a_killed_kernel_is_answered_and_resume_asks_nothing_more(jupyter: Jupyter, page: Any):
    lab = Lab(page, jupyter)
    begin(lab, MAILS.replace("--grace 0s", "--grace 10m"))
    lab.show()
    lab.run_cell(1)
    asked = item(lab, "mails: Send these mails?")
    asked.get_by_text("Its cell waits in a kernel").wait_for()
    jupyter.kill_kernel("asks.ipynb")
    page.locator(".Toastify__toast", has_text="The kernel of").wait_for()

    asked.get_by_role("button", name="Yes").click()
    asked.get_by_text("Answered by").wait_for()
    assert effects(jupyter) == ["drafted"]
    asked.get_by_role("button", name="Resume mails").click()
    item(lab, "mails: And the rest?").get_by_role("button", name="now").click()
    page.locator(".jp-Durable-dot[aria-label*='completed']").wait_for()
    assert effects(jupyter) == ["drafted", "sent-True", "rest-now"]
    assert page.get_by_role("dialog").count() == 0


HOSTILE = """\
%%durable evil --grace 0s
import base64
EVIL = {evil!r}

class Evil:
    def __repr__(self):
        return EVIL
    def _repr_html_(self):
        return EVIL
    def _repr_markdown_(self):
        return EVIL
    def _repr_svg_(self):
        return {svg!r}

import asyncio
await asyncio.gather(
    durable.approve(EVIL, show=EVIL, choices=[EVIL[:60], "no"]),
    durable.approve("A table?", show=Evil(), key=1),
    durable.wait_for(EVIL[:90].replace("/", "|"), schema={{
        "type": "object", "properties": {{EVIL[:70]: {{"enum": [EVIL]}}}}, "title": EVIL, "description": EVIL}}),
)
"""


@pytest.mark.parametrize("theme", ["JupyterLab Dark"])
def test_hostile_questions_and_what_is_shown_with_them_stay_text(jupyter: Jupyter, page: Any, pictures: Path):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    lab = Lab(page, jupyter)
    begin(lab, HOSTILE.format(evil=EVIL, svg=SVG), MAILS)
    lab.run_cell(1)
    page.locator(".Toastify__toast", has_text="Run evil asks: <script>").wait_for()
    assert page.locator(".Toastify__toast").locator("script, iframe, img, svg[onload]").count() == 0
    lab.show()
    page.locator(".Toastify__toast").first.wait_for(state="detached")
    lab.panel.get_by_text("3 waiting").wait_for()
    lab.panel.get_by_role("button", name="Answer signal").click()
    assert lab.panel.get_by_role("group", name="What was shown").count() == 2
    assert lab.panel.locator(".jp-Durable-waiting").inner_text().count("<script>window.owned") >= 5
    assert lab.panel.locator(MADE).count() == 0
    lab.panel.get_by_role("button", name="evil: A table?").click()
    lab.panel.get_by_role("region", name="Step approve").get_by_text("For the record").wait_for()
    assert lab.panel.locator(MADE).count() == 0
    page.screenshot(path=str(pictures / "hostile questions.png"))
    assert page.evaluate("() => typeof window.owned") == "undefined"
    assert [url for url in asked if ELSEWHERE in url] == []
    assert lab.violations("#jupyter-durable-panel") == []

    lab.run_cell(2)
    item(lab, "mails: Send these mails?").wait_for()
    page.screenshot(path=str(pictures / "dark.png"))
    lab.dress("JupyterLab Light")
    page.screenshot(path=str(pictures / "light.png"))
    assert lab.violations("#jupyter-durable-panel") == []
