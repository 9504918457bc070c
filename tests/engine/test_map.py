"""``durable.map``: identities by the items, partial failure kept, everything finished replays."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jupyter_durable import durable, step
from jupyter_durable.errors import DecisionNeeded, ReplayOnlyError, Undigestable, UsageError
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
def square(n: int) -> int:
    world.hit(f"square {n}")
    return n * n


@step
async def fetch(n: int) -> str:
    for _ in range(n % 3):
        await asyncio.sleep(0)
    world.hit(f"fetch {n}")
    return f"page {n}"


@step
def fragile(n: int) -> int:
    world.hit(f"fragile {n}")
    if world.broken and n % 2:
        raise ValueError(f"odd {n}")
    return n


@step
async def fragile_async(n: int) -> int:
    await asyncio.sleep(0)
    world.hit(f"fragile {n}")
    if world.broken and n % 2:
        raise ValueError(f"odd {n}")
    return n


FORMS = [
    pytest.param(square, [n * n for n in range(6)], id="sync"),
    pytest.param(fetch, [f"page {n}" for n in range(6)], id="async"),
]


@pytest.mark.parametrize(("fn", "expected"), FORMS)
@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_results_come_in_order_of_the_items_and_replay(
    fn: Any, expected: Any, concurrency: int, log: MortalLog
) -> None:
    async def program() -> Any:
        return await durable.map(fn, range(6), concurrency=concurrency)

    first, second = play(program, log), play(program, log)

    assert first.value == second.value == expected
    assert (first.live, second.live, second.events) == (6, 0, 1)
    assert len(world.effects) == 6


def test_called_in_plain_code_it_waits_there(log: MortalLog) -> None:
    def inner() -> Any:
        return durable.map(square, [3, 1, 2], concurrency=2)

    async def program() -> Any:
        return inner()

    assert play(program, log).value == play(program, log).value == [9, 1, 4]
    assert len(world.effects) == 3


@pytest.mark.parametrize(("fn", "expected"), FORMS)
def test_killed_after_any_event_it_executes_only_what_has_no_end(fn: Any, expected: Any) -> None:
    async def program() -> Any:
        return await durable.map(fn, range(6), concurrency=3)

    for at in range(play(program, MortalLog()).events):
        world.clear()
        log = MortalLog()
        play(program, log, die_after=at)
        ended = sum(1 for entry in _entries(log) if entry.finished)

        resumed = play(program, log)

        assert resumed.error is None, (at, resumed.error)
        assert resumed.value == expected
        assert resumed.live == 6 - ended
        assert play(program, log).live == 0


def _entries(log: MortalLog) -> list[Any]:
    from jupyter_durable.history import History

    branch = log.executions()[0].header.branch
    return list(History(log.history(branch)).entries.values())


def test_equal_items_are_steps_of_their_own(log: MortalLog) -> None:
    @step
    def sample(prompt: str) -> int:
        return world.hit(prompt)

    async def program() -> Any:
        return await durable.map(sample, ["same"] * 5, concurrency=3)

    first, second = play(program, log), play(program, log)

    assert sorted(first.value) == [1, 2, 3, 4, 5]
    assert second.value == first.value


@pytest.mark.parametrize("fn", [fragile, fragile_async])
def test_kept_failures_are_values_that_replay(fn: Any, log: MortalLog) -> None:
    world.broken = True

    async def program() -> Any:
        return [repr(one) for one in await durable.map(fn, range(4), on_error="keep")]

    first, second = play(program, log), play(program, log)

    assert first.value == second.value == ["0", "ValueError('odd 1')", "2", "ValueError('odd 3')"]
    assert second.live == 0
    assert len(world.effects) == 4


@pytest.mark.parametrize("fn", [fragile, fragile_async])
def test_a_rerun_executes_only_what_failed_or_is_missing(fn: Any, log: MortalLog) -> None:
    world.broken = True

    async def program() -> Any:
        return await durable.map(fn, [0, 2, 4, 1, 6, 8, 10], concurrency=1)

    first = play(program, log)
    assert isinstance(first.error, ValueError)
    assert world.effects == [f"fragile {n}" for n in (0, 2, 4, 1)]
    world.clear()

    second = play(program, log)

    assert second.value == [0, 2, 4, 1, 6, 8, 10]
    assert world.effects == [f"fragile {n}" for n in (1, 6, 8, 10)]


def test_several_failures_are_a_group_and_each_is_tried_again(log: MortalLog) -> None:
    barrier = threading.Barrier(3)

    @step
    def together(n: int) -> int:
        if world.broken:
            barrier.wait(10)
        world.hit("together")
        if world.broken and n != 1:
            raise ValueError(str(n))
        return n

    async def program() -> Any:
        return await durable.map(together, range(3), concurrency=3)

    world.broken = True
    first = play(program, log)
    assert isinstance(first.error, ExceptionGroup)
    assert [str(error) for error in first.error.exceptions] == ["0", "2"]
    world.clear()

    assert play(program, log).value == [0, 1, 2]
    assert len(world.effects) == 2


@pytest.mark.parametrize("fn", [fragile, fragile_async])
def test_a_failure_that_the_program_caught_replays_and_begins_nothing_new(fn: Any, log: MortalLog) -> None:
    world.broken = True

    async def program() -> Any:
        try:
            return await durable.map(fn, [0, 1, 2, 3], concurrency=1)
        except ValueError as error:
            return [str(error), square(5)]

    first = play(program, log)
    world.broken = False
    second = play(program, log, replay_only=True)

    assert first.value == second.value == ["odd 1", 25]
    assert second.live == 0


def test_a_failure_before_a_death_in_the_middle_is_tried_again(log: MortalLog) -> None:
    world.broken = True

    async def program() -> Any:
        return await durable.map(fragile, [1, 0, 2], concurrency=1, on_error="keep")

    play(program, log, die_after=4)
    assert [entry.state for entry in _entries(log)] == ["failed", "completed"]
    world.clear()

    assert play(program, log).value == [1, 0, 2]
    assert world.effects == ["fragile 1", "fragile 2"]


def test_an_item_more_leaves_the_others_alone(log: MortalLog) -> None:
    items = [1, 2, 3]

    async def program() -> Any:
        return await durable.map(square, items)

    play(program, log)
    items.insert(0, 0)
    world.clear()
    grown = play(program, log)

    assert grown.value == [0, 1, 4, 9]
    assert world.effects == ["square 0"]


def test_what_uses_the_results_comes_after_the_difference(log: MortalLog) -> None:
    @step
    def report(values: list[int]) -> int:
        world.hit("report")
        return sum(values)

    @step
    def send() -> str:
        world.hit("send")
        return "sent"

    items = [1, 2, 3]

    async def program() -> Any:
        total = report(await durable.map(square, items))
        return total, send()

    assert play(program, log).value == (14, "sent")
    items.append(4)
    world.clear()
    asked = play(program, log)

    assert isinstance(asked.error, DecisionNeeded)  # the mail was sent on what was there before
    assert world.effects == ["square 4", "report"]
    assert play(program, log, reuse="all").value == (30, "sent")
    assert world.effects == ["square 4", "report"]


def test_items_without_a_digest_need_a_key(log: MortalLog) -> None:
    class Client:
        def __init__(self, host: str) -> None:
            self.host, self.lock = host, threading.Lock()

    def name(client: Client) -> str:
        return str(world.hit("name")) + client.host

    clients = [Client("a"), Client("b")]

    async def without() -> Any:
        return await durable.map(name, clients)

    async def program() -> Any:
        return await durable.map(name, clients, concurrency=1, key=lambda client: client.host)

    assert isinstance(play(without, MortalLog()).error, Undigestable)
    assert world.effects == []
    assert play(program, log).value == play(program, log).value == ["1a", "2b"]


def test_it_works_inside_of_tasks_and_threads_and_steps(log: MortalLog) -> None:
    @step
    def outer(n: int) -> list[int]:
        return durable.map(square, [n, n + 1])  # type: ignore[no-any-return]

    async def task(n: int) -> Any:
        return await durable.map(fetch, [n, n + 1])

    def thread(n: int) -> Any:
        return durable.map(square, [10 * n, 10 * n + 1])

    async def program() -> Any:
        with ThreadPoolExecutor(2) as pool:
            threads = list(pool.map(thread, [1, 2]))
        return await asyncio.gather(task(1), task(2)), threads, outer(5)

    first, second = play(program, log), play(program, log)

    assert first.error is None
    assert second.value == first.value
    assert first.value == (
        [["page 1", "page 2"], ["page 2", "page 3"]],
        [[100, 121], [400, 441]],
        [25, 36],
    ) or first.value == ([["page 1", "page 2"], ["page 2", "page 3"]], [[100, 121], [400, 441]], [25, 36])
    assert second.live == 0


def test_no_more_run_at_once_than_are_wanted(log: MortalLog) -> None:
    now, most = 0, 0

    @step
    async def busy(n: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return n

    async def program() -> Any:
        return await durable.map(busy, range(20), concurrency=4)

    assert play(program, log).value == list(range(20))
    assert most == 4


def test_replay_only_refuses_what_is_missing_before_anything_runs(log: MortalLog) -> None:
    async def program() -> Any:
        return await durable.map(square, range(4), concurrency=1)

    play(program, log, die_after=3)
    world.clear()

    assert isinstance(play(program, log, replay_only=True).error, ReplayOnlyError)
    assert world.effects == []


def test_a_budget_of_steps_counts_what_is_begun(log: MortalLog) -> None:
    async def program() -> Any:
        return await durable.map(square, range(6), concurrency=1)

    stopped = play(program, log, budget="4 steps")

    assert type(stopped.error).__name__ == "BudgetExceeded"
    assert world.effects == [f"square {n}" for n in range(4)]
    assert play(program, log, budget="6 steps").value == [n * n for n in range(6)]
    assert len(world.effects) == 6


def test_a_cancelled_map_is_cancelled_again(log: MortalLog) -> None:
    @step
    async def slow(n: int) -> int:
        await asyncio.sleep(0 if n < 2 else 60)
        return n

    async def program() -> Any:
        try:
            async with asyncio.timeout(0.05):
                return await durable.map(slow, range(8), concurrency=3)
        except TimeoutError:
            return await fetch(1)

    first, second = play(program, log), play(program, log)

    assert first.value == second.value == "page 1"
    assert second.live == 0


def test_a_map_beside_other_tasks_keeps_the_recorded_order(log: MortalLog) -> None:
    async def program() -> Any:
        order: list[str] = []

        async def mapped(base: int) -> None:
            await durable.map(fetch, range(base, base + 5), concurrency=2)
            order.append(f"map {base}")

        async def chain(n: int) -> None:
            for k in range(n):
                await fetch(100 * n + k)
            order.append(f"chain {n}")

        await asyncio.gather(mapped(0), chain(2), mapped(50), chain(4), chain(1))
        return order

    for _ in range(10):
        log = MortalLog()
        first, second = play(program, log), play(program, log)
        assert second.error is None
        assert second.value == first.value
        assert second.live == 0


def test_a_smaller_concurrency_replays_too(log: MortalLog) -> None:
    many = 8

    async def program() -> Any:
        return await durable.map(fetch, range(12), concurrency=many)

    first = play(program, log)
    many = 1
    second = play(program, log)

    assert second.value == first.value
    assert second.live == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"fn": 3, "items": []}, "takes a function"),
        ({"fn": square, "items": [], "concurrency": 0}, "concurrency"),
        ({"fn": square, "items": [], "on_error": "ignore"}, "on_error"),
        ({"fn": square, "items": [], "executor": 4}, "executor"),
        ({"fn": fetch, "items": [], "executor": ThreadPoolExecutor}, "coroutine function"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        durable.map(**arguments)


def test_outside_of_a_run_it_simply_runs() -> None:
    world.broken = True

    assert durable.map(square, [1, 2, 3], concurrency=2) == [1, 4, 9]
    kept = durable.map(fragile, range(3), on_error="keep")
    assert [repr(one) for one in kept] == ["0", "ValueError('odd 1')", "2"]
    assert asyncio.run(_map_outside()) == ["page 1", "page 2"]
    with pytest.raises(ValueError, match="odd 1"):
        durable.map(fragile, [1])


async def _map_outside() -> Any:
    return await durable.map(fetch, [1, 2])
