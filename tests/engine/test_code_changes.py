"""`@step(on_code_change=...)`: what its author has said, beforehand, becomes of a finished step with other code."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_durable import client, errors, step
from jupyter_durable.branches import BranchView
from jupyter_durable.engine.flags import Flags
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.planning import plan
from jupyter_durable.source import cell_digest, names_read
from tests.engine.cells import Kernel
from tests.engine.harness import MortalLog, World

SETUP = """
PROMPT = "{prompt}"

@step(on_code_change={policy!r}{more})
def ask(x):
    world.hit(f"ask {{x}}")
    return f"{{PROMPT}} {{x}}"

@step
def note(x):
    world.hit("note")
    return x
"""

CELL = "first = ask(1)\nlast = ask(2)\n(first, last)"


@pytest.fixture
def world() -> World:
    """What lies outside of the program."""
    return World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


def run(log: MortalLog, world: World, prompt: str, policy: str | None, cell: str = CELL, **options: Any) -> Any:
    """Run the cell in a kernel of its own, where the step's code is as said."""
    more = options.pop("more", "")
    kernel = Kernel(log, world, SETUP.format(prompt=prompt, policy=policy, more=more))
    return kernel.durable(cell, **options)


def planned(log: MortalLog, world: World, prompt: str, policy: str | None, cell: str = CELL, **flags: Any) -> list[str]:
    """What a plan says of each step."""
    kernel = Kernel(log, world, SETUP.format(prompt=prompt, policy=policy, more=""))
    spec = RunSpec(
        name="p", code=cell_digest(cell), source=cell, namespace=kernel.namespace,
        reads=frozenset(names_read(cell)), flags=Flags(**flags),
    )  # fmt: skip
    return [each.fate for each in plan(spec, log).steps]


def branches(log: MortalLog) -> list[BranchView]:
    return client.views_of(log)[client.find_run(log, "p")]


OLD, NEW = ("old 1", "old 2"), ("new 1", "new 2")


def test_rerun_executes_it_again_on_a_new_branch_without_asking(log: MortalLog, world: World) -> None:
    run(log, world, "old", "rerun")
    assert planned(log, world, "new", "rerun") == ["again", "again"]

    edited = run(log, world, "new", "rerun")
    again = run(log, world, "new", "rerun")

    assert (edited.value, again.value) == (NEW, NEW)
    assert (edited.live, again.live) == (2, 0)
    assert [view.name for view in branches(log)] == ["main", "main-2"]


def test_reuse_is_no_difference_whatever_else_happens(log: MortalLog, world: World) -> None:
    run(log, world, "old", "reuse")
    assert planned(log, world, "new", "reuse") == ["replay", "replay"]

    results = [
        run(log, world, "new", "reuse", strict=True),
        run(log, world, "newer", "reuse", replay_only=True),
        run(log, world, "newest", "reuse", CELL + "\nnote(1)\n(first, last)"),
        run(log, world, "newest", "reuse", CELL + "\nnote(1)\n(first, last)"),
    ]

    assert [result.value for result in results] == [OLD] * 4
    assert world.effects == ["ask 1", "ask 2", "note"]
    whys = [
        row.why for result in results[:1] + results[2:3] for row in result.execution.stats.rows if row.name == "ask"
    ]
    assert all('on_code_change="reuse"' in why for why in whys)
    assert len(whys) == 4


def test_error_stops_and_names_the_step_whatever_was_decided(log: MortalLog, world: World) -> None:
    run(log, world, "old", "error")
    assert planned(log, world, "new", "error")[0] == "ask"

    stopped = run(log, world, "new", "error")
    client.decide(log, client.find_run(log, "p"), "all")
    decided = run(log, world, "new", "error")

    for result in (stopped, decided):
        assert isinstance(result.error, errors.DecisionNeeded)
        assert result.error.steps == ["`ask` (step 1)"]
        assert 'on_code_change="error"' in str(result.error)
    assert world.effects == ["ask 1", "ask 2"]
    assert run(log, world, "old", "error").value == OLD


@pytest.mark.parametrize(("reuse", "value", "effects"), [("all", OLD, 2), ("none", NEW, 4), ("pure", NEW, 4)])
def test_a_flag_for_this_execution_goes_before_an_error(
    log: MortalLog, world: World, reuse: str, value: tuple[str, str], effects: int
) -> None:
    run(log, world, "old", "error")

    told = run(log, world, "new", "error", reuse=reuse)
    after = run(log, world, "new", "error")

    assert (told.value, after.value) == (value, value)
    assert len(world.effects) == effects
    assert [view.name for view in branches(log)] == ["main", "main-2"]


def test_a_flag_for_this_execution_goes_before_rerun_and_a_decision_does_not(log: MortalLog, world: World) -> None:
    before, after = "note(1)\nnote(5)\nask(1)", "note(2)\nnote(5)\nask(1)"
    run(log, world, "old", "rerun", before)
    assert isinstance(run(log, world, "new", "rerun", after).error, errors.DecisionNeeded)
    client.decide(log, client.find_run(log, "p"), "all")

    decided = run(log, world, "new", "rerun", after)
    flagged = run(log, world, "newer", "rerun", after, reuse="all")

    assert decided.value == "new 1"
    assert flagged.value == "new 1"
    assert world.effects.count("ask 1") == 2


@pytest.mark.parametrize("policy", ["rerun", "reuse", "error"])
def test_a_step_in_doubt_is_asked_about_all_the_same(log: MortalLog, world: World, policy: str) -> None:
    cut = run(log, world, "old", policy, die_after=3)
    assert cut.died
    assert world.effects == ["ask 1", "ask 2"]
    cell = "last = ask(2)"  # an edit that leaves the step in doubt as the first one that is asked

    edited = run(log, world, "new", policy, cell)

    assert isinstance(edited.error, errors.DecisionNeeded)
    assert "its end is not known" in str(edited.error)
    assert world.effects == ["ask 1", "ask 2"]


def test_a_failed_step_is_tried_again_with_its_new_code(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, "@step(on_code_change='error')\ndef ask(x):\n    1 / 0")
    assert isinstance(kernel.durable("ask(1)").error, ZeroDivisionError)

    kernel.plain("@step(on_code_change='error')\ndef ask(x):\n    return 'repaired'")

    assert kernel.durable("ask(1)").value == "repaired"


@pytest.mark.parametrize(("policy", "value"), [("rerun", "new 2"), ("reuse", "old 2")])
def test_in_a_map_and_for_asynchronous_steps_it_is_the_same(
    log: MortalLog, world: World, policy: str, value: str
) -> None:
    setup = SETUP.replace("def ask", "async def ask")
    for cell in ("await ask(2)", "durable.map(ask, [1, 2])", "(await durable.map(ask, [1, 2]))[1]"):
        fresh, source = MortalLog(), cell
        text = setup
        if cell.startswith("durable.map"):
            text, source = SETUP, "durable.map(ask, [1, 2])[1]"
        Kernel(fresh, world, text.format(prompt="old", policy=policy, more="")).durable(source)
        edited = Kernel(fresh, world, text.format(prompt="new", policy=policy, more="")).durable(source)
        assert edited.value == value, cell


def test_the_difference_of_a_rerun_reaches_what_comes_after_it(log: MortalLog, world: World) -> None:
    """An ordinary step behind it may depend on the new result: about that a person is asked, as ever."""
    run(log, world, "old", "rerun", "ask(1)\nnote(1)")

    edited = run(log, world, "new", "rerun", "ask(1)\nnote(1)")

    assert isinstance(edited.error, errors.DecisionNeeded)
    assert edited.error.steps == ["`note` (step 3)"]
    assert world.effects == ["ask 1", "note", "ask 1"]


def test_it_is_about_the_own_code_and_rerun_about_an_edit_before(log: MortalLog, world: World) -> None:
    before = "note(1)\nask(1)"
    run(log, world, "old", "rerun", before, more=", rerun='reuse'")

    ahead = run(log, world, "old", "rerun", "note(2)\nask(1)", more=", rerun='reuse'")
    own = run(log, world, "new", "rerun", "note(2)\nask(1)", more=", rerun='reuse'")

    assert ahead.value == "old 1"
    assert own.value == "new 1"


def test_another_version_counts_where_other_code_does_not(log: MortalLog, world: World) -> None:
    run(log, world, "old", "reuse", more=", version=1")
    assert run(log, world, "new", "reuse", more=", version=1").value == OLD

    raised = run(log, world, "new", "reuse", more=", version=2")

    assert isinstance(raised.error, errors.DecisionNeeded)
    assert run(log, world, "new", "rerun", more=", version=3").error is None
    assert world.effects == ["ask 1", "ask 2"] * 2


def test_the_option_itself_is_no_difference(log: MortalLog, world: World) -> None:
    run(log, world, "old", None)

    assert run(log, world, "old", "error").live == 0
    assert len(branches(log)) == 1


def test_what_a_person_lets_pass_is_not_asked_about_again(log: MortalLog, world: World) -> None:
    """Without the option: a decision holds for the code of that day, and the branch is not left at each run."""
    run(log, world, "old", None)
    run(log, world, "new", None, reuse="all")

    again = [run(log, world, "new", None) for _ in range(2)]

    assert [result.value for result in again] == [OLD, OLD]
    assert len(branches(log)) == 2
    assert isinstance(run(log, world, "newer", None).error, errors.DecisionNeeded)


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(errors.UsageError, match="on_code_change"):
        step(on_code_change="always")(len)  # type: ignore[call-overload]
