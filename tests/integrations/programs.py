"""Agents of each framework that call tools over several turns: ``python programs.py NAME``, a run on a log.

The tools add a line to the file in ``EFFECTS``. The models are scripted: what they say depends on nothing but the
conversation. ``DIE_BEFORE`` ends the process by SIGKILL when a model is asked for that turn (counted from 0), and
``DIE_IN`` inside a tool of that name, after its effect. One JSON line tells what came of the run.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jupyter_durable  # noqa: F401 - before the frameworks: their hooks wait for them
from jupyter_durable import durable

PROGRAMS: dict[str, Callable[[], Awaitable[Any]]] = {}


def program(fn: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """Make a function known by its name."""
    PROGRAMS[fn.__name__] = fn
    return fn


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hit(tool: str, line: str) -> None:
    """The effect of a tool."""
    with Path(os.environ["EFFECTS"]).open("a", encoding="utf-8") as file:
        file.write(f"{tool} {line}\n")
    if os.environ.get("DIE_IN") == tool:
        die()


def turn(number: int) -> int:
    """A model is asked for this turn."""
    if os.environ.get("DIE_BEFORE") == str(number):
        die()
    return number


SCRIPT: list[list[tuple[str, dict[str, Any]]]] = [
    [("look_up", {"word": "log"}), ("look_up", {"word": "step"})],
    [("book", {"seat": "12A"})],
    [],
]
"""Turn by turn, the tools that the model calls; in the last one it answers."""


def look_up(word: str) -> str:
    """Look a word up."""
    hit("look_up", word)
    return f"{word} means {len(word)}"


async def book(seat: str) -> dict[str, Any]:
    """Book a seat."""
    hit("book", seat)
    return {"seat": seat, "price": 12.5}


def langchain_agent(*tools: Any, script: Any = SCRIPT, **options: Any) -> Any:
    """A LangChain agent with a scripted model."""
    from langchain.agents import create_agent
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
            number = turn(sum(message.type == "ai" for message in messages))
            calls = [
                {"name": name, "args": dict(given), "id": f"call-{number}-{n}"}
                for n, (name, given) in enumerate(script[number])
            ]
            return ChatResult(
                generations=[ChatGeneration(message=AIMessage("" if calls else "done", tool_calls=calls))]
            )

    return create_agent(Scripted(), list(tools), **options)


def told(messages: Any) -> list[list[str]]:
    """A LangChain conversation as data."""
    return [[message.type, str(message.content)] for message in messages]


@program
async def langchain_async() -> Any:
    from langchain_core.tools import tool

    agent = langchain_agent(tool(look_up), tool(book))
    return told((await agent.ainvoke({"messages": [("user", "go")]}))["messages"])


@program
async def langchain_in_threads() -> Any:
    from langchain_core.tools import tool

    @tool("book", extras={"idempotent": False})
    def book_now(seat: str) -> str:
        """Book a seat."""
        hit("book", seat)
        return seat

    agent = langchain_agent(tool(look_up), book_now)
    return told(agent.invoke({"messages": [("user", "go")]})["messages"])


def pydantic_ai_agent(script: Any = SCRIPT, **options: Any) -> Any:
    """A Pydantic AI agent with a scripted model."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def model(messages: Any, _info: Any) -> Any:
        number = turn(sum(message.kind == "response" for message in messages))
        calls = [
            ToolCallPart(name, dict(given), tool_call_id=f"call-{number}-{n}")
            for n, (name, given) in enumerate(script[number])
        ]
        return ModelResponse(parts=calls or [TextPart("done")])

    return Agent(FunctionModel(model), **options)


def parts(result: Any) -> list[list[str]]:
    """A Pydantic AI conversation as data."""
    return [
        [part.part_kind, str(getattr(part, "content", ""))]
        for message in result.all_messages()
        for part in message.parts
    ]


@program
async def pydantic_ai() -> Any:
    from pydantic_ai import Agent, RunContext, Tool  # noqa: F401 - annotations of the tools below are looked up

    agent = pydantic_ai_agent(tools=[look_up, Tool(book, metadata={"idempotent": False})])
    return parts(await agent.run("go"))


def agents_agent(*tools: Any, script: Any = SCRIPT, **options: Any) -> Any:
    """An agent of the OpenAI Agents SDK with a scripted model."""
    from agents import Agent, Model, ModelResponse, Usage, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Scripted(Model):
        async def get_response(self, *args: Any, **asked: Any) -> Any:
            items = [] if isinstance(asked["input"], str) else asked["input"]
            answered = {item["call_id"] for item in items if item.get("type") == "function_call_output"}
            left = [
                [
                    ResponseFunctionToolCall(
                        name=name, arguments=json.dumps(given), call_id=f"call-{number}-{n}", type="function_call"
                    )
                    for n, (name, given) in enumerate(calls)
                ]
                for number, calls in enumerate(script)
            ]
            number = next(
                (k for k, calls in enumerate(left) if any(c.call_id not in answered for c in calls)), len(left) - 1
            )
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            message = ResponseOutputMessage(
                id="message", type="message", role="assistant", status="completed", content=[text]
            )
            return ModelResponse(output=left[turn(number)] or [message], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    return Agent(name="scripted", model=Scripted(), tools=list(tools), **options)


def items(result: Any) -> list[str]:
    """What the run of such an agent has made, as data."""
    return [str(getattr(item, "output", item.type)) for item in result.new_items] + [str(result.final_output)]


@program
async def openai_agents() -> Any:
    from agents import Runner, function_tool

    return items(await Runner.run(agents_agent(function_tool(look_up), function_tool(book)), "go"))


def mcp_server() -> list[str]:
    """Arguments that start the MCP server of the tests over stdio."""
    return [os.environ["MCP_SERVER"], "--effects", os.environ["EFFECTS"]]


@program
async def openai_agents_mcp() -> Any:
    from agents import Runner
    from agents.mcp import MCPServerStdio

    # Its own 5 seconds are short on a busy machine: a call that took longer counts as failed, and is tried again.
    server = MCPServerStdio({"command": sys.executable, "args": mcp_server()}, client_session_timeout_seconds=60)
    async with server:
        return items(await Runner.run(agents_agent(mcp_servers=[server]), "go"))


@program
async def mcp_session() -> Any:
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async with (
        stdio_client(StdioServerParameters(command=sys.executable, args=mcp_server())) as (reader, writer),
        ClientSession(reader, writer) as session,
    ):
        await session.initialize()
        await session.list_tools()
        return await _through(session)


@program
async def mcp_client_http() -> Any:
    from mcp import Client

    async with Client(os.environ["MCP_URL"]) as client:
        return await _through(client)


async def _through(session: Any) -> Any:
    """What the scripted model would do, by hand."""
    from mcp.types import CallToolResult

    results = []
    for number, calls in enumerate(SCRIPT):
        turn(number)
        results += await asyncio.gather(*(session.call_tool(name, given) for name, given in calls))
    assert all(type(result) is CallToolResult for result in results)
    return [result.model_dump(mode="json") for result in results]


async def main(name: str) -> dict[str, Any]:
    """Run a program in a durable run."""
    told: dict[str, Any] = {}
    run = durable.run(
        name, log=os.environ["LOG"], replay_only="REPLAY_ONLY" in os.environ, reuse=os.environ.get("REUSE", "")
    )
    try:
        async with run:
            told["output"] = await PROGRAMS[name]()
    except Exception as error:
        told["error"] = {"type": type(error).__name__, "message": str(error)}
    assert run.execution is not None
    stats = run.execution.stats
    return {**told, "steps": [[row.name, row.status, row.kind] for row in stats.rows], "notices": stats.notices}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1]))), flush=True)
