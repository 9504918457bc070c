"""Three days in five kernels: an approval, a signal and a timer, while clocks are changed and put back."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jupyter_durable import answering, client, clock
from jupyter_durable.engine import waits
from jupyter_durable.errors import Parked
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.log.local import LocalLog
from tests.engine.cells import Kernel
from tests.engine.harness import MortalWriter, Result, World
from tests.programs.outside import StoryClock

BERLIN = ZoneInfo("Europe/Berlin")
ROOT = Path(__file__).resolve().parents[2]

SETUP = """
import datetime
from zoneinfo import ZoneInfo
@step
def write(what):
    world.hit(f"write {what}")
    return f"draft of {what}"
@step
def publish(text):
    world.hit(f"publish {text}")
    return world.effects.count(f"publish {text}")
morning = datetime.datetime(2027, 3, 29, 9, tzinfo=ZoneInfo("Europe/Berlin"))
"""

IN_TURN = """
draft = write("report")
ok = durable.approve("Publish?", show=draft)
paid = durable.wait_for("paid")
durable.sleep(until=morning)
(ok, paid, publish(draft))
"""

AT_ONCE = """
draft = write("report")
async def rests():
    await durable.sleep(until=morning)
ok, paid, _ = await asyncio.gather(durable.approve("Publish?", show=draft), durable.wait_for("paid"), rests())
(ok, paid, publish(draft))
"""

ELSEWHERE = """
import sys
from jupyter_durable import clock
from jupyter_durable.cli import main
class There(clock.SystemClock):
    time = staticmethod(lambda: float(sys.argv[1]))
with clock.use(There()):
    sys.exit(main(sys.argv[2:]))
"""


class OnDisk(LocalLog):
    """A log on a disk whose process can be made to die."""

    left: int | None = None
    appended = 0

    def begin(self, header: ExecutionHeader) -> Any:
        return MortalWriter(super().begin(header), self)  # type: ignore[arg-type]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Iterator[StoryClock]:
    """The clock in force: a Friday morning in Berlin."""
    monkeypatch.setattr(waits, "EVERY", 0.001)
    with clock.use(StoryClock()) as found:
        assert isinstance(found, StoryClock)
        found.at = berlin(26, 10)
        yield found


def berlin(day: int, hour: float) -> float:
    """A moment of March 2027. On Sunday, the 28th, the clocks are put forward."""
    start = datetime.datetime(2027, 3, day, tzinfo=BERLIN)
    return (start + datetime.timedelta(hours=hour)).timestamp()  # as the clocks on the wall say it


def by_another_process(now: StoryClock, log: OnDisk, *words: str) -> None:
    """The command line, elsewhere, at the same moment."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TZ": "America/New_York", "JUPYTER_DURABLE_LOG": log.location}
    command = [sys.executable, "-c", ELSEWHERE, str(now.at), *words]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("cell", [IN_TURN, AT_ONCE], ids=["in turn", "at once"])
def test_three_days_and_five_kernels_repeat_nothing_and_lose_nothing(
    tmp_path: Path, now: StoryClock, cell: str
) -> None:
    log, world = OnDisk(tmp_path / ".durable"), World()
    morning = datetime.datetime(2027, 3, 29, 7, tzinfo=datetime.UTC).timestamp()  # 9 by then, an hour less than before
    assert morning - berlin(26, 9) == 71 * 3600

    def kernel(die_after: int | None = None) -> Result:
        """A new kernel runs the cell; what it leaves is folded as the end of a cell does it."""
        result = Kernel(log, world, SETUP).durable(cell, die_after=die_after, grace="0s")  # type: ignore[arg-type]
        log.fold()
        return result

    def waiting() -> list[str]:
        return sorted(wait.kind for wait in answering.waiting(log))

    # Friday: it asks, and parks.
    assert isinstance(kernel().error, Parked)
    asked = answering.waiting(log)[0].info.request
    # Saturday: nobody has answered; a payment comes, by another process. The kernel dies, and another one parks again.
    now.at = berlin(27, 11)
    by_another_process(now, log, "signal", "p", "paid", '{"sum": 40}', "--id", "bank-1")
    by_another_process(now, log, "signal", "p", "paid", '{"sum": 40}', "--id", "bank-1")
    assert kernel(die_after=1).died
    assert client.runs(log)[0].status == "interrupted"
    assert isinstance(kernel().error, Parked)
    assert "approval" in waiting()
    assert [wait.info.request for wait in answering.waiting(log) if wait.kind == "approval"] == [asked]
    # Sunday, after the clocks were put forward: somebody says yes, in another process.
    now.at = berlin(28, 12)
    by_another_process(now, log, "approve", asked, "yes")
    third = kernel().error
    assert isinstance(third, Parked)
    assert waiting() == ["timer"]
    assert third.facts["until"] == morning
    # The clock is put back by half a day, and then right again, a second before the time.
    for moment in (now.at - 12 * 3600, morning - 1):
        now.at = moment
        again = kernel().error
        if moment > berlin(28, 12):
            assert again is None, "what is over within seconds is waited for"
        else:
            assert isinstance(again, Parked)
            assert again.facts["until"] == morning
    # Monday, 9 in the morning: done. Nothing of it was done twice, and a replay does nothing.
    assert now.at >= morning
    last = kernel()
    assert last.value == (True, {"sum": 40}, 1)
    assert last.live == 0
    assert world.effects == ["write report", "publish draft of report"]
    assert client.runs(log)[0].status == "completed"
    assert waiting() == []
    assert [step.status for step in client.steps(log, client.find_run(log, "p"))] == ["completed"] * 5
