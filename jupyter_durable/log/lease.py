"""Who may write a branch: a lease that lasts as long as an execution, and that the death of its process ends.

The lock lies on ``locks/<branch>.lock``, which is never removed (two owners of two inodes would both be right).
The file says who holds it, so that a lock that only a forked child of a dead process keeps open does not count: the
next taker then locks the next byte. While a taker writes its name it holds the byte `_DOOR`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec

from jupyter_durable import clock
from jupyter_durable.errors import BranchBusy
from jupyter_durable.log import files, locks
from jupyter_durable.log.base import Holder

_DOOR = 1 << 40
_ROOM = 512
"""Bytes that the name of a holder takes in the file, so that a shorter one leaves nothing of a longer one behind."""


class _Name(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the lock file says about its holder."""

    pid: int = 0
    started: str = ""
    """Start time of the process, in the system's own counting: tells it from a later one with the same pid."""
    boot: str = ""
    host: str = ""
    notebook: str = ""
    execution: str = ""
    since: float = 0.0
    byte: int = 0
    """The byte that is locked."""


class Lease:
    """The right to write a branch."""

    def __init__(self, path: Path, held: locks.Held) -> None:
        self.path = path
        self._held = held

    def release(self) -> None:
        """Let the branch go. Idempotent."""
        self._held.release()


def take(path: Path, *, branch: str, notebook: str, execution: str, run: str = "") -> Lease:
    """Take the lease at once.

    Raises:
        BranchBusy: another live execution has it.
        LogUnusable: the lock file cannot be made or written.
    """
    door = None
    try:
        door = locks.take_within(path, _DOOR, 1.0)
        name = _read(path)
        byte = name.byte
        held = None if door is None else locks.locks.take(path, byte)
        if held is None and door is not None and name.pid and not _alive(name):
            byte += 1
            held = locks.locks.take(path, byte)
        if held is None:
            raise busy(run, branch, _holder(name))
        try:
            _write(path, notebook=notebook, execution=execution, byte=byte)
        except BaseException:
            held.release()
            raise
        return Lease(path, held)
    except OSError as error:
        raise files.unusable("lock the branch with", path, error) from error
    finally:
        if door is not None:
            door.release()


def holder(path: Path) -> Holder | None:
    """Who holds the lease now; ``None`` if nobody does, or only a leftover child of a process that is gone."""
    while True:
        name = _read(path)
        if not locks.locks.is_held(path, name.byte):
            return None
        if name.pid and _alive(name):
            return _holder(name)
        if locks.locks.is_held(path, _DOOR):  # a taker has the lock and is writing its name
            return _holder(name)
        if _read(path) == name:
            return None


def last_execution(path: Path) -> str:
    """The execution that had the lease last, as the lock file says; empty if unknown."""
    return _read(path).execution


def busy(run: str, branch: str, who: Holder) -> BranchBusy:
    """The error for a branch that somebody else holds; ``run`` is the run's name."""
    from datetime import UTC, datetime

    since = datetime.fromtimestamp(who.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    place = f" for {who.notebook}" if who.notebook else ""
    whom = f"process {who.pid} on {who.host}{place}, since {since}" if who.pid else "a process that has just begun"
    return BranchBusy(
        f"Run `{run}`, branch `{branch}` is being executed by {whom}. Nothing was executed here. Wait for it, "
        f"interrupt it there, or give this run a name of its own (%%durable NAME).",
        run=run,
        branch=branch,
        pid=who.pid,
        host=who.host,
        notebook=who.notebook,
        since=who.since,
    )


def _holder(name: _Name) -> Holder:
    return Holder(pid=name.pid, host=name.host, notebook=name.notebook, since=name.since)


def _read(path: Path) -> _Name:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return _Name()
    try:
        return msgspec.json.decode(text.rstrip(b" \n\0"), type=_Name)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Name()


def _write(path: Path, *, notebook: str, execution: str, byte: int) -> None:
    pid = os.getpid()
    name = _Name(
        pid=pid,
        started=_start_time(pid),
        boot=_boot(),
        host=socket.gethostname(),
        notebook=notebook[-200:],
        execution=execution,
        since=clock.now(),
        byte=byte,
    )
    text = msgspec.json.encode(name).ljust(_ROOM - 1) + b"\n"
    fd = files.hooks.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        files.write_all(fd, text)
        if os.fstat(fd).st_size > len(text):
            files.hooks.truncate(fd, len(text))
    finally:
        os.close(fd)


def _alive(name: _Name) -> bool:
    """Whether the named process lives; one on another machine, where it cannot be asked, counts as living."""
    if name.host != socket.gethostname():
        return True
    if name.boot != _boot():
        return False
    if name.pid == os.getpid():
        return True
    if name.started:
        return _start_time(name.pid) == name.started
    return _answers(name.pid)


def _answers(pid: int) -> bool:
    """Whether there is a process with a pid, where its start time is not known."""
    if os.name == "nt":  # os.kill would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is another user's
    return True


def _start_time(pid: int) -> str:
    if sys.platform != "linux":
        return ""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return "gone"
    return "gone" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


_PROBE = """
import sys
from pathlib import Path
from jupyter_durable.log import locks
path = Path(sys.argv[1])
seen = locks.locks.is_held(path, 0)
taken = locks.locks.take(path, 0)
print("held" if seen else "free", "refused" if taken is None else "granted")
"""


def probe_locks(directory: Path) -> str | None:
    """Try with a second process whether locks work in a directory; a sentence if they do not, else ``None``."""
    path = directory / f".probe-{os.getpid()}-{clock.token_bytes(4).hex()}.lock"
    try:
        mine = locks.locks.take(path, 0)
        if mine is None:
            return f"A lock on a new file in {directory} is refused; several kernels cannot use this log safely."
        try:
            while_held = _ask_other(path)
        finally:
            mine.release()
        after = _ask_other(path)
    except OSError as error:
        return f"Files in {directory} cannot be locked ({error}); keep the log on a local disk."
    finally:
        for left in directory.glob(f"{path.name}*"):
            left.unlink(missing_ok=True)
    if (while_held, after) == ("held refused", "free granted"):
        return None
    return (
        f"Locks do not work in {directory} (while held, another process saw: {while_held}; after: {after}). Use one "
        "kernel at a time there, or move the log to a local disk with JUPYTER_DURABLE_LOG."
    )


def _ask_other(path: Path) -> str:
    # Not from the current folder: a log that came by mail must not bring modules along (-P, and a neutral folder).
    answer = subprocess.run(
        [sys.executable, "-P", "-c", _PROBE, str(path.absolute())],
        capture_output=True, text=True, timeout=60, check=False, cwd=path.absolute().anchor,
    )  # fmt: skip
    return answer.stdout.strip() or answer.stderr.strip().rpartition("\n")[2]
