"""Bills, comparisons, SQL, exports, and what a person decides."""

from __future__ import annotations

import json

import httpx
import pytest

from jupyter_durable import durable, errors, step
from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.log.local import LocalLog
from jupyter_durable.server import asking, shapes
from jupyter_durable.server.logs import LogView
from tests.server.conftest import RUN, double
from tests.server.events import completed, ended, failed, started

# The bill -----------------------------------------------------------------------------------------------------------


def test_the_bill_tells_billed_from_replayed(ask, log):
    with Endpoint() as endpoint, httpx.Client() as client:
        for _ in range(2):
            with durable.run("asks", log=str(log)) as run:
                client.post(
                    f"{endpoint.url}/chat/completions",
                    json={"model": "demo-1", "messages": [{"role": "user", "content": "hi"}]},
                )

    bill = ask("spend", by="run").as_(shapes.Bill)

    (line,) = bill.lines
    assert (line.what, line.billed.calls, line.replayed.calls, line.wasted.calls) == ("asks", 1, 1, 0)
    assert line.billed.tokens > 0
    assert line.billed.text
    assert ask("spend", run=run.execution.header.run).as_(shapes.Bill).lines == [line]
    assert ask("spend", run="another").as_(shapes.Bill).lines == []


def test_a_bill_by_what_it_is_not_added_up_by_is_refused(ask, doubled):
    answer = ask("spend", by="moon")

    assert (answer.status, answer.problem.error) == (400, "UsageError")


# Two branches -------------------------------------------------------------------------------------------------------


@pytest.fixture
def branches(begin):
    """Two branches of one run that differ in every way that there is."""
    first = begin()
    for name, value in (("same", 1), ("value", 1), ("asked", 1), ("gone", 1), ("ends", 1)):
        first.append(completed(first.append(started(name)), value))
    first.append(ended())
    second = begin(branch=f"{RUN}.2", branch_name="main-2")
    second.append(completed(second.append(started("same")), 1))
    second.append(completed(second.append(started("value")), 2))
    other = replace(started("asked"), digest="another")
    second.append(completed(second.append(other), 1))
    second.append(failed(second.append(started("ends"))))
    second.append(started("new"))
    second.append(ended())


def replace(event, **changes):
    import msgspec

    return msgspec.structs.replace(event, **changes)


def test_steps_of_two_branches_stand_side_by_side(ask, branches):
    diff = ask("diff", run=RUN, a="main", b="main-2").as_(shapes.Diff)

    assert [(row.a and row.a.name, row.b and row.b.name, row.verdict) for row in diff.rows] == [
        ("same", "same", "equal"),
        ("value", "value", "value"),
        ("asked", "asked", "arguments"),
        ("gone", None, "only_a"),
        ("ends", "ends", "status"),
        (None, "new", "only_b"),
    ]
    assert diff.counts == {"equal": 1, "value": 1, "arguments": 1, "only_a": 1, "status": 1, "only_b": 1}
    assert (diff.totals_a.steps, diff.totals_b.steps, diff.next) == (5, 5, None)


def test_without_names_the_newest_branch_is_compared_with_the_one_before(ask, branches):
    diff = ask("diff", run=RUN).as_(shapes.Diff)

    assert (diff.a.name, diff.b.name) == ("main", "main-2")


def test_equal_steps_can_be_left_out_and_rows_come_in_pages(ask, branches):
    first = ask("diff", run=RUN, only="changed", limit=2).as_(shapes.Diff)
    second = ask("diff", run=RUN, only="changed", limit=9, after=first.next).as_(shapes.Diff)

    assert [row.verdict for row in first.rows + second.rows] == ["value", "arguments", "only_a", "status", "only_b"]
    assert second.next is None


def test_a_run_of_one_branch_has_nothing_to_be_compared_with(ask, doubled):
    assert "only one branch" in ask("diff", run=doubled).problem.message


# SQL ----------------------------------------------------------------------------------------------------------------


def test_a_query_sees_the_views_of_the_log(ask, doubled):
    answer = ask("sql", body={"query": "SELECT name, status FROM steps ORDER BY seq"}).as_(shapes.SqlAnswer)

    assert answer.columns == ["name", "status"]
    assert answer.rows[0] == ["double", "completed"]
    assert (answer.cut, answer.partial) == (False, False)


def test_rows_are_limited_and_long_texts_cut(ask, doubled):
    many = ask("sql", body={"query": "SELECT * FROM range(50)", "limit": 10}).as_(shapes.SqlAnswer)
    long = ask("sql", body={"query": "SELECT repeat('x', 30000)"}).as_(shapes.SqlAnswer)

    assert (len(many.rows), many.cut) == (10, True)
    assert (len(long.rows[0][0]), long.cut) == (20_001, True)


def test_what_json_cannot_say_is_text(ask, doubled):
    query = "SELECT 9007199254740993::BIGINT, 'nan'::DOUBLE, DATE '2026-01-02', [1, 2], {'a': 1}, '\\x00'::BLOB"

    (row,) = ask("sql", body={"query": query}).as_(shapes.SqlAnswer).rows

    assert row == ["9007199254740993", "nan", "2026-01-02", [1, 2], {"a": 1}, "00"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM read_blob('{secret}')",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '{secret}'",
        "ATTACH '{secret}' AS other",
        "ATTACH ':memory:' AS other",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "PRAGMA enable_profiling",
        "CREATE TABLE log.x (n INT)",
        "CREATE TABLE x (n INT)",
        "DELETE FROM log.lines",
        "DROP VIEW steps",
        "EXPORT DATABASE '{secret}'",
        "SELECT 1; SELECT 2",
        "CALL enable_logging()",
        "SELECT * FROM sniff_csv('{secret}')",
        "SELECT * FROM parquet_scan('https://example.org/x.parquet')",
        "SELECT * FROM query('COPY (SELECT 1) TO ''{secret}''')",
        "",
        " ; ",
    ],
)
def test_a_query_can_only_read_and_only_the_log(ask, doubled, tmp_path, query):
    secret = tmp_path / "secret.csv"
    secret.write_text("key\nsk-4711\n")

    answer = ask("sql", body={"query": query.format(secret=secret)})

    assert (answer.status, answer.problem.error) == (400, "UsageError")
    assert "sk-4711" not in answer.problem.message
    assert secret.read_text() == "key\nsk-4711\n"


def test_variables_of_the_server_cannot_be_read_by_name(ask, doubled):
    assert ask("sql", body={"query": "SELECT * FROM json"}).status == 400


def test_a_query_that_takes_too_long_is_stopped(doubled, log):
    view = LogView(log)
    endless = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range = 3"

    with pytest.raises(asking.TookTooLong, match="more than 0 seconds"):
        asking.sql(view, endless, 10, seconds=0.2)


def test_a_query_leaves_the_database_to_others(ask, doubled, log):
    ask("sql", body={"query": "SELECT 1"})
    with durable.run("after", log=str(log)):
        double(3)

    assert LocalLog(log).fold() == 0


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"query": 3}', b'{"query": "SELECT 1", "limit": "x"}', b"\xff"])
def test_a_body_that_is_no_question_is_refused_in_words(ask, doubled, body):
    answer = ask("sql", body=body)

    assert answer.status == 400
    assert "SqlQuestion" in answer.problem.message


# Export -------------------------------------------------------------------------------------------------------------


def test_an_export_has_every_event_of_a_run_one_a_line(ask, doubled):
    answer = ask("export", run=doubled)

    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert [line["seq"] for line in lines] == list(range(8))
    assert {line["run"] for line in lines} == {doubled}
    assert (lines[0]["type"], lines[1]["name"], lines[-1]["type"]) == ("execution_started", "double", "execution_ended")
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert "attachment" in answer.headers["Content-Disposition"]


def test_an_export_of_a_running_run_has_what_is_there(ask, begin):
    writer = begin()
    for n in range(1200):
        writer.append(started("a", n=n))

    assert len(ask("export", run=RUN).body.splitlines()) == 1201


def test_damage_ends_an_export_with_a_sentence(ask, begin, log):
    writer = begin()
    for n in range(5):
        writer.append(started("a", n=n))
    writer.close()
    (path,) = (log / "journal").glob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"n":2', b'"n":7'))

    last = json.loads(ask("export", run=RUN).body.splitlines()[-1])

    assert "damaged" in last["problem"]


def test_an_export_of_no_run_is_not_found(ask, doubled):
    assert ask("export", run="none").status == 404


# Decisions ----------------------------------------------------------------------------------------------------------


def test_a_decision_is_written_down_and_signed(ask, doubled, log):
    done = ask("decide", body={"run": doubled, "reuse": "pure"}).as_(shapes.Done)

    assert done.message.startswith("Pure steps keep their recorded results")
    assert done.by
    executions = ask(f"runs/{doubled}").as_(shapes.RunDetail).executions
    assert [e.purpose for e in executions] == ["run", "decide"]


def test_a_step_in_doubt_is_settled_with_a_value_that_the_next_run_takes(ask, log, effects):
    @step(at_most_once=True)
    def pay():
        effects.hit("paid")
        raise KeyboardInterrupt

    def cell():
        with durable.run("pays", log=str(log)) as run:
            return run, pay()

    with pytest.raises(KeyboardInterrupt):
        cell()
    (run,) = ask("runs").as_(shapes.Runs).runs
    (row,) = ask(f"runs/{run.run}/branches/main/steps").as_(shapes.Page).rows
    assert row.status == "in_doubt"
    done = ask(
        "settle", body={"run": run.run, "step": row.number, "choice": "value", "value": {"receipt": 31}}
    ).as_(shapes.Done)  # fmt: skip

    assert "counts as completed" in done.message
    assert cell()[1] == {"receipt": 31}
    assert effects.count("paid") == 1
    detail = ask(f"runs/{run.run}/branches/main/steps/{row.number}").as_(shapes.StepDetail)
    assert (detail.settled.choice, detail.value.json, detail.row.status) == ("value", {"receipt": 31}, "completed")


def test_nothing_is_settled_that_is_not_in_doubt(ask, doubled):
    answer = ask("settle", body={"run": doubled, "step": 1, "choice": "rerun"})

    assert (answer.status, answer.problem.error) == (400, "UsageError")


def test_while_a_kernel_runs_the_branch_a_decision_is_refused_as_a_conflict(ask, begin):
    begin().append(started("a"))

    answer = ask("decide", body={"run": RUN, "reuse": "all"})

    assert (answer.status, answer.problem.error) == (409, "BranchBusy")
    assert answer.problem.facts["pid"]


@pytest.mark.parametrize(
    "body", [{"run": "x"}, {"run": "x", "reuse": "maybe"}, {"run": 3, "reuse": "all"}, {"reuse": "all"}]
)
def test_a_decision_that_is_none_is_refused(ask, doubled, body):
    assert ask("decide", body=body).status == 400


def test_a_decision_about_no_run_is_not_found(ask, doubled):
    assert ask("decide", body={"run": "none", "reuse": "all"}).status == 404


def test_every_error_of_the_house_has_a_status():
    from jupyter_durable.server.statuses import status_of

    found = {
        name: status_of(kind("said"))
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.DurableError)
    }

    assert set(found.values()) <= {400, 409, 422, 500, 503}
    assert {name for name, status in found.items() if status == 500} == {
        "DurableError", "BudgetExceeded", "ChildCancelled", "NotAnswered", "StepTimeout", "UndoFailed", "WorkerFailed",
    }  # fmt: skip
