"""Death and loss of power at any moment: what a log promised to keep is kept."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_durable.log import files
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin, completed, end, plain, python, started, step

posix = pytest.mark.skipif(os.name == "nt", reason="SIGKILL")

WRITE_AND_DIE = """
import os, signal, sys
from jupyter_durable.log import files
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin, end, step

class Deadly(files.FileLayer):
    journal = -1
    left = 0
    def open(self, path, flags, mode=0o666):
        fd = super().open(path, flags, mode)
        if path.suffix == ".jsonl":
            Deadly.journal = fd
        return fd
    def write(self, fd, data):
        if fd == Deadly.journal:
            self.tick()
        taken = super().write(fd, data)
        if fd == Deadly.journal:
            self.tick()
        return taken
    def tick(self):
        Deadly.left -= 1
        if Deadly.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

for line in sys.stdin:
    death, _, directory = line.strip().partition(" ")
    child = os.fork()
    if child == 0:
        Deadly.left = int(death)
        files.hooks = Deadly()
        writer = begin(LocalLog(directory))
        for number in range(4):
            step(writer, number, n=number)
            writer.flush()
        end(writer)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@posix
def test_a_writer_killed_before_or_after_any_line_keeps_every_line_that_it_wrote(tmp_path: Path) -> None:
    process = python(WRITE_AND_DIE)
    for death in range(1, 30):
        log = LocalLog(tmp_path / f"log-{death}")
        process.stdin.write(f"{death} {log.directory}\n")
        process.stdin.flush()
        status = int(process.stdout.readline())

        lines = min(death // 2, 10)
        assert [each.seq for each in log.history("b1")] == list(range(lines))
        assert log.holder("b1") is None
        records = log.executions()
        assert [record.running for record in records] == [False] * bool(lines)
        writer = begin(log)
        assert writer.head.seq == lines
        writer.close()
        if status == 0:
            break
        assert status == -signal.SIGKILL
    assert death == 21
    process.stdin.close()
    process.wait()
    process.stdout.close()
    process.stderr.close()


class Unplugged(files.FileLayer):
    """A disk that keeps, at loss of power, exactly what was flushed: bytes by fdatasync, names by the directory."""

    def __init__(self) -> None:
        self.open_files: dict[int, Path] = {}
        self.contents: dict[Path, bytes] = {}
        """Flushed bytes, by the name that the file had then."""
        self.names: dict[Path, bytes] = {}
        """What is found after the loss of power."""

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        fd = super().open(path, flags, mode)
        self.open_files[fd] = path
        return fd

    def fdatasync(self, fd: int) -> None:
        super().fdatasync(fd)
        path = self.open_files[fd]
        content = path.read_bytes()
        self.contents[path] = content
        if path in self.names:
            self.names[path] = content

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self.contents[target] = self.contents.get(source, b"")

    def fsync_dir(self, path: Path) -> None:
        super().fsync_dir(path)
        for found in path.iterdir():
            if found.is_file():
                self.names[found] = self.contents.get(found, b"")

    def lose_power(self, directory: Path, target: Path, choose: random.Random) -> None:
        """Lay out what survived; of bytes that were never flushed, any of their pages may have been written, too."""
        for name in ("journal", "locks", "blobs"):
            (target / name).mkdir(parents=True)
        for path, content in self.names.items():
            place = target / path.relative_to(directory) if path.is_relative_to(directory) else None
            if place is None:
                continue
            now = path.read_bytes() if path.exists() else content
            tail = bytearray(now[len(content) :])
            for page in range(0, len(tail), 512):
                if choose.random() < 0.5:
                    tail[page : page + 512] = bytes(len(tail[page : page + 512]))
            kept = choose.randrange(len(tail) + 1)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content + tail[:kept])


@pytest.mark.parametrize("seed", range(25))
def test_every_event_and_blob_before_a_completed_flush_survives_a_loss_of_power(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    disk = Unplugged()
    promised = 0
    blobs: list[str] = []
    with files.use(disk):
        log = LocalLog(tmp_path / ".durable")
        writer = begin(log)
        promised = 1
        for number in range(choose.randrange(1, 12)):
            seq = writer.append(started(n=number))
            if choose.random() < 0.3:
                blobs.append(writer.put_blob(os.urandom(choose.choice([1000, 300_000]))))
            writer.append(completed(seq, "x" * choose.choice([10, 3000])))
            if choose.random() < 0.6:
                writer.flush()
                promised = seq + 2
        written = plain(log.history("b1"))
        disk.lose_power(log.directory, tmp_path / "after", choose)
        writer._journal.abandon()
        writer.close()

    after = LocalLog(tmp_path / "after")

    found = plain(after.history("b1"))
    assert len(found) >= promised
    assert found == written[: len(found)]
    for digest in blobs:
        assert after.read_blob(digest)
    writer = begin(after)
    assert writer.head.seq == len(found)
    writer.close()


def test_a_flush_with_nothing_new_touches_no_disk(local: LocalLog) -> None:
    flushed = 0

    class Counting(files.FileLayer):
        def fdatasync(self, fd: int) -> None:
            nonlocal flushed
            flushed += 1
            super().fdatasync(fd)

    writer = begin(local)
    with files.use(Counting()):
        writer.flush()
        assert flushed == 0
        step(writer)
        writer.flush()
        writer.flush()
        assert flushed == 1
        end(writer)
        assert flushed == 2


def test_durability_process_flushes_at_the_end_only(local: LocalLog) -> None:
    flushed = 0

    class Counting(files.FileLayer):
        def fdatasync(self, fd: int) -> None:
            nonlocal flushed
            flushed += 1
            super().fdatasync(fd)

    with files.use(Counting()):
        writer = begin(local, durability="process")
        step(writer)
        writer.flush()
        writer.put_blob(os.urandom(300_000))
        assert flushed == 0
        end(writer)
        assert flushed == 1


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the names of files")
def test_a_fold_flushes_the_journal_before_it_copies(local: LocalLog) -> None:
    done: list[str] = []

    class Watch(files.FileLayer):
        def fdatasync(self, fd: int) -> None:
            done.append(Path(f"/proc/self/fd/{fd}").readlink().suffix)
            super().fdatasync(fd)

        def reached(self, point: str) -> None:
            done.append(point)

    writer = begin(local, durability="process")
    step(writer)
    with files.use(Watch()):
        local.fold()

    assert done.index(".jsonl") < done.index("fold: copied")
    writer.close()


@pytest.mark.skipif(shutil.which("strace") is None, reason="watches system calls")
def test_duckdb_itself_flushes_its_file_when_a_fold_commits(local: LocalLog) -> None:
    """The product may not: opening and closing the file would drop DuckDB's lock on it. So this is relied on."""
    writer = begin(local)
    step(writer)
    end(writer)
    code = "import sys; from jupyter_durable.log.local import LocalLog; print(LocalLog(sys.argv[1]).fold())"
    trace = local.directory.parent / "trace"
    ran = subprocess.run(
        [
            "strace",
            "-f",
            "-y",
            "-o",
            trace,
            "-e",
            "trace=fsync,fdatasync,unlink",
            sys.executable,
            "-c",
            code,
            local.directory,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in ran.stderr.lower():
        pytest.skip("tracing is not allowed here")

    calls = trace.read_text().splitlines()
    removed = next(i for i, call in enumerate(calls) if "unlink" in call and ".jsonl" in call)
    assert any("sync(" in call and "log.duckdb>" in call for call in calls[:removed])
