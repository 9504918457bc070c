"""Pages of steps: catching up, polling, and what becomes of rows when kernels die."""

from __future__ import annotations

import threading

import msgspec
import pytest

from jupyter_durable import durable
from jupyter_durable.event_data import Beat, Notice, Origin, Progress, Saved, Usage
from jupyter_durable.events import Noticed, Progressed, Replayed, StepBeat, StepBilled, StepInterrupted
from jupyter_durable.server import index as indexing
from jupyter_durable.server import shapes
from jupyter_durable.server.logs import LogView
from jupyter_durable.server.pages import page
from tests.server.conftest import RUN, double, fail
from tests.server.events import attempt_failed, completed, ended, failed, started

STEPS = f"runs/{RUN}/branches/main/steps"


@pytest.fixture
def poll(ask):
    """Asks for what is new, as the panel does."""
    state = {"after": -1, "epoch": ""}

    def poll(limit: int = 1000, path: str = STEPS) -> shapes.Page:
        found = ask(path, limit=limit, **state).as_(shapes.Page)
        state.update(after=found.next, epoch=found.epoch)
        return found

    return poll


def test_rows_come_in_order_of_their_last_change_with_the_step_around_them(ask, doubled):
    found = ask(f"runs/{doubled}/branches/main/steps").as_(shapes.Page)

    assert [(row.number, row.changed, row.parent, row.status) for row in found.rows] == [
        (1, 2, None, "completed"),
        (4, 5, 3, "completed"),
        (3, 6, None, "completed"),
    ]
    assert (found.head, found.more, found.totals.steps) == (7, False, 3)


def test_a_branch_is_found_by_its_id_too(ask, doubled):
    (run,) = ask("runs").as_(shapes.Runs).runs

    assert ask(f"runs/{doubled}/branches/{run.branch}/steps").as_(shapes.Page).branch_name == "main"


def test_a_poll_brings_only_what_is_new_or_changed(begin, poll):
    writer = begin()
    first = writer.append(started("a"))
    assert [(row.name, row.status) for row in poll().rows] == [("a", "running")]
    assert poll().rows == []
    writer.append(completed(first))
    writer.append(started("b"))

    assert [(row.name, row.status) for row in poll().rows] == [("a", "completed"), ("b", "running")]
    assert poll().rows == []


def test_pages_are_as_long_as_asked_and_say_when_there_is_more(begin, poll):
    writer = begin()
    for name in "abcde":
        writer.append(completed(writer.append(started(name))))

    pages = [poll(2), poll(2), poll(2)]

    assert [[row.name for row in found.rows] for found in pages] == [["a", "b"], ["c", "d"], ["e"]]
    assert [found.more for found in pages] == [True, True, False]


def test_no_rows_at_all_can_be_asked_for(begin, poll):
    writer = begin()
    writer.append(completed(writer.append(started("a"))))

    found = poll(0)

    assert (found.rows, found.totals.by_status) == ([], {"completed": 1})


def test_a_running_step_of_a_dead_kernel_is_in_doubt(begin, ask):
    writer = begin()
    writer.append(started("a"))
    alive = ask(STEPS).as_(shapes.Page)
    writer.close()
    dead = ask(STEPS).as_(shapes.Page)

    assert (alive.running, alive.rows[0].status) == (writer.execution, "running")
    assert (dead.running, dead.rows[0].status, dead.newest_status) == ("", "in_doubt", "interrupted")
    assert dead.totals.by_status == {"in_doubt": 1}


def test_the_next_execution_of_a_branch_goes_on_in_the_same_pages(begin, poll):
    first = begin()
    seq = first.append(started("a"))
    first.append(completed(seq))
    first.append(started("b"))
    first.close()
    poll()
    second = begin(first)
    second.append(completed(second.append(started("b"))))
    second.append(ended())
    found = poll()

    assert found.reset is False
    assert [(row.name, row.status, row.execution) for row in found.rows] == [("b", "completed", second.execution)]
    assert (found.newest, found.newest_status, found.totals.by_status) == (
        second.execution,
        "completed",
        {"completed": 2},
    )


def test_a_client_whose_rows_are_not_this_branchs_any_more_starts_anew(begin, poll):
    first = begin()
    kept = first.append(started("kept"))
    first.append(completed(kept))
    head = first.head
    first.append(started("late"))
    first.close()
    assert {row.name for row in poll().rows} == {"kept", "late"}
    # An execution of another branch goes on before the late line.
    second = begin(first, branch=f"{RUN}.2", branch_name="main-2", head=head)
    second.append(started("other"))
    found = poll(path=f"runs/{RUN}/branches/main-2/steps")

    assert found.reset is True
    assert {row.name for row in found.rows} == {"kept", "other"}


def test_a_client_that_is_ahead_of_the_log_starts_anew(begin, ask):
    begin().append(started("a"))

    found = ask(STEPS, after=1000, epoch="gone").as_(shapes.Page)

    assert (found.reset, len(found.rows)) == (True, 1)


def test_a_failed_step_tells_its_error_and_attempts(begin, ask):
    writer = begin()
    seq = writer.append(started("a"))
    writer.append(attempt_failed(seq))
    writer.append(failed(seq, message="x" * 1000))

    (row,) = ask(STEPS).as_(shapes.Page).rows

    assert (row.status, row.attempts, row.error.type) == ("failed", 2, "builtins.ValueError")
    assert len(row.error.message) == 300


def test_an_interrupted_step_is_in_doubt(begin, ask):
    writer = begin()
    seq = writer.append(started("a"))
    writer.append(StepInterrupted(at=1.0, step=seq))

    assert ask(STEPS).as_(shapes.Page).rows[0].status == "in_doubt"


def test_equal_calls_are_told_apart_by_their_number(begin, ask):
    writer = begin()
    writer.append(started("a"))
    writer.append(started("a", n=2))

    assert [row.label for row in ask(STEPS).as_(shapes.Page).rows] == ["a", "a#2"]


def test_tokens_and_money_are_added_up_over_attempts_and_what_is_not_told_is_unknown(begin, ask):
    writer = begin()
    seq = writer.append(started("chat", kind="model"))
    for cost in (0.25, None):
        writer.append(StepBilled(at=1.0, step=seq, data=Usage(model="m", input=10, output=5, cost=cost)))
    writer.append(completed(seq))
    untold = writer.append(started("chat", n=1, kind="model"))
    writer.append(completed(untold))
    writer.append(Replayed(at=1.0, data=Saved(steps=3, calls=2, models=(Usage(model="m", input=7, cost=1.0),))))

    found = ask(STEPS).as_(shapes.Page)

    assert (found.rows[0].usage.input, found.rows[0].usage.cost, found.rows[0].usage.cached) == (20, 0.25, None)
    assert found.rows[1].usage.input is None
    totals = found.totals
    assert (totals.calls, totals.tokens, totals.cost, totals.unpriced, totals.unknown) == (2, 30, 0.25, 1, 1)
    assert (totals.replayed_calls, totals.replayed_tokens, totals.replayed_cost) == (2, 7, 1.0)


def test_after_an_edit_adopted_steps_are_rows_of_the_new_branch(ask, log):
    from jupyter_durable import step

    @step(pure=True)
    def pure(x):
        return x

    def cell(topic, code):
        with durable.run("edited", log=str(log), **code) as run:
            pure(1)
            double(topic)
        return run.execution.header

    header = cell("a", {})
    second = cell("b", {"fresh": True})
    branches = ask(f"runs/{header.run}").as_(shapes.RunDetail).branches

    assert [branch.name for branch in branches] == ["main", second.branch_name]
    for branch in branches:
        rows = ask(f"runs/{header.run}/branches/{branch.name}/steps").as_(shapes.Page).rows
        assert len(rows) == 2


@pytest.mark.parametrize(
    ("wrong", "status"),
    [({"after": "x"}, 400), ({"limit": "1e3"}, 400), ({"after": "9" * 30}, 400), ({"limit": "-5"}, 200)],
)
def test_a_number_that_is_none_is_refused_in_words(begin, ask, wrong, status):
    begin()

    answer = ask(STEPS, **wrong)

    assert answer.status == status
    if status == 400:
        assert next(iter(wrong)) in answer.problem.message


def test_a_branch_that_is_not_there_is_not_found(begin, ask):
    begin()

    assert ask(f"runs/{RUN}/branches/main-7/steps").status == 404


# Below REST --------------------------------------------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch):
    """Counts the events that are decoded."""
    counted = []
    decode = indexing.decode_event
    monkeypatch.setattr(indexing, "decode_event", lambda line: counted.append(line) or decode(line))
    return counted


def test_a_poll_reads_no_event_twice(begin, log, read):
    writer = begin()
    for n in range(500):
        writer.append(completed(writer.append(started("a", n=n)), n))
    view = LogView(log)
    page(view, RUN, "main")
    assert len(read) == 1001
    read.clear()
    page(view, RUN, "main", after=1000, epoch=writer.execution)
    assert read == []
    writer.append(started("b"))

    assert [row.name for row in page(view, RUN, "main", after=1000, epoch=writer.execution).rows] == ["b"]
    assert len(read) == 1


def test_a_branch_folded_away_between_two_polls_is_read_on(begin, log):
    writer = begin()
    writer.append(completed(writer.append(started("a"))))
    view = LogView(log)
    found = page(view, RUN, "main")
    writer.append(completed(writer.append(started("b"))))
    writer.append(ended())
    writer.close()
    view.log.fold()
    assert not list((log / "journal").glob("*.jsonl"))

    after = page(view, RUN, "main", after=found.next, epoch=found.epoch)

    assert (after.reset, [row.name for row in after.rows], after.damaged) == (False, ["b"], "")


def test_clients_that_poll_at_once_do_not_make_each_other_read_anew(begin, log, read):
    writer = begin()
    view = LogView(log)
    count = 300

    def poll():
        while page(view, RUN, "main", limit=0).head < count:
            pass

    threads = [threading.Thread(target=poll) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(count):
        writer.append(started("a", n=n))
    for thread in threads:
        thread.join()

    assert len(read) == count + 1


def test_branches_that_nobody_asks_about_any_more_are_forgotten(begin, log, monkeypatch):
    from jupyter_durable.server import logs

    monkeypatch.setattr(logs, "_STEPS", 3)
    begin(run="bbbb", branch="bbbb.1")
    view = LogView(log)
    for place in range(4):
        writer = begin(branch=f"{RUN}.{place}", branch_name=f"b{place}")
        for n in range(2):
            writer.append(started("a", n=n))
        assert len(page(view, RUN, f"b{place}").rows) == 2

    assert list(view._branches) == [f"{RUN}.2", f"{RUN}.3"]


def test_first_rows_of_a_long_branch_come_before_it_is_read_whole(begin, log, monkeypatch):
    from jupyter_durable.server import pages

    writer = begin()
    for n in range(3000):
        writer.append(completed(writer.append(started("a", n=n)), "x" * 400))
    monkeypatch.setattr(pages, "_ENOUGH", 0.0)
    view = LogView(log)
    after, epoch, seen, more = -1, "", 0, True
    rounds = 0
    while more:
        found = page(view, RUN, "main", after=after, epoch=epoch, limit=10_000)
        assert found.reset is False
        after, epoch, more = found.next, found.epoch, found.more
        seen += len(found.rows)
        rounds += 1

    assert rounds > 2
    assert seen >= 3000
    assert found.totals.by_status == {"completed": 3000}


def test_damage_in_the_middle_is_said_and_what_lies_before_it_is_shown(begin, log, ask):
    writer = begin()
    for n in range(4):
        writer.append(completed(writer.append(started("a", n=n)), n))
    writer.close()
    (path,) = (log / "journal").glob("*.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[4] = lines[4].replace(b"completed", b"complated").replace(b'"a"', b'"A"')
    path.write_bytes(b"\n".join(lines))

    found = ask(STEPS).as_(shapes.Page)

    assert "damaged at line 5" in found.damaged
    assert [row.label for row in found.rows] == ["a", "a#1"]


def test_a_log_signed_by_somebody_else_is_shown_and_said_to_be_untrusted(ask, doubled, key_file):
    key_file.unlink()

    found = ask(f"runs/{doubled}/branches/main/steps").as_(shapes.Page)

    assert found.untrusted
    assert len(found.rows) == 3


def test_a_failed_step_of_a_real_run_is_a_row(ask, log):
    with pytest.raises(ValueError, match="no x"), durable.run("failing", log=str(log)) as run:
        fail("x")

    (row,) = ask(f"runs/{run.execution.header.run}/branches/main/steps").as_(shapes.Page).rows

    assert (row.status, row.error.message) == ("failed", "no x")


def test_the_origin_of_a_branch_is_told(ask, begin):
    first = begin()
    first.append(ended())
    first.close()
    origin = Origin(branch=f"{RUN}.1", execution=first.execution, seq=1)
    begin(None, branch=f"{RUN}.2", branch_name="main-2", origin=origin).append(ended())

    found = ask(f"runs/{RUN}").as_(shapes.RunDetail)

    assert [(b.name, b.origin and b.origin.name) for b in found.branches] == [("main", None), ("main-2", "main")]


def test_a_row_says_how_far_its_body_is_and_when_it_was_heard_of(begin, poll):
    writer = begin()
    step = writer.append(started("load"))
    poll()
    writer.append(StepBeat(at=7.0, step=step, data=Beat(details=msgspec.Raw(b"[1]"))))
    writer.append(Progressed(at=8.0, step=step, data=Progress(done=3.0, total=10.0, text="rows")))
    writer.append(Progressed(at=9.0, data=Progress(done=1.0)))

    (row,) = poll().rows
    assert row.beat == 7.0
    assert row.progress == shapes.ProgressItem(done=3.0, total=10.0, text="rows")
    assert row.status == "running"
    writer.append(completed(step))
    (row,) = poll().rows
    assert (row.progress, row.status) == (None, "completed")


def test_a_page_says_how_far_the_cell_itself_is_until_it_has_completed(begin, poll):
    writer = begin()
    writer.append(started("load"))
    writer.append(Progressed(at=8.0, step=1, data=Progress(done=3.0)))
    assert poll().progress is None
    writer.append(Progressed(at=9.0, data=Progress(done=1.0, total=4.0, text="tables")))

    found = poll()
    assert (found.progress, found.rows) == (shapes.ProgressItem(done=1.0, total=4.0, text="tables"), [])
    writer.close()
    assert poll().progress == shapes.ProgressItem(done=1.0, total=4.0, text="tables")
    again = begin(writer)
    assert poll().progress is None
    again.append(Progressed(at=11.0, data=Progress(done=4.0)))
    again.append(ended())
    again.close()
    assert poll().progress is None


def test_a_row_says_that_its_body_is_not_heard_of_until_it_is(begin, poll):
    writer = begin()
    step = writer.append(started("load"))
    message = "step `load` (step 1) has not been heard of for 30 s"
    writer.append(Noticed(at=8.0, step=step, data=Notice(kind="note", message="something else")))
    assert poll().rows[0].missed == ""
    writer.append(Noticed(at=9.0, step=step, data=Notice(kind="note", message=message, names=("heartbeat",))))
    assert poll().rows[0].missed == message

    writer.append(StepBeat(at=9.5, step=step, data=Beat()))
    assert poll().rows[0].missed == ""
    writer.append(Noticed(at=9.9, step=step, data=Notice(kind="note", message=message, names=("heartbeat",))))
    writer.append(completed(step))
    assert poll().rows[0].missed == ""


def test_a_thousand_signs_of_life_leave_one_row_and_no_attempts(begin, poll, ask):
    writer = begin()
    step = writer.append(started("load"))
    for n in range(1000):
        writer.append(StepBeat(at=float(n), step=step, data=Beat()))

    assert [(row.number, row.beat) for row in poll().rows] == [(step, 999.0)]
    detail = ask(f"runs/{RUN}/branches/main/steps/{step}").as_(shapes.StepDetail)
    assert len(detail.attempts) == 1
