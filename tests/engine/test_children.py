"""Child runs: ``durable.run(name)`` inside of a run. Their code always runs; what is recorded comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jupyter_durable import answering, client, durable, step
from jupyter_durable.errors import ChildCancelled, Parked, UsageError
from jupyter_durable.history import History
from tests.engine.harness import MortalLog, World, play

WORLD = World()


@pytest.fixture(autouse=True)
def world() -> World:
    """A new world for every test."""
    WORLD.clear()
    return WORLD


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


@step
async def work(what: str) -> str:
    """An effect that can be counted."""
    await asyncio.sleep(0)
    WORLD.hit(what)
    return f"did {what}"


@step
async def fragile(what: str) -> str:
    """Fails while services are broken."""
    WORLD.hit(what)
    if WORLD.broken:
        raise ConnectionError(what)
    return f"did {what}"


async def customer(name: str) -> list[str]:
    """A child run of two steps."""
    async with durable.run(name):
        return [await work(f"{name} 1"), await work(f"{name} 2")]


async def family() -> Any:
    """Three children beside each other, then a step of the parent."""
    found = await asyncio.gather(customer("ada"), customer("bob"), customer("eve"))
    return [*found, await work("last")]


def entry(log: MortalLog, name: str) -> Any:
    """The entry of a child run in the newest history."""
    run = client.find_run(log, "p")
    history = History(log.history(client.find_branch(log, run).branch))
    return next(e for e in history.entries.values() if e.key.name == name and e.kind == "run")


def test_a_child_run_is_recorded_as_a_part_of_its_parent(log):
    result = play(family, log)

    assert result.error is None
    assert result.value[0] == ["did ada 1", "did ada 2"]
    assert entry(log, "ada").state == "completed"
    assert len(client.runs(log)) == 1
    assert [s.kind for s in client.steps(log, client.find_run(log, "p"))].count("run") == 3


def test_a_family_that_dies_at_any_event_goes_on_and_repeats_nothing_that_was_finished(log):
    whole = play(family, MortalLog()).events
    for die_after in range(whole):
        log = MortalLog()
        WORLD.clear()
        first = play(family, log, die_after)
        assert first.died
        finished = {
            e.key.name + str(e.key.digest)
            for e in History(log.history(client.find_branch(log, client.find_run(log, "p")).branch)).entries.values()
            if e.state == "completed" and e.kind == "step"
        }
        before = list(WORLD.effects)
        second = play(family, log)

        assert second.error is None
        assert second.value == play(family, MortalLog()).value
        assert len(finished) + (second.live) == 7
        assert not second.execution.replay.relaxed
        third = play(family, log)
        assert third.value == second.value
        assert third.live == 0
        assert before is not WORLD.effects


def test_a_full_replay_writes_nothing_but_its_two_lines(log):
    play(family, log)

    assert play(family, log).events <= 2


def test_a_block_that_is_no_async_with_keeps_the_order_on_replay(log):
    async def one(name: str) -> Any:
        with durable.run(name):
            return await work(name)

    async def both() -> Any:
        order = []
        for future in asyncio.as_completed([one("a"), one("b"), one("c")]):
            order.append(await future)
            await work(f"after {order[-1]}")
        return order

    first = play(both, log)
    again = play(both, log)

    assert again.value == first.value
    assert again.live == 0
    assert again.execution is not None
    assert not again.execution.replay.relaxed


def test_equal_names_are_told_apart_by_their_number_and_in_their_place(log):
    async def twice() -> Any:
        return [await customer("ada"), await customer("ada")]

    play(twice, log)
    replayed = play(twice, log)

    assert WORLD.effects.count("ada 1") == 2
    assert replayed.live == 0


def test_a_failure_that_the_parent_caught_is_raised_again_on_replay(log):
    async def careful() -> Any:
        try:
            async with durable.run("ada"):
                await fragile("pay")
        except ConnectionError:
            return await work("instead")

    WORLD.broken = True
    play(careful, log)
    WORLD.broken = False
    again = play(careful, log)

    assert again.value == "did instead"
    assert again.live == 0
    assert entry(log, "ada").state == "failed"


def test_a_failure_that_ended_the_run_is_tried_again_inside_of_the_child(log):
    async def careless() -> Any:
        async with durable.run("ada"):
            await work("first")
            return await fragile("pay")

    WORLD.broken = True
    assert isinstance(play(careless, log).error, ConnectionError)
    WORLD.broken = False
    again = play(careless, log)

    assert again.value == "did pay"
    assert WORLD.effects == ["first", "pay", "pay"]
    assert entry(log, "ada").state == "completed"


def test_a_child_that_dies_again_while_its_failure_is_tried_again_still_tries_it(log):
    async def careless() -> Any:
        async with durable.run("ada"):
            return await fragile("pay")

    WORLD.broken = True
    play(careless, log)
    WORLD.broken = False
    assert play(careless, log, die_after=0).died
    again = play(careless, log)

    assert again.value == "did pay"


def test_a_child_may_wait_and_its_parent_parks_with_it(log):
    async def asking() -> Any:
        async with durable.run("ada"):
            await work("draft")
            return await durable.wait_for("word")

    parked = asyncio.run(_parked(asking, log))
    assert parked
    assert [(w.kind, w.child) for w in answering.waiting(log)] == [("signal", "ada")]
    answering.send(log, "p", "word", "yes")
    again = play(asking, log)

    assert again.value == "yes"
    assert again.live == 1
    assert entry(log, "ada").state == "completed"


async def _parked(program: Any, log: MortalLog) -> bool:
    try:
        async with durable.run("p", log=log, grace="0s"):
            await program()
    except Parked:
        return True
    return False


def test_a_signal_for_one_child_is_not_taken_by_its_sister(log):
    async def asking(name: str) -> Any:
        async with durable.run(name):
            return await durable.wait_for("word")

    async def both() -> Any:
        return await asyncio.gather(asking("ada"), asking("bob"))

    assert asyncio.run(_parked(both, log))
    answering.send(log, "p/bob", "word", "for bob")
    answering.send(log, "p/ada", "word", "for ada")

    assert play(both, log).value == ["for ada", "for bob"]


def test_a_child_has_no_options_of_its_own(log):
    async def wrong() -> Any:
        async with durable.run("ada", fresh=True):
            pass

    assert isinstance(play(wrong, log).error, UsageError)


def test_a_cancelled_child_ends_and_its_sisters_go_on(log):
    began: list[str] = []

    async def patient(name: str) -> Any:
        try:
            async with durable.run(name):
                await work(f"{name} 1")
                began.append(name)
                if name == "ada":
                    client.cancel(log, client.find_run(log, "p"), child="ada", reason="no more")
                    await asyncio.sleep(30)
                return await work(f"{name} 2")
        except ChildCancelled as error:
            return f"cancelled: {error.reason}"

    async def both() -> Any:
        return await asyncio.gather(patient("ada"), patient("bob"))

    first = play(both, log)
    assert first.value == ["cancelled: no more", "did bob 2"]
    assert entry(log, "ada").state == "failed"
    began.clear()

    async def again() -> Any:
        return await asyncio.gather(replayed("ada"), replayed("bob"))

    async def replayed(name: str) -> Any:
        try:
            async with durable.run(name):
                await work(f"{name} 1")
                return await work(f"{name} 2")
        except ChildCancelled as error:
            return f"cancelled: {error.reason}"

    replayed.__qualname__ = patient.__qualname__
    second = play(again, log)
    assert second.value == first.value
    assert second.live == 0


def test_a_child_that_is_cancelled_while_it_waits_ends_its_wait(log):
    async def asking() -> Any:
        try:
            async with durable.run("ada"):
                await durable.wait_for("word")
        except ChildCancelled:
            return "gone"

    assert asyncio.run(_parked(asking, log))
    client.cancel(log, client.find_run(log, "p"), child="ada")
    again = play(asking, log)

    assert again.value == "gone"
    assert play(asking, log).value == "gone"
    assert answering.waiting(log) == []


def test_children_are_listed_with_what_they_are_at(log):
    async def asking() -> Any:
        await customer("ada")
        async with durable.run("bob"), durable.run("inner"):
            await durable.wait_for("word")

    assert asyncio.run(_parked(asking, log))
    listed = client.children(log, client.find_run(log, "p"))

    assert [(c.path, c.status) for c in listed] == [("ada", "completed"), ("bob", "waiting"), ("bob/inner", "waiting")]


def test_a_synchronous_child_run_works_the_same(log):
    @step
    def count(what: str) -> int:
        return WORLD.hit(what)

    def program() -> list[int]:
        with durable.run("s", log=log):
            with durable.run("one"):
                first = count("x")
            with durable.run("two"):
                return [first, count("x")]
        raise AssertionError

    assert program() == [1, 2]
    assert program() == [1, 2]


def test_an_edited_step_in_a_child_is_a_difference_at_that_step(log):
    def program(word: str) -> Any:
        @step
        async def write(what: str) -> str:
            WORLD.hit(f"{word} {what}")
            return f"{word} {what}"

        async def both() -> Any:
            async with durable.run("ada"):
                one = await work("before")
                return [one, await write("text")]

        return both

    play(program("old"), log)
    edited = play(program("new"), log, reuse="none")

    assert edited.value == ["did before", "new text"]
    assert WORLD.effects == ["before", "old text", "new text"]
    assert play(program("old"), log).value == ["did before", "old text"]


def test_a_branch_forked_inside_of_a_child_keeps_what_came_before(log):
    async def program() -> Any:
        async with durable.run("ada"):
            return [await work("one"), await work("two")]

    play(program, log)
    run = client.find_run(log, "p")
    two = next(s for s in client.steps(log, run) if s.kind == "step" and s.number > 1 and s.name == "work" and s.scope)
    numbers = [s.number for s in client.steps(log, run) if s.name == "work"]
    client.fork(log, run, numbers[1])
    assert two.scope.startswith("ada")
    play(program, log)

    assert WORLD.effects == ["one", "two", "two"]


async def asks(what: str) -> Any:
    """A child run of the same name as the others, which waits."""
    async with durable.run("page"):
        return what, await durable.wait_for("word")


async def two_in_a_row() -> Any:
    """Both in one place."""
    async with durable.run("page"):
        await work("first")
    return await asks("second")


async def two_tasks() -> Any:
    """Each in a task of its own."""
    return await asyncio.gather(asks("a"), asks("b"), return_exceptions=True)


def test_the_second_of_one_name_has_its_number_in_its_path(log):
    with pytest.raises(Parked):
        play(two_in_a_row, log, grace="0s")
    run = client.find_run(log, "p")

    assert [child.path for child in client.children(log, run)] == ["page", "page#1"]
    answering.send(log, "p/page#1", "word", "yes")
    assert play(two_in_a_row, log).value == ("second", "yes")


def test_a_path_that_several_have_is_refused_and_their_numbers_reach_one_each(log):
    with pytest.raises(Parked):
        play(two_tasks, log, grace="0s")
    run = client.find_run(log, "p")
    first, second = (child.number for child in client.children(log, run))

    with pytest.raises(UsageError, match=f"numbers {first}, {second}"):
        client.cancel(log, run, child="page")
    with pytest.raises(UsageError, match=f"numbers {first}, {second}"):
        answering.send(log, "p/page", "word", "yes")
    answering.send(log, f"p/{second}", "word", "yes")
    assert [wait.answer is not None for wait in answering.waiting(log, run)] == [False, True]
    client.cancel(log, run, child=str(first))

    cancelled, answered = play(two_tasks, log).value
    assert isinstance(cancelled, ChildCancelled)
    assert answered == ("b", "yes")
