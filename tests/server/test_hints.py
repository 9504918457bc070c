"""Hints on the server's event bus: that something changed, and nothing more."""

from __future__ import annotations

import asyncio
import json

import pytest

from jupyter_durable.event_data import Outcome
from jupyter_durable.events import ExecutionEnded
from jupyter_durable.server import watching
from jupyter_durable.server.logs import Logs, LogView
from jupyter_durable.server.place import Place
from jupyter_durable.server.watching import SCHEMA_ID, Watcher
from tests.server.conftest import RUN
from tests.server.events import completed, ended, started


def look(watcher, view):
    return [(hint.branch, hint.seq, hint.status) for hint in watcher.look(view)]


def test_a_look_hints_at_what_has_changed_since_the_last_one(begin, log):
    writer = begin()
    watcher, view = Watcher(Logs(), lambda _: None), LogView(log)
    look(watcher, view)
    assert look(watcher, view) == []
    seq = writer.append(started("a"))
    assert look(watcher, view) == [(f"{RUN}.1", 1, "running")]
    writer.append(completed(seq))
    writer.append(ended())

    assert look(watcher, view) == [(f"{RUN}.1", 3, "completed")]
    assert look(watcher, view) == []


def test_the_first_look_hints_at_what_runs_since_it_may_have_changed_after_the_answer(begin, log):
    begin()
    old = begin(run="bbbb", branch="bbbb.1")
    old.append(ExecutionEnded(at=1.0, data=Outcome(status="completed")))

    assert look(Watcher(Logs(), lambda _: None), LogView(log)) == [(f"{RUN}.1", 0, "running")]


def test_the_death_of_a_kernel_is_a_change_without_an_event(begin, log):
    writer = begin()
    watcher, view = Watcher(Logs(), lambda _: None), LogView(log)
    look(watcher, view)
    writer.close()

    assert look(watcher, view) == [(f"{RUN}.1", 0, "interrupted")]


def test_folding_is_no_change(begin, log):
    writer = begin()
    writer.append(ended())
    writer.close()
    watcher, view = Watcher(Logs(), lambda _: None), LogView(log)
    look(watcher, view)
    view.log.fold()

    assert look(watcher, view) == []


@pytest.fixture
def desk(jp_serverapp):
    """What the routes of the server share."""
    apps = jp_serverapp.extension_manager.extension_apps["jupyter_durable"]
    (app,) = apps
    return app.desk


def test_nothing_is_watched_before_somebody_asks(desk):
    assert desk.watcher._task is None


def test_who_listens_on_the_event_bus_is_told_of_a_change(ask, begin, jp_serverapp, jp_asyncio_loop, log):
    told = asyncio.Queue()

    async def listen(logger, schema_id, data):
        await told.put({**data})

    writer = begin()
    jp_serverapp.event_logger.add_listener(schema_id=SCHEMA_ID, listener=listen)
    ask("runs")

    async def hear():
        hint = {"seq": 0}
        # The watcher may not have had its first look yet; then the next event tells.
        while not hint["seq"]:
            writer.append(started("a"))
            try:
                hint = await asyncio.wait_for(told.get(), 2)
            except TimeoutError:
                continue
        return hint

    hint = jp_asyncio_loop.run_until_complete(asyncio.wait_for(hear(), 30))

    assert {name: hint[name] for name in ("log", "run", "branch", "status")} == {
        "log": str(log),
        "run": RUN,
        "branch": f"{RUN}.1",
        "status": "running",
    }


def test_a_front_end_receives_hints_below_the_base_url_with_their_schema_id(ask, begin, jp_ws_fetch, jp_asyncio_loop):
    writer = begin()
    about = ask("about").json
    ask("runs")

    async def hear():
        socket = await jp_ws_fetch("api", "events", "subscribe")
        try:
            while True:
                writer.append(started("a"))
                try:
                    said = json.loads(await asyncio.wait_for(socket.read_message(), 2))
                except TimeoutError:
                    continue
                if said["schema_id"] == about["hints"]:
                    return said
        finally:
            socket.close()

    said = jp_asyncio_loop.run_until_complete(asyncio.wait_for(hear(), 30))

    assert said["run"] == RUN


def test_who_asked_before_there_was_a_log_is_told_when_the_first_durable_cell_makes_one(
    ask, begin, jp_serverapp, jp_asyncio_loop, log
):
    told = asyncio.Queue()

    async def listen(logger, schema_id, data):
        await told.put({**data})

    jp_serverapp.event_logger.add_listener(schema_id=SCHEMA_ID, listener=listen)
    assert not ask("runs").json["exists"]
    begin()

    hint = jp_asyncio_loop.run_until_complete(asyncio.wait_for(told.get(), 30))

    assert (hint["log"], hint["run"], hint["status"]) == (str(log), RUN, "running")


def test_a_stopped_server_leaves_no_task_behind(ask, begin, desk, jp_asyncio_loop):
    begin()
    ask("runs")
    task = desk.watcher._task
    assert task is not None

    jp_asyncio_loop.run_until_complete(desk.watcher.stop())

    assert task.cancelled()


def test_a_log_that_nobody_asks_about_any_more_is_not_watched(begin, log, monkeypatch):
    begin()
    logs = Logs()
    logs.get(Place("", None, log, configured=False))
    monkeypatch.setattr(watching, "WATCHED", -1.0)
    watcher = Watcher(logs, lambda _: None)

    async def watch():
        watcher.wake()
        await watcher._task

    asyncio.run(watch())


def test_a_log_that_cannot_be_looked_at_leaves_the_others_watched(begin, log, monkeypatch, caplog):
    begin()
    watcher, view = Watcher(Logs(), lambda _: None), LogView(log)
    monkeypatch.setattr(LogView, "look", lambda _: 1 / 0)

    assert watcher._look_safely(view) == []
    assert "cannot watch" in caplog.text
