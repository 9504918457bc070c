"""`durable.patched`: old histories go on with the old code, others take the new; one answer on a branch."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_durable import answering, client, durable, errors
from jupyter_durable.history import History
from tests.engine.cells import Kernel
from tests.engine.harness import MortalLog, World

SETUP = """
@step
def draft():
    world.hit("draft")
    return "draft"

@step
def old_mail(text):
    world.hit("old mail")
    return f"old {text}"

@step
def new_mail(text):
    world.hit("new mail")
    return f"new {text}"
"""

BEFORE = """
text = draft()
sent = old_mail(text)
ok = durable.wait_for("ok")
(sent, ok)
"""

AFTER = """
text = draft()
if durable.patched("new-mailer"):
    sent = new_mail(text)
else:
    sent = old_mail(text)
ok = durable.wait_for("ok")
(sent, ok)
"""


@pytest.fixture
def world() -> World:
    """What lies outside of the program."""
    return World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


def cell(log: MortalLog, world: World, source: str, **options: Any) -> Any:
    """Run a cell in a kernel of its own; it parks at once where everything waits."""
    return Kernel(log, world, SETUP).durable(source, grace="0s", **options)


def answers(log: MortalLog) -> dict[str, list[str]]:
    """Branch -> its answers, in words."""
    (views,) = client.views_of(log).values()
    return {
        view.name: [entry.why for entry in History(log.history(view.branch)).patches.values() if entry.finished]
        for view in views
    }


OLD = "`new-mailer`: history had gone past it, so the old code runs"
NEW = "`new-mailer`: the new code runs"


def test_a_parked_run_goes_on_with_the_old_code(log: MortalLog, world: World) -> None:
    assert isinstance(cell(log, world, BEFORE).error, errors.Parked)

    edited = cell(log, world, AFTER)
    assert isinstance(edited.error, errors.Parked)
    answering.send(log, "p", "ok", True)
    ended = cell(log, world, AFTER)

    assert ended.value == ("old draft", True)
    assert world.effects == ["draft", "old mail"]
    assert answers(log) == {"main": [], "main-2": [OLD]}


def test_a_new_run_takes_the_new_code_and_keeps_to_it(log: MortalLog, world: World) -> None:
    for _ in range(3):
        assert isinstance(cell(log, world, AFTER).error, errors.Parked)

    assert world.effects == ["draft", "new mail"]
    assert answers(log) == {"main": [NEW]}


def test_a_history_that_had_not_come_here_takes_the_new_code(log: MortalLog, world: World) -> None:
    cell(log, world, "text = draft()\nok = durable.wait_for('ok')\nold_mail(text)")

    cell(
        log,
        world,
        "text = draft()\nok = durable.wait_for('ok')\n"
        "new_mail(text) if durable.patched('new-mailer') else old_mail(text)",
    )
    answering.send(log, "p", "ok", True)
    ended = cell(log, world, "text = draft()\nok = durable.wait_for('ok')\n"
                 "new_mail(text) if durable.patched('new-mailer') else old_mail(text)")  # fmt: skip

    assert ended.value == "new draft"
    assert answers(log) == {"main": [], "main-2": [NEW]}


def test_added_around_equal_steps_it_replays_everything_without_a_question(log: MortalLog, world: World) -> None:
    body = "text = draft()\nsent = old_mail(text)\nagain = old_mail(text)\n(sent, again)"
    whole = cell(log, world, body)
    patched = body.replace(
        "sent = old_mail(text)", "if durable.patched('x'):\n    new_mail(text)\nsent = old_mail(text)"
    )

    edited = cell(log, world, patched)
    replayed = cell(log, world, patched, replay_only=True)
    without = cell(log, world, body + "  # and no marker any more\nNone")

    assert edited.value == replayed.value == whole.value
    assert (edited.live, replayed.live, without.live) == (0, 0, 0)
    assert without.error is None
    assert world.effects == ["draft", "old mail", "old mail"]


def test_taking_the_marker_out_is_no_difference_and_no_nondeterminism(log: MortalLog, world: World) -> None:
    """Also where the cell's own code cannot tell: the marker stands in a function of a module."""
    setup = SETUP + "\nasks = True\n"
    source = "text = draft()\nif helper(): pass\nold_mail(text)"
    kernel = Kernel(log, world, setup)
    kernel.namespace["helper"] = lambda: durable.patched("x") if kernel.namespace["asks"] else True
    first = kernel.durable(source)
    (before,) = answers(log).values()

    kernel.namespace["asks"] = False
    second = kernel.durable(source)

    assert before == ["`x`: the new code runs"]
    assert second.value == first.value
    assert (second.live, second.error) == (0, None)
    assert not [n for n in second.execution.stats.notices if "no longer asked" in n]


def test_there_is_one_answer_for_loops_tasks_and_steps(log: MortalLog, world: World) -> None:
    cell(log, world, "[draft() for _ in range(3)]\ndurable.wait_for('ok')")
    source = """
    @step
    def inner():
        return durable.patched("x")

    async def asks():
        return durable.patched("x")

    said = []
    for _ in range(4):
        said.append(durable.patched("x"))
        draft()
    said += await asyncio.gather(asks(), asks())
    said.append(inner())
    said.append(durable.patched("y"))
    said
    """

    edited = cell(log, world, source, reuse="all")

    assert edited.value == [False] * 7 + [True]
    assert cell(log, world, source).value == edited.value


def test_past_a_difference_the_new_code_runs(log: MortalLog, world: World) -> None:
    cell(log, world, "draft()\nold_mail('a')\nold_mail('b')")

    edited = cell(log, world, "draft()\nold_mail('c')\n(durable.patched('x'), old_mail('b'))", reuse="all")

    assert edited.value == (True, "old b")


def test_branches_take_the_answer_over_unless_they_begin_anew_before_it(log: MortalLog, world: World) -> None:
    cell(log, world, BEFORE)
    cell(log, world, AFTER)
    run = client.find_run(log, "p")

    cell(log, world, AFTER.replace("(sent, ok)", "[sent, ok]"))
    client.fork(log, run, "ok", branch="main-2")
    cell(log, world, AFTER)
    client.fork(log, run, "draft", branch="main-2")
    cell(log, world, AFTER)

    assert answers(log) == {"main": [], "main-2": [OLD], "main-3": [OLD], "main-4": [OLD], "main-5": [NEW]}
    assert world.effects == ["draft", "old mail", "draft", "new mail"]


@pytest.mark.parametrize("source", [AFTER.replace('durable.wait_for("ok")', "1"), AFTER])
def test_killed_at_any_event_the_answer_stays(source: str, world: World) -> None:
    whole = MortalLog()
    cell(whole, world, BEFORE)
    most = cell(whole, world, source).events
    for die_after in range(most + 1):
        log = MortalLog()
        world.clear()
        cell(log, world, BEFORE)

        cell(log, world, source, die_after=die_after)
        ended = cell(log, world, source)

        assert ended.error is None or isinstance(ended.error, errors.Parked)
        assert world.effects == ["draft", "old mail"]
        assert answers(log)["main-2"] == [OLD]


def test_a_listing_shows_the_answer(log: MortalLog, world: World) -> None:
    cell(log, world, AFTER)

    listed = [(s.name, s.kind, s.why) for s in client.steps(log, client.find_run(log, "p")) if s.kind == "patched"]

    assert listed == [("durable.patched", "patched", NEW)]


def test_outside_of_a_run_it_is_true_and_an_id_is_needed() -> None:
    assert durable.patched("x") is True
    with pytest.raises(errors.UsageError):
        durable.patched(" ")
