"""Several processes at one log: no lock error reaches anybody (case G18)."""

from __future__ import annotations

import threading

import pytest

from jupyter_durable.log.local import LocalLog
from tests.log.making import begin, finish, python, step

WRITE = """
import sys
from jupyter_durable.log.local import LocalLog
from tests.log.making import begin, end, step
log = LocalLog(sys.argv[1])
for turn in range(6):
    writer = begin(log, sys.argv[2])
    for number in range(25):
        step(writer, [turn, number], n=100 * turn + number)
        writer.flush()
    end(writer, "completed" if turn % 3 == 2 else "failed")
    log.fold()
    seqs = [each.seq for each in log.history(sys.argv[2])]
    assert seqs == list(range(52 * (turn + 1))), (turn, len(seqs))
print(len(seqs))
"""

FOLD = """
import sys
from jupyter_durable.log.local import LocalLog
log = LocalLog(sys.argv[1])
moved = 0
for _ in range(8):
    moved += log.fold()
    for record in log.executions():
        list(log.history(record.header.branch))
print(moved)
"""

ASK = """
import sys
from jupyter_durable.log import query
from jupyter_durable.log.tail import tail
from pathlib import Path
seen = 0
after = {}
for turn in range(8):
    with query.connect(sys.argv[1], fold=turn % 2 == 0) as connection:
        if not query.is_partial(connection):
            [(now,)] = connection.execute("SELECT count(*) FROM events").fetchall()
            assert now >= seen, (now, seen)
            seen = now
        connection.execute("FROM steps").fetchall()
        connection.execute("FROM runs").fetchall()
    for each in tail(Path(sys.argv[1]), after):
        after[each.execution] = each.offset
print(seen)
"""


@pytest.mark.timeout(300)
def test_two_kernels_a_folder_and_a_reader_work_at_once(local: LocalLog) -> None:
    processes = [
        python(WRITE, local.directory, "b1"),
        python(WRITE, local.directory, "b2"),
        python(FOLD, local.directory),
        python(ASK, local.directory),
    ]

    outs = [finish(process) for process in processes]

    assert outs[:2] == ["312\n", "312\n"]
    local.fold()
    assert local.fold_note == ""
    assert [each.seq for each in local.history("b1")] == list(range(312))
    assert local.damage() == []


def test_threads_of_one_process_fold_read_and_query_at_once(local: LocalLog) -> None:
    """Case G27: no connection is shared by threads."""
    from jupyter_durable.log import query

    errors: list[BaseException] = []
    writer = begin(local)

    def guard(work):
        def run() -> None:
            try:
                for _ in range(5):
                    work()
            except BaseException as error:
                errors.append(error)

        return threading.Thread(target=run)

    def ask() -> None:
        with query.connect(local.directory) as connection:
            connection.execute("SELECT count(*) FROM steps").fetchall()

    threads = [
        guard(lambda: step(writer)),
        guard(local.fold),
        guard(lambda: list(local.history("b1"))),
        guard(ask),
        guard(local.executions),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()

    assert errors == []
    assert len(list(local.history("b1"))) == 11
