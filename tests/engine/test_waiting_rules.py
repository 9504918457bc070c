"""Rules 16 and 24 of replay: when a run parks and what that leaves behind; which answer is for which request."""

from __future__ import annotations

import msgspec
import pytest

from jupyter_durable import answering, client
from jupyter_durable.errors import Parked, UsageError
from jupyter_durable.events import StepCancelled, StepInterrupted
from tests.engine.cells import Kernel
from tests.engine.harness import MortalLog, Result, World

SETUP = """
from concurrent.futures import ThreadPoolExecutor
@step
def send(text):
    world.hit(f"send {text}")
    return "sent"
"""


@pytest.fixture
def world() -> World:
    """What lies outside of the program."""
    return World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory."""
    return MortalLog()


@pytest.fixture
def kernel(log: MortalLog, world: World) -> Kernel:
    """A process with the step defined."""
    return Kernel(log, world, SETUP)


def is_parked(result: Result) -> bool:
    """Whether the run says so, whatever its code has made of it."""
    execution = result.execution
    return execution is not None and execution.outcome is not None and execution.outcome.status == "parked"


def questions(log: MortalLog) -> list[str]:
    return [wait.title for wait in answering.waiting(log) if wait.answer is None]


# Rule 16 ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        "durable.approve('Go?')",
        "await durable.approve('Go?')",
        "await asyncio.gather(durable.approve('Go?'), durable.wait_for('paid'))",
        "await asyncio.gather(asyncio.gather(durable.approve('Go?'), durable.sleep('1h')), durable.wait_for('paid'))",
        "await asyncio.shield(durable.approve('Go?'))",
        "await asyncio.wait_for(durable.approve('Go?'), 3600)",
        "await asyncio.wait([asyncio.ensure_future(durable.approve('Go?'))])",
        "async with asyncio.timeout(3600):\n    await durable.approve('Go?')",
        "with ThreadPoolExecutor(2) as pool:\n    print(*pool.map(durable.approve, ['Go?', 'Stop?']))",
    ],
)
def test_a_run_parks_wherever_everything_in_it_waits(kernel: Kernel, log: MortalLog, cell: str) -> None:
    """Rule 16: a run parks when every live task and thread of it waits for a signal or timer."""
    assert is_parked(kernel.durable(cell, grace="0s"))
    assert "Go?" in questions(log)


def test_a_run_does_not_park_beside_a_thread_that_works(kernel: Kernel, log: MortalLog, world: World) -> None:
    """Rule 16: and only then."""
    cell = """
    import time
    def works():
        time.sleep(0.3)
        return send("from a thread")
    with ThreadPoolExecutor(2) as pool:
        pool.submit(works)
        ok = pool.submit(durable.approve, "Go?").result()
    """
    assert is_parked(kernel.durable(cell, grace="0s"))
    assert world.effects == ["send from a thread"]
    assert [step.status for step in client.steps(log, client.find_run(log, "p")) if step.name == "send"] == [
        "completed"
    ]


def test_a_parked_run_is_sealed_and_no_cancellation_becomes_history(
    kernel: Kernel, log: MortalLog, world: World
) -> None:
    """Rule 16: what a program does about the pause is refused, and is in no history."""
    cell = """
    async def asks(name):
        try:
            return await durable.approve(f"Send {name}?")
        except BaseException:
            send(f"{name} anyway")
    await asyncio.gather(asks("a"), asks("b"), return_exceptions=True)
    send("after all")
    """
    assert is_parked(kernel.durable(cell, grace="0s"))
    events = [each.event for each in log.history(client.find_branch(log, client.find_run(log, "p")).branch)]
    assert [event for event in events if isinstance(event, StepCancelled | StepInterrupted)] == []
    assert world.effects == []
    assert questions(log) == ["Send a?", "Send b?"]


@pytest.mark.parametrize("word", ["approve('Go?')", "wait_for('paid')", "sleep('1h')"])
def test_the_body_of_a_step_does_not_wait(kernel: Kernel, log: MortalLog, word: str) -> None:
    """Rule 16: the three words raise at once there, synchronous or not; nobody is asked."""
    kernel.plain(f"@step\nasync def waits():\n    await durable.{word}\n@step\ndef too():\n    durable.{word}\n")

    for call in ("await waits()", "too()"):
        assert isinstance(kernel.durable(call, grace="0s").error, UsageError)
    assert answering.waiting(log) == []


# Rule 24 ------------------------------------------------------------------------------------------------------------

ASKS = 'ok = durable.approve("Send?", show=text)\nsend(text) if ok else "kept"'


def test_an_answer_names_a_request_of_one_branch(kernel: Kernel, log: MortalLog, world: World) -> None:
    """Rule 24: a request's id is branch and step key: the fork asks anew, and an answer to the old one is not its."""
    kernel.plain('text = "dear ada"')
    kernel.durable(ASKS, grace="0s")
    [old] = answering.waiting(log)
    client.fork(log, old.run, "approve")
    assert isinstance(kernel.durable(ASKS, grace="0s").error, Parked)
    [new] = answering.waiting(log)

    assert new.info.request != old.info.request
    with pytest.raises(UsageError, match="Nothing waits for an answer"):
        answering.answer(log, old.info.request, True)
    assert isinstance(kernel.durable(ASKS, grace="0s").error, Parked)
    answering.answer(log, new.info.request, True)
    assert kernel.durable(ASKS, grace="0s").value == "sent"
    assert world.effects == ["send dear ada"]


def test_a_signal_goes_to_the_branch_that_is_current_when_it_is_sent(kernel: Kernel, log: MortalLog) -> None:
    """Rule 24: one that was sent before the fork stays with the branch that it was sent to."""
    cell = 'send("x")\ndurable.wait_for("paid")'
    kernel.durable(cell, grace="0s")
    run = client.find_run(log, "p")
    answering.send(log, "p", "paid", "to the first")
    client.fork(log, run, "send")
    assert isinstance(kernel.durable(cell, grace="0s").error, Parked)
    answering.send(log, "p", "paid", "to the second")

    assert kernel.durable(cell, grace="0s").value == "to the second"
    client.switch(log, run, "main")
    assert kernel.durable(cell, grace="0s").value == "to the first"


def test_what_was_shown_is_what_was_approved(kernel: Kernel, log: MortalLog, world: World) -> None:
    """Rule 24: stored as it was; one that is computed differently asks again, and the old answer is of no use."""
    cell = 'ok = durable.approve("Send?", show=f"mail {len(world.effects)}")\nok'
    kernel.durable(cell, grace="0s")
    [old] = answering.waiting(log)
    shown = old.info.shown[0].data
    assert isinstance(shown, msgspec.Raw)
    assert b"mail 0" in bytes(shown)
    answering.answer(log, old.info.request, True)
    world.hit("another mail")

    assert isinstance(kernel.durable(cell, grace="0s").error, Parked)
    [new] = answering.waiting(log)
    assert new.info.request != old.info.request
    assert new.answer is None


def test_a_signal_of_one_sender_counts_once_whatever_it_says(kernel: Kernel, log: MortalLog) -> None:
    """Rule 24: signals carry an id that the sender makes, and are told apart by that alone."""
    cell = '[durable.wait_for("n"), durable.wait_for("n")]'
    kernel.durable(cell, grace="0s")
    assert answering.send(log, "p", "n", 1, signal_id="hook-1")
    assert not answering.send(log, "p", "n", 2, signal_id="hook-1")
    assert isinstance(kernel.durable(cell, grace="0s").error, Parked)
    assert not answering.send(log, "p", "n", 3, signal_id="hook-1")
    assert answering.send(log, "p", "n", 1, signal_id="hook-2")

    assert kernel.durable(cell, grace="0s").value == [1, 1]


# Far moments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "durable.sleep(1e300)",
        "durable.sleep('9999999d')",
        "durable.sleep(until=datetime.max.replace(tzinfo=UTC))",
        "durable.approve('Go?', timeout=1e12)",
        "durable.wait_for('paid', timeout='40000d')",
    ],
)
def test_more_than_a_hundred_years_are_refused_before_anything_is_written(log, kernel, call):
    result = kernel.durable(f"from datetime import UTC, datetime\n{call}")

    assert isinstance(result.error, UsageError)
    assert "longer than 100 years" in str(result.error)
    assert not answering.waiting(log)


def test_a_century_can_be_waited_for(kernel):
    assert is_parked(kernel.durable("durable.sleep('36525d')", grace="0s"))


# An edit between an answer and its taking ---------------------------------------------------------------------------

ASKING = "send('first')\nsaid = durable.approve('Go?', show='12 mails')\nsend('last')\nsaid"


@pytest.fixture
def answered(log: MortalLog, kernel: Kernel) -> Kernel:
    """A kernel whose run is parked at its question, and somebody has answered."""
    assert is_parked(kernel.durable(ASKING, grace="0s"))
    answering.answer(log, "", True)
    return kernel


def branches(log: MortalLog) -> int:
    """How many the run has."""
    return len(client.views_of(log)[client.find_run(log, "p")])


def test_an_answer_that_was_not_taken_yet_holds_when_the_cell_is_edited_behind_its_question(answered, log, world):
    assert answered.durable(ASKING.replace("last", "other"), grace="0s").value is True
    assert branches(log) == 2
    assert world.effects == ["send first", "send other"]


def test_such_an_answer_survives_a_death_between_asking_and_taking(answered, log):
    edited = ASKING.replace("last", "other")
    for die_after in range(1, 7):
        answered.durable(edited, die_after=die_after, grace="0s")

    assert answered.durable(edited, grace="0s").value is True
    assert branches(log) == 2


@pytest.mark.parametrize("edit", [("12 mails", "13 mails"), ("first", "other"), ("Go?", "Really?")])
def test_such_an_answer_does_not_hold_for_another_question_nor_behind_a_change(answered, edit):
    assert is_parked(answered.durable(ASKING.replace(*edit), reuse="none", grace="0s"))


def test_such_an_answer_does_not_hold_on_a_fork_by_a_person(answered, log):
    client.fork(log, client.find_run(log, "p"), "send")

    assert is_parked(answered.durable(ASKING, grace="0s"))
