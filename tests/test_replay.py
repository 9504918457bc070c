"""Replay: decisions about calls, as pure code. Each test plays programs through the simulation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable import errors
from jupyter_durable.call import Call, Execute, Place, Policy, Recorded, Stop
from jupyter_durable.events import ExecutionStarted, StepCompleted, StepStarted
from jupyter_durable.history import History
from jupyter_durable.replay import Replay
from tests.simulation import Do, Played, Simulation
from tests.test_history import begun, completed, lines, programs, started


def run(program: list[Do], **options: object) -> Played:
    return Simulation(**options).play(program)  # type: ignore[arg-type]


@given(st.lists(programs, max_size=6), st.data())
def test_a_program_killed_anywhere_and_resumed_sees_the_same_values(program: list[Do], data: st.DataObject) -> None:
    """No completed step is executed twice, and every call gets the value of its own first execution."""
    kill = data.draw(st.integers(1, 30))
    first = run(program, kill_after=kill)
    ended = {e.event.step for e in first.events if isinstance(e.event, StepCompleted)}
    done = {e.seq for e in first.events if isinstance(e.event, StepStarted) and e.seq in ended}
    finished = [label for label in first.executed if label in first.values]

    second = run(program, own=first.events, execution="e2")

    assert second.stop is None
    assert not set(finished) & set(second.executed), "a completed step was executed again"
    assert len(done) == len([v for v in first.values.values() if not v.startswith("raised")])
    for label, value in first.values.items():
        if label in second.values:
            assert second.values[label] == value


@given(st.lists(programs, max_size=6))
def test_a_completed_program_replays_without_executing_anything(program: list[Do]) -> None:
    first = run(program)

    second = run(program, own=first.events, execution="e2", policy=Policy(replay_only=True))

    assert second.stop is None
    assert second.executed == []
    top = {label: value for label, value in first.values.items() if label.count("/") == 1}
    assert second.values == top


@given(st.lists(programs, max_size=5), st.lists(programs, max_size=5), st.integers(1, 25))
def test_no_value_recorded_for_one_key_is_handed_to_another(old: list[Do], new: list[Do], kill: int) -> None:
    """Whatever the edit, a value carries the label of the call that made it."""
    first = run(old, kill_after=kill)

    for policy in (Policy(), Policy(reuse="all"), Policy(reuse="none"), Policy(reuse="pure")):
        second = run(new, source=first.events, execution="e2", policy=policy)
        for label, value in second.values.items():
            assert f"{label} by " in value or value == f"raised {label}"


@given(st.lists(programs, max_size=5), st.integers(1, 20), st.integers(1, 20))
def test_a_branch_killed_and_resumed_equals_one_that_was_not(program: list[Do], kill: int, again: int) -> None:
    """An experiment that is interrupted makes the same decisions as one that is not."""
    first = run(program, kill_after=kill)
    edited = [Do("new", "z"), *program]
    policy = Policy(reuse="all")
    whole = run(edited, source=first.events, execution="e2", policy=policy)

    cut = run(edited, source=first.events, execution="e2", policy=policy, kill_after=again)
    rest = run(edited, own=cut.events, source=first.events, execution="e3", policy=policy)

    assert rest.stop is None
    executed = [label for label in cut.executed if label in cut.values] + rest.executed
    assert sorted(set(executed)) == sorted(set(whole.executed))
    assert {k: v.split(" by ")[0] for k, v in rest.values.items()}.items() <= {
        k: v.split(" by ")[0] for k, v in (whole.values | cut.values).items()
    }.items()


def test_an_inner_step_does_not_shift_the_numbers_of_its_caller() -> None:
    """Rule 1: a skipped body consumes none of its caller's occurrences."""
    program = [Do("outer", inside=(Do("ask", "x"),)), Do("ask", "x")]
    first = run(program)

    second = run(program, own=first.events, execution="e2")

    assert second.values["/ask(x)#0"] == first.values["/ask(x)#0"]
    assert second.executed == []


def test_equal_calls_are_told_apart_by_their_occurrence() -> None:
    program = [Do("poll", "J1")] * 3
    first = run(program)

    second = run(program, own=first.events, execution="e2")

    assert list(second.values.values()) == list(first.values.values())
    assert len(set(first.values.values())) == 3


def test_another_call_than_recorded_stops_before_any_effect() -> None:
    """Nothing recorded changed, and the program asks for another step: nondeterminism."""
    first = run([Do("ask_a"), Do("report")], kill_after=4)

    second = run([Do("ask_b"), Do("report")], own=first.events, execution="e2")

    assert second.executed == []
    assert second.stop is not None
    assert second.stop.error is errors.NondeterminismError
    assert "`ask_a`" in second.stop.message
    assert "`ask_b`" in second.stop.message


def test_a_changed_argument_stops_before_any_effect() -> None:
    first = run([Do("pay", "40"), Do("mail")], kill_after=4)

    second = run([Do("pay", "41"), Do("mail")], own=first.events, execution="e2")

    assert second.executed == []
    assert second.stop is not None
    assert "other arguments" in second.stop.message


def test_a_step_in_front_of_finished_ones_asks_before_it_runs() -> None:
    """Case G09."""
    first = run([Do("draft"), Do("send")], kill_after=4)
    policy = Policy(mentions=frozenset({"greet", "draft", "send"}))

    second = run([Do("greet"), Do("draft"), Do("send")], source=first.events, execution="e2", policy=policy)

    assert second.executed == []
    assert second.stop is not None
    assert second.stop.error is errors.DecisionNeeded
    assert "recorded was `draft`" in second.stop.message
    assert "the code now asks for `greet`" in second.stop.message


def test_after_an_edit_the_prefix_is_kept_and_the_rest_goes_live() -> None:
    first = run([Do("a"), Do("b", "1"), Do("c", "from b1")])

    second = run([Do("a"), Do("b", "2"), Do("c", "from b2")], source=first.events, execution="e2")

    assert second.adopted == ["/a()#0"]
    assert second.executed == ["/b(2)#0", "/c(from b2)#0"]


def test_after_a_difference_a_pure_step_is_reused_and_another_is_asked_about() -> None:
    first = run([Do("b", "1"), Do("p", pure=True), Do("mail")])
    edited = [Do("b", "2"), Do("p", pure=True), Do("mail")]

    second = run(edited, source=first.events, execution="e2")

    assert second.adopted == ["/p()#0"]
    assert second.executed == ["/b(2)#0"]
    assert second.stop is not None
    assert "`mail`" in second.stop.message


@pytest.mark.parametrize(
    ("reuse", "executed", "adopted"),
    [
        ("all", ["/b(2)#0"], ["/p()#0", "/mail()#0"]),
        ("pure", ["/b(2)#0", "/mail()#0"], ["/p()#0"]),
        ("none", ["/b(2)#0", "/p()#0", "/mail()#0"], []),
    ],
)
def test_a_decision_settles_what_is_reused(reuse: str, executed: list[str], adopted: list[str]) -> None:
    first = run([Do("b", "1"), Do("p", pure=True), Do("mail")])
    edited = [Do("b", "2"), Do("p", pure=True), Do("mail")]

    second = run(edited, source=first.events, execution="e2", policy=Policy(reuse=reuse))  # type: ignore[arg-type]

    assert second.stop is None
    assert (second.executed, second.adopted) == (executed, adopted)


def test_changed_evidence_is_a_difference_although_name_and_arguments_match() -> None:
    """Rule 2: an edited body or prompt."""
    first = run([Do("a"), Do("write", pure=True), Do("mail")])

    second = run([Do("a"), Do("write", pure=True, evidence="v2")], source=first.events, execution="e2")

    assert second.adopted == ["/a()#0"]
    assert second.executed == ["/write()#0"]


def test_a_finished_step_whose_code_changed_is_asked_about() -> None:
    first = run([Do("mail")])

    second = run([Do("mail", evidence="v2")], source=first.events, execution="e2")

    assert second.executed == []
    assert second.stop is not None
    assert second.stop.error is errors.DecisionNeeded


def test_a_step_in_doubt_is_asked_about_after_an_edit() -> None:
    first = run([Do("a"), Do("send")], kill_after=4)

    second = run([Do("a"), Do("send"), Do("more")], source=first.events, execution="e2")

    assert second.executed == []
    assert second.stop is not None
    assert "its end is not known" in second.stop.message


def test_a_difference_inside_a_step_makes_what_follows_in_the_cell_come_after_it() -> None:
    first = run([Do("outer", "1", inside=(Do("x", "1"),)), Do("mail")])
    edited = [Do("outer", "2", inside=(Do("x", "2"),)), Do("mail")]

    second = run(edited, source=first.events, execution="e2")

    assert second.stop is not None
    assert "`mail`" in second.stop.message


def test_a_chain_that_met_no_difference_is_untouched() -> None:
    """Rule 3: of gathered chains only the edited one goes live."""

    def chains(edit: str) -> list[tuple[str, list[Do]]]:
        return [(f"chain:{i}", [Do("one", str(i)), Do("two", f"{i}{edit if i == 1 else ''}")]) for i in range(3)]

    simulation = Simulation()
    simulation.write(ExecutionStarted(at=0.0, data=begun().data))
    root = Place()
    for what, chain in chains(""):
        simulation.scope(chain, root.child(what), what)
    events = simulation.played.events

    second = Simulation(source=events, execution="e2")
    root = Place()
    for what, chain in chains("!"):
        second.scope(chain, root.child(what), what)

    assert second.played.executed == ["chain:1/two(1!)#0"]
    assert len(second.played.adopted) == 5


def test_siblings_with_equal_functions_are_matched_by_what_they_ask() -> None:
    """Rule 5: tasks made from a set come in another order; each binds to its own recorded place."""
    simulation = Simulation()
    simulation.write(begun())
    root = Place()
    for i in range(4):
        simulation.scope([Do("one", str(i)), Do("two")], root.child("work"), f"w{i}")
    events = simulation.played.events

    second = Simulation(own=events, execution="e2")
    root = Place()
    for i in (2, 0, 3, 1):
        second.scope([Do("one", str(i)), Do("two")], root.child("work"), f"w{i}")

    assert second.played.executed == []
    assert second.played.values == simulation.played.values


def test_places_of_different_parents_are_never_exchanged() -> None:
    simulation = Simulation()
    simulation.write(begun())
    root = Place()
    simulation.scope([Do("x", "1")], root.child("left").child("leaf"), "l")

    second = Simulation(own=simulation.played.events, execution="e2")
    second.scope([Do("x", "1")], Place().child("right").child("leaf"), "r")

    assert second.played.executed == ["r/x(1)#0"]


def test_a_recorded_entry_is_handed_out_once() -> None:
    replay = Replay(History(lines(begun(), started("a"), completed(1))))
    place = Place()

    first = replay.ask(Call(place, "a", "d", 0))
    again = replay.ask(Call(place, "a", "d", 0))

    assert isinstance(first, Recorded)
    assert isinstance(again, Execute)


def test_an_at_most_once_step_in_doubt_asks_what_happened() -> None:
    replay = Replay(History(lines(begun(), started("charge"))))

    verdict = replay.ask(Call(Place(), "charge", "d", 0, at_most_once=True))

    assert isinstance(verdict, Stop)
    assert verdict.error is errors.InDoubtError
    assert "settle" in verdict.message


def test_replay_only_executes_nothing() -> None:
    first = run([Do("a"), Do("b")], kill_after=3)

    second = run([Do("a"), Do("b")], own=first.events, execution="e2", policy=Policy(replay_only=True))

    assert second.handed_out == ["/a()#0"]
    assert second.executed == []
    assert second.stop is not None
    assert second.stop.error is errors.ReplayOnlyError


def test_from_a_step_on_nothing_is_reused() -> None:
    program = [Do("a"), Do("p", pure=True), Do("b")]
    first = run(program)

    second = run(program, source=first.events, execution="e2", policy=Policy(from_step="p", reuse="none"))

    assert second.adopted == ["/a()#0"]
    assert second.executed == ["/p()#0", "/b()#0"]


def test_strict_makes_any_difference_an_error() -> None:
    first = run([Do("a"), Do("b", "1")])

    second = run([Do("a"), Do("b", "2")], source=first.events, execution="e2", policy=Policy(strict=True))

    assert second.executed == []
    assert second.stop is not None
    assert "--strict" in second.stop.message


def test_a_message_names_the_likely_cause_and_no_argument() -> None:
    first = run([Do("ask_a", "secret-argument")], kill_after=2)
    policy = Policy(causes=("random.random",))

    second = run([Do("ask_b", "secret-argument")], own=first.events, execution="e2", policy=policy)

    assert second.stop is not None
    assert "`random.random`" in second.stop.message
    assert "secret-argument" not in second.stop.message


def test_a_step_that_another_kernel_executes_is_running_elsewhere_and_not_in_doubt() -> None:
    """Rule 28: a decision to run it again does not help either."""
    first = run([Do("a"), Do("send")], kill_after=4)

    for reuse in ("ask", "none"):
        policy = Policy(origin_runs=True, reuse=reuse)  # type: ignore[arg-type]
        second = run([Do("a"), Do("send"), Do("more")], source=first.events, execution="e2", policy=policy)

        assert second.executed == []
        assert second.stop is not None
        assert second.stop.error is errors.BranchBusy
