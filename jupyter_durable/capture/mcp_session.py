"""The hook into ``mcp``: a tool that a server executes is a step, whatever the transport.

Every client calls tools through ``ClientSession.call_tool``: the session itself, ``Client``, the clients of agent
frameworks. A ``Client`` may need several rounds for one call (a question of the server in between, a task that it polls
for), so there the whole call is the step, and the rounds inside it are not.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from jupyter_durable.capture.tool_calls import ToolCall, run_tool_async
from jupyter_durable.engine.context import current
from jupyter_durable.errors import CannotHook

_INSIDE: ContextVar[Any] = ContextVar("jupyter_durable_inside_mcp_client", default=None)
"""The session whose client has made a step of the call already."""

_ONLY_ONCE: weakref.WeakKeyDictionary[Any, dict[str, bool]] = weakref.WeakKeyDictionary()
"""Session -> tool -> whether its server says that a second call would have a second effect."""

_NAMES: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
"""Session of mcp 1, which keeps no such thing itself -> name of its server."""

_ROUNDS = ("input_responses", "request_state")
"""Arguments that make a further round of a call another request."""


def install(module: ModuleType) -> None:
    """Hook into the sessions of ``mcp.client.session``.

    Raises:
        CannotHook: they are not as they were known.
    """
    cls = getattr(module, "ClientSession", None)
    _check(module, cls, "call_tool", "list_tools", "initialize")
    assert cls is not None
    if getattr(cls.call_tool, "__durable__", False):
        return
    cls.call_tool = _session_call(cls.call_tool)
    # Both what the server lists and what a client has kept of an earlier listing come through here, since mcp 2.
    if hasattr(cls, "_absorb_tool_listing"):
        cls._absorb_tool_listing = _absorbing(cls._absorb_tool_listing)
    else:
        cls.list_tools = _listing(cls.list_tools)
    if not hasattr(cls, "server_info"):
        cls.initialize = _initializing(cls.initialize)


def install_client(module: ModuleType) -> None:
    """Hook into the ``Client`` of mcp 2.

    Raises:
        CannotHook: it is not as it was known.
    """
    cls = getattr(module, "Client", None)
    _check(module, cls, "call_tool")
    assert cls is not None
    if not isinstance(inspect.getattr_static(cls, "session", None), property):
        raise _cannot(module, "Client.session")
    if not getattr(cls.call_tool, "__durable__", False):
        cls.call_tool = _client_call(cls.call_tool)


def _check(module: ModuleType, cls: Any, *methods: str) -> None:
    for name in methods:
        method = getattr(cls, name, None)
        if not inspect.iscoroutinefunction(method):
            raise _cannot(module, f"{getattr(cls, '__name__', 'the class')}.{name}")
        if name == "call_tool" and list(inspect.signature(method).parameters)[:3] != ["self", "name", "arguments"]:
            raise _cannot(module, f"{cls.__name__}.call_tool(name, arguments)")


def _cannot(module: ModuleType, missing: str) -> CannotHook:
    return CannotHook(
        f"`{module.__name__}` is not as it was known ({missing} is missing), so calls of MCP tools are NOT recorded, "
        f"and a re-run makes them again. Put them into functions with `@step`, or install another version of `mcp`."
    )


def _session_call(original: Any) -> Any:
    @functools.wraps(original)
    async def call_tool(self: Any, name: str, arguments: Any = None, *args: Any, **kwargs: Any) -> Any:
        frame = current()
        if frame is None or _INSIDE.get() is self:
            return await original(self, name, arguments, *args, **kwargs)
        call = _call(self, name, arguments, kwargs)
        return await run_tool_async(frame, call, lambda: original(self, name, arguments, *args, **kwargs))

    call_tool.__durable__ = True  # type: ignore[attr-defined]
    return call_tool


def _client_call(original: Any) -> Any:
    @functools.wraps(original)
    async def call_tool(self: Any, name: str, arguments: Any = None, *args: Any, **kwargs: Any) -> Any:
        frame = current()
        if frame is None:
            return await original(self, name, arguments, *args, **kwargs)
        session = self.session

        async def body() -> Any:
            token = _INSIDE.set(session)
            try:
                return await original(self, name, arguments, *args, **kwargs)
            finally:
                _INSIDE.reset(token)

        return await run_tool_async(frame, _call(session, name, arguments, kwargs), body)

    call_tool.__durable__ = True  # type: ignore[attr-defined]
    return call_tool


def _call(session: Any, name: str, arguments: Any, options: dict[str, Any]) -> ToolCall:
    """The call's identity. Time-outs, progress callbacks and ``meta`` say how to call, not what is asked."""
    server = getattr(getattr(session, "server_info", None), "name", None) or _NAMES.get(session, "")
    rounds = tuple(options.get(each) for each in _ROUNDS)
    return ToolCall(
        name=f"mcp:{server}.{name}" if server else f"mcp:{name}",
        arguments=dict(arguments or {}),
        identity=(server, name, *(rounds if any(each is not None for each in rounds) else ())),
        at_most_once=_ONLY_ONCE.get(session, {}).get(name, False),
    )


def _absorbing(original: Any) -> Any:
    @functools.wraps(original)
    def absorb(self: Any, result: Any, *args: Any, **kwargs: Any) -> Any:
        listed = original(self, result, *args, **kwargs)
        _remember(self, listed)
        return listed

    return absorb


def _listing(original: Any) -> Any:
    @functools.wraps(original)
    async def list_tools(self: Any, *args: Any, **kwargs: Any) -> Any:
        listed = await original(self, *args, **kwargs)
        _remember(self, listed)
        return listed

    return list_tools


def _initializing(original: Any) -> Any:
    @functools.wraps(original)
    async def initialize(self: Any, *args: Any, **kwargs: Any) -> Any:
        told = await original(self, *args, **kwargs)
        _NAMES[self] = getattr(getattr(told, "serverInfo", None), "name", "")
        return told

    return initialize


def _remember(session: Any, listed: Any) -> None:
    known = _ONLY_ONCE.setdefault(session, {})
    for tool in getattr(listed, "tools", None) or ():
        told = getattr(tool, "annotations", None)
        # What a server does not say counts as harmless to repeat; MCP's own default would stop for every tool.
        known[tool.name] = _hint(told, "idempotent") is False and _hint(told, "read_only") is not True


def _hint(annotations: Any, name: str) -> Any:
    first, *rest = name.split("_")
    camel = first + "".join(word.capitalize() for word in rest)  # until mcp 1
    return getattr(annotations, f"{name}_hint", getattr(annotations, f"{camel}Hint", None))
