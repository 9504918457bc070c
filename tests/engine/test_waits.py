"""Waiting for a timer, a signal, a person: what is recorded, when a run parks, what goes on from there."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from jupyter_durable import answering, client, clock
from jupyter_durable.errors import (
    DecisionNeeded,
    NotAnswered,
    NotInRun,
    Parked,
    ReplayOnlyError,
    Undigestable,
    UsageError,
)
from jupyter_durable.event_data import Signal
from jupyter_durable.events import SignalReceived, WaitStarted
from jupyter_durable.history import History
from tests.engine.cells import Kernel
from tests.engine.harness import MortalLog, Result, World

SETUP = """
@step
def draft(text):
    world.hit(f"draft {text}")
    return f"draft of {text}"

@step
def send(text):
    world.hit(f"send {text}")
    return "sent"
"""

APPROVAL = """
text = draft("mail")
ok = durable.approve("Send it?", show=text)
send(text) if ok else "kept"
"""

DAY = 86400.0


class Travelling(clock.SystemClock):
    """A clock that a test can put forward, or back."""

    ahead = 0.0

    def time(self) -> float:
        return clock.SystemClock.time() + self.ahead


@pytest.fixture
def travel() -> Iterator[Travelling]:
    """The clock in force."""
    with clock.use(Travelling()) as found:
        assert isinstance(found, Travelling)
        yield found


@pytest.fixture
def world() -> World:
    """What lies outside of the program."""
    return World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


@pytest.fixture
def kernel(log: MortalLog, world: World) -> Kernel:
    """A process with the step functions defined."""
    return Kernel(log, world, SETUP)


def parked(result: Result) -> Parked:
    assert isinstance(result.error, Parked), result.error
    assert result.execution is not None
    assert result.execution.outcome is not None
    assert result.execution.outcome.status == "parked"
    return result.error


def run_of(log: MortalLog) -> str:
    return client.find_run(log, "p")


def waits_of(log: MortalLog) -> list[str]:
    return [wait.title for wait in answering.waiting(log)]


def history_of(log: MortalLog) -> History:
    return History(log.history(client.find_branch(log, run_of(log)).branch))


# Approvals ----------------------------------------------------------------------------------------------------------


def test_a_run_parks_at_its_question_and_goes_on_with_the_answer(kernel: Kernel, log: MortalLog, world: World) -> None:
    first = kernel.durable(APPROVAL, grace="0s")
    assert "waits for an answer to request" in str(parked(first))
    assert world.effects == ["draft mail"]
    assert waits_of(log) == ["Send it?"]
    assert client.runs(log)[0].status == "parked"

    answering.answer(log, "", True, by="ada")
    second = Kernel(log, world, SETUP).durable(APPROVAL, grace="0s")

    assert second.value == "sent"
    assert world.effects == ["draft mail", "send draft of mail"]
    assert waits_of(log) == []


def test_the_answer_is_returned_from_history_ever_after(kernel: Kernel, log: MortalLog, world: World) -> None:
    kernel.durable(APPROVAL, grace="0s")
    answering.answer(log, "", True)
    kernel.durable(APPROVAL, grace="0s")

    again = kernel.durable(APPROVAL, grace="0s")

    assert again.value == "sent"
    assert again.live == 0
    assert world.effects == ["draft mail", "send draft of mail"]


def test_no_is_an_answer_too(kernel: Kernel, log: MortalLog, world: World) -> None:
    kernel.durable(APPROVAL, grace="0s")
    answering.answer(log, "", False)

    assert kernel.durable(APPROVAL, grace="0s").value == "kept"
    assert world.effects == ["draft mail"]


def test_who_answered_when_and_from_where_is_recorded(kernel: Kernel, log: MortalLog) -> None:
    kernel.durable(APPROVAL, grace="0s")
    answering.answer(log, "", True, by="ada", via="panel")
    kernel.durable(APPROVAL, grace="0s")

    entry = next(e for e in history_of(log).entries.values() if e.kind == "approval")

    assert entry.receipt is not None
    assert (entry.receipt.by, entry.receipt.via) == ("ada", "panel")
    assert entry.receipt.sent > 0


def test_what_was_shown_is_kept_as_it_was(kernel: Kernel, log: MortalLog) -> None:
    kernel.durable(APPROVAL, grace="0s")

    shown = answering.waiting(log)[0].info.shown

    assert isinstance(shown[0].data, msgspec.Raw)
    assert msgspec.json.decode(shown[0].data)["text/markdown"] == "draft of mail"


def test_an_answer_holds_for_what_was_shown_and_for_nothing_else(kernel: Kernel, log: MortalLog, world: World) -> None:
    cell = 'ok = durable.approve("Send it?", show=text)\nsend(text) if ok else "kept"'
    kernel.plain('text = "dear ada"')
    kernel.durable(cell, grace="0s")
    answering.answer(log, "", True)
    kernel.durable("ok = durable.approve('Send it?', show=text)", grace="0s")  # another cell code: not this branch
    kernel.plain('text = "dear eve"')

    changed = kernel.durable(cell, grace="0s")

    parked(changed)
    assert world.effects == []


@pytest.mark.parametrize("taken", [False, True], ids=["answer not taken yet", "answer taken"])
def test_a_question_whose_thing_is_recomputed_differently_is_asked_again(
    log: MortalLog, world: World, taken: bool
) -> None:
    cell = 'ok = durable.approve("Send it?", show=len(world.effects))\nok'
    kernel = Kernel(log, world, SETUP)
    kernel.durable(cell, grace="0s")
    answering.answer(log, "", True)
    if taken:
        assert kernel.durable(cell, grace="0s").value is True
    world.hit("another mail")

    second = kernel.durable(cell, grace="0s")

    parked(second)
    why = next(e for e in history_of(log).entries.values() if e.kind == "approval").why
    assert "what is shown has changed" in why
    with pytest.raises(UsageError, match="Nothing waits for an answer to"):
        answering.answer(log, "7777", True)


def test_what_has_no_digest_needs_a_key(kernel: Kernel) -> None:
    result = kernel.durable('durable.approve("Use it?", show=object())', grace="0s")
    assert isinstance(result.error, Undigestable)
    assert "key=" in str(result.error)

    parked(kernel.durable('durable.approve("Use it?", show=object(), key="v1")', grace="0s"))


def test_several_questions_wait_at_once(kernel: Kernel, log: MortalLog, world: World) -> None:
    cell = """
    async def handle(name):
        text = draft(name)
        return name if await durable.approve(f"Send {name}?") else "no"
    await asyncio.gather(*[handle(name) for name in "abc"])
    """
    parked(kernel.durable(cell, grace="0s"))
    assert waits_of(log) == ["Send a?", "Send b?", "Send c?"]
    for wait in answering.waiting(log)[::2]:
        answering.answer(log, wait.number, True)

    parked(kernel.durable(cell, grace="0s"))
    assert waits_of(log) == ["Send b?"]
    answering.answer(log, "", False)

    assert kernel.durable(cell, grace="0s").value == ["a", "no", "c"]
    assert world.effects == ["draft a", "draft b", "draft c"]


def test_an_answer_that_comes_while_the_cell_waits_lets_it_go_on(kernel: Kernel, log: MortalLog) -> None:
    cell = """
    async def answer():
        while not (waits := answering.waiting(world.log)):
            await asyncio.sleep(0.01)
        answering.answer(world.log, waits[0].number, True)
    task = asyncio.create_task(answer())
    ok = await durable.approve("Go on?")
    ok
    """
    kernel.namespace["answering"] = answering
    kernel.namespace["world"].log = log

    result = kernel.durable(cell)

    assert result.error is None
    assert result.value is True


def test_choices_are_the_only_answers(kernel: Kernel, log: MortalLog) -> None:
    cell = 'durable.approve("Which?", choices=["red", "blue"])'
    kernel.durable(cell, grace="0s")

    with pytest.raises(UsageError, match='must be one of "red", "blue"'):
        answering.answer(log, "", "green")
    answering.answer(log, "", "blue")

    assert kernel.durable(cell, grace="0s").value == "blue"


def test_a_second_answer_is_refused_and_names_the_first(kernel: Kernel, log: MortalLog) -> None:
    kernel.durable(APPROVAL, grace="0s")
    number = answering.waiting(log)[0].number
    answering.answer(log, number, True, by="ada")

    with pytest.raises(UsageError, match=r"was answered already by ada at .* takes that answer when its cell runs"):
        answering.answer(log, number, False, by="eve")

    kernel.durable(APPROVAL, grace="0s")
    with pytest.raises(UsageError, match=r"was answered by ada at .*; the run has gone on with that"):
        answering.answer(log, number, False, by="eve")


def test_an_answer_that_comes_too_late_is_refused(kernel: Kernel, log: MortalLog, travel: Travelling) -> None:
    cell = 'durable.approve("Quick?", timeout="1h")'
    kernel.durable(cell, grace="0s")
    travel.ahead = 2 * 3600

    with pytest.raises(UsageError, match="has lapsed: it was to be answered until"):
        answering.answer(log, "", True)
    result = kernel.durable(cell, grace="0s")

    assert isinstance(result.error, NotAnswered)


def test_a_question_that_lapsed_and_ended_the_cell_is_asked_anew(
    kernel: Kernel, log: MortalLog, travel: Travelling
) -> None:
    cell = 'durable.approve("Quick?", timeout="1h")'
    kernel.durable(cell, grace="0s")
    travel.ahead = 2 * 3600
    kernel.durable(cell, grace="0s")

    parked(kernel.durable(cell, grace="0s"))
    answering.answer(log, "", True)

    assert kernel.durable(cell, grace="0s").value is True


def test_a_question_that_lapsed_and_was_caught_stays_lapsed(
    kernel: Kernel, log: MortalLog, travel: Travelling, world: World
) -> None:
    cell = """
    try:
        ok = durable.approve("Quick?", timeout="1h")
    except TimeoutError:
        ok = "nobody"
    send(ok)
    """
    kernel.durable(cell, grace="0s")
    travel.ahead = 2 * 3600
    kernel.durable(cell, grace="0s")

    again = kernel.durable(cell, grace="0s")

    assert again.error is None
    assert again.live == 0
    assert world.effects == ["send nobody"]


# Signals ------------------------------------------------------------------------------------------------------------


def test_a_signal_that_comes_before_it_is_waited_for_is_kept(kernel: Kernel, log: MortalLog) -> None:
    cell = 'draft("x")\ndurable.approve("Begin?")\ndurable.wait_for("payment")'
    kernel.durable(cell, grace="0s")
    assert answering.send(log, "p", "payment", {"sum": 3})
    answering.answer(log, answering.waiting(log)[0].number, True)

    assert kernel.durable(cell, grace="0s").value == {"sum": 3}


def test_each_signal_is_used_once_the_oldest_first(kernel: Kernel, log: MortalLog) -> None:
    cell = '[durable.wait_for("n"), durable.wait_for("n")]'
    kernel.durable(cell, grace="0s")
    answering.send(log, "p", "n", 1)

    parked(kernel.durable(cell, grace="0s"))
    answering.send(log, "p", "n", 2)

    assert kernel.durable(cell, grace="0s").value == [1, 2]


def test_a_signal_that_is_sent_twice_counts_once(kernel: Kernel, log: MortalLog) -> None:
    cell = '[durable.wait_for("n"), durable.wait_for("n")]'
    kernel.durable(cell, grace="0s")

    assert answering.send(log, "p", "n", 1, signal_id="hook-17")
    assert not answering.send(log, "p", "n", 1, signal_id="hook-17")

    parked(kernel.durable(cell, grace="0s"))
    assert sum(isinstance(each.event, SignalReceived) for each in log.history(f"{run_of(log)}.1")) == 1


def test_a_value_is_checked_where_it_is_sent_and_becomes_an_instance(kernel: Kernel, log: MortalLog) -> None:
    kernel.plain("from pydantic import BaseModel\nclass Payment(BaseModel):\n    sum: int\n")
    cell = 'durable.wait_for("payment", schema=Payment)'
    kernel.durable(cell, grace="0s")

    with pytest.raises(UsageError, match=r"`answer\['sum'\]`: it must be of type integer"):
        answering.send(log, "p", "payment", {"sum": "a secret"})
    with pytest.raises(UsageError, match="`sum` is missing"):
        answering.answer(log, "payment", {})
    answering.send(log, "p", "payment", {"sum": 3})
    result = kernel.durable(cell, grace="0s")

    assert type(result.value) is kernel.namespace["Payment"]
    assert result.value.sum == 3


def test_what_came_past_the_door_and_does_not_fit_is_not_used(kernel: Kernel, log: MortalLog) -> None:
    cell = 'durable.wait_for("n", schema=int)'
    kernel.durable(cell, grace="0s")
    log.post(Signal(id="x", run=run_of(log), branch=f"{run_of(log)}.1", name="n", value=msgspec.Raw(b'"no"'), sent=1.0))

    result = kernel.durable(cell, grace="0s")

    parked(result)
    assert result.execution is not None
    assert any("does not fit and was not used" in notice for notice in result.execution.stats.notices)


def test_a_signal_named_as_an_approval_does_not_answer_it(kernel: Kernel, log: MortalLog) -> None:
    kernel.durable(APPROVAL, grace="0s")
    answering.send(log, "p", "approve", True)

    parked(kernel.durable(APPROVAL, grace="0s"))


# Timers -------------------------------------------------------------------------------------------------------------


def test_a_long_timer_parks_at_once_and_only_the_time_left_is_waited_for(
    kernel: Kernel, log: MortalLog, travel: Travelling, world: World
) -> None:
    cell = 'draft("x")\ndurable.sleep("3d")\nsend("x")'
    first = parked(kernel.durable(cell, grace="1h"))
    assert first.facts["until"] == pytest.approx(clock.now() + 3 * DAY, abs=60)

    travel.ahead = 2 * DAY
    second = parked(kernel.durable(cell, grace="1h"))
    assert second.facts["until"] == first.facts["until"]

    travel.ahead = 3 * DAY + 1
    assert kernel.durable(cell, grace="1h").value == "sent"
    assert world.effects == ["draft x", "send x"]


def test_a_clock_that_was_put_back_waits_for_the_moment(kernel: Kernel, travel: Travelling) -> None:
    cell = 'durable.sleep("2h")'
    first = parked(kernel.durable(cell, grace="0s"))

    travel.ahead = -DAY
    second = parked(kernel.durable(cell, grace="0s"))

    assert second.facts["until"] == first.facts["until"]


def test_a_moment_counts_in_its_own_time_zone(kernel: Kernel, travel: Travelling) -> None:
    kernel.plain("import datetime, zoneinfo")
    cell = 'durable.sleep(until=datetime.datetime(2027, 3, 28, 9, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")))'

    found = parked(kernel.durable(cell, grace="0s")).facts["until"]

    assert datetime.datetime.fromtimestamp(found, datetime.UTC).isoformat() == "2027-03-28T07:00:00+00:00"
    travel.ahead = found - clock.now() + 1
    assert kernel.durable(cell, grace="0s").error is None


def test_a_short_timer_is_waited_for_in_the_kernel(kernel: Kernel) -> None:
    assert kernel.durable('durable.sleep("30ms")\n"over"', grace="0s").value == "over"
    assert kernel.durable('await durable.sleep(0.03)\n"over"', grace="0s").value == "over"


def test_a_timer_that_was_cancelled_by_the_program_is_cancelled_again(kernel: Kernel, log: MortalLog) -> None:
    cell = """
    try:
        async with asyncio.timeout(0.05):
            await durable.sleep("3d")
    except TimeoutError:
        said = "given up"
    said
    """
    first = kernel.durable(cell, grace="1h")
    assert isinstance(first.error, Parked) or first.value == "given up"
    short = cell.replace('"3d"', '"20s"')

    assert kernel.durable(short, grace="1h").value == "given up"
    again = kernel.durable(short, grace="1h")
    assert again.value == "given up"
    assert again.live == 0


# Parking ------------------------------------------------------------------------------------------------------------


def test_a_run_does_not_park_while_a_step_is_running(kernel: Kernel, log: MortalLog, world: World) -> None:
    kernel.plain("@step\nasync def slow():\n    await asyncio.sleep(0.3)\n    world.hit('slow')\n    return 1\n")
    cell = 'await asyncio.gather(slow(), durable.approve("Go?"))'

    parked(kernel.durable(cell, grace="0s"))

    assert world.effects == ["slow"]
    answering.answer(log, "", True)
    assert kernel.durable(cell, grace="0s").value == [1, True]
    assert world.effects == ["slow"]


def test_a_run_does_not_park_while_its_own_code_sleeps(kernel: Kernel, world: World) -> None:
    cell = """
    async def other():
        await asyncio.sleep(0.3)
        world.hit("slept")
    await asyncio.gather(other(), durable.approve("Go?"))
    """
    parked(kernel.durable(cell, grace="0s"))
    assert world.effects == ["slept"]


def test_a_task_that_waits_at_a_queue_does_not_keep_a_run_from_parking(kernel: Kernel) -> None:
    cell = """
    queue = asyncio.Queue()
    async def consume():
        return await queue.get()
    async def produce():
        await queue.put(await durable.approve("Go?"))
    async with asyncio.TaskGroup() as group:
        got = group.create_task(consume())
        group.create_task(produce())
    got.result()
    """
    result = kernel.durable(cell, grace="0s")
    assert result.execution is not None
    assert result.execution.outcome is not None
    assert result.execution.outcome.status == "parked"


def test_except_exception_does_not_eat_a_park_and_no_cancellation_becomes_history(
    kernel: Kernel, log: MortalLog, world: World
) -> None:
    cell = """
    async def one(q):
        try:
            return await durable.approve(q)
        except Exception:
            world.hit("eaten")
        finally:
            world.hit("finally")
    await asyncio.gather(one("a"), one("b"))
    """
    parked(kernel.durable(cell, grace="0s"))

    assert "eaten" not in world.effects
    assert all(e.state == "open" for e in history_of(log).entries.values())


def test_a_step_after_a_park_is_refused(kernel: Kernel, world: World) -> None:
    cell = """
    try:
        durable.approve("Go?")
    except BaseException:
        send("anyway")
    """
    result = kernel.durable(cell, grace="0s")

    assert world.effects == []
    assert result.execution is not None
    assert result.execution.outcome is not None
    assert result.execution.outcome.status == "parked"


def test_a_death_while_waiting_loses_nothing(kernel: Kernel, log: MortalLog, world: World) -> None:
    alive = kernel.durable(APPROVAL, grace="0s")
    answering.answer(log, "", True)
    kernel.durable(APPROVAL, grace="0s")
    events = alive.events

    for die_after in range(events + 3):
        log, world = MortalLog(), World()
        Kernel(log, world, SETUP).durable(APPROVAL, die_after=die_after, grace="0s")
        for _ in range(2):
            waits = answering.waiting(log)
            if waits and waits[0].answer is None:
                answering.answer(log, "", True)
            result = Kernel(log, world, SETUP).durable(APPROVAL, grace="0s")

        assert result.value == "sent", die_after
        assert world.effects.count("send draft of mail") == 1
        assert world.effects.count("draft mail") <= 2


def test_a_death_while_an_answer_is_taken_loses_nothing_and_uses_it_once(log: MortalLog, world: World) -> None:
    cell = '[durable.wait_for("n"), durable.wait_for("n")]'
    for die_after in range(8):
        log = MortalLog()
        kernel = Kernel(log, world, SETUP)
        kernel.durable(cell, grace="0s")
        answering.send(log, "p", "n", 1)
        answering.send(log, "p", "n", 2)

        kernel.durable(cell, die_after=die_after, grace="0s")

        assert Kernel(log, world, SETUP).durable(cell, grace="0s").value == [1, 2], die_after


# After an edit ------------------------------------------------------------------------------------------------------


def test_after_an_edit_an_answer_before_it_holds_and_one_after_it_is_asked_again(
    kernel: Kernel, log: MortalLog, world: World
) -> None:
    cell = 'a = durable.approve("First?")\ntext = draft("x")\nb = durable.approve("Second?")\n(a, b)'
    for _ in range(2):
        kernel.durable(cell, grace="0s")
        answering.answer(log, "", True)
    assert kernel.durable(cell, grace="0s").value == (True, True)

    edited = kernel.durable(cell.replace('draft("x")', 'draft("y")'), grace="0s")

    parked(edited)
    assert waits_of(log) == ["Second?"]
    assert world.effects == ["draft x", "draft y"]


def test_after_an_edit_a_timer_that_fired_has_fired(kernel: Kernel, world: World, travel: Travelling) -> None:
    cell = 'draft("x")\ndurable.sleep("1h")\n"over"'
    kernel.durable(cell, grace="0s")
    travel.ahead = 2 * 3600
    kernel.durable(cell, grace="0s")

    edited = kernel.durable(cell.replace('draft("x")', 'draft("y")'), grace="0s")

    assert edited.value == "over"
    assert world.effects == ["draft x", "draft y"]


def test_after_an_edit_a_timer_that_runs_keeps_its_moment(kernel: Kernel, travel: Travelling) -> None:
    cell = 'durable.sleep("2h")\ndraft("x")'
    first = parked(kernel.durable(cell, grace="0s"))
    travel.ahead = 3600

    second = parked(kernel.durable(cell + "\ndraft('y')", grace="0s"))

    assert second.facts["until"] == first.facts["until"]


# Refusing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ['approve("Go?")', 'wait_for("n")', 'sleep("1h")'])
def test_inside_the_body_of_a_step_nothing_waits(kernel: Kernel, word: str) -> None:
    kernel.plain(f"@step\ndef asks():\n    durable.{word}\n")

    result = kernel.durable("asks()", grace="0s")

    assert isinstance(result.error, UsageError)
    assert "cannot be used inside the body of a step" in str(result.error)


def test_replay_only_does_not_wait(kernel: Kernel, log: MortalLog) -> None:
    kernel.durable(APPROVAL, grace="0s")

    result = kernel.durable(APPROVAL, replay_only=True)

    assert isinstance(result.error, ReplayOnlyError)


def test_an_open_question_is_not_in_doubt(kernel: Kernel, log: MortalLog) -> None:
    kernel.durable(APPROVAL, grace="0s")

    assert [step.status for step in client.steps(log, run_of(log))] == ["completed", "waiting"]
    with pytest.raises(UsageError, match="is not in doubt"):
        client.settle(log, run_of(log), "approve", "rerun")
    assert not isinstance(kernel.durable(APPROVAL, grace="0s").error, DecisionNeeded)


@pytest.mark.parametrize(
    "call",
    [
        'approve("")',
        'approve("Go?", choices=["a", "a"])',
        'wait_for("")',
        "wait_for('n', schema=object())",
        "sleep()",
        'sleep("soon")',
        "sleep(until=datetime.datetime(2027, 1, 1))",
        'approve("Go?", timeout="never")',
    ],
)
def test_what_cannot_be_meant_is_refused(kernel: Kernel, call: str) -> None:
    kernel.plain("import datetime")
    assert isinstance(kernel.durable(f"durable.{call}", grace="0s").error, UsageError)


def test_outside_of_a_run_a_timer_sleeps_and_nobody_can_be_asked() -> None:
    from jupyter_durable import durable

    durable.sleep("1ms")
    with pytest.raises(NotInRun):
        durable.approve("Go?")


def test_a_wait_is_in_the_log_before_anybody_is_asked(kernel: Kernel, log: MortalLog) -> None:
    seen: list[Any] = []
    kernel.namespace["look"] = lambda: seen.extend(
        each for each in log.history(f"{run_of(log)}.1") if isinstance(each.event, WaitStarted)
    )
    cell = """
    async def watch():
        await asyncio.sleep(0.05)
        look()
    await asyncio.gather(watch(), durable.approve("Go?"))
    """
    kernel.durable(cell, grace="0s")
    assert len(seen) == 1
