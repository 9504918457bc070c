"""MCP tools, over stdio and over HTTP. The server's effects go to the file in ``CAPTURE_EFFECTS``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.capture import with_openai_async
from tests.capture.scenarios import CHAT, asks, scenario, shown

SERVER = Path(__file__).with_name("mcp_server.py")


def _stdio_server() -> Any:
    from mcp import StdioServerParameters

    return StdioServerParameters(
        command=sys.executable, args=[str(SERVER), "--effects", os.environ["CAPTURE_EFFECTS"]]
    )  # fmt: skip


def _http_server() -> str:
    return os.environ["CAPTURE_MCP_URL"]


@scenario("mcp", 0, effects=3)
async def mcp_session_over_stdio(url: str) -> Any:
    from mcp import ClientSession, stdio_client

    async with stdio_client(_stdio_server()) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        names = sorted(tool.name for tool in (await session.list_tools()).tools)
        answers = [
            await session.call_tool("look_up", {"word": "log"}),
            await session.call_tool("book", {"seat": "12A"}),
            await session.call_tool("book", {"seat": "12A"}),
        ]
        return [names, [shown(answer) for answer in answers]]


@scenario("mcp", 0, effects=2)
async def mcp_client_over_http(url: str) -> Any:
    from mcp import Client

    async with Client(_http_server()) as client:
        answers = [await client.call_tool("look_up", {"word": "http"}), await client.call_tool("book", {"seat": "3C"})]
        return [shown(answer) for answer in answers]


@scenario("mcp", 2, effects=2)
async def mcp_tools_between_model_calls(url: str) -> Any:
    from mcp import ClientSession, stdio_client

    async with (
        stdio_client(_stdio_server()) as (reader, writer),
        ClientSession(reader, writer) as session,
        with_openai_async.client_of(url) as model,
    ):
        await session.initialize()
        told: list[str] = []

        async def tool(name: str, **given: str) -> None:
            answer = await session.call_tool(name, given)
            told.append(answer.content[0].text)

        async def ask() -> None:
            made = await model.chat.completions.create(model=CHAT, messages=asks(f"after {told[-1]}"))
            told.append(str(made.choices[0].message.content))

        await tool("look_up", word="first")
        await ask()
        await tool("book", seat="1A")
        await ask()
        return told
