"""Model calls among the rules of replay, as pure code: what is asked anew, what is raised again, what is kept."""

from __future__ import annotations

import msgspec
import pytest

from jupyter_durable.call import Adopt, Call, Execute, Place, Policy, Recorded, Stop
from jupyter_durable.event_data import AttemptInfo, ErrorInfo, Outcome, Payload, Usage
from jupyter_durable.events import (
    AttemptFailed,
    ExecutionEnded,
    StepBilled,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepStarted,
)
from jupyter_durable.history import History
from jupyter_durable.keys import Key, inner_scope
from jupyter_durable.replay import Replay
from tests.test_history import begun, lines

OUTER = Key("", "agent", "d" * 22, 0)
INSIDE = inner_scope(OUTER)
ANSWER = Payload(data=msgspec.Raw(b'{"status":200}'))
REFUSED = AttemptInfo(error=ErrorInfo(type="HTTP 429", message="the model answered 429"))


def asked(scope: str = "", digest: str = "q", *, pure: bool = True) -> StepStarted:
    return StepStarted(at=0.0, name="chat", digest=digest, scope=scope, kind="model", pure=pure)


def answered(step: int) -> StepCompleted:
    return StepCompleted(at=0.0, step=step, data=ANSWER)


def agent() -> StepStarted:
    return StepStarted(at=0.0, name=OUTER.name, digest=OUTER.digest)


def ended(status: str) -> ExecutionEnded:
    return ExecutionEnded(at=0.0, data=Outcome(status=status))  # type: ignore[arg-type]


def call(place: Place, *, pure: bool = True, rerun: str = "ask", digest: str = "q") -> Call:
    return Call(place, "chat", digest, 0, kind="model", pure=pure, rerun=rerun)  # type: ignore[arg-type]


def inside(cell: Place) -> Place:
    return cell.body(OUTER)


def test_an_attempt_that_was_cut_keeps_the_answers_inside_it():
    history = History(lines(begun(), agent(), asked(INSIDE), answered(2), StepInterrupted(at=0.0, step=1)))
    replay, cell = Replay(history), Place()
    replay.ask(Call(cell, OUTER.name, OUTER.digest, 0))

    assert isinstance(replay.ask(call(inside(cell))), Recorded)


@pytest.mark.parametrize("kind", [AttemptFailed, StepFailed])
def test_an_attempt_that_failed_asks_anew(kind):
    failed = kind(at=0.0, step=1, data=REFUSED)
    history = History(lines(begun(), agent(), asked(INSIDE), answered(2), failed))
    replay, cell = Replay(history), Place()
    replay.ask(Call(cell, OUTER.name, OUTER.digest, 0))

    verdict = replay.ask(call(inside(cell)))

    assert isinstance(verdict, Execute)
    assert "its step had failed" in verdict.why


def test_an_answer_of_the_attempt_after_the_failed_one_is_kept():
    failed = AttemptFailed(at=0.0, step=1, data=REFUSED)
    history = History(lines(begun(), agent(), asked(INSIDE), answered(2), failed, agent(), asked(INSIDE), answered(6)))
    replay, cell = Replay(history), Place()
    replay.ask(Call(cell, OUTER.name, OUTER.digest, 0))

    assert isinstance(replay.ask(call(inside(cell))), Recorded)


def test_replay_only_does_not_ask_anew_either():
    failed = AttemptFailed(at=0.0, step=1, data=REFUSED)
    history = History(lines(begun(), agent(), asked(INSIDE), answered(2), failed))
    replay, cell = Replay(history, policy=Policy(replay_only=True)), Place()
    replay.ask(Call(cell, OUTER.name, OUTER.digest, 0))

    assert isinstance(replay.ask(call(inside(cell))), Stop)


def test_a_refusal_after_which_nothing_was_begun_is_tried_again():
    history = History(lines(begun(), asked(), StepFailed(at=0.0, step=1, data=REFUSED), ended("failed")))

    assert isinstance(Replay(history).ask(call(Place())), Execute)


def test_a_refusal_after_which_the_program_went_on_is_raised_again():
    other = StepStarted(at=0.0, name="fallback", digest="f")
    history = History(lines(begun(), asked(), StepFailed(at=0.0, step=1, data=REFUSED), other, ended("failed")))

    assert isinstance(Replay(history).ask(call(Place())), Recorded)


def test_a_refusal_in_a_cell_that_completed_is_raised_again():
    history = History(lines(begun(), asked(), StepFailed(at=0.0, step=1, data=REFUSED), ended("completed")))

    assert isinstance(Replay(history).ask(call(Place())), Recorded)


def tainted() -> Place:
    place = Place()
    place.taint()
    return place


def test_after_a_difference_a_pure_call_with_an_equal_request_is_kept():
    source = History(lines(begun(), asked(), answered(1), ended("failed")))

    assert isinstance(Replay(History(), source).ask(call(tainted())), Adopt)


def test_after_a_difference_a_call_with_state_at_the_provider_is_asked_about():
    source = History(lines(begun(), asked(pure=False), answered(1), ended("failed")))

    assert isinstance(Replay(History(), source).ask(call(tainted(), pure=False)), Stop)


def test_after_a_difference_a_poll_is_made_again():
    source = History(lines(begun(), asked(pure=False), answered(1), ended("failed")))

    assert isinstance(Replay(History(), source).ask(call(tainted(), pure=False, rerun="always")), Execute)


def test_after_a_difference_the_answer_of_a_failed_attempt_is_not_kept():
    failed = StepFailed(at=0.0, step=1, data=REFUSED)
    source = History(lines(begun(), agent(), asked(INSIDE), answered(2), failed, ended("failed")))
    place = inside(Place())
    place.taint()

    assert isinstance(Replay(History(), source).ask(call(place)), Execute)


def test_another_request_names_the_recorded_one_that_it_takes_the_place_of():
    source = History(lines(begun(), asked(), answered(1), ended("failed")))

    verdict = Replay(History(), source).ask(call(tainted(), digest="r"))

    assert isinstance(verdict, Execute)
    assert verdict.instead_of is source.entries[Key("", "chat", "q", 0)]


def test_an_entry_knows_what_its_last_answer_used():
    first, second = Usage(input=1, output=1), Usage(input=2, output=2)
    history = History(
        lines(
            begun(), asked(), StepBilled(at=0.0, step=1, data=first), StepInterrupted(at=0.0, step=1),
            asked(), StepBilled(at=0.0, step=4, data=second), answered(4),
        )
    )  # fmt: skip
    [entry] = history.models

    assert entry.usage == second
    assert entry.billed == (first, second)


def cancelled_with_the_cell(*, pure: bool) -> Replay:
    source = History(lines(begun(), asked(pure=pure), StepCancelled(at=0.0, step=1), ended("failed")))
    return Replay(History(), source)


def test_after_an_edit_a_call_that_the_end_of_the_cell_cancelled_is_made_again():
    assert isinstance(cancelled_with_the_cell(pure=True).ask(call(Place())), Execute)


def test_after_an_edit_what_may_have_had_an_effect_before_it_was_cancelled_is_asked_about():
    assert isinstance(cancelled_with_the_cell(pure=False).ask(call(Place(), pure=False)), Stop)
