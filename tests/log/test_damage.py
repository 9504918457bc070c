"""Whatever happens to the files, the log says so or goes on from the last whole line."""

from __future__ import annotations

import errno
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_durable.errors import LogDamaged, LogError, LogTooNew, LogUntrusted, LogUnusable, UsageError
from jupyter_durable.events import StepCompleted
from jupyter_durable.log import files
from jupyter_durable.log.local import LocalLog
from jupyter_durable.log.place import open_directory
from tests.log.making import begin, completed, end, header, last, plain, run_whole, started, step


def journal(log: LocalLog, execution: str) -> Path:
    return log.directory / "journal" / f"{execution}.jsonl"


def written(log: LocalLog, steps: int = 20, *, flush: bool = False) -> Path:
    """A journal that a killed process left: no end, never flushed unless asked for."""
    writer = begin(log, durability="power" if flush else "process")
    for number in range(steps):
        step(writer, number)
        if flush:
            writer.flush()
    writer._journal.abandon()
    writer.close()
    return journal(log, writer.execution)


def fresh(log: LocalLog) -> LocalLog:
    """The same log in another process, as far as memory goes."""
    return LocalLog(log.directory)


def test_a_journal_cut_anywhere_reads_up_to_the_last_whole_line_and_goes_on(local: LocalLog) -> None:
    path = written(local)
    whole = path.read_bytes()
    events = plain(local.history("b1"))
    choose = random.Random(20)

    for cut in sorted(choose.sample(range(len(whole) + 1), 300)):
        path.write_bytes(whole[:cut])
        lines = whole[:cut].count(b"\n")
        log = fresh(local)

        assert plain(log.history("b1")) == events[:lines]
        assert log.damage() == []
        if lines:
            [record] = log.executions()
            assert record.last.seq == lines - 1
            assert record.torn == cut - (whole[:cut].rfind(b"\n") + 1)
        else:
            assert log.executions() == []


def test_zeroes_at_the_end_are_a_torn_tail(local: LocalLog) -> None:
    path = written(local)
    events = plain(local.history("b1"))
    with path.open("ab") as file:
        file.write(b"\0" * 5000)

    log = fresh(local)

    assert plain(log.history("b1")) == events
    assert log.executions()[0].torn == 5000


def test_a_lost_page_behind_the_last_flush_is_a_torn_tail(local: LocalLog) -> None:
    path = written(local)
    lines = path.read_bytes().split(b"\n")
    lines[30] = b"\0" * len(lines[30])
    path.write_bytes(b"\n".join(lines))

    log = fresh(local)

    assert len(plain(log.history("b1"))) == 30
    assert log.damage() == []


def test_a_lost_page_before_a_flush_mark_is_damage(local: LocalLog) -> None:
    """Rule 27: before the last mark it is damage, behind it a torn tail."""
    path = written(local, flush=True)
    lines = path.read_bytes().split(b"\n")
    lines[30] = b"\0" * len(lines[30])
    path.write_bytes(b"\n".join(lines))

    with pytest.raises(LogDamaged, match="at line 31") as caught:
        list(fresh(local).history("b1"))

    assert caught.value.readable == 30


def test_any_changed_byte_before_the_last_line_is_damage_and_names_its_line(local: LocalLog) -> None:
    path = written(local)
    whole = path.read_bytes()
    choose = random.Random(21)
    start_of_last = whole[:-1].rfind(b"\n")

    for place in choose.sample(range(whole.find(b"\n") + 1, start_of_last - 400), 100):
        changed = bytearray(whole)
        changed[place] ^= 1 << choose.randrange(7)
        path.write_bytes(changed)
        line = whole[:place].count(b"\n") + 1

        # A byte that becomes a line feed cuts the line, wherever it is.
        in_signature = 21 <= place - (whole[:place].rfind(b"\n") + 1) < 37 and changed[place] != 0x0A
        with pytest.raises(LogUntrusted if in_signature else LogDamaged) as caught:
            list(fresh(local).history("b1"))

        assert caught.value.line == line, place
        assert caught.value.file == str(path)
        assert caught.value.readable == line - 1
        if not in_signature:
            assert f"The {line - 1} events before it can be read" in str(caught.value)
        assert fresh(local).damage() == [str(caught.value)]


def test_a_signature_with_a_line_feed_in_it_is_damage_of_its_line(local: LocalLog) -> None:
    path = written(local)
    lines = path.read_bytes().split(b"\n")
    lines[14] = lines[14][:30] + b"\n" + lines[14][31:]
    path.write_bytes(b"\n".join(lines))

    with pytest.raises(LogDamaged, match="at line 15") as caught:
        list(fresh(local).history("b1"))

    assert caught.value.readable == 14


def test_a_changed_byte_in_the_first_line_stops_its_run_and_everything_that_could_start_over(local: LocalLog) -> None:
    path = written(local)
    changed = bytearray(path.read_bytes())
    changed[200] ^= 1
    path.write_bytes(changed)
    log = fresh(local)

    assert log.executions() == []
    with pytest.raises(LogDamaged, match="at line 1"):
        log.executions("r1")
    with pytest.raises(LogDamaged, match="at line 1"):
        list(log.history("b1"))
    with pytest.raises(LogDamaged, match="at line 1"):
        log.begin(header())
    assert len(log.damage()) == 1


def test_lines_taken_out_of_the_middle_are_damage(local: LocalLog) -> None:
    path = written(local)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:10] + lines[12:]))

    with pytest.raises(LogDamaged, match="at line 11"):
        list(fresh(local).history("b1"))


def test_a_torn_tail_that_a_later_execution_continues_is_damage(local: LocalLog) -> None:
    path = written(local)
    begin(local).close()
    whole = path.read_bytes()
    path.write_bytes(whole[: whole[:-1].rfind(b"\n") + 1])

    with pytest.raises(LogDamaged, match="event 40, which a later execution continues, is missing"):
        list(fresh(local).history("b1"))


def test_another_line_than_the_one_that_is_continued_is_damage(local: LocalLog) -> None:
    path = written(local)
    begin(local).close()
    kept = path.read_bytes()
    path.unlink()
    for left in (local.directory / "journal").glob("*.jsonl"):
        left.rename(left.with_suffix(".aside"))
    other = begin(LocalLog(local.directory), execution=path.stem, durability="process")
    for number in range(20):
        step(other, number + 1)
    other.close()
    assert path.read_bytes() != kept
    for left in (local.directory / "journal").glob("*.aside"):
        left.rename(left.with_suffix(".jsonl"))

    with pytest.raises(LogDamaged, match="continues another line than this"):
        list(fresh(local).history("b1"))


def test_a_deleted_journal_is_named_by_what_continues_it(local: LocalLog) -> None:
    """Rule 25: no empty history by accident: what is continued must be there."""
    path = written(local)
    begin(local).close()
    path.unlink()

    with pytest.raises(LogDamaged, match=r"is missing, and execution .* continues it") as caught:
        list(fresh(local).history("b1"))

    assert caught.value.file == str(path)
    assert fresh(local).damage() == [str(caught.value)]


def test_late_lines_are_left_out_of_history(local: LocalLog) -> None:
    path = written(local)
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:21]))
    following = begin(fresh(local))
    following.close()
    path.write_bytes(whole)  # what an owner wrote that had lost its lock without knowing it

    events = list(fresh(local).history("b1"))

    assert [each.seq for each in events] == list(range(22))
    assert events[21].event.data.execution == following.execution
    assert fresh(local).executions()[-1].header.execution == following.execution


def test_a_line_changed_with_its_checksum_right_is_forged(local: LocalLog) -> None:
    """Rule 29: the line is signed, not only the bytes that it names."""
    from zlib import crc32

    from jupyter_durable.log.line import ENVELOPE

    path = written(local)
    lines = path.read_bytes().splitlines()
    after = int(lines[9][6:14], 16)
    for number in range(10, len(lines)):  # somebody without the key redoes the checksums up to the end
        rest = lines[number][ENVELOPE:].replace(b'"data":{"data":', b'"data":{"data":1')
        after = crc32(rest, after)
        lines[number] = b'{"c":"%08x"' % after + lines[number][14 + 1 : ENVELOPE] + rest
    path.write_bytes(b"\n".join(lines) + b"\n")

    with pytest.raises(LogUntrusted, match="Somebody without your key"):
        list(fresh(local).history("b1"))


def test_a_newer_journal_is_left_alone_and_named(local: LocalLog) -> None:
    path = written(local)
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2', 1))
    log = fresh(local)

    assert log.executions() == []
    assert "Upgrade it" in log.damage()[0]
    with pytest.raises(LogTooNew):
        log.executions("r1")
    with pytest.raises(LogTooNew):
        list(log.history("b1"))


def test_a_log_of_a_newer_format_is_refused(local: LocalLog) -> None:
    (local.directory / "format.json").write_text('{"format":2,"log":"x"}')

    with pytest.raises(LogTooNew, match="reads formats up to 1"):
        fresh(local)


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_text("{")])
def test_a_lost_format_file_is_not_made_anew_beside_journals(local: LocalLog, spoil: Callable[[Path], None]) -> None:
    written(local)
    spoil(local.directory / "format.json")

    with pytest.raises(LogDamaged, match="It should read"):
        fresh(local)


def test_a_directory_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(LogUnusable, match="a part of that path is a file"):
        LocalLog(tmp_path / "file" / ".durable")


def test_an_unwritable_directory_is_a_sentence_and_can_still_be_read(local: LocalLog) -> None:
    run_whole(local)

    class ReadOnly(files.FileLayer):
        def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
            raise OSError(errno.EROFS, "Read-only file system")

    with files.use(ReadOnly()):
        log = fresh(local)
        assert len(log.executions()) == 1
        assert len(list(log.history("b1"))) == 8
        with pytest.raises(LogUnusable, match=r"the file system is read-only.*JUPYTER_DURABLE_LOG"):
            log.begin(header(head=last(log)))


def test_a_name_that_would_leave_the_directory_is_refused(local: LocalLog) -> None:
    for name in ("../x", "a/b", "", ".hidden", "x" * 200, "a\n"):
        with pytest.raises(UsageError):
            local.begin(header(name))


class Full(files.FileLayer):
    """A disk that takes a certain number of bytes more."""

    def __init__(self, room: int, number: int = errno.ENOSPC) -> None:
        self.room = room
        self.number = number

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self.room <= 0:
            raise OSError(self.number, os.strerror(self.number))
        taken = super().write(fd, memoryview(data)[: self.room])
        self.room -= taken
        return taken


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT, errno.ESTALE])
def test_a_refused_write_leaves_whole_lines_and_a_writer_that_always_raises(local: LocalLog, number: int) -> None:
    writer = begin(local)
    seq = step(writer)
    before = plain(local.history("b1"))

    with files.use(Full(50, number)), pytest.raises(LogUnusable, match="Cannot write to the journal"):
        writer.append(started())
    with pytest.raises(LogUnusable, match="Cannot write to the journal"):
        writer.append(completed(seq))

    writer.close()
    assert journal(local, writer.execution).read_bytes().endswith(b"}\n")
    assert plain(fresh(local).history("b1")) == before
    assert local.holder("b1") is None
    again = begin(fresh(local))
    assert again.append(started()) == 4
    again.close()


def test_a_short_write_is_gone_on_with(local: LocalLog) -> None:
    class Slow(files.FileLayer):
        def write(self, fd: int, data: bytes | memoryview) -> int:
            return super().write(fd, memoryview(data)[:7])

    with files.use(Slow()):
        run_whole(local)

    assert len(list(local.history("b1"))) == 8


def test_a_refused_flush_breaks_the_writer(local: LocalLog) -> None:
    class Broken(files.FileLayer):
        def fdatasync(self, fd: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

    writer = begin(local)
    step(writer)

    with files.use(Broken()), pytest.raises(LogUnusable, match="the disk reports an error"):
        writer.flush()
    with pytest.raises(LogUnusable, match="Cannot flush the journal"):
        writer.append(started())

    writer.close()


def test_a_full_disk_refuses_an_execution_before_anything_is_done(local: LocalLog) -> None:
    with files.use(Full(700)), pytest.raises(LogUnusable, match="the disk is full"):
        begin(local)

    assert local.holder("b1") is None
    assert local.executions() == []
    begin(local).close()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="mounting needs root")
def test_a_really_full_disk_loses_nothing_that_was_recorded(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=False).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        log = LocalLog(place / ".durable")
        writer = begin(log)
        recorded = []

        def fill() -> None:
            while True:
                recorded.append(writer.append(started(why="x" * 300)))

        with pytest.raises(LogUnusable, match="the disk is full"):
            fill()
        writer.close()

        assert [each.seq for each in log.history("b1")] == [0, *recorded]
        assert LocalLog(place / ".durable").damage() == []
    finally:
        subprocess.run(["umount", place], check=True)


def test_an_append_that_a_signal_cut_short_is_found_out_at_the_next(local: LocalLog) -> None:
    class Signalled(files.FileLayer):
        def __init__(self, before: bool) -> None:
            self.before = before

        def write(self, fd: int, data: bytes | memoryview) -> int:
            if self.before:
                raise KeyboardInterrupt
            super().write(fd, data)
            raise KeyboardInterrupt

    writer = begin(local)
    for before in (True, False):
        with files.use(Signalled(before)), pytest.raises(KeyboardInterrupt):
            writer.append(started(name=f"cut {before}"))
        step(writer)
    end(writer)

    names = [getattr(each.event, "name", "") for each in fresh(local).history("b1")]
    assert "cut True" not in names
    assert names.count("cut False") == 1
    assert fresh(local).damage() == []


def test_a_file_that_changed_between_history_and_reload_is_damage(local: LocalLog) -> None:
    writer = begin(local)
    seq = step(writer, "x" * 1000)
    writer.close()
    log = fresh(local)
    assert isinstance(log.reload(writer.execution, seq + 1).event, StepCompleted)
    path = journal(log, writer.execution)
    path.write_bytes(path.read_bytes().replace(b"xxxx", b"xxxy", 1))

    with pytest.raises(LogError):
        log.reload(writer.execution, seq + 1)


def test_a_long_history_comes_lean_and_reload_brings_payloads(local: LocalLog) -> None:
    writer = begin(local, durability="process")
    seqs = [step(writer, {"n": number, "text": "x" * 20_000}) for number in range(900)]
    writer.close()
    log = fresh(local)

    events = [each for each in log.history("b1") if isinstance(each.event, StepCompleted)]

    assert len(events) == 900
    assert all(type(each.event.data.data).__name__ == "UnsetType" for each in events)
    for number in (0, 450, 899):
        payload = log.reload(writer.execution, seqs[number] + 1).event.data
        assert bytes(payload.data).startswith(b'{"n":%d,' % number)


def test_the_directory_ignores_itself(tmp_path: Path) -> None:
    log = LocalLog(tmp_path / ".durable")

    assert "*" in (log.directory / ".gitignore").read_text().splitlines()
    assert open_directory(log.directory, create=False) == log.id == LocalLog(tmp_path / ".durable").id


def test_a_path_at_which_duckdb_keeps_no_database_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(LogUnusable, match=r"`\?`.*JUPYTER_DURABLE_LOG"):
        LocalLog(tmp_path / "why?" / ".durable")
    assert not list(tmp_path.iterdir())
