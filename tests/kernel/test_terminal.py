"""Terminal IPython, through a pseudo terminal, as a person uses it."""

from __future__ import annotations

import os
import re
import sys

import pexpect
import pytest

PROMPT = re.compile(r"In \[\d+\]: $")


class Terminal:
    """An IPython at a prompt."""

    def __init__(self, folder):
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "IPython", "--simple-prompt", "--colors=nocolor", "--no-banner", "--no-confirm-exit"],
            cwd=str(folder), env={**os.environ, "TERM": "dumb"}, encoding="utf-8", timeout=60, echo=False,
        )  # fmt: skip
        self.child.expect(r"In \[\d+\]: ")

    def send(self, cell):
        """Give a cell to ``run_cell``: the plain prompt takes one line."""
        self.child.sendline(f"_ = get_ipython().run_cell({cell!r})")

    def wait(self):
        """What was said until the next prompt."""
        self.child.expect(r"In \[\d+\]: ")
        return self.child.before.replace("\r\n", "\n")

    def run(self, cell):
        self.send(cell)
        return self.wait()

    def run_line(self, line):
        """What one line at the prompt answers."""
        self.child.sendline(line)
        return self.wait()

    def interrupt_at(self, text, cell):
        """Press Ctrl-C when a text is printed."""
        self.send(cell)
        self.child.expect_exact(text)
        self.child.sendintr()
        return self.wait()


@pytest.fixture
def terminal(tmp_path, effects):
    """A terminal with steps defined; it works in the folder of the test."""
    terminal = Terminal(tmp_path)
    terminal.run(
        effects.code
        + "%load_ext jupyter_durable\nfrom jupyter_durable import step\nimport asyncio, time\n"
        + "@step\ndef ask(n): hit(f'ask{n}'); return n\n"
        + "@step\nasync def fetch(n): hit(f'fetch{n}'); return n\n"
        + "@step\nasync def crawl():\n    print('crawl'+'ing', flush=True); await asyncio.sleep(60)\n"
        + "@step\ndef grind():\n    print('grind'+'ing', flush=True); time.sleep(60)\n"
    )
    yield terminal
    terminal.child.close(force=True)


def test_a_cell_shows_its_result_and_one_line(terminal, effects):
    """G14 in a terminal."""
    first = terminal.run("%%durable hello\nx = await fetch(41)\nx + 1")
    again = terminal.run("%%durable hello\nx = await fetch(41)\nx + 1")
    sync = terminal.run("%%durable other\nask(5)")

    assert len(re.findall(r"^Out\[\d+\]: 42$", first, re.MULTILINE)) == 1
    assert re.search(r"^hello · 1 step · 1 new · \S+ \S+$", first, re.MULTILINE)
    assert re.search(r"^hello · 1 step · 1 replayed", again, re.MULTILINE)
    assert "replayed from history; `%%durable hello --fresh` for a new run" in again
    assert ": 5\n" in sync
    assert effects.tags() == ["fetch41", "ask5"]


def test_ctrl_c_stops_at_once_and_the_cell_resumes(terminal, effects):
    for call, said in [("await crawl()", "crawling"), ("grind()", "grinding")]:
        text = terminal.interrupt_at(said, f"%%durable stop\na = ask(1)\n{call}")

        assert "KeyboardInterrupt" in text
        assert "stop" in text
        assert "interrupted" in text
    assert effects.count("ask1") == 1
    plain = terminal.interrupt_at("now", "print('n' + 'ow', flush=True); time.sleep(60)")
    assert "KeyboardInterrupt" in plain


def test_errors_and_refusals_are_told(terminal):
    assert "UsageError: `%%durable` has no flag `--frsh`" in terminal.run("%%durable --frsh\nprint('r' + 'an')")
    failed = terminal.run("%%durable bad\nask(1)\n1 / 0")
    assert "ZeroDivisionError" in failed
    assert "----> 3 1 / 0" in failed
    assert "bad · failed · 1 step" in failed
    assert "first line" in terminal.run("# c\n%%durable bad")
    table = terminal.run("%durable")
    assert re.search(r"^bad +failed +main", table, re.MULTILINE)


def test_a_killed_terminal_resumes(terminal, effects, tmp_path):
    cell = "%%durable\na = ask(1)\ngrind()"
    terminal.send(cell)
    terminal.child.expect_exact("grinding")
    terminal.child.kill(9)
    terminal.child.wait()

    other = Terminal(tmp_path)
    other.run(
        effects.code + "%load_ext jupyter_durable\nfrom jupyter_durable import step\n"
        "@step\ndef ask(n): hit(f'ask{n}'); return n\n@step\ndef grind(): return 2"
    )
    text = other.run("%%durable\na = ask(1)\nprint('a is', a)")
    other.child.close(force=True)

    assert "a is 1" in text


@pytest.mark.parametrize(
    ("cell", "whole"),
    [("%%durable a", "incomplete"), ("%%durable a\nask(1)", "incomplete"), ("%%durable a\nask(1)\n\n", "complete")],
)
def test_a_terminal_waits_for_the_lines_below_the_header(terminal, cell, whole):
    assert repr(whole) in terminal.run_line(f"get_ipython().check_complete({cell!r})[0]")
