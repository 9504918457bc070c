"""Loops without an end: a branch ends with a state, and the run goes on from it with an empty history."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jupyter_durable import client, durable, errors, step
from jupyter_durable.branches import BranchView
from jupyter_durable.engine import length
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.history import History
from jupyter_durable.log import open_log
from jupyter_durable.planning import plan
from jupyter_durable.source import cell_digest, names_read
from tests.engine.cells import Kernel
from tests.engine.harness import Died, MortalLog, World

PAGES = 3

CELL = """
state = durable.state(page=0, seen=[])
seen.append(state.page)
got = fetch(state.page)
sent = send(got)
if state.page < 3:
    durable.continue_as_new(page=state.page + 1, seen=[*state.seen, sent])
[*state.seen, sent]
"""

SETUP = """
seen = []

@step
def fetch(page):
    world.hit(f"fetch {page}")
    return f"page {page}"

@step
def send(text):
    world.hit(f"send {text}")
    return f"sent {text}"
"""

ALL = ["sent page 0", "sent page 1", "sent page 2", "sent page 3"]


class FragileLog(MortalLog):
    """A log whose process may also die before an execution has its first line."""

    def begin(self, header: ExecutionHeader) -> Any:
        if self.left is not None:
            if self.left <= 0:
                raise Died
            self.left -= 1
        return super().begin(header)


@pytest.fixture
def world() -> World:
    """What lies outside of the program."""
    return World()


@pytest.fixture
def log() -> FragileLog:
    """A log in memory whose process can be made to die."""
    return FragileLog()


def views(log: MortalLog) -> list[BranchView]:
    return client.views_of(log)[client.find_run(log, "p")]


def statuses(log: MortalLog) -> dict[str, str]:
    return {view.name: view.newest.outcome.status if view.newest.outcome else "-" for view in views(log)}


def watch(log: MortalLog, world: World, die_after: int | None = None, **options: Any) -> int | None:
    """A script that counts to `PAGES`, one branch each; ``None`` if its process died."""

    @step
    def fetch(page: int) -> int:
        world.hit(f"fetch {page}")
        return page * 10

    @step
    def send(value: int) -> int:
        world.hit(f"send {value}")
        return value

    log.left = die_after
    try:
        for run in durable.runs("p", log=log, **options):
            with run:
                state = durable.state(page=0, total=0)
                total = state.total + send(fetch(state.page))
                if state.page < PAGES:
                    durable.continue_as_new(page=state.page + 1, total=total)
        return total
    except Died:
        log.crash()
        return None
    finally:
        log.left = None


def test_a_script_goes_on_with_what_it_has_handed_on(log: FragileLog, world: World) -> None:
    assert watch(log, world) == 60
    assert statuses(log) == {"main": "continued", "main-2": "continued", "main-3": "continued", "main-4": "completed"}
    assert client.runs(log)[0].status == "completed"


def test_each_branch_has_a_history_of_its_own_and_new_idempotency_keys(log: FragileLog, world: World) -> None:
    watch(log, world)

    firsts = [view.first for view in views(log)]
    assert [len(History(log.history(view.branch)).entries) for view in views(log)] == [2] * 4
    assert [first.root for first in firsts] == [first.branch for first in firsts]
    assert [first.generation for first in firsts] == [0, 1, 2, 3]
    assert [first.continues for first in firsts] == ["", *[first.branch for first in firsts[:-1]]]
    assert all(first.origin is None for first in firsts)


def test_killed_anywhere_it_goes_on_and_does_nothing_twice(world: World) -> None:
    """At every event, and before every first line: what was recorded is not executed again, and the sum is the same."""
    whole = FragileLog()
    watch(whole, world)
    most = sum(len(list(whole.history(view.branch))) for view in views(whole))
    for die_after in range(most + 1):
        log = FragileLog()
        world.clear()
        first = watch(log, world, die_after)
        ended = [
            entry.key.name
            for view in (views(log) if log.executions() else [])
            for entry in History(log.history(view.branch)).entries.values()
            if entry.finished
        ]
        effects = len(world.effects)

        assert watch(log, world) == 60

        assert (first is None) == (die_after < most)
        assert len(world.effects) == effects + 8 - len(ended)
        assert len(views(log)) == 4, f"killed after {die_after}"


def test_killed_between_two_branches_a_cell_in_a_new_kernel_goes_on(log: FragileLog, world: World) -> None:
    first = Kernel(log, world, SETUP).durable(CELL)
    assert isinstance(first.error, errors.ContinuedAsNew)
    assert statuses(log) == {"main": "continued"}
    assert client.runs(log)[0].status == "continued"

    results = [Kernel(log, world, SETUP).durable(CELL) for _ in range(4)]

    assert results[2].value == ALL
    assert results[3].value == ALL
    assert results[3].live == 0
    assert list(statuses(log)) == ["main", "main-2", "main-3", "main-4"]
    assert len(world.effects) == 8


def test_in_the_same_kernel_inputs_are_as_at_the_first_line_again(log: FragileLog, world: World) -> None:
    """What the cell did to a list of the notebook belongs to the branch that ended."""
    kernel = Kernel(log, world, SETUP)
    for _ in range(4):
        result = kernel.durable(CELL)

    assert result.value == ALL
    assert kernel.namespace["seen"] == [3]
    assert len({view.first.inputs["seen"] for view in views(log)}) == 1
    assert all("got" not in view.first.inputs for view in views(log))


def test_an_edit_makes_a_branch_with_the_same_state(log: FragileLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    kernel.durable(CELL)
    kernel.durable(CELL.replace("if state.page", "1 / 0\nif state.page"))
    assert list(statuses(log)) == ["main", "main-2"]

    edited = kernel.durable(CELL.replace("[*state.seen, sent]\n", "[*state.seen, sent, 'edited']\n").replace("3", "1"))

    assert edited.value == ["sent page 0", "sent page 1", "edited"]
    assert world.effects == ["fetch 0", "send page 0", "fetch 1", "send page 1"]
    assert views(log)[-1].first.origin is not None
    assert views(log)[-1].first.continues == ""


def test_edited_between_two_branches_the_new_code_begins_with_the_state(log: FragileLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    kernel.durable(CELL)

    edited = kernel.durable("state = durable.state(page=0, more='new')\n(state.page, state.more, state.seen)")

    assert edited.value == (1, "new", ["sent page 0"])
    assert views(log)[-1].first.origin is None


def test_a_fork_keeps_the_state(log: FragileLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    kernel.durable(CELL)
    kernel.durable(CELL)
    client.fork(log, client.find_run(log, "p"), "send", branch="main-2")

    forked = kernel.durable(CELL)

    assert isinstance(forked.error, errors.ContinuedAsNew)
    assert world.effects == ["fetch 0", "send page 0", "fetch 1", "send page 1", "send page 1"]
    assert list(statuses(log)) == ["main", "main-2", "main-3"]
    # The fork has come to its own end: what comes next goes on from there.
    assert kernel.durable(CELL).execution is not None
    assert views(log)[-1].first.continues == views(log)[2].branch


def test_a_past_branch_that_is_named_replays_and_so_do_those_after_it(log: FragileLog, world: World) -> None:
    watch(log, world)
    world.clear()

    assert watch(log, world, branch="main") == 60

    assert world.effects == []
    assert len(views(log)) == 4


def test_fresh_begins_without_a_state_and_its_branches_are_gone_on_with(log: FragileLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    kernel.durable(CELL)

    fresh = [kernel.durable(CELL, fresh=True) for _ in range(4)]

    assert fresh[-1].value == ALL
    assert len(views(log)) == 5
    assert world.effects.count("fetch 0") == 2
    assert kernel.durable(CELL, fresh=True).live == 2


def test_except_exception_lets_it_through_and_nothing_runs_after_it(log: FragileLog, world: World) -> None:
    result = Kernel(log, world, SETUP).durable(
        """
        try:
            durable.continue_as_new(page=1)
        except Exception:
            fetch(7)
        """
    )
    assert isinstance(result.error, errors.ContinuedAsNew)

    caught = Kernel(log, world, SETUP).durable(
        """
        try:
            durable.continue_as_new(page=1)
        except BaseException:
            fetch(7)
        """
    )
    assert isinstance(caught.error, errors.RunSealed)
    assert world.effects == []
    assert set(statuses(log).values()) == {"continued"}


def test_what_cannot_be_stored_ends_nothing(log: FragileLog, world: World) -> None:
    result = Kernel(log, world, SETUP).durable(
        """
        try:
            durable.continue_as_new(lock=[world._lock])
        except Exception as error:
            caught = error
        (type(caught).__name__, str(caught), fetch(1))
        """
    )

    name, text, value = result.value
    assert (name, value) == ("UnstorableValue", "page 1")
    assert "['lock'][0]" in text
    assert "Nothing has ended" in text
    assert statuses(log) == {"main": "completed"}


def test_it_is_refused_inside_of_a_step_and_in_a_sample(log: FragileLog, world: World) -> None:
    kernel = Kernel(log, world, "@step\ndef inner():\n    durable.continue_as_new(x=1)\n")

    inside = kernel.durable("inner()")
    sampled = kernel.durable("durable.continue_as_new(x=1)", sample=2)

    assert isinstance(inside.error, errors.UsageError)
    assert "body of a step" in str(inside.error)
    assert isinstance(sampled.error, errors.UsageError)
    assert "--sample" in str(sampled.error)


def test_it_is_refused_while_steps_and_waits_have_not_ended(log: FragileLog, world: World) -> None:
    setup = "begun = asyncio.Event()\n@step\nasync def slow():\n    begun.set()\n    await asyncio.sleep(30)\n"
    kernel = Kernel(log, world, setup)

    step_runs = kernel.durable(
        """
        task = asyncio.create_task(slow())
        await begun.wait()
        durable.continue_as_new(x=1)
        """
    )
    waits = Kernel(log, world, "").durable(
        """
        async def ask():
            return await durable.wait_for("payment")
        task = asyncio.create_task(ask())
        await asyncio.sleep(0)
        durable.continue_as_new(x=1)
        """
    )

    assert isinstance(step_runs.error, errors.UsageError)
    assert "step `slow` (step 1)" in str(step_runs.error)
    assert isinstance(waits.error, errors.UsageError)
    assert "the wait `payment`" in str(waits.error)
    assert "continued" not in statuses(log).values()


def test_a_task_may_call_it(log: FragileLog, world: World) -> None:
    result = Kernel(log, world, SETUP).durable(
        """
        async def watch():
            durable.continue_as_new(page=fetch(5))
        await asyncio.gather(watch(), asyncio.sleep(30))
        """
    )

    assert isinstance(result.error, errors.ContinuedAsNew)
    again = Kernel(log, world, SETUP).durable("durable.state().page")
    assert again.value == "page 5"


def test_a_budget_of_steps_counts_the_branches_before(log: FragileLog, world: World) -> None:
    with pytest.raises(errors.BudgetExceeded, match="5 steps were executed on this branch and those that it goes on"):
        watch(log, world, budget="5 steps")
    assert len(world.effects) == 5

    assert watch(log, world, budget="8 steps") == 60


def test_outside_of_a_run_there_is_nothing_to_continue() -> None:
    assert vars(durable.state(page=3)) == {"page": 3}
    with pytest.raises(errors.NotInRun):
        durable.continue_as_new(page=1)
    with pytest.raises(errors.UsageError, match="Enter the run"):
        list(durable.runs("p", log=MortalLog()))


def test_a_plain_block_is_left_and_run_again_by_its_own_loop(log: FragileLog) -> None:
    with pytest.raises(errors.ContinuedAsNew), durable.run("p", log=log):
        durable.continue_as_new(n=1)
    with durable.run("p", log=log):
        assert durable.state(n=0).n == 1


def test_asynchronous_blocks_go_on_too(log: FragileLog) -> None:
    async def main() -> int:
        for run in durable.runs("p", log=log):
            async with run:
                state = durable.state(n=0)
                if state.n < 2:
                    durable.continue_as_new(n=state.n + 1)
        return int(state.n)

    assert asyncio.run(main()) == 2


def test_a_long_history_is_said_once_on_a_branch(
    log: FragileLog, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(length, "LONG", 9)
    kernel = Kernel(log, world, SETUP)
    counts = []
    for pages in (3, 6, 6, 7):
        result = kernel.durable(f"for page in range({pages}): fetch(page)\nif {pages} < 8: missing()", reuse="all")
        assert result.execution is not None
        counts.append(sum("continue_as_new" in notice for notice in result.execution.stats.notices))
    # The second run is on a branch of its own, the fourth on another.
    assert counts == [0, 1, 0, 1]
    said = [n for view in views(log) for _, n in History(log.history(view.branch)).notices if n.names]
    assert len(said) == sum(counts)


def test_a_plan_says_what_will_go_on(log: FragileLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    kernel.durable(CELL)
    spec = RunSpec(
        name="p", code=cell_digest(CELL), source=CELL, namespace=kernel.namespace, reads=frozenset(names_read(CELL))
    )

    made = plan(spec, log)

    assert (made.branch, made.does) == ("main-2", "is begun: it goes on with what `main` has handed on")
    assert made.steps == []
    assert list(statuses(log)) == ["main"]


def test_values_that_are_set_for_a_branch_hold_for_those_after_it(log: FragileLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP + "\ntopic = 'tides'\n")
    cell = (
        "state = durable.state(n=0)\nsent = send(topic)\nif state.n < 2: durable.continue_as_new(n=state.n + 1)\nsent"
    )
    kernel.durable(cell)
    client.fork(log, client.find_run(log, "p"), "send", values={"topic": "winds"})

    for _ in range(3):
        forked = kernel.durable(cell)

    assert forked.value == "sent winds"
    assert world.effects == ["send tides"] + ["send winds"] * 3
    assert kernel.namespace["topic"] == "tides"


def test_a_log_on_the_disk_keeps_past_branches_folded_and_replays_them(
    tmp_path: Path, key_file: Path, world: World
) -> None:
    log = str(tmp_path / "log")
    for branch in ("", "main"):
        for run in durable.runs("p", log=log, branch=branch):
            with run:
                state = durable.state(n=0)
                durable.step(world.hit, f"page {state.n}")
                if state.n < 2:
                    durable.continue_as_new(n=state.n + 1)

    assert key_file.exists()
    assert world.effects == ["page 0", "page 1", "page 2"]
    listed = client.views_of(open_log(log))
    assert [[view.name for view in branches] for branches in listed.values()] == [["main", "main-2", "main-3"]]
    assert {path.suffix for path in (tmp_path / "log" / "journal").iterdir() if path.is_file()} >= {".folded"}
