"""`jupyter durable undo`: it lists, and says that undoing needs the notebook."""

from __future__ import annotations

from typing import Any

TRIP = """
def cancel(ticket, what): print("cancelled", ticket, flush=True)
@step(compensate=cancel)
def book(what): return what + " 17"
@step
def look(what): return what
with durable.run("trip"):
    book("train"); look("x"); book("car")
"""
UNDO = TRIP.replace(
    'with durable.run("trip"):\n    book("train"); look("x"); book("car")', 'print(durable.undo("trip"))'
)


def test_it_lists_newest_first_and_names_the_magic(script: Any, cli: Any) -> None:
    script(TRIP)

    answer = cli("undo", "trip", "--from", "look")

    assert answer.code == 0
    assert [line.split()[1] for line in answer.out.splitlines()[1:3]] == ["book", "look"]
    assert (
        'Nothing was undone. The functions that undo are in the notebook: say there\n  %durable undo "trip"'
        in answer.out
    )
    assert cli("undo", "trip", "--from", "nothing").code == 1


def test_a_script_undoes_a_run_and_every_listing_says_so(script: Any, cli: Any) -> None:
    script(TRIP)

    ran = script(UNDO)

    assert ran.stdout.splitlines()[:2] == ["cancelled car 17", "cancelled train 17"]
    shape = cli("undo", "trip", "--json").json
    assert [(step["name"], step["fate"]) for step in shape["steps"]] == [
        ("book", "undone"),
        ("look", "stays"),
        ("book", "undone"),
    ]
    assert shape["undone"]["finished"] is True
    statuses = {run["name"]: run["status"] for run in cli("runs", "--json").json["runs"]}
    assert statuses == {"trip": "undone", "undo trip": "completed"}
    assert cli("show", "trip", "--json").json["branches"][0]["status"] == "undone"
    answered = cli("sql", "SELECT name, status FROM runs ORDER BY name", "--json").json
    assert [list(row) for row in answered["rows"]] == [["trip", "undone"], ["undo trip", "completed"]]
    assert "BranchClosed" in script(TRIP).stderr
