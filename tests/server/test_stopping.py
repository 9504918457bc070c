"""Cancelling and resuming by REST."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_durable import answering, client, durable, step, undoing
from jupyter_durable.errors import BranchClosed, ChildCancelled, Parked, RunCancelled
from jupyter_durable.log.local import LocalLog
from jupyter_durable.server import shapes
from jupyter_durable.stepping import spec_of


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


def test_a_run_that_was_cancelled_while_it_ran_can_be_resumed(ask: Any, log: Any) -> None:
    with pytest.raises(RunCancelled), durable.run("sum", log=str(log)):
        draft("x")
        durable.cancel()
    run = client.find_run(LocalLog(log), "sum")
    assert ask(f"runs/{run}").as_(shapes.RunDetail).run.status == "cancelled"

    ask("resume", body={"run": run})

    item = ask(f"runs/{run}").as_(shapes.RunDetail).run
    assert (item.status, item.waits and item.waits.kind) == ("interrupted", "resume")
    assert "It was resumed." in item.waits.message
    assert client.runs(LocalLog(log))[0].status == "interrupted"


def test_a_failed_run_that_is_cancelled_says_so(ask: Any, log: Any) -> None:
    with pytest.raises(ZeroDivisionError), durable.run("sum", log=str(log)):
        draft("x")
        raise ZeroDivisionError
    run = client.find_run(LocalLog(log), "sum")
    ask("cancel", body={"run": run, "reason": "wrong"})

    (item,) = ask("runs").as_(shapes.Runs).runs
    assert (item.status, item.waits and item.waits.kind) == ("cancelled", "cancelled")


def test_a_child_run_is_never_in_doubt(ask: Any, log: Any, run: str) -> None:
    def rows(after: int = -1) -> shapes.Page:
        page: shapes.Page = ask(f"runs/{run}/branches/main/steps", after=after).as_(shapes.Page)
        return page

    page = rows()
    assert {row.label: (row.kind, row.status) for row in page.rows} == {
        "ada": ("run", "waiting"),
        "draft": ("step", "completed"),
        "word": ("signal", "waiting"),
    }
    child = next(row for row in page.rows if row.kind == "run")
    assert [row.parent for row in page.rows if row.kind != "run"] == [child.number] * 2
    assert page.totals.by_status == {"completed": 1, "waiting": 1}
    assert ask(f"runs/{run}/branches/main/steps/{child.number}").as_(shapes.StepDetail).attempts == []
    assert [(s.name, s.status) for s in client.steps(LocalLog(log), run) if s.kind == "run"] == [("ada", "waiting")]

    answering.send(LocalLog(log), "mail/ada", "word", "yes")
    with pytest.raises(KeyboardInterrupt), durable.run("mail", log=str(log)), durable.run("ada"):
        draft("x")
        durable.wait_for("word")
        assert {row.label: row.status for row in rows(page.next).rows} == {"ada": "running", "word": "completed"}
        raise KeyboardInterrupt
    assert {row.label: row.status for row in rows(page.next).rows} == {"ada": "interrupted", "word": "completed"}
    assert rows().totals.by_status == {"completed": 2}
    assert [s.status for s in client.steps(LocalLog(log), run) if s.kind == "run"] == ["interrupted"]
    (shown,) = ask("sql", body={"query": "SELECT status FROM steps WHERE kind = 'run'"}).as_(shapes.SqlAnswer).rows
    assert shown == ["interrupted"]


def cancel_seat(seat: str, what: str) -> None:
    """Undoes `book`."""


@step(compensate=cancel_seat)
def book(what: str) -> str:
    """A step that can be undone."""
    return f"seat in the {what}"


def test_a_step_says_who_has_undone_it_and_the_branch_who_has_closed_it(ask: Any, log: Any) -> None:
    def undoing_of(name: str) -> shapes.CompensationItem:
        run = client.find_run(LocalLog(log), name)
        rows = ask(f"runs/{run}/branches/main/steps").as_(shapes.Page).rows
        number = next(row.number for row in rows if row.name == "book")
        found = ask(f"runs/{run}/branches/main/steps/{number}").as_(shapes.StepDetail).compensation
        assert found is not None
        return found

    with durable.run("trip", log=str(log)):
        book("train")
    assert undoing_of("trip") == shapes.CompensationItem(name="cancel_seat", undone=False, by="", at=None)
    trip = client.find_run(LocalLog(log), "trip")
    assert ask(f"runs/{trip}").as_(shapes.RunDetail).branches[0].undone is None

    undoing.undo(LocalLog(log), trip, spec_of, by="bob")
    detail = ask(f"runs/{trip}").as_(shapes.RunDetail)
    told, closed = undoing_of("trip"), detail.branches[0].undone
    assert (told.undone, told.by) == (True, "bob")
    assert closed is not None
    assert (detail.run.status, closed.by, closed.finished) == ("undone", "bob", True)
    assert told.at is not None
    with pytest.raises(BranchClosed), durable.run("trip", log=str(log)):
        book("train")

    with durable.run("walk", log=str(log)):
        book("boat")
        durable.undo()
    own = undoing_of("walk")
    assert (own.undone, own.by) == (True, "")
    assert own.at is not None


def test_a_child_run_that_was_cancelled_says_so_and_is_no_failure(ask: Any, log: Any, run: str) -> None:
    ask("cancel", body={"run": run, "child": "ada"})
    with pytest.raises(ChildCancelled):
        execute(log)

    page = ask(f"runs/{run}/branches/main/steps").as_(shapes.Page)
    assert [row.status for row in page.rows if row.kind == "run"] == ["cancelled"]
    assert "failed" not in page.totals.by_status
    assert [s.status for s in client.steps(LocalLog(log), run) if s.kind == "run"] == ["cancelled"]
    (shown,) = ask("sql", body={"query": "SELECT status FROM steps WHERE kind = 'run'"}).as_(shapes.SqlAnswer).rows
    assert shown == ["cancelled"]
    assert ask("waiting").as_(shapes.Waits).waits == []


def test_what_cannot_be_cancelled_is_refused(ask: Any, run: str) -> None:
    assert "no child run" in ask("cancel", body={"run": run, "child": "bob"}).problem.message
    assert "is not cancelled" in ask("resume", body={"run": run}).problem.message
