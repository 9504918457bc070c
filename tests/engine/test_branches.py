"""Edits, inputs and branches: what is kept, what goes live, what a person is asked."""

from __future__ import annotations

import pytest

from jupyter_durable import client, errors
from jupyter_durable.history import History
from tests.engine.cells import Kernel
from tests.engine.harness import MortalLog, World

SETUP = """
@step
def draft(text):
    world.hit(f"draft {text}")
    return f"draft of {text}"

@step
def send(text):
    world.hit(f"send {text}")
    return "sent"

@step
def greet():
    world.hit("greet")
    return "hello"

@step(pure=True)
def summarize(text):
    world.hit(f"summarize {text}")
    return f"summary of {text}"
"""


@pytest.fixture
def world() -> World:
    """What lies outside of the program."""
    return World()


@pytest.fixture
def log() -> MortalLog:
    """A log in memory whose process can be made to die."""
    return MortalLog()


def run_of(log: MortalLog) -> str:
    return client.find_run(log, "p")


def branches(log: MortalLog) -> list[str]:
    return [view.name for view in client.views_of(log)[run_of(log)]]


def test_topic_a_then_b_then_a_again_pays_for_a_once(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP)
    for topic in "ABA":
        kernel.plain(f"topic = {topic!r}")
        result = kernel.durable("draft(topic)")
        assert result.value == f"draft of {topic}"

    assert world.effects == ["draft A", "draft B"]
    assert branches(log) == ["main", "main-2"]


def test_comments_and_formatting_are_no_change(log: MortalLog, world: World) -> None:
    first = Kernel(log, world, SETUP).durable("d = draft('x')\nsend(d)")
    assert first.error is None, first.error

    result = Kernel(log, world, SETUP).durable("# a comment\nd = draft( 'x' )\n\nsend(d)   # sent")

    assert result.live == 0, [r.header for r in log.executions()]
    assert branches(log) == ["main"]


def test_after_an_edit_the_prefix_is_kept(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("d = draft('x')\nsend(d)", die_after=3)

    result = Kernel(log, world, SETUP).durable("d = draft('x')\nsend(d + '!')", reuse="none")

    assert result.value == "sent"
    assert world.effects == ["draft x", "send draft of x", "send draft of x!"]
    assert branches(log) == ["main", "main-2"]


def test_a_step_put_in_front_never_gets_another_ones_value(log: MortalLog, world: World) -> None:
    """Case G09: nothing runs before the choice, and the old history stays whole."""
    Kernel(log, world, SETUP).durable("d = draft('hello')\nsend(d)", die_after=3)
    before = list(log.history(log.executions()[0].header.branch))
    edited = "g = greet()\nd = draft('hello')\nsend(d)"

    stopped = Kernel(log, world, SETUP).durable(edited)

    assert isinstance(stopped.error, errors.DecisionNeeded)
    assert "recorded was `draft`" in str(stopped.error)
    assert "asks for `greet`" in str(stopped.error)
    assert "greet" not in world.effects
    assert list(log.history(log.executions()[0].header.branch)) == before

    client.decide(log, run_of(log), "all")
    done = Kernel(log, world, SETUP).durable(edited)
    assert done.error is None, done.error
    assert world.effects == ["draft hello", "send draft of hello", "greet", "send draft of hello"]


def test_after_a_decision_to_rerun_everything_after_the_difference_is_executed(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("d = draft('a')\nsend('fixed')")
    kernel = Kernel(log, world, SETUP)
    edited = "d = draft('b')\nsend('fixed')"
    assert isinstance(kernel.durable(edited).error, errors.DecisionNeeded)

    client.decide(log, run_of(log), "none")
    result = kernel.durable(edited)

    assert result.error is None
    assert world.effects == ["draft a", "send fixed", "draft b", "send fixed"]


def test_a_pure_step_after_a_difference_is_reused(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("d = draft('a')\nsummarize('t')")

    result = Kernel(log, world, SETUP).durable("d = draft('b')\nsummarize('t')")

    assert result.error is None
    assert world.effects == ["draft a", "summarize t", "draft b"]


def test_an_edited_step_body_is_a_difference_at_that_step(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("d = draft('a')\nsummarize(d)")
    edited = SETUP.replace('f"summary of {text}"', 'f"short summary of {text}"')

    result = Kernel(log, world, edited).durable("d = draft('a')\nsummarize(d)")

    assert result.value == "short summary of draft of a"
    assert world.effects == ["draft a", "summarize draft of a", "summarize draft of a"]


def test_an_edited_prompt_that_a_step_reads_is_a_difference(log: MortalLog, world: World) -> None:
    setup = """
    PROMPT = "be brief"
    @step(pure=True)
    def ask(q):
        world.hit(PROMPT)
        return PROMPT + q
    """
    Kernel(log, world, setup).durable("ask('?')")

    result = Kernel(log, world, setup.replace("brief", "verbose")).durable("ask('?')")

    assert result.value == "be verbose?"
    assert branches(log) == ["main", "main-2"]


def test_an_edited_helper_function_is_a_difference(log: MortalLog, world: World) -> None:
    setup = """
    def clean(text):
        return text.strip()
    @step(pure=True)
    def ask(q):
        world.hit("ask")
        return clean(q)
    """
    Kernel(log, world, setup).durable("ask(' a ')")
    Kernel(log, world, setup).durable("ask(' a ')")
    assert world.effects == ["ask"]

    Kernel(log, world, setup.replace("strip()", "strip().upper()")).durable("ask(' a ')")

    assert world.effects == ["ask", "ask"]


def test_code_that_differs_under_a_step_unseen_from_the_cell_makes_a_branch(log: MortalLog, world: World) -> None:
    """A step reached through an object: the cell's names do not show it, the call does."""
    setup = """
    class Tools:
        pass
    @step(pure=True)
    def inner(x):
        world.hit("inner")
        return x + 1
    tools = Tools()
    tools.call = inner
    """
    cell = "a = tools.call(1)\ntools.call(a)"
    first = Kernel(log, world, setup).durable(cell)
    assert first.error is None, first.error

    second = Kernel(log, world, setup.replace("x + 1", "x + 10")).durable(cell)

    assert second.error is None, second.error
    assert second.value == 21
    assert branches(log) == ["main", "main-2"]


def test_own_mutations_of_an_input_are_no_edit(log: MortalLog, world: World) -> None:
    """Rule 9: what the last execution left is put back in place, so that every name for it sees it."""
    kernel = Kernel(log, world, SETUP + "messages = []\nalias = messages\n")
    cell = "messages.append('hi')\nd = draft(messages[0])\nmessages.append(d)\nsend(d)"
    assert kernel.durable(cell).error is None

    again = kernel.durable(cell)

    assert again.error is None, again.error
    assert again.live == 0
    assert kernel.namespace["messages"] == ["hi", "draft of hi"]
    assert kernel.namespace["alias"] is kernel.namespace["messages"]
    assert branches(log) == ["main"]


def test_an_input_changed_by_a_person_makes_a_branch(log: MortalLog, world: World) -> None:
    kernel = Kernel(log, world, SETUP + "messages = []\n")
    cell = "messages.append('hi')\ndraft(str(messages))"
    kernel.durable(cell)
    kernel.plain("messages[:] = ['edited']")

    kernel.durable(cell)

    assert branches(log) == ["main", "main-2"]
    assert world.effects == ["draft ['hi']", "draft ['edited', 'hi']"]


def test_a_client_is_not_comparable_and_no_difference(log: MortalLog, world: World) -> None:
    setup = SETUP + "import threading\nclient = threading.Lock()\n"
    Kernel(log, world, setup).durable("with client:\n    draft('a')")

    result = Kernel(log, world, setup).durable("with client:\n    draft('a')")

    assert result.live == 0


def test_random_glue_is_noticed_before_the_call(log: MortalLog, world: World) -> None:
    """Case G10."""
    setup = SETUP + "coin = [True]\n"
    cell = "import random\nv = draft('a') if random.random() < 0 or world.broken else send('b')\ngreet()"
    world.broken = True
    Kernel(log, world, setup).durable(cell, die_after=3)
    world.broken = False

    second = Kernel(log, world, setup).durable(cell)

    assert isinstance(second.error, errors.NondeterminismError)
    assert "`draft`" in str(second.error)
    assert "`send`" in str(second.error)
    assert "random.random" in str(second.error)
    assert world.effects == ["draft a", "greet"]


def test_a_changed_outside_input_of_a_completed_cell_makes_a_branch(log: MortalLog, world: World) -> None:
    """Rule 19: a new ``sales.csv`` is no nondeterminism."""
    cell = "d = draft('new file' if world.broken else 'old file')\nsummarize(d)"
    Kernel(log, world, SETUP).durable(cell)
    world.broken = True

    result = Kernel(log, world, SETUP).durable(cell)

    assert result.error is None, result.error
    assert result.value == "summary of draft of new file"
    assert branches(log) == ["main", "main-2"]


def test_fresh_reuses_nothing_and_is_not_repeated_by_a_crash(log: MortalLog, world: World) -> None:
    """Rule 20."""
    cell = "d = draft('a')\nsend(d)"
    Kernel(log, world, SETUP).durable(cell)
    died = Kernel(log, world, SETUP).durable(cell, fresh=True, die_after=3)
    assert died.died

    resumed = Kernel(log, world, SETUP).durable(cell, fresh=True)

    assert resumed.error is None
    assert world.effects.count("draft a") == 2
    assert branches(log) == ["main", "main-2"]

    Kernel(log, world, SETUP).durable(cell, fresh=True)
    assert branches(log) == ["main", "main-2", "main-3"]


def test_from_keeps_what_is_before(log: MortalLog, world: World) -> None:
    cell = "d = draft('a')\ns = summarize(d)\nsend(s)"
    Kernel(log, world, SETUP).durable(cell)
    world.clear()

    result = Kernel(log, world, SETUP).durable(cell, from_step="summarize")

    assert result.error is None
    assert world.effects == ["summarize draft of a", "send summary of draft of a"]


def test_strict_makes_a_difference_an_error(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("draft('a')\nsend('b')")

    result = Kernel(log, world, SETUP).durable("draft('b')\nsend('b')", strict=True)

    assert isinstance(result.error, errors.DecisionNeeded)
    assert world.effects == ["draft a", "send b"]


def test_replay_only_spends_nothing(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("draft('a')\nsend('b')", die_after=3)

    result = Kernel(log, world, SETUP).durable("draft('a')\nsend('b')", replay_only=True)

    assert isinstance(result.error, errors.ReplayOnlyError)
    assert world.effects.count("send b") <= 1


def test_an_unknown_branch_is_refused_with_those_there_are(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("draft('a')")

    result = Kernel(log, world, SETUP).durable("draft('a')", branch="mian")

    assert isinstance(result.error, errors.UsageError)
    assert "`main`" in str(result.error)


def test_a_changed_argument_in_place_is_noticed_once_and_stops_the_replay(log: MortalLog, world: World) -> None:
    """Case G11: never a step that reads what replay did not change again."""
    setup = """
    @step
    def add_turn(msgs, text):
        world.hit("add")
        msgs.append(text)
        return len(msgs)
    @step
    def summarize(msgs):
        world.hit(f"summarize {len(msgs)}")
        return len(msgs)
    """
    cell = "msgs = []\nadd_turn(msgs, 'hi')\nadd_turn(msgs, 'there')\nfinal = summarize(msgs)"
    first = Kernel(log, world, setup).durable(cell, die_after=7)
    assert first.died
    assert any("changed its argument `msgs`" in n for n in first.execution.stats.notices)  # type: ignore[union-attr]

    second = Kernel(log, world, setup).durable(cell)

    assert isinstance(second.error, errors.ReplayError)
    assert "msgs" in str(second.error)
    assert "summarize 0" not in world.effects


def test_a_declared_mutation_is_not_warned_about(log: MortalLog, world: World) -> None:
    setup = """
    @step(mutates=["msgs"])
    def add(msgs):
        msgs.append(1)
    """
    result = Kernel(log, world, setup).durable("msgs = []\nadd(msgs)")

    assert result.execution is not None
    assert result.execution.stats.notices == []


def test_a_counter_that_nobody_else_reads_stops_nothing(log: MortalLog, world: World) -> None:
    """Case G07: polling with a global that the step itself counts up."""
    setup = """
    state = {"n": 0}
    @step
    def job_status(job):
        world.hit("poll")
        state["n"] += 1
        return "done" if state["n"] >= 3 else "busy"
    """
    cell = 'seen = []\nwhile (s := job_status("J1")) != "done": seen.append(s)\nseen'
    first = Kernel(log, world, setup).durable(cell)
    second = Kernel(log, world, setup).durable(cell)

    assert first.value == second.value == ["busy", "busy"]
    assert world.effects == ["poll"] * 3


def test_a_counter_does_not_change_a_rerun_in_the_same_kernel(log: MortalLog, world: World) -> None:
    setup = """
    state = {"n": 0}
    @step
    def count():
        world.hit("count")
        state["n"] += 1
        return state["n"]
    """
    kernel = Kernel(log, world, setup)
    kernel.durable("count()")

    again = kernel.durable("count()")

    assert again.value == 1
    assert world.effects == ["count"]


def test_a_value_that_cannot_be_stored_is_not_bought_again(log: MortalLog, world: World) -> None:
    """Case G02: the effect happened; the next run asks, and a person settles it."""
    setup = """
    import threading
    @step
    def open_session():
        world.hit("open")
        return {"id": 31, "client": threading.Lock()}
    @step
    def use(s):
        world.hit("use")
        return s["id"]
    """
    cell = "s = open_session()\nuse(s)"
    first = Kernel(log, world, setup).durable(cell)
    assert isinstance(first.error, errors.UnstorableValue)
    assert "['client']" in str(first.error)
    assert "DID happen" in str(first.error)
    second = Kernel(log, world, setup).durable(cell)
    assert isinstance(second.error, errors.ValueNotStored)
    assert world.effects == ["open"]

    client.settle(log, run_of(log), "open_session", "value", {"id": 31})
    third = Kernel(log, world, setup).durable(cell)

    assert third.error is None, third.error
    assert third.value == 31
    assert world.effects == ["open", "use"]


def test_what_was_salvaged_can_become_the_value(log: MortalLog, world: World) -> None:
    """Rule 18: what could not be stored is settled as what is in doubt, and what was saved of it may be the value."""
    setup = """
    import threading
    @step
    def open_session():
        return {"id": 31, "client": threading.Lock()}
    """
    Kernel(log, world, setup).durable("open_session()")

    client.settle(log, run_of(log), "open_session", "salvage")
    result = Kernel(log, world, setup).durable("open_session()['id']", reuse="all")

    assert result.error is None, result.error
    assert result.value == 31


def test_an_at_most_once_step_in_doubt_is_settled_by_a_person(log: MortalLog, world: World) -> None:
    setup = """
    @step(at_most_once=True)
    def charge(cents):
        world.hit("charge")
        return "receipt"
    """
    Kernel(log, world, setup).durable("charge(5)", die_after=1)
    assert world.effects == ["charge"]
    stopped = Kernel(log, world, setup).durable("charge(5)")
    assert isinstance(stopped.error, errors.InDoubtError)
    assert world.effects == ["charge"]

    client.settle(log, run_of(log), "charge", "value", "receipt by hand")
    done = Kernel(log, world, setup).durable("charge(5)")

    assert done.value == "receipt by hand"
    assert world.effects == ["charge"]


def test_a_settled_failure_is_raised(log: MortalLog, world: World) -> None:
    setup = """
    @step(at_most_once=True)
    def charge(cents):
        world.hit("charge")
    """
    Kernel(log, world, setup).durable("charge(5)", die_after=1)

    client.settle(log, run_of(log), "charge", "fail")
    result = Kernel(log, world, setup).durable("charge(5)")

    assert isinstance(result.error, errors.InDoubtError)
    assert "settled as failed" in str(result.error)
    assert world.effects == ["charge"]


def test_a_retried_failure_with_another_finished_way_behind_it_asks(log: MortalLog, world: World) -> None:
    """Rule 12: `try stripe except: paypal; raise` must not charge both without a word."""
    setup = """
    @step
    def stripe():
        world.hit("stripe")
        if world.broken: raise ConnectionError("down")
        return "stripe"
    @step
    def paypal():
        world.hit("paypal")
        return "paypal"
    """
    cell = "try:\n    stripe()\nexcept ConnectionError:\n    paypal()\n    raise"
    world.broken = True
    assert isinstance(Kernel(log, world, setup).durable(cell).error, ConnectionError)
    world.broken = False

    second = Kernel(log, world, setup).durable(cell)

    assert isinstance(second.error, errors.DecisionNeeded)
    assert "`paypal`" in str(second.error)
    assert world.effects == ["stripe", "paypal"]


def test_a_receipt_that_fails_does_not_charge_again(log: MortalLog, world: World) -> None:
    setup = """
    @step
    def stripe():
        world.hit("stripe")
        raise ConnectionError("down")
    @step
    def paypal():
        world.hit("paypal")
    @step
    def receipt():
        world.hit("receipt")
        if world.broken: raise OSError("printer")
    """
    cell = "try: stripe()\nexcept ConnectionError: paypal()\nreceipt()"
    world.broken = True
    assert isinstance(Kernel(log, world, setup).durable(cell).error, OSError)
    world.broken = False

    assert Kernel(log, world, setup).durable(cell).error is None
    assert world.effects == ["stripe", "paypal", "receipt", "receipt"]


def test_a_run_that_keeps_dying_in_one_step_asks(log: MortalLog, world: World) -> None:
    """Rule 11: N resumes in a row without any new end stop."""
    for _ in range(5):
        Kernel(log, world, SETUP).durable("draft('boom')", die_after=1)
    deaths = world.effects.count("draft boom")

    stopped = Kernel(log, world, SETUP).durable("draft('boom')")

    assert isinstance(stopped.error, errors.DecisionNeeded)
    assert world.effects.count("draft boom") == deaths
    client.decide(log, run_of(log), "none")
    assert Kernel(log, world, SETUP).durable("draft('boom')").error is None


def test_a_new_pass_starts_afresh_and_an_open_one_resumes(log: MortalLog, world: World) -> None:
    """Rule 19: a daily notebook does not report yesterday for ever."""
    cell = "draft('a')\nsend('b')"
    Kernel(log, world, SETUP).durable(cell, pass_id="monday")
    Kernel(log, world, SETUP).durable(cell, pass_id="monday")
    assert world.effects == ["draft a", "send b"]

    Kernel(log, world, SETUP).durable(cell, pass_id="tuesday")

    assert world.effects == ["draft a", "send b"] * 2


def test_the_origins_history_is_never_changed(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("draft('a')\nsummarize('b')")
    branch = log.executions()[0].header.branch
    before = list(log.history(branch))

    Kernel(log, world, SETUP).durable("draft('a')\nsummarize('c')\nsend('d')")
    Kernel(log, world, SETUP).durable("draft('z')\nsend('d')", reuse="none")

    assert list(log.history(branch)) == before


def test_a_branch_is_complete_in_itself(log: MortalLog, world: World) -> None:
    """What it took over is in its own history, with the value."""
    Kernel(log, world, SETUP).durable("draft('a')\nsummarize('b')")
    Kernel(log, world, SETUP).durable("draft('a')\nsummarize('c')")
    newest = client.views_of(log)[run_of(log)][-1]

    history = History(log.history(newest.branch))

    states = [(e.key.name, e.state, e.adopted is not None) for e in history.scopes[""]]
    assert states == [("draft", "completed", True), ("summarize", "completed", False)]


def test_reuse_is_kept_for_the_branch_after_a_crash(log: MortalLog, world: World) -> None:
    Kernel(log, world, SETUP).durable("draft('a')\nsend('s')\nsummarize('t')")
    edited = "draft('b')\nsend('s')\nsummarize('t')"
    Kernel(log, world, SETUP).durable(edited, reuse="all", die_after=4)

    result = Kernel(log, world, SETUP).durable(edited)

    assert result.error is None, result.error
    assert world.effects.count("send s") == 1
