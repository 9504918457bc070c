"""The limit of this disk and of Python: one JSON record appended to a file, with or without a flush. Nothing else.

No checksum, no intent, no identity, no replay: what every durable thing must cost at least.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import values
from benchmarks.measure import Meter, Numbers, die, report, size_of, turns

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def _open(params: dict[str, Any]) -> int:
    return os.open(Path(params["directory"]) / "bare.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def steps(params: dict[str, Any]) -> Numbers:
    """One record for each step."""
    n, kind, flushed = params["n"], params["value"], params["flushed"]
    made = [values.make(kind, i) for i in range(min(n, 10_000 if kind.startswith("text") else 40))]
    if kind == "array":
        made = [memoryview(one) for one in made]  # raw bytes: no encoding can be cheaper
    fd = _open(params)
    with Meter() as meter:
        for i in range(n):
            value = made[i % len(made)]
            record = value if kind == "array" else _encode({"seq": i, "result": value}) + b"\n"
            os.write(fd, record)
            if flushed:
                os.fdatasync(fd)
    os.close(fd)
    return {**meter.per(n), "bytes": size_of(params["directory"]) / n}


def bursts(params: dict[str, Any]) -> Numbers:
    """The same, flushed, in turns with another subject."""
    kind, size = params["value"], params["burst"]
    made = [memoryview(v) if kind == "array" else v for v in (values.make(kind, i) for i in range(40))]
    fd = _open(params)
    for turn in turns():
        with Meter() as meter:
            for i in range(turn * size, (turn + 1) * size):
                value = made[i % len(made)]
                os.write(fd, value if kind == "array" else _encode({"seq": i, "result": value}) + b"\n")
                os.fdatasync(fd)
        report({"seconds": meter.seconds})
    return {}


def prepare(params: dict[str, Any]) -> Numbers:
    """As many records, then SIGKILL."""
    fd = _open(params)
    for i in range(params["n"]):
        os.write(fd, _encode({"seq": i, "result": values.make(params["value"], i)}) + b"\n")
    report({})
    die()
    return {}


def resume(params: dict[str, Any]) -> Numbers:
    """Read and parse all records and index them by number."""
    with Meter() as meter:
        text = (Path(params["directory"]) / "bare.jsonl").read_bytes()
        index = {record["seq"]: record["result"] for record in map(_decode, text.splitlines())}
    assert len(index) == params["n"]
    return {"seconds": meter.seconds, "cpu": meter.cpu}


def parallel(params: dict[str, Any]) -> Numbers:
    """A flush for every ``width`` records."""
    n, width = params["n"], params["width"]
    fd = _open(params)
    with Meter() as meter:
        for first in range(0, n, width):
            for i in range(first, first + width):
                os.write(fd, _encode({"seq": i, "result": i}) + b"\n")
            os.fdatasync(fd)
    return {"per_second": n / meter.seconds, "per_cpu_second": n / meter.cpu}
