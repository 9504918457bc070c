"""LangGraph with SqliteSaver and ``durability="sync"``: a graph of one node that loops, and the functional API.

SqliteSaver uses SQLite in WAL mode with its default ``synchronous=FULL``: a flush for each commit. The graph keeps the
newest result in its state; the functional API keeps the result of each task for a resume.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any, TypedDict

from benchmarks import values
from benchmarks.measure import Meter, Numbers, bare_calls, die, importing, report, size_of


class State(TypedDict):
    """Which step it is at, and the newest result."""

    i: int
    result: Any


def _saver(params: dict[str, Any]) -> Any:
    import sqlite3

    from langgraph.checkpoint.sqlite import SqliteSaver

    path = Path(params["directory"]) / "langgraph.sqlite"
    saver = SqliteSaver(sqlite3.connect(path, check_same_thread=False))
    saver.setup()
    return saver


def _graph(params: dict[str, Any], n: int) -> Any:
    from langgraph.graph import END, START, StateGraph

    kind = params["value"]

    def work(state: State) -> dict[str, Any]:
        if state["i"] == params.get("stop", -1):
            params["reached"]()
        return {"i": state["i"] + 1, "result": values.make(kind, state["i"])}

    graph = StateGraph(State)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", lambda state: END if state["i"] >= n else "work")
    return graph.compile(checkpointer=_saver(params))


def _functional(params: dict[str, Any]) -> Any:
    from langgraph.func import entrypoint, task

    kind = params["value"]

    @task
    def fetch(i: int) -> Any:
        return values.make(kind, i)

    @entrypoint(checkpointer=_saver(params))
    def agent(n: int) -> int:
        for i in range(n):
            fetch(i).result()
        if "reached" in params:
            params["reached"]()
        return n

    return agent


def _config(thread: str, n: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}, "recursion_limit": n + 100}


def graph(params: dict[str, Any]) -> Numbers:
    """Turns of a graph."""
    n = params["n"]
    values.warm(params["value"])
    _graph(params, 10).invoke({"i": 0, "result": None}, _config("warm", 10), durability="sync")
    app = _graph(params, n)
    return _measured(params, lambda: app.invoke({"i": 0, "result": None}, _config("bench", n), durability="sync"))


def steps(params: dict[str, Any]) -> Numbers:
    """Tasks of the functional API, one after the other."""
    n = params["n"]
    values.warm(params["value"])
    agent = _functional(params)
    agent.invoke(10, _config("warm", 10), durability="sync")
    return _measured(params, lambda: agent.invoke(n, _config("bench", n), durability="sync"))


def _measured(params: dict[str, Any], work: Any) -> Numbers:
    n = params["n"]
    plain = bare_calls(lambda i: values.make(params["value"], i), n)
    before = size_of(params["directory"])
    with Meter() as meter:
        work()
    return {**meter.per(n, plain), "bytes": (size_of(params["directory"]) - before) / n}


def _killed() -> None:
    time.sleep(0.5)  # the writes of a task may be late
    report({})
    die()


def prepare(params: dict[str, Any]) -> Numbers:
    """Completed tasks, then SIGKILL inside of the entrypoint."""
    params["reached"] = _killed
    _functional(params).invoke(params["n"], _config("bench", params["n"]), durability="sync")
    return {}


def resume(params: dict[str, Any]) -> Numbers:
    """The entrypoint again with the same thread id, until all tasks have given their result again."""
    params["reached"] = _Reached()
    agent = _functional(params)
    params["reached"].begin()
    agent.invoke(None, _config("bench", params["n"]), durability="sync")
    return {}


def prepare_graph(params: dict[str, Any]) -> Numbers:
    """Completed turns, then SIGKILL inside of the next one."""
    params["reached"], params["stop"] = _killed, params["n"]
    n = params["n"] + 1
    _graph(params, n).invoke({"i": 0, "result": None}, _config("bench", n), durability="sync")
    return {}


def resume_graph(params: dict[str, Any]) -> Numbers:
    """The graph again with the same thread id: it has its state, and no step to replay."""
    params["reached"], params["stop"] = _Reached(), params["n"]
    n = params["n"] + 1
    app = _graph(params, n)
    params["reached"].begin()
    app.invoke(None, _config("bench", n), durability="sync")
    return {}


class _Reached:
    """Tells how long it took until it was called, and ends the process."""

    def begin(self) -> None:
        self.cpu, self.began = time.process_time(), time.perf_counter()

    def __call__(self) -> None:
        report({"seconds": time.perf_counter() - self.began, "cpu": time.process_time() - self.cpu})
        os._exit(0)


def parallel(params: dict[str, Any]) -> Numbers:
    """Asynchronous tasks gathered in one entrypoint, with AsyncSqliteSaver; an entrypoint for each ``width``."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.func import entrypoint, task

    n, width = params["n"], params["width"]

    @task
    async def nothing(i: int) -> int:
        return i

    async def main() -> Meter:
        path = str(Path(params["directory"]) / "langgraph.sqlite")
        async with AsyncSqliteSaver.from_conn_string(path) as saver:

            @entrypoint(checkpointer=saver)
            async def entry(first: int) -> int:
                await asyncio.gather(*(nothing(i) for i in range(first, first + width)))
                return first

            agent: Any = entry  # its overloads know no plain dict as configuration
            await agent.ainvoke(-width, _config("warm", n), durability="sync")
            with Meter() as meter:
                for first in range(0, n, width):
                    await agent.ainvoke(first, _config(f"bench-{first}", n), durability="sync")
            return meter

    meter = asyncio.run(main())
    return {"per_second": n / meter.seconds, "per_cpu_second": n / meter.cpu}


def imports(_: dict[str, Any]) -> Numbers:
    """Milliseconds to import it with its saver."""
    return {"engine": importing("langgraph.graph", "langgraph.func", "langgraph.checkpoint.sqlite")}
