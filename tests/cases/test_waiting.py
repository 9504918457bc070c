"""G12, G21, G22: the pause that code swallows, the moment that a time zone shifts, the answer that counts twice."""

from __future__ import annotations

import datetime
import importlib.util
import threading
from zoneinfo import ZoneInfo

import pytest

from jupyter_durable import answering, clock
from jupyter_durable.errors import Parked, UsageError
from jupyter_durable.log import open_log
from tests.engine import cells
from tests.engine.harness import MortalLog, World

PAY = """
import asyncio, contextlib, functools
@step
def pay(n): hit(f"pay {n}"); return n
def again(fn):
    @functools.wraps(fn)
    def tries():
        for _ in range(3):
            try:
                return fn()
            except Exception:
                pass
        return True
    return tries
def swallows():
    try:
        return durable.approve("refund 40 EUR?")
    finally:
        return True
"""

SYNC = {
    "except Exception": "try:\n    ok = durable.approve('refund 40 EUR?')\nexcept Exception:\n    ok = True",
    "bare except": "try:\n    ok = durable.approve('refund 40 EUR?')\nexcept:\n    ok = True",
    "except BaseException": "try:\n    ok = durable.approve('refund 40 EUR?')\nexcept BaseException:\n    ok = True",
    "suppress Exception": "ok = True\nwith contextlib.suppress(Exception):\n    ok = durable.approve('refund 40 EUR?')",
    "suppress all": "ok = True\nwith contextlib.suppress(BaseException):\n    ok = durable.approve('refund 40 EUR?')",
    "a retry by hand": "ok = again(lambda: durable.approve('refund 40 EUR?'))()",
    "return in finally": "ok = swallows()",
    "a signal in place of it": "try:\n    ok = durable.wait_for('refund')\nexcept BaseException:\n    ok = True",
}
ASYNC = {
    "await, except Exception": (
        "try:\n    ok = await durable.approve('refund 40 EUR?')\nexcept Exception:\n    ok = True"
    ),
    "await, bare except": "try:\n    ok = await durable.approve('refund 40 EUR?')\nexcept:\n    ok = True",
    "gather that returns exceptions": (
        "found = await asyncio.gather(durable.approve('refund 40 EUR?'), return_exceptions=True)\n"
        "ok = found[0] is not False"
    ),
    "a group": (
        "ok = True\n"
        "try:\n"
        "    async with asyncio.TaskGroup() as group:\n"
        "        async def asks(): return await durable.approve('refund 40 EUR?')\n"
        "        task = group.create_task(asks())\n"
        "    ok = task.result()\n"
        "except BaseException:\n"
        "    pass"
    ),
    "shield and suppress": (
        "ok = True\n"
        "with contextlib.suppress(BaseException):\n"
        "    ok = await asyncio.shield(durable.approve('refund 40 EUR?'))"
    ),
}
LIBRARY = {
    "tenacity": (
        "import tenacity\n"
        "ask = tenacity.retry(stop=tenacity.stop_after_attempt(3), retry_error_callback=lambda _: True)\n"
        "ok = ask(lambda: durable.approve('refund 40 EUR?'))()"
    )
}
WAYS = SYNC | ASYNC | (LIBRARY if importlib.util.find_spec("tenacity") else {})


def refund(way: str) -> str:
    """The cell of the case, in one of its variations."""
    return f"%%durable '{way}' --grace 0s\n{WAYS[way]}\nif ok: pay('{way}')\nok"


def test_g12_no_way_of_catching_a_pause_pays_and_each_goes_on_with_the_answer(case):
    """Each cell ends as parked, nothing is paid, the question stays open; *no* pays nothing either, *yes* pays once."""
    case.open(PAY)
    for way in WAYS:
        ran = case.kernel.run(refund(way))
        assert (ran.status, ran.reply.get("ename")) == ("error", "Parked"), (way, ran.errors)
    assert case.effects.tags() == []
    log = open_log(str(case.durable))
    waits = {wait.run_name: wait for wait in answering.waiting(log)}
    assert set(waits) == set(WAYS)
    yes = {*sorted(WAYS)[::2], "return in finally"}  # whose own code turns every answer into that

    for way, wait in waits.items():
        answering.answer(log, wait.number, way in yes, run=wait.run)
    said = {way: case.kernel.ok(refund(way)).results for way in WAYS}

    assert said == {way: [str(way in yes)] for way in WAYS}
    assert sorted(case.effects.tags()) == sorted(f"pay {way}" for way in yes)
    assert answering.waiting(log) == []


# G21 ----------------------------------------------------------------------------------------------------------------

TRAVELS = """
import pathlib
from jupyter_durable import clock
class Travelling(clock.SystemClock):
    def time(self):
        ahead = pathlib.Path("ahead")
        return clock.SystemClock.time() + (float(ahead.read_text()) if ahead.exists() else 0.0)
travels = clock.use(Travelling())
travels.__enter__()
"""
NAP = "%%durable nap --grace {grace}\ndurable.sleep(3600)\nhit('woke')"


@pytest.mark.parametrize(("first", "then"), [("Asia/Tokyo", "America/New_York"), ("America/New_York", "Asia/Tokyo")])
def test_g21_a_timer_wakes_at_its_moment_wherever_the_kernel_is(case, first, then):
    """Killed in one zone, run again in another: an hour is an hour, and each says the same moment in its own words."""
    case.open(TRAVELS, TZ=first)
    case.kernel.send(NAP.format(grace="3h"))
    log = open_log(str(case.durable), create=True)
    while not (waits := answering.waiting(log)):
        assert case.kernel.manager.is_alive()
    until = waits[0].info.until
    assert until - clock.now() == pytest.approx(3600, abs=60)
    case.kill()

    early = case.rerun(NAP.format(grace="0s"), TZ=then)

    assert early.reply["ename"] == "Parked"
    assert [wait.info.until for wait in answering.waiting(log)] == [until]
    there = datetime.datetime.fromtimestamp(until, ZoneInfo(then))
    assert f"{there:%Y-%m-%d %H:%M:%S %Z}" in early.error
    [[asked]] = case.json("sql", "SELECT epoch(until) FROM waiting")["rows"]
    assert asked == pytest.approx(until)

    (case.folder / "ahead").write_text("3540")
    assert case.kernel.run(NAP.format(grace="0s")).reply["ename"] == "Parked"
    assert case.effects.tags() == []
    (case.folder / "ahead").write_text("3601")
    case.kernel.ok(NAP.format(grace="0s"))
    assert case.effects.tags() == ["woke"]


@pytest.fixture
def miniature() -> tuple[cells.Kernel, MortalLog]:
    """A process without a kernel, for what needs none."""
    log = MortalLog()
    kernel = cells.Kernel(log, World())
    kernel.plain("import datetime as dt\nfrom zoneinfo import ZoneInfo")
    return kernel, log


def until_of(kernel: cells.Kernel, moment: str) -> datetime.datetime:
    """The moment until which a timer waits, in UTC."""
    error = kernel.durable(f"durable.sleep(until={moment})", grace="0s").error
    assert isinstance(error, Parked), error
    return datetime.datetime.fromtimestamp(error.facts["until"], datetime.UTC)


@pytest.mark.parametrize(
    ("moment", "utc"),
    [
        ("dt.datetime(2027, 1, 31, 9, tzinfo=dt.UTC)", "2027-01-31T09:00"),
        ("dt.datetime(2027, 1, 31, 9, tzinfo=ZoneInfo('Asia/Kolkata'))", "2027-01-31T03:30"),
        ("dt.datetime(2027, 1, 31, 9, tzinfo=dt.timezone(dt.timedelta(hours=-8)))", "2027-01-31T17:00"),
        # Winter and summer of one zone.
        ("dt.datetime(2027, 3, 28, 1, 59, tzinfo=ZoneInfo('Europe/Berlin'))", "2027-03-28T00:59"),
        ("dt.datetime(2027, 3, 28, 3, 1, tzinfo=ZoneInfo('Europe/Berlin'))", "2027-03-28T01:01"),
        # A time that the clocks leave out is read by the offset before: it comes an hour later on the wall.
        ("dt.datetime(2027, 3, 28, 2, 30, tzinfo=ZoneInfo('Europe/Berlin'))", "2027-03-28T01:30"),
        # A time that comes twice is the first one, unless the second is meant.
        ("dt.datetime(2027, 10, 31, 2, 30, tzinfo=ZoneInfo('Europe/Berlin'))", "2027-10-31T00:30"),
        ("dt.datetime(2027, 10, 31, 2, 30, fold=1, tzinfo=ZoneInfo('Europe/Berlin'))", "2027-10-31T01:30"),
    ],
)
def test_g21_a_moment_is_that_of_its_own_zone(miniature, moment, utc):
    assert f"{until_of(miniature[0], moment):%Y-%m-%dT%H:%M}" == utc


def test_g21_one_moment_in_the_words_of_two_zones_is_one_timer(miniature):
    kernel, log = miniature
    kernel.plain("moment = dt.datetime(2027, 1, 31, 9, tzinfo=dt.UTC)")
    first = until_of(kernel, "moment")
    kernel.plain("moment = moment.astimezone(ZoneInfo('Asia/Tokyo'))")

    assert until_of(kernel, "moment") == first
    assert len(answering.waiting(log)) == 1


@pytest.mark.parametrize("moment", ["dt.datetime(2027, 1, 31, 9)", "dt.date(2027, 1, 31)", "'2027-01-31T09:00'"])
def test_g21_what_has_no_zone_is_refused_before_anything_waits(miniature, moment):
    kernel, log = miniature

    error = kernel.durable(f"durable.sleep(until={moment})", grace="0s").error

    assert isinstance(error, UsageError)
    assert "time zone" in str(error)
    assert answering.waiting(log) == []


def test_g21_a_day_is_as_long_as_it_is_when_the_clocks_change(miniature):
    """``"24h"`` is a length, not the same time on the wall of the next day."""

    class BeforeTheChange(clock.SystemClock):
        time = staticmethod(lambda: datetime.datetime(2027, 3, 27, 12, tzinfo=datetime.UTC).timestamp())

    with clock.use(BeforeTheChange()):
        error = miniature[0].durable('durable.sleep("24h")', grace="0s").error
    assert isinstance(error, Parked)
    assert error.facts["until"] == datetime.datetime(2027, 3, 28, 12, tzinfo=datetime.UTC).timestamp()


# G22 ----------------------------------------------------------------------------------------------------------------

DELETE = """
@step
def delete(what): hit(f"delete {what}"); stand("delete"); return what
"""
TWO_ASKS = """%%durable two_asks --grace 0s
if durable.approve("delete old backups"): delete("backups")
if durable.approve("delete users table"): delete("users")
"""


def open_questions(case) -> list[str]:
    return [wait.title for wait in answering.waiting(open_log(str(case.durable))) if wait.answer is None]


def test_g22_of_two_answers_from_two_doors_the_first_counts_once(case):
    """Python and the command line, one after the other; the second question stays open all the time."""
    case.open(DELETE)
    (case.folder / "go").touch()
    case.kernel.run(TWO_ASKS)
    log = open_log(str(case.durable))
    [wait] = answering.waiting(log)
    answering.answer(log, wait.number, True, by="ada")

    with pytest.raises(UsageError, match="was answered already by ada"):
        answering.answer(log, wait.info.request, True, by="eve")
    again = case.shell("approve", str(wait.number), "yes")
    assert again.returncode != 0
    assert "was answered already by ada" in again.stderr
    assert "was answered already by ada" in case.kernel.run(f"%durable approve {wait.number} yes").error

    assert case.kernel.run(TWO_ASKS).reply["ename"] == "Parked"
    assert case.effects.tags() == ["delete backups"]
    assert open_questions(case) == ["delete users table"]
    with pytest.raises(UsageError, match=r"was answered by ada .* the run has gone on with that"):
        answering.answer(log, wait.number, True)
    late = case.shell("approve", str(wait.number), "yes")
    assert late.returncode != 0
    assert open_questions(case) == ["delete users table"]
    assert case.kernel.run(TWO_ASKS).reply["ename"] == "Parked"
    assert case.effects.tags() == ["delete backups"]


def test_g22_of_many_answers_at_the_same_moment_one_counts(case):
    """Eight threads and two processes; whoever is not the first is told so."""
    case.open(DELETE)
    (case.folder / "go").touch()
    case.kernel.run(TWO_ASKS)
    [wait] = answering.waiting(open_log(str(case.durable)))
    together = threading.Barrier(10)
    outcomes: list[str] = []

    def by_python(number: int) -> None:
        log = open_log(str(case.durable))
        together.wait()
        try:
            answering.answer(log, wait.number, True, by=f"person {number}")
            outcomes.append("taken")
        except UsageError as error:
            outcomes.append(str(error))

    def by_shell() -> None:
        together.wait()
        done = case.shell("approve", str(wait.number), "yes")
        outcomes.append("taken" if done.returncode == 0 else done.stderr)

    threads = [threading.Thread(target=by_python, args=(number,)) for number in range(8)]
    threads += [threading.Thread(target=by_shell) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert outcomes.count("taken") == 1
    assert all("was answered already" in said for said in outcomes if said != "taken"), outcomes
    assert case.kernel.run(TWO_ASKS).reply["ename"] == "Parked"
    assert case.effects.tags() == ["delete backups"]
    assert open_questions(case) == ["delete users table"]


def test_g22_killed_between_the_answer_and_what_it_allows_nobody_is_asked_again(case):
    """Killed behind the answer and before `delete` in the kernel that had waited for it."""
    asks = TWO_ASKS.replace('if durable.approve("delete old backups"):', 'ok = durable.approve("delete old backups")\n'
                            'stand("answered")\nif ok:')  # fmt: skip
    case.open(DELETE)
    request = case.kernel.send(asks.replace("--grace 0s", "--grace 1h"))
    case.kernel.collect(request, lambda ran: "delete old backups" in "".join(ran.displays))
    log = open_log(str(case.durable))
    [wait] = answering.waiting(log)
    answering.answer(log, wait.number, True)
    case.kernel.collect(request, lambda ran: "at answered" in ran.text)
    case.kill()

    ran = case.rerun(asks)

    assert ran.reply["ename"] == "Parked"
    assert open_questions(case) == ["delete users table"]
    assert case.effects.tags() == ["delete backups"]


def test_g22_an_answer_to_an_equal_question_of_another_step_or_run_is_not_taken(case):
    """An answer names its request: neither the question after it, nor an equal one elsewhere, takes it."""
    case.open(DELETE)
    (case.folder / "go").touch()
    cell = "%%durable {} --grace 0s\nfor _ in range(2):\n    if durable.approve('delete?'): delete('{}')"
    for name in ("one", "two"):
        case.kernel.run(cell.format(name, name))
    log = open_log(str(case.durable))
    [wait] = [each for each in answering.waiting(log) if each.run_name == "one"]
    answering.answer(log, wait.info.request, True)

    for name in ("one", "two", "one"):
        assert case.kernel.run(cell.format(name, name)).reply["ename"] == "Parked"

    assert case.effects.tags() == ["delete one"]
    assert sorted(each.run_name for each in answering.waiting(log)) == ["one", "two"]
