"""Model calls of a run that goes on anew: its budget goes on, and a stream that was left is no hindrance."""

from __future__ import annotations

import pytest

from jupyter_durable import durable, errors
from jupyter_durable.spending import bill


def watch(tmp_path, ask, turns: int, **flags) -> int:
    """Ask once on each branch."""
    for run in durable.runs("agent", log=str(tmp_path / "log"), **flags):
        with run:
            state = durable.state(turn=0)
            ask(f"turn {state.turn}", max_tokens=10)
            if state.turn + 1 < turns:
                durable.continue_as_new(turn=state.turn + 1)
    return int(state.turn)


def test_a_budget_of_tokens_goes_on_over_all_branches(tmp_path, ask, requests_made):
    with pytest.raises(errors.BudgetExceeded, match="tokens are spent"):
        watch(tmp_path, ask, 40, budget="240 tokens")
    made = requests_made()
    rows = bill(tmp_path / "log")

    assert 1 < made < 39
    (row,) = rows
    assert row.billed.calls == made
    assert row.wasted.calls == 0
    assert watch(tmp_path, ask, made + 1, budget="10k tokens") == made
    assert requests_made() == made + 1


def test_a_stream_that_was_left_in_the_middle_is_no_hindrance(tmp_path, client, requests_made):
    kept = []
    for _ in range(2):
        for run in durable.runs("agent", log=str(tmp_path / "log")):
            with run:
                state = durable.state(turn=0)
                stream = client.chat.completions.create(
                    model="gpt-4o-mini", messages=[{"role": "user", "content": f"{state.turn}"}], stream=True
                )
                kept.append(stream)
                next(iter(stream))
                if state.turn < 1:
                    durable.continue_as_new(turn=state.turn + 1)

    assert requests_made() == 2
