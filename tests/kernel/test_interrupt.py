"""The stop button: prompt, reported as what it is, and never between a result and its record."""

from __future__ import annotations

import time

import pytest

STEPS = """
@step
async def crawl(n):
    print("in crawl", n, flush=True)
    await asyncio.sleep(60)
    return n
@step
def grind(n):
    print("in grind", n, flush=True)
    for _ in range(6000):
        time.sleep(0.01)
    return n
def waste():
    print("wasting", flush=True)
    for _ in range(6000):
        time.sleep(0.01)
"""

CELLS = {
    "await": ("in crawl", "await crawl(1)", True),
    "gather": ("in crawl 7", "await asyncio.gather(*(crawl(i) for i in range(8)))", True),
    "task_group": (
        "in crawl 2",
        "async with asyncio.TaskGroup() as group:\n    for i in range(3): group.create_task(crawl(i))",
        True,
    ),
    "wait_for": ("in crawl", "await asyncio.wait_for(crawl(1), 100)", True),
    "to_thread": ("wasting", "await asyncio.to_thread(lambda: (print('wasting', flush=True), time.sleep(3)))", True),
    "sync_in_task": (
        "wasting",
        "await asyncio.gather(*(asyncio.create_task(asyncio.to_thread(int)) for _ in 'ab'))\nwaste()",
        True,
    ),
    "sync_in_child": (
        "wasting",
        "async def child(): waste()\nawait asyncio.gather(*(child() for _ in range(8)))",
        True,
    ),
    "sync": ("wasting", "waste()", False),
    "sync_step": ("in grind", "grind(1)", False),
    "sync_step_in_await_cell": ("in grind", "await asyncio.sleep(0)\ngrind(1)", True),
}


@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_stops_at_once_and_is_reported_as_interrupted(kernel, kind):
    said, body, _ = CELLS[kind]
    kernel.ok(STEPS)
    request = kernel.run_until(said, f"%%durable stop_{kind}\n{body}")

    began = time.monotonic()
    kernel.interrupt()
    ran = kernel.collect(request)

    assert time.monotonic() - began < 10  # the bodies take a minute
    assert (ran.status, ran.reply["ename"]) == ("error", "KeyboardInterrupt")
    assert [content["ename"] for content in ran.of("error")] == ["KeyboardInterrupt"]
    assert "jupyter_durable" not in ran.error
    assert "interrupted" in ran.summary
    # The kernel is as it was: a plain cell is interrupted by the stock handler.
    assert kernel.value("[__import__('signal').getsignal(2).__name__, len(get_ipython().custom_exceptions)]") == [
        "default_int_handler", 0,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "step_name"), [("await crawl(1)", "crawl"), ("grind(1)", "grind")], ids=["await", "sync"]
)
def test_an_interrupted_step_is_in_doubt_and_runs_again_with_the_cell(kernel, call, step_name):
    """G13: not failed, not done, no CancelledError that replay would raise; and it can be stopped again."""
    kernel.ok(STEPS + "@step\ndef before(): print('before'); return 1")
    name = f"again_{step_name}"
    cell = f"%%durable {name}\nb = before()\n{call}"

    for number in range(2):
        request = kernel.run_until(f"in {step_name}", cell)
        kernel.interrupt()
        ran = kernel.collect(request)

        assert ran.reply["ename"] == "KeyboardInterrupt"
        assert ("1 replayed" in ran.summary) == (number == 1)
    states = kernel.ok(
        "from jupyter_durable import client\n"
        "from jupyter_durable.log import open_log\n"
        "log = open_log('.durable')\n"
        f"[(s.name, s.status.replace('_', ' ')) for s in client.steps(log, client.find_run(log, {name!r}))]"
    ).results
    assert states == [f"[('before', 'completed'), ('{step_name}', 'in doubt')]"]


def test_a_result_is_recorded_even_if_the_interrupt_comes_while_it_is_written(kernel):
    """The signal arrives inside the writing of the step's end; the cell stops after it, and a replay has the value."""
    kernel.ok(
        STEPS
        + """
import os, signal
from jupyter_durable.engine import payloads
plain_write = payloads.write
def pressing(encoded, writer):
    payloads.write = plain_write
    os.kill(os.getpid(), signal.SIGINT)
    return plain_write(encoded, writer)
@step
def pay(n):
    print("paid"); return n
@step
async def apay(n):
    print("paid"); return n
"""
    )
    for name, call in {
        "sync": "pay(3)",
        "await": "await apay(3)",
        "child": "await asyncio.gather(apay(3), apay(4))",
    }.items():
        cell = f"%%durable written_{name}\nv = {call}\nprint('went on')"
        kernel.ok("payloads.write = pressing")

        ran = kernel.run(cell)

        assert ran.reply["ename"] == "KeyboardInterrupt", name
        assert "went on" not in ran.text
        again = kernel.ok(cell)
        assert "1 replayed" in again.summary or "2 replayed" in again.summary, again.summary
        assert again.text.count("paid") == (2 if name == "child" else 1)
        assert "went on" in again.text


def test_a_second_press_gets_through_code_that_swallows_the_first(kernel):
    kernel.ok(
        STEPS
        + """
async def stubborn():
    while True:
        try:
            print("holding", flush=True)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
def stubborn_sync():
    while True:
        try:
            waste()
        except asyncio.CancelledError:
            pass
"""
    )
    cells = {"await": ("await stubborn()", "holding"), "mixed": ("await asyncio.sleep(0)\nstubborn_sync()", "wasting")}
    for name, (call, said) in cells.items():
        request = kernel.run_until(said, f"%%durable second_{name}\n{call}")
        presses, ran = 0, None
        while ran is None or not ran.reply:  # on a slow machine the second press may come too late to count as one
            kernel.interrupt()
            presses += 1
            ran = kernel.collect(request, lambda ran, said=said: said in ran.text)

        assert presses > 1
        assert ran.reply["ename"] == "KeyboardInterrupt"


def test_a_task_that_the_user_cancelled_shows_as_cancelled(kernel):
    ran = kernel.run("%%durable own_cancel\nt = asyncio.create_task(asyncio.sleep(5))\nt.cancel()\nawait t")

    assert (ran.status, ran.reply["ename"]) == ("error", "CancelledError")
    assert [content["ename"] for content in ran.of("error")] == ["CancelledError"]


def test_an_interrupt_between_two_cells_touches_no_run(kernel):
    kernel.ok("%%durable idle_press\n1 + 1")

    kernel.interrupt()

    assert kernel.ok("%%durable idle_press\n1 + 1").results == ["2"]


def test_threads_that_were_started_finish_and_are_recorded(kernel, effects):
    """Rule 15: a thread outlives the cell; its step's end is recorded, and a second run in this kernel waits for it."""
    kernel.ok(
        STEPS
        + effects.code
        + """
go = threading.Event()
@step
def slow(n):
    print("slow began", flush=True); go.wait(60); hit("slow"); return n
@step
async def release(): return 1
"""
    )
    cell = "%%durable outlive\nv = await asyncio.to_thread(slow, 1)\nv"
    request = kernel.run_until("slow began", cell)
    kernel.interrupt()
    assert kernel.collect(request).reply["ename"] == "KeyboardInterrupt"

    kernel.ok("go.set()")
    again = kernel.ok(cell)

    assert again.results == ["1"]
    assert effects.count("slow") == 1
