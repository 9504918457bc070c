"""Every way to call a model: recorded in one process, replayed in another, killed between two requests."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.capture.families import (
    RECORDING,
    REPLAY,
    Outcomes,
    can_be_killed,
    of_family,
    skip_if_missing,
)
from tests.capture.invented import masked
from tests.capture.processes import bench, kill
from tests.capture.scenarios import FAMILIES, Scenario, scenarios

ALL = [pytest.param(one, id=one.name) for family in FAMILIES for one in of_family(family)]
KILLED = [pytest.param(one, id=one.name) for family in FAMILIES for one in of_family(family) if can_be_killed(one)]
pytestmark = pytest.mark.timeout(300)
"""One test makes what many look at, and on a busy machine another one's too."""

CROWDS = [name for name in scenarios() if name.startswith("crowd_of_equal_calls")]


@pytest.fixture
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What is made once for all tests of this session, in whatever process they run."""
    base = tmp_path_factory.getbasetemp()
    wanted = {}
    for item in request.session.items:
        one = getattr(item, "callspec", None) and item.callspec.params.get("one")
        if isinstance(one, Scenario):
            wanted["deaths" if "kill" in item.name else "matrix", one.family] = None
    return Outcomes(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base, list(wanted))


@pytest.mark.parametrize("one", ALL)
def test_a_program_sees_the_same_whether_it_is_captured_or_not(one: Scenario, outcomes: Outcomes):
    skip_if_missing(one.family)
    made = outcomes.matrix(one.family)

    assert masked(made.recorded[one.name]) == masked(made.plain[one.name])
    assert "output" in made.recorded[one.name]
    assert made.requests["plain"][one.name] == one.requests
    assert made.requests[RECORDING][one.name] == one.requests


@pytest.mark.parametrize("one", ALL)
def test_a_fresh_process_gets_the_recorded_answers_and_asks_for_none(one: Scenario, outcomes: Outcomes):
    skip_if_missing(one.family)
    made = outcomes.matrix(one.family)

    assert made.replayed[one.name] == made.recorded[one.name]
    assert made.requests[REPLAY][one.name] == 0


@pytest.mark.parametrize("one", KILLED)
def test_a_request_that_was_answered_before_a_kill_is_not_made_again(one: Scenario, outcomes: Outcomes):
    skip_if_missing(one.family)
    made = outcomes.deaths(one.family)

    requests = made.requests[one.name]
    assert len(requests) == one.requests + 1, "only the one that was open when the process died is made twice"
    assert requests[2] == requests[1]
    assert masked(made.outputs[one.name]) == masked(outcomes.matrix(one.family).plain[one.name])


@pytest.mark.parametrize("name", CROWDS)
def test_twenty_equal_calls_get_each_its_own_answer_back(name: str, outcomes: Outcomes):
    skip_if_missing("crowds")
    made = outcomes.matrix("crowds")

    recorded, replayed = made.recorded[name]["output"], made.replayed[name]["output"]
    assert len(set(recorded)) == 20
    assert sum(one == other for one, other in zip(recorded, replayed, strict=True)) == 20


@pytest.mark.parametrize("finished", [1, 4, 7])
def test_tasks_that_had_their_answer_before_a_kill_do_not_ask_again(finished: int, tmp_path: Path):
    skip_if_missing("crowds")
    name = "crowd_that_tells_how_far_it_came"
    with bench(tmp_path) as made:
        made.desk.hold_from(finished + 1)
        process = made.start([name])
        told = made.desk.wait_for(lambda seen: sum(one.kind == "plain" for one in seen) == finished)
        arrived = made.desk.wait_open(8)
        kill(process)
        had = [made.desk.seen("plain")[at].path for at in range(finished)]
        made.desk.release()
        assert (told, arrived) == (True, True), made.errors()

        texts = made.run([name])["durable"][name]["output"]

        assert len(made.desk.seen("model")) == 8 + (8 - finished)
        places = {int(path.rpartition("-")[2]) for path in had}
        numbers = [int(re.search(r"\d{6}", text)[0]) for text in texts]
        assert {numbers[at] for at in places} == set(range(1, finished + 1))
        assert all(numbers[at] > 8 for at in set(range(8)) - places)


def test_traces_are_no_model_calls_and_are_sent_on_every_run(outcomes: Outcomes):
    skip_if_missing("agents")
    made = outcomes.matrix("agents")

    assert made.others[RECORDING]
    assert made.others[REPLAY] == made.others[RECORDING]


def test_requests_that_are_no_model_calls_are_left_alone(outcomes: Outcomes):
    skip_if_missing("http")
    made = outcomes.matrix("http")

    assert sum(made.others[RECORDING].values()) == 5
    assert made.others[REPLAY] == made.others[RECORDING]


def test_tools_of_mcp_servers_have_their_effect_once(outcomes: Outcomes):
    skip_if_missing("mcp")
    made = outcomes.matrix("mcp")

    assert made.effects[RECORDING] == 2 * sum(one.effects for one in of_family("mcp")), (
        "a plain pass, and a recorded one"
    )
    assert made.effects[REPLAY] == 0


def test_tools_of_mcp_servers_have_their_effect_once_across_a_kill(outcomes: Outcomes):
    skip_if_missing("mcp")

    assert outcomes.deaths("mcp").effects == sum(one.effects for one in of_family("mcp") if can_be_killed(one))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_key_and_no_cookie_is_in_the_log(family: str, outcomes: Outcomes):
    skip_if_missing(family)

    assert outcomes.matrix(family).secrets == []
