"""The main job, whole: a real kernel is killed in the middle of a paid call, and nothing is paid for twice."""

from __future__ import annotations

import json

import pytest

from jupyter_durable.demo import main_job
from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.demo.report import Bill, Check, Report
from jupyter_durable.errors import UsageError


@pytest.fixture(autouse=True)
def _no_provider(monkeypatch):
    """Whatever provider the developer has set must not be asked, nor billed, by a test."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.timeout(300)
def test_a_killed_notebook_costs_what_an_uninterrupted_one_does_and_the_call_in_flight(tmp_path, capsys):
    report = main_job.run(json=True, keep=tmp_path / "kept")

    printed = json.loads(capsys.readouterr().out)
    assert [check for check in printed["checks"] if not check["ok"]] == []
    assert report.ok
    assert (report.finished, report.replayed, report.executed) == (2, 2, 3)
    assert (report.total.requests, report.in_flight.requests, report.uninterrupted.requests) == (6, 1, 5)
    assert report.total.tokens - report.in_flight.tokens == report.uninterrupted.tokens
    assert report.saved.tokens > 0
    assert (tmp_path / "kept" / main_job.NOTEBOOK).is_file()
    assert (tmp_path / "kept" / ".durable").is_dir()


@pytest.mark.timeout(300)
def test_with_a_provider_of_the_users_own_the_log_counts(monkeypatch, capsys):
    with Endpoint(delay=2) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")

        report = main_job.run()

        assert provider.bill.summary()["requests"] == 6 + 5
    assert report.ok, report.as_text()
    assert (report.replayed, report.executed, report.counted_by) == (2, 3, "log")
    out = capsys.readouterr().out
    assert "may bill" in out.splitlines()[0]
    assert "shows no bill" in out


@pytest.mark.timeout(300)
def test_the_job_finds_out_a_notebook_that_is_not_durable(tmp_path):
    """Checks that cannot fail would prove nothing: without the magic every call is made again."""
    text = main_job.find_notebook().read_text(encoding="utf-8")
    plain = text.replace('"%%durable research\\n",', '"# plain\\n",').replace('"%durable history research"', '"None"')
    assert "durable research" not in plain
    path = tmp_path / "plain.ipynb"
    path.write_text(plain, encoding="utf-8")

    report = main_job.run(notebook=path)

    assert not report.ok
    assert (report.total.requests, report.in_flight.requests, report.replayed) == (8, 1, 0)
    assert {check.fact for check in report.checks if not check.ok} >= {
        "every other request was billed once",
        "every other token was billed once",
        "every call that was answered came back from the log",
    }


def test_a_folder_that_is_not_empty_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")

    with pytest.raises(UsageError, match="not an empty folder"):
        main_job.run(keep=tmp_path)


def test_a_notebook_that_is_not_there_is_told(tmp_path):
    with pytest.raises(UsageError, match="no notebook"):
        main_job.run(notebook=tmp_path / "none.ipynb")


def report(*checks: Check, kept: str = "") -> Report:
    return Report(
        notebook="a.ipynb",
        model="http://127.0.0.1:1/v1",
        counted_by="endpoint",
        finished=2,
        replayed=2,
        executed=3,
        total=Bill(6, 600),
        in_flight=Bill(1, 100),
        uninterrupted=Bill(5, 500),
        saved=Bill(2, 200),
        seconds=9.0,
        checks=checks,
        kept=kept,
    )


def test_a_report_says_whether_the_numbers_are_right():
    right, wrong = report(Check("five is five", 5, 5)), report(Check("five is five", 5, 6))

    assert right.ok
    assert "Nothing was paid twice: 200 tokens (40 % of a run) saved" in right.as_text()
    assert not wrong.ok
    assert "WRONG  five is five (expected 5, found 6)" in wrong.as_text()
    assert "THE NUMBERS ARE NOT RIGHT" in wrong.as_text()
    assert json.loads(json.dumps(wrong.as_json()))["ok"] is False


@pytest.mark.timeout(300)
def test_the_job_is_done_with_an_agent_none_of_whose_calls_is_decorated_too():
    report = main_job.run(notebook=main_job.find_notebook().with_name("02-no-code-changes.ipynb"))

    assert report.ok, report.as_text()
    assert (report.finished, report.replayed, report.executed, report.saved.requests) == (2, 2, 2, 2)
