"""Plans, as pure code: hand-made histories, asked for again of the replay that decides when a cell runs."""

from __future__ import annotations

import msgspec
import pytest

from jupyter_durable.call import Call, Place, Policy
from jupyter_durable.engine.tally import Tally
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import AttemptInfo, Decision, ErrorInfo, Outcome, Payload, Unstored, Usage
from jupyter_durable.events import (
    Decided,
    ExecutionEnded,
    ExecutionStarted,
    Recorded,
    StepBilled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepNotStored,
    StepStarted,
)
from jupyter_durable.history import History
from jupyter_durable.keys import Key, inner_scope
from jupyter_durable.planning.edits import Sight, asked_before, edit_of
from jupyter_durable.planning.rehearsal import Rehearsal, bought_anew, ordered
from jupyter_durable.planning.words import Plan, PlannedStep
from jupyter_durable.source import statements
from tests.simulation import header

DOLLAR = Usage(provider="p", model="m", input=1000, output=0, cost=1.0)
FAILURE = AttemptInfo(error=ErrorInfo(type="ValueError", message="no"))


class Story:
    """A history written step by step."""

    def __init__(self) -> None:
        self.events: list[Recorded] = []
        self.add(ExecutionStarted(at=0.0, data=header("e1")))

    def add(self, event) -> int:
        self.events.append(Recorded(len(self.events), event))
        return len(self.events) - 1

    def begin(self, name, *, kind="step", scope="", n=0, pure=False, evidence="v1") -> int:
        evidence = evidence if kind == "step" else ""
        return self.add(
            StepStarted(at=0.0, name=name, digest="digest", n=n, scope=scope, evidence=evidence, kind=kind, pure=pure)
        )

    def done(self, name, **options) -> int:
        step = self.begin(name, **options)
        self.add(StepCompleted(at=0.0, step=step, data=Payload(data=msgspec.Raw(b"1"))))
        return step

    def model(self, name="chat", usage=DOLLAR, **options) -> int:
        step = self.begin(name, kind="model", pure=True, **options)
        if usage is not None:
            self.add(StepBilled(at=0.0, step=step, data=usage))
        self.add(StepCompleted(at=0.0, step=step, data=Payload(data=msgspec.Raw(b"1"))))
        return step

    def end(self, status="completed", failed=()) -> None:
        self.add(ExecutionEnded(at=0.0, data=Outcome(status=status, failed=tuple(failed))))

    @property
    def history(self) -> History:
        return History(self.events)


def asking(changed=(), at_most_once=()):
    def ask(entry: Entry, place: Place) -> Call:
        key = entry.key
        evidence = "v2" if key.name in changed else entry.evidence
        return Call(
            place, key.name, key.digest, key.n, evidence, entry.kind, entry.pure, at_most_once=key.name in at_most_once
        )

    return ask


def plan(own=None, source=None, *, policy=None, before=None, **options) -> Plan:
    policy = policy or Policy()
    rehearsal = Rehearsal(own or History(), source, policy, policy, asking(**options))

    def everything(entries):
        return {id(entry) for entry in entries if before is None or entry.key.name in before}

    made = Plan("run", "main", "", rehearsal.play(everything))
    made.notes = [rehearsal.reason] if rehearsal.reason else []
    return made


def said(made: Plan) -> list[str]:
    return [step.what for step in made.steps]


def cost(tally: Tally) -> float:
    return tally.cost


# What becomes of a step ---------------------------------------------------------------------------------------------


def test_a_completed_history_is_replayed_and_saves_what_it_had_used():
    story = Story()
    story.model()
    story.done("note")
    story.model(n=1)
    story.end()

    made = plan(story.history)

    assert said(made) == ["replay"] * 3
    assert (cost(made.saved), cost(made.at_least), cost(made.at_most_more)) == (2.0, 0, 0)


def test_a_step_in_doubt_is_executed_again_and_its_finished_calls_come_back():
    """Rule 11: an attempt that was cut is continued."""
    story = Story()
    outer = story.begin("agent")
    scope = inner_scope(Key("", "agent", "digest", 0))
    story.model(scope=scope)
    story.begin("chat", kind="model", scope=scope, n=1, pure=True)
    assert outer

    made = plan(story.history)

    assert said(made) == ["again: in doubt", "replay", "again: in doubt"]
    assert cost(made.saved) == 1.0
    assert made.at_least.unknown == 1


def test_calls_inside_of_a_replayed_step_count_once_as_its_own():
    story = Story()
    outer = story.begin("agent")
    story.model(scope=inner_scope(Key("", "agent", "digest", 0)))
    story.add(StepCompleted(at=0.0, step=outer, data=Payload(data=msgspec.Raw(b"1"))))

    made = plan(story.history)

    assert said(made) == ["replay"]
    assert cost(made.saved) == 1.0


def test_the_model_is_asked_anew_inside_of_an_attempt_that_failed():
    """Rule 11: a new attempt reuses finished steps and asks the model anew."""
    story = Story()
    outer = story.begin("agent")
    scope = inner_scope(Key("", "agent", "digest", 0))
    story.model(scope=scope)
    story.done("fetch", scope=scope)
    story.add(StepFailed(at=0.0, step=outer, attempt=0, data=FAILURE))
    story.end("failed", [outer])

    made = plan(story.history)

    assert said(made) == ["again: its attempt failed", "again: the attempt of its step failed", "replay"]
    assert cost(made.at_least) == 1.0


def test_a_failure_that_the_program_caught_is_replayed():
    """Rule 12."""
    story = Story()
    caught = story.begin("stripe")
    story.add(StepFailed(at=0.0, step=caught, attempt=0, data=FAILURE))
    story.done("paypal")
    story.end()

    assert said(plan(story.history)) == ["replay", "replay"]


def test_at_most_once_in_doubt_is_settled_first():
    story = Story()
    story.begin("transfer")
    story.done("later")

    made = plan(story.history, at_most_once={"transfer"})

    assert said(made)[0] == "settle first"


def test_a_value_that_was_not_stored_is_settled_first():
    story = Story()
    step = story.begin("opens")
    story.add(StepNotStored(at=0.0, step=step, data=Unstored(path="result", value_type="generator", reason="no")))

    assert said(plan(story.history)) == ["settle first"]


def test_nothing_is_bought_for_certain_behind_a_question():
    story = Story()
    story.begin("transfer")
    failed = story.begin("chat", kind="model", pure=True)
    story.add(StepBilled(at=0.0, step=failed, data=DOLLAR))
    story.add(StepInterrupted(at=0.0, step=failed))

    made = plan(story.history, at_most_once={"transfer"})

    assert said(made) == ["settle first", "again: in doubt"]
    assert (cost(made.at_least), cost(made.at_most_more)) == (0, 1.0)


# After a difference -------------------------------------------------------------------------------------------------


@pytest.fixture
def story():
    """Two calls, a pure step and one that is not, then a call."""
    story = Story()
    story.model()
    story.done("clean", pure=True)
    story.done("mail")
    story.model(n=1)
    story.end()
    return story


def test_past_the_first_difference_pure_steps_and_calls_may_be_reused_and_others_ask(story):
    made = plan(source=story.history, before=set())

    assert said(made) == ["reuse if asked the same", "reuse if asked the same", "ask you", "reuse if asked the same"]
    assert (cost(made.saved), cost(made.at_least), cost(made.at_most_more)) == (0, 0, 2.0)


def test_what_is_before_the_difference_is_replayed(story):
    made = plan(source=story.history, before={"chat", "clean", "mail"})

    assert said(made) == ["replay"] * 4


def test_changed_evidence_is_a_difference_at_that_step(story):
    """Rule 2."""
    made = plan(source=story.history, changed={"clean"})

    assert said(made) == ["replay", "again: its code changed", "ask you", "reuse if asked the same"]


def test_changed_evidence_on_the_own_branch_goes_over_to_another(story):
    made = plan(story.history, changed={"mail"})

    assert said(made) == ["replay", "replay", "ask you", "reuse if asked the same"]
    assert made.notes == ["the code that `mail` (step 6) depends on has changed"]


@pytest.mark.parametrize(("reuse", "fate"), [("all", "reuse if asked the same"), ("none", "again: its code changed")])
def test_a_flag_answers_the_question(story, reuse, fate):
    made = plan(source=story.history, policy=Policy(reuse=reuse), changed={"mail"})

    assert said(made)[2] == fate


def test_a_recorded_decision_answers_the_question(story):
    story.add(Decided(at=0.0, data=Decision(reuse="all")))

    made = plan(source=story.history, policy=Policy(reuse="all"), changed={"mail"})

    assert made.of("ask") == []


def test_strict_stops_at_a_difference(story):
    assert said(plan(source=story.history, policy=Policy(strict=True), changed={"mail"}))[2] == "stop"
    assert said(plan(story.history, policy=Policy(strict=True), changed={"mail"}))[2] == "stop"


def test_replay_only_stops_where_something_would_be_executed():
    story = Story()
    story.model()
    story.begin("chat", kind="model", n=1, pure=True)

    made = plan(story.history, policy=Policy(replay_only=True))

    assert said(made) == ["replay", "stop"]
    assert not made.at_least.calls
    assert not made.at_most_more.calls


def test_a_difference_in_one_task_leaves_the_others_alone():
    """Rule 3: the prefix is causal."""
    story = Story()
    story.done("fetch", scope="one.0")
    story.done("fetch", scope="two.0")
    story.done("mail", scope="one.0", pure=True)
    story.done("mail", scope="two.0")
    story.end()

    def changed(entry: Entry, place: Place) -> Call:
        key = entry.key
        evidence = "v2" if key == Key("one.0", "fetch", "digest", 0) else entry.evidence
        return Call(place, key.name, key.digest, key.n, evidence, entry.kind, entry.pure)

    rehearsal = Rehearsal(History(), story.history, Policy(), Policy(), changed)
    steps = rehearsal.play(lambda entries: {id(entry) for entry in entries})

    assert [step.what for step in steps] == ["ask you", "replay", "reuse if asked the same", "replay"]


def test_a_fresh_branch_buys_the_calls_inside_of_finished_steps_too():
    story = Story()
    outer = story.begin("agent")
    story.model(scope=inner_scope(Key("", "agent", "digest", 0)))
    story.add(StepCompleted(at=0.0, step=outer, data=Payload(data=msgspec.Raw(b"1"))))
    story.model(usage=None)

    steps = bought_anew(story.history, "asked for a fresh branch", sure=True)
    made = Plan("run", "main-2", "", steps)

    assert said(made) == ["again: asked for a fresh branch"] * 3
    assert cost(made.at_least) == 1.0
    assert made.at_least.unknown == 1
    assert made.totals() == "run · main-2 · 3 again · $1.00 (1 call of unknown use) to buy at least"


# Where the difference is --------------------------------------------------------------------------------------------


def first_line(old, new, inputs=()):
    return edit_of(statements(old), statements(new), inputs).what


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("a = f(1)\nb = g(2)", "a = f(1)  # said\nb = g( 2 )", ""),
        ("a = f(1)\nb = g(2)", "a = f(1)\nb = g(3)", "line 2 is new or changed"),
        ("a = f(1)", "a = f(1)\nb = g(3)", "line 2 is new or changed"),
        ("a = f(1)\nb = g(2)\nc = 1", "a = f(1)\nc = 1", "line 2 is gone"),
        ("a = f(1)\nb = g(2)", "import re\na = f(1)\nb = g(2)", ""),
        ("def f(): return 1\na = 1\nb = f()", "def f(): return 2\na = 1\nb = f()", "line 3 reads `f`, which changed"),
        (
            "def f(): return 1\ndef g(): return f()\na = 1\nb = g()",
            "def f(): return 2\ndef g(): return f()\na = 1\nb = g()",
            "line 4 reads `g`, which changed",
        ),
        ("%%durable x\na = f(1)\n!ls", "%%durable x --plan\na = f(1)\n!ls -a", "line 3 is new or changed"),
        ("%%durable x\n%time a = f(1)", "%%durable x\n%time a = f(2)", "line 2 is new or changed"),
        ("%%durable x\n%%time\na = f(1)", "%%durable x\n%%time\na = f(2)", "line 1 is new or changed"),
    ],
)
def test_the_first_difference_is_a_statement_that_does_something(old, new, what):
    assert first_line(old, new) == what


def test_a_changed_input_counts_from_the_statement_that_reads_it():
    assert first_line("a = f(1)\nb = f(topic)", "a = f(1)\nb = f(topic)", ["topic"]) == (
        "line 2 reads `topic`, which changed"
    )


def test_lines_are_counted_without_what_lies_in_front_of_the_cell():
    assert [s.first for s in statements("\n\n%%durable x\n\n@step\ndef f(): ...\ny = 1; z = 2")] == [3, 5]


def before(old, new, *names, lines=None, asynchronous=()):
    """Names, with their number, of the steps that were asked before the first difference."""
    story = Story()
    numbers: dict[str, int] = {}
    for name in names:
        numbers[name] = numbers.get(name, -1) + 1
        story.done(name, n=numbers[name])
    entries = ordered(story.history)
    edit = edit_of(statements(old), statements(new))
    sight = Sight(asynchronous=frozenset(asynchronous))
    sight.lines = {id(entries[i]): line for i, line in (lines or {}).items()}
    found = asked_before(edit, entries, sight)
    return [e.key.name if not e.key.n else f"{e.key.name}#{e.key.n}" for e in entries if id(e) in found]


def test_equal_steps_of_several_statements_are_told_apart_by_their_number():
    assert before("fetch(1)\nfetch(2)\nfetch(3)", "fetch(1)\nfetch(2)\nfetch(4)", *["fetch"] * 3) == [
        "fetch",
        "fetch#1",
    ]


def test_a_loop_in_front_of_the_difference_is_before_it():
    old = "for q in qs:\n    search(q)\nreport(1)"
    assert before(old, old.replace("report(1)", "report(2)"), "search", "search", "report") == ["search", "search#1"]


def test_a_loop_and_a_later_call_of_the_same_step_cannot_be_told_apart():
    old = "for q in qs:\n    search(q)\nsearch(1)"
    assert before(old, old.replace("search(1)", "search(2)"), "search", "search") == []


def test_what_began_before_a_known_step_was_asked_by_that_statement_or_an_earlier_one():
    old = "a = [fetch(p) for p in ps]\nb = tidy(1)\nc = fetch(9)"
    names = ["fetch", "fetch", "tidy", "fetch"]

    assert before(old, old.replace("tidy(1)", "tidy(2)"), *names) == ["fetch", "fetch#1"]
    assert before(old, old.replace("fetch(9)", "fetch(8)"), *names) == ["fetch", "fetch#1", "tidy"]


def test_a_step_that_is_handed_to_somebody_may_be_called_at_any_time():
    old = "tools = [search]\nrun(tools)\nother()"
    assert before(old, old.replace("run(tools)", "run(tools, 2)"), "search") == []


def test_a_step_asked_by_way_of_a_function_belongs_to_the_statement_that_calls_it():
    old = "def both():\n    search(1); search(2)\nboth()\nreport(1)"
    assert before(old, old.replace("report(1)", "report(2)"), "search", "search", "report") == ["search", "search#1"]


def test_what_no_statement_mentions_is_before_what_is_known_to_be():
    old = "agent.go()\nreport(1)\nreport(2)"
    assert before(old, old.replace("report(2)", "report(3)"), "chat", "report", "report") == ["chat", "report"]


def test_a_model_call_is_found_by_its_line():
    old = "ask(1)\nask(2)"
    assert before(old, "ask(1)\nask(3)", "chat", "chat", lines={0: 0, 1: 1}) == ["chat"]


def test_an_asynchronous_step_that_is_not_awaited_at_once_may_begin_later():
    old = "t = later(fetch(1))\nfetch(2)\nawait t"
    new = old.replace("fetch(2)", "fetch(3)")

    assert before(old, new, "fetch", "fetch", asynchronous={"fetch"}) == []
    assert before("await fetch(1)\nawait fetch(2)", "await fetch(1)\nawait fetch(3)", "fetch", "fetch") == ["fetch"]


def test_totals_say_only_what_there_is():
    steps = [
        PlannedStep(1, "a", "model", "", "replay", "", Tally(calls=1, input=10, cost=0.5)),
        PlannedStep(2, "b", "model", "", "again", "in doubt", Tally(calls=1, unknown=1)),
        PlannedStep(3, "c", "model", "", "reuse", "", Tally(calls=1, input=10, cost=0.25), sure=False),
    ]

    assert Plan("run", "main-2", "", steps).totals() == (
        "run · main-2 · 1 replayed, 1 again, 1 reused if asked the same · $0.50 saved · "
        "1 call of unknown use to buy at least · $0.25 more at most"
    )


def test_what_a_completed_branch_did_not_take_over_of_its_origin_is_not_bought(story):
    branch = Story()
    branch.model()
    branch.end()

    made = plan(branch.history, source=story.history, before=set())

    assert said(made) == ["replay"]
    assert (cost(made.at_least), cost(made.at_most_more)) == (0, 0)
