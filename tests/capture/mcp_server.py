"""An MCP server with tools that have effects: each call adds a line to a file.

``python mcp_server.py --effects FILE`` speaks over stdio; with ``--http`` it serves streamable HTTP on a free port of
loopback and prints ``ready URL``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.types import ToolAnnotations


def server_of(effects: Path) -> Any:
    """The server with its two tools."""
    server = MCPServer("effects")

    def hit(line: str) -> int:
        with effects.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        return len(effects.read_text(encoding="utf-8").splitlines())

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True))
    def look_up(word: str) -> str:
        """Look a word up."""
        return f"{word} was call {hit(f'look_up {word}'):06d}"

    @server.tool(annotations=ToolAnnotations(read_only_hint=False, idempotent_hint=False))
    def book(seat: str) -> str:
        """Book a seat; twice is two bookings."""
        return f"{seat} was call {hit(f'book {seat}'):06d}"

    return server


def main() -> None:
    """Serve until stdin ends, or until killed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--effects", type=Path, required=True)
    parser.add_argument("--http", action="store_true")
    arguments = parser.parse_args()
    server = server_of(arguments.effects)
    if not arguments.http:
        server.run("stdio")
        return
    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(16)
    print("ready", f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    web = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error"))
    asyncio.run(web.serve(sockets=[listening]))


if __name__ == "__main__":
    os.environ.pop("PYTHONWARNINGS", None)
    main()
