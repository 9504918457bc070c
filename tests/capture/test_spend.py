"""The bill: true across crashes, retries, branches and nested steps."""

from __future__ import annotations

import pytest

from jupyter_durable import durable, step
from jupyter_durable.log.query import connect
from jupyter_durable.spending import bill, spent_elsewhere


class Boom(Exception):
    """What ends a cell in these tests."""


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def calls(log):
    """Kind and reason of every call, in the order in which they were made."""

    def calls():
        with connect(log) as connection:
            return connection.sql("SELECT kind, reason FROM llm_calls ORDER BY started, seq").fetchall()

    return calls


@pytest.fixture(autouse=True)
def _priced():
    durable.price("gpt-4o-mini", input=100, output=1000)


def only(lines):
    [line] = lines
    return line


def test_a_replayed_call_is_saved_and_not_billed_again(run, ask, log):
    for _ in range(3):
        with run():
            ask("hello")

    line = only(bill(log))
    assert (line.billed.calls, line.replayed.calls, line.wasted.calls) == (1, 2, 0)
    assert line.billed.cost > 0
    assert line.replayed.cost == pytest.approx(2 * line.billed.cost)


def test_calls_inside_of_a_replayed_step_are_saved(run, ask, log):
    @step(key=lambda: "agent")
    def agent():
        return [ask("one"), ask("two")]

    for _ in range(2):
        with run():
            agent()

    line = only(bill(log))
    assert (line.billed.calls, line.replayed.calls) == (2, 2)
    assert line.replayed.tokens == line.billed.tokens


def test_the_answer_of_an_attempt_that_failed_is_wasted(run, ask, log, calls):
    @step(retries=1, backoff=0.001, key=lambda: "agent")
    def agent():
        if ask("hello").split()[1] == "000001":
            raise ValueError("not that one")

    with run():
        agent()

    assert calls() == [("wasted", "retried"), ("billed", "")]
    line = only(bill(log))
    assert line.wasted.cost == pytest.approx(line.billed.cost)


def test_a_refused_call_is_not_charged(run, ask, patient, provider, calls):
    provider.desk.fail_next(1, 500, retry_after_ms="1")
    with run():
        ask("hello", patient)

    assert calls() == [("refused", ""), ("billed", "")]


def test_a_broken_connection_is_in_doubt(run, ask, provider, calls):
    provider.desk.hang_up_next()
    with pytest.raises(Exception, match="Connection"), run():
        ask("hello")
    with run():
        ask("hello")

    assert calls() == [("wasted", "in doubt"), ("billed", "")]


def test_what_a_branch_that_was_left_bought_is_wasted_unless_another_took_it_over(run, ask, log, calls):
    with pytest.raises(Boom), run():
        ask("one")
        ask("two")
        raise Boom
    with run(fresh=True):
        ask("one")

    assert calls() == [("wasted", "abandoned"), ("wasted", "abandoned"), ("billed", "")]


def test_two_completed_branches_are_both_in_use(run, ask, calls):
    with run():
        ask("one")
    with run(fresh=True):
        ask("one")

    assert calls() == [("billed", ""), ("billed", "")]


def test_savings_are_written_down_before_the_first_live_step_so_that_a_crash_keeps_them(run, ask, log):
    with pytest.raises(Boom), run():
        ask("one")
        raise Boom
    with pytest.raises(Boom), run() as begun:
        ask("one")
        ask("two")
        begun.execution.savings.take()  # what a crash would have lost
        raise Boom

    assert only(bill(log)).replayed.calls == 1


def test_the_bill_adds_up_by_day_model_branch_and_step(run, ask, log):
    with run("one"):
        ask("hello")
    with run("two"):
        ask("hello")
        ask("hello")

    assert {line.what: line.billed.calls for line in bill(log)} == {"one": 1, "two": 2}
    assert only(bill(log, "all")).billed.calls == 3
    assert only(bill(log, "day")).billed.calls == 3
    assert only(bill(log, "model")).what.endswith("gpt-4o-mini")
    assert len(bill(log, "step")) == 3


def test_cached_and_reasoning_tokens_are_told(run, ask, log):
    with run():
        ask("hello")
    with connect(log) as connection:
        [(told, cached, output, reasoning)] = connection.sql(
            "SELECT input, cached, output, reasoning FROM llm_calls"
        ).fetchall()

    assert 0 < cached < told
    assert 0 < reasoning < output


def test_a_user_price_is_marked_as_such(run, ask, log):
    with run():
        ask("hello")
    with connect(log) as connection:
        assert connection.sql("SELECT DISTINCT prices FROM spend").fetchall() == [("set by the user",)]


def test_what_other_branches_have_spent_is_known_to_a_notebooks_budget(run, ask, log):
    with run() as begun:
        ask("hello")
    usd, tokens = spent_elsewhere(log, "", "another")

    assert usd > 0
    assert tokens > 0
    assert spent_elsewhere(log, "", begun.execution.header.branch) == (0.0, 0)
    assert spent_elsewhere(log.parent / "nowhere", "", "") == (0.0, 0)


def test_the_summary_knows_what_was_spent_and_saved(run, ask):
    with run() as begun:
        ask("hello")
    live = begun.execution
    with run() as begun:
        ask("hello")
    again = begun.execution

    assert live.stats.spent.cost == pytest.approx(again.savings.total.cost)
    assert (again.stats.spent.calls, live.savings.total.calls) == (0, 0)
