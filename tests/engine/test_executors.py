"""``durable.map(executor=...)``: the worker works, the log stays here, and a dead worker is a failed attempt."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jupyter_durable import durable, step
from jupyter_durable.errors import UnstorableValue, UsageError, WorkerFailed
from tests.engine.farming import Odd, Page, asks_a_model, calls_a_step, deadly, odd, page, unstorable
from tests.engine.harness import MortalLog, play


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


def forked() -> Executor:
    return ProcessPoolExecutor(2, multiprocessing.get_context("fork"))


def spawned() -> Executor:
    return ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))


def of_loky() -> Executor:
    loky = pytest.importorskip("loky")
    return loky.get_reusable_executor(max_workers=2, timeout=20)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Dask cluster of two processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(params=["fork", "spawn", "loky", "dask"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[[], Executor]]:
    """What makes an executor of other processes."""
    if request.param == "dask":
        client = request.getfixturevalue("cluster")
        yield client.get_executor
        return
    makers = {"fork": forked, "spawn": spawned, "loky": of_loky}
    executor = makers[request.param]()
    yield lambda: executor
    executor.shutdown(wait=True)


def test_values_come_back_from_workers_and_replay_without_them(
    make: Callable[[], Executor], log: MortalLog, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNEL", str(os.getpid()))
    executor = make()

    async def program() -> Any:
        return await durable.map(page, range(5), executor=executor, concurrency=3)

    first = play(program, log)
    assert first.error is None, first.error
    said = capsys.readouterr().out
    executor.shutdown()
    second = play(program, log)

    assert first.value == second.value == [Page(n, "elsewhere") for n in range(5)]
    assert (first.live, second.live) == (5, 0)
    assert sorted(said.split("\n")) == ["", *(f"page {n}" for n in range(5))]


def test_errors_keep_their_class_and_their_traceback(make: Callable[[], Executor], log: MortalLog) -> None:
    async def program() -> Any:
        return await durable.map(odd, range(3), executor=make, on_error="keep")

    kept = play(program, log).value

    assert kept[::2] == [0, 2]
    assert type(kept[1]) is Odd
    assert "raise Odd" in kept[1].__notes__[0]


def test_what_cannot_be_stored_fails_with_its_path_and_is_not_executed_again(
    make: Callable[[], Executor], log: MortalLog
) -> None:
    async def program() -> Any:
        return await durable.map(unstorable, [7], executor=make)

    first = play(program, log)

    assert isinstance(first.error, UnstorableValue)
    assert first.error.path == "result['lock']"
    assert play(program, log).live == 0


def test_a_worker_that_dies_fails_one_attempt(make: Callable[[], Executor], log: MortalLog, tmp_path: Path) -> None:
    tries = step(retries=4, backoff=0.01)(deadly)
    items = [(str(tmp_path / "mark"), n) for n in range(6)]
    executor = make()

    async def program() -> Any:
        return await durable.map(tries, items, executor=executor, concurrency=2)

    assert play(program, log).value == list(range(6))
    assert (tmp_path / "mark").exists()


def test_without_retries_the_items_that_failed_are_tried_again_by_the_next_execution(
    log: MortalLog, tmp_path: Path
) -> None:
    items = [(str(tmp_path / "mark"), n) for n in range(6)]

    async def program() -> Any:
        return await durable.map(deadly, items, executor=forked, concurrency=1)

    first = play(program, log)
    assert isinstance(first.error, WorkerFailed)
    second = play(program, log)

    assert second.value == list(range(6))
    assert second.live == 4  # 0 and 1 were done


def test_a_step_in_a_worker_says_that_it_cannot_be_recorded_there(make: Callable[[], Executor], log: MortalLog) -> None:
    async def program() -> Any:
        return await durable.map(calls_a_step, [1], executor=make)

    error = play(program, log).error

    assert isinstance(error, UsageError)
    assert "child process never writes the log" in str(error)


class _Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_a_model_call_in_a_worker_is_said_to_be_unrecorded(log: MortalLog) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def program() -> Any:
        return await durable.map(asks_a_model, [f"http://127.0.0.1:{server.server_port}"], executor=spawned)

    result = play(program, log)
    server.shutdown()
    server.server_close()

    assert result.value == [200], result.error
    assert result.execution is not None
    (notice,) = result.execution.stats.notices
    assert "in a worker: the call is not recorded" in notice


def test_functions_and_classes_of_a_notebook_travel(make: Callable[[], Executor], log: MortalLog) -> None:
    factor = 3

    def local(n: int) -> int:
        return n * factor

    async def program() -> Any:
        return await durable.map(local, range(3), executor=make)

    assert play(program, log).value == [0, 3, 6]


def test_what_cannot_travel_is_named(log: MortalLog) -> None:
    lock = threading.Lock()

    def holds(n: int) -> int:
        with lock:
            return n

    async def program() -> Any:
        return await durable.map(holds, range(3), executor=forked)

    error = play(program, log).error
    assert isinstance(error, UsageError)
    assert "cannot be sent to a worker" in str(error)


def test_a_pool_of_threads_is_a_part_of_the_run(log: MortalLog) -> None:
    with ThreadPoolExecutor(2, thread_name_prefix="mine") as pool:

        async def program() -> Any:
            return await durable.map(_where, range(4), executor=pool)

        first, second = play(program, log), play(program, log)

    assert [name.split("_")[0] for name, _ in first.value] == ["mine"] * 4
    assert first.value == second.value
    assert first.live == 8  # each with a step inside


def _where(n: int) -> tuple[str, int]:
    from tests.engine.farming import inner

    return threading.current_thread().name, inner(n)


def test_a_map_over_workers_does_not_hold_the_loop_up(log: MortalLog) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    async def program() -> Any:
        task = asyncio.create_task(beat())
        try:
            return await durable.map(partial(pow, 2), range(3), executor=forked)
        finally:
            task.cancel()

    assert play(program, log).value == [1, 2, 4]
    assert beats > 3


def test_outside_of_a_run_workers_work_too() -> None:
    assert durable.map(odd, [0, 2], executor=forked) == [0, 2]
