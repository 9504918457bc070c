"""The hook into Pydantic AI: a tool that an agent calls is a step.

Every tool of an agent is called through ``call_tool`` of the toolset that it came from. Functions (``@agent.tool``,
``@agent.tool_plain``, ``Agent(tools=...)``) are in a ``FunctionToolset``. A toolset class of the user's own is met in
the ``CombinedToolset`` through which an agent calls them all. Toolsets that only pass a call on (a prefix, a filter,
MCP) are left alone: what they pass it to is the step.
"""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any

from jupyter_durable.capture.tool_calls import ToolCall, declared, run_tool_async
from jupyter_durable.engine.context import current
from jupyter_durable.errors import CannotHook

_PARAMETERS = ["self", "name", "tool_args", "ctx", "tool"]


def install_functions(module: ModuleType) -> None:
    """Hook into ``pydantic_ai.toolsets.function``.

    Raises:
        CannotHook: it is not as it was known.
    """
    cls = _checked(module, "FunctionToolset")
    if not getattr(cls.call_tool, "__durable__", False):
        cls.call_tool = _function_call(cls.call_tool)


def install_others(module: ModuleType) -> None:
    """Hook into ``pydantic_ai.toolsets.combined``.

    Raises:
        CannotHook: it is not as it was known.
    """
    cls = _checked(module, "CombinedToolset")
    if not getattr(cls.call_tool, "__durable__", False):
        cls.call_tool = _combined_call(cls.call_tool)


def _checked(module: ModuleType, name: str) -> Any:
    cls = getattr(module, name, None)
    method = getattr(cls, "call_tool", None)
    if not inspect.iscoroutinefunction(method) or list(inspect.signature(method).parameters) != _PARAMETERS:
        raise CannotHook(
            f"`{module.__name__}` is not as it was known ({name}.call_tool(name, tool_args, ctx, tool) is missing), so "
            f"calls of tools by Pydantic AI are NOT recorded, and a re-run makes them again. Put `@step` on the "
            f"functions of the tools, or install another version of `pydantic-ai`."
        )
    return cls


def _function_call(original: Any) -> Any:
    @functools.wraps(original)
    async def call_tool(self: Any, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        frame = current()
        if frame is None:
            return await original(self, name, tool_args, ctx, tool)
        own = self.tools.get(getattr(tool, "original_name", "") or name) or self.tools.get(name)
        call = _call(name, tool_args, ctx, tool, getattr(own, "function", None))
        return await run_tool_async(frame, call, lambda: original(self, name, tool_args, ctx, tool))

    call_tool.__durable__ = True  # type: ignore[attr-defined]
    return call_tool


def _combined_call(original: Any) -> Any:
    @functools.wraps(original)
    async def call_tool(self: Any, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        frame = current()
        leaf = _leaf(getattr(tool, "source_toolset", None)) if frame is not None else None
        if frame is None or leaf is None or type(leaf).call_tool.__module__.startswith(("pydantic_ai.", __name__)):
            return await original(self, name, tool_args, ctx, tool)
        call = _call(name, tool_args, ctx, tool, type(leaf).call_tool)
        return await run_tool_async(frame, call, lambda: original(self, name, tool_args, ctx, tool))

    call_tool.__durable__ = True  # type: ignore[attr-defined]
    return call_tool


def _leaf(toolset: Any) -> Any:
    """The toolset at the end of a chain of wrappers."""
    for _ in range(64):
        inner = getattr(toolset, "wrapped", None)
        if inner is None:
            break
        toolset = inner
    return toolset


def _call(name: str, tool_args: dict[str, Any], ctx: Any, tool: Any, code: Any) -> ToolCall:
    """The call without its context: usage, messages and the dependencies differ from run to run."""
    return ToolCall(
        name=name,
        arguments=tool_args,
        code=code,
        # What a tool that asks for approval does depends on whether it has got it.
        identity=(("approved", ctx.tool_call_metadata),) if getattr(ctx, "tool_call_approved", False) else (),
        at_most_once=declared(tool.tool_def.metadata),
        shared={"deps": ctx.deps} if ctx.deps is not None else {},
    )
