"""Model calls that were captured survive a kill at any event: what has an answer is never bought again."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.crash.harness import World, plain, refer
from tests.crash.layers import Spec
from tests.crash.test_every_boundary import WHEN, When

CALLS = 8
"""Model calls of the program."""

MODEL_STEP = "chat.completions"


@pytest.mark.parametrize("when", WHEN)
def test_a_kill_at_any_event_buys_no_answer_twice(
    new_world: Callable[[], World], endpoint: Endpoint, when: When
) -> None:
    """Before the intent: asked once. Between intent and answer: in doubt, asked once more. After: never again."""

    def requests() -> int:
        return int(endpoint.bill.summary()["requests"])

    began = requests()
    reference = refer(new_world(), "captured")
    assert requests() - began == CALLS
    deaths = 0

    for k in range(reference.events):
        world, before = new_world(), requests()
        first = world.run("captured", Spec("kill", at=k, when=when, events=True))
        if first.signal == signal.SIGKILL:
            deaths += 1
            steps = world.history().steps.values()
            doubts = sum(each.name == MODEL_STEP and each.state in {"open", "interrupted"} for each in steps)
            resumed = world.finish("captured")
            assert CALLS <= requests() - before <= CALLS + doubts, f"killed {when} event {k}: {doubts} in doubt"
            first = resumed
        assert plain(first.result) == reference.result
        bought = requests()
        again = world.finish("captured")
        assert (again.live, requests()) == (0, bought)
        assert plain(again.result) == reference.result
        shown = [line.rpartition("~") for line in world.lines("seen")]
        assert len({tag for tag, _, _ in shown}) == len({(tag, value) for tag, _, value in shown}), "two values of one"
        world.remove()

    assert deaths >= reference.events - 3
