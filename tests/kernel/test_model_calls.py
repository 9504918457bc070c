"""Model calls in the cells of a real kernel, with a client that an earlier cell made and no code changed."""

from __future__ import annotations

import re

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.kernel.conftest import SETUP


@pytest.fixture(scope="module")
def endpoint():
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def agent(kernel, endpoint):
    """A kernel with a client, and how many requests were billed since."""
    setup = (
        f"import openai\nclient = openai.OpenAI(base_url={endpoint.url!r}, api_key='sk-test-1', max_retries=0)\n"
        "durable.price('counting-model-1', input=100, output=1000)\n"
        "def ask(text, **more):\n"
        "    message = {'role': 'user', 'content': text}\n"
        "    answer = client.chat.completions.create(model='counting-model-1', messages=[message], **more)\n"
        "    return answer.choices[0].message.content\n"
    )
    kernel.ok(setup)
    kernel.setup = setup
    before = endpoint.bill.summary()["requests"]
    kernel.billed = lambda: endpoint.bill.summary()["requests"] - before
    return kernel


def table_of(ran):
    (text,) = ran.displays
    return text


def test_the_summary_says_what_was_spent_and_what_was_saved(agent):
    cell = "%%durable billed-cell\nask('one')\nask('two')\nNone"
    live = agent.ok(cell).summary
    again = agent.ok(cell).summary

    assert re.search(r"2 new · \$0\.\d\d+ spent", live)
    assert re.search(r"2 replayed · \$0\.\d\d+ saved", again)
    assert agent.billed() == 2


def test_a_killed_kernel_pays_for_nothing_twice(agent):
    cell = (
        "%%durable killed-cell\nanswers = [ask(str(n)) for n in range(4)]\nimport os, time\n"
        "if not os.path.exists('killed'):\n    open('killed', 'w').close()\n    print('now')\n    time.sleep(60)\n"
        "len(answers)"
    )
    agent.run_until("now", cell)
    agent.restart()
    agent.ok(SETUP + agent.setup)

    assert agent.ok(cell).results == ["4"]
    assert agent.billed() == 4


def test_top_level_await_with_an_asynchronous_client_is_captured(agent, endpoint):
    agent.ok(f"later = openai.AsyncOpenAI(base_url={endpoint.url!r}, api_key='sk-test-1')\nimport asyncio")
    cell = (
        "%%durable awaited-cell\n"
        "message = {'role': 'user', 'content': 'same'}\n"
        "asks = [later.chat.completions.create(model='counting-model-1', messages=[message]) for _ in range(5)]\n"
        "len({a.choices[0].message.content for a in await asyncio.gather(*asks)})"
    )

    assert agent.ok(cell).results == ["5"]
    assert agent.ok(cell).results == ["5"]
    assert agent.billed() == 5


def test_an_sdk_imported_inside_of_the_cell_is_captured(agent, endpoint):
    cell = (
        "%%durable importing-cell\nimport anthropic\n"
        f"address = {endpoint.url.removesuffix('/v1')!r}\n"
        "inner = anthropic.Anthropic(base_url=address, api_key='sk-ant-test-1', max_retries=0)\n"
        "try:\n    inner.messages.create(model='m', max_tokens=5, messages=[{'role': 'user', 'content': 'hi'}])\n"
        "except Exception as error:\n    type(error)\n"
    )
    agent.ok(cell)

    history = table_of(agent.ok("%durable history importing-cell"))
    assert "messages" in history


def test_a_request_that_differs_stops_the_cell_with_our_error_by_name(agent):
    agent.run("%%durable differing-cell\nimport time\nask(f'It is {time.time()}')\n1 / 0")
    ran = agent.run("%%durable differing-cell\nimport time\nask(f'It is {time.time()}')\n1 / 0")

    assert ran.reply["ename"] == "NondeterminismError"
    assert "`messages[0].content`" in ran.error
    assert "seconds since 1970" in ran.error
    assert "`time.time`" in ran.error or "time.time" in ran.error
    assert agent.billed() == 1


def test_a_budget_stops_the_cell_and_a_higher_one_goes_on(agent):
    ran = agent.run("%%durable dear-cell --budget $0.27\n[ask(str(n), max_tokens=200) for n in range(3)]\nNone")
    stopped_at = agent.billed()
    agent.ok("%%durable dear-cell --budget 30 usd\n[ask(str(n), max_tokens=200) for n in range(3)]\nNone")

    assert ran.reply["ename"] == "BudgetExceeded"
    assert 0 < stopped_at < 3
    assert agent.billed() == 3


def test_a_budget_of_the_notebook_counts_all_its_runs(agent):
    agent.ok("%%durable first-of-two\nask('one', max_tokens=200)\nNone")
    agent.ok("%durable budget 1 tokens")
    ran = agent.run("%%durable second-of-two\nask('two', max_tokens=200)\nNone")
    shown = table_of(agent.ok("%durable budget"))
    agent.ok("%durable budget off")
    agent.ok("%%durable second-of-two\nask('two', max_tokens=200)\nNone")

    assert ran.reply["ename"] == "BudgetExceeded"
    assert "the notebook's budget" in ran.error
    assert "1 tokens" in shown
    assert agent.billed() == 2


def test_the_bill_is_shown_by_run_and_by_step(agent):
    agent.ok("%%durable shown-cell\nask('one')\nNone")
    agent.ok("%%durable shown-cell\nask('one')\nNone")

    by_run = table_of(agent.ok("%durable spend"))
    by_step = table_of(agent.ok("%durable spend shown-cell step"))

    assert re.search(r"^shown-cell +\$[\d.]+ +\$[\d.]+$", by_run, re.MULTILINE)
    assert "chat.completions" in by_step


def test_a_stream_that_is_left_is_recorded_at_the_end_of_the_cell(agent):
    cell = (
        "%%durable left-cell\n"
        "message = {'role': 'user', 'content': 'go'}\n"
        "stream = client.chat.completions.create(model='counting-model-1', stream=True, messages=[message])\n"
        "first = next(iter(stream))\nfirst.id"
    )
    live = agent.ok(cell).results
    agent.ok("del stream, first")

    assert agent.ok(cell).results == live
    assert agent.billed() == 1


def test_the_stop_button_cuts_a_call_at_once_and_the_next_run_asks_again(agent, endpoint):
    number = endpoint.bill.summary()["requests"] + 1
    endpoint.bill.hold(number)
    request = agent.send("%%durable stopped-cell\nask('held')\nNone")
    assert endpoint.bill.wait_in_flight(number, 30)
    agent.interrupt()
    ran = agent.collect(request)
    endpoint.bill.release()
    agent.ok("%%durable stopped-cell\nask('held')\nNone")

    assert ran.reply["ename"] == "KeyboardInterrupt"
    assert "interrupted" in ran.summary
    assert agent.billed() == 2
