"""DBOS on SQLite, as it comes: a workflow whose steps are recorded one by one."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks import values
from benchmarks.measure import Meter, Numbers, bare_calls, die, importing, report, size_of


def _configure(params: dict[str, Any]) -> Any:
    from dbos import DBOS

    path = Path(params["directory"]) / "dbos.sqlite"
    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{path}",
            "log_level": "ERROR",
            "application_version": "1",
        }
    )
    return DBOS


def steps(params: dict[str, Any]) -> Numbers:
    """Steps of one workflow."""
    dbos = _configure(params)
    n, kind = params["n"], params["value"]
    values.warm(kind)
    meter = Meter()
    sizes: list[int] = []

    @dbos.step()  # type: ignore[untyped-decorator]  # reached through `Any`: DBOS is imported in this process only
    def fetch(i: int) -> Any:
        return values.make(kind, i)

    @dbos.workflow()  # type: ignore[untyped-decorator]  # the same
    def flow(n: int) -> int:
        sizes.append(size_of(params["directory"]))
        with meter:
            for i in range(n):
                fetch(i)
        sizes.append(size_of(params["directory"]))
        return n

    dbos.launch()
    flow(10)
    plain = bare_calls(lambda i: values.make(kind, i), n)
    del sizes[:]
    flow(n)
    numbers = {**meter.per(n, plain), "bytes": (sizes[1] - sizes[0]) / n}
    report(numbers)
    os._exit(0)


def _long(params: dict[str, Any], reached: Any) -> tuple[Any, Any]:
    dbos = _configure(params)
    kind, n = params["value"], params["n"]

    @dbos.step()  # type: ignore[untyped-decorator]  # the same
    def fetch(i: int) -> Any:
        if i == n:
            reached()
        return values.make(kind, i)

    @dbos.workflow()  # type: ignore[untyped-decorator]  # the same
    def flow(n: int) -> int:
        for i in range(n + 1):
            fetch(i)
        return n

    return dbos, flow


def prepare(params: dict[str, Any]) -> Numbers:
    """Completed steps of one workflow, then SIGKILL inside of the next one."""
    from dbos import SetWorkflowID

    def killed() -> None:
        report({})
        die()

    dbos, flow = _long(params, killed)
    dbos.launch()
    with SetWorkflowID("bench"):
        flow(params["n"])
    return {}


def resume(params: dict[str, Any]) -> Numbers:
    """Launching recovers the workflow by itself, in a thread; until the step that was not completed is reached."""
    done = threading.Event()
    dbos, _ = _long(params, done.set)
    cpu, began = time.process_time(), time.perf_counter()
    dbos.launch()
    done.wait()
    report({"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu})
    os._exit(0)


def parallel(params: dict[str, Any]) -> Numbers:
    """Asynchronous steps gathered in one workflow."""
    dbos = _configure(params)
    n, width = params["n"], params["width"]

    @dbos.step()  # type: ignore[untyped-decorator]  # the same
    async def nothing(i: int) -> int:
        return i

    @dbos.workflow()  # type: ignore[untyped-decorator]  # the same
    async def flow(first: int) -> int:
        await asyncio.gather(*(nothing(i) for i in range(first, first + width)))
        return first

    dbos.launch()

    async def main() -> Meter:
        await flow(-width)
        with Meter() as meter:
            for first in range(0, n, width):
                await flow(first)
        return meter

    meter = asyncio.run(main())
    report({"per_second": n / meter.seconds, "per_cpu_second": n / meter.cpu})
    os._exit(0)


def imports(_: dict[str, Any]) -> Numbers:
    """Milliseconds to import it."""
    return {"engine": importing("dbos")}
