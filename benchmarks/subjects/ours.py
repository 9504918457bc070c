"""jupyter_durable: ``with durable.run(...)``, the same engine as a ``%%durable`` cell.

The step functions are local code, as those of a notebook are: their source is looked at, and their arguments are
digested. Ten steps of another run come first, so that no measurement pays for imports.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import values
from benchmarks.measure import Meter, Numbers, bare_calls, die, importing, memory, report, size_of, turns


def _functions() -> dict[str, Any]:
    from jupyter_durable import step

    @step
    def text200(i: int) -> str:
        return values.text(i, 200)

    @step
    def text1000(i: int) -> str:
        return values.text(i, 1000)

    @step
    def text10000(i: int) -> str:
        return values.text(i, 10_000)

    @step
    def array(i: int) -> Any:
        return values.array(i)

    return {"text200": text200, "text1000": text1000, "text10000": text10000, "array": array}


def _warm(params: dict[str, Any], durability: Any = "power") -> Any:
    from jupyter_durable import durable

    values.warm(params["value"])
    fn = _functions()[params["value"]]
    log = str(Path(params["directory"]) / "warm")
    context = durable.run("warm", log=log, durability=durability)
    with context:
        for i in range(10):
            fn(i)
    with durable.run("warm", log=log, durability=durability):
        for i in range(10):
            fn(i)
    return fn


def steps(params: dict[str, Any]) -> Numbers:
    """Steps in one run. Intent and completion of each are recorded; flushed, the two of neighbours share one flush."""
    from jupyter_durable import durable
    from jupyter_durable.log import open_log

    n = params["n"]
    durability: Any = "power" if params["flushed"] else "process"
    fn = _warm(params, durability)
    plain = bare_calls(fn.__durable_step__, n)
    where = Path(params["directory"]) / "log"
    log = open_log(where)
    numbers: Numbers = {}
    fold = log.fold

    def timed() -> int:
        with Meter() as meter:
            count = fold()
        numbers["fold"] = meter.seconds
        numbers["fold_cpu"] = meter.cpu
        return count

    log.fold = timed  # type: ignore[method-assign]
    with durable.run("bench", log=log, durability=durability):
        before = size_of(where)
        with Meter() as meter:
            for i in range(n):
                fn(i)
        numbers["bytes"] = (size_of(where) - before) / n
    numbers["rest"] = size_of(where) / n
    return {**meter.per(n, plain), **numbers}


def bursts(params: dict[str, Any]) -> Numbers:
    """Flushed, in turns with another subject. The completion of a burst's last step is flushed in the next."""
    from jupyter_durable import durable

    size = params["burst"]
    fn = _warm(params)
    with durable.run("bench", log=str(Path(params["directory"]) / "log")):
        for turn in turns():
            with Meter() as meter:
                for i in range(turn * size, (turn + 1) * size):
                    fn(i)
            report({"seconds": meter.seconds})
    return {}


def prepare(params: dict[str, Any]) -> Numbers:
    """Many completed steps and then SIGKILL, in ``runs`` runs (the others come to their end)."""
    from jupyter_durable import durable

    fn = _functions()[params["value"]]
    values.warm(params["value"])
    log = str(Path(params["directory"]) / "log")
    for number in range(params.get("runs", 1) - 1, -1, -1):
        with durable.run(f"bench-{number}", log=log, durability="process"):
            for i in range(params["n"]):
                fn(i)
            if number == 0:
                report({})
                die()
    return {}


def resume(params: dict[str, Any]) -> Numbers:
    """From the start of ``durable.run`` to the first step (``first``), and until a step that is not recorded begins."""
    from jupyter_durable import durable, step

    fn = _warm(params)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("duckdb", "_duckdb")]:
        del sys.modules[name]  # the warm-up has folded
    n = params["n"]
    at = [0.0, 0.0, 0.0, 0.0]

    @step
    def reached() -> None:
        at[2], at[3] = time.perf_counter(), time.process_time()

    resident, _ = memory()
    cpu, began = time.process_time(), time.perf_counter()
    run = durable.run("bench-0", log=str(Path(params["directory"]) / "log"))
    with run:
        at[0] = time.perf_counter()
        assert fn(0) == values.make(params["value"], 0)
        at[1] = time.perf_counter()
        for i in range(1, n):
            fn(i)
        reached()
        duckdb = "duckdb" in sys.modules or "_duckdb" in sys.modules
        assert run.execution is not None
        assert run.execution.stats.replayed == n
        assert run.execution.stats.live == 1
        _, most = memory()
        report(
            {
                "seconds": at[2] - began,
                "cpu": at[3] - cpu,
                "opened": at[0] - began,
                "first": at[1] - began,
                "duckdb": float(duckdb),
                "memory": most - resident,
            }
        )
        die()
    return {}


def parallel(params: dict[str, Any]) -> Numbers:
    """``asyncio.gather`` over ``width`` asynchronous steps, again and again."""
    from jupyter_durable import durable, step

    @step
    async def nothing(i: int) -> int:
        return i

    n, width = params["n"], params["width"]
    where = str(Path(params["directory"]) / "log")

    async def main() -> Meter:
        async with durable.run("parallel", log=where):
            await asyncio.gather(*(nothing(-i) for i in range(1, 11)))
            with Meter() as meter:
                for first in range(0, n, width):
                    await asyncio.gather(*(nothing(i) for i in range(first, first + width)))
            return meter

    meter = asyncio.run(main())
    return {"per_second": n / meter.seconds, "per_cpu_second": n / meter.cpu}


_ENGINE = (
    "jupyter_durable.api",
    "jupyter_durable.running",
    "jupyter_durable.engine.opening",
    "jupyter_durable.log.local",
)
"""All that a first step needs."""


def imports(_: dict[str, Any]) -> Numbers:
    """Milliseconds to import the package, to load the extension into a shell, and to have the engine too.

    Above what a kernel has imported anyway: ipykernel, and with it IPython and asyncio.
    """
    importing("ipykernel.kernelapp")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    package = importing("jupyter_durable")
    with Meter() as loading:
        shell.run_line_magic("load_ext", "jupyter_durable")
    extension = package + loading.seconds * 1e3
    engine = extension + importing(*_ENGINE)
    return {"import": package, "extension": extension, "engine": engine, "duckdb": float("duckdb" in sys.modules)}


def imports_plain(_: dict[str, Any]) -> Numbers:
    """Milliseconds for a script that uses the package."""
    return {"engine": importing(*_ENGINE), "duckdb": float("duckdb" in sys.modules)}
