"""joblib.Memory: caches results of functions in files, a directory a call. It never flushes, and records no intent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from benchmarks import values
from benchmarks.measure import Meter, Numbers, bare_calls, die, importing, report, size_of


def text200(i: int) -> str:
    return values.text(i, 200)


def text10000(i: int) -> str:
    return values.text(i, 10_000)


def array(i: int) -> Any:
    return values.array(i)


def nothing(i: int) -> int:
    return i


_FUNCTIONS: dict[str, Any] = {"text200": text200, "text10000": text10000, "array": array}


def _memory(params: dict[str, Any], fn: Any) -> Any:
    from joblib import Memory  # type: ignore[import-untyped]  # it has no types

    return Memory(str(Path(params["directory"]) / "cache"), verbose=0).cache(fn)


def steps(params: dict[str, Any]) -> Numbers:
    """Calls that are not cached yet."""
    n, fn = params["n"], _FUNCTIONS[params["value"]]
    values.warm(params["value"])
    cached = _memory(params, fn)
    for i in range(10):
        cached(n + i)
    plain = bare_calls(fn, n)
    before = size_of(params["directory"])
    with Meter() as meter:
        for i in range(n):
            cached(i)
    return {**meter.per(n, plain), "bytes": (size_of(params["directory"]) - before) / n}


def prepare(params: dict[str, Any]) -> Numbers:
    """As many cached calls, then SIGKILL."""
    cached = _memory(params, _FUNCTIONS[params["value"]])
    for i in range(params["n"]):
        cached(i)
    report({})
    die()
    return {}


def resume(params: dict[str, Any]) -> Numbers:
    """The cached calls again, and then one that is not."""
    n = params["n"]
    cached = _memory(params, _FUNCTIONS[params["value"]])
    with Meter() as meter:
        for i in range(n):
            cached(i)
    report({"seconds": meter.seconds, "cpu": meter.cpu})
    die()
    return {}


def parallel(params: dict[str, Any]) -> Numbers:
    """It knows no asyncio: the calls go to threads."""
    n, width = params["n"], params["width"]
    cached = _memory(params, nothing)
    cached(-1)

    async def main() -> Meter:
        with Meter() as meter:
            for first in range(0, n, width):
                await asyncio.gather(*(asyncio.to_thread(cached, i) for i in range(first, first + width)))
        return meter

    meter = asyncio.run(main())
    return {"per_second": n / meter.seconds, "per_cpu_second": n / meter.cpu}


def imports(_: dict[str, Any]) -> Numbers:
    """Milliseconds to import it."""
    return {"engine": importing("joblib")}
