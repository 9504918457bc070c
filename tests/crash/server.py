"""Runs programs in processes that can be killed: a server that forks one for each life, or one life and no server.

Starting Python and importing everything takes a second; forking takes a millisecond. The fork is a real process, and
its death is a real one: it opens the log, takes its locks and reads its key after the fork, so that it shares no
descriptor and no memory of a log with anybody, the server has one thread and has never opened a log, and SIGKILL ends
it in the kernel as it ends any process. `test_a_forked_life_is_like_one_in_a_python_of_its_own` compares the two.

::

    python -m tests.crash.server            reads jobs as lines of JSON, answers each with a line
    python -m tests.crash.server --once     one job from stdin, in this very process
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, Literal

import msgspec

from jupyter_durable import api, clock, errors, running
from jupyter_durable.capture import prices
from jupyter_durable.engine.hooks import HOOKS
from jupyter_durable.event_data import Usage
from jupyter_durable.evidence import EvidenceBook
from jupyter_durable.log import database, files, fold, folded, local
from tests.crash import layers, outside, power, programs

_PR_SET_PDEATHSIG = 1
PRELOADED = (api, running, database, fold, folded, local, power)
HOOKS.set()  # lives inherit it: finding entry points takes longer than most lives
prices.priced(Usage(provider="openai", model="gpt-5", input=1, output=1))


class Job(msgspec.Struct, omit_defaults=True):
    """One life of a program, or a question to the server."""

    do: Literal["run", "start", "wait"] = "run"
    """``start``: answer with the pid at once; ``wait``: for the end of that one."""
    pid: int = 0
    world: str = ""
    program: str = ""
    """Empty: only fold the log."""
    layer: layers.Spec = layers.Spec()
    fold: bool = False
    """Fold at the end, as a run does. Without it the life is faster, and what it wrote stays in journals."""
    durability: str = "power"
    stay: bool = False
    """Do not exit at the end, but wait to be killed."""
    local: bool = False
    """Whether the steps count as code of the user's, to be read and compared. Reading takes half of a short life, and
    is the same in all of them; elsewhere steps count by name, as those of a library do."""
    largest_file: int = 0
    """If given, the kernel ends the process (SIGXFSZ) when a file is to grow beyond it."""


class Report(msgspec.Struct, omit_defaults=True):
    """What a process came to."""

    pid: int = 0
    signal: int = 0
    """That ended it; 0 if none did."""
    result: Any = None
    error: str = ""
    """Class of what the run raised."""
    message: str = ""
    facts: dict[str, Any] = {}
    live: int = -1
    """Steps that were executed."""
    events: int = 0
    ops: list[str] = []
    trace: str = ""
    """Traceback of the error, for the reader of a failed test."""
    folded: int = -1


class Unfolded(local.LocalLog):
    """A log whose runs leave the fold to somebody else."""

    def fold(self) -> int:
        return 0


def live(job: Job) -> Report:
    """Run a program to its end, or to the end of this process."""
    layer = layers.make(job.layer)
    report = Report(pid=os.getpid())
    if job.largest_file:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (job.largest_file, job.largest_file))
    with files.use(layer), clock.use(layer.clock):
        try:
            log = (local.LocalLog if job.fold or not job.program else Unfolded)(Path(job.world) / "log")
            if job.program:
                report.result = _run(job, log, report, layer.clock)
            else:
                report.folded = log.fold()
        except BaseException as error:  # whatever it is, the test wants to know
            error = _first(error)
            report.error, report.message = type(error).__name__, str(error)
            report.facts = {k: v for k, v in getattr(error, "facts", {}).items() if isinstance(v, int | str)}
            report.trace = "".join(traceback.format_exception(error))
    report.ops = layer.names
    report.events = layer.names.count("write journal")
    if isinstance(layer, power.Recording):
        layer.save(Path(job.world) / "trace")
    return report


class Loop(asyncio.SelectorEventLoop):
    """A loop that goes by the layer's clock."""

    def __init__(self, clock: layers.Clock) -> None:
        super().__init__()
        self._clock = clock

    def time(self) -> float:
        return self._clock.monotonic()


def _run(job: Job, log: Any, report: Report, clock: layers.Clock) -> Any:
    context = api.durable.run("p", log=log, durability=job.durability)  # type: ignore[arg-type]

    async def main() -> Any:
        try:
            async with context:
                return await programs.ASYNC[job.program]()
        finally:
            count(context)

    def count(context: Any) -> None:
        report.live = -1 if context.execution is None else context.execution.stats.live

    if job.program in programs.ASYNC:
        with asyncio.Runner(loop_factory=lambda: Loop(clock)) as runner:
            return runner.run(main())
    try:
        with context:
            return programs.SYNC[job.program]()
    finally:
        count(context)


def _first(error: BaseException) -> BaseException:
    """The error inside of a group, if it is the log's."""
    while isinstance(error, BaseExceptionGroup):
        ours = [one for one in error.exceptions if isinstance(one, errors.LogError | BaseExceptionGroup)]
        error = (ours or list(error.exceptions))[0]
    return error


def child(job: Job) -> None:
    """The life of a forked process; it never returns."""
    code = 70
    try:
        world = Path(job.world)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # nothing is left behind by a test that hangs
        os.environ[outside.WORLD] = job.world
        os.chdir(layers.ROOT if job.local else world)
        nothing = os.open(os.devnull, os.O_RDWR)
        said = os.open(world / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for fd, number in ((nothing, 0), (said, 1), (said, 2)):
            os.dup2(fd, number)
        (world / "report").unlink(missing_ok=True)
        report = live(job)
        while job.stay:
            signal.pause()
        (world / "report").write_bytes(msgspec.json.encode(report))
        code = 0
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


def start(job: Job) -> int:
    """Fork."""
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads > 1:
        raise RuntimeError(f"The server has {threads} threads; a fork of it would be no clean process.")
    pid = os.fork()
    if pid == 0:
        child(job)
    return pid


def wait(pid: int, world: str) -> Report:
    """Wait for a fork, and say what it came to."""
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return Report(pid=pid, signal=os.WTERMSIG(status))
    if os.WEXITSTATUS(status):
        return Report(pid=pid, error="Harness", message=(Path(world) / "said").read_text(encoding="utf-8"))
    return msgspec.json.decode((Path(world) / "report").read_bytes(), type=Report)


def warm_up() -> None:
    """Read the source of all steps once: what is found is remembered by the process, and costs most of a life."""
    book = EvidenceBook()
    for value in vars(programs).values():
        if hasattr(value, "__durable_step__"):
            book.of(value.__durable_step__)
    gc.freeze()  # a fork's garbage collector would copy all that it looks at


def main(words: list[str]) -> None:
    """Serve, until stdin ends."""
    if words == ["--once"]:
        child(msgspec.json.decode(sys.stdin.buffer.readline(), type=Job))
    warm_up()
    with contextlib.suppress(BrokenPipeError):
        while line := sys.stdin.buffer.readline():
            job = msgspec.json.decode(line, type=Job)
            if job.do == "wait":
                report = wait(job.pid, job.world)
            else:
                pid = start(job)
                report = Report(pid=pid) if job.do == "start" else wait(pid, job.world)
            sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
