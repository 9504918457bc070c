"""What a cell's summary tells front ends that draw buttons: while it waits or is parked, and only then."""

from __future__ import annotations

import json

import pytest

from jupyter_durable import answering
from jupyter_durable.kernel.wait_buttons import MIME
from jupyter_durable.log import open_log

TWO = """\
%%durable {name} --grace {grace}
import asyncio
await asyncio.gather(
    durable.approve("A secret question?", show="a secret text"), durable.wait_for("payment"), durable.sleep("3d"))
"""
ONE = '%%durable {name} --grace {grace}\ndurable.approve("Go?")'


def bundles(ran):
    """The data of each publication of the summary, in order."""
    published = [content["data"] for kind, content in ran.outputs if kind in ("display_data", "update_display_data")]
    assert all({"text/plain", "text/html"} <= data.keys() for data in published)
    return published


@pytest.fixture
def log(kernel, monkeypatch):
    """The log of the shared kernel, opened by this process."""
    monkeypatch.setenv("JUPYTER_DURABLE_KEY_FILE", str(kernel.folder / "durable.key"))
    return open_log(str(kernel.folder / ".durable"))


def test_a_parked_cell_names_what_may_be_answered_and_nothing_of_what_is_asked(kernel, log):
    last = bundles(kernel.run(TWO.format(name="parked", grace="0s")))[-1]

    waits = [wait for wait in answering.waiting(log) if wait.run_name == "parked" and wait.kind != "timer"]
    assert len(waits) == 2
    assert last[MIME] == {
        "format": 1, "run": waits[0].run, "name": "parked", "requests": [wait.info.request for wait in waits],
    }  # fmt: skip
    assert "secret" not in json.dumps(last[MIME])


def test_the_entry_is_there_while_the_kernel_waits_and_gone_once_it_goes_on(kernel, log):
    request = kernel.send(ONE.format(name="busy", grace="10m"))
    waiting = bundles(kernel.collect(request, lambda ran: any(MIME in data for data in bundles(ran))))[-1]
    (wait,) = [wait for wait in answering.waiting(log) if wait.run_name == "busy"]
    assert waiting[MIME]["requests"] == [wait.info.request]
    assert wait.running

    answering.answer(log, wait.number, True, run=wait.run)
    ran = kernel.collect(request)
    assert ran.results == ["True"]
    assert MIME not in bundles(ran)[-1]


def test_a_cell_that_only_sleeps_has_nothing_to_be_answered(kernel):
    ran = kernel.run('%%durable nap --grace 0s\ndurable.sleep("3d")')

    assert ran.reply["ename"] == "Parked"
    assert all(MIME not in data for data in bundles(ran))
