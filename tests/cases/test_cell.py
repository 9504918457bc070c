"""G13, G14, G15, G16: the cell stays a cell: the stop button, the last expression, Run All, the loop."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import nbclient
import nbformat
import pexpect
import pytest

CRAWL = """
@step
async def crawl(): hit("crawl"); print("at crawl", flush=True); await asyncio.sleep(60); return "pages"
@step
def grind(): hit("grind"); print("at grind", flush=True); time.sleep(60); return "pages"
@step
def before(): hit("before"); return 1
async def both(): return await asyncio.gather(crawl(), asyncio.sleep(60))
async def in_thread(): return await asyncio.to_thread(lambda: (print("at thread", flush=True), time.sleep(5)))
"""
STOPS = {
    "awaited": ("p = await crawl()", "crawl", [("crawl", "in_doubt")]),
    "second": ("b = before()\np = await crawl()", "crawl", [("before", "completed"), ("crawl", "in_doubt")]),
    "gathered": ("p = await both()", "crawl", [("crawl", "in_doubt")]),
    "caught": (
        "try: p = await crawl()\nexcept Exception: before()\nbefore()", "crawl", [("crawl", "in_doubt")],
    ),
    "timeout": ("p = await asyncio.wait_for(crawl(), 50)", "crawl", [("crawl", "in_doubt")]),
    "blocking": ("p = grind()", "grind", [("grind", "in_doubt")]),
    "glue": ("b = before()\nprint('at glue', flush=True)\nawait asyncio.sleep(60)", "glue", [("before", "completed")]),
}  # fmt: skip


@pytest.mark.parametrize("kind", STOPS)
def test_g13_the_stop_button_during_a_step(case, kind):
    """Stopped twice in one kernel, then killed in the third, and stopped again in a new one."""
    body, place, states = STOPS[kind]
    cell = f"%%durable crawl1\n{body}"
    case.open(CRAWL)
    for number in range(2):
        request = case.kernel.run_until(f"at {place}", cell)
        time.sleep(2 if number == 0 and kind == "awaited" else 0.1)
        began = time.monotonic()
        case.kernel.interrupt()
        ran = case.kernel.collect(request)

        assert time.monotonic() - began < 8  # about a second on a machine that does nothing else; the step takes 60
        assert (ran.status, ran.reply["ename"]) == ("error", "KeyboardInterrupt")
        assert [each["ename"] for each in ran.of("error")] == ["KeyboardInterrupt"]
        assert "interrupted" in ran.summary
        assert case.statuses("crawl1") == states
        assert "CancelledError" not in case.shell("show", "crawl1").stdout
    assert case.effects.count("before") == ("before" in str(states))
    case.kill_at(place, cell)
    case.new_kernel()
    request = case.kernel.run_until(f"at {place}", cell)
    case.kernel.interrupt()
    assert case.kernel.collect(request).reply["ename"] == "KeyboardInterrupt"
    assert case.effects.count("before") == ("before" in str(states))
    assert [each["status"] for each in case.json("runs")["runs"]] == ["interrupted"]


# G14 ----------------------------------------------------------------------------------------------------------------

HELLO = """
from IPython.display import display, HTML, Markdown
@step
async def fetch(u): hit("fetch"); return 41
@step
def load(u): hit("load"); return 41
class Rich:
    def __repr__(self): return "plain form"
    def _repr_html_(self): return "<b>rich form</b>"
"""
BODIES = {
    "await": ('x = await fetch("u1")\nx + 1', ["42"], ""),
    "sync": ('x = load("u1")\nx + 1', ["42"], ""),
    "semicolon": ('x = await fetch("u1")\nx + 1;', [], ""),
    "print": ('x = await fetch("u1")\nprint("x is", x)\nx + 1', ["42"], "x is 41"),
    "rich": ('x = await fetch("u1")\nRich()', ["plain form"], ""),
    "shell": ('x = await fetch("u1")\n!echo from the shell {x}\nx + 1', ["42"], "from the shell 41"),
    "time": ('%time x = load("u1")\nx + 1', ["42"], "Wall time"),
    "async_for": (
        (
            "async def pages():\n    for n in range(2): yield n\n"
            "seen = [n async for n in pages()]\nx = await fetch('u1')\nlen(seen)"
        ),
        ["2"], "",
    ),
    "async_with": (
        (
            "import contextlib\n@contextlib.asynccontextmanager\nasync def opened(): yield 1\n"
            "async with opened() as o: x = await fetch('u1')\no + x"
        ), ["42"], "",
    ),
    "none": ('x = await fetch("u1")\nNone', [], ""),
    "display": ('x = await fetch("u1")\ndisplay(HTML("<i>shown</i>"))\nx + 1', ["42"], ""),
}  # fmt: skip


def test_g14_top_level_await_and_the_last_expression_in_a_kernel(case):
    case.open(HELLO)
    for kind, (body, results, text) in BODIES.items():
        cell = f"%%durable hello_{kind}\n{body}"
        before = case.kernel.ok("0").reply["execution_count"]

        first, again = case.kernel.ok(cell), case.kernel.ok(cell)
        later = case.kernel.ok("x")

        assert first.results == again.results == results, kind
        assert text in first.text, kind
        assert text in again.text, kind
        assert later.results == ["41"], kind
        assert later.reply["execution_count"] == before + 3, kind
        assert "coroutine" not in first.text + again.text, kind
        assert "1 replayed" in again.summary, kind
    case.new_kernel()
    for kind, (body, results, _) in BODIES.items():
        again = case.kernel.ok(f"%%durable hello_{kind}\n{body}")
        assert (again.results, case.kernel.value("x")) == (results, 41), kind
    assert len(case.effects.tags()) == len(BODIES)


@pytest.fixture
def notebook(case):
    """Writes a notebook whose first cell is the setup."""

    def notebook(*cells, setup=HELLO):
        start = "%load_ext jupyter_durable\nfrom jupyter_durable import step, durable\nimport asyncio, time\n"
        sources = (start + case.effects.code + setup, *cells)
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        path = case.folder / "nb.ipynb"
        nbformat.write(made, path)
        return path

    return notebook


def by_nbclient(path):
    made = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(made, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute(
        env=dict(os.environ)
    )
    return made


def by_jupyter_execute(path):
    done = jupyter_execute(path)
    assert done.returncode == 0, done.stderr
    return nbformat.read(path, as_version=4)


def jupyter_execute(path, *words):
    command = [sys.executable, "-m", "jupyter", "execute", "--inplace", "--kernel_name=python3", *words, str(path)]
    return subprocess.run(
        command, cwd=path.parent, env=dict(os.environ), capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize("execute", [by_nbclient, by_jupyter_execute])
def test_g14_in_an_executed_notebook(notebook, case, execute):
    cells = [source for kind, (body, *_) in BODIES.items() for source in (f"%%durable hello_{kind}\n{body}", "x")]
    path = notebook(*cells)

    made = execute(path)

    for number, (kind, (_, results, text)) in enumerate(BODIES.items()):
        durable_cell, later = made.cells[1 + 2 * number], made.cells[2 + 2 * number]
        shown = [o for o in durable_cell.outputs if o.output_type == "execute_result"]
        assert [o["data"]["text/plain"] for o in shown] == results, kind
        assert text in "".join(o.text for o in durable_cell.outputs if o.output_type == "stream"), kind
        assert [o["data"]["text/plain"] for o in later.outputs] == ["41"], kind
        assert later.execution_count == durable_cell.execution_count + 1, kind
    assert len(case.effects.tags()) == len(BODIES)


@pytest.fixture
def terminal(case):
    """IPython in a pseudo terminal, with the setup done."""
    children = []

    def start():
        child = pexpect.spawn(
            sys.executable,
            ["-m", "IPython", "--simple-prompt", "--colors=nocolor", "--no-banner", "--no-confirm-exit"],
            cwd=str(case.folder), env={**os.environ, "TERM": "dumb"}, encoding="utf-8", timeout=60, echo=False,
        )  # fmt: skip
        children.append(child)
        child.expect(r"In \[\d+\]: ")

        def run(cell):
            child.sendline(f"_ = get_ipython().run_cell({cell!r}, store_history=True)")
            child.expect(r"In \[\d+\]: ")
            return child.before.replace("\r\n", "\n")

        run(
            "%load_ext jupyter_durable\nfrom jupyter_durable import step\nimport asyncio, time\n"
            + case.effects.code
            + HELLO
        )
        return child, run

    yield start
    for child in children:
        child.close(force=True)


def test_g14_in_a_terminal(case, terminal):
    child, run = terminal()
    for kind, (body, results, text) in BODIES.items():
        for said in (run(f"%%durable hello_{kind}\n{body}"), run(f"%%durable hello_{kind}\n{body}")):
            assert re.findall(r"^Out\[\d+\]: (.*)$", said, re.MULTILINE) == results, (kind, said)
            assert text in said, kind
            assert "coroutine" not in said, kind
        assert re.search(r"^Out\[\d+\]: 41$", run("x"), re.MULTILINE), kind
    assert len(case.effects.tags()) == len(BODIES)
    child.kill(9)
    _, run = terminal()
    assert "Out[" in run(f"%%durable hello_await\n{BODIES['await'][0]}")
    assert len(case.effects.tags()) == len(BODIES)


# G15 ----------------------------------------------------------------------------------------------------------------

CHARGE = """
@step
def charge(n): hit("charge"); raise ValueError("declined")
@step
async def acharge(n): hit("charge"); raise ValueError("declined")
@step
def session(): hit("charge"); import threading; return threading.Lock()
"""
FAILURES = {
    "step": ("%%durable pay\ncharge(12)", "ValueError", 1),
    "awaited": ("%%durable pay\nawait acharge(12)", "ValueError", 1),
    "gathered": ("%%durable pay\nawait asyncio.gather(acharge(1), asyncio.sleep(0))", "ValueError", 1),
    "glue": ("%%durable pay\n{}['titel']", "KeyError", 0),
    "unstorable": ("%%durable pay\nsession()", "UnstorableValue", 1),
    "swallowed": ("%%durable pay\ntry: session()\nexcept Exception: pass", "RunSealed", 1),
    "flag": ("%%durable pay --frsh\nhit('charge')", "UsageError", 0),
    "syntax": ("%%durable pay\nhit('charge'\n", "SyntaxError", 0),
    "exit_group": (
        "%%durable pay\nasync with asyncio.TaskGroup() as g: g.create_task(acharge(1))",
        "ExceptionGroup",
        1,
    ),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_g15_a_failed_durable_cell_under_run_all(case, kind):
    cell, name, charged = FAILURES[kind]
    case.open(CHARGE)

    # A cell that fails at once would be over before the others have arrived, which Run All does not know either.
    wait = "import os, time\nwhile not os.path.exists('all sent'): time.sleep(0.01)"
    _, *requests = [case.kernel.send(each) for each in (wait, cell, 'hit("ship goods")', 'hit("more")')]
    (case.folder / "all sent").touch()
    ran, *later = [case.kernel.collect(request) for request in requests]

    assert (ran.status, ran.reply["ename"]) == ("error", name)
    assert len(ran.errors) == 1
    assert "Traceback" not in ran.text
    assert [each.status for each in later] == ["aborted", "aborted"]
    assert case.effects.tags() == ["charge"] * charged
    assert case.kernel.ok("1 + 1").results == ["2"]


@pytest.mark.parametrize("kind", ["step", "glue", "swallowed", "flag"])
def test_g15_jupyter_execute_ends_with_a_status_that_is_not_zero(notebook, case, kind):
    cell, name, charged = FAILURES[kind]
    path = notebook(cell, 'hit("ship goods")', setup=CHARGE)

    done = jupyter_execute(path)

    assert done.returncode != 0
    assert name in done.stderr
    assert case.effects.tags() == ["charge"] * charged


# G16 ----------------------------------------------------------------------------------------------------------------

WAIT = """
@step
async def wait(): hit("wait"); await asyncio.sleep(2); return "one"
"""


@pytest.mark.parametrize("patched", [False, True], ids=["plain loop", "loop that the user has patched"])
def test_g16_cells_that_wait_behind_an_awaiting_one_are_run(case, patched):
    """The product patches no loop; and where the user has done so (nest_asyncio2), it works beside that."""
    case.open(WAIT)
    if patched:
        case.kernel.ok("import nest_asyncio2; nest_asyncio2.apply()")
    loop = (
        "[type(asyncio.get_running_loop()).__qualname__, asyncio.get_running_loop().run_forever.__module__, "
        "asyncio.run.__module__]"
    )
    before = case.kernel.ok(f"async def facts(): return {loop}\nawait facts()").results
    cells = [
        "%%durable first\nprint(await wait())",
        'print("two")',
        'print("three")',
        "%%durable last\nprint(await wait(), 'again')",
    ]

    requests = [case.kernel.send(cell) for cell in cells]
    ran = [case.kernel.collect(request) for request in requests]

    assert [each.status for each in ran] == ["ok"] * 4, [each.errors for each in ran]
    assert [each.text.strip() for each in ran] == ["one", "two", "three", "one again"]
    assert case.kernel.ok("await facts()").results == before
    assert case.kernel.value(
        "[name for name in __import__('sys').modules if 'nest' in name and 'asyncio' in name]"
    ) == (["nest_asyncio2"] if patched else [])
    assert case.effects.tags() == ["wait", "wait"]
