"""Who may ask, where a path may lead, and what a stranger's log can do: nothing."""

from __future__ import annotations

import json
import os
import urllib.parse

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_durable import durable
from jupyter_durable.event_data import Payload
from jupyter_durable.server import shapes
from jupyter_durable.server.place import NotHere, place_of
from jupyter_durable.server.routes import PREFIX, ROUTES
from tests.server.conftest import RUN, double
from tests.server.events import completed, ended, raw, started

ADDRESSES = [
    (route.method, route.path.replace("{run}", RUN).replace("{branch}", "main").replace("{number}", "1"))
    for route in ROUTES
]


@pytest.fixture
def fetch(jp_asyncio_loop, http_server_client, jp_serverapp, jp_base_url):
    """Asks with exactly the given headers: no token, unless the test sends one."""

    def fetch(method, path, headers=None, body=None):
        async def go():
            body_of = json.dumps(body or {}) if method == "POST" else None
            return await http_server_client.fetch(
                f"{jp_base_url}{PREFIX}/{path}", method=method, headers=headers or {}, body=body_of,
                follow_redirects=False,
            )  # fmt: skip

        try:
            response = jp_asyncio_loop.run_until_complete(go())
        except HTTPClientError as error:
            response = error.response
        return response

    return fetch


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
def test_nobody_asks_without_the_servers_authentication(fetch, method, path):
    response = fetch(method, path)

    assert response.code in {401, 403}
    assert json.loads(response.body)["message"]


@pytest.fixture
def cookie(jp_serverapp, jp_asyncio_loop, fetch, jp_base_url, http_server_client):
    """A browser that is logged in by a cookie, as people are."""

    async def login():
        url = f"{jp_base_url}?token={jp_serverapp.identity_provider.token}"
        try:
            return await http_server_client.fetch(url, follow_redirects=False)
        except HTTPClientError as error:
            return error.response

    response = jp_asyncio_loop.run_until_complete(login())
    return dict(header.split(";")[0].split("=", 1) for header in response.headers.get_list("Set-Cookie"))


@pytest.fixture
def as_browser(cookie, fetch):
    """Asks as a page in that browser does."""

    def as_browser(method, path, xsrf=None, body=None):
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookie.items())}
        if xsrf is not None:
            headers["X-XSRFToken"] = xsrf
        else:
            headers["Referer"] = "http://evil.example/"
        return fetch(method, path, headers, body)

    return as_browser


POSTS = [path for method, path in ADDRESSES if method == "POST"]


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("xsrf", [None, "wrong"])
def test_a_post_without_the_right_xsrf_header_is_refused_to_a_browser(as_browser, path, xsrf):
    assert as_browser("POST", path, xsrf).code == 403


def test_a_post_with_the_right_xsrf_header_reaches_the_route(as_browser, cookie, doubled):
    xsrf = cookie["_xsrf"]

    answer = as_browser("POST", "sql", xsrf, {"query": "SELECT 1"})

    assert answer.code == 200, answer.body


def test_an_authoriser_that_says_no_is_obeyed_by_every_route(fetch, jp_serverapp, jp_auth_header, monkeypatch):
    asked = []

    def is_authorized(handler, user, action, resource):
        asked.append((resource, action))
        return False

    monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", is_authorized)
    monkeypatch.setitem(jp_serverapp.web_app.settings, "authorizer", jp_serverapp.authorizer)

    codes = {fetch(method, path, dict(jp_auth_header)).code for method, path in ADDRESSES}

    assert codes == {403}
    assert set(asked) == {("jupyter_durable", "read"), ("jupyter_durable", "write")}
    assert [action for _, action in asked].count("write") == 8, "SQL only reads"


def test_a_poll_does_not_keep_an_idle_server_alive(ask, doubled, jp_serverapp):
    before = jp_serverapp.web_app.settings.get("api_last_activity")
    ask("runs")
    assert jp_serverapp.web_app.settings.get("api_last_activity") == before
    ask("sql", body={"query": "SELECT 1"})
    assert jp_serverapp.web_app.settings.get("api_last_activity") != before


def test_answers_are_not_kept_by_caches_nor_taken_for_pages(ask, doubled):
    headers = ask("runs").headers

    assert headers["Cache-Control"] == "no-store"
    assert headers["Content-Type"].startswith("application/json")
    assert headers["X-Content-Type-Options"] == "nosniff"


# Paths --------------------------------------------------------------------------------------------------------------

OUTSIDE = [
    "../x.ipynb",
    "a/../../x.ipynb",
    "..",
    "/../x.ipynb",
    "a\0.ipynb",
    "..\\x.ipynb",
    ".hidden/x.ipynb",
    "link/x.ipynb",
    "a/" * 3000 + "x.ipynb",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_leads_out_of_the_root_is_not_found(root, tmp_path, path):
    (root / "a").mkdir()
    (root / "link").symlink_to(tmp_path)

    with pytest.raises(NotHere):
        place_of(str(root), path)


@pytest.mark.parametrize("path", ["../x.ipynb", "..%2fx.ipynb", "/etc/x.ipynb", "a\0b.ipynb", "C:\\x.ipynb"])
def test_a_log_outside_of_the_root_is_not_shown(ask, root, path):
    with durable.run("outside", log=str(root.parent / ".durable")):
        double(1)

    answer = ask("runs", notebook=path)

    assert answer.status == 404 or answer.json["runs"] == []


def test_an_absolute_path_is_one_below_the_root(root):
    assert place_of(str(root), "/a/x.ipynb").log == root / "a" / ".durable"


def test_the_drive_of_a_shared_document_is_left_out(root):
    assert place_of(str(root), "RTC:a/x.ipynb").log == root / "a" / ".durable"


def test_a_root_that_is_a_link_itself_is_served(root, tmp_path):
    (tmp_path / "link").symlink_to(root)

    assert place_of(str(tmp_path / "link"), "a/x.ipynb").log == tmp_path / "link" / "a" / ".durable"


@pytest.mark.parametrize("what", [".", "journal", "journal/aaaabbbb-0009.jsonl", "log.duckdb", "blobs", "locks/x.lock"])
def test_links_in_a_log_are_not_followed(ask, root, log, doubled, tmp_path, what):
    target = tmp_path / "target"
    path = log / what if what != "." else log
    if path.exists():
        path.rename(target)
    else:
        target.write_text("a secret of mine\n")
    path.symlink_to(target)

    answer = ask("runs")

    assert (answer.status, answer.problem.error) == (503, "LogUnusable")
    assert "is a link" in answer.problem.message
    assert "secret" not in answer.body.decode()


def test_a_configured_log_may_be_a_link(ask, doubled, log, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(log)
    monkeypatch.setenv("JUPYTER_DURABLE_LOG", str(tmp_path / "link"))

    assert len(ask("runs").as_(shapes.Runs).runs) == 1


# A stranger's log ---------------------------------------------------------------------------------------------------

CIRCLE = {"$": "error", "class": 0}
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "a/b/../c",
    "nul\0in it",
    "x" * 20_000,
    "\u202egpj.exe",
    "'; DROP VIEW steps; --",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_runs_and_steps_come_back_as_they_are(ask, begin, name):
    writer = begin(run=name, name=name, path=name, cell=name, branch_name=name)
    seq = writer.append(started(name, scope=name, kind=name, why=name))
    writer.append(completed(seq, name))
    writer.append(ended())
    escaped = urllib.parse.quote(name, safe="")

    (run,) = ask("runs", notebook="x.ipynb").as_(shapes.Runs).runs
    bill = ask("spend", run=name)

    assert (run.run, run.name, run.here) == (name, name, False)
    assert bill.status == 200
    if len(name) < 1000 and "/" not in name:
        (row,) = ask(f"runs/{escaped}/branches/{escaped}/steps").as_(shapes.Page).rows
        assert (row.name, row.kind) == (name, name)


def test_a_run_whose_id_has_slashes_is_asked_by_its_escaped_id(fetch, begin, jp_auth_header):
    begin(run="a/b", branch_name="c/d").append(started("x"))

    response = fetch("GET", "runs/a%2Fb/branches/c%2Fd/steps", dict(jp_auth_header))

    assert json.loads(response.body)["rows"][0]["name"] == "x"


@pytest.mark.parametrize(
    "payload",
    [
        Payload(codec="tagged", blob="../../../etc/passwd"),
        Payload(codec="json", blob="/dev/zero"),
        Payload(codec="json", blob="a\0b"),
        Payload(codec="json", blob="0" * 32),
        Payload(codec="tagged", data=raw({"$": "nparray", "blob": "/dev/zero"})),
        Payload(codec="tagged", data=raw({"$": "typed", "classes": 3, "value": {"$": "enum", "class": -1}})),
        Payload(codec="tagged", data=raw({"$": "typed", "classes": [{"of": 0}], "value": {"$": "class", "class": 0}})),
        Payload(codec="tagged", data=raw({"$": "typed", "classes": [{"of": 1}, {"of": 0}], "value": CIRCLE})),
        Payload(codec="tagged", data=raw({"$": ["x"], "v": {}})),
        Payload(codec="tagged", data=raw({"$": "tuple", "v": {"$": "tuple", "v": 3}})),
        Payload(codec="tagged", data=raw({"$": "enum", "v": [[], {}]})),
    ],
)  # fmt: skip
def test_hostile_values_are_shown_as_far_as_they_are_values(ask, begin, payload):
    from jupyter_durable.events import StepCompleted

    writer = begin()
    seq = writer.append(started("a"))
    writer.append(StepCompleted(at=1.0, step=seq, data=payload))

    detail = ask(f"runs/{RUN}/branches/main/steps/{seq}").as_(shapes.StepDetail)

    assert "root:" not in detail.value.text


def test_a_deeply_nested_value_is_cut(ask, begin):
    from jupyter_durable.events import StepCompleted

    writer = begin()
    seq = writer.append(started("a"))
    import msgspec

    deep = msgspec.Raw(b"[" * 900 + b"]" * 900)
    writer.append(StepCompleted(at=1.0, step=seq, data=Payload(data=deep)))

    answer = ask(f"runs/{RUN}/branches/main/steps/{seq}")

    assert answer.status == 200
    assert "…" in answer.as_(shapes.StepDetail).value.text


def test_events_that_do_not_fit_together_are_said_and_stop_no_other_run(ask, begin):
    writer = begin()
    writer.append(started("a"))
    writer.append(completed(4711))
    writer.append(started("b"))
    begin(run="bbbb", branch="bbbb.1").append(started("c"))

    page = ask(f"runs/{RUN}/branches/main/steps").as_(shapes.Page)
    again = ask(f"runs/{RUN}/branches/main/steps").as_(shapes.Page)
    other = ask("runs/bbbb/branches/bbbb.1/steps").as_(shapes.Page)

    assert "do not fit together" in page.damaged
    assert again == page
    assert [row.name for row in page.rows] == ["a"]
    assert [row.name for row in other.rows] == ["c"]


def test_no_module_of_the_user_is_imported_for_a_look(ask, root, log, program, monkeypatch):
    (root / "theirs.py").write_text("import os\nclass T:\n    pass\nos.environ['LOADED'] = '1'\n")
    source = """
sys.path.insert(0, ".")
import theirs
@step
def make(): return [theirs.T()]
with durable.run("makes"):
    make()
print("done", flush=True)
"""
    program(source, root, until="done").wait()
    monkeypatch.syspath_prepend(str(root))
    (run,) = ask("runs").as_(shapes.Runs).runs

    detail = ask(f"runs/{run.run}/branches/main/steps/1").as_(shapes.StepDetail)

    assert "theirs.T" in detail.value.text
    assert "LOADED" not in os.environ


@pytest.mark.parametrize("branch", ["nul\0in it", "../../up", "x" * 5000])
def test_a_branch_that_no_file_can_be_named_after_hides_no_other_run(ask, begin, log, branch):
    from jupyter_durable.event_data import ExecutionHeader
    from jupyter_durable.events import ExecutionStarted
    from jupyter_durable.log.line import ROOT, encode_line

    begin().append(ended())
    header = ExecutionHeader(format=1, execution="cccc0000-0001", run="cccc", name="n", branch=branch, branch_name="m")
    line, _ = encode_line(ExecutionStarted(at=1.0, data=header), 0, ROOT, b"k" * 32)
    (log / "journal" / "cccc0000-0001.jsonl").write_bytes(line)

    answer = ask("runs")

    assert answer.status == 200
    assert RUN in {run.run for run in answer.as_(shapes.Runs).runs}
