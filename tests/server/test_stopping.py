"""Cancelling and resuming by REST."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_durable import client, durable, step
from jupyter_durable.errors import Parked, RunCancelled
from jupyter_durable.log.local import LocalLog
from jupyter_durable.server import shapes


@step
def draft(text: str) -> str:
    """A step."""
    return f"draft of {text}"


def execute(log: Any) -> None:
    """The program of the run: it waits in a child run."""
    with durable.run("mail", log=str(log), grace="0s"), durable.run("ada"):
        draft("x")
        durable.wait_for("word")


@pytest.fixture
def run(log: Any) -> str:
    """A run that is parked; its id."""
    with pytest.raises(Parked):
        execute(log)
    return client.find_run(LocalLog(log), "mail")


def test_a_run_is_cancelled_and_resumed(ask: Any, log: Any, run: str) -> None:
    done = ask("cancel", body={"run": run, "reason": "enough"}).as_(shapes.Done)
    detail = ask(f"runs/{run}").as_(shapes.RunDetail)

    assert done.message == "It is cancelled, and goes on only when it is resumed."
    assert detail.run.status == "cancelled"
    assert detail.run.waits is not None
    assert detail.run.waits.kind == "cancelled"
    assert f"cancelled by {done.by}" in detail.run.waits.message
    assert ask("waiting").as_(shapes.Waits).waits == []
    with pytest.raises(RunCancelled):
        execute(log)

    assert "Run the cell again" in ask("resume", body={"run": run}).as_(shapes.Done).message
    assert ask(f"runs/{run}").as_(shapes.RunDetail).run.status == "parked"
    with pytest.raises(Parked):
        execute(log)


def test_a_wait_names_its_child_run_which_can_be_cancelled(ask: Any, run: str) -> None:
    assert [wait.child for wait in ask("waiting").as_(shapes.Waits).waits] == ["ada"]

    done = ask("cancel", body={"run": run, "child": "ada"}).as_(shapes.Done)

    assert done.message == "It ends when the cell comes to it again."


def test_what_cannot_be_cancelled_is_refused(ask: Any, run: str) -> None:
    assert "no child run" in ask("cancel", body={"run": run, "child": "bob"}).problem.message
    assert "is not cancelled" in ask("resume", body={"run": run}).problem.message
