"""``--replay-only`` spends nothing: no child process that could ask a model unseen, no socket to one past the hooks.

The interpreter tells about both before they happen (audit events, PEP 578). Such a listener cannot be taken out again,
so it is put in by the first execution that needs it, and looks at nothing while none does. Other cells and threads are
left alone: what counts is the run that the code belongs to. Code in C that asks the system itself stays unseen.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from jupyter_durable.engine.context import current
from jupyter_durable.engine.execution import Execution
from jupyter_durable.errors import CannotHook, ReplayOnlyError, RunStopped

_STARTS = {
    "subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn",
}  # fmt: skip
_SOCKETS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.connect"}
_WATCHED = _STARTS | _SOCKETS

_ABOUT_THE_MACHINE = {
    "arp", "cc", "gcc", "getconf", "hostname", "ifconfig", "ip", "ld", "ldconfig", "locale", "lsb_release", "lscpu",
    "netstat", "nvidia-smi", "objdump", "stty", "sw_vers", "sysctl", "tput", "uname",
}  # fmt: skip
"""Programs that libraries start to learn where they are (`platform`, `uuid`, `ctypes`): they ask nobody."""

_live: set[Execution] = set()
_lock = threading.Lock()
_listens = False


def begin(execution: Execution) -> None:
    """Watch an execution that may not spend anything. Called with each one that begins."""
    global _listens
    if not execution.spec.flags.replay_only:
        return
    with _lock:
        _live.add(execution)
        if not _listens:
            _listens = True
            sys.addaudithook(_listen)
    execution.on_closed.append(_live.discard)


def install(module: ModuleType) -> None:
    """Hook into ``multiprocessing.process``: some of its ways to start a process tell nobody."""
    process = getattr(module, "BaseProcess", None)
    if process is None or not hasattr(process, "start"):
        raise CannotHook("`multiprocessing` is not as it was known: `--replay-only` does not see its processes start.")
    original = process.start

    @wraps(original)
    def start(self: Any) -> None:
        if _live and (execution := _watched()) is not None:
            raise _child(execution, "a process of `multiprocessing`")
        original(self)

    process.start = start


def _listen(event: str, args: tuple[Any, ...]) -> None:
    # Every import, file and compilation comes by here as long as the process lives.
    if not _live or event not in _WATCHED:
        return
    execution = _watched()
    if execution is None:
        return
    if event in _SOCKETS:
        _look_at_socket(execution, args[1] if event == "socket.connect" else args[0])
    elif (program := _program(event, args)) not in _ABOUT_THE_MACHINE:
        raise _child(execution, f"`{program}`" if program else "a child process")


def _watched() -> Execution | None:
    """The execution that the running code belongs to, if it is one that may not spend anything."""
    frame = current()
    execution: Execution | None = frame.execution if frame is not None else None
    if execution is None or execution not in _live or execution.ended or execution.pid != os.getpid():
        return None
    return execution


def _program(event: str, args: tuple[Any, ...]) -> str:
    """Name of the program that is started; never its arguments, which may hold a key."""
    if event not in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn"):
        return ""
    first = args[1 if event == "os.spawn" else 0]
    try:
        return Path(os.fsdecode(first)).name
    except TypeError:
        return ""


def _child(execution: Execution, what: str) -> RunStopped:
    return RunStopped(
        ReplayOnlyError(
            f"{execution.place_of_run()}: `--replay-only` promises to spend nothing, and a child process could ask a "
            f"model unseen; starting {what} was refused. Call what starts it as a step (`@step`), and run the cell "
            f"once without `--replay-only`: then its result is recorded, and no process is needed to replay it.",
            **execution.where,
        )
    )


def _look_at_socket(execution: Execution, given: Any) -> None:
    host = given[0] if isinstance(given, tuple) and given else given
    host = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if not isinstance(host, str):
        return
    # Not before it is needed: an ordinary run must not wait for the whole of capture to be imported.
    from jupyter_durable.capture.inside import INSIDE, is_passing
    from jupyter_durable.capture.model_hosts import is_model_host

    if INSIDE.get() or not is_model_host(host) or is_passing(host):
        return
    raise RunStopped(
        ReplayOnlyError(
            f"{execution.place_of_run()}: `--replay-only` promises to spend nothing, and something that capture does "
            f"not know was about to connect to {host}; it was refused. Call it as a step (`@step`), and run the cell "
            f"once without `--replay-only`: then its result is recorded.",
            **execution.where,
        )
    )
