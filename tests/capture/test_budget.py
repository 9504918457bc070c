"""Budgets: the call that could pass one is not made, and a higher number goes on."""

from __future__ import annotations

import asyncio
import threading

import openai
import pytest

from jupyter_durable import durable, errors, step


@pytest.fixture
def priced():
    """One dollar a thousand tokens, so that sums are seen."""
    durable.price("gpt-4o-mini", input=1000, output=1000)


def test_a_budget_of_steps_stops_before_the_step_that_passes_it_and_goes_on_with_a_higher_number(run):
    """Rule 22: raising the number continues."""
    done = []

    @step(key=lambda n: n)
    def work(n):
        done.append(n)
        return n

    with pytest.raises(errors.BudgetExceeded, match="2 steps were executed"), run(budget="2 steps"):
        for n in range(4):
            work(n)
    with run(budget="4 steps"):
        for n in range(4):
            work(n)

    assert done == [0, 1, 2, 3]


def test_a_stop_for_the_budget_is_no_exception_that_a_cell_eats(run):
    @step
    def work():
        return 1

    with pytest.raises(errors.BudgetExceeded), run(budget="0 steps"):
        try:
            work()
        except Exception:
            pytest.fail("an `except Exception` must not catch it")


@pytest.mark.usefixtures("priced")
def test_a_budget_of_money_stops_before_the_call_and_goes_on_with_a_higher_number(run, ask, requests_made):
    def three():
        return [ask(str(n), max_tokens=100) for n in range(3)]

    with pytest.raises(errors.BudgetExceeded, match="may use up to") as caught, run(budget="$0.26"):
        three()
    made = requests_made()
    with run(budget="5usd"):
        three()

    assert 0 < made < 3
    assert requests_made() == 3
    assert caught.value.budget == "0.26usd"


def test_a_budget_of_tokens_counts_what_earlier_executions_have_spent(run, ask, requests_made):
    """Rule 22: it counts the live spend of the branch over all executions."""
    with run():
        ask("one", max_tokens=10)
    with pytest.raises(errors.BudgetExceeded, match="tokens are spent"), run(budget="10 tokens"):
        ask("one", max_tokens=10)
        ask("two", max_tokens=10)

    assert requests_made() == 1


def test_what_is_replayed_does_not_count(run, ask, requests_made):
    with run():
        ask("one", max_tokens=10)
    with run(budget="1 tokens"):
        ask("one", max_tokens=10)

    assert requests_made() == 1


def test_a_budget_of_money_needs_a_known_price(run, ask, requests_made):
    with pytest.raises(errors.BudgetExceeded, match=r"durable\.price"), run(budget="5usd"):
        ask("one", max_tokens=10)

    assert requests_made() == 0


@pytest.mark.usefixtures("priced")
def test_calls_at_once_cannot_pass_a_budget_together(run, ask, provider, requests_made):
    """Each reserves the most it can cost before it is sent; eight that fit alone do not fit together."""
    provider.desk.hold(*range(1, 9))
    stopped = []

    def one(n):
        try:
            ask(str(n), max_tokens=100)
        except errors.DurableControl as error:
            stopped.append(error)
            provider.desk.look_again()

    with pytest.raises(errors.BudgetExceeded), run(budget="0.6usd"):
        threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        provider.desk.wait_for(lambda seen: len(seen) + len(stopped) == 8)
        provider.desk.release()
        for thread in threads:
            thread.join(30)
        durable.step(str, "sealed")

    assert 0 < requests_made() < 8
    assert len(stopped) == 8 - requests_made()


@pytest.mark.usefixtures("priced")
def test_a_call_in_doubt_counts_with_the_most_it_may_have_cost(run, ask, provider, requests_made):
    provider.desk.hang_up_next()
    with pytest.raises(Exception, match="Connection"), run():
        ask("one", max_tokens=100)
    with pytest.raises(errors.BudgetExceeded), run(budget="0.3usd"):
        ask("one", max_tokens=100)

    assert requests_made() == 1


@pytest.mark.usefixtures("priced")
def test_a_refused_call_costs_nothing(run, ask, provider, requests_made):
    provider.desk.fail_next(1, 500)
    with pytest.raises(Exception, match="500"), run():
        ask("one", max_tokens=100)
    with run(budget="0.3usd"):
        ask("one", max_tokens=100)

    assert requests_made() == 2


@pytest.mark.usefixtures("priced")
async def test_a_stop_beside_calls_that_are_on_their_way_leaves_the_run_intact(run, provider, requests_made):
    async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-test-1", max_retries=0) as client:

        def asked(n):
            message = {"role": "user", "content": str(n)}
            return client.chat.completions.create(model="gpt-4o-mini", messages=[message], max_tokens=100)

        with pytest.raises(errors.BudgetExceeded):
            async with run(budget="0.6usd"):
                await asyncio.gather(*map(asked, range(6)))
        async with run(budget="60usd"):
            answers = await asyncio.gather(*map(asked, range(6)))

    assert len({answer.id for answer in answers}) == 6
    assert requests_made() <= 6 + 3  # what was on its way is in doubt, and asked once more


def test_a_run_with_a_budget_that_is_none_takes_nothing_up(run):
    with pytest.raises(errors.UsageError, match="is no budget"):
        run(budget="plenty")
    with run() as begun:
        assert begun.execution.header.branch_name == "main"
