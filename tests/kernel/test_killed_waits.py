"""Real kernels that are killed while an answer is on its way: before its receipt, behind it, and while they wake.

The SIGKILL comes from the kernel to itself at the moment that it writes a certain line, so no luck is involved.
"""

from __future__ import annotations

import os

import pytest

from jupyter_durable import answering, client
from jupyter_durable.log import open_log
from tests.kernel.conftest import SETUP

STEPS = """
@step
def write(name): hit("write " + name); return f"dear {name}"
@step
def send(text): hit("send " + text); return f"sent {text}"
"""

MORTAL = """
import os
from jupyter_durable.log import files
class Mortal(files.FileLayer):
    armed = {armed}  # else from its wait on
    def write(self, fd, data):
        line = bytes(data)
        hit = self.armed and b'"type":"{kind}"' in line
        self.armed |= b'"type":"wait_started"' in line
        if hit and "{when}" == "before":
            os.kill(os.getpid(), 9)
        if hit and "{when}" == "torn":
            super().write(fd, line[: len(line) // 2])
            os.kill(os.getpid(), 9)
        taken = super().write(fd, data)
        if hit and "{when}" == "after":
            os.kill(os.getpid(), 9)
        return taken
mortal = files.use(Mortal())
mortal.__enter__()
"""

CELL = """\
%%durable {name} --grace {grace}
text = write("{name}")
sent = send(text) if durable.approve("Send it?", show=text) else "kept"
sent
"""

MOMENTS = [
    ("signal_received", "before"),  # the answer lies in the inbox, and nowhere else
    ("signal_received", "after"),  # its receipt is in the journal, and not what came of it
    ("step_completed", "torn"),
    ("step_completed", "after"),  # the answer is recorded, and was not acted on
]


class Notebook:
    """A notebook and its kernels."""

    def __init__(self, start, effects, folder):
        self.effects = effects
        self.kernel = start()
        self.log = folder / ".durable"
        self.set_up()

    def set_up(self):
        self.kernel.ok(SETUP + self.effects.code + STEPS)

    def dies(self):
        """Wait for the SIGKILL, and start a kernel in the place of the dead one."""
        os.waitid(os.P_PID, self.kernel.pid, os.WEXITED | os.WNOWAIT)
        status = {run.name: run.status for run in client.runs(open_log(str(self.log)))}
        self.kernel.restart()
        self.set_up()
        return status

    def waiting(self, name):
        return [wait for wait in answering.waiting(open_log(str(self.log))) if wait.run_name == name]

    def ends_well(self, name):
        """The next kernel takes the answer, acts on it once, and a replay does not act at all."""
        for _ in range(2):
            assert self.kernel.ok(CELL.format(name=name, grace="0s")).results == [f"'sent dear {name}'"]
        assert self.effects.count(f"write {name}") == 1
        assert self.effects.count(f"send dear {name}") == 1
        assert self.waiting(name) == []


@pytest.fixture
def notebook(start_kernel, effects, tmp_path, key_file, monkeypatch):
    monkeypatch.setenv("JUPYTER_DURABLE_KEY_FILE", str(key_file))
    return Notebook(start_kernel, effects, tmp_path)


def test_a_kernel_that_is_killed_while_it_is_answered_takes_the_answer_once(notebook):
    for number, (kind, when) in enumerate(MOMENTS):
        name = f"mail-{number}"
        notebook.kernel.ok(MORTAL.format(kind=kind, when=when, armed=False))
        request = notebook.kernel.send(CELL.format(name=name, grace="1h"))
        notebook.kernel.collect(request, lambda ran: "Send it?" in "".join(ran.displays))
        [wait] = notebook.waiting(name)
        assert wait.running

        answering.answer(open_log(str(notebook.log)), wait.number, True, run=wait.run)

        assert notebook.dies()[name] == "interrupted"
        notebook.ends_well(name)


def test_a_kernel_that_is_killed_while_it_wakes_takes_the_answer_once(notebook):
    for number, (kind, when) in enumerate([("execution_started", "torn"), ("wait_started", "before"), *MOMENTS[:2]]):
        name = f"mail-{number}"
        assert notebook.kernel.run(CELL.format(name=name, grace="0s")).reply["ename"] == "Parked"
        notebook.kernel.ok(MORTAL.format(kind=kind, when=when, armed=True) + "durable.wake()")
        [wait] = notebook.waiting(name)

        answering.answer(open_log(str(notebook.log)), wait.number, True, run=wait.run)

        notebook.dies()
        notebook.ends_well(name)
