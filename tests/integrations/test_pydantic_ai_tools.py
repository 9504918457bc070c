"""Tools of Pydantic AI agents in a durable run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_durable import durable, step
from jupyter_durable.errors import CannotHook, HiddenEffectError, InDoubtError, UnstorableValue
from jupyter_durable.integrations import pydantic_ai_tools
from tests.engine.harness import MortalLog, World, play
from tests.integrations.programs import parts, pydantic_ai_agent
from tests.integrations.runs import died_in, steps, twice

pytest.importorskip("pydantic_ai")

from pydantic import BaseModel, TypeAdapter
from pydantic_ai import (
    AbstractToolset,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolset,
    ModelRetry,
    RunContext,
    Tool,
    ToolDefinition,
    ToolReturn,
    UnexpectedModelBehavior,
)
from pydantic_ai.toolsets.abstract import ToolsetTool

world = World()


@pytest.fixture(autouse=True)
def _new_world():
    world.clear()


class Seat(BaseModel):
    """An argument that is more than a plain value."""

    row: int
    letter: str


def test_tools_with_and_without_context_replay_and_the_context_is_no_part_of_the_identity():
    runs = iter([[["anything"], object()], [["else"], object()]])

    async def program():
        agent = pydantic_ai_agent([[("book", {"seat": {"row": 12, "letter": "A"}}), ("plain", {})], []], deps_type=list)

        @agent.tool
        async def book(ctx: RunContext[list], seat: Seat) -> Seat:
            world.hit(f"book {seat.row}")
            return seat

        @agent.tool_plain
        def plain() -> ToolReturn:
            world.hit("plain")
            return ToolReturn(return_value="seen", metadata={"n": 1})

        result = await agent.run("go", deps=next(runs))
        returned = [p for m in result.all_messages() for p in m.parts if p.part_kind == "tool-return"]
        return [(p.tool_name, p.content, p.metadata) for p in returned]

    first, again = twice(program)

    assert first.value == again.value == [("book", Seat(row=12, letter="A"), None), ("plain", "seen", {"n": 1})]
    assert steps(again) == [("book", "replayed"), ("plain", "replayed")]
    assert sorted(world.effects) == ["book 12", "plain"]


def test_a_tool_that_asks_the_model_to_try_again_replays_the_same():
    async def program():
        agent = pydantic_ai_agent([[("pick", {"n": 1})], [("pick", {"n": 2})], []])

        @agent.tool_plain
        def pick(n: int) -> int:
            world.hit(f"pick {n}")
            if n == 1:
                raise ModelRetry("not one")
            return n

        return parts(await agent.run("go"))

    first, again = twice(program)

    assert first.value == again.value
    assert "not one" in str(first.value)
    assert world.effects == ["pick 1", "pick 2"]


def test_a_run_that_ended_because_of_a_tool_tries_that_tool_again():
    async def program():
        agent = pydantic_ai_agent([[("pick", {"n": 1})], []], retries=0)

        @agent.tool_plain
        def pick(n: int) -> int:
            world.hit("pick")
            if world.broken:
                raise ModelRetry("not now")
            return n

        return parts(await agent.run("go"))

    log = MortalLog()
    world.broken = True
    failed = play(program, log)
    world.broken = False
    mended = play(program, log)

    assert isinstance(failed.error, UnexpectedModelBehavior)
    assert mended.value[-2:] == [["tool-return", "1"], ["text", "done"]]
    assert world.effects == ["pick", "pick"]


@pytest.mark.parametrize("how", [ApprovalRequired, CallDeferred])
def test_calls_that_wait_for_a_person_replay_and_go_on_with_the_answer(how):
    async def program():
        agent = pydantic_ai_agent([[("pay", {"amount": 3})], []], output_type=[str, DeferredToolRequests])

        @agent.tool
        def pay(ctx: RunContext, amount: int) -> str:
            if not ctx.tool_call_approved:
                raise how(metadata={"amount": amount})
            world.hit("pay")
            return f"paid {amount}"

        waiting = await agent.run("go")
        requests = waiting.output
        assert isinstance(requests, DeferredToolRequests)
        given: Any = {one.tool_call_id: True for one in requests.approvals}
        answers = DeferredToolResults(
            approvals=given, calls={one.tool_call_id: "paid by hand" for one in requests.calls}
        )
        done = await agent.run(message_history=waiting.all_messages(), deferred_tool_results=answers)
        return requests.metadata, parts(done)

    first, again = twice(program)

    assert first.value == again.value
    assert "paid" in str(first.value[1])
    assert world.effects == ["pay"] * (how is ApprovalRequired)


class Rates(AbstractToolset[Any]):
    """A toolset class of the user's own."""

    @property
    def id(self) -> str:
        return "rates"

    async def get_tools(self, ctx):
        schema = {"type": "object", "properties": {"money": {"type": "string"}}}
        definition = ToolDefinition(name="rate", parameters_json_schema=schema)
        validator = TypeAdapter(dict[str, Any]).validator
        return {"rate": ToolsetTool(toolset=self, tool_def=definition, max_retries=1, args_validator=validator)}

    async def call_tool(self, name, tool_args, ctx, tool):
        world.hit(f"{name} {tool_args['money']}")
        return 1.25


def test_toolsets_with_prefixes_and_of_classes_of_ones_own_are_steps_once():
    def look_up(word: str) -> str:
        """Look up."""
        world.hit(f"look_up {word}")
        return word

    async def program():
        script = [[("a_look_up", {"word": "x"}), ("b_rate", {"money": "EUR"})], []]
        toolsets = [FunctionToolset([look_up]).prefixed("a"), Rates().prefixed("b")]
        return parts(await pydantic_ai_agent(script, toolsets=toolsets).run("go"))

    first, again = twice(program)

    assert first.value == again.value
    assert sorted(steps(again)) == [("b_rate", "replayed"), ("look_up", "replayed")]
    assert sorted(world.effects) == ["look_up x", "rate EUR"]


def test_a_synchronous_tool_in_a_worker_thread_may_call_steps():
    @step(name="inner")
    def inner(n):
        world.hit("inner")
        return n * 2

    async def program():
        agent = pydantic_ai_agent([[("outer", {"n": n}) for n in range(4)], []])

        @agent.tool_plain
        def outer(n: int) -> int:
            return inner(n)

        return parts(await agent.run("go"))

    first, again = twice(program)

    assert first.value == again.value
    assert sorted(steps(first)) == [("inner", "live")] * 4 + [("outer", "live")] * 4
    assert steps(again) == [("outer", "replayed")] * 4
    assert world.effects == ["inner"] * 4


def test_a_result_that_cannot_be_stored_stops_the_run():
    async def program():
        agent = pydantic_ai_agent([[("connect", {})], []])

        @agent.tool_plain
        def connect() -> Any:
            world.hit("connect")
            return (n for n in range(3))

        return await agent.run("go")

    assert isinstance(play(program, MortalLog()).error, UnstorableValue)
    assert world.effects == ["connect"]


def test_an_error_of_an_inner_step_that_must_stop_the_run_is_not_a_failure_of_the_tool():
    @step
    def inner():
        return (n for n in range(3))

    async def program():
        agent = pydantic_ai_agent([[("outer", {})], []])

        @agent.tool_plain
        def outer() -> str:
            return str(inner())

        return await agent.run("go")

    assert isinstance(play(program, MortalLog()).error, UnstorableValue)


def test_a_tool_that_is_not_idempotent_is_not_called_again_when_the_process_died_in_it():
    def pay(amount: int) -> str:
        """Pay."""
        world.hit("pay")
        return f"paid {amount}"

    async def program():
        tool = Tool(pay, metadata={"idempotent": False})
        return parts(await pydantic_ai_agent([[("pay", {"amount": 3})], []], tools=[tool]).run("go"))

    log = died_in(program, "pay")
    world.clear()

    assert isinstance(play(program, log).error, InDoubtError)
    assert world.effects == []


@dataclass
class Shop:
    """Dependencies that tools change."""

    cart: list[str] = field(default_factory=list)


def test_what_tools_change_in_the_dependencies_stops_the_next_live_tool_that_would_miss_it():
    async def program():
        agent = pydantic_ai_agent([[("put", {"item": "a"})], [("put", {"item": "b"})], []], deps_type=Shop)

        @agent.tool
        def put(ctx: RunContext[Shop], item: str) -> int:
            ctx.deps.cart.append(item)
            return len(ctx.deps.cart)

        return parts(await agent.run("go", deps=Shop()))

    first, again = twice(program)
    log = MortalLog()
    play(program, log, die_after=4)
    resumed = play(program, log)

    assert first.value == again.value
    assert isinstance(resumed.error, HiddenEffectError)
    assert "`deps`" in str(resumed.error)


def test_a_step_as_a_tool_says_itself_what_it_changes_on_purpose():
    async def program():
        agent = pydantic_ai_agent([[("put", {"item": "a"})], [("put", {"item": "b"})], []], deps_type=Shop)

        @agent.tool
        @step(key=lambda ctx, item: item, mutates=["ctx"])
        def put(ctx: RunContext[Shop], item: str) -> str:
            ctx.deps.cart.append(item)
            return item

        return parts(await agent.run("go", deps=Shop()))

    whole, _ = twice(program)
    log = MortalLog()
    play(program, log, die_after=6)
    resumed = play(program, log)

    assert resumed.error is None
    assert resumed.value == whole.value


def test_outside_of_a_run_nothing_is_recorded():
    async def program():
        durable.now()

    play(program, MortalLog())  # sets the hooks
    agent = pydantic_ai_agent([[("count", {})], []])

    @agent.tool_plain
    def count() -> int:
        return world.hit("count")

    assert parts(asyncio.run(agent.run("go")))[-2:] == [["tool-return", "1"], ["text", "done"]]
    assert parts(asyncio.run(agent.run("go")))[-2:] == [["tool-return", "2"], ["text", "done"]]


@pytest.mark.parametrize("install", [pydantic_ai_tools.install_functions, pydantic_ai_tools.install_others])
def test_a_library_that_is_not_as_known_is_left_alone_and_said(install):
    with pytest.raises(CannotHook, match="Pydantic AI are NOT recorded"):
        install(SimpleNamespace(__name__="pydantic_ai.toolsets"))
