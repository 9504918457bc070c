"""Ending runs from the shell: cancel, resume, children."""

from __future__ import annotations

from typing import Any

import pytest

FAMILY = """
@step
def search(q): return q + "!"
with durable.run("literature-review", grace="0s"):
    with durable.run("page-1"):
        search("a")
    with durable.run("page-2"):
        search("b")
        durable.wait_for("word")
"""


@pytest.fixture
def parked(script: Any, cli: Any) -> Any:
    """The command line, beside a run that is parked in its second child run."""
    script(FAMILY)
    return cli


def test_child_runs_are_listed_with_what_they_are_at(parked: Any) -> None:
    rows = parked("children", "literature-review", "--json").json["children"]

    assert [(row["path"], row["status"], row["steps"]) for row in rows] == [
        ("page-1", "completed", 1),
        ("page-2", "waiting", 2),
    ]
    assert "page-2" in parked("children", "literature-review").out
    assert "literature-review/page-2" in parked("waiting").out


def test_a_parked_run_is_cancelled_and_resumed(parked: Any, script: Any) -> None:
    cancelled = parked("cancel", "literature-review", "--reason", "enough", "--by", "ada", "--json").json
    assert (cancelled["alive"], cancelled["child"]) == (False, None)
    assert parked("runs", "--json").json["runs"][0]["status"] == "cancelled"
    ran = script(FAMILY)
    assert "cancelled by ada" in ran.stderr
    assert "(enough)" in ran.stderr

    assert "may go on" in parked("resume", "literature-review", "--by", "ada").out
    parked("signal", "literature-review/page-2", "word", "1")
    assert script(FAMILY).returncode == 0


def test_a_child_run_that_is_cancelled_ends_when_the_program_comes_to_it(parked: Any, script: Any) -> None:
    said = parked("cancel", "literature-review/page-2").out

    assert "is cancelled: it ends when the cell comes to it again" in said
    assert "ChildCancelled" in script(FAMILY).stderr


def test_what_cannot_be_cancelled_is_said(parked: Any) -> None:
    assert "has no child run `page-9`" in parked("cancel", "literature-review/page-9").sentence
    assert "child run `page-1` is completed" in parked("cancel", "literature-review/page-1").sentence
    assert "There is no run `other`" in parked("cancel", "other").sentence
    assert "is not cancelled" in parked("resume", "literature-review").sentence
