"""G09, G10, G28: an edited cell, a cell that is not deterministic, and going on after a failure, over an old log."""

from __future__ import annotations

import pytest

from tests.cases.conftest import refused

MAIL = """
@step
def draft(text): hit("draft"); return {"draft": text}
@step
def send(d): hit("send"); hit(f"sent {d}"); stand("send"); return "sent"
@step
def greet(): hit("greet"); return "hello there"
@step
def sign(d): hit("sign"); return d
@step
def sketch(text): hit("sketch"); return {"sketch": text}
"""
CELL_A = '%%durable mail\nd = draft("sk-live-hello"); send(d)'
EDITS = {
    "step put in front": ('g = greet(); d = draft("sk-live-hello"); send(d)', ("`draft`", "`greet`")),
    "step put in between": ('d = draft("sk-live-hello"); e = sign(d); send(e)', ("`send`", "`sign`")),
    "step renamed": ('d = sketch("sk-live-hello"); send(d)', ("`draft`", "`sketch`", "`send`")),
}


@pytest.mark.parametrize("edit", EDITS)
def test_g09_an_edited_cell_meets_an_old_log(case, edit):
    """Nothing is executed before the user has chosen, and the log of the old code stays as it is."""
    body, words = EDITS[edit]
    case.open(MAIL)
    case.kill_at("send", CELL_A)
    before, done = case.journals(), case.effects.tags()

    ran = case.rerun(f"%%durable mail\n{body}")

    choices = ("%durable decide reuse", "%durable decide rerun", "%%durable mail --fresh", "put the old code back")
    refused(ran, "DecisionNeeded", "`mail`", *words, *choices, hidden=("sk-live-hello", "hello there"))
    assert case.effects.tags() == done
    assert {name: text for name, text in case.journals().items() if name in before} == before
    # Back to the old code: its branch goes on.
    assert case.kernel.ok(CELL_A).results == ["'sent'"]
    assert case.effects.tags() == [*done, "send", "sent {'draft': 'sk-live-hello'}"]


def test_g09_another_argument_is_another_topic_and_never_gets_the_old_result(case):
    """An edit of what is asked for is an experiment (docs/cell.md) on a branch of its own, and going back is free."""
    case.open(MAIL)
    case.kill_at("send", CELL_A)

    other = case.rerun(CELL_A.replace("hello", "bye"))
    back = case.kernel.ok(CELL_A)

    assert other.results == back.results == ["'sent'"]
    said = "sent {'draft': 'sk-live-hello'}"
    bye = said.replace("hello", "bye")
    assert case.effects.tags() == ["draft", "send", said, "draft", "send", bye, "send", said]


@pytest.mark.parametrize(("choice", "drafts"), [("reuse", 1), ("rerun", 2), ("fresh", 2)])
def test_g09_every_choice_that_the_message_offers_works(case, choice, drafts):
    case.open(MAIL)
    case.kill_at("send", CELL_A)
    edited = '%%durable mail\ng = greet(); d = draft("sk-live-hello"); send(d)\ng, d'
    case.rerun(edited)
    if choice == "fresh":
        edited = edited.replace("mail", "mail --fresh", 1)
    else:
        case.kernel.ok(f"%durable decide {choice}")

    ran = case.kernel.run(edited)

    assert ran.results == ["('hello there', {'draft': 'sk-live-hello'})"], ran.errors
    assert (case.effects.count("greet"), case.effects.count("draft"), case.effects.count("send")) == (1, drafts, 2)


ORDER = """
@step
def one(): hit("one"); return 1
@step
def two(): hit("two"); return 2
@step
def last(v): hit(f"last {v}"); stand("last"); return v
"""


@pytest.mark.parametrize(
    ("body", "value"),
    [("a = two(); b = one()", (2, 1)), ("a = b = one()", (1, 1)), ("b = two(); a = 0", (0, 2))],
    ids=["swapped", "second removed", "first removed"],
)
def test_g09_steps_swapped_or_removed_never_get_the_other_ones_result(case, body, value):
    case.open(ORDER)
    case.kill_at("last", "%%durable order\na = one(); b = two()\nlast((a, b))")
    cell = f"%%durable order\n{body}\nlast((a, b))"

    ran = case.rerun(cell)
    if ran.status == "error":
        refused(ran, "DecisionNeeded", "`order`", "--fresh")
        assert case.effects.tags() == ["one", "two", "last (1, 2)"]
        case.kernel.ok("%durable decide reuse")
        ran = case.kernel.run(cell)

    assert ran.results == [str(value)], ran.errors
    assert case.effects.count("one") == case.effects.count("two") == 1
    assert case.effects.tags()[-1] == f"last {value}"


# G10 ----------------------------------------------------------------------------------------------------------------

COIN = """
import random, time, uuid
@step
def ask_a(): hit("a"); return "A"
@step
def ask_b(): hit("b"); return "B"
@step
def report(v): hit(f"report {v}"); stand("report"); return v
@step
def log(text): hit("log"); return len(text)
"""
COIN_CELL = "%%durable ab\nimport random\nv = ask_a() if random.random() < 0.5 else ask_b()\nreport(v)"


def test_g10_a_random_branch_outside_of_a_step(case):
    """The setup cell seeds the coin, so that it falls the other way in the second kernel for certain."""
    case.open(COIN + "random.seed(1)")  # 0.13
    case.kill_at("report", COIN_CELL)

    ran = case.rerun(COIN_CELL, setup=COIN + "random.seed(2)")  # 0.96

    message = refused(ran, "NondeterminismError", "`ab`", "`ask_a`", "`ask_b`", "`random.random()`", "durable.random()")
    assert "Nothing was executed" in message
    assert case.effects.tags() == ["a", "report A"]
    # When it falls as it did before, the run goes on; with the remedy it always does.
    assert case.rerun(COIN_CELL, setup=COIN + "random.seed(1)").results == ["'A'"]
    assert case.effects.tags() == ["a", "report A", "report A"]


CHANCES = {
    "random": ("random.random()", "random.random", "durable.random()"),
    "choice": ("random.choice(range(10**9))", "random.choice", "durable.random()"),
    "time": ("time.time()", "time.time", "durable.now()"),
    "time_ns": ("time.time_ns()", "time.time_ns", "durable.now()"),
    "monotonic": ("time.monotonic()", "time.monotonic", "durable.now()"),
    "datetime": ("datetime.datetime.now()", "datetime.now", "durable.now()"),
    "uuid": ("uuid.uuid4()", "uuid.uuid4", "durable.uuid()"),
    "urandom": ("os.urandom(4)", "os.urandom", "durable.random()"),
    "secrets": ("secrets.token_hex()", "secrets.token_hex", "durable.random()"),
    "numpy": ("numpy.random.default_rng().random()", "numpy.random.default_rng", "durable.random()"),
    "identity": ("id(object())", "id", "into a step"),
    "file": ("open('n').read()", "", "into a step"),
    "process": ("os.getpid()", "os.getpid", "into a step"),
}


@pytest.mark.parametrize("kind", CHANCES)
def test_g10_every_source_of_chance_is_noticed_before_the_call_and_named(case, kind):
    """The step is asked for with an argument of chance; the run is cut short by an error in glue code."""
    expression, cause, remedy = CHANCES[kind]
    (case.folder / "n").write_text("1")
    case.open(COIN + "import datetime, secrets, numpy\n")
    cell = (
        f"%%durable chance\nlog(str({expression}))\n"
        "if not os.path.exists('go'): raise RuntimeError('cut short')\nlog('end')"
    )
    first = case.kernel.run(cell)
    (case.folder / "n").write_text("2")

    ran = case.rerun(cell)

    assert first.reply["ename"] == "RuntimeError", first.errors
    refused(
        ran,
        "NondeterminismError",
        "`chance`",
        "`log`",
        *([f"`{cause}()`"] if cause else []),
        remedy,
        "Nothing was executed",
    )
    assert case.effects.tags() == ["log"]


def test_g10_the_order_of_a_set_is_noticed(case):
    cell = (
        "%%durable walk\nfor w in {'alpha', 'beta', 'gamma', 'delta', 'epsilon'}: log(w + '!' * len(w))\n"
        "if not os.path.exists('go'): raise RuntimeError('cut short')\nlog('end')"
    )
    case.open(COIN, PYTHONHASHSEED="1")
    case.kernel.run(cell)

    ran = case.rerun(cell, PYTHONHASHSEED="2")

    # Each call is known by its arguments: walked in another order, every word still has its own result.
    if ran.status == "ok":
        assert case.effects.count("log") == 6
    else:
        refused(ran, "NondeterminismError", "`walk`", "`log`", "Nothing was executed", hidden=("gamma!",))
        assert case.effects.count("log") == 5


def test_g10_the_remedy_is_deterministic(case):
    cell = (
        "%%durable cure\nv = ask_a() if durable.random() < 0.5 else ask_b()\n"
        "w = (durable.now(), durable.uuid())\nreport(v)\nw"
    )
    ran = case.killed_and_rerun(COIN, "report", cell)

    assert ran.status == "ok", ran.errors
    assert case.effects.count("a") + case.effects.count("b") == 1


# G28 ----------------------------------------------------------------------------------------------------------------

REPORT = """
@step
def collect(): hit("collect"); return ["sk-live-data"]
@step
def summarize(d): hit("summarize"); return {"title": "T", "of": len(d)}
@step
def publish(title, s): hit("publish"); hit(f"published {title} {s}"); return title
"""
TYPO = '%%durable report\nd = collect(); s = summarize(d)\ntitle = s["titel"]\npublish(title, s)'
FIXED = TYPO.replace("titel", "title")
EDITED = REPORT.replace('hit("summarize"); return', 'hit("summarize again"); return').replace('"T"', '"Better"')


def test_g28_going_on_after_a_failure_that_no_step_owns(case):
    """A branch takes the place of a fork: first by fixing the typo, then from step 2 with an edited ``summarize``."""
    case.open(REPORT)
    (case.folder / "go").touch()
    failed = case.kernel.run(TYPO)
    assert failed.reply["ename"] == "KeyError"
    first = case.statuses("report")
    events = case.json("sql", "SELECT * FROM events ORDER BY ALL")["rows"]

    fixed = case.kernel.ok(FIXED)

    assert fixed.results == ["'T'"]
    assert case.effects.tags() == ["collect", "summarize", "publish", "published T {'title': 'T', 'of': 1}"]

    case.kernel.ok(EDITED)
    again = case.kernel.ok(FIXED.replace("report", "report --from summarize", 1))

    assert again.results == ["'Better'"]
    assert case.effects.tags()[4:] == ["summarize again", "publish", "published Better {'title': 'Better', 'of': 1}"]
    branches = case.json("show", "report")["branches"]
    assert [each["name"] for each in branches] == ["main", "main-2", "main-3"]
    assert len({each["branch"] for each in branches}) == 3
    origins = [str(each["origin"]) for each in branches]
    assert origins[0] == "None"
    assert branches[0]["branch"] in origins[1] or "main" in origins[1]
    assert branches[1]["branch"] in origins[2] or "main-2" in origins[2]
    # The records of the parent are as they were.
    assert case.statuses("report", "main") == first == [("collect", "completed"), ("summarize", "completed")]
    now = case.json("sql", "SELECT * FROM events ORDER BY ALL")["rows"]
    assert [row for row in events if row not in now] == []


@pytest.mark.parametrize("name", ["sumarize", "7", "publish#4"])
def test_g28_from_a_step_that_does_not_exist_is_refused(case, name):
    case.open(REPORT)
    case.kernel.run(TYPO)
    before = case.effects.tags()

    ran = case.kernel.run(FIXED.replace("report", f"report --from {name}", 1))

    refused(ran, "UsageError", "`report`", name, "`collect`", "`summarize`", hidden=("sk-live-data",))
    assert case.effects.tags() == before
    assert [each["name"] for each in case.json("show", "report")["branches"]] == ["main"]


def test_g28_fork_after_a_crash_keeps_what_was_finished(case):
    """The same, where the kernel was killed in the step behind: nothing in doubt is executed before it is asked for."""
    case.open(REPORT.replace('hit(f"published {title} {s}")', 'hit(f"published {title} {s}"); stand("publish")'))
    case.kill_at("publish", FIXED)

    ran = case.rerun(FIXED.replace("report", "report --from publish", 1))

    assert ran.results == ["'T'"], ran.errors
    assert (case.effects.count("collect"), case.effects.count("summarize"), case.effects.count("publish")) == (1, 1, 2)


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ('d = draft("sk-live-hello"); e = sign(d); send(e)', {"draft": 1, "sign": 1, "send": 2}),
        ('g = greet(); d = draft("sk-live-hello"); send(d)', {"greet": 1, "draft": 1, "send": 2}),
    ],
    ids=["first step kept", "empty branch"],
)
def test_g28_from_a_step_after_the_run_has_asked_for_a_decision(case, body, counts):
    """``--from send`` keeps what is before it, also where that lies on the branch before the one that asked."""
    case.open(MAIL)
    case.kill_at("send", CELL_A)
    refused(case.rerun(f"%%durable mail\n{body}"), "DecisionNeeded", "`mail`")

    ran = case.kernel.run(f"%%durable mail --from send\n{body}")

    assert ran.results == ["'sent'"], ran.errors
    assert {name: case.effects.count(name) for name in counts} == counts
