"""JupyterLab behind a real JupyterHub with its proxy: addresses, rights, and the main story."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.browser.hub import Hub, missing_for_hub
from tests.browser.lab import SETUP, Lab

pytestmark = pytest.mark.timeout(300)

CELL = """\
%%durable research
note("begin")
answers = [ask(f"Question {number}?") for number in (1, 2, 3)]
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    """A model endpoint that lives as long as the hub, whose servers are told of it when they start."""
    with Endpoint() as serving:
        yield serving


@pytest.fixture(scope="module")
def hub(whole: None, tmp_path_factory: pytest.TempPathFactory, endpoint: Endpoint) -> Iterator[Hub]:
    """One hub for all tests of this file: it and its servers take seconds to start."""
    reason = missing_for_hub()
    if reason and os.environ.get("JUPYTER_DURABLE_BROWSER") == "required":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    running = Hub(tmp_path_factory.mktemp("hub"))
    try:
        running.start(endpoint.url)
        yield running
    finally:
        running.stop()


def ours(addresses: list[str]) -> list[str]:
    """The paths of those addresses that lead to the extension."""
    return [path for each in addresses if "jupyter-durable/v1" in (path := urlsplit(each).path)]


def test_g25_behind_a_hub_a_killed_kernel_is_resumed_and_all_requests_stay_under_the_prefix(
    hub: Hub, page: Any, endpoint: Endpoint
):
    """Case G25: everything goes to ``/user/ana/``, REST and hints, and works there."""
    ana = hub.user("ana")
    notebook = ana.notebook("story.ipynb", SETUP, CELL)
    requests: list[str] = []
    sockets: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("websocket", lambda socket: sockets.append(socket.url))
    ana.log_in(page, f"lab/tree/{notebook}?reset")
    lab = Lab(page, ana)
    lab.ready()
    lab.show()
    lab.panel.get_by_role("heading", name="No durable run yet").wait_for()
    lab.run_cell(0)
    lab.wait_ran(0)

    endpoint.bill.hold(2)
    page.evaluate(
        "() => { window.hints = []; window.jupyterapp.serviceManager.events.stream.connect("
        "(_, event) => { if (event.schema_id.includes('durable')) window.hints.push(event.run); }); }"
    )
    lab.run_cell(1)
    assert endpoint.bill.wait_in_flight(2, 60)
    lab.panel.locator("[role=treeitem]", has_text="running").wait_for()
    page.wait_for_function("() => window.hints.length > 0")
    paid = len(endpoint.bill.requests())

    ana.kill_kernel(notebook)
    notice = page.locator(".Toastify__toast", has_text="The kernel of")
    notice.wait_for()
    lab.panel.locator(".jp-Durable-summary", has_text="interrupted").wait_for()
    lab.panel.locator("[role=treeitem]", has_text="in doubt").wait_for()
    endpoint.bill.release()
    notice.get_by_role("button", name="Resume").click()
    lab.asked("execute new steps?").get_by_role("button", name="Yes, go on").click()
    lab.panel.locator(".jp-Durable-summary", has_text="2 replayed, 2 new").wait_for(timeout=60_000)
    assert len(endpoint.bill.requests()) == paid + 2, "the one that was cut, and the one after it"

    lab.command("view", {"view": "sql"})
    views = page.locator("#jupyter-durable-views")
    views.get_by_label("SQL query").fill("SELECT name, count(*) AS n FROM steps GROUP BY name ORDER BY name")
    views.get_by_role("button", name="Run query").click()
    views.get_by_role("cell", name="note").wait_for()

    asked = ours(requests)
    assert any(path.endswith("/sql") for path in asked), "a POST, with what a hub asks for besides"
    assert asked
    assert {path for path in asked if not path.startswith("/user/ana/jupyter-durable/v1/")} == set()
    assert [urlsplit(each).path for each in sockets if "events" in each] == ["/user/ana/api/events/subscribe"]


def test_another_user_and_a_logged_out_page_get_no_data(hub: Hub, page: Any, browser: Any, endpoint: Endpoint):
    ana, bob = hub.user("ana"), hub.user("bob")
    ana.log_in(page, "lab?reset")
    Lab(page, ana)
    page.wait_for_function("() => window.jupyterapp")
    routes = ["about", "runs?notebook=story.ipynb", "openapi.json"]
    fetch = (
        "async routes => Promise.all(routes.map(async route => { const answer = await fetch(route,"
        " { headers: { 'X-XSRFToken': (document.cookie.match(/_xsrf=([^;]*)/) || [])[1] || '' } });"
        " return [answer.status, await answer.text()]; }))"
    )
    mine = page.evaluate(fetch, [ana.address(f"jupyter-durable/v1/{route}") for route in routes])
    assert [status for status, _ in mine] == [200] * 3

    context = browser.new_context()
    other = context.new_page()
    bob.log_in(other, "lab?reset")
    theirs = other.evaluate(fetch, [ana.address(f"jupyter-durable/v1/{route}") for route in routes])
    assert {status for status, _ in theirs} <= {403, 404}
    assert not [text for _, text in theirs if "hints" in text or "research" in text]
    opened = other.goto(ana.address("jupyter-durable/v1/runs"))
    assert opened.status in {403, 404}

    # Bob's own server has no extension, and his panel says so in words.
    bob.notebook("plain.ipynb", SETUP, CELL)
    other.goto(bob.address("lab/tree/plain.ipynb?reset"))
    lab = Lab(other, bob)
    lab.ready()
    lab.show()
    lab.panel.get_by_role("heading", name="The server extension is not enabled").wait_for()
    context.close()

    page.goto(f"{hub.url}hub/logout")
    gone = page.evaluate(fetch, [ana.address(f"jupyter-durable/v1/{route}") for route in routes])
    assert {status for status, _ in gone} <= {403, 404}
    assert not [text for _, text in gone if "hints" in text or "research" in text]
