"""Undoing: each effect once, newest first, whenever the process dies; and what becomes of the branch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_durable import client, durable, errors, undoing
from jupyter_durable.engine.registering import KNOWN
from jupyter_durable.events import CompensationRegistered, StepStarted
from jupyter_durable.history import History
from jupyter_durable.log import local, open_log
from jupyter_durable.stepping import spec_of, step
from tests.engine.cells import Kernel
from tests.engine.harness import Died, MortalLog, World
from tests.engine.test_branches import branches, run_of

SETUP = """
def cancel(result, what, *, fee=0):
    world.hit(f"cancel {result} for {fee}")
    if world.broken and what == "train":
        raise ConnectionError("no answer")

@step(compensate=cancel)
def book(what, *, fee=0):
    world.hit(f"book {what}")
    return f"seat in the {what}"

@step
def note(text):
    return text

@step
def pay(amount):
    world.hit("pay")
    raise ValueError("no money")
"""
TRIP = "book('train')\nnote('fine')\nbook('hotel', fee=3)\nbook('car')"
BOOKED = ["book train", "book hotel", "book car"]
CANCELLED = ["cancel seat in the car for 0", "cancel seat in the hotel for 3", "cancel seat in the train for 0"]
SAGA = """
try:
    book('train')
    book('hotel', fee=3)
    pay(9)
except ValueError:
    undone = durable.undo()
undone
"""


@pytest.fixture
def world() -> World:
    """What lies outside of the program."""
    return World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    """A process that has defined no step yet."""
    others = dict(KNOWN._defined)  # of modules whose tests come later
    KNOWN.forget()
    yield
    KNOWN.forget()
    KNOWN._defined.update(others)


def undo(log: MortalLog, die_after: int | None = None, **options: Any) -> list[str]:
    """A person undoes the run; the process may die at an event."""
    log.left, log.appended = die_after, 0
    try:
        return undoing.undo(log, run_of(log), spec_of, **options)
    finally:
        log.left = None


def fates(log: MortalLog, **options: Any) -> list[tuple[str, str]]:
    return [(row.name, row.fate) for row in client.plan_undo(log, run_of(log), **options).rows]


def status(log: MortalLog, name: str = "p") -> str:
    return next(view.status for view in client.runs(log) if view.name == name)


# What is recorded ----------------------------------------------------------------------------------------------------


def test_what_undoes_a_step_is_written_with_its_intent_and_before_its_effect(log: MortalLog, world: World) -> None:
    seen: list[list[str]] = []
    kernel = Kernel(log, world, SETUP)
    kernel.namespace["look"] = lambda: seen.append(
        [type(r.event).__name__ for r in log.history(log.executions()[-1].header.branch)]
    )
    kernel.plain("@step(compensate=cancel)\ndef book(what):\n    look()\n    return what")

    kernel.durable("book('x')")

    assert seen == [["ExecutionStarted", "StepStarted", "CompensationRegistered"]]


def test_a_step_without_it_writes_nothing_more(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("note('x')")

    events = [type(recorded.event) for recorded in log.history(log.executions()[0].header.branch)]
    assert StepStarted in events
    assert CompensationRegistered not in events


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("open_thing", "cannot be stored"),
        ("'sk-proj-abcdef123456'", "looks like a key"),
        ("{'password': 'hunter22'}", "key"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_effect_and_never_shown(
    log: MortalLog, world: World, argument: str, says: str
) -> None:
    kernel = Kernel(log, world, SETUP)
    kernel.plain(
        "import threading\nopen_thing = threading.Lock()\n"
        "@step(compensate=cancel, key=lambda what, who: what)\ndef reserve(what, who):\n    world.hit('reserve')"
    )

    result = kernel.durable(f"reserve('x', {argument})")

    assert isinstance(result.error, errors.UnstorableValue)
    assert "`who`" in str(result.error)
    assert says in str(result.error)
    assert "It was not executed. Give the step what can be stored" in str(result.error)
    assert "hunter22" not in str(result.error)
    assert "abcdef" not in str(result.error)
    assert result.error.argument == "who"
    assert world.effects == []
    assert "hunter22" not in str([r.event for r in log.history(log.executions()[0].header.branch)])


@pytest.mark.parametrize("options", [{"compensate": 3}, {"compensate": print, "pure": True}])
def test_what_cannot_undo_is_refused_where_the_step_is_defined(options: Any) -> None:
    with pytest.raises(errors.UsageError, match="compensate"):
        step(**options)(len)


# A person's undo -----------------------------------------------------------------------------------------------------


def test_it_lists_newest_first_and_says_what_stays(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(TRIP)

    plan = client.plan_undo(log, run_of(log))

    assert [(row.name, row.fate, row.compensation, row.known) for row in plan.rows] == [
        ("book", "undo", "cancel", True),
        ("book", "undo", "cancel", True),
        ("note", "stays", "", False),
        ("book", "undo", "cancel", True),
    ]
    assert world.effects == BOOKED


def test_it_undoes_newest_first_with_the_recorded_value_and_arguments(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(TRIP)

    assert undo(log) == ["`book` (step 9)", "`book` (step 6)", "`book` (step 1)"]

    assert world.effects == BOOKED + CANCELLED
    assert fates(log) == [("book", "undone"), ("book", "undone"), ("note", "stays"), ("book", "undone")]
    assert (status(log), status(log, "undo p")) == ("undone", "completed")


def test_it_is_done_once(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(TRIP)
    undo(log)

    assert undo(log) == []

    assert world.effects == BOOKED + CANCELLED


@pytest.mark.parametrize("die_after", range(12))
def test_it_goes_on_where_it_was_killed(log: MortalLog, world: World, die_after: int) -> None:
    """At most the one that was running is done again, as any step whose end is not recorded."""
    Kernel(log, world, SETUP).durable(TRIP)
    world.clear()

    with pytest.raises(Died):
        undo(log, die_after)
    before = list(world.effects)
    recorded = _undone(log)
    closed = isinstance(Kernel(log, world, SETUP).durable(TRIP).error, errors.BranchClosed)
    undo(log)

    assert _order(world.effects) == CANCELLED
    assert before == CANCELLED[: len(before)]
    assert world.effects[len(before) :] == CANCELLED[recorded:]
    assert len(before) - recorded <= 1
    assert closed or not before, "no effect is undone before the branch is closed"
    assert status(log) == "undone"
    assert isinstance(Kernel(log, world, SETUP).durable(TRIP).error, errors.BranchClosed)


def test_the_deaths_above_are_all_there_are(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(TRIP)
    undo(log)

    assert log.appended == 12


def _undone(log: MortalLog) -> int:
    found = [view for view in client.runs(log) if view.name == "undo p"]
    return len(History(log.history(client.find_branch(log, found[0].run).branch)).undone) if found else 0


def _order(effects: list[str]) -> list[str]:
    return list(dict.fromkeys(effects))


def test_a_failure_stops_it_and_says_how_far_it_came(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("book('hotel')\nbook('train')\nbook('car')")
    world.clear()
    world.broken = True

    with pytest.raises(errors.UndoFailed, match="ConnectionError: no answer") as failed:
        undo(log)

    assert failed.value.undone == ["`book` (step 7)"]
    assert failed.value.left == ["`book` (step 4)", "`book` (step 1)"]
    assert isinstance(failed.value.__cause__, ConnectionError)
    stopped = Kernel(log, world, SETUP).durable("book('hotel')\nbook('train')\nbook('car')")
    assert "is not finished" in str(stopped.error)
    with pytest.raises(errors.BranchClosed):
        client.fork(log, run_of(log), "book")

    world.broken = False
    assert undo(log) == ["`book` (step 4)", "`book` (step 1)"]
    assert world.effects == [f"cancel seat in the {what} for 0" for what in ("car", "train", "train", "hotel")]


def test_the_retries_of_a_step_that_undoes_hold_and_its_key_stays(log: MortalLog, world: World) -> None:
    setup = SETUP + (
        "\n@step(retries=1, backoff=0)\ndef release(result, what):\n"
        "    if world.hit(durable.idempotency_key()) == 1:\n        raise ConnectionError\n"
        "@step(compensate=release)\ndef hold(what):\n    return what"
    )
    Kernel(log, world, setup).durable("hold('x')")

    undo(log)

    assert len(world.effects) == 2
    assert len(set(world.effects)) == 1


def test_a_process_that_does_not_know_the_functions_undoes_nothing(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(TRIP)
    KNOWN.forget()
    Kernel(log, world, "@step\ndef book(what): ...")

    with pytest.raises(errors.UsageError, match=r"nothing was undone.*`book`.*`cancel`"):
        undo(log)

    assert not any(row.known for row in client.plan_undo(log, run_of(log)).rows)
    assert world.effects == BOOKED
    assert status(log) == "completed"


def test_the_function_of_today_is_taken_also_between_two_halves_of_an_undo(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("book('train')\nbook('car')")
    world.broken = True
    with pytest.raises(errors.UndoFailed):
        undo(log)
    world.clear()

    Kernel(log, world, SETUP.replace('f"cancel {result} for', 'f"by hand {result} for'))
    undo(log)

    assert world.effects == ["by hand seat in the train for 0"]


def test_from_a_step_what_is_before_it_stays(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(TRIP)
    world.clear()

    undo(log, from_step="6")

    assert world.effects == CANCELLED[:2]
    undo(log)
    assert world.effects == CANCELLED


def test_a_step_in_doubt_must_be_settled_first(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("book('train')\nbook('car')", die_after=5)
    assert world.effects == ["book train", "book car"]
    assert fates(log) == [("book", "in_doubt"), ("book", "undo")]

    with pytest.raises(errors.InDoubtError, match="%durable settle p 4 value"):
        undo(log)
    assert world.effects == ["book train", "book car"]

    client.settle(log, run_of(log), 4, "value", "seat 7")
    undo(log)
    assert world.effects[2:] == ["cancel seat 7 for 0", "cancel seat in the train for 0"]


def test_a_branch_that_runs_is_not_undone(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    kernel.namespace["attempt"] = lambda: undo(log)
    inside = kernel.durable("book('car')\nattempt()")

    assert isinstance(inside.error, errors.UsageError)
    assert "inside of run `p`" in str(inside.error)
    assert world.effects == ["book car"]


def test_what_undoes_by_a_coroutine_is_awaited(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP.replace("def cancel", "async def cancel")).durable(TRIP)
    world.clear()

    with pytest.raises(errors.UsageError, match="must be awaited"):
        undo(log)

    async def awaiting() -> list[str]:
        done: list[str] = await durable.undo("p", log=log)
        return done

    assert len(asyncio.run(awaiting())) == 3
    assert world.effects == CANCELLED


@pytest.mark.parametrize("size", [600, 100_000])
def test_large_values_and_arguments_come_back_from_a_long_history_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """A long history is read without its values; large ones lie in blobs."""
    monkeypatch.setattr(local, "LEAN_BYTES", 0)
    seen: list[tuple[str, str]] = []

    @step(name="keep", compensate=lambda result, what: seen.append((result, what)))
    def keep(what: str) -> str:
        return what.upper()

    where = str(tmp_path / "log")
    with pytest.raises(KeyError), durable.run("large", log=where):
        keep("x" * size)
        raise KeyError

    opened = open_log(where)
    (effect,) = client.plan_undo(opened, client.find_run(opened, "large")).effects
    assert effect.payload is not None
    assert effect.payload.data is msgspec.UNSET
    assert durable.undo("large", log=where) == ["`keep` (step 1)"]
    assert seen == [("X" * size, "x" * size)]


# What becomes of the branch ------------------------------------------------------------------------------------------


def test_a_cell_whose_branch_was_undone_stops_before_anything(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(TRIP)
    undo(log, by="ada")
    world.clear()
    before = len(log.executions())

    result = Kernel(log, world, SETUP).durable(TRIP)

    assert isinstance(result.error, errors.BranchClosed)
    assert "was undone by ada at " in str(result.error)
    assert "`%%durable p --fresh` starts again" in str(result.error)
    assert (world.effects, len(log.executions())) == ([], before)


@pytest.mark.parametrize("cell", [TRIP + "\nnote('more')", "note('new')\n" + TRIP])
def test_an_edited_cell_does_not_build_upon_it_either(log: MortalLog, world: World, cell: str) -> None:
    Kernel(log, world, SETUP).durable(TRIP)
    undo(log)
    world.clear()

    result = Kernel(log, world, SETUP).durable(cell)

    assert isinstance(result.error, errors.BranchClosed)
    assert world.effects == []


def test_fresh_starts_again_and_can_be_undone_again(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(TRIP)
    undo(log)
    world.clear()

    assert Kernel(log, world, SETUP).durable(TRIP, fresh=True).error is None
    assert status(log) == "completed"
    undo(log)

    assert world.effects == BOOKED + CANCELLED


def test_a_fork_of_it_keeps_what_was_not_undone_and_executes_what_was(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(TRIP)
    undo(log, from_step="6")
    world.clear()

    client.fork(log, run_of(log), 9)
    result = Kernel(log, world, SETUP).durable(TRIP)

    assert result.error is None
    assert world.effects == ["book hotel", "book car"]
    assert fates(log) == [("book", "undo"), ("book", "undo"), ("note", "stays"), ("book", "undo")]


def test_what_two_branches_share_is_undone_once_and_closes_both(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("book('train')\nbook('car')")
    Kernel(log, world, SETUP).durable("book('train')\nbook('boat')")
    assert world.effects == ["book train", "book car", "book boat"]
    world.clear()

    undo(log, branch="main-2")

    assert world.effects == ["cancel seat in the boat for 0", "cancel seat in the train for 0"]
    assert isinstance(Kernel(log, world, SETUP).durable("book('train')\nbook('car')").error, errors.BranchClosed)
    assert fates(log, branch="main") == [("book", "undo"), ("book", "undone")]
    undo(log, branch="main")
    assert world.effects[2:] == ["cancel seat in the car for 0"]


def test_the_log_says_it_to_every_reader(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("book('car')")
    undo(log, by="ada")

    view = client.find_branch(log, run_of(log))
    assert view.undone is not None
    assert (view.undone.by, view.undone.finished) == ("ada", True)
    lines = [msgspec.json.decode(msgspec.json.encode(r.event)) for r in log.history(view.branch)]
    assert [line["data"]["by"] for line in lines if line["type"] == "step_undone"] == ["ada"]
    assert [line["data"]["status"] for line in lines if line["type"] == "execution_ended"] == [
        "completed",
        "undone",
        "undone",
    ]


# A run's own undo ----------------------------------------------------------------------------------------------------


def test_a_run_undoes_what_it_has_done_and_replays_that(log: MortalLog, world: World) -> None:
    result = Kernel(log, world, SETUP).durable(SAGA)

    assert result.value == ["`book` (step 4)", "`book` (step 1)"]
    assert world.effects == ["book train", "book hotel", "pay", *CANCELLED[1:]]
    again = Kernel(log, world, SETUP).durable(SAGA)
    assert (again.value, again.live) == (result.value, 0)
    assert status(log) == "completed"


@pytest.mark.parametrize("die_after", range(16))
def test_it_survives_death_at_every_event(log: MortalLog, world: World, die_after: int) -> None:
    died = Kernel(log, world, SETUP).durable(SAGA, die_after=die_after)
    result = Kernel(log, world, SETUP).durable(SAGA)

    assert result.error is None
    assert len(result.value) == 2
    assert _order([effect for effect in world.effects if effect.startswith("cancel")]) == CANCELLED[1:]
    assert died.died == (die_after < 15)
    assert len(world.effects) <= 6, "only the step that was cut is executed again"


def test_it_undoes_only_what_is_not_undone_yet(log: MortalLog, world: World) -> None:
    cell = "book('train')\na = durable.undo()\nbook('car')\nb = durable.undo()\n(a, b)"

    result = Kernel(log, world, SETUP).durable(cell)

    assert [len(labels) for labels in result.value] == [1, 1]
    assert [effect for effect in world.effects if "cancel" in effect] == [CANCELLED[2], CANCELLED[0]]


def test_a_failure_of_it_is_raised_with_a_note_and_tried_again(log: MortalLog, world: World) -> None:
    world.broken = True
    failed = Kernel(log, world, SETUP).durable(SAGA)
    assert isinstance(failed.error, ConnectionError)
    assert "undone is `book` (step 4); not undone: `book` (step 1)" in failed.error.__notes__[0]

    world.broken = False
    world.effects.clear()
    result = Kernel(log, world, SETUP).durable(SAGA)

    assert result.error is None
    assert world.effects == [CANCELLED[2]]


def test_a_repaired_step_behind_it_books_again_what_was_undone(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(SAGA + "\nnote('end')")
    world.clear()

    repaired = SETUP.replace('raise ValueError("no money")', "return amount")
    result = Kernel(log, world, repaired).durable("undone = []\n" + SAGA)

    assert result.error is None
    assert world.effects == ["book train", "book hotel", "pay"]
    assert branches(log) == ["main", "main-2"]


def test_a_person_undoes_the_rest_of_a_run_that_has_undone_a_part(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(SAGA + "\nbook('car')")
    world.clear()

    assert len(undo(log)) == 1

    assert world.effects == CANCELLED[:1]


def test_tasks_are_undone_in_the_order_of_their_ends(log: MortalLog, world: World) -> None:
    setup = SETUP.replace("def cancel", "async def cancel").replace("def book", "async def book")
    cell = """
async def saga():
    await asyncio.gather(book('train'), book('car'))
    return await durable.undo()
await saga()
"""

    result = Kernel(log, world, setup).durable(cell)

    assert result.error is None
    assert world.effects == ["book train", "book car", CANCELLED[0], CANCELLED[2]]


SLOW = (
    SETUP.replace("def cancel", "async def cancel")
    + """
@step(compensate=cancel)
async def slow(what):
    world.hit(f"slow {what}")
    await asyncio.sleep(60)
"""
)


def test_what_still_runs_is_an_error_before_anything_is_undone(log: MortalLog, world: World) -> None:
    cell = """
async def saga():
    task = asyncio.create_task(slow('boat'))
    book('car')
    await asyncio.sleep(0)
    await durable.undo()
await saga()
"""
    result = Kernel(log, world, SLOW).durable(cell)

    assert isinstance(result.error, errors.UsageError)
    assert "`slow` (step 4) still runs" in str(result.error)
    assert world.effects == ["book car", "slow boat"]


def test_what_was_cancelled_in_its_middle_stays_and_is_told(log: MortalLog, world: World) -> None:
    cell = """
async def saga():
    task = asyncio.create_task(slow('boat'))
    book('car')
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    return await durable.undo()
await saga()
"""
    result = Kernel(log, world, SLOW).durable(cell)

    assert result.value == ["`book` (step 1)"]
    assert result.execution is not None
    assert any("was cancelled in its middle: it is not undone" in text for text in result.execution.stats.notices)
    assert fates(log) == [("slow", "cancelled"), ("book", "undone")]


def test_items_of_a_map_are_undone_too(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("durable.map(book, ['train', 'car'], concurrency=1)")
    world.clear()

    undo(log)

    assert world.effects == [CANCELLED[0], CANCELLED[2]]


def test_a_difference_that_is_met_late_stops_before_results_that_are_undone_are_built_upon(
    log: MortalLog, world: World
) -> None:
    """Code behind an object that nobody can compare is looked at when the step is called, not when the cell begins."""
    hidden = "\nclass Bank:\n    pass\nbank = Bank()\nbank.pay = pay\nbank.lock = __import__('threading').Lock()"
    cell = SAGA.replace("pay(9)", "bank.pay(9)")
    Kernel(log, world, SETUP + hidden).durable(cell)
    world.clear()

    repaired = SETUP.replace('raise ValueError("no money")', "return amount") + hidden
    stopped = Kernel(log, world, repaired).durable(cell)

    assert isinstance(stopped.error, errors.DecisionNeeded)
    assert "`book` (step 1), `book` (step 4) came before that and was undone by this run" in str(stopped.error)
    assert "`%%durable p --from 1`" in str(stopped.error)


def test_inputs_are_not_put_back_where_the_cell_stops(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP + "\nseen = []")
    kernel.durable("seen.append(book('car'))")
    undo(log)

    assert isinstance(kernel.durable("seen.append(book('car'))").error, errors.BranchClosed)
    assert kernel.namespace["seen"] == ["seat in the car"]


@pytest.mark.parametrize("cell", ["durable.undo(branch='x')", "outer()"])
def test_it_cannot_be_meant_for_a_part_or_inside_of_a_step(log: MortalLog, world: World, cell: str) -> None:
    kernel = Kernel(log, world, SETUP + "\n@step\ndef outer():\n    book('car')\n    durable.undo()")

    result = kernel.durable(cell)

    assert isinstance(result.error, errors.UsageError)
    assert not [effect for effect in world.effects if "cancel" in effect]


def test_outside_of_a_run_a_name_is_needed() -> None:
    with pytest.raises(errors.NotInRun, match="name the run"):
        durable.undo()


# Random programs -----------------------------------------------------------------------------------------------------

BOOKINGS = st.lists(st.sampled_from(["train", "hotel", "car", "note", "boat"]), max_size=6)


@settings(max_examples=60, deadline=None)
@given(BOOKINGS, st.lists(st.integers(0, 20), max_size=3), st.integers(0, 30))
def test_whatever_was_booked_is_cancelled_once_newest_first(items: list[str], deaths: list[int], cut: int) -> None:
    """Each death may repeat the one compensation whose end was not recorded, and no other."""
    KNOWN.forget()
    world, log = World(), MortalLog()
    cell = "\n".join(
        f"note({number})" if what == "note" else f"book('{what}', fee={number})" for number, what in enumerate(items)
    )
    cell = cell or "0"
    Kernel(log, world, SETUP).durable(cell, die_after=cut)
    Kernel(log, world, SETUP).durable(cell)
    wanted = [f"cancel seat in the {what} for {n}" for n, what in enumerate(items) if what != "note"][::-1]
    world.clear()

    for death in deaths:
        seen, recorded = len(world.effects), _undone(log)
        with contextlib.suppress(Died):
            undo(log, death)
        assert world.effects[seen:] == wanted[recorded:][: len(world.effects) - seen]
    seen, recorded = len(world.effects), _undone(log)
    undo(log)

    assert world.effects[seen:] == wanted[recorded:]
    assert _order(world.effects) == wanted
