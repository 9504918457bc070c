"""The hook into the OpenAI Agents SDK: a function tool that an agent calls is a step.

The runner calls every function tool through one function, which has the tool's time-out in it. Inside of it the tool's
own error handler makes an answer for the model of whatever the tool raises; the step lies inside of the handler.

Two kinds of function tools are left alone. One of an MCP server, because the call that it makes is the step. And an
agent as a tool: the model calls and tools of the agent inside are steps of their own, so a replay gives the same
answer, the same usage and the same requests for approval, and an edit of that agent is seen where it matters.
"""

from __future__ import annotations

import functools
import inspect
import json
from types import ModuleType
from typing import Any

from jupyter_durable.capture.tool_calls import ToolCall, run_tool_async
from jupyter_durable.engine.context import Frame, current
from jupyter_durable.errors import CannotHook

_INVOKE = "_invoke_function_tool_with_metadata"


def install(module: ModuleType) -> None:
    """Hook into ``agents.tool``, or into a module that has taken the function from there.

    Raises:
        CannotHook: it is not as it was known.
    """
    if not hasattr(module, "FunctionTool"):
        return  # another package whose name is `agents`
    original = getattr(module, _INVOKE, None)
    if getattr(original, "__durable__", False):
        return
    parameters = list(inspect.signature(original).parameters) if callable(original) else []
    known = {"on_invoke_tool", "_mcp_tool_binding", "_is_agent_tool"} <= set(_fields(module.FunctionTool))
    if parameters != ["function_tool", "context", "arguments"] or not known:
        raise CannotHook(
            f"`{module.__name__}` is not as it was known ({_INVOKE}(function_tool, context, arguments) is missing), so "
            f"calls of function tools by the OpenAI Agents SDK are NOT recorded, and a re-run makes them again. Put "
            f"`@step` on the functions of the tools, or install another version of `openai-agents`."
        )
    setattr(module, _INVOKE, _invoking(original))


def _fields(cls: Any) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(cls, "__dataclass_fields__", {})
    return fields


def _invoking(original: Any) -> Any:
    @functools.wraps(original)
    async def invoke(*, function_tool: Any, context: Any, arguments: str) -> Any:
        frame = current()
        if frame is None or function_tool._is_agent_tool or function_tool._mcp_tool_binding is not None:
            return await original(function_tool=function_tool, context=context, arguments=arguments)
        return await original(function_tool=_StandIn(frame, function_tool), context=context, arguments=arguments)

    invoke.__durable__ = True  # type: ignore[attr-defined]
    return invoke


class _StandIn:
    """A function tool whose invocation is a step, and which is the tool itself in everything else."""

    def __init__(self, frame: Frame, tool: Any) -> None:
        self._durable_tool = tool
        self.on_invoke_tool = _recorded(frame, tool)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._durable_tool, name)


def _recorded(frame: Frame, tool: Any) -> Any:
    invoker = tool.on_invoke_tool
    handled = getattr(invoker, "_invoke_tool_impl", None)
    inner = invoker if handled is None else handled

    @functools.wraps(inner)
    async def invoke(context: Any, arguments: str) -> Any:
        # By now the SDK may have made a task for the tool's time-out: that is where the call is made.
        call = _call(tool, context, arguments, inner)
        return await run_tool_async(current() or frame, call, lambda: inner(context, arguments))

    if handled is None:
        return invoke
    # The same error handler around the step.
    return type(invoker)(invoke, invoker._on_handled_error, function_tool=tool)


def _call(tool: Any, context: Any, arguments: str, inner: Any) -> ToolCall:
    try:
        given = json.loads(arguments) if arguments else {}
    except ValueError:
        given = None
    shared = getattr(context, "context", None)
    return ToolCall(
        name=tool.qualified_name,
        arguments=given if isinstance(given, dict) else {"arguments": arguments},
        code=getattr(tool, "__wrapped__", inner),
        shared={"context": shared} if shared is not None else {},
    )
