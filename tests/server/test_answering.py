"""What runs wait for, over REST: listed, answered, signalled; and what is refused at the door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyter_durable import answering, durable, errors, step
from jupyter_durable.cli import main
from jupyter_durable.log import open_log
from jupyter_durable.server import shapes

HOSTILE = "<img src=x onerror=alert(1)> **bold**"


def program(log: Path) -> Any:
    with durable.run("mails", log=str(log), grace="0s"):
        ok = durable.approve("Send it?", show=HOSTILE, choices=["yes", "no"])
        payment = durable.wait_for("payment", schema={"type": "object", "required": ["sum"]})
        return ok, payment


def parked(log: Path) -> None:
    with pytest.raises(errors.Parked):
        program(log)


def only_wait(ask: Any) -> shapes.WaitItem:
    (wait,) = ask("waiting").as_(shapes.Waits).waits
    assert isinstance(wait, shapes.WaitItem)
    return wait


def test_where_there_is_no_log_nothing_waits(ask: Any) -> None:
    assert ask("waiting").as_(shapes.Waits).waits == []


def test_a_question_is_listed_with_what_was_shown_and_what_may_be_answered(ask: Any, log: Path) -> None:
    parked(log)

    wait = only_wait(ask)

    assert (wait.kind, wait.question, wait.choices) == ("approval", "Send it?", ["yes", "no"])
    assert wait.shown[0].data["text/markdown"] == HOSTILE
    assert (wait.running, wait.answered, wait.until) == (False, None, None)


def test_an_answer_by_rest_lets_the_run_go_on_and_names_who_answered(ask: Any, log: Path) -> None:
    parked(log)
    wait = only_wait(ask)

    done = ask("answer", body={"run": wait.run, "request": wait.request, "value": "yes"}).as_(shapes.Done)
    assert "Run the cell again to go on" in done.message
    answered = only_wait(ask).answered
    assert answered is not None
    assert (answered.by, answered.via) == (done.by, "panel")

    parked(log)
    signal = only_wait(ask)
    assert (signal.kind, signal.signal) == ("signal", "payment")
    ask("signal", body={"run": wait.run, "name": "payment", "value": {"sum": 3}}).as_(shapes.Done)

    assert program(log) == ("yes", {"sum": 3})
    assert ask("waiting").as_(shapes.Waits).waits == []


@pytest.mark.parametrize(
    ("value", "says"),
    [("perhaps", "must be one of"), (None, "must be one of"), (True, "must be one of"), ({"a": 1}, "must be one of")],
)
def test_an_answer_that_does_not_fit_is_refused(ask: Any, log: Path, value: Any, says: str) -> None:
    parked(log)
    wait = only_wait(ask)

    refused = ask("answer", body={"run": wait.run, "request": wait.request, "value": value})

    assert refused.status == 400
    assert says in refused.problem.message
    assert only_wait(ask).answered is None


def test_a_second_answer_is_refused(ask: Any, log: Path) -> None:
    parked(log)
    wait = only_wait(ask)
    question = {"run": wait.run, "request": wait.request, "value": "no"}
    ask("answer", body=question).as_(shapes.Done)

    refused = ask("answer", body={**question, "value": "yes"})

    assert refused.status == 400
    assert "was answered already by" in refused.problem.message


TWO_ASKS: list[str] = []
"""What was deleted."""


@step
def delete(what: str) -> None:
    """An effect that must not happen twice."""
    TWO_ASKS.append(what)


def asks_twice(log: Path) -> None:
    with pytest.raises(errors.Parked), durable.run("two_asks", log=str(log), grace="0s"):
        for what in ("backups", "users"):
            if durable.approve(f"delete {what}?"):
                delete(what)


@pytest.mark.parametrize("doors", ["panel twice", "panel and Python", "Python and panel", "panel and command line"])
def test_g22_a_second_answer_from_whatever_door_counts_for_nothing(ask: Any, log: Path, doors: str) -> None:
    """The first question is answered twice; the second one, which comes next, stays open."""
    TWO_ASKS.clear()
    asks_twice(log)
    wait = only_wait(ask)

    def by_panel() -> bool:
        return bool(ask("answer", body={"run": wait.run, "request": wait.request, "value": True}).status == 200)

    def by_python() -> bool:
        try:
            answering.answer(open_log(str(log)), wait.request, True)
        except errors.UsageError:
            return False
        return True

    def by_shell() -> bool:
        return main(["approve", str(wait.request), "yes", "--log", str(log)]) == 0

    first, second = {
        "panel twice": (by_panel, by_panel), "panel and Python": (by_panel, by_python),
        "Python and panel": (by_python, by_panel), "panel and command line": (by_panel, by_shell),
    }[doors]  # fmt: skip
    assert (first(), second()) == (True, False)
    asks_twice(log)
    assert not second()
    asks_twice(log)

    assert TWO_ASKS == ["backups"]
    assert only_wait(ask).question == "delete users?"


def test_an_answer_to_nothing_is_refused(ask: Any, log: Path) -> None:
    parked(log)
    run = only_wait(ask).run

    assert ask("answer", body={"run": run, "request": "../../etc", "value": "yes"}).status == 400
    assert ask("answer", body={"run": "0" * 16, "request": "1", "value": "yes"}).status == 404
    assert ask("signal", body={"run": "0" * 16, "name": "payment"}).status == 404


def test_a_signal_that_is_sent_twice_counts_once(ask: Any, log: Path) -> None:
    parked(log)
    run = only_wait(ask).run
    body = {"run": run, "name": "payment", "value": {"sum": 3}, "id": "hook-1"}

    assert "Sent." in ask("signal", body=body).as_(shapes.Done).message
    assert "counts once" in ask("signal", body=body).as_(shapes.Done).message


def test_a_signal_that_is_sent_early_is_kept_and_listed_until_the_run_has_used_it(ask: Any, log: Path) -> None:
    parked(log)
    wait = only_wait(ask)
    body = {"run": wait.run, "name": "payment", "json": '{"sum": 9007199254740993}', "id": "hook-1"}
    assert ask("signal", body={**body, "json": "{sum: 3}"}).status == 400
    sent = ask("signal", body=body).as_(shapes.Done)

    (kept,) = ask("waiting").as_(shapes.Waits).kept
    assert (kept.run_name, kept.branch_name, kept.signal, kept.id) == ("mails", "main", "payment", "hook-1")
    assert (kept.by, kept.via) == (sent.by, "panel")

    ask("answer", body={"run": wait.run, "request": wait.request, "value": "yes"}).as_(shapes.Done)
    assert program(log) == ("yes", {"sum": 9007199254740993})
    assert ask("waiting").as_(shapes.Waits).kept == []


def test_a_signal_for_a_branch_stays_with_it_and_one_without_is_for_the_newest(ask: Any, log: Path) -> None:
    parked(log)
    wait = only_wait(ask)
    forked = ask("fork", body={"run": wait.run, "step": wait.number}).as_(shapes.Done)
    old = ask("signal", body={"run": wait.run, "name": "payment", "value": 1, "branch": "main"}).as_(shapes.Done)
    new = ask("signal", body={"run": wait.run, "name": "payment", "value": {"sum": 2}}).as_(shapes.Done)
    lost = ask("signal", body={"run": wait.run, "name": "payment", "branch": "mian"})

    kept = ask("waiting").as_(shapes.Waits).kept
    assert [each.branch_name for each in kept] == ["main", "main-2"]
    assert (old.branch_name, new.branch, lost.status) == ("main", forked.branch, 404)

    parked(log)
    ask("answer", body={"run": wait.run, "request": only_wait(ask).request, "value": "no"}).as_(shapes.Done)
    assert program(log) == ("no", {"sum": 2})
    assert [each.branch_name for each in ask("waiting").as_(shapes.Waits).kept] == ["main"]


def test_a_parked_run_says_that_it_waits_for_an_answer_and_its_step_is_not_in_doubt(ask: Any, log: Path) -> None:
    parked(log)

    (run,) = ask("runs").as_(shapes.Runs).runs
    assert run.status == "parked"
    assert run.waits is not None
    assert run.waits.kind == "answer"
    page = ask(f"runs/{run.run}/branches/main/steps").as_(shapes.Page)
    assert [row.status for row in page.rows] == ["waiting"]
    assert page.totals.by_status == {"waiting": 1}


def test_a_run_that_waits_for_its_timer_says_so(ask: Any, log: Path) -> None:
    with pytest.raises(errors.Parked), durable.run("naps", log=str(log), grace="0s"):
        durable.sleep("3d")

    (run,) = ask("runs").as_(shapes.Runs).runs
    assert run.waits is not None
    assert run.waits.kind == "timer"
    assert only_wait(ask).until is not None


def step_detail(ask: Any, run: str, number: int) -> shapes.StepDetail:
    detail = ask(f"runs/{run}/branches/main/steps/{number}").as_(shapes.StepDetail)
    assert isinstance(detail, shapes.StepDetail)
    return detail


def test_the_details_of_a_request_have_what_is_asked_and_once_it_was_answered_who_answered(ask: Any, log: Path) -> None:
    parked(log)
    wait = only_wait(ask)
    asked = step_detail(ask, wait.run, wait.number).wait
    assert asked is not None
    assert (asked.request, asked.question, asked.choices) == (wait.request, "Send it?", ["yes", "no"])
    assert (asked.shown, asked.schema, asked.receipt) == (wait.shown, {"enum": ["yes", "no"]}, None)

    done = ask("answer", body={"run": wait.run, "request": wait.request, "value": "no"}).as_(shapes.Done)
    parked(log)
    detail = step_detail(ask, wait.run, wait.number)

    assert detail.wait is not None
    assert detail.wait.receipt is not None
    assert (detail.wait.receipt.by, detail.wait.receipt.via) == (done.by, "panel")
    assert detail.wait.receipt.at >= detail.row.started
    assert detail.value is not None
    assert detail.value.json == "no"


def test_the_details_of_a_timer_have_its_moment_and_those_of_another_step_wait_for_nothing(
    ask: Any, log: Path, doubled: str
) -> None:
    with pytest.raises(errors.Parked), durable.run("naps", log=str(log), grace="0s"):
        durable.sleep("3d")
    timer = only_wait(ask)

    wait = step_detail(ask, timer.run, timer.number).wait
    assert wait is not None
    assert (wait.until, wait.question, wait.receipt) == (timer.until, "", None)
    assert step_detail(ask, doubled, 1).wait is None
