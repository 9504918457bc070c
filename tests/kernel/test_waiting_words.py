"""`%durable approve`, `signal` and their kind, as functions over a log: which run is meant, and what is refused."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_durable import answering, client, durable
from jupyter_durable.errors import Parked, UsageError
from jupyter_durable.kernel.display import Shown
from jupyter_durable.kernel.magics import Console, dispatch
from jupyter_durable.log import open_log
from jupyter_durable.log.base import EventLog


@pytest.fixture
def log() -> EventLog:
    """A log in memory."""
    return open_log("memory:")


def park(log: EventLog, name: str, program: Any) -> str:
    """Play a program as a run until it parks; return the sentence."""

    async def main() -> None:
        async with durable.run(name, log=log, grace="0s"):
            await program()

    with pytest.raises(Parked) as parked:
        asyncio.run(main())
    return str(parked.value)


def asks(question: str, *choices: str) -> Any:
    """A program that asks once."""

    async def program() -> None:
        await durable.approve(question, choices=choices)

    return program


async def waits_for_go() -> None:
    """A program that waits for a signal."""
    await durable.wait_for("go")


def say(log: EventLog, line: str, last: str = "") -> str:
    """What `%durable` answers to a line, in a kernel whose last run is this one."""
    around = SimpleNamespace(directory="memory:", log=log, last_run=last, notebook_id="")
    hooks: Any = SimpleNamespace(surroundings=around, shell=None)
    answer = dispatch(Console(hooks), line)
    return answer.text if isinstance(answer, Shown) else answer


def answered(log: EventLog) -> dict[str, Any]:
    """The runs that have an answer, and what it is."""
    return {wait.run_name: bytes(wait.answer.value) for wait in answering.waiting(log) if wait.answer is not None}


def test_a_number_of_several_runs_is_refused_and_the_run_is_named(log):
    said = park(log, "pay", asks("Pay?"))
    park(log, "my tea", asks("Tea?"))
    (number,) = {wait.number for wait in answering.waiting(log)}
    assert f"`%durable approve pay {number} yes`" in said

    with pytest.raises(UsageError, match=rf"approve pay {number} yes\|no` \(Pay\?\); `%durable approve \"my tea\" "):
        say(log, f"approve {number} yes", last=client.find_run(log, "my tea"))
    with pytest.raises(UsageError, match="Say which"):
        say(log, "approve yes", last=client.find_run(log, "pay"))
    assert answered(log) == {}

    assert f'%durable approve "my tea" {number} yes|no' in say(log, "waiting")
    assert "run `my tea`" in say(log, f'approve "my tea" {number} no', last=client.find_run(log, "pay"))
    assert answered(log) == {"my tea": b"false"}
    assert "run `pay`" in say(log, f"approve pay {number} yes")
    with pytest.raises(UsageError, match="was answered already"):
        say(log, f"approve pay {number} yes")


def test_a_number_that_nothing_waits_under_is_said_so(log):
    park(log, "pay", asks("Pay?"))

    for line in ("approve 77 no", "approve pay 77 no"):
        with pytest.raises(UsageError, match="Nothing waits for an answer to `77`"):
            say(log, line)
    assert "is answered" in say(log, "approve no")


def test_a_choice_may_look_like_a_number(log):
    park(log, "many", asks("How many?", "77", "99"))

    with pytest.raises(UsageError, match="Nothing waits for an answer to `55`"):
        say(log, "approve 55")
    say(log, "approve 77")
    assert answered(log) == {"many": b'"77"'}


def test_a_signal_that_several_runs_wait_for_needs_the_run(log):
    said = park(log, "one", waits_for_go)
    park(log, "the other", waits_for_go)
    assert "`%durable signal one/go VALUE`" in said

    with pytest.raises(UsageError, match='%durable signal one/go VALUE`; `%durable signal "the other"/go VALUE`'):
        say(log, "signal go 3", last=client.find_run(log, "one"))
    say(log, 'signal "the other"/go 3', last=client.find_run(log, "one"))
    assert answered(log) == {"the other": b"3"}
