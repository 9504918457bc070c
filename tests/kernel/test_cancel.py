"""A run that is cancelled from outside, in a real kernel: by another process, by a magic, at an await or a step."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jupyter_durable import client
from jupyter_durable.log import open_log

CELL = """\
%%durable reports
one = count("one")
print("first step done")
await asyncio.sleep(600)
count("two")
"""

FAMILY = """\
%%durable family
async def page(n):
    try:
        async with durable.run(f"page-{n}"):
            count(f"page {n}")
            print(f"page {n} is there")
            if n == 2:
                await asyncio.sleep(600)
            return count(f"page {n} again")
    except ChildCancelled as error:
        return f"no page {n}: {error.reason}"
await asyncio.gather(page(1), page(2))
"""

STEPS = """
from jupyter_durable.errors import ChildCancelled
@step
def count(what): hit(what); return what
"""


@pytest.fixture
def kernel(start_kernel, effects):
    """A kernel in which the steps are defined."""
    kernel = start_kernel()
    kernel.ok(effects.code + STEPS)
    return kernel


@pytest.fixture
def again(effects):
    """Kill the kernel, start a new one, and define everything again."""
    from tests.kernel.conftest import SETUP

    def again(kernel):
        kernel.restart()
        kernel.ok(SETUP)
        kernel.ok(effects.code + STEPS)

    return again


@pytest.fixture
def log(tmp_path, key_file, monkeypatch):
    """The log of the kernel's folder, opened by this process."""
    monkeypatch.setenv("JUPYTER_DURABLE_KEY_FILE", str(key_file))
    return lambda: open_log(str(tmp_path / ".durable"))


def shell(tmp_path, *words):
    """The command line, in a process of its own."""
    line = [sys.executable, "-m", "jupyter_durable.cli", *words, "--log", str(tmp_path / ".durable")]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def test_a_cell_that_awaits_ends_when_another_process_cancels_its_run(kernel, again, log, effects, tmp_path):
    request = kernel.send(CELL)
    following = kernel.send("after = 1")
    kernel.collect(request, lambda ran: "first step done" in ran.text)

    said = shell(tmp_path, "cancel", "reports", "--reason", "wrong month", "--by", "ada")
    ran = kernel.collect(request)

    assert said == "Run reports ends at its next await or step.\n"
    assert ran.status == "error"
    assert ran.reply["ename"] == "RunCancelled"
    assert "cancelled by ada" in ran.error
    assert "(wrong month)" in ran.error
    assert "Traceback" not in ran.error
    assert kernel.collect(following).status == "aborted"
    assert [view.status for view in client.runs(log())] == ["cancelled"]

    again(kernel)
    refused = kernel.run(CELL)
    assert refused.reply["ename"] == "RunCancelled"
    assert effects.tags() == ["one"]

    assert "may go on" in kernel.ok("%durable resume reports").displays[0]
    shorter = CELL.replace("sleep(600)", "sleep(0)")
    assert kernel.ok(shorter).results == ["'two'"]
    assert effects.tags() == ["one", "two"]


def test_a_kernel_that_is_killed_before_it_saw_the_cancel_does_not_go_on(kernel, again, log, effects):
    busy = CELL.replace("await asyncio.sleep(600)", "time.sleep(600)")
    request = kernel.send(busy)
    kernel.collect(request, lambda ran: "first step done" in ran.text)
    client.cancel(log(), client.find_run(log(), "reports"), by="ada")
    again(kernel)

    assert kernel.run(busy).reply["ename"] == "RunCancelled"
    assert effects.tags() == ["one"]


def test_a_child_run_is_cancelled_alone_and_replays_as_cancelled(kernel, again, effects, tmp_path):
    request = kernel.send(FAMILY)
    kernel.collect(request, lambda ran: "page 2 is there" in ran.text and "page 1 is there" in ran.text)
    shell(tmp_path, "cancel", "family/page-2", "--reason", "too long")
    ran = kernel.collect(request)

    assert ran.results == ["['page 1 again', 'no page 2: too long']"]
    listed = kernel.ok("%durable children family").displays[0]
    assert "completed" in listed
    assert "cancelled" in listed

    again(kernel)
    replayed = kernel.ok(FAMILY.replace("sleep(600)", "sleep(0)"))
    assert replayed.results == ran.results
    assert sorted(effects.tags()) == ["page 1", "page 1 again", "page 2"]


def test_the_magic_cancels_a_parked_run_at_once(kernel):
    kernel.run("%%durable asks --grace 0s\ndurable.approve('Go?')")

    said = kernel.ok("%durable cancel asks 'nobody asks'").displays[0]

    assert "Run asks is cancelled." in said.replace("`", "")
    assert "Nothing waits" in kernel.ok("%durable waiting").displays[0]
    assert kernel.run("%%durable asks --grace 0s\ndurable.approve('Go?')").reply["ename"] == "RunCancelled"
