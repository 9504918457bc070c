"""A cell that waits, in a real kernel: how it parks and is answered, and that a kill at any moment loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from jupyter_durable import answering
from jupyter_durable.log import open_log

ASKS = """\
%%durable mails --grace 0s
text = write("ada")
ok = durable.approve("Send it?", show=text)
sent = send(text) if ok else "kept"
sent
"""

STEPS = """
@step
def write(name): hit("write"); return f"dear {name}"
@step
def send(text): hit("send"); return f"sent {text}"
"""


@pytest.fixture
def kernel(start_kernel, effects):
    """A kernel in which the steps are defined; `restart` makes a new one of it."""
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


def test_a_cell_parks_with_one_sentence_and_goes_on_when_it_was_answered(kernel, effects):
    parked = kernel.run(ASKS)

    assert parked.status == "error"
    assert parked.reply["ename"] == "Parked"
    assert parked.error.startswith("Parked: Run `mails`, branch `main` waits for an answer to request")
    assert "Traceback" not in parked.error
    assert "parked" in parked.summary
    assert "run the cell again to go on" in parked.summary

    listed = kernel.ok("%durable waiting").displays[0]
    assert "Send it?" in listed
    answered = kernel.ok("%durable approve yes").displays[0]
    assert "is answered. Run its cell again to go on." in answered

    assert kernel.ok(ASKS).results == ["'sent dear ada'"]
    assert effects.tags() == ["write", "send"]


def test_run_all_stops_at_a_cell_that_parks(kernel):
    first = kernel.send(ASKS)
    second = kernel.send("after = 1")

    assert kernel.collect(first).status == "error"
    assert kernel.collect(second).status == "aborted"


def test_an_answer_from_another_process_reaches_a_cell_that_waits(kernel, log, effects):
    waits = ASKS.replace(" --grace 0s", "")
    request = kernel.send(waits)
    kernel.collect(request, lambda ran: "Send it?" in "".join(ran.displays))

    (wait,) = answering.waiting(log())
    assert wait.running
    answering.answer(log(), wait.number, True, by="ada", via="command line")

    ran = kernel.collect(request)
    assert ran.status == "ok"
    assert ran.results == ["'sent dear ada'"]
    assert effects.tags() == ["write", "send"]


def test_a_kernel_that_is_killed_while_it_waits_asks_the_same_again(kernel, again, log, effects):
    waits = ASKS.replace(" --grace 0s", "")
    kernel.collect(kernel.send(waits), lambda ran: "Send it?" in "".join(ran.displays))
    (before,) = answering.waiting(log())
    again(kernel)

    answering.answer(log(), before.number, False)

    assert kernel.ok(waits).results == ["'kept'"]
    assert effects.tags() == ["write"]


def test_a_kernel_that_is_killed_after_the_answer_does_not_ask_again(kernel, again, log, effects):
    kernel.run(ASKS)
    answering.answer(log(), "", True)
    again(kernel)

    assert kernel.ok(ASKS).results == ["'sent dear ada'"]
    again(kernel)
    assert kernel.ok(ASKS).results == ["'sent dear ada'"]
    assert effects.tags() == ["write", "send"]


def test_the_stop_button_ends_a_wait_and_leaves_it_open(kernel, log):
    for cell in (
        "%%durable sync\ndurable.approve('Go?')",
        "%%durable async\nawait durable.approve('Go?')",
    ):
        request = kernel.send(cell)
        kernel.collect(request, lambda ran: "Go?" in "".join(ran.displays))
        kernel.interrupt()
        ran = kernel.collect(request)
        assert ran.status == "error"
        assert ran.reply["ename"] == "KeyboardInterrupt"

    assert [wait.title for wait in answering.waiting(log())] == ["Go?", "Go?"]


def test_waits_of_a_cell_that_awaits_park_together(kernel, log):
    ran = kernel.run("%%durable many --grace 0s\nawait asyncio.gather(*[durable.approve(f'{n}?') for n in range(3)])")

    assert ran.reply["ename"] == "Parked"
    for wait in answering.waiting(log()):
        kernel.ok(f"%durable approve {wait.number} no")
    again = kernel.ok("%%durable many --grace 0s\nawait asyncio.gather(*[durable.approve(f'{n}?') for n in range(3)])")
    assert again.results == ["[False, False, False]"]


def test_a_signal_is_sent_from_a_cell_and_from_the_shell(kernel, tmp_path, key_file):
    cell = "%%durable paid --grace 0s\n[durable.wait_for('payment'), durable.wait_for('payment')]"
    assert "waits for the signal `payment`" in kernel.run(cell).error
    kernel.ok('%durable signal payment {"sum": 3}')
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_durable.cli", "signal", "paid", "payment", "cash", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "JUPYTER_DURABLE_KEY_FILE": str(key_file)},
    )  # fmt: skip
    assert json.loads(done.stdout)["new"] is True

    assert kernel.ok(cell).results == ["[{'sum': 3}, 'cash']"]


def test_under_nbclient_a_parked_notebook_fails_with_parked_and_goes_on_in_the_next_pass(
    tmp_path, key_file, monkeypatch, log
):
    monkeypatch.setenv("JUPYTER_DURABLE_KEY_FILE", str(key_file))
    monkeypatch.setenv("JUPYTER_DURABLE_LOG", "")
    book = nbformat.v4.new_notebook()
    setup = "%load_ext jupyter_durable\nfrom jupyter_durable import durable"
    book.cells = [
        nbformat.v4.new_code_cell(setup),
        nbformat.v4.new_code_cell("%%durable nightly\nok = durable.approve('Publish?')"),
        nbformat.v4.new_code_cell("print('published' if ok else 'kept')"),
    ]

    with pytest.raises(CellExecutionError) as caught:
        NotebookClient(book, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert caught.value.ename == "Parked"
    answering.answer(log(), "", True)

    NotebookClient(book, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert book.cells[2].outputs[0]["text"] == "published\n"


def test_a_parked_cell_goes_on_by_itself_when_it_was_answered(kernel, log, effects):
    kernel.run(ASKS)
    assert "go on by themselves when what they wait for is over (1 now)" in kernel.ok("durable.wake()").results[0]

    answering.answer(log(), "", True)
    effects.wait("send")

    assert kernel.ok(ASKS).results == ["'sent dear ada'"]
    assert effects.tags() == ["write", "send"]


def test_a_parked_cell_goes_on_by_itself_when_its_timer_is_over(kernel, effects):
    kernel.ok("durable.wake()")
    parked = kernel.run("%%durable nap --grace 0s\ndurable.sleep('6s')\nsend('late')")
    assert parked.reply["ename"] == "Parked"

    effects.wait("send")

    assert kernel.ok("%%durable nap --grace 0s\ndurable.sleep('6s')\nsend('late')").results == ["'sent late'"]


def test_waking_waits_for_what_is_running(kernel, log, effects):
    kernel.run(ASKS)
    kernel.ok("durable.wake()")
    busy = "print('busy', flush=True)\nimport pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)"
    request = kernel.run_until("busy", busy)
    answering.answer(log(), "", True)
    assert effects.tags() == ["write"]
    (kernel.folder / "go").touch()
    kernel.collect(request)

    effects.wait("send")


def test_waking_needs_a_kernel_with_the_extension():
    from jupyter_durable import durable, errors

    with pytest.raises(errors.UsageError, match="first `%load_ext jupyter_durable`"):
        durable.wake()


def test_a_cell_that_awaits_anywhere_gets_something_to_await_from_every_word(kernel, log):
    cell = (
        "%%durable tasks --grace 0s\ntask = asyncio.create_task(durable.approve('Ship?'))\n"
        "naps = [durable.sleep('10ms'), durable.sleep('20ms')]\nmany = durable.map(abs, [-1, 2])\n"
        "said = await task\nawait asyncio.gather(*naps)\n[said, await many]"
    )
    assert kernel.run(cell).reply["ename"] == "Parked"
    answering.answer(log(), "", True)

    for _ in range(2):
        assert kernel.ok(cell).results == ["[True, [1, 2]]"]


def test_a_word_that_is_not_awaited_in_such_a_cell_is_told_with_its_line(kernel, log):
    forgotten = kernel.run("%%durable forgotten\nx = 1\ndurable.sleep('1h')\nawait asyncio.sleep(0)")
    assert "`durable.sleep` in line 3 was never awaited" in forgotten.error

    used = kernel.run(
        "%%durable used\nasync def go():\n    if durable.approve('Pay?'):\n        return 'paid'\nawait go()"
    )
    assert "`durable.approve` in line 3 (`go`) was used without `await`" in used.error
    assert answering.waiting(log()) == []
