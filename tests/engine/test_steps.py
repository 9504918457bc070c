"""Steps on the real engine: they run once, replay what they returned, nest, fail, retry and time out."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

from jupyter_durable import clock, durable, errors, step
from tests.engine.harness import MortalLog, World, play

world = World()


@pytest.fixture(autouse=True)
def new_world() -> None:
    """Each test starts with a world in which nothing has happened."""
    world.clear()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


@step
def double(x: int) -> int:
    world.hit(f"double {x}")
    return 2 * x


@step
async def fetch(x: str) -> dict[str, Any]:
    world.hit(f"fetch {x}")
    await asyncio.sleep(0)
    return {"got": x, "pair": (1, 2)}


def test_a_finished_step_is_not_executed_again(log: MortalLog) -> None:
    async def program() -> Any:
        return [double(1), double(1), await fetch("a")]

    first = play(program, log)
    second = play(program, log)

    assert first.value == second.value == [2, 2, {"got": "a", "pair": (1, 2)}]
    assert world.effects == ["double 1", "double 1", "fetch a"]
    assert second.live == 0


def test_outside_of_a_run_a_step_simply_runs() -> None:
    assert double(3) == 6
    assert asyncio.run(fetch("b"))["got"] == "b"


def test_the_first_run_returns_the_decoded_value() -> None:
    """What a step returns is never the object that its body made."""

    @step
    def make() -> list[Any]:
        world.made = [(1,)]  # type: ignore[attr-defined]
        return world.made  # type: ignore[attr-defined,no-any-return]

    async def program() -> Any:
        return make()

    result = play(program, MortalLog())

    assert result.value == [(1,)]
    assert result.value is not world.made  # type: ignore[attr-defined]


def test_a_call_spelled_differently_is_the_same_call(log: MortalLog) -> None:
    @step
    def search(query: str, limit: int = 10) -> str:
        world.hit(query)
        return query

    async def one() -> Any:
        return search("x")

    async def two() -> Any:
        return search(limit=10, query="x")

    play(one, log)
    assert play(two, log).value == "x"
    assert world.effects == ["x"]


def test_inner_steps_of_a_step_that_died_replay_inside_it(log: MortalLog) -> None:
    @step
    def outer() -> int:
        world.hit("outer")
        return double(1) + double(2)

    async def program() -> Any:
        return outer()

    died = play(program, log, die_after=3)  # outer and double(1) begun, double(1) ended
    assert died.died
    assert world.effects == ["outer", "double 1"]

    assert play(program, log).value == 6
    assert world.effects == ["outer", "double 1", "outer", "double 2"]


def test_a_failure_that_the_program_caught_is_raised_again_and_not_tried_again(log: MortalLog) -> None:
    @step
    def ask() -> str:
        world.hit("ask")
        raise ValueError("busy")

    async def program() -> Any:
        try:
            ask()
        except ValueError as error:
            return f"{error} {double(4)}"

    first = play(program, log)
    second = play(program, log)

    assert first.value == second.value == "busy 8"
    assert world.effects == ["ask", "double 4"]


def test_a_failure_that_ended_the_run_is_tried_again(log: MortalLog) -> None:
    world.broken = True

    @step
    def ask() -> str:
        world.hit("ask")
        if world.broken:
            raise ValueError("busy")
        return "answer"

    async def program() -> Any:
        return [double(1), ask()]

    first = play(program, log)
    assert isinstance(first.error, ValueError)
    world.broken = False

    assert play(program, log).value == [2, "answer"]
    assert world.effects == ["double 1", "ask", "ask"]


def test_a_body_is_tried_again_as_often_as_its_policy_says(log: MortalLog) -> None:
    waits: list[float] = []

    class NoWait(clock.SystemClock):
        def sleep(self, seconds: float) -> None:  # type: ignore[override]
            waits.append(seconds)

    @step(retries=3, backoff=2.0)
    def flaky() -> int:
        tries = world.hit("try")
        if tries < 3:
            raise ConnectionError("no")
        return tries

    async def program() -> Any:
        return flaky()

    with clock.use(NoWait()):
        assert play(program, log).value == 3
        assert play(program, log).value == 3

    assert world.effects == ["try"] * 3
    assert len(waits) == 2
    assert 2.0 <= waits[0] < waits[1]


def test_an_exception_that_is_not_worth_it_is_not_retried(log: MortalLog) -> None:
    @step(retries=5, retry_on=ConnectionError)
    def wrong() -> None:
        world.hit("wrong")
        raise ValueError("never mind")

    async def program() -> Any:
        wrong()

    assert isinstance(play(program, log).error, ValueError)
    assert world.effects == ["wrong"]


def test_a_second_attempt_reuses_the_inner_steps_of_the_first(log: MortalLog) -> None:
    """Rule 11: only what failed is done again."""

    @step(retries=1, backoff=0.0)
    def agent() -> int:
        first = double(10)
        if world.hit("try") == 1:
            raise ConnectionError("lost")
        return first

    async def program() -> Any:
        return agent()

    assert play(program, log).value == 20
    assert world.effects == ["double 10", "try", "try"]


def test_an_inner_failure_that_ended_an_attempt_is_tried_again_in_the_next(log: MortalLog) -> None:
    @step
    def inner() -> str:
        if world.hit("try") == 1:
            raise ConnectionError("lost")
        return "found"

    @step(retries=1, backoff=0.0)
    def agent() -> str:
        return inner()

    async def program() -> Any:
        return agent()

    assert play(program, log).value == "found"
    assert play(program, log).value == "found"
    assert world.effects == ["try", "try"]


def test_a_synchronous_body_is_stopped_at_its_timeout(log: MortalLog) -> None:
    @step(timeout=0.05)
    def endless() -> None:
        world.hit("endless")
        while True:
            pass

    async def program() -> Any:
        endless()

    result = play(program, log)

    assert isinstance(result.error, errors.StepTimeout)
    assert isinstance(result.error, TimeoutError)


def test_an_asynchronous_body_is_stopped_at_its_timeout_and_retried(log: MortalLog) -> None:
    @step(timeout="50ms", retries=1, backoff=0.0)
    async def slow() -> str:
        world.hit("slow")
        if len(world.effects) == 1:
            await asyncio.get_running_loop().create_future()
        return "in time"

    async def program() -> Any:
        return await slow()

    assert play(program, log).value == "in time"
    assert world.effects == ["slow", "slow"]


def test_a_lambda_is_another_call_for_another_closure(log: MortalLog) -> None:
    def ask(question: str) -> Any:
        return durable.step(lambda: (world.hit(question), question)[1])

    async def program() -> Any:
        return [ask("a"), ask("b"), ask("a")]

    assert play(program, log).value == ["a", "b", "a"]
    assert play(program, log).value == ["a", "b", "a"]
    assert world.effects == ["a", "b", "a"]


def test_methods_partials_and_library_functions_can_be_steps(log: MortalLog) -> None:
    class Tool:
        def __init__(self, name: str) -> None:
            self.name = name

        @step
        def call(self, x: int) -> str:
            world.hit(f"{self.name} {x}")
            return f"{self.name}{x}"

    async def program() -> Any:
        one = Tool("one")
        return [one.call(1), Tool("two").call(1), durable.step(functools.partial(max, 3), 5), durable.step(len, "four")]

    assert play(program, log).value == ["one1", "two1", 5, 4]
    assert play(program, log).value == ["one1", "two1", 5, 4]
    assert world.effects == ["one 1", "two 1"]


def test_an_argument_without_a_digest_needs_a_key(log: MortalLog) -> None:
    @step
    def use(client: Any, x: int) -> int:
        return x

    @step(key=lambda client, x: x)
    def keyed(client: Any, x: int) -> int:
        world.hit("keyed")
        return x

    class Client:
        def __init__(self) -> None:
            import threading

            self.lock = threading.Lock()

    async def without() -> Any:
        return use(Client(), 1)

    async def with_key() -> Any:
        return keyed(Client(), 1)

    error = play(without, log).error
    assert isinstance(error, errors.Undigestable)
    assert "client" in str(error) or "lock" in str(error)
    assert "key=" in str(error)
    other = MortalLog()
    assert play(with_key, other).value == play(with_key, other).value == 1
    assert world.effects == ["keyed"]


def test_helpers_are_the_same_on_replay(log: MortalLog) -> None:
    async def program() -> Any:
        return durable.now(), durable.random(), durable.uuid()

    first, second = play(program, log), play(program, log)

    assert first.value == second.value
    assert first.value[0].tzinfo is not None
    assert 0 <= first.value[1] < 1


def test_an_idempotency_key_survives_a_crash_and_changes_when_fresh(log: MortalLog) -> None:
    """Rule 23: keys are derived, so they survive; the generation rises by ``fresh``."""

    @step
    def charge(cents: int) -> str:
        world.hit(durable.idempotency_key())
        return "ok"

    async def program() -> Any:
        return charge(5), charge(5)

    play(program, log, die_after=1)
    play(program, log)
    play(program, log, fresh=True)

    keys = world.effects
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


def test_outside_of_a_step_there_is_no_idempotency_key() -> None:
    with pytest.raises(errors.NotInRun):
        durable.idempotency_key()


def test_a_step_called_after_the_end_is_refused(log: MortalLog) -> None:
    """Never unrecorded: a task that outlives its run cannot begin a step."""
    late: list[BaseException] = []

    async def later(gate: asyncio.Event) -> None:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            try:
                double(1)
            except errors.RunEnded as error:
                late.append(error)
            raise

    async def program() -> Any:
        program.task = asyncio.ensure_future(later(asyncio.Event()))  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    play(program, log)

    assert len(late) == 1
    assert world.effects == []


def test_a_stopped_run_refuses_every_further_step(log: MortalLog) -> None:
    """An `except Exception` that swallows the stop does not get anything executed."""

    async def program() -> Any:
        try:
            double(2) if world.broken else double(1)
        except Exception:
            world.hit("swallowed")
        return double(3)

    play(program, log, die_after=3)
    world.clear()
    world.broken = True

    stopped = play(program, log)

    assert isinstance(stopped.error, errors.NondeterminismError)  # what stopped it, not that it has stopped
    assert world.effects == ["swallowed"]
