"""Forks: a new branch from any step of any branch, with what comes before it kept, and what a person has set for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jupyter_durable import client, errors
from jupyter_durable.history import History
from tests.engine.cells import Kernel
from tests.engine.harness import Died, MortalLog, World
from tests.engine.test_branches import SETUP, branches, run_of

CELL = "d = draft('x')\ns = summarize(d)\nsend(s)"


@pytest.fixture
def world() -> World:
    """What lies outside of the program."""
    return World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


def fork(log: MortalLog, at: int | str, **options: Any) -> str:
    """Fork the run; return the name of the new branch."""
    return client.fork(log, run_of(log), at, **options).name


def bytes_of(log: MortalLog, branch: str) -> list[bytes]:
    """A branch as its events are written."""
    view = client.find_branch(log, run_of(log), branch)
    return [msgspec.json.encode(recorded.event) for recorded in log.history(view.branch)]


def statuses(log: MortalLog, branch: str) -> list[tuple[str, str]]:
    return [(step.name, step.status) for step in client.steps(log, run_of(log), branch)]


def test_a_fork_keeps_what_is_before_the_step_and_executes_the_rest(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(CELL)
    world.clear()

    assert fork(log, "summarize") == "main-2"
    assert world.effects == []
    result = Kernel(log, world, SETUP).durable(CELL)

    assert result.error is None
    assert world.effects == ["summarize draft of x", "send summary of draft of x"]
    assert statuses(log, "main-2") == [("draft", "adopted"), ("summarize", "completed"), ("send", "completed")]


def test_a_fork_leaves_the_old_branch_as_it_is_to_the_byte(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(CELL)
    before = bytes_of(log, "main")

    fork(log, "send")
    Kernel(log, world, SETUP).durable(CELL)

    assert bytes_of(log, "main") == before


def test_the_forked_branch_is_taken_up_until_it_completes_and_replays_then(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(CELL)
    fork(log, "summarize")
    world.clear()
    died = Kernel(log, world, SETUP).durable(CELL, die_after=4)
    assert died.died

    Kernel(log, world, SETUP).durable(CELL)
    replayed = Kernel(log, world, SETUP).durable(CELL)

    assert replayed.live == 0
    assert world.effects.count("draft x") == 0
    assert branches(log) == ["main", "main-2"]


@pytest.mark.parametrize("die_after", range(12))
def test_a_fork_survives_death_at_every_event_and_pays_nothing_before_it_again(
    log: MortalLog, world: World, die_after: int
) -> None:
    cell = "a = draft('a')\nb = draft('b')\ns = summarize(b)\nsend(s)"
    Kernel(log, world, SETUP).durable(cell)
    fork(log, "summarize")
    world.clear()

    Kernel(log, world, SETUP).durable(cell, die_after=die_after)
    result = Kernel(log, world, SETUP).durable(cell)

    assert result.error is None
    assert [tag for tag in world.effects if tag.startswith("draft")] == []
    assert set(world.effects) == {"summarize draft of b", "send summary of draft of b"}
    assert branches(log) == ["main", "main-2"]


@pytest.mark.parametrize("die_after", range(8))
def test_from_survives_death_at_every_event_too(log: MortalLog, world: World, die_after: int) -> None:
    Kernel(log, world, SETUP).durable(CELL)
    world.clear()

    Kernel(log, world, SETUP).durable(CELL, die_after=die_after, from_step="send")
    Kernel(log, world, SETUP).durable(CELL, from_step="send")

    assert set(world.effects) == {"send summary of draft of x"}


def test_a_fork_that_is_killed_as_it_is_written_down_stands(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(CELL)
    world.clear()
    log.left = 0

    with pytest.raises(Died):
        fork(log, "send")
    log.left = None
    Kernel(log, world, SETUP).durable(CELL)

    assert world.effects == ["send summary of draft of x"]
    assert branches(log) == ["main", "main-2"]


def test_a_fork_at_a_number_means_that_call_and_no_other_of_its_name(log: MortalLog, world: World) -> None:
    cell = "[draft(text) for text in 'abc']"
    Kernel(log, world, SETUP).durable(cell)
    world.clear()
    last = client.steps(log, run_of(log))[2]

    fork(log, last.number)
    Kernel(log, world, SETUP).durable(cell)

    assert world.effects == ["draft c"]


def test_what_runs_beside_the_step_is_kept(log: MortalLog, world: World) -> None:
    setup = """
    @step
    async def ask(q):
        world.hit(f"ask {q}")
        return q + "!"
    @step
    def join(parts):
        world.hit("join")
        return "".join(parts)
    async def chain(q):
        return await ask(await ask(q))
    """
    cell = "parts = await asyncio.gather(*(chain(q) for q in 'abc'))\njoin(parts)"
    Kernel(log, world, setup).durable(cell)
    world.clear()

    fork(log, "ask")  # the first of one of three chains
    result = Kernel(log, world, setup).durable(cell)

    assert result.value == "a!!b!!c!!"
    assert world.effects == ["ask a", "ask a!", "join"]


def entries(log: MortalLog, branch: str) -> list[Any]:
    view = client.find_branch(log, run_of(log), branch)
    return sorted(History(log.history(view.branch)).entries.values(), key=lambda entry: entry.begun)


def test_a_fork_inside_of_a_step_enters_it_and_keeps_what_is_before_in_there(log: MortalLog, world: World) -> None:
    setup = (
        SETUP
        + """
@step
def agent(task):
    world.hit(f"agent {task}")
    first = draft(task)
    second = summarize(first)
    return send(second)
"""
    )
    cell = "draft('before')\nagent('x')\nsend('after')"
    for die_after in (None, 3, 5, 6, 7, 8):
        log, world = MortalLog(), World()
        Kernel(log, world, setup).durable(cell)
        world.clear()
        fork(log, "summarize")
        if die_after is not None:
            Kernel(log, world, setup).durable(cell, die_after=die_after)
            world.effects[:] = [tag for tag in world.effects if not tag.startswith("agent")]

        result = Kernel(log, world, setup).durable(cell)

        assert result.error is None, result.error
        assert "draft before" not in world.effects
        assert "draft x" not in world.effects
        assert "summarize draft of x" in world.effects
        assert world.effects[-1] == "send after"


def test_a_fork_can_be_made_of_any_branch(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    for topic in "ab":
        kernel.plain(f"topic = {topic!r}")
        kernel.durable("send(draft(topic))")
    world.clear()

    assert fork(log, "send", branch="main") == "main-3"
    kernel.plain("topic = 'a'")
    kernel.durable("send(draft(topic))")

    assert world.effects == ["send draft of a"]


def test_a_fork_of_a_fork_keeps_what_both_share(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(CELL)
    for at in ("summarize", "send"):
        fork(log, at)
        world.clear()
        Kernel(log, world, SETUP).durable(CELL)

    assert world.effects == ["send summary of draft of x"]
    assert branches(log) == ["main", "main-2", "main-3"]


def test_an_edit_after_the_fork_is_taken_along(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(CELL)
    fork(log, "send")
    world.clear()

    result = Kernel(log, world, SETUP).durable("d = draft('x')\ns = summarize(d)\nsend(s + '!')")

    assert result.error is None
    assert world.effects == ["send summary of draft of x!"]
    assert branches(log) == ["main", "main-2"]


def test_a_set_value_takes_the_place_of_the_notebooks_and_goes_again(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP + "\ntopic = 'tides'\ntone = 'dry'")
    cell = "d = draft(topic)\nused = tone\nsend(d + tone)"
    kernel.durable(cell)
    world.clear()

    fork(log, "send", values={"tone": "warm"})
    result = kernel.durable(cell)

    assert result.error is None
    assert world.effects == ["send draft of tideswarm"]
    assert kernel.namespace["used"] == "warm"
    assert kernel.namespace["tone"] == "dry"
    assert any('`tone` = "warm"' in notice for notice in result.execution.stats.notices)  # type: ignore[union-attr]


def test_after_its_completion_the_values_say_which_branch_fits(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP + "\ntone = 'dry'")
    kernel.durable("send(tone)")
    fork(log, "send", values={"tone": "warm"})
    kernel.durable("send(tone)")
    world.clear()

    with_own = kernel.durable("send(tone)")
    kernel.plain("tone = 'warm'")
    with_set = kernel.durable("send(tone)")

    assert world.effects == []
    assert [r.execution.header.branch_name for r in (with_own, with_set)] == ["main", "main-2"]  # type: ignore[union-attr]


@pytest.mark.parametrize("die_after", range(6))
def test_a_set_value_holds_when_the_fork_goes_on_after_a_death(log: MortalLog, world: World, die_after: int) -> None:
    setup = SETUP + "\ntones = ['dry']"
    cell = "draft('x')\nsend(', '.join(tones))\ntones.append('late')\nsend(len(tones))"
    Kernel(log, world, setup).durable(cell)
    fork(log, "send", values={"tones": ["warm", "loud"]})
    world.clear()

    Kernel(log, world, setup).durable(cell, die_after=die_after)
    kernel = Kernel(log, world, setup)
    result = kernel.durable(cell)

    assert result.error is None
    assert set(world.effects) == {"send warm, loud", "send 3"}
    assert kernel.namespace["tones"] == ["dry"]
    assert branches(log) == ["main", "main-2"]


def test_a_name_that_the_cell_binds_itself_keeps_what_it_has(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP + "\ntone = 'dry'")
    kernel.durable("tone = tone.upper()\nsend(tone)")
    kernel.plain("tone = 'dry'")
    fork(log, "send", values={"tone": "warm"})

    kernel.durable("tone = tone.upper()\nsend(tone)")

    assert kernel.namespace["tone"] == "WARM"


def test_a_value_is_set_for_what_a_step_reads_through_the_notebook_too(log: MortalLog, world: World) -> None:
    setup = """
    TONE = "dry"
    @step
    def write(topic):
        world.hit(f"write {topic} {TONE}")
        return topic
    """
    kernel = Kernel(log, world, setup)
    cell = "print_tone = TONE\nwrite('a')"
    kernel.durable(cell)

    fork(log, "write", values={"TONE": "warm"})
    kernel.durable(cell)

    assert world.effects == ["write a dry", "write a warm"]


def test_an_edit_goes_on_with_what_was_set_until_the_branch_completes(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP + "\ntone = 'dry'")
    kernel.durable("draft('x')\nsend(tone)")
    fork(log, "send", values={"tone": "warm"})
    kernel.durable("draft('x')\nsend(tone)\n1/0")
    world.clear()

    result = kernel.durable("draft('x')\nsend(tone)\nsend('end')")

    assert result.error is None
    assert world.effects == ["send end"]
    assert kernel.namespace["tone"] == "dry"


@pytest.mark.parametrize("name", ["nothing", "draft", "asyncio"])
def test_only_a_variable_that_the_cell_reads_can_be_set(log: MortalLog, world: World, name: str) -> None:
    Kernel(log, world, SETUP + "\ntone = 'dry'").durable("asyncio.sleep\nsend(draft(tone))")

    with pytest.raises(errors.UsageError, match="`tone`"):
        fork(log, "send", values={name: 1})
    assert branches(log) == ["main"]


def test_a_secret_is_not_set(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP + "\ntone = 'dry'").durable("send(draft(tone))")

    with pytest.raises(errors.UsageError, match="looks like a key"):
        fork(log, "send", values={"tone": "Authorization: Bearer abc.def-123"})


def test_a_fork_at_a_step_that_is_not_there_says_which_are(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(CELL)

    with pytest.raises(errors.UsageError, match="`summarize` \\(step"):
        fork(log, "sumarize")
    assert branches(log) == ["main"]


def test_a_running_branch_is_not_forked(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    kernel.durable(CELL)
    said: list[str] = []

    def try_it() -> None:
        with pytest.raises(errors.BranchBusy) as refused:
            fork(log, "draft")
        said.append(str(refused.value))

    kernel.namespace["try_it"] = try_it
    kernel.durable(CELL + "\ntry_it()")

    assert "`main-2` is being executed right now" in said[0]


def test_the_generation_rises_by_a_fork_and_with_it_the_idempotency_keys(log: MortalLog, world: World) -> None:
    setup = """
    @step
    def send(text):
        world.hit(durable.idempotency_key())
        return "sent"
    """
    Kernel(log, world, setup).durable("send('x')")

    fork(log, "send")
    died = Kernel(log, world, setup).durable("send('x')", die_after=1)
    Kernel(log, world, setup).durable("send('x')")

    assert died.died
    first, *rest = world.effects
    assert len(rest) == 2
    assert len(set(rest)) == 1
    assert first != rest[0]
    headers = [record.header for record in log.executions()]
    assert [header.generation for header in headers] == [0, 1, 1, 1]


def test_a_forked_step_that_was_in_doubt_is_executed_with_a_new_key(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(CELL, die_after=5)
    open_step = entries(log, "main")[-1]
    world.clear()

    fork(log, open_step.begun)
    result = Kernel(log, world, SETUP).durable(CELL)

    assert result.error is None
    assert "draft x" not in world.effects


def test_a_headless_pass_takes_the_fork_up_too(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(CELL, pass_id="monday")
    fork(log, "send")
    world.clear()

    Kernel(log, world, SETUP).durable(CELL, pass_id="tuesday")

    assert world.effects == ["send summary of draft of x"]


def test_a_switch_says_which_branch_is_taken_up_next(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    kernel.durable(CELL)
    fork(log, "send")
    kernel.durable(CELL)
    world.clear()

    client.switch(log, run_of(log), "main", by="ada")
    taken = [kernel.durable(CELL).execution.header.branch_name for _ in range(2)]  # type: ignore[union-attr]
    client.switch(log, run_of(log), "main-2")
    taken.append(kernel.durable(CELL).execution.header.branch_name)  # type: ignore[union-attr]

    assert taken == ["main", "main", "main-2"]
    assert world.effects == []
    assert "ada" in [record.header.switched for record in log.executions()]


def test_a_branch_that_was_made_after_a_switch_is_newer_than_it(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    kernel.durable(CELL)
    client.switch(log, run_of(log), "main")
    kernel.durable(CELL, fresh=True)

    result = kernel.durable(CELL)

    assert result.execution is not None
    assert result.execution.header.branch_name == "main-2"


def test_a_switch_to_a_branch_of_other_inputs_makes_a_branch_from_it(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    for topic in "ab":
        kernel.plain(f"topic = {topic!r}")
        kernel.durable("greet()\ndraft(topic)")
    client.switch(log, run_of(log), "main")
    kernel.plain("topic = 'c'")
    world.clear()

    result = kernel.durable("greet()\ndraft(topic)")

    assert world.effects == ["draft c"]
    assert result.execution is not None
    assert result.execution.header.origin is not None
    assert result.execution.header.origin.branch.endswith(".1")


def test_a_switch_to_a_branch_with_set_values_sets_them_again(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP + "\ntone = 'dry'")
    kernel.durable("send(tone)")
    fork(log, "send", values={"tone": "warm"})
    kernel.durable("send(tone)")
    world.clear()

    client.switch(log, run_of(log), "main-2")
    result = kernel.durable("send(tone)")

    assert world.effects == []
    assert result.execution is not None
    assert result.execution.header.branch_name == "main-2"
    assert kernel.namespace["tone"] == "dry"


def test_a_switch_to_a_branch_that_is_not_there_says_which_are(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable(CELL)

    with pytest.raises(errors.UsageError, match="Its branches: main"):
        client.switch(log, run_of(log), "mian")
