"""What a front end asks a kernel before it lets a cell spend: what came back, and what would be executed next."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_durable.demo.endpoint import Endpoint

ASK = '__import__("jupyter_durable.kernel.ahead", fromlist=["ahead"]).ahead(get_ipython())._repr_json_()'
SETUP = """
%load_ext jupyter_durable
from jupyter_durable import step, durable
import httpx, os
durable.price("meter", input=1_000_000, output=0)
def ask(prompt):
    body = {"model": "meter", "max_tokens": 5, "messages": [{"role": "user", "content": prompt}]}
    answer = httpx.post(os.environ["ENDPOINT"] + "/chat/completions", json=body, timeout=60)
    return answer.json()["choices"][0]["message"]["content"]
@step
def note(text): return len(text)
@step(at_most_once=True)
def pay(n): raise KeyboardInterrupt
"""


@pytest.fixture
def endpoint():
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def kernel(start_kernel, endpoint):
    return start_kernel(setup=SETUP, ENDPOINT=endpoint.url)


def ahead(kernel: Any) -> dict[str, Any]:
    found = kernel.value(ASK)
    assert isinstance(found, dict)
    return found


def test_the_next_model_call_is_told_with_the_most_that_it_can_cost(kernel, endpoint):
    kernel.run("%%durable agent\nnote('a')\nnote('b')\nraise ValueError", "cell-1")
    before = endpoint.bill.summary()
    ran = kernel.run("%%durable agent --replay-only\nnote('a')\nnote('b')\nask('c')", "cell-1")

    assert ran.reply["ename"] == "ReplayOnlyError"
    facts = ahead(kernel)
    assert (facts["replayed"], facts["step"], facts["kind"], facts["model"]) == (
        2, "chat.completions", "model", "meter",
    )  # fmt: skip
    assert facts["usd"] >= 1
    assert facts["tokens"] >= facts["usd"]
    assert facts["asks"] is False
    assert endpoint.bill.summary() == before


def test_an_ordinary_step_has_no_price(kernel):
    kernel.run("%%durable agent --replay-only\nnote('a')", "cell-1")

    facts = ahead(kernel)
    assert (facts["replayed"], facts["step"], facts["kind"], facts["usd"]) == (0, "note", "step", None)


def test_a_step_about_which_a_person_would_be_asked_is_told_apart(kernel):
    kernel.run("%%durable agent\nnote('a')\npay(1)", "cell-1")
    kernel.run("%%durable agent --replay-only\nnote('a')\npay(1)", "cell-1")

    facts = ahead(kernel)
    assert (facts["replayed"], facts["step"], facts["asks"]) == (1, "pay", True)


def test_a_cell_that_came_to_its_end_has_nothing_ahead(kernel):
    assert ahead(kernel) == {}
    kernel.ok("%%durable agent\nnote('a')", "cell-1")
    assert ahead(kernel) == {}
    kernel.ok("%%durable agent --replay-only\nnote('a')", "cell-1")
    assert ahead(kernel) == {}


def test_without_the_extension_there_is_nothing_ahead(start_kernel):
    kernel = start_kernel(setup="")
    assert ahead(kernel) == {}
