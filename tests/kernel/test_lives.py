"""Cells that outlive their histories and their code: going on anew, patches, edited steps. In real kernels."""

from __future__ import annotations

from typing import Any

import pytest

CELL = """\
%%durable {name}
state = durable.state(n=0, seen=[])
await asyncio.sleep(0)
print("page", state.n)
page = fetch(state.n)
if state.n < {last}:
    durable.continue_as_new(n=state.n + 1, seen=[*state.seen, page])
[*state.seen, page]"""

SETUP = """
@step
def fetch(n):
    with open("fetched.txt", "a") as file:
        file.write(f"{n}\\n")
    return n * 10

def fetched():
    return open("fetched.txt").read().split()
"""


@pytest.fixture(scope="module")
def cells(kernel: Any) -> Any:
    """The shared kernel, with a step that leaves traces."""
    kernel.ok(SETUP)
    return kernel


@pytest.fixture(autouse=True)
def _nothing_fetched(request: pytest.FixtureRequest) -> None:
    if "cells" in request.fixturenames:
        request.getfixturevalue("cells").ok("open('fetched.txt', 'w').close()")


def test_a_cell_goes_on_by_itself_and_shows_its_last_expression_once(cells: Any) -> None:
    """With top-level `await`; each branch says what it prints, and there is one summary: that of the newest."""
    ran = cells.ok(CELL.format(name="watch", last=3))

    assert ran.results == ["[0, 10, 20, 30]"]
    assert ran.text.split() == ["page", "0", "page", "1", "page", "2", "page", "3"]
    assert cells.value("_") == [0, 10, 20, 30]
    assert cells.value("fetched()") == ["0", "1", "2", "3"]
    assert ran.summary.startswith("watch · main-4 · 1 step · 1 new")
    assert len({text.split(" · ")[0] for text in ran.displays}) == len(ran.displays) == 1


def test_run_again_it_replays_its_newest_branch(cells: Any) -> None:
    cells.ok(CELL.format(name="again", last=2))
    again = cells.ok(CELL.format(name="again", last=2))

    assert again.results == ["[0, 10, 20]"]
    assert again.text.split() == ["page", "2"]
    assert cells.value("fetched()") == ["0", "1", "2"]


def test_without_await_and_with_every_expression_shown(cells: Any) -> None:
    """Nothing of IPython's own ways is lost: each top-level expression is shown, on every branch."""
    cells.ok("get_ipython().ast_node_interactivity = 'all'")
    try:
        ran = cells.ok(
            "%%durable shown\nfrom __future__ import annotations\nstate = durable.state(n=0)\nstate.n\n"
            "if state.n < 2: durable.continue_as_new(n=state.n + 1)\n'end'"
        )
    finally:
        cells.ok("get_ipython().ast_node_interactivity = 'last_expr'")

    assert ran.results == ["0", "1", "2", "'end'"]


def test_an_error_on_a_later_branch_is_shown_with_its_line(cells: Any) -> None:
    failed = cells.run(CELL.format(name="fails", last=3).replace("page = ", "1 / (2 - state.n)\npage = "))

    assert failed.status == "error"
    assert failed.errors[0].count("ZeroDivisionError") == 2
    assert "----> 5 1 / (2 - state.n)" in failed.error
    assert "continue_as_new" not in failed.error.split("----> 5")[0]
    assert cells.value("fetched()") == ["0", "1"]
    assert "main-3" in " ".join(cells.ok("%durable runs").displays)


def test_the_stop_button_ends_it_on_the_branch_that_runs(cells: Any) -> None:
    cell = CELL.format(name="stopped", last=3).replace("page = ", "if state.n == 2: await asyncio.sleep(60)\npage = ")
    request = cells.run_until("page 2", cell)
    cells.interrupt()
    stopped = cells.collect(request)

    assert stopped.status == "error"
    assert "KeyboardInterrupt" in stopped.error
    assert cells.value("fetched()") == ["0", "1"]
    assert cells.ok("get_ipython().run_ast_nodes.__name__, 'run_ast_nodes' in vars(get_ipython())").results == [
        "('run_ast_nodes', False)"
    ]


def test_called_in_a_function_that_the_cell_does_not_show(cells: Any) -> None:
    cells.ok("def enough(state):\n    durable.continue_as_new(n=state.n + 1)")
    ran = cells.ok("%%durable hidden\nstate = durable.state(n=0)\nif state.n < 2: enough(state)\nstate.n")

    assert ran.results == ["2"]


def test_killed_between_two_branches_a_new_kernel_goes_on(start_kernel: Any) -> None:
    kernel = start_kernel()
    kernel.ok(SETUP)
    cell = CELL.format(name="watch", last=2)
    kernel.ok(
        "import os\nfrom jupyter_durable.engine.execution import Execution\nclose = Execution._close\n"
        "def die(execution):\n    close(execution)\n    if execution.continued: os.kill(os.getpid(), 9)\n"
        "Execution._close = die"
    )
    kernel.send(cell)
    kernel.manager.provisioner.process.wait(60)
    kernel.end()
    kernel.start()
    kernel.ok("%load_ext jupyter_durable\nfrom jupyter_durable import step, durable\nimport asyncio")
    kernel.ok(SETUP)
    (before,) = kernel.ok("%durable runs").displays

    ran = kernel.ok(cell)

    assert "continued" in before
    assert ran.results == ["[0, 10, 20]"]
    assert kernel.value("fetched()") == ["0", "1", "2"]


def test_patched_after_a_park_the_old_code_goes_on(cells: Any) -> None:
    old = "%%durable mails --grace 0s\ntext = fetch(1)\nsent = fetch(2)\nok = durable.wait_for('ok')\n(sent, ok)"
    new = old.replace("sent = ", "if durable.patched('v2'): sent = fetch(3)\nelse: sent = ")
    assert "Parked" in cells.run(old).error
    assert "Parked" in cells.run(new).error
    cells.ok("%durable signal ok 7")

    assert cells.ok(new).results == ["(20, 7)"]
    assert cells.value("fetched()") == ["1", "2"]
    assert "durable.patched" in cells.ok("%durable history mails").displays[0]


def test_an_edited_function_is_executed_again_or_not_as_its_step_says(cells: Any) -> None:
    """Also when the plan is asked before."""
    for policy, value in (("rerun", "'new'"), ("reuse", "'old'")):
        define = f"@step(on_code_change={policy!r})\ndef ask_{policy}():\n    return "
        cell = f"%%durable {policy}{{}}\nask_{policy}()"
        cells.ok(define + "'old'")
        cells.ok(cell.format(""))
        cells.ok(define + "'new'")

        planned = cells.ok(cell.format(" --plan"))
        ran = cells.ok(cell.format(""))

        said = "1 again" if policy == "rerun" else "1 replayed"
        assert any(said in text for text in planned.displays), planned.displays
        assert ran.results == [value]
