"""Words and options that cannot be meant: each is refused where it is said, before anything happens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jupyter_durable import answering, client, durable, step
from jupyter_durable.errors import Parked, UsageError
from jupyter_durable.events import Noticed
from tests.engine.harness import MortalLog, World

WORLD = World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory, and a new world."""
    WORLD.clear()
    return MortalLog()


@step
def work(what: str) -> str:
    """An effect that can be counted."""
    WORLD.hit(what)
    return what


def played(log: MortalLog, program: Any) -> Any:
    """What a program gives as the run ``p``."""

    async def main() -> Any:
        async with durable.run("p", log=log, grace="0s"):
            return await program()

    return asyncio.run(main())


@pytest.mark.parametrize(
    "options",
    [
        {"name": 3}, {"name": ""}, {"key": 3}, {"pure": "no"}, {"mutates": "a"}, {"mutates": ["zz"]},
        {"mutates": [3]}, {"mutates": 3}, {"version": object()}, {"version": True},
    ],
)  # fmt: skip
def test_an_option_of_another_kind_is_refused_where_the_step_is_defined(options):
    with pytest.raises(UsageError, match=next(iter(options))):

        @step(**options)
        def one(a: int) -> int:
            return a


async def tree() -> None:
    """Two child runs that wait, one of them inside of another one."""

    async def page(n: int) -> None:
        async with durable.run(f"page-{n}"):
            await asyncio.sleep(0)
            async with durable.run("inner"):
                await durable.wait_for("go")

    await asyncio.gather(page(1), page(2))


def test_children_are_listed_as_a_tree(log):
    with pytest.raises(Parked):
        played(log, tree)

    listed = client.children(log, client.find_run(log, "p"))
    assert [each.path for each in listed] == ["page-1", "page-1/inner", "page-2", "page-2/inner"]


def test_a_child_run_of_a_parked_run_counts_as_cancelled_at_once(log):
    with pytest.raises(Parked):
        played(log, tree)
    run = client.find_run(log, "p")

    client.cancel(log, run, child="page-1")

    found = {each.path: each.status for each in client.children(log, run)}
    assert found == {
        "page-1": "cancelled", "page-1/inner": "cancelled", "page-2": "waiting", "page-2/inner": "waiting",
    }  # fmt: skip
    assert [wait.child for wait in answering.waiting(log)] == ["page-2/inner"]
    with pytest.raises(UsageError, match="is cancelled: there is nothing left to cancel"):
        client.cancel(log, run, child="page-1")


def test_an_address_without_the_name_of_a_child_run_means_nothing(log):
    with pytest.raises(Parked):
        played(log, tree)

    for text in ("p/", 3):
        with pytest.raises(UsageError, match=r"ends before the name|name or id"):
            client.find_child(log, text)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"page-2` is a child run of `p`.*`%%durable p --from page-2` begins it anew"):
        client.find_resumed(log, "p/page-2")
    for text in ("", 3):
        with pytest.raises(UsageError, match=r"Which run|name or id"):
            client.find_resumed(log, text)  # type: ignore[arg-type]
    assert client.runs(log)[0].status == "parked"


def test_words_refuse_what_is_no_text_and_no_number(log):
    with pytest.raises(UsageError, match="texts"):
        durable.cancel(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="numbers"):
        durable.progress("x")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="list of texts"):
        durable.approve("Go?", choices="abc")


@pytest.mark.parametrize("name", ["a/b", "", "a\nb", "x" * 201, 3])
def test_a_name_that_breaks_an_address_is_refused_at_every_door(log, name):
    with pytest.raises(UsageError, match="signal"):
        durable.wait_for(name)
    with pytest.raises(Parked):
        played(log, tree)
    with pytest.raises(UsageError, match="is no name for a signal"):
        answering.send(log, client.find_run(log, "p"), name, 1)

    async def child() -> None:
        async with durable.run(name):
            work("never")

    with pytest.raises(UsageError, match=r"cannot be called so|needs a name"):
        played(MortalLog(), child)
    assert WORLD.effects == []


def test_a_signal_to_a_run_that_has_ended_is_told_what_becomes_of_it(log):
    with pytest.raises(Parked):
        played(log, tree)
    run = client.find_run(log, "p")
    assert answering.use_of(log, run) == "it is used when the run waits for it"
    client.cancel(log, run)
    assert "is cancelled on branch main: it is kept, and used only if the run is resumed" in answering.use_of(log, run)

    async def ends() -> None:
        work("one")

    other = MortalLog()
    played(other, ends)
    said = answering.use_of(other, client.find_run(other, "p"))
    assert said.startswith("the run has completed on branch main: it is kept, and used only if the cell goes on")


def test_a_cancellation_that_came_too_late_is_told(log):
    async def ends() -> None:
        work("one")
        assert client.cancel(log, client.find_run(log, "p"), by="ada", reason="wrong").alive

    played(log, ends)

    run = client.find_run(log, "p")
    assert client.runs(log)[0].status == "completed"
    told = log.history(client.find_branch(log, run).branch)
    notices = [each.event.data.message for each in told if isinstance(each.event, Noticed)]
    assert len(notices) == 1
    assert notices[0].startswith("cancelled by ada at ")
    assert "(wrong); that came too late: no await or step of the run came after it" in notices[0]
