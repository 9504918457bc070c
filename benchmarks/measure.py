"""How things are measured: in fresh processes, with wall time, CPU time and bytes; flushes are counted by strace.

A *job* is a function of a subject (``benchmarks/subjects/NAME.py``) that takes parameters and returns numbers. It runs
in a process of its own (`run`), which imports nothing of the other subjects. Wall time is what a user waits for, and
grows with whatever else the machine does; CPU time of the whole process (all threads) hardly does. Both are shown.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent
MARK = "benchmark-result "
Numbers = dict[str, float]


class Meter:
    """Wall and CPU seconds of a ``with`` block."""

    def __enter__(self) -> Self:
        self._cpu = time.process_time()
        self._wall = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu

    def per(self, n: int, other: Meter | None = None) -> Numbers:
        """Microseconds for each of ``n`` steps, less what ``other`` (the bare function calls) took."""
        wall, cpu = (other.seconds, other.cpu) if other is not None else (0.0, 0.0)
        return {"us": (self.seconds - wall) / n * 1e6, "cpu_us": (self.cpu - cpu) / n * 1e6}


def bare_calls(fn: Callable[[int], object], n: int) -> Meter:
    """The cost of the function itself, called ``n`` times."""
    with Meter() as meter:
        for i in range(n):
            fn(i)
    return meter


def importing(*names: str) -> float:
    """Milliseconds to import modules."""
    began = time.perf_counter()
    for name in names:
        importlib.import_module(name)
    return (time.perf_counter() - began) * 1e3


def size_of(directory: Path | str) -> int:
    """Bytes of all files below a directory: their lengths, not the blocks that they occupy."""
    return sum(path.stat().st_size for path in Path(directory).rglob("*") if path.is_file())


def memory() -> tuple[float, float]:
    """MB that this process occupies now, and the most that it has occupied."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status))
    return int(found["VmRSS"]) / 1024, int(found["VmHWM"]) / 1024


def report(numbers: Mapping[str, float]) -> None:
    """Tell the process that started this one; used by jobs that end in another way than by returning."""
    print(MARK + json.dumps(numbers), flush=True)


def die() -> None:
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


class ChildFailed(Exception):
    """A job did not give a result; the text holds what it wrote last."""


def run(subject: str, job: str, params: Mapping[str, Any], *, timeout: float = 600, strace: str = "") -> Numbers:
    """Run a job in a fresh process.

    Args:
        subject: name of the module in `benchmarks.subjects`.
        job: function of that module.
        params: what it takes.
        timeout: seconds.
        strace: a file for the summary of the flushes that the process asked the kernel for; empty: do not trace.

    Raises:
        ChildFailed: it raised, or was killed before it had told its result.
    """
    command = [sys.executable, "-m", "benchmarks.subjects", subject, job, json.dumps(dict(params))]
    if strace:
        command = ["strace", "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", strace, *command]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise ChildFailed(f"{subject} {job}: no result within {timeout:.0f} s") from None
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(MARK):
            numbers: Numbers = json.loads(line[len(MARK) :])
            return numbers
    raise ChildFailed(f"{subject} {job}: exit {done.returncode}\n{(done.stderr or done.stdout)[-1500:]}")


def environment() -> dict[str, str]:
    """The environment of a job."""
    return {
        **os.environ,
        # A key of its own: the user's key signs nothing here.
        "JUPYTER_DURABLE_KEY_FILE": str(Path(tempfile.gettempdir()) / f"jd-bench-key-{os.getuid()}"),
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
        # Byte code is cached as it is for users, whatever the environment says, and not in the tree.
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / f"jd-bench-pycache-{os.getuid()}"),
        "PYTHONDONTWRITEBYTECODE": "",
    }


def turns() -> Iterator[int]:
    """In a job that takes turns with another: a number for every turn that the process is given."""
    for number, _ in enumerate(sys.stdin):
        yield number


def duel(job: str, sides: list[tuple[str, dict[str, Any]]], bursts: int, *, timeout: float = 600) -> list[list[float]]:
    """Run a job of two subjects side by side, in bursts that take turns, so that both meet the same disk.

    On a disk that others use too, the same flush takes 0.3 ms in one second and 6 ms in the next: what was measured a
    second apart does not compare.

    Args:
        job: function that does a burst for every number of `turns` and tells its seconds.
        sides: subject and parameters.
        bursts: how many each.
        timeout: seconds for all of it.

    Returns:
        Seconds of each burst, for each side.
    """
    ends = time.monotonic() + timeout
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.subjects", subject, job, json.dumps(params)],
            cwd=ROOT, env=environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for subject, params in sides
    ]  # fmt: skip
    took: list[list[float]] = [[] for _ in sides]
    try:
        for number in range(bursts + 1):  # the first one is warming up
            for side in range(len(sides)) if number % 2 else reversed(range(len(sides))):
                process = processes[side]
                assert process.stdin is not None
                assert process.stdout is not None
                try:
                    process.stdin.write("go\n")
                    process.stdin.flush()
                    line = process.stdout.readline()
                except BrokenPipeError:
                    line = ""
                if not line.startswith(MARK) or time.monotonic() > ends:
                    process.kill()
                    raise ChildFailed(f"{sides[side][0]} {job}: {line}{process.communicate()[1][-1500:]}")
                if number:
                    took[side].append(json.loads(line[len(MARK) :])["seconds"])
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return took


def flushes(subject: str, job: str, params: Mapping[str, Any], n: int) -> float | None:
    """Flushes for one step: the difference between two runs under strace, one with more steps than the other.

    Returns:
        ``None`` if strace is not here or does not work.
    """
    if shutil.which("strace") is None:
        return None
    counts = []
    for steps in (n, 3 * n):
        with scratch() as directory:
            summary = directory / "strace.txt"
            try:
                run(subject, job, {**params, "n": steps, "directory": str(directory)}, strace=str(summary))
                found = re.findall(
                    r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+.*\b(?:fsync|fdatasync)$", summary.read_text(), re.MULTILINE
                )
            except (ChildFailed, OSError):
                return None
            counts.append(sum(map(int, found)))
    return (counts[1] - counts[0]) / (2 * n)


def ram_disk() -> str | None:
    """A file system without a disk, on which a flush costs nothing; ``None`` where there is none."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@contextmanager
def scratch(*, ram: bool = False) -> Iterator[Path]:
    """A directory for one measurement, on the disk (``JD_BENCH_DIRECTORY``, else /var/tmp) or on a RAM disk."""
    disk = os.environ.get("JD_BENCH_DIRECTORY") or ("/var/tmp" if Path("/var/tmp").is_dir() else None)
    directory = Path(tempfile.mkdtemp(prefix="jd-bench-", dir=(ram_disk() or disk) if ram else disk))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def medians(samples: list[Numbers]) -> Numbers:
    """The median of every number, over repeats."""
    names = dict.fromkeys(name for sample in samples for name in sample)
    return {name: statistics.median(sample[name] for sample in samples if name in sample) for name in names}
