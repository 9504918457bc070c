"""Branches from the shell: fork, switch, diff, samples."""

from __future__ import annotations

from typing import Any

import pytest

CHAIN = """
TONE = "dry"
@step
def plan(): return ["a", "b"]
@step
def search(q): print("searches", q, flush=True); return q + "!"
with durable.run("literature-review"):
    print([search(q) for q in plan()])
"""


@pytest.fixture
def forked(script: Any, cli: Any) -> Any:
    """The command line, after a run was made and forked at its second search."""
    script(CHAIN)
    number = cli("show", "literature-review", "--json").json["steps"][2]["number"]
    assert cli("fork", "literature-review", "--at", str(number), "--by", "ada").code == 0
    return cli


def test_a_fork_says_where_the_new_branch_begins_and_what_to_do(script: Any, cli: Any) -> None:
    script(CHAIN)

    answer = cli("fork", "literature-review", "--at", "search")

    assert answer.code == 0
    assert "Branch main-2 begins anew at search (step 3 of main). Run the cell to go on with it." in answer.out


def test_a_fork_as_json(script: Any, cli: Any) -> None:
    script(CHAIN)

    shape = cli("fork", "literature-review", "--at", "search", "--by", "ada", "--json").json

    assert shape["branch"]["name"] == "main-2"
    assert shape["branch"]["fork"] == {"at": 3, "name": "search", "by": "ada"}
    assert shape["branch"]["origin"]["name"] == "main"
    assert shape["branch"]["set"] == {}


def test_the_program_goes_on_from_the_fork(forked: Any, script: Any) -> None:
    ran = script(CHAIN)

    assert ran.stdout.splitlines() == ["searches b", "['a!', 'b!']"]
    shown = forked("show", "literature-review").out
    assert "main, forked at search (step 5)" in shown


def test_a_variable_that_is_not_read_cannot_be_set(script: Any, cli: Any) -> None:
    script(CHAIN)

    assert "`tone` is no variable" in cli("fork", "literature-review", "--at", "search", "--set", "tone=1").sentence


@pytest.mark.parametrize("said", ["tone", "tone=warm", "=1"])
def test_a_value_must_be_json_and_have_a_name(script: Any, cli: Any, said: str) -> None:
    script(CHAIN)

    answer = cli("fork", "literature-review", "--at", "search", "--set", said)

    assert answer.code == 2
    assert len(cli("show", "literature-review", "--json").json["branches"]) == 1


def test_a_switch_names_the_branch_that_is_taken_up_next(forked: Any, script: Any) -> None:
    assert "takes up branch main when it runs next" in forked("switch", "literature-review", "main").out

    assert script(CHAIN).stdout.splitlines() == ["['a!', 'b!']"]
    assert forked("switch", "literature-review", "main-2", "--json").json["branch"]["name"] == "main-2"
    assert script(CHAIN).stdout.splitlines() == ["searches b", "['a!', 'b!']"]


def test_a_switch_to_nothing_says_what_there_is(forked: Any) -> None:
    assert "Its branches: main, main-2" in forked("switch", "literature-review", "mian").sentence


def test_a_diff_stands_side_by_side(forked: Any, script: Any) -> None:
    script(CHAIN.replace('q + "!"', 'q + "?"'))

    shape = forked("diff", "literature-review", "--json").json
    text = forked("diff", "literature-review", "main", "main-2").out

    assert [(row["name"], row["verdict"]) for row in shape["rows"]] == [
        ("plan", "equal"),
        ("search", "equal"),
        ("search", "value"),
    ]
    assert shape["counts"] == {"equal": 2, "value": 1}
    assert (shape["a"]["name"], shape["b"]["name"]) == ("main", "main-2")
    assert "other value  search" in text
    assert '"b?"' in text
    assert "B is main-2 (forked from main at search (step 5) by ada)" in text


def test_a_diff_of_one_name_is_refused(forked: Any) -> None:
    answer = forked("diff", "literature-review", "main")

    assert answer.code == 2
    assert "diff RUN A B" in answer.err


def test_a_value_of_a_stranger_cannot_steer_the_terminal(forked: Any, script: Any) -> None:
    script(CHAIN.replace('q + "!"', r'q + "\\x1b[2J"'))

    out = forked("diff", "literature-review").out

    assert "\x1b" not in out


def test_a_run_without_samples_says_how_to_make_some(forked: Any) -> None:
    assert "--sample 3" in forked("samples", "literature-review").sentence


def test_samples_are_listed(forked: Any, script: Any) -> None:
    script(
        "from jupyter_durable.running import RunContext\n"
        "@step\ndef ask(): return 1\n"
        "with RunContext('poem', sample=2): ask()"
    )

    shape = forked("samples", "poem", "--json").json
    out = forked("samples", "poem").out

    (sample,) = shape["samples"]
    assert (sample["number"], sample["of"], sample["branch_name"], sample["status"]) == (1, 2, "main", "completed")
    assert "1 of 2 samples" in out
    assert "sample 1 of 2" in forked("show", "poem").out
