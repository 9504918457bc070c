"""Forking and choosing branches by REST."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_durable import client, durable, step
from jupyter_durable.log.local import LocalLog
from jupyter_durable.server import shapes
from tests.server.conftest import RUN
from tests.server.events import completed, ended, started

CALLS: list[str] = []


@step
def draft(text: str) -> str:
    """A step that counts."""
    CALLS.append(f"draft {text}")
    return f"draft of {text}"


@step
def send(text: str) -> str:
    """Another one."""
    CALLS.append(f"send {text}")
    return "sent"


def execute(log: Any) -> None:
    """The program of the run."""
    with durable.run("mail", log=str(log)):
        send(draft("x"))


@pytest.fixture
def run(log: Any) -> str:
    """A run that has completed; its id."""
    CALLS.clear()
    execute(log)
    return client.find_run(LocalLog(log), "mail")


def test_a_fork_is_taken_up_by_the_next_run(ask: Any, log: Any, run: str) -> None:
    done = ask("fork", body={"run": run, "step": 3}).as_(shapes.Done)
    detail = ask(f"runs/{run}").as_(shapes.RunDetail)
    CALLS.clear()
    execute(log)

    assert done.branch_name == "main-2"
    assert "begins anew at send (step 3 of main)" in done.message
    assert CALLS == ["send draft of x"]
    forked = detail.branches[1]
    assert forked.fork is not None
    assert (forked.fork.number, forked.fork.label, forked.fork.by) == (3, "send", done.by)
    assert forked.origin is not None
    assert forked.origin.name == "main"
    assert (detail.run.status, detail.run.waits and detail.run.waits.kind) == ("stopped", "resume")
    assert "forked" in detail.run.waits.message


def test_a_switch_is_written_down_and_followed(ask: Any, log: Any, run: str) -> None:
    ask("fork", body={"run": run, "step": 3}).as_(shapes.Done)
    done = ask("switch", body={"run": run, "branch": "main"}).as_(shapes.Done)
    CALLS.clear()
    execute(log)

    assert (done.branch_name, done.message) == ("main", "The cell takes up main when it runs next.")
    assert CALLS == []


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("fork", {"step": 99}, 400, "no step `99`"),
        ("fork", {"step": 3, "set": {"tone": 1}}, 400, "`tone`"),
        ("fork", {"step": 3, "branch": "mian"}, 404, "no such branch"),
        ("switch", {"branch": "mian"}, 404, "no such branch"),
        ("fork", {}, 400, "step"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(
    ask: Any, log: Any, run: str, path: str, body: dict[str, Any], status: int, said: str
) -> None:
    answer = ask(path, body={"run": run, **body})

    assert answer.status == status
    assert said in answer.problem.message
    assert len(LocalLog(log).executions(run)) == 1


def test_a_run_that_is_not_there_is_not_forked(ask: Any, run: str) -> None:
    assert ask("fork", body={"run": "0a1b", "step": 1}).status == 404


def test_a_branch_that_is_running_is_not_forked(ask: Any, log: Any, run: str) -> None:
    with durable.run("mail", log=str(log), fresh=True):
        draft("x")
        answer = ask("fork", body={"run": run, "step": 1})

    assert answer.status == 409
    assert "is being executed right now" in answer.problem.message


def test_which_branch_is_taken_up_next_is_listed_until_the_cell_has_completed_on_it(
    ask: Any, log: Any, run: str
) -> None:
    def taken_up() -> str:
        return str(ask(f"runs/{run}").as_(shapes.RunDetail).run.next)

    assert taken_up() == ""
    forked = ask("fork", body={"run": run, "step": 3}).as_(shapes.Done)
    assert taken_up() == forked.branch
    main = ask("switch", body={"run": run, "branch": "main"}).as_(shapes.Done)
    assert taken_up() == main.branch
    switched = [each.switched for each in ask(f"runs/{run}").as_(shapes.RunDetail).branches]
    assert switched == [main.by, ""]
    execute(log)
    assert taken_up() == ""


@pytest.fixture
def letter(begin: Any) -> Any:
    """A run of a cell that reads two variables, a function and a module."""
    inputs = {"tone": "a1", "size": "b2", "draft": "code:c3", "json": "module:json"}
    writer = begin(inputs=inputs)
    writer.append(started("send"))
    writer.append(completed(1))
    writer.append(ended())
    writer.close()
    return writer


def test_a_fork_sets_what_the_cell_reads_by_text_as_json_or_as_python_writes_it(ask: Any, letter: Any) -> None:
    (main,) = ask(f"runs/{RUN}").as_(shapes.RunDetail).branches
    texts = {"tone": "'warm'", "size": "9007199254740993"}
    ask("fork", body={"run": RUN, "step": 1, "texts": texts}).as_(shapes.Done)

    assert main.reads == ["tone", "size"]
    forked = ask(f"runs/{RUN}").as_(shapes.RunDetail).branches[1]
    assert forked.set == {"tone": '"warm"', "size": "9007199254740993"}


@pytest.mark.parametrize(("name", "text", "said"), [("tone", "warm", "quotes around it"), ("mood", "1", "`mood`")])
def test_a_text_that_is_no_value_is_refused_and_not_repeated(
    ask: Any, letter: Any, name: str, text: str, said: str
) -> None:
    answer = ask("fork", body={"run": RUN, "step": 1, "texts": {name: text}})

    assert answer.status == 400
    assert said in answer.problem.message
    assert "warm" not in answer.problem.message
