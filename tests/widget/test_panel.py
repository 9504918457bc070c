"""`durable.panel()` without a page: what it is, what it answers, what it tells unasked, and what is left without it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_durable import durable
from jupyter_durable.errors import UsageError
from jupyter_durable.server.routes import ROUTES
from jupyter_durable.widget import output as module
from tests.widget.conftest import Sent, double

Show = Callable[..., Sent]


# Questions ----------------------------------------------------------------------------------------------------------


def test_the_panel_answers_what_rest_answers(shown: Show, run: str, notebook: Path):
    sent = shown()

    assert sent.ask("about")[1]["log"] == str(notebook.parent / ".durable")
    status, runs = sent.ask("runs")
    assert (status, [(each["run"], each["here"]) for each in runs["runs"]]) == (200, [(run, True)])
    status, page = sent.ask("runs", run, "branches", "main", "steps", after=-1, limit=10)
    assert (status, [row["name"] for row in page["rows"]]) == (200, ["double", "double"])
    number = str(page["rows"][1]["number"])
    assert sent.ask("runs", run, "branches", "main", "steps", number)[1]["value"]["json"] == [7, 7]
    status, answer = sent.ask("sql", body={"query": "SELECT count(*) AS n FROM steps"})
    assert (status, answer["rows"]) == (200, [[2]])


def test_a_step_by_step_poll_gets_nothing_twice(shown: Show, run: str):
    sent = shown()
    steps = ("runs", run, "branches", "main", "steps")
    page = sent.ask(*steps)[1]

    again = sent.ask(*steps, after=page["next"], epoch=page["epoch"])[1]

    assert again["rows"] == []
    assert again["reset"] is False


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        (["runs", "nobody"], None, 404, "NotHere"),
        (["nowhere"], None, 400, "UsageError"),
        (["export"], None, 400, "UsageError"),
        (["sql"], {"query": "DELETE FROM steps"}, 400, "UsageError"),
        (["sql"], {"question": 1}, 400, "UsageError"),
        (["settle"], {"run": "nobody", "step": 1, "choice": "fail"}, 404, "NotHere"),
    ],
)
def test_a_refusal_has_the_status_and_the_sentence_of_rest(
    shown: Show, run: str, path: list[str], body: Any, status: int, error: str
):
    found, problem = shown().ask(*path, body=body)

    assert (found, problem["error"]) == (status, error)
    assert problem["message"].endswith(".") or error == "UsageError"


def test_a_failure_of_ours_is_told_and_the_next_question_is_answered(
    shown: Show, run: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    sent = shown()
    with monkeypatch.context() as patch:
        patch.setattr("jupyter_durable.server.listing.runs", lambda *_: 1 / 0)
        status, problem = sent.ask("runs")

    assert status == 500
    assert "log of the kernel" in problem["message"]
    assert "ZeroDivisionError" in caplog.text
    assert sent.ask("runs")[0] == 200


def test_what_is_no_question_is_refused_or_left_alone(shown: Show, run: str):
    sent = shown()
    sent.panel._handle_custom_msg({"durable": "ask", "question": "9", "path": "runs"}, [])
    refused = sent.next()
    sent.panel._handle_custom_msg({"kind": "somebody else's"}, [])

    assert (refused["question"], refused["status"]) == ("9", 400)
    assert sent.messages.empty()


def test_questions_from_many_threads_at_once_are_all_answered(shown: Show, run: str):
    sent = shown()
    paths = [["runs"], ["runs", run], ["runs", run, "branches", "main", "steps"], ["spend"]] * 6
    barrier = threading.Barrier(len(paths))

    def ask(number: int, path: list[str]) -> None:
        barrier.wait(30)
        content = {"durable": "ask", "question": str(number), "path": path, "parameters": {}}
        sent.panel._handle_custom_msg(content, [])

    threads = [threading.Thread(target=ask, args=each) for each in enumerate(paths)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    answers: list[dict[str, Any]] = []
    while len(answers) < len(paths):
        answers += [each for each in [sent.next()] if each["durable"] == "answer"]
    assert sorted(int(each["question"]) for each in answers) == list(range(len(paths)))
    assert {each["status"] for each in answers} == {200}


def test_a_question_never_loads_a_value(shown: Show, notebook: Path, monkeypatch: pytest.MonkeyPatch):
    with durable.run("pickled") as context:
        double(Twice())
    assert context.execution is not None
    run = context.execution.header.run
    sent = shown()
    monkeypatch.setattr(Twice, "__setstate__", lambda *_: pytest.fail("it was loaded"), raising=False)

    page = sent.ask("runs", run, "branches", "main", "steps")[1]
    detail = sent.ask("runs", run, "branches", "main", "steps", str(page["rows"][0]["number"]))[1]

    assert detail["value"]["json"] is None
    assert "Twice: not loaded" in detail["value"]["text"]


class Twice:
    """Something that only a pickle can hold."""

    def __mul__(self, other: int) -> Twice:
        return self


# Hints --------------------------------------------------------------------------------------------------------------


def test_steps_are_told_while_the_main_thread_is_busy(shown: Show, run: str):
    sent = shown()
    steps = ("runs", run, "branches", "main", "steps")
    page = sent.ask(*steps)[1]

    with durable.run("doubling", fresh=True):
        first = sent.hint("running")  # this thread runs the step's cell; it takes no message
        double(3)
        message = first
        while not json.loads(message["fresh"][2]["answer"])["rows"]:
            message = sent.hint("running")

    runs, detail, fresh = message["fresh"]
    assert json.loads(runs["answer"])["runs"][0]["status"] == "running"
    assert json.loads(detail["answer"])["run"]["run"] == run
    assert json.loads(fresh["answer"])["rows"][0]["name"] == "double"
    assert first["fresh"][2]["parameters"]["after"] == -1  # a new branch, of which the page knows nothing
    ended = sent.hint("completed")["fresh"][2]
    assert ended["parameters"]["after"] > -1
    assert json.loads(ended["answer"])["next"] > page["next"] - page["next"]


def test_the_first_run_of_a_folder_is_told_too(shown: Show, notebook: Path):
    sent = shown()
    assert sent.ask("runs")[1]["exists"] is False

    with durable.run("first"):
        double(1)
        message = sent.hint("running")

    assert message["hint"]["log"] == str(notebook.parent / ".durable")


def test_a_panel_that_is_collected_while_the_watch_is_locked_stops_nobody(shown: Show, run: str):
    sent = shown()
    sent.ask("runs")
    watch = module.watch()

    with watch._lock:  # where the garbage collector may run, and close a panel
        sent.panel.close()

    thread = watch.thread
    if thread is not None:
        thread.join(10)
        assert not thread.is_alive()


def test_a_closed_panel_is_told_nothing_and_its_thread_ends(shown: Show, run: str):
    first, second = shown(), shown()
    first.ask("runs")
    thread = module.watch().thread
    assert thread is not None

    first.panel.close()
    assert thread.is_alive()
    second.panel.close()
    thread.join(10)

    assert not thread.is_alive()
    assert module.watch().thread is None


def test_nothing_is_watched_before_a_page_asks(shown: Show, run: str):
    sent = shown()
    assert module.watch().thread is None

    sent.ask("runs")

    assert module.watch().thread is not None


# What it is ---------------------------------------------------------------------------------------------------------


def test_where_no_widget_is_drawn_the_runs_stay_as_text_and_html(shown: Show, run: str):
    data, _ = shown().panel._repr_mimebundle_()

    assert data["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert "doubling  completed  main" in data["text/plain"]
    assert "<td>doubling</td><td>completed</td>" in data["text/html"]


def test_a_name_in_a_strangers_log_is_no_html(shown: Show, notebook: Path):
    with durable.run("<script>alert(1)</script>"):
        double(1)

    data, _ = shown().panel._repr_mimebundle_()

    assert "<script>" not in data["text/html"]
    assert "&lt;script&gt;" in data["text/html"]


def test_a_run_is_meant_by_name_or_id_and_one_that_is_not_there_is_refused(shown: Show, run: str):
    assert shown(run="doubling").panel.run == run
    assert shown(run=run).panel.run == run
    with pytest.raises(UsageError, match=r"There is no run `tripling` in this log. Its runs: `doubling`"):
        durable.panel("tripling")


def test_a_run_before_there_is_any_log_is_refused(notebook: Path):
    with pytest.raises(UsageError, match="There is no run `doubling` yet"):
        durable.panel("doubling")


@pytest.mark.parametrize("height", [0, 100_000, "400px", True])
def test_a_height_is_a_number_of_pixels(height: Any):
    with pytest.raises(UsageError, match="pixels from 200 to 4000"):
        durable.panel(height=height)


@pytest.mark.parametrize("missing", ["anywidget", "ipywidgets"])
def test_without_anywidget_the_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch):
    for name in [each for each in sys.modules if each.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "jupyter_durable.widget.output")
    if missing == "ipywidgets":
        for name in [each for each in sys.modules if each.split(".")[0] == "anywidget"]:
            monkeypatch.delitem(sys.modules, name)

    with pytest.raises(UsageError, match=r'pip install "jupyter_durable\[widget\]"'):
        durable.panel()


def test_a_page_that_was_not_built_says_so_in_the_cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(module, "BUILT", tmp_path)
    module._built.cache_clear()
    try:
        built = module._built()
    finally:
        module._built.cache_clear()

    assert "python3 dev.py panel" in built["_esm"]
    assert built["_esm"].startswith("export default")


def test_every_route_that_answers_with_a_shape_is_there_for_the_widget():
    assert {route.path for route in ROUTES if route.does is None} == {"export", "openapi.json"}
