"""`with durable.run(...)` in ordinary code, over a log on the disk."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import threading
from pathlib import Path

import msgspec
import pytest

from jupyter_durable import client, durable, errors, step
from jupyter_durable.log import open_log


class Count:
    """How often bodies ran; not comparable."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n = 0


count = Count()


@step
def big(i: int) -> dict[str, object]:
    count.n += 1
    return {"i": i, "text": "x" * 1000}


@step
def child(i: int) -> int:
    return i


def test_a_long_history_is_replayed_without_holding_its_values(tmp_path: Path) -> None:
    """Above 16 MiB values are read when they are asked for."""
    count.n = 0
    n = 16_000
    with durable.run("long", log=str(tmp_path / "log"), durability="process") as run:
        for i in range(n):
            big(i)
        assert run.execution is not None
        run.execution.writer.close()
        run.execution._closed.set()  # as if the process had died here: no end is written

    with durable.run("long", log=str(tmp_path / "log"), durability="process") as run:
        assert run.execution is not None
        entries = run.execution.replay.own.entries.values()
        unset = sum(entry.payload is not None and entry.payload.data is msgspec.UNSET for entry in entries)
        values = [big(i) for i in range(n)]

    assert unset == n
    assert values[12_345] == {"i": 12_345, "text": "x" * 1000}
    assert count.n == n


def test_a_completed_run_says_loudly_that_it_was_replayed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        with durable.run("report", log=str(tmp_path / "log")):
            child(1)

    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "had completed before" in warnings[0]
    assert "fresh=True" in warnings[0]


def test_a_run_inside_of_a_run_is_refused(tmp_path: Path) -> None:
    with (
        durable.run("outer", log=str(tmp_path / "log")),
        pytest.raises(errors.UsageError, match="inside of run `outer`"),
    ):
        durable.run("inner", log=str(tmp_path / "log")).__enter__()


def test_a_name_is_needed() -> None:
    with pytest.raises(errors.UsageError, match="name"):
        durable.run("  ")


def test_fresh_and_from_exclude_each_other() -> None:
    with pytest.raises(errors.UsageError, match="exclude"):
        durable.run("x", fresh=True, from_step="a")


def test_a_child_process_never_writes(tmp_path: Path) -> None:
    """Rule 6: a step in a forked child raises instead of running unrecorded."""
    context = multiprocessing.get_context("fork")
    parent, end = context.Pipe()

    def inside() -> None:
        try:
            child(1)
        except errors.UsageError as error:
            end.send(str(error))

    with durable.run("forks", log=str(tmp_path / "log")):
        process = context.Process(target=inside)
        process.start()
        process.join()
        assert "child process" in parent.recv()


def test_everything_is_in_the_database_after_the_end(tmp_path: Path) -> None:
    import duckdb

    with durable.run("folded", log=str(tmp_path / "log")):
        child(5)

    with duckdb.connect(str(tmp_path / "log" / "log.duckdb"), read_only=True) as connection:
        rows = connection.execute("SELECT name, status FROM steps").fetchall()
    assert rows == [("child", "completed")]


def test_a_folded_run_replays_from_the_database(tmp_path: Path) -> None:
    count.n = 0
    for _ in range(2):
        with durable.run("folded", log=str(tmp_path / "log")):
            assert big(3)["i"] == 3

    assert count.n == 1
    assert open_log(tmp_path / "log").executions()[0].folded


def test_an_async_block_is_a_run_too(tmp_path: Path) -> None:
    @step(name="fetch")
    async def fetch(i: int) -> int:
        await asyncio.sleep(0)
        count.n += 1
        return i

    async def main() -> list[int]:
        async with durable.run("async", log=str(tmp_path / "log")):
            return await asyncio.gather(*(fetch(i) for i in range(5)))

    count.n = 0
    assert asyncio.run(main()) == asyncio.run(main()) == [0, 1, 2, 3, 4]
    assert count.n == 5


def test_damage_in_one_run_does_not_stop_another(tmp_path: Path) -> None:
    where = tmp_path / "log"
    for name in ("one", "two"):
        with contextlib.suppress(KeyError), durable.run(name, log=str(where)):
            child(1)
            raise KeyError(name)
    run_one = client.find_run(open_log(where), "one")
    journal = next((where / "journal").glob(f"{run_one[:8]}-*.jsonl"))
    journal.write_bytes(b"x" + journal.read_bytes()[1:])

    with durable.run("two", log=str(where)):
        assert child(1) == 1
    with pytest.raises(errors.LogDamaged):
        durable.run("one", log=str(where)).__enter__()


def test_a_block_that_asks_for_something_else_is_told_that_its_code_is_not_recorded():
    """Its author may have edited it, so nobody says that nothing has changed."""
    log = open_log("memory:")
    with pytest.raises(ZeroDivisionError), durable.run("edited", log=log):
        child(1)
        raise ZeroDivisionError

    with (
        pytest.raises(errors.NondeterminismError, match=r'is not recorded.*from_step="1"') as told,
        durable.run("edited", log=log),
    ):
        big(1)
    assert "as recorded, and still" not in str(told.value)

    with durable.run("edited", log=log, from_step="1"):
        assert big(1)["i"] == 1
