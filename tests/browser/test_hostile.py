"""A log is a stranger's: whatever stands in values, outputs, errors and names stays text in the panel."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest

from jupyter_durable import durable, step
from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.event_data import ExecutionHeader, OutputItem
from jupyter_durable.events import StepOutput
from jupyter_durable.log.local import LocalLog
from tests.browser.conftest import Jupyter
from tests.browser.lab import Lab
from tests.server.events import ended, error, failed, raw, started

pytestmark = pytest.mark.timeout(300)

ELSEWHERE = "http://evil.example/"
EVIL = (
    "<script>window.owned = 1</script><img src=x onerror='window.owned = 2'>"
    f"<img src='{ELSEWHERE}pixel.png'><iframe srcdoc='<script>parent.owned = 3</script>'></iframe>"
    "<a href='javascript:window.owned=4'>click</a><svg onload='window.owned = 5'><script>window.owned=6</script></svg>"
    "<style>body { display: none }</style>"
    "<div style='position:fixed;inset:0;z-index:99999'>over everything</div>"
    f"[link](javascript:window.owned=7) ![picture]({ELSEWHERE}picture.png) <base href='{ELSEWHERE}'>"
)
# What the panel must not have made of any of it.
MADE = "script, iframe, object, embed, svg, style, base, link, form[action], a, img:not([src^='data:image/png'])"
SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' onload='window.owned = 10'><script>window.owned = 12</script>"
    f"<image href='{ELSEWHERE}drawn.png'/></svg>"
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@step
def text() -> Any:
    return EVIL


@step
def nested() -> Any:
    return {EVIL: [EVIL, {"html": EVIL}], "__proto__": EVIL}


@step
def frame() -> Any:
    import pandas as pd

    return pd.DataFrame({EVIL: [EVIL], "n": [1]})


@step
def fails() -> Any:
    raise ValueError(f"\x1b[1m{EVIL}")


@step(name=EVIL[:200])
def named() -> Any:
    return 1


def write_values(log: Path, endpoint: Endpoint) -> None:
    """A run of a stranger, with values, an error and a conversation."""
    picture = f"data:image/svg+xml;base64,{base64.b64encode(SVG.encode()).decode()}"
    parts = [
        {"type": "text", "text": EVIL},
        {"type": "image_url", "image_url": {"url": picture}},
        {"type": "image_url", "image_url": {"url": f"{ELSEWHERE}asked.png"}},
    ]
    with durable.run(f"evil {EVIL[:60]}", log=str(log)), httpx.Client() as client:
        text(), nested(), frame(), named()
        messages = [{"role": "system", "content": EVIL}, {"role": "user", "content": parts}]
        client.post(f"{endpoint.url}/chat/completions", json={"model": "demo-1", "messages": messages})
        with pytest.raises(ValueError, match="script"):
            fails()


def write_outputs(log: Path) -> None:
    """Another one, with everything that a step may have displayed, and a traceback in colours."""
    header = ExecutionHeader(
        format=1, execution="aaaabbbb-0001", run="aaaabbbb", name="displays", branch="aaaabbbb.1", branch_name="main",
        durability="process",
    )  # fmt: skip
    writer = LocalLog(log).begin(header)
    seq = writer.append(started("shows"))
    bundles: list[dict[str, Any]] = [
        {"text/html": EVIL, "text/plain": EVIL},
        {"text/markdown": EVIL, "text/plain": "markdown"},
        {"application/javascript": "window.owned = 9", "text/plain": "program"},
        {"image/svg+xml": SVG, "text/plain": "drawing"},
        {"image/png": PIXEL, "text/plain": "picture"},
        {"image/png": "x' onerror='window.owned = 11", "text/plain": "no picture"},
        {"application/vnd.jupyter.widget-view+json": {"model_id": EVIL}, "text/plain": "widget"},
    ]
    link = "\x1b]8;;javascript:window.owned=8\x07link\x1b]8;;\x07"
    items = [OutputItem(kind="stdout", text=f"\x1b[31m{EVIL}\x1b[0m {link}"), OutputItem(kind="stderr", text=EVIL)]
    items += [OutputItem(kind="display", data=raw(bundle)) for bundle in bundles]
    writer.append(StepOutput(at=1.0, step=seq, data=tuple(items)))
    writer.append(failed(seq, message=EVIL, traceback=f"\x1b[0;31mValueError\x1b[0m: {EVIL} {link}"))
    writer.append(ended("failed", error=error(EVIL)))
    writer.close()


def test_hostile_values_outputs_errors_and_names_are_text(
    jupyter: Jupyter, page: Any, endpoint: Endpoint, pictures: Path
):
    write_values(jupyter.root / ".durable", endpoint)
    write_outputs(jupyter.root / ".durable")
    asked: list[str] = []
    dialogs: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    lab = Lab(page, jupyter)
    lab.open(jupyter.notebook("victim.ipynb", "1 + 1"))
    lab.show()
    lab.panel.get_by_role("button", name="Show them").click()
    details = lab.panel.locator(".jp-Durable-details")

    look_at(lab, "shows, failed", details, pictures)
    shown = details.inner_text()
    assert shown.count("<script>window.owned") >= 5
    assert "\x1b" not in shown
    assert details.locator("img").count() == 1, "the one picture that is a picture"

    lab.panel.get_by_label("Run", exact=True).select_option(index=1)
    for name in ("text", "nested", "frame", EVIL[:20], "chat.completions", "fails"):
        look_at(lab, name, details, pictures)
    assert details.locator("img").count() == 0

    views = page.locator("#jupyter-durable-views")
    for view in ("timeline", "compare", "spend", "sql"):
        lab.command("view", {"view": view})
        views.locator(f"[role=tab][data-view={view}][aria-selected=true]").wait_for()
        assert views.locator(MADE).count() == 0
    views.get_by_label("SQL query").fill("SELECT name, value, error_message FROM steps ORDER BY seq")
    views.get_by_role("button", name="Run query").click()
    views.get_by_role("cell").first.wait_for()
    assert "<script>window.owned" in views.inner_text()
    assert views.locator(MADE).count() == 0

    # The page is whole, nobody's code ran, and nothing was asked of another host.
    assert page.evaluate("() => typeof window.owned") == "undefined"
    assert page.evaluate("() => getComputedStyle(document.body).display") != "none"
    assert page.evaluate("() => document.baseURI").startswith(jupyter.url)
    assert page.evaluate("() => document.elementFromPoint(700, 200).closest('.jp-Notebook') !== null")
    assert dialogs == []
    assert [url for url in asked if ELSEWHERE in url] == []


def look_at(lab: Lab, name: str, details: Any, pictures: Path) -> None:
    """Open the details of a step with all that can be unfolded; nothing of it became a part of the page."""
    lab.panel.get_by_role("treeitem", name=name).first.click()
    details.get_by_text("For the record").wait_for()
    for summary in details.locator("summary").all():
        summary.click()
    assert lab.panel.locator(MADE).count() == 0
    lab.page.screenshot(path=str(pictures / f"hostile {name[:5].strip('<')}.png"))
