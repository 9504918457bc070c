"""The contract of `EventLog`, kept by every storage."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_durable.errors import BranchBusy, LogDamaged, LogUnusable, UsageError
from jupyter_durable.event_data import (
    Adopted,
    AttemptInfo,
    Beat,
    Decision,
    ErrorInfo,
    Notice,
    OutputItem,
    Payload,
    Progress,
    Receipt,
    RequestInfo,
    Saved,
    Settlement,
    Signal,
    Unstored,
    Usage,
    WaitInfo,
)
from jupyter_durable.events import (
    AttemptFailed,
    Decided,
    ExecutionStarted,
    Noticed,
    Progressed,
    Replayed,
    SignalReceived,
    StepAdopted,
    StepBeat,
    StepBilled,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepNotStored,
    StepOutput,
    StepSettled,
    TimerFired,
    WaitStarted,
)
from jupyter_durable.log import open_log
from jupyter_durable.log.base import EventLog
from jupyter_durable.log.local import LocalLog
from jupyter_durable.log.memory import MemoryLog
from tests.log.making import begin, completed, end, header, last, plain, run_whole, started, step

_RAW = msgspec.Raw(b'{"a":[1.10,1e5,123456789012345678901234567890,"\\u00e9 \\n"]}')
_ASKED = RequestInfo(
    provider="openai", api="chat.completions", model="gpt-5", url="https://api.example.com/v1/chat/completions",
    stream=True, most_output=100, body=Payload(data=_RAW), base=1, same=("tools",), shared={"messages": 4}, line=2,
)  # fmt: skip
_USAGE = Usage(
    provider="openai", model="gpt-5-2026-01-01", input=10, output=5, cached=2, cache_write=1, reasoning=3, cost=0.25,
    prices="genai-prices 0.2.3",
)  # fmt: skip

EVERY_KIND = [
    started(scope="0/1", n=2, evidence="e", kind="now", attempt=1, pure=True, why="code changed"),
    StepCompleted(at=2.5, step=1, data=Payload(codec="tagged", data=_RAW, blobs=("a", "b"), size=7)),
    StepCompleted(at=2.5, step=1, data=Payload(blob="f" * 32, size=70_000)),
    StepNotStored(
        at=3.0, step=1, data=Unstored(path="result", value_type="X", reason="lock", salvage=Payload(data=_RAW))
    ),
    StepFailed(at=3.0, step=1, attempt=2, data=AttemptInfo(error=ErrorInfo(type="ValueError", message="ümläut\n\0"))),
    AttemptFailed(at=3.0, step=1, attempt=1, data=AttemptInfo(error=ErrorInfo(type="E", message=""), retry_in=0.5)),
    StepCancelled(at=4.0, step=1),
    StepInterrupted(at=4.0, step=1),
    StepAdopted(
        at=4.0, name='q"u,"data":o\\te', digest="d", data=Adopted(execution="e0", seq=4, payload=Payload(data=_RAW))
    ),
    StepSettled(at=5.0, step=1, data=Settlement(choice="value", by="ana", payload=Payload(data=_RAW))),
    Decided(at=5.0, data=Decision(reuse="pure", steps=("a",))),
    Noticed(at=5.0, step=1, data=Notice(kind="note", message="once")),
    StepOutput(
        at=5.0,
        step=1,
        data=(OutputItem(kind="stdout", text="hé\x1b[0m👩‍👩‍👧 e\u0301"), OutputItem(kind="display", data=_RAW)),
    ),
    TimerFired(at=5.0, scope="0/1", n=3),
    msgspec.structs.replace(started(kind="model"), data=_ASKED),
    StepBilled(at=6.0, step=1, attempt=1, data=_USAGE),
    Replayed(at=6.0, data=Saved(steps=3, calls=2, unknown=1, models=(_USAGE,))),
    WaitStarted(
        at=7.0,
        name="approve",
        digest="d" * 32,
        n=1,
        scope="0/1",
        kind="approval",
        why="asked again",
        data=WaitInfo(
            request="a1b2",
            until=9.5,
            question="Send “it”?",
            choices=("yes", "no"),
            schema=_RAW,
            shown=(OutputItem(kind="display", data=_RAW),),
            shown_digest="e" * 32,
        ),
    ),
    StepBeat(at=7.0, step=1, data=Beat(details=_RAW)),
    StepBeat(at=7.0, step=1, data=Beat()),
    Progressed(at=7.0, step=1, data=Progress(done=3.0, total=10.0, text="pages")),
    Progressed(at=7.0, data=Progress(done=0.5)),
    SignalReceived(at=8.0, step=1, data=Receipt(signal="hook-1", by="ada", via="panel", sent=7.5)),
]


def test_history_gives_every_kind_of_event_back_as_it_was_appended(log: EventLog) -> None:
    writer = begin(log)
    for event in EVERY_KIND:
        writer.append(event)
    writer.close()

    found = list(log.history("b1"))

    assert [each.seq for each in found] == list(range(len(EVERY_KIND) + 1))
    assert [type(each.event) for each in found[1:]] == [type(event) for event in EVERY_KIND]
    assert [msgspec.json.encode(each.event) for each in found[1:]] == [msgspec.json.encode(e) for e in EVERY_KIND]


def test_append_answers_the_seq_and_seq_goes_on_over_executions(log: EventLog) -> None:
    writer = begin(log)
    assert [step(writer), step(writer)] == [1, 3]
    writer.close()

    again = begin(log)

    assert again.append(started()) == 6
    assert again.head.seq == 6
    again.close()
    assert [each.seq for each in log.history("b1")] == list(range(7))


def test_the_first_line_is_there_when_begin_returns(log: EventLog) -> None:
    writer = begin(log)

    [first] = log.history("b1")

    assert isinstance(first.event, ExecutionStarted)
    assert first.event.data.execution == writer.execution
    writer.close()


def test_a_branch_that_does_not_exist_has_no_events(log: EventLog) -> None:
    assert list(log.history("nothing")) == []


def test_a_branch_has_one_writer_at_a_time(log: EventLog) -> None:
    writer = begin(log)

    with pytest.raises(BranchBusy, match=r"process \d+ on .* for plan.ipynb, since .*Nothing was executed") as caught:
        log.begin(header(head=writer.head))

    assert caught.value.pid > 0
    assert caught.value.notebook == "plan.ipynb"
    begin(log, "b2").close()
    writer.close()
    begin(log).close()


def test_an_execution_that_would_leave_lines_behind_is_refused(log: EventLog) -> None:
    writer = begin(log)
    stale = writer.head
    step(writer)
    writer.close()

    with pytest.raises(BranchBusy, match="has gone on since it was read"):
        log.begin(header(head=stale))
    with pytest.raises(BranchBusy, match="has gone on since it was read"):
        log.begin(header(head=None))

    assert log.holder("b1") is None
    begin(log).close()


def test_a_branch_made_from_the_middle_of_another_has_its_history_up_to_there(log: EventLog) -> None:
    writer = begin(log)
    for number in range(3):
        step(writer, number)
    writer.close()

    branch = log.begin(header("b2", head=log.point(writer.execution, 4)))
    step(branch, "other")
    branch.close()

    events = list(log.history("b2"))
    assert [each.seq for each in events] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert isinstance(events[5].event, ExecutionStarted)
    assert len(list(log.history("b1"))) == 7


def test_a_head_that_is_not_there_is_refused(log: EventLog) -> None:
    writer = begin(log)
    writer.close()

    with pytest.raises(LogDamaged):
        log.point(writer.execution, 9)
    with pytest.raises(LogDamaged):
        log.begin(header("b2", head=msgspec.structs.replace(writer.head, seq=9)))
    with pytest.raises(LogDamaged):
        log.begin(header("b2", head=msgspec.structs.replace(writer.head, execution="never")))


def test_reload_gives_one_event_with_its_payload(log: EventLog) -> None:
    writer = begin(log)
    seq = step(writer, {"text": "x" * 2000})

    again = log.reload(writer.execution, seq + 1)

    assert isinstance(again.event, StepCompleted)
    assert json.loads(bytes(again.event.data.data)) == {"text": "x" * 2000}
    writer.close()
    with pytest.raises(LogDamaged):
        log.reload(writer.execution, 99)
    with pytest.raises(LogDamaged):
        log.reload("never", 0)


def test_executions_are_listed_oldest_first_with_first_and_last_line(log: EventLog) -> None:
    first = begin(log)
    step(first)
    end(first, "failed")
    second = begin(log)
    other = begin(log, "b2", run="r2")

    records = log.executions()

    assert [r.header.execution for r in records] == [first.execution, second.execution, other.execution]
    assert [r.running for r in records] == [False, True, True]
    assert [r.outcome and r.outcome.status for r in records] == ["failed", None, None]
    assert records[0].last == first.head
    assert records[0].ended == 9.0
    assert [r.header.execution for r in log.executions("r2")] == [other.execution]
    second.close()
    other.close()
    assert not any(r.running for r in log.executions())


def test_holder_says_who_and_takes_nothing(log: EventLog) -> None:
    assert log.holder("b1") is None
    writer = begin(log)

    who = log.holder("b1")

    assert who is not None
    assert who.notebook == "plan.ipynb"
    writer.close()
    assert log.holder("b1") is None


def test_append_after_close_raises_and_close_is_idempotent(log: EventLog) -> None:
    writer = begin(log)
    writer.close()
    writer.close()

    with pytest.raises(LogUnusable, match="has ended"):
        writer.append(started())

    assert len(list(log.history("b1"))) == 1


def test_a_blob_is_stored_once_by_its_content(log: EventLog) -> None:
    writer = begin(log)

    digest = writer.put_blob(b"x" * 100_000)

    assert writer.put_blob(b"x" * 100_000) == digest
    assert log.read_blob(digest) == b"x" * 100_000
    writer.close()
    with pytest.raises(LogDamaged, match="missing"):
        log.read_blob("0" * 32)


def test_threads_append_whole_lines_with_seqs_of_their_own(log: EventLog) -> None:
    writer = begin(log)
    seqs: list[int] = []

    def work() -> None:
        for _ in range(50):
            seqs.append(step(writer))
            writer.flush()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()

    assert len(set(seqs)) == 200
    assert [each.seq for each in log.history("b1")] == list(range(401))


def test_a_payload_laid_out_over_lines_stays_one_line(log: EventLog) -> None:
    writer = begin(log)
    writer.append(StepCompleted(at=1.0, step=1, data=Payload(data=msgspec.Raw(b'{\n  "a": [1,\n 2]\n}'))))
    writer.close()

    [_, found] = log.history("b1")

    assert json.loads(bytes(found.event.data.data)) == {"a": [1, 2]}


def test_fold_moves_everything_and_history_stays_the_same(log: EventLog) -> None:
    run_whole(log)
    run_whole(log, "b2")
    before = [plain(log.history(branch)) for branch in ("b1", "b2")]

    log.fold()

    assert [plain(log.history(branch)) for branch in ("b1", "b2")] == before
    assert log.fold() == 0
    assert log.damage() == []


def test_a_branch_goes_on_after_it_has_completed_and_was_folded(log: EventLog) -> None:
    run_whole(log)
    log.fold()

    run_whole(log)

    assert [each.seq for each in log.history("b1")] == list(range(16))
    log.fold()
    assert [each.seq for each in log.history("b1")] == list(range(16))
    assert last(log).seq == 15


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_text = st.text(st.characters(exclude_categories=["Cs"]))


@settings(max_examples=40)
@given(st.lists(st.tuples(_json, _text, _text), max_size=5))
def test_any_value_name_and_scope_comes_back_also_from_the_database(tmp_path_factory, rows) -> None:
    log = LocalLog(tmp_path_factory.mktemp("log") / ".durable")
    writer = begin(log, durability="process")
    for value, name, scope in rows:
        step(writer, value, name=name, scope=scope)
    end(writer)
    before = plain(log.history("b1"))

    log.fold()

    assert log.executions()[0].folded
    assert plain(log.history("b1")) == before
    values = [json.loads(bytes(e.event.data.data)) for e in log.history("b1") if isinstance(e.event, StepCompleted)]
    assert values == [value for value, _, _ in rows]


def signal(name: str, sent: float, run: str = "0123456789abcdef") -> Signal:
    return Signal(id=name, run=run, branch="b1", name="payment", value=msgspec.Raw(b'{"sum":3}'), by="ada", sent=sent)


def test_signals_come_back_as_they_were_posted_the_oldest_first(log: EventLog) -> None:
    run_whole(log)
    for each in (signal("b", 2.0), signal("a", 1.0), signal("c", 3.0, run="f" * 16)):
        assert log.post(each)

    found = log.signals("0123456789abcdef")

    assert [(each.id, bytes(each.value)) for each in found] == [("a", b'{"sum":3}'), ("b", b'{"sum":3}')]
    assert log.signals("0" * 16) == []


def test_a_signal_that_is_posted_twice_counts_once_and_the_first_stands(log: EventLog) -> None:
    run_whole(log)
    assert log.post(signal("a", 1.0))

    assert not log.post(signal("a", 2.0))

    assert [each.sent for each in log.signals("0123456789abcdef")] == [1.0]


def test_of_many_who_post_one_id_at_once_one_is_first(log: EventLog) -> None:
    run_whole(log)
    answers: list[bool] = []
    threads = [
        threading.Thread(target=lambda at=at: answers.append(log.post(signal("a", at)))) for at in (1.0, 2.0, 3.0)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == [False, False, True]
    assert len(log.signals("0123456789abcdef")) == 1


def test_that_something_was_posted_shows_without_reading_it(log: EventLog) -> None:
    run_whole(log)
    before = log.posted("0123456789abcdef")
    log.post(signal("a", 1.0))
    between = log.posted("0123456789abcdef")
    log.post(signal("b", 2.0))

    assert len({before, between, log.posted("0123456789abcdef")}) == 3


@pytest.mark.parametrize("change", ["one byte", "another run", "cut"])
def test_a_signal_that_somebody_has_changed_is_not_used_and_is_told(tmp_path: Path, change: str) -> None:
    log = LocalLog(tmp_path / ".durable")
    run_whole(log)
    log.post(signal("a", 1.0))
    (path,) = (tmp_path / ".durable" / "inbox" / "0123456789abcdef").iterdir()
    content = path.read_bytes()
    if change == "one byte":
        path.write_bytes(content.replace(b'{"sum":3}', b'{"sum":9}'))
    elif change == "cut":
        path.write_bytes(content[:-10])
    else:
        (tmp_path / ".durable" / "inbox" / ("f" * 16)).mkdir()
        path.rename(tmp_path / ".durable" / "inbox" / ("f" * 16) / path.name)

    fresh = LocalLog(tmp_path / ".durable")

    assert fresh.signals("0123456789abcdef") == []
    assert fresh.signals("f" * 16) == []
    if change != "another run":
        assert "is damaged, or signed with another key than yours" in fresh.damage()[0]


def test_the_name_of_a_run_leads_nowhere_else(tmp_path: Path) -> None:
    log = LocalLog(tmp_path / ".durable")
    run_whole(log)

    with pytest.raises(UsageError, match="is not the id of a run"):
        log.post(signal("a", 1.0, run="../../etc"))


def test_open_log_finds_the_storage_that_a_name_means(tmp_path: Path) -> None:
    assert isinstance(open_log(tmp_path / "a"), LocalLog)
    assert isinstance(open_log(str(tmp_path / "b")), LocalLog)
    assert open_log(f"file://{tmp_path}/c").location == str(tmp_path / "c")
    assert isinstance(open_log("memory:"), MemoryLog)
    assert open_log("memory:x") is open_log("memory:x")
    assert open_log("memory:") is not open_log("memory:")
    with pytest.raises(LogUnusable, match="no kind of log called postgresql:"):
        open_log("postgresql://host/db")
    with pytest.raises(LogUnusable, match="no log in"):
        open_log(tmp_path / "nowhere", create=False)
    assert not (tmp_path / "nowhere").exists()


def test_a_memory_log_lets_go_of_everything_when_it_crashes() -> None:
    log = MemoryLog()
    writer = begin(log)

    log.crash()

    assert log.holder("b1") is None
    with pytest.raises(LogUnusable):
        writer.append(completed(1))
    begin(log)
