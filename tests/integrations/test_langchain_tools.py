"""Tools of LangChain and LangGraph in a durable run."""

from __future__ import annotations

import operator
import warnings
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any

import pytest

from jupyter_durable import durable, step
from jupyter_durable.errors import CannotHook, DecisionNeeded, InDoubtError, UnstorableValue
from jupyter_durable.integrations import langchain_tools
from tests.engine.harness import MortalLog, World, play
from tests.integrations.programs import langchain_agent, told
from tests.integrations.runs import died_in, steps, twice

pytest.importorskip("langchain")

with warnings.catch_warnings():
    # LangGraph's own: it warns of its serializer's defaults while it is imported.
    warnings.simplefilter("ignore")
    from langchain.agents import AgentState
    from langchain.tools import InjectedState, InjectedToolCallId, ToolRuntime
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.prebuilt import ToolNode
    from langgraph.types import Command, interrupt

world = World()


@pytest.fixture(autouse=True)
def _new_world():
    world.clear()


def ask(agent, **given):
    return agent.ainvoke({"messages": [("user", "go")], **given})


@tool
def count(letters: str) -> int:
    """Count letters."""
    return world.hit("count") * 100 + len(letters)


def test_outside_of_a_run_a_tool_is_simply_called():
    assert [count.invoke({"letters": "abc"}) for _ in range(2)] == [103, 203]


def test_a_tool_that_the_program_calls_itself_is_a_step():
    async def program():
        return [count.invoke({"letters": "abc"}), await count.ainvoke({"letters": "abc"}), count.invoke("abcd")]

    first, again = twice(program)

    assert first.value == again.value == [103, 203, 304]
    assert steps(first) == [("count", "live")] * 3
    assert steps(again) == [("count", "replayed")] * 3


def test_the_id_of_the_call_is_no_part_of_its_identity():
    ids = iter("ab")

    async def program():
        call = {"type": "tool_call", "name": "count", "args": {"letters": "abc"}, "id": next(ids)}
        return (await count.ainvoke(call)).tool_call_id

    assert [result.value for result in twice(program)] == ["a", "b"]
    assert world.effects == ["count"]


def test_a_message_with_an_artifact_comes_back_whole():
    @tool(response_format="content_and_artifact")
    def draw(what: str) -> tuple[str, dict[str, Any]]:
        """Draw."""
        world.hit("draw")
        return f"a {what}", {"points": [(1, 2), (3, 4)]}

    async def program():
        call = {"type": "tool_call", "name": "draw", "args": {"what": "line"}, "id": "1"}
        return await draw.ainvoke(call), draw.invoke({"what": "line"})

    first, again = twice(program)

    assert first.value == again.value
    assert isinstance(again.value[0], ToolMessage)
    assert again.value[0].artifact == {"points": [(1, 2), (3, 4)]}
    assert world.effects == ["draw"] * 2


class Counting(AgentState):
    """State of an agent, with a number that tools add to."""

    total: Annotated[int, operator.add]


def test_what_is_injected_is_no_part_of_the_identity_and_commands_come_back():
    @tool
    def add(
        n: int,
        state: Annotated[dict, InjectedState],
        call_id: Annotated[str, InjectedToolCallId],
        runtime: ToolRuntime,
    ) -> Command:
        """Add to the total."""
        world.hit(f"add {n} to {state['total']}")
        assert runtime.tool_call_id == call_id
        return Command(update={"total": n, "messages": [ToolMessage(f"added {n}", tool_call_id=call_id)]})

    script = [[("add", {"n": 1})], [("add", {"n": 2}), ("add", {"n": 3})], []]

    async def program():
        agent = langchain_agent(add, script=script, state_schema=Counting)
        result = await ask(agent, total=10)
        return result["total"], told(result["messages"])

    first, again = twice(program)

    assert first.value[0] == 16
    assert again.value == first.value
    assert sorted(world.effects) == ["add 1 to 10", "add 2 to 11", "add 3 to 11"]


class Lookup(BaseTool):
    """A tool class of the user's own."""

    name: str = "lookup"
    description: str = "Look up."
    prefix: str = ""

    def _run(self, word: str) -> str:
        world.hit(f"lookup {word}")
        return self.prefix + word


def test_tool_classes_and_methods_are_steps():
    class Shop:
        def price(self, item: str) -> float:
            """Price of an item."""
            world.hit(f"price {item}")
            return len(item) * 1.5

    async def program():
        price = StructuredTool.from_function(Shop().price)
        return Lookup(prefix=">").invoke({"word": "a"}), await Lookup().ainvoke("b"), price.invoke({"item": "tea"})

    first, again = twice(program)

    assert first.value == again.value == (">a", "b", 4.5)
    assert steps(again) == [("lookup", "replayed"), ("lookup", "replayed"), ("price", "replayed")]
    assert world.effects == ["lookup a", "lookup b", "price tea"]


def test_two_tools_of_one_factory_are_two():
    def made(factor):
        @tool
        def times(n: int) -> int:
            """Multiply."""
            world.hit(f"times {factor}")
            return n * factor

        return times

    log = MortalLog()

    def with_factors(*factors):
        async def program():
            return [made(factor).invoke({"n": 10}) for factor in factors]

        return program

    assert play(with_factors(2, 3), log).value == [20, 30]
    changed = play(with_factors(2, 4), log, reuse="none")

    assert changed.value == [20, 40]
    assert world.effects == ["times 2", "times 3", "times 4"]


class Broken(Exception):
    """An error of the user's own."""


@tool
def fragile(how: str) -> str:
    """Fail."""
    world.hit(how)
    raise (ToolException if how == "known" else Broken)(f"it is {how}")


def test_errors_keep_their_type_and_are_raised_again_on_replay():
    async def program():
        caught = []
        for how in ("known", "unknown"):
            try:
                fragile.invoke({"how": how})
            except (ToolException, Broken) as error:
                caught.append((type(error), str(error)))
        return caught

    first, again = twice(program)

    assert first.value == again.value == [(ToolException, "it is known"), (Broken, "it is unknown")]
    assert world.effects == ["known", "unknown"]


def test_errors_that_the_tool_or_the_node_handles_replay_the_same():
    handled = fragile.model_copy(update={"handle_tool_error": True, "name": "handled"})
    script = [[("handled", {"how": "known"})], [("fragile", {"how": "unknown"})], []]

    async def program():
        from langchain.agents.middleware import ToolRetryMiddleware

        retrying = ToolRetryMiddleware(max_retries=0, on_failure="continue")
        return told((await ask(langchain_agent(handled, fragile, script=script, middleware=[retrying])))["messages"])

    first, again = twice(program)

    assert first.value == again.value
    assert "it is known" in str(first.value)
    assert world.effects == ["known", "unknown"]


def test_a_failure_that_ended_the_run_is_tried_again_and_the_tools_before_it_are_not():
    async def program():
        agent = langchain_agent(count, mend, script=[[("count", {"letters": "x"})], [("mend", {})], []])
        return told((await ask(agent))["messages"])

    @tool
    def mend() -> str:
        """Fail as long as the world is broken."""
        world.hit("mend")
        if world.broken:
            raise Broken
        return "mended"

    log = MortalLog()
    world.broken = True
    failed = play(program, log)
    world.broken = False
    mended = play(program, log)

    assert isinstance(failed.error, Broken)
    assert mended.value[-2:] == [["tool", "mended"], ["ai", "done"]]
    assert world.effects == ["count", "mend", "mend"]


def test_steps_inside_of_tools_nest_and_a_step_may_be_a_tool():
    @step
    def inner(n):
        world.hit("inner")
        return n + 1

    @tool
    def outer(n: int) -> int:
        """Call a step."""
        return inner(n) + inner(n + 1)

    @tool
    @step(name="both")
    def both(n: int) -> int:
        """Be a step."""
        world.hit("both")
        return n

    async def program():
        agent = langchain_agent(outer, both, script=[[("outer", {"n": 1}), ("both", {"n": 7})], []])
        return told((await ask(agent))["messages"])

    first, again = twice(program)

    assert first.value == again.value
    assert [name for name, _ in steps(first)].count("both") == 2
    assert sorted(steps(again)) == [("both", "replayed"), ("outer", "replayed")]
    assert sorted(world.effects) == ["both", "inner", "inner"]


def test_a_tool_of_a_pure_step_is_reused_after_an_edit_before_it_and_another_one_is_asked_about():
    @step(name="price", pure=True)
    def price(seat: str) -> int:
        """Price of a seat."""
        return world.hit("price")

    @step(name="first")
    def before():
        return 1

    @step(name="first")
    def edited():
        return 2

    def using(first, *tools):
        async def program():
            return first(), [tool(one).invoke({"letters": "x", "seat": "x"}) for one in tools]

        return program

    log = MortalLog()
    assert play(using(before, price), log).value == (1, [1])
    assert play(using(edited, price), log, reuse="pure").value == (2, [1])

    log = MortalLog()
    play(using(before, count.func), log)
    assert isinstance(play(using(edited, count.func), log).error, DecisionNeeded)
    assert world.effects == ["price", "count"]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_result_that_cannot_be_stored_stops_the_run_past_every_error_handler(is_async):
    @tool
    def connect() -> Any:
        """Give something that is no data."""
        world.hit("connect")
        return (n for n in range(3))

    async def program():
        from langchain_core.messages import AIMessage
        from langgraph.graph import START, MessagesState, StateGraph

        graph = StateGraph(MessagesState)
        graph.add_node("tools", ToolNode([connect], handle_tool_errors=True))
        graph.add_edge(START, "tools")
        calls = [{"name": "connect", "args": {}, "id": "1"}]
        given = {"messages": [AIMessage("", tool_calls=calls)]}
        return await graph.compile().ainvoke(given) if is_async else graph.compile().invoke(given)

    result = play(program, MortalLog())

    assert isinstance(result.error, UnstorableValue)
    assert world.effects == ["connect"]


def test_parallel_tools_of_a_run_that_must_stop_all_say_why():
    @tool("work")
    async def before(n: int) -> int:
        """Work."""
        return world.hit("before") + n

    @tool("work")
    async def after(n: int) -> int:
        """Work."""
        return world.hit("after") + n

    def using(work):
        async def program():
            agent = langchain_agent(work, script=[[("work", {"n": n}) for n in range(4)], []])
            return told((await ask(agent))["messages"])

        return program

    log = MortalLog()
    assert play(using(before), log).error is None

    assert isinstance(play(using(after), log).error, DecisionNeeded)
    assert world.effects == ["before"] * 4


@pytest.mark.parametrize("how", ["metadata", "extras"])
def test_a_tool_that_is_not_idempotent_is_not_called_again_when_the_process_died_in_it(how):
    def pay(amount: int) -> str:
        """Pay."""
        world.hit("pay")
        return f"paid {amount}"

    async def program():
        return StructuredTool.from_function(pay, **{how: {"idempotent": False}}).invoke({"amount": 3})

    log = died_in(program, "pay")
    world.clear()

    assert isinstance(play(program, log).error, InDoubtError)
    assert world.effects == []


def test_callbacks_and_streams_see_the_same_on_a_replay():
    seen = []

    class Noting(BaseCallbackHandler):
        def on_tool_start(self, serialized, input_str, **kwargs):
            seen.append(("start", input_str))

        def on_tool_end(self, output, **kwargs):
            seen.append(("end", output.content))

    async def program():
        seen.clear()
        agent = langchain_agent(count, script=[[("count", {"letters": "ab"})], []])
        config = {"callbacks": [Noting()]}
        chunks = [sorted(c) async for c in agent.astream({"messages": [("user", "go")]}, config, stream_mode="updates")]
        return chunks, list(seen)

    first, again = twice(program)

    assert first.value == again.value == (
        [["model"], ["tools"], ["model"]], [("start", "{'letters': 'ab'}"), ("end", "102")]
    )  # fmt: skip


def test_a_tool_that_asks_a_person_through_langgraph_is_called_again_with_the_answer():
    @tool
    def send(to: str) -> str:
        """Send, if a person agrees."""
        answer = interrupt(f"send to {to}?")
        world.hit("send")
        return f"{answer}: sent to {to}"

    async def program():
        agent = langchain_agent(send, script=[[("send", {"to": "Ada"})], []], checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        paused = await agent.ainvoke({"messages": [("user", "go")]}, config)
        done = await agent.ainvoke(Command(resume="yes"), config)
        return [one.value for one in paused["__interrupt__"]], told(done["messages"])[-2]

    first, again = twice(program)

    assert first.value == again.value == (["send to Ada?"], ["tool", "yes: sent to Ada"])
    assert world.effects == ["send"]


def test_what_a_tool_changes_in_its_own_object_stops_the_next_live_call_that_would_miss_it():
    class Cart:
        def __init__(self):
            self.items = []

        def put(self, item: str) -> int:
            """Put an item into the cart."""
            self.items.append(item)
            return len(self.items)

    async def program():
        put = StructuredTool.from_function(Cart().put)
        first = put.invoke({"item": "a"})
        durable.now()
        return [first, put.invoke({"item": "b"})]

    whole, again = twice(program)
    log = MortalLog()
    play(program, log, die_after=6)
    resumed = play(program, log)

    assert whole.value == again.value == [1, 2]
    assert type(resumed.error).__name__ == "HiddenEffectError"
    assert "`self`" in str(resumed.error)


@pytest.mark.parametrize(
    "module",
    [
        SimpleNamespace(__name__="langchain_core.tools.base"),
        SimpleNamespace(__name__="langchain_core.tools.base", BaseTool=type("BaseTool", (), {"run": print})),
    ],
)
def test_a_library_that_is_not_as_known_is_left_alone_and_said(module: ModuleType):
    with pytest.raises(CannotHook, match="LangChain tools are NOT recorded"):
        langchain_tools.install(module)


def test_hooking_twice_is_hooking_once():
    from langchain_core.tools import base

    twice(nothing)
    before = base.BaseTool.run
    langchain_tools.install(base)

    assert base.BaseTool.run is before


async def nothing():
    """A program that sets the hooks and does no more."""
