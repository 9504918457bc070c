"""SIGKILL in the middle of a cell, a new kernel, the same cell: what was recorded comes back, the rest is executed."""

from __future__ import annotations

import pytest

STUCK = """
%load_ext jupyter_durable
from jupyter_durable import step, durable
import asyncio, os, random, time
from concurrent.futures import ThreadPoolExecutor
def wait_at(place):
    if not os.path.exists("gate"):
        print("stuck at", place, flush=True)
        time.sleep(600)
@step
def one(): hit("one"); return 1
@step
def stuck(): hit("stuck"); wait_at("stuck"); return 2
"""
"""``stuck`` hangs until a file is there: a place to kill the kernel at without luck."""


@pytest.fixture
def crash(start_kernel, effects, tmp_path):
    """Runs a cell until it hangs, kills the kernel there, and runs it again in a new kernel in which nothing hangs."""

    def crash(cell, setup="", cell_id="", again=None, environment=None, times=1):
        source = effects.code + STUCK + setup
        kernel = start_kernel(setup=source, **(environment or {}))
        for _ in range(times):
            (tmp_path / "gate").unlink(missing_ok=True)
            kernel.run_until("stuck at", cell, cell_id)
            kernel.restart()
            kernel.ok(source)
        (tmp_path / "gate").touch()
        return kernel, kernel.run(again or cell, cell_id)

    return crash


def test_a_killed_cell_resumes(crash, effects):
    _, ran = crash("%%durable report\na = one()\nb = stuck()\na + b")

    assert ran.results == ["3"]
    assert ran.summary.startswith("report · 2 steps · 1 replayed, 1 new")
    assert effects.tags() == ["one", "stuck", "stuck"]


def test_a_cell_without_a_name_resumes_by_its_id(crash, effects):
    _, ran = crash("%%durable\na = one()\nb = stuck()\na + b", cell_id="0123abcd-ffff")

    assert ran.summary.startswith("cell-0123abcd · 2 steps · 1 replayed, 1 new")
    assert effects.count("one") == 1


def test_a_cell_without_name_and_id_resumes_by_its_code(crash, effects):
    _, ran = crash(
        "%%durable\na = one()\nb = stuck()\na + b", again="%%durable\n# a comment\na = one()\nb = stuck()\na+b"
    )

    assert "1 replayed, 1 new" in ran.summary
    assert effects.count("one") == 1


def test_several_crashes_in_a_row_pay_for_nothing_twice(crash, effects):
    _, ran = crash("%%durable report\na = one()\nb = stuck()\na + b", times=3)

    assert ran.results == ["3"]
    assert effects.tags() == ["one", *["stuck"] * 4]


def test_gathered_steps_keep_their_places(crash, effects):
    """G06: the ones that finished are not executed again, whoever finished first."""
    _, ran = crash(
        "%%durable brief\n"
        "a, b, c = await asyncio.gather(price('ACME'), news('ACME'), filings('ACME'))\n"
        "stuck()\n(a, b, c)",
        setup="""
@step
async def price(s): await asyncio.sleep(random.random() / 50); hit("price"); return ("price", s)
@step
async def news(s): await asyncio.sleep(random.random() / 50); hit("news"); return ("news", s)
@step
async def filings(s): await asyncio.sleep(random.random() / 50); hit("filings"); return ("filings", s)
""",
    )

    assert ran.results == ["(('price', 'ACME'), ('news', 'ACME'), ('filings', 'ACME'))"]
    assert sorted(effects.tags()) == ["filings", "news", "price", "stuck", "stuck"]


def test_gathered_steps_survive_a_crash_while_one_of_them_runs(crash, effects):
    """G06, second part."""
    _, ran = crash(
        "%%durable brief2\nawait asyncio.gather(quick(1), slow(2), quick(3))",
        setup="""
@step
async def quick(n): hit(f"quick{n}"); return n
@step
async def slow(n):
    hit("slow")
    await asyncio.sleep(0.05)
    wait_at("slow")
    return n
""",
    )

    assert ran.results == ["[1, 2, 3]"]
    assert sorted(effects.tags()) == ["quick1", "quick3", "slow", "slow"]


def test_polling_ends_and_replays_its_answers(crash, effects):
    """G07: equal calls are told apart by their occurrence."""
    _, ran = crash(
        "%%durable poll\nseen = []\nwhile (s := job_status('J1')) != 'done': seen.append(s)\nstuck()\nseen",
        setup="""
state = {"n": 0}
@step
def job_status(job): hit("poll"); state["n"] += 1; return "done" if state["n"] >= 3 else "busy"
""",
    )

    assert ran.results == ["['busy', 'busy']"]
    assert effects.count("poll") == 3


def test_steps_of_a_pool_are_paired_right(crash, effects):
    """G17: a step in a worker thread is the run's."""
    _, ran = crash(
        "%%durable emb\nwith ThreadPoolExecutor(4) as p: vs = list(p.map(embed, range(8)))\nstuck()\nvs",
        setup='@step\ndef embed(i): hit(f"embed{i}"); return i * 10\n',
    )

    assert ran.results == ["[0, 10, 20, 30, 40, 50, 60, 70]"]
    assert sorted(effects.tags()) == [*(f"embed{i}" for i in range(8)), "stuck", "stuck"]


def test_classes_of_the_notebook_come_back_as_themselves(crash):
    """G01: not as twins that fail every comparison."""
    _, ran = crash(
        "%%durable triage\n"
        "t = classify(7)\nstuck()\n"
        "(isinstance(t, Ticket), t.tone is Tone.URGENT, t == Ticket(7, Tone.URGENT))",
        setup="""
import enum, dataclasses
class Tone(enum.Enum): CALM = 1; URGENT = 2
@dataclasses.dataclass
class Ticket: id: int; tone: Tone
@step
def classify(i): hit("classify"); return Ticket(i, Tone.URGENT)
""",
    )

    assert ran.results == ["(True, True, True)"]


def test_what_a_step_printed_is_printed_again(crash):
    _, ran = crash(
        "%%durable loud\nspeak('hello')\nstuck()",
        setup="""
from IPython.display import display, HTML
@step
def speak(text):
    print("said", text)
    display(HTML(f"<i>{text}</i>"), metadata={"mine": 1})
""",
    )

    assert "said hello" in ran.text
    (shown,) = [content for content in ran.of("display_data") if "<i>hello</i>" in content["data"].get("text/html", "")]
    assert shown["metadata"] == {"mine": 1, "jupyter_durable": {"replayed": True}}


def test_a_run_that_another_kernel_executes_is_refused_at_once(start_kernel, effects):
    one = start_kernel(setup=effects.code + STUCK)
    two = start_kernel(setup=effects.code + STUCK)
    one.run_until("stuck at", "%%durable shared_run\nstuck()")

    ran = two.run("%%durable shared_run\nstuck()")

    assert (ran.status, ran.reply["ename"]) == ("error", "BranchBusy")
    assert str(one.pid) in ran.reply["evalue"]
    assert ran.error == f"BranchBusy: {ran.reply['evalue']}"
    assert effects.tags() == ["stuck"]


def test_a_damaged_log_is_said_in_a_sentence_before_anything_runs(start_kernel, effects, tmp_path):
    kernel = start_kernel(setup=effects.code + STUCK)
    kernel.run("%%durable hurt\none()\none()\n1 / 0")
    (journal,) = (tmp_path / ".durable" / "journal").glob("*.jsonl")
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b'"name":"one"', b'"name":"two"', 1))

    ran = kernel.run("%%durable hurt\none()\none()\n1 / 0")

    assert ran.status == "error"
    assert ran.reply["ename"] in ("LogDamaged", "LogUntrusted")
    assert ran.error == f"{ran.reply['ename']}: {ran.reply['evalue']}"
    assert effects.tags() == ["one", "one"]


def test_a_log_that_cannot_be_made_is_said_in_a_sentence(start_kernel, tmp_path):
    (tmp_path / ".durable").write_text("not a directory")
    kernel = start_kernel()

    ran = kernel.run("%%durable nowhere\nprint('ran')")

    assert (ran.status, ran.reply["ename"]) == ("error", "LogUnusable")
    assert len(ran.error.splitlines()) == 1
    assert "ran" not in ran.text
