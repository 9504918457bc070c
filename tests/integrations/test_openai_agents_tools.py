"""Function tools of the OpenAI Agents SDK in a durable run."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_durable import step
from jupyter_durable.errors import CannotHook, HiddenEffectError, InDoubtError, UnstorableValue
from jupyter_durable.integrations import openai_agents_tools
from tests.engine.harness import MortalLog, World, play
from tests.integrations.programs import agents_agent, items
from tests.integrations.runs import steps, twice

pytest.importorskip("agents")

from agents import FunctionTool, RunContextWrapper, Runner, function_tool

world = World()


@pytest.fixture(autouse=True)
def _new_world():
    world.clear()


def test_tools_replay_and_the_context_is_no_part_of_the_identity():
    runs = iter(["anything", object()])

    @function_tool
    def book(ctx: RunContextWrapper[Any], seat: str, times: int = 1) -> str:
        world.hit(f"book {seat}")
        return f"{seat} x {times}"

    @function_tool
    async def look(word: str) -> dict[str, int]:
        world.hit(f"look {word}")
        return {word: len(word)}

    async def program():
        agent = agents_agent(book, look, script=[[("book", {"seat": "1A"}), ("look", {"word": "x"})], []])
        return items(await Runner.run(agent, "go", context=next(runs)))

    first, again = twice(program)

    assert first.value == again.value
    assert "1A x 1" in first.value
    assert sorted(steps(again)) == [("book", "replayed"), ("look", "replayed")]
    assert sorted(world.effects) == ["book 1A", "look x"]


def test_a_failure_becomes_the_answer_that_the_handler_of_the_tool_makes_of_it():
    def explain(_ctx, error):
        return f"{type(error).__name__}: {error}"

    @function_tool(failure_error_function=explain)
    def fragile() -> str:
        world.hit("fragile")
        raise ConnectionResetError("gone")

    async def program():
        return items(await Runner.run(agents_agent(fragile, script=[[("fragile", {})], []]), "go"))

    first, again = twice(program)

    assert first.value == again.value
    assert "ConnectionResetError: gone" in first.value
    assert steps(first) == [("fragile", "failed")]
    assert world.effects == ["fragile"]


def test_a_failure_that_ended_the_run_is_tried_again():
    @function_tool(failure_error_function=None)
    def fragile() -> str:
        world.hit("fragile")
        if world.broken:
            raise ConnectionResetError("gone")
        return "fine"

    async def program():
        return items(await Runner.run(agents_agent(fragile, script=[[("fragile", {})], []]), "go"))

    log = MortalLog()
    world.broken = True
    failed = play(program, log)
    world.broken = False

    assert failed.error is not None
    assert "fine" in play(program, log).value
    assert world.effects == ["fragile", "fragile"]


def test_a_result_that_cannot_be_stored_stops_the_run_past_the_handler():
    @function_tool
    def connect() -> Any:
        world.hit("connect")
        return (n for n in range(3))

    async def program():
        return await Runner.run(agents_agent(connect, script=[[("connect", {})], []]), "go")

    assert isinstance(play(program, MortalLog()).error, UnstorableValue)
    assert world.effects == ["connect"]


def test_an_error_of_an_inner_step_that_must_stop_the_run_does_not_become_an_answer():
    @step
    def inner():
        return (n for n in range(3))

    @function_tool
    def outer() -> str:
        return str(inner())

    async def program():
        return await Runner.run(agents_agent(outer, script=[[("outer", {})], []]), "go")

    assert isinstance(play(program, MortalLog()).error, UnstorableValue)


def test_a_tool_made_by_hand_is_a_step_too():
    async def invoke(context: Any, arguments: str) -> str:
        world.hit("invoke")
        return arguments.upper()

    async def program():
        tool = FunctionTool("shout", "Shout.", {"type": "object", "properties": {}}, invoke, strict_json_schema=False)
        return items(await Runner.run(agents_agent(tool, script=[[("shout", {"a": 1})], []]), "go"))

    first, again = twice(program)

    assert first.value == again.value
    assert '{"A": 1}' in first.value
    assert world.effects == ["invoke"]


def test_a_time_out_of_a_tool_replays_as_a_time_out():
    @function_tool(timeout=0.05, timeout_behavior="error_as_result")
    async def slow() -> str:
        world.hit("slow")
        await asyncio.Event().wait()
        return "never"

    async def program():
        return items(await Runner.run(agents_agent(slow, script=[[("slow", {})], []]), "go"))

    first, again = twice(program)

    assert first.value == again.value
    assert "timed out" in first.value[1]
    assert world.effects == ["slow"]


def test_an_agent_as_a_tool_is_no_step_and_what_it_calls_is():
    @function_tool
    def look(word: str) -> str:
        world.hit(f"look {word}")
        return word

    async def program():
        helper = agents_agent(look, script=[[("look", {"word": "deep"})], []])
        tool = helper.as_tool("helper", "Help.")
        return items(await Runner.run(agents_agent(tool, script=[[("helper", {"input": "x"})], []]), "go"))

    first, again = twice(program)

    assert first.value == again.value
    assert steps(again) == [("look", "replayed")]
    assert world.effects == ["look deep"]


def test_approval_of_a_tool_replays():
    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        world.hit("pay")
        return f"paid {amount}"

    async def program():
        agent = agents_agent(pay, script=[[("pay", {"amount": 3})], []])
        waiting = await Runner.run(agent, "go")
        state = waiting.to_state()
        for one in waiting.interruptions:
            state.approve(one)
        return len(waiting.interruptions), items(await Runner.run(agent, state))

    first, again = twice(program)

    assert first.value == again.value
    assert first.value[0] == 1
    assert world.effects == ["pay"]


def test_what_tools_change_in_the_context_stops_the_next_live_tool_that_would_miss_it():
    @function_tool
    def put(ctx: RunContextWrapper[dict[str, list[str]]], item: str) -> str:
        ctx.context["cart"].append(item)
        return json.dumps(ctx.context["cart"])

    async def program():
        agent = agents_agent(put, script=[[("put", {"item": "a"})], [("put", {"item": "b"})], []])
        return items(await Runner.run(agent, "go", context={"cart": []}))

    first, again = twice(program)
    log = MortalLog()
    play(program, log, die_after=4)

    assert first.value == again.value
    assert isinstance(play(program, log).error, HiddenEffectError)


def test_a_step_as_a_tool_that_must_not_be_called_twice_is_asked_about():
    @function_tool
    @step(name="pay", at_most_once=True)
    def pay(amount: int) -> str:
        world.hit("pay")
        return f"paid {amount}"

    async def program():
        return items(await Runner.run(agents_agent(pay, script=[[("pay", {"amount": 3})], []]), "go"))

    log = MortalLog()
    play(program, log, die_after=2)  # after the intents of the tool and of the step in it
    assert world.effects == ["pay"]

    assert isinstance(play(program, log).error, InDoubtError)
    assert world.effects == ["pay"]


def test_outside_of_a_run_nothing_is_recorded():
    @function_tool
    def count() -> int:
        return world.hit("count")

    agent = agents_agent(count, script=[[("count", {})], []])

    assert "1" in items(asyncio.run(Runner.run(agent, "go")))
    assert "2" in items(asyncio.run(Runner.run(agent, "go")))


def test_a_library_that_is_not_as_known_is_left_alone_and_said():
    with pytest.raises(CannotHook, match="OpenAI Agents SDK are NOT recorded"):
        openai_agents_tools.install(SimpleNamespace(__name__="agents.tool", FunctionTool=object))


def test_another_package_of_that_name_is_none_of_our_business():
    module = SimpleNamespace(__name__="agents.tool")

    openai_agents_tools.install(module)

    assert vars(module) == {"__name__": "agents.tool"}
