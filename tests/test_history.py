"""History: an index over events, the same whatever portions they come in."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable.entries import Entry
from jupyter_durable.event_data import AttemptInfo, ErrorInfo, Notice, Outcome, Payload, Settlement, Unstored
from jupyter_durable.events import (
    ExecutionEnded,
    ExecutionStarted,
    Noticed,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepNotStored,
    StepSettled,
    StepStarted,
    TimerFired,
)
from jupyter_durable.events import Recorded as Line
from jupyter_durable.history import History
from jupyter_durable.keys import Key, inner_scope
from tests.simulation import Do, Simulation, header

ERROR = AttemptInfo(error=ErrorInfo(type="ValueError", message="no"))


def lines(*events: object) -> list[Line]:
    """Events with their seq, counted from 0."""
    return [Line(seq, event) for seq, event in enumerate(events)]  # type: ignore[arg-type]


def started(name: str, scope: str = "", digest: str = "d", n: int = 0) -> StepStarted:
    return StepStarted(at=0.0, name=name, digest=digest, n=n, scope=scope)


def completed(step: int) -> StepCompleted:
    return StepCompleted(at=0.0, step=step, data=Payload(data=msgspec.Raw(b"1")))


def begun(execution: str = "e1") -> ExecutionStarted:
    return ExecutionStarted(at=0.0, data=header(execution))


def snapshot(history: History) -> object:
    """Everything observable of a history, comparable."""
    return (
        {
            key: (e.begun, e.seq, e.state, e.end, e.attempts, e.execution, repr(e.payload and bytes(e.payload.data)))
            for key, e in history.entries.items()
        },
        {scope: [e.key for e in entries] for scope, entries in history.scopes.items()},
        {stem: list(scopes) for stem, scopes in history.siblings.items()},
        history.outcome,
        history.stalled_now,
        history.fired,
        history.seq,
    )


programs = st.recursive(
    st.builds(Do, st.sampled_from("abc"), st.sampled_from("xy"), fails=st.booleans()),
    lambda inner: st.builds(
        Do, st.sampled_from("abc"), st.sampled_from("xy"), inside=st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=8,
)


@given(st.lists(programs, max_size=6), st.data())
def test_any_split_of_a_history_gives_the_same_index(program: list[Do], data: st.DataObject) -> None:
    """Applying a prefix and then the rest equals applying all at once."""
    kill = data.draw(st.integers(1, 40))
    first = Simulation(kill_after=kill).play(program).events
    events = first + Simulation(first, execution="e2").play(program).events
    cut = data.draw(st.integers(0, len(events)))

    whole = History(events)
    portions = History(events[:cut])
    portions.extend(events[cut:])

    assert snapshot(whole) == snapshot(portions)


def test_an_intent_without_an_end_is_open() -> None:
    history = History(lines(begun(), started("send")))

    assert history.entries[Key("", "send", "d", 0)].state == "open"


def test_a_second_intent_continues_the_same_entry() -> None:
    history = History(
        [*lines(begun(), started("send")), Line(2, begun("e2")), Line(3, started("send")), Line(4, completed(3))]
    )

    entry = history.entries[Key("", "send", "d", 0)]
    assert (entry.begun, entry.seq, entry.state, entry.execution) == (1, 3, "completed", "e2")
    assert len(history.scopes[""]) == 1


def test_an_interrupted_step_is_in_doubt_and_a_cancelled_one_is_not() -> None:
    history = History(
        lines(begun(), started("a"), StepInterrupted(at=0.0, step=1), started("b"), StepCancelled(at=0.0, step=3))
    )

    assert [e.state for e in history.scopes[""]] == ["interrupted", "cancelled"]


def test_a_settlement_gives_an_unstored_step_its_value() -> None:
    unstored = StepNotStored(at=0.0, step=1, data=Unstored(path="result", value_type="Client", reason="no"))
    value = StepSettled(at=0.0, step=1, data=Settlement(choice="value", payload=Payload(data=msgspec.Raw(b"31"))))
    history = History(lines(begun(), started("open"), unstored))
    entry = history.entries[Key("", "open", "d", 0)]
    assert entry.state == "not_stored"

    history.apply(3, value)

    assert entry.state == "completed"
    assert entry.payload is not None


def test_a_failure_that_ended_the_cell_is_tried_again_and_a_caught_one_is_not() -> None:
    history = History(
        lines(
            begun(),
            started("a"),
            StepFailed(at=0.0, step=1, data=ERROR),
            started("b"),
            StepFailed(at=0.0, step=3, data=ERROR),
            ExecutionEnded(at=0.0, data=Outcome(status="failed", failed=(3,))),
        )
    )

    a, b = history.scopes[""]
    assert not history.ended_the_execution(a)
    assert history.ended_the_execution(b)


def test_after_a_kill_a_failure_followed_by_another_step_counts_as_caught() -> None:
    history = History(lines(begun(), started("a"), StepFailed(at=0.0, step=1, data=ERROR), started("b")))
    assert not history.ended_the_execution(history.scopes[""][0])

    history = History(lines(begun(), started("a"), StepFailed(at=0.0, step=1, data=ERROR)))
    assert history.ended_the_execution(history.scopes[""][0])


def test_what_lies_inside_a_finished_step_is_not_in_the_order_of_a_replay() -> None:
    inner = inner_scope(Key("", "outer", "d", 0))
    history = History(
        lines(begun(), started("outer"), started("x", scope=inner), completed(2), completed(1), TimerFired(at=0.0))
    )

    assert [(getattr(what, "begun", "timer"), end) for what, end in history.order()] == [
        (1, False),
        (1, True),
        ("timer", True),
    ]


def test_what_lies_inside_an_unfinished_step_is_in_the_order() -> None:
    inner = inner_scope(Key("", "outer", "d", 0))
    history = History(lines(begun(), started("outer"), started("x", scope=inner), completed(2)))

    assert [(what.begun, end) for what, end in history.order()] == [(1, False), (2, False), (2, True)]  # type: ignore[union-attr]


def test_executions_that_die_without_any_end_are_counted() -> None:
    events: list[object] = []
    for number in range(4):
        events += [begun(f"e{number}"), started("boom")]
    assert History(lines(*events)).stalled_now == 4

    events += [begun("e4"), started("boom"), completed(9)]
    assert History(lines(*events)).stalled_now == 0


def test_a_notice_belongs_to_its_step() -> None:
    notice = Notice(kind="mutated_argument", message="changed `msgs`", names=("msgs",))
    history = History(lines(begun(), started("add"), Noticed(at=0.0, step=1, data=notice), completed(1)))

    assert history.entries[Key("", "add", "d", 0)].notices == (notice,)


def test_a_decision_does_not_hide_how_the_run_ended() -> None:
    decide = msgspec.structs.replace(header("e2"), purpose="decide")
    history = History(
        lines(
            begun(),
            started("a"),
            StepFailed(at=0.0, step=1, data=ERROR),
            ExecutionEnded(at=0.0, data=Outcome(status="failed", failed=(1,))),
            ExecutionStarted(at=0.0, data=decide),
            ExecutionEnded(at=0.0, data=Outcome(status="decided")),
        )
    )

    assert history.outcome is not None
    assert history.outcome.status == "failed"
    assert history.ended_the_execution(history.scopes[""][0])


@given(st.lists(programs, min_size=1, max_size=5), st.data())
def test_the_answer_of_a_patch_stands_in_nobodys_place_or_order(program: list[Do], data: st.DataObject) -> None:
    """Wherever it lies: entries, scopes, order and what was begun last are those of a history without it."""
    events = Simulation(kill_after=data.draw(st.integers(2, 40))).play(program).events
    at = data.draw(st.integers(1, len(events)))
    asked = StepStarted(at=0.0, name="durable.patched", digest="id", kind="patched")
    moved = []
    for line in events[at:]:
        step = getattr(line.event, "step", -1)
        event = msgspec.structs.replace(line.event, step=step + 2) if step >= at else line.event
        moved.append(Line(line.seq + 2, event))
    without, with_it = History(events), History([*events[:at], Line(at, asked), Line(at + 1, completed(at)), *moved])

    def shape(history: History) -> object:
        order = [(what.key, is_end) for what, is_end in history.order() if isinstance(what, Entry)]
        last = sorted((scope, history.by_seq[seq].key) for scope, seq in history.last_start.items())
        return order, last, {scope: [e.key for e in entries] for scope, entries in history.scopes.items()}

    assert shape(without) == shape(with_it)
    assert {key: e.state for key, e in without.entries.items()} == {key: e.state for key, e in with_it.entries.items()}
    assert with_it.patches["id"].state == "completed"
