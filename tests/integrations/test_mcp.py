"""Tools of MCP servers in a durable run; over stdio and HTTP in fresh processes: `test_killed_agents`."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from jupyter_durable import durable
from jupyter_durable.capture import mcp_session
from jupyter_durable.errors import CannotHook, InDoubtError
from tests.engine.harness import MortalLog, World, play
from tests.integrations.runs import died_in, steps, twice

pytest.importorskip("mcp")

from mcp import Client, MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, ToolAnnotations
from pydantic import BaseModel

world = World()


@pytest.fixture(autouse=True)
def _new_world():
    world.clear()


class Answer(BaseModel):
    """What a server may ask the user."""

    sure: bool


def server(name="desk"):
    made = MCPServer(name)

    @made.tool()
    def add(a: int, b: int) -> int:
        return world.hit(f"add {name}") * 1000 + a + b

    @made.tool(annotations=ToolAnnotations(idempotent_hint=False))
    def pay(amount: int) -> str:
        world.hit("pay")
        return f"paid {amount}"

    @made.tool(annotations=ToolAnnotations(idempotent_hint=False, read_only_hint=True))
    def look() -> str:
        world.hit("look")
        return "seen"

    @made.tool()
    def fail() -> str:
        world.hit("fail")
        raise ToolError("no such luck")

    @made.tool()
    async def slow(ctx: Context) -> str:
        await ctx.report_progress(1, 2)
        world.hit("slow")
        return "done"

    return made


def text(result: CallToolResult) -> str:
    assert type(result) is CallToolResult
    return result.content[0].text


def test_outside_of_a_run_a_tool_is_simply_called():
    async def program():
        async with Client(server()) as client:
            return [text(await client.call_tool("add", {"a": 1, "b": n})) for n in (1, 1)]

    assert asyncio.run(program()) == ["1002", "2002"]


@pytest.mark.parametrize("through", ["client", "session"])
def test_a_tool_is_one_step_named_after_server_and_tool_and_its_result_is_the_same_object_again(through):
    async def program():
        async with Client(server()) as client:
            caller = client if through == "client" else client.session
            return [await caller.call_tool("add", {"a": 1, "b": n}) for n in (1, 1, 2)]

    first, again = twice(program)

    assert first.value == again.value
    assert [text(result) for result in again.value] == ["1002", "2002", "3003"]
    assert again.value[0].structured_content == {"result": 1002}
    assert steps(first) == [("mcp:desk.add", "live")] * 3
    assert steps(again) == [("mcp:desk.add", "replayed")] * 3
    assert world.effects == ["add desk"] * 3


def test_time_outs_progress_and_meta_reach_the_server_and_are_no_part_of_the_identity():
    seen = []
    seconds = iter([5, 7])

    async def program():
        async def progress(done, total, message):
            seen.append((done, total))

        async with Client(server()) as client:
            limit = next(seconds)
            result = await client.call_tool(
                "slow", read_timeout_seconds=limit, progress_callback=progress, meta={"limit": limit}
            )
            return text(result)

    first, again = twice(program)

    assert first.value == again.value == "done"
    assert seen == [(1, 2)]
    assert world.effects == ["slow"]


def test_errors_of_tools_are_results_and_errors_of_the_protocol_keep_their_type():
    async def program():
        async with Client(server()) as client:
            failed = await client.call_tool("fail")
            try:
                await client.session.call_tool("missing", {})
            except MCPError as error:
                return failed.is_error, text(failed), type(error), error.code, str(error)
            return failed.is_error, text(failed)

    first, again = twice(program)

    assert first.value == again.value
    assert first.value[0] is True
    assert "no such luck" in first.value[1]
    assert [status for _, status in steps(again)] == ["replayed"] * 2
    assert world.effects == ["fail"]


def test_equal_tools_of_two_servers_are_two():
    async def program():
        async with Client(server("one")) as one, Client(server("two")) as two:
            given = {"a": 1, "b": 1}
            results = await asyncio.gather(two.call_tool("add", given), one.call_tool("add", given))
            return [text(result) for result in results]

    first, again = twice(program)

    assert first.value == again.value
    assert sorted(steps(again)) == [("mcp:one.add", "replayed"), ("mcp:two.add", "replayed")]
    assert sorted(world.effects) == ["add one", "add two"]


def calling(tool, *, listing):
    async def program():
        async with Client(server()) as client:
            if listing:
                await client.list_tools()
            return text(await client.call_tool(tool, {"amount": 3} if tool == "pay" else {}))

    return program


def test_a_tool_that_the_server_calls_not_idempotent_is_not_called_again_when_the_process_died_in_it():
    program = calling("pay", listing=True)
    log = died_in(program, "mcp:desk.pay")
    world.clear()

    assert isinstance(play(program, log).error, InDoubtError)
    assert world.effects == []


@pytest.mark.parametrize(("tool", "listing"), [("look", True), ("pay", False)])
def test_a_tool_that_only_reads_or_was_never_listed_is_called_again(tool, listing):
    program = calling(tool, listing=listing)
    log = died_in(program, f"mcp:desk.{tool}")
    world.clear()

    assert play(program, log).error is None
    assert world.effects == [tool]


def test_a_call_in_which_the_server_asks_the_user_is_one_step():
    asked = []
    made = MCPServer("desk")

    @made.tool()
    async def drop(ctx: Context, table: str) -> str:
        answer = await ctx.elicit(f"drop {table}?", Answer)
        world.hit("drop")
        return f"{answer.action} {table}"

    async def elicit(_context, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"sure": True})

    async def program():
        async with Client(made, elicitation_callback=elicit, mode="legacy") as client:
            return text(await client.call_tool("drop", {"table": "t"}))

    first, again = twice(program)

    assert first.value == again.value == "accept t"
    assert steps(again) == [("mcp:desk.drop", "replayed")]
    assert asked == ["drop t?"]


def test_replay_only_asks_no_tool_of_a_server():
    async def program():
        async with Client(server()) as client:
            return text(await client.call_tool("add", {"a": 1, "b": 1}))

    async def more():
        async with Client(server()) as client:
            await client.call_tool("add", {"a": 1, "b": 1})
            return text(await client.call_tool("add", {"a": 2, "b": 2}))

    log = MortalLog()
    play(program, log)

    assert play(program, log, replay_only=True).value == "1002"
    assert type(play(more, log, replay_only=True).error).__name__ == "ReplayOnlyError"
    assert world.effects == ["add desk"]


def test_a_library_that_is_not_as_known_is_left_alone_and_said():
    module = SimpleNamespace(__name__="mcp.client.session", ClientSession=type("ClientSession", (), {}))
    with pytest.raises(CannotHook, match="calls of MCP tools are NOT recorded"):
        mcp_session.install(module)
    with pytest.raises(CannotHook, match="calls of MCP tools are NOT recorded"):
        mcp_session.install_client(SimpleNamespace(__name__="mcp.client.client", Client=type("Client", (), {})))


def test_hooking_twice_is_hooking_once():
    import mcp.client.client
    import mcp.client.session

    async def program():
        durable.now()

    play(program, MortalLog())  # sets the hooks
    before = mcp.client.session.ClientSession.call_tool, mcp.client.client.Client.call_tool
    mcp_session.install(mcp.client.session)
    mcp_session.install_client(mcp.client.client)

    assert (mcp.client.session.ClientSession.call_tool, mcp.client.client.Client.call_tool) == before
