"""What a run waits for that only a person can do, and that it no longer waits once that is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyter_durable import durable, errors, step
from jupyter_durable.event_data import About, ErrorInfo, Origin
from jupyter_durable.server import shapes
from tests.server.conftest import RUN
from tests.server.events import ended, started


def only_run(ask: Any) -> shapes.RunItem:
    (run,) = ask("runs").as_(shapes.Runs).runs
    assert isinstance(run, shapes.RunItem)
    return run


@step(at_most_once=True)
def pay(amount: int) -> int:
    raise KeyboardInterrupt


@step
def opened() -> Any:
    return (n for n in range(3))


@step
def buy() -> int:
    raise AssertionError("it was bought")


@step
def small(n: int) -> int:
    return n


def test_a_completed_run_waits_for_nothing(ask: Any, doubled: str) -> None:
    assert only_run(ask).waits is None


def test_a_run_that_was_cut_waits_to_be_resumed(ask: Any, log: Path) -> None:
    with pytest.raises(KeyboardInterrupt), durable.run("pays", log=str(log)):
        pay(3)

    waits = only_run(ask).waits
    assert waits is not None
    assert (waits.kind, waits.steps) == ("resume", [])


def test_a_killed_run_waits_to_be_resumed_and_says_that_its_kernel_died(ask: Any, begin: Any) -> None:
    begin().close()

    waits = only_run(ask).waits
    assert waits is not None
    assert waits.kind == "resume"
    assert "Its kernel died" in waits.message


def test_a_step_in_doubt_that_stops_a_run_is_named_until_it_is_settled(ask: Any, log: Path) -> None:
    for expected in (KeyboardInterrupt, errors.InDoubtError):
        with pytest.raises(expected), durable.run("pays", log=str(log)):
            pay(3)

    run = only_run(ask)
    assert run.waits is not None
    assert (run.waits.kind, run.waits.branch_name) == ("settle", "main")
    (asked,) = run.waits.steps
    assert (asked.name, asked.label) == ("pay", "pay")
    assert "at_most_once" in run.waits.message

    answer = ask("settle", body={"run": run.run, "step": asked.number, "choice": "value", "value": 3})
    assert answer.status == 200
    after = only_run(ask).waits
    assert after is not None
    assert (after.kind, after.steps) == ("resume", [])


def test_a_step_whose_value_was_not_stored_is_named(ask: Any, log: Path) -> None:
    for expected in (errors.UnstorableValue, errors.ValueNotStored):
        with pytest.raises(expected), durable.run("opens", log=str(log)):
            opened()

    waits = only_run(ask).waits
    assert waits is not None
    assert (waits.kind, [each.name for each in waits.steps]) == ("settle", ["opened"])


def test_what_stopped_before_spending_waits_to_be_resumed(ask: Any, log: Path) -> None:
    with pytest.raises(errors.ReplayOnlyError) as caught, durable.run("buys", log=str(log), replay_only=True):
        buy()

    assert (caught.value.step, caught.value.kind, caught.value.asks) == ("buy", "step", False)
    waits = only_run(ask).waits
    assert waits is not None
    assert waits.kind == "resume"
    assert "before it would spend" in waits.message


def test_replay_only_says_that_a_person_would_be_asked(log: Path) -> None:
    with pytest.raises(KeyboardInterrupt), durable.run("pays", log=str(log)):
        pay(3)

    with pytest.raises(errors.ReplayOnlyError) as caught, durable.run("pays", log=str(log), replay_only=True):
        pay(3)

    assert (caught.value.step, caught.value.asks) == ("pay", True)


def test_a_question_that_a_decision_does_not_answer_has_its_message_read(ask: Any, begin: Any) -> None:
    message = "`--strict` makes any difference an error. Put the old code back."
    failure = ErrorInfo(type="jupyter_durable.errors.DecisionNeeded", message=message)
    begin().append(ended("stopped", error=failure))

    waits = only_run(ask).waits
    assert waits is not None
    assert (waits.kind, waits.message) == ("read", message)


def test_a_question_after_an_edit_names_the_steps_of_the_branch_that_they_are_of(ask: Any, begin: Any) -> None:
    first = begin()
    seq = first.append(started("send", n=1))
    first.append(ended())
    first.close()
    second = begin(
        branch=f"{RUN}.2", branch_name="main-2", origin=Origin(branch=f"{RUN}.1", execution="aaaabbbb-0000", seq=seq)
    )
    message = "The cell has changed. Say once what to do: `%durable decide reuse` or `%durable decide rerun`."
    failure = ErrorInfo(type="jupyter_durable.errors.DecisionNeeded", message=message)
    about = (About(step=seq, name="send", n=1, origin=True),)
    second.append(ended("stopped", error=failure, about=about))
    second.close()

    run = only_run(ask)
    assert run.waits is not None
    assert (run.branch_name, run.waits.kind, run.waits.branch_name) == ("main-2", "decide", "main")
    assert run.waits.steps == [shapes.WaitingStep(number=seq, name="send", label="send#1")]

    done = ask("decide", body={"run": RUN, "reuse": "all", "steps": ["send"]}).as_(shapes.Done)
    assert done.branch_name == "main-2"
    assert done.message == "Finished steps keep their recorded results (of send). Run the cell again to go on."
    after = only_run(ask).waits
    assert after is not None
    assert after.kind == "resume"


def test_a_run_that_stopped_for_another_reason_has_its_message_read(ask: Any, log: Path) -> None:
    with pytest.raises(errors.BudgetExceeded), durable.run("much", log=str(log), budget="1 step"):
        small(1)
        small(2)

    waits = only_run(ask).waits
    assert waits is not None
    assert waits.kind == "read"
    assert "budget" in waits.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"order_id": 9007199254740993, "price": 0.10}', {"order_id": 9007199254740993, "price": 0.1}),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("null", None),
    ],
)
def test_a_value_that_is_settled_as_json_text_keeps_every_digit(ask: Any, log: Path, text: str, value: Any) -> None:
    with pytest.raises(KeyboardInterrupt), durable.run("pays", log=str(log)):
        pay(3)
    run = only_run(ask)

    ask("settle", body={"run": run.run, "step": 1, "choice": "value", "json": text}).as_(shapes.Done)

    with durable.run("pays", log=str(log)):
        assert pay(3) == value


@pytest.mark.parametrize("text", ["1e999", "NaN", "[1,]", "", "[" * 100_000])
def test_a_value_that_cannot_be_kept_as_it_is_typed_is_refused(ask: Any, log: Path, text: str) -> None:
    with pytest.raises(KeyboardInterrupt), durable.run("pays", log=str(log)):
        pay(3)

    refused = ask("settle", body={"run": only_run(ask).run, "step": 1, "choice": "value", "json": text})

    assert refused.status == 400
    assert "no JSON that can be kept as it is" in refused.problem.message
