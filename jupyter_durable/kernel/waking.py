"""``durable.wake()``: parked cells of this kernel go on by themselves when what they wait for is over.

The kernel is asked to run the cell by a request of its own, through its own connection, as a front end would: so it
takes its place among the cells that people run, and never runs beside one. What the cell shows belongs to that request,
and no front end draws it; its results are in the log, and running the cell shows them.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any

import msgspec

from jupyter_durable import answering, clock
from jupyter_durable.errors import LogError, UsageError
from jupyter_durable.log.base import EventLog

if TYPE_CHECKING:
    from jupyter_durable.kernel.live import Surroundings

EVERY = 0.5
"""Seconds between two looks at what parked cells wait for."""


class ParkedCell(msgspec.Struct, frozen=True):
    """A cell whose run is parked."""

    run: str
    source: str
    cell: str
    """Its id; empty where the front end sends none."""
    stdin: bool
    """Whether a person sat in front of it."""


class Waker:
    """The parked cells of one kernel, and the thread that looks after them while waking is on."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._lock = threading.Lock()
        self._parked: dict[str, ParkedCell] = {}
        self._stop: threading.Event | None = None

    def note(self, cell: ParkedCell) -> None:
        """A cell has parked."""
        with self._lock:
            self._parked[cell.run] = cell

    def forget(self, run: str) -> None:
        """A cell of this run has begun: whatever becomes of it, nobody need wake it."""
        with self._lock:
            self._parked.pop(run, None)

    def switch(self, on: bool) -> int:
        """Begin or end looking; returns how many cells are parked now.

        Raises:
            UsageError: there is no kernel that could be asked, as in a terminal.
        """
        if not hasattr(self._around.shell, "kernel"):
            raise UsageError("`durable.wake()` needs a Jupyter kernel; in a terminal run the cell again.")
        with self._lock:
            if self._stop is not None:
                self._stop.set()
                self._stop = None
            if on:
                self._stop = threading.Event()
                threading.Thread(target=self._look, args=(self._stop,), name="durable-wake", daemon=True).start()
            return len(self._parked)

    def _look(self, stop: threading.Event) -> None:
        while not stop.wait(EVERY):
            with self._lock:
                parked = list(self._parked.values())
            for cell in parked:
                try:
                    ready = can_go_on(self._around.log, cell.run)
                except LogError:
                    continue  # the cell itself will say so, when somebody runs it
                if ready and not stop.is_set():
                    self.forget(cell.run)
                    request(cell, stop)


def can_go_on(log: EventLog, run: str) -> bool:
    """Whether something that a parked run waits for is over."""
    waits = answering.waiting(log, run)
    if not waits or any(wait.running for wait in waits):
        return False  # somebody else has gone on with it
    now = clock.now()
    return any(wait.answer is not None or (wait.info.until is not None and now >= wait.info.until) for wait in waits)


def request(cell: ParkedCell, stop: threading.Event) -> None:
    """Ask this kernel to run a cell, and wait for its end: the kernel runs one after the other in any case."""
    from ipykernel.connect import get_connection_file
    from jupyter_client.blocking.client import BlockingKernelClient

    client: Any = BlockingKernelClient(connection_file=get_connection_file())
    client.load_connection_file()
    client.start_channels(iopub=False, stdin=False, hb=False, control=False)
    try:
        content = {
            "code": cell.source, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": cell.stdin, "stop_on_error": False,
        }  # fmt: skip
        metadata = {"cellId": cell.cell} if cell.cell else {}
        message = client.session.msg("execute_request", content, metadata=metadata)
        client.shell_channel.send(message)
        while not stop.is_set():
            try:
                reply = client.get_shell_msg(timeout=1.0)
            except queue.Empty:
                continue
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return
    finally:
        client.stop_channels()


def wake(on: bool) -> str:
    """Answer to ``durable.wake``.

    Raises:
        UsageError: the extension is not loaded, or there is no kernel.
    """
    from IPython.core.getipython import get_ipython

    from jupyter_durable.kernel.extension import loaded

    shell = get_ipython()
    hooks = None if shell is None else loaded(shell)
    if hooks is None:
        raise UsageError(
            "`durable.wake()` looks after the durable cells of a kernel: first `%load_ext jupyter_durable`."
        )
    parked = hooks.surroundings.waker.switch(on)
    if not on:
        return "Parked cells wait until they are run."
    return f"Parked cells go on by themselves when what they wait for is over ({parked} now)."
