"""The hook into LangChain: a tool that an agent, a ``ToolNode`` or the program calls is a step.

``BaseTool.run`` and ``arun`` begin callbacks, check the arguments, call ``_run`` or ``_arun`` and make a message of
what comes back. Only the call in the middle is the step, so that callbacks, streams and error handlers see the same on
a replay: `run` is executed on a stand-in for the tool, which differs in these two methods alone.
"""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any

from jupyter_durable.capture.tool_calls import ToolCall, declared, run_tool, run_tool_async
from jupyter_durable.engine.context import current
from jupyter_durable.errors import CannotHook


def install(module: ModuleType) -> None:
    """Hook into the tools of ``langchain_core.tools.base``.

    Raises:
        CannotHook: they are not as they were known.
    """
    cls = getattr(module, "BaseTool", None)
    missing = [
        name
        for name in ("run", "arun", "_run", "_arun", "_filter_injected_args")
        if not callable(getattr(cls, name, 0))
    ]
    for name in () if missing else ("run", "arun"):
        parameters = list(inspect.signature(getattr(cls, name)).parameters)
        if parameters[:2] != ["self", "tool_input"] or "config" not in parameters:
            missing.append(f"{name}(tool_input, config=)")
    if missing or cls is None:
        raise CannotHook(
            f"`{module.__name__}` is not as it was known (BaseTool: {', '.join(missing)} is missing), so calls of "
            f"LangChain tools are NOT recorded, and a re-run makes them again. Put `@step` on the functions of the "
            f"tools, or install another version of `langchain-core`."
        )
    if getattr(cls.run, "__durable__", False):
        return
    default = cls._arun
    cls.run, cls.arun = _running(cls.run, default), _running_async(cls.arun, default)


def _running(original: Any, default: Any) -> Any:
    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return original(self, *args, **kwargs)
        return original(_StandIn(self, default, kwargs.get("config")), *args, **kwargs)

    run.__durable__ = True  # type: ignore[attr-defined]
    return run


def _running_async(original: Any, default: Any) -> Any:
    @functools.wraps(original)
    async def arun(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return await original(self, *args, **kwargs)
        return await original(_StandIn(self, default, kwargs.get("config")), *args, **kwargs)

    return arun


class _StandIn:
    """A tool whose ``_run`` and ``_arun`` are steps, and which is the tool itself in everything else."""

    __slots__ = ("_durable_config", "_durable_default", "_durable_tool")

    def __init__(self, tool: Any, default: Any, config: Any) -> None:
        self._durable_tool = tool
        self._durable_default = default
        self._durable_config = config

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._durable_tool)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._durable_tool, name)

    @property
    def _run(self) -> Any:
        tool = self._durable_tool

        @functools.wraps(tool._run)
        def run(*args: Any, **kwargs: Any) -> Any:
            frame = current()
            if frame is None:
                return tool._run(*args, **kwargs)
            call = self._durable_call(args, kwargs, ("func",), type(tool)._run)
            return run_tool(frame, call, lambda: tool._run(*args, **kwargs))

        return run

    @property
    def _arun(self) -> Any:
        tool = self._durable_tool

        @functools.wraps(tool._arun)
        def arun(*args: Any, **kwargs: Any) -> Any:
            frame = current()
            if frame is None:
                return tool._arun(*args, **kwargs)
            own = type(tool)._run if type(tool)._arun is self._durable_default else type(tool)._arun
            call = self._durable_call(args, kwargs, ("coroutine", "func"), own)
            return run_tool_async(frame, call, lambda: tool._arun(*args, **kwargs))

        return arun

    def _durable_call(self, args: Any, kwargs: Any, holders: tuple[str, ...], own: Any) -> ToolCall:
        """The call of the tool, without what the framework injects.

        Args:
            args: positional arguments of the inner method.
            kwargs: its keyword arguments.
            holders: attributes in which tools made of a function keep it, the one that is called first.
            own: the method that a tool class of the user's own has written.
        """
        tool, config = self._durable_tool, self._durable_config
        given = tool._filter_injected_args({name: value for name, value in kwargs.items() if value is not config})
        told = tool.metadata or {}
        code = next((fn for fn in (getattr(tool, name, None) for name in holders) if fn is not None), own)
        return ToolCall(
            name=tool.name,
            arguments={**{f"argument {n}": value for n, value in enumerate(args, 1)}, **given},
            code=code,
            # The adapters of MCP servers keep a server's hints under their own names.
            at_most_once=declared(told, getattr(tool, "extras", None))
            or (told.get("idempotentHint") is False and not told.get("readOnlyHint")),
            shared={"self": tool} if code is own else {},
        )
