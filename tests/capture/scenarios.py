"""Small programs that call a model through some SDK, by name: the rows of the matrix.

Each takes the provider's URL and returns what a user could see of the answers, as JSON-like data: texts, types, usage,
headers, chunks. They import their SDK when they run, and make their clients themselves, so that any of them may be the
first thing in a process. Nothing in their requests differs from process to process.
"""

from __future__ import annotations

import importlib
import inspect
import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OPENAI_KEY = "sk-openai-secret-of-the-test"
ANTHROPIC_KEY = "sk-ant-secret-of-the-test"
GOOGLE_KEY = "AIza-secret-of-the-test"
SECRETS = (OPENAI_KEY, ANTHROPIC_KEY, GOOGLE_KEY, "secret-cookie")
"""What must not be found in any file of a log."""

CHAT, RESPONSES_MODEL, CLAUDE, GEMINI = "gpt-4o-mini", "gpt-5", "claude-sonnet-4-5", "gemini-2.5-flash"


@dataclass(frozen=True)
class Family:
    """Scenarios that share an SDK, and a process in the matrix."""

    modules: tuple[str, ...]
    needs: tuple[str, ...]
    """Modules that must be there."""


FAMILIES = {
    "openai": Family(("with_openai", "with_openai_more"), ("openai", "httpx")),
    "openai_async": Family(("with_openai_async",), ("openai", "aiohttp")),
    "anthropic": Family(("with_anthropic",), ("anthropic",)),
    "google": Family(("with_google",), ("google.genai", "aiohttp")),
    "litellm": Family(("with_litellm",), ("litellm",)),
    "langchain": Family(("with_langchain",), ("langchain", "langchain_openai", "langchain_anthropic", "langgraph")),
    "pydantic_ai": Family(("with_pydantic_ai",), ("pydantic_ai", "openai")),
    "agents": Family(("with_agents",), ("agents",)),
    "http": Family(("with_http",), ("httpx", "httpx2", "aiohttp", "requests")),
    "crowds": Family(("with_crowds",), ("openai", "anyio")),
    "mcp": Family(("with_mcp",), ("mcp", "openai")),
}


@dataclass(frozen=True)
class Scenario:
    """One row."""

    name: str
    family: str
    run: Callable[..., Any]
    requests: int
    """How many model requests one live run makes, refused ones included."""
    prepare: Callable[[str], Any] | None
    """Called before the product is imported; what it returns is the second argument."""
    one_by_one: bool
    """Whether a request is sent only after the answer to the one before has been used."""
    faulty: bool
    """Whether some of its requests are refused, cut or left on purpose."""
    effects: int
    """How many tool calls one live run makes at an MCP server."""

    @property
    def is_async(self) -> bool:
        """Whether it must be awaited."""
        return inspect.iscoroutinefunction(self.run)


_KNOWN: dict[str, Scenario] = {}


def scenario(
    family: str,
    requests: int = 1,
    *,
    prepare: Callable[[str], Any] | None = None,
    one_by_one: bool = True,
    faulty: bool = False,
    effects: int = 0,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function under its own name."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        _KNOWN[name] = Scenario(name, family, function, requests, prepare, one_by_one, faulty, effects)
        return function

    return register


def scenarios() -> dict[str, Scenario]:
    """All rows, by name; this imports no SDK."""
    for family in FAMILIES.values():
        for module in family.modules:
            importlib.import_module(f"tests.capture.{module}")
    return _KNOWN


def at_desk(url: str, word: str, **order: Any) -> None:
    """Tell the provider's desk something, by a way that no capture looks at."""
    _post(f"{url}/_desk", {"word": word, **order})


def tell(url: str, what: object) -> None:
    """Leave a sign at the provider, which is no model request: so far has the program come."""
    _post(f"{url}/plain/{what}", {})


def _post(url: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        answer.read()


def asks(text: str) -> list[dict[str, str]]:
    """A conversation of one question."""
    return [{"role": "user", "content": text}]


def shown(value: Any) -> dict[str, Any]:
    """An SDK's object as JSON-like data, with its type."""
    return {"type": type(value).__name__, "value": value.model_dump(mode="json")}
