"""SQL over the log, and live views."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import duckdb
import msgspec
import pytest

from jupyter_durable.errors import LogDamaged
from jupyter_durable.event_data import Adopted, AttemptInfo, ErrorInfo, Payload, Settlement, Unstored
from jupyter_durable.events import (
    AttemptFailed,
    StepAdopted,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepNotStored,
    StepSettled,
)
from jupyter_durable.log import query
from jupyter_durable.log.local import LocalLog
from jupyter_durable.log.tail import tail
from tests.log.making import begin, completed, end, finish, python, run_whole, started, step

_ERROR = ErrorInfo(type="ValueError", message="no")
_VALUE = Payload(data=msgspec.Raw(b'{"a":1}'))


def steps_of_every_status(log: LocalLog) -> None:
    first = begin(log)
    for name, event in {
        "done": completed(0, {"a": [1]}),
        "failed": StepFailed(at=3.0, step=0, attempt=2, data=AttemptInfo(error=_ERROR)),
        "cancelled": StepCancelled(at=3.0, step=0),
        "interrupted": StepInterrupted(at=3.0, step=0),
        "not stored": StepNotStored(at=3.0, step=0, data=_unstored()),
    }.items():
        seq = first.append(started(at=1.0, name=name))
        first.append(msgspec.structs.replace(event, step=seq))
    for name in ("in doubt", "settled value", "settled fail", "resumed"):
        first.append(started(at=1.0, name=name))
    tried = first.append(started(at=1.0, name="tried"))
    first.append(AttemptFailed(at=2.0, step=tried, attempt=0, data=AttemptInfo(error=_ERROR)))
    first.append(AttemptFailed(at=2.5, step=tried, attempt=1, data=AttemptInfo(error=_ERROR)))
    first.append(completed(tried, 3, at=3.0))
    first.append(StepAdopted(at=4.0, name="adopted", digest="d", data=Adopted(execution="x", seq=2, payload=_VALUE)))
    first.close()
    second = begin(log)
    seqs = {e.event.name: e.seq for e in log.history("b1") if type(e.event).__name__ == "StepStarted"}
    second.append(StepSettled(at=5.0, step=seqs["settled value"], data=Settlement(choice="value", payload=_VALUE)))
    second.append(StepSettled(at=5.0, step=seqs["settled fail"], data=Settlement(choice="fail")))
    step(second, "again", name="resumed", why="in doubt", attempt=1)
    second.append(started(at=1.0, name="running"))
    second.append(StepCompleted(at=2.0, step=second.append(started(name="large")), data=Payload(blob="f" * 32, size=9)))
    _open.append(second)


def _unstored() -> Unstored:
    return Unstored(path="result", value_type="Client", reason="a client", salvage=_VALUE)


_open: list = []

STATUS = {
    "done": ("completed", 1, {"a": [1]}),
    "failed": ("failed", 3, None),
    "cancelled": ("cancelled", 1, None),
    "interrupted": ("interrupted", 1, None),
    "not stored": ("not_stored", 1, {"a": 1}),
    "in doubt": ("in_doubt", 1, None),
    "settled value": ("completed", 1, {"a": 1}),
    "settled fail": ("failed", 1, None),
    "resumed": ("completed", 2, "again"),
    "tried": ("completed", 3, 3),
    "adopted": ("adopted", 1, {"a": 1}),
    "running": ("running", 1, None),
    "large": ("completed", 1, None),
}


@pytest.mark.parametrize("fold", [True, False])
def test_steps_say_status_attempts_and_value_folded_or_not(local: LocalLog, fold: bool) -> None:
    steps_of_every_status(local)

    with query.connect(local.directory, fold=fold) as connection:
        rows = connection.execute("SELECT name, status, attempts, value FROM steps").fetchall()
        errors = connection.execute("SELECT name, error_type, error_message FROM steps WHERE error_type IS NOT NULL")
        assert errors.fetchall() == [("failed", "ValueError", "no")]
        assert connection.execute("SELECT blob FROM steps WHERE name = 'large'").fetchall() == [("f" * 32,)]
        assert connection.execute("SELECT why FROM steps WHERE name = 'resumed'").fetchall() == [("in doubt",)]
        [(branch,)] = connection.execute("SELECT status FROM branches").fetchall()
        assert branch == "running"
        assert connection.execute("SELECT count(*) FROM events").fetchall() == [(len(list(local.history("b1"))),)]

    found = {name: (status, attempts, value and json.loads(value)) for name, status, attempts, value in rows}
    assert found == STATUS
    _open.pop().close()


def test_runs_and_branches_are_counted(local: LocalLog) -> None:
    run_whole(local)
    run_whole(local, "b2")
    end(begin(local, "b3", run="r2"), "failed")

    with query.connect(local.directory) as connection:
        runs = connection.execute("SELECT run, branches, executions, steps, status FROM runs ORDER BY run").fetchall()
        branches = connection.execute("SELECT branch, steps, status FROM branches ORDER BY branch").fetchall()
        executions = connection.execute("SELECT status, header->>'$.path' FROM executions ORDER BY started").fetchall()

    assert runs == [("r1", 2, 2, 6, "completed"), ("r2", 1, 1, None, "failed")]
    assert branches == [("b1", 3, "completed"), ("b2", 3, "completed"), ("b3", 0, "failed")]
    assert executions == [("completed", "plan.ipynb")] * 2 + [("failed", "plan.ipynb")]


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "UTC"])
def test_times_are_moments_in_every_time_zone(local: LocalLog, zone: str) -> None:
    """Case G21: a naive timestamp would be shifted by the zone of who folds or asks."""
    moment = 1796115600.0  # 2026-12-01 09:00 UTC
    writer = begin(local)
    writer.append(started(at=moment))
    writer.close()
    finish(
        python(
            "import sys; from jupyter_durable.log.local import LocalLog; LocalLog(sys.argv[1]).fold()",
            local.directory,
            env={"TZ": zone},
        )
    )

    out = finish(
        python(
            "import sys; from jupyter_durable.log.query import connect\n"
            "with connect(sys.argv[1]) as c:\n"
            "    print(*(c.execute(q).fetchall()[0][0].timestamp() for q in (\n"
            "        'SELECT time FROM events WHERE seq = 1', 'SELECT started FROM steps')))\n"
            "    print(c.execute('SELECT typeof(time) FROM events').fetchall()[0][0])",
            local.directory,
            env={"TZ": "Asia/Tokyo"},
        )
    )

    assert out.split("\n")[:2] == [f"{moment} {moment}", "TIMESTAMP WITH TIME ZONE"]


def test_the_file_itself_has_the_views(local: LocalLog) -> None:
    run_whole(local)
    local.fold()

    with duckdb.connect(str(local.directory / "log.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT status, count(*) FROM steps GROUP BY 1").fetchall() == [("completed", 3)]
        [(started_at,)] = connection.execute("SELECT started FROM runs").fetchall()

    assert isinstance(started_at, datetime.datetime)
    assert started_at.tzinfo is not None


def test_a_query_sees_what_no_fold_has_taken_in_yet(local: LocalLog) -> None:
    run_whole(local)
    local.fold()
    writer = begin(local, "b2")
    step(writer, "unfolded")

    with query.connect(local.directory, fold=False) as connection:
        assert connection.execute("SELECT count(*) FROM steps").fetchall() == [(4,)]
        assert connection.execute("SELECT status FROM executions WHERE branch = 'b2'").fetchall() == [("running",)]
        assert not query.is_partial(connection)
        step(writer, "meanwhile", n=1)
    writer.close()

    with query.connect(local.directory) as connection:
        assert connection.execute("SELECT count(*) FROM steps").fetchall() == [(5,)]
        assert connection.execute("SELECT status FROM executions WHERE branch = 'b2'").fetchall() == [("interrupted",)]


def test_while_somebody_writes_the_database_journals_answer(local: LocalLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "_FOLD_PATIENCE", 0.02)
    monkeypatch.setattr(query, "_ATTACH_PATIENCE", 0.02)
    run_whole(local)
    local.fold()
    run_whole(local, "b2")
    code = "import sys, duckdb; connection = duckdb.connect(sys.argv[1])\nprint('open', flush=True)\nsys.stdin.read()"
    with python(code, local.directory / "log.duckdb") as other:
        assert other.stdout.readline() == "open\n"

        with query.connect(local.directory) as connection:
            assert query.is_partial(connection)
            assert connection.execute("SELECT count(*) FROM steps").fetchall() == [(3,)]
            runs = connection.execute("SELECT branch, status FROM branches ORDER BY 1").fetchall()
            assert runs == [("b1", "completed"), ("b2", "completed")]
        finish(other)


def test_a_query_of_a_damaged_database_says_so(local: LocalLog) -> None:
    run_whole(local)
    local.fold()
    (local.directory / "log.duckdb").write_bytes(b"garbage" * 2000)

    with pytest.raises(LogDamaged, match="cannot be read"):
        query.connect(local.directory)


def test_a_log_without_anything_can_be_queried(local: LocalLog) -> None:
    with query.connect(local.directory) as connection:
        for view in ("runs", "branches", "executions", "events", "steps"):
            assert connection.execute(f"SELECT * FROM {view}").fetchall() == []


def test_a_tail_gives_each_event_once_as_it_is_written(local: LocalLog) -> None:
    writer = begin(local)
    after: dict[str, int] = {}

    def news() -> list[int]:
        found = list(tail(local.directory, after))
        after.update({each.execution: each.offset for each in found})
        return [each.recorded.seq for each in found]

    assert news() == [0]
    step(writer)
    assert news() == [1, 2]
    assert news() == []
    path = local.directory / "journal" / f"{writer.execution}.jsonl"
    whole = path.read_bytes()
    writer.append(started())
    line = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + line[:20])
    assert news() == []
    path.write_bytes(whole + line)
    assert news() == [3]
    writer.close()
    assert list(tail(Path("nowhere"), {})) == []
