"""A durable cell is an ordinary cell: everything that Jupyter does with a cell, it does with this one."""

from __future__ import annotations

import pytest

from tests.kernel.conftest import SETUP

STEPS = """
@step
def add(a, b): return a + b
@step
async def fetch(x): return x
@step
def boom(text):
    marker = 1
    raise ValueError(text)
"""


@pytest.fixture
def cells(kernel):
    """The kernel with a few steps defined."""
    kernel.ok(STEPS)
    return kernel


@pytest.mark.parametrize("body", ["x = add(40, 1)\nx + 1", "x = await fetch(41)\nx + 1"], ids=["sync", "await"])
def test_the_last_expression_is_shown_once_live_and_on_replay(cells, body):
    """G14: Out[n] once, names stay, one execution count each."""
    name = "out_await" if "await" in body else "out_sync"
    before = cells.ok("0").reply["execution_count"]

    first = cells.ok(f"%%durable {name}\n{body}")
    again = cells.ok(f"%%durable {name}\n{body}")
    later = cells.ok("x, _")

    assert first.results == again.results == ["42"]
    assert later.results == ["(41, 42)"]
    assert later.reply["execution_count"] == before + 3
    assert first.summary.startswith(f"{name} · 1 step · 1 new")
    assert again.summary.startswith(f"{name} · 1 step · 1 replayed")


def test_a_completed_run_says_how_to_get_a_new_one(cells):
    cells.ok("%%durable offer\nadd(1, 2)")

    again = cells.ok("%%durable offer\nadd(1, 2)")

    assert "`%%durable offer --fresh` for a new run" in again.summary
    assert cells.ok("%%durable offer --fresh\nadd(1, 2)").summary.startswith("offer · main-2 · 1 step · 1 new")


def test_displays_shell_commands_and_magics_work_inside(cells):
    ran = cells.ok(
        "%%durable inner\n"
        "from IPython.display import display, HTML\n"
        "display(HTML('<b>bold</b>'))\n"
        "!echo from the shell\n"
        "files = !echo listed\n"
        "%time v = add(1, 2)\n"
        "w = await fetch(files[0])\n"
        "print(v, w)"
    )

    assert "<IPython.core.display.HTML object>" in ran.displays
    assert "from the shell" in ran.text
    assert "3 listed" in ran.text
    assert "Wall time" in ran.text
    assert ran.summary.startswith("inner · 2 steps")


def test_another_cell_magic_stands_below_the_header(cells):
    first = cells.ok("%%durable timed\n%%time\nv = add(20, 3)\nprint(v)")
    again = cells.ok("%%durable timed\n%%time\nv = add(20, 3)\nprint(v)")

    assert "23" in first.text
    assert "Wall time" in first.text
    assert "1 replayed" in again.summary


def test_captured_output_of_a_cell_magic_is_the_same_on_replay(cells):
    cell = "%%durable captured\n%%capture got\nprint('glue')\nadd(1, 1)"
    cells.ok(cell)
    first = cells.value("got.stdout")

    cells.ok(cell)

    assert cells.value("got.stdout") == first


@pytest.mark.parametrize("awaits", [False, True], ids=["sync", "await"])
def test_a_traceback_has_the_users_lines_and_none_of_ours(cells, awaits):
    body = "a = 1\nb = 2\nboom('told')\nc = 3" + ("\nawait fetch(1)" if awaits else "")
    ran = cells.run(f"%%durable trace_{awaits}\n{body}")

    assert (ran.status, ran.reply["ename"], ran.reply["evalue"]) == ("error", "ValueError", "told")
    assert "----> 4 boom('told')" in ran.error
    assert "raise ValueError(text)" in ran.error
    assert "jupyter_durable" not in ran.error
    assert "hidden" not in ran.error
    assert ran.reply["traceback"] == ran.of("error")[0]["traceback"]
    assert ran.summary.startswith(f"trace_{awaits} · failed · 1 step · 1 new (1 failed)")


def test_chained_errors_are_shown_without_our_frames(cells):
    ran = cells.run(
        "%%durable chained\n"
        "try:\n    boom('inner')\nexcept ValueError as error:\n    raise KeyError('outer') from error\n"
    )

    assert "The above exception was the direct cause" in ran.error
    assert "inner" in ran.error
    assert "jupyter_durable" not in ran.error


def test_a_replayed_failure_shows_the_users_line(cells):
    cell = "%%durable refail\ntry:\n    boom('x')\nexcept ValueError:\n    pass\nadd(1, 2)\nboom('x')"
    cells.run(cell)

    ran = cells.run(cell)

    assert ran.reply["ename"] == "ValueError"
    assert "----> 7 boom('x')" in ran.error
    assert "jupyter_durable" not in ran.error


def test_an_error_in_glue_code_is_an_ordinary_error(cells):
    ran = cells.run("%%durable glue\nd = {}\nd['titel']")

    assert (ran.status, ran.reply["ename"]) == ("error", "KeyError")
    assert "----> 3 d['titel']" in ran.error


def test_a_group_of_errors_reaches_the_front_end(cells):
    """Stock IPython prints it to stderr and tells the front end of no error."""
    ran = cells.run(
        "%%durable group\n"
        "async def bad(n): boom(f'n{n}')\n"
        "async with asyncio.TaskGroup() as g:\n    g.create_task(bad(1)); g.create_task(bad(2))"
    )

    assert (ran.status, ran.reply["ename"]) == ("error", "ExceptionGroup")
    assert [content["ename"] for content in ran.of("error")] == ["ExceptionGroup"]
    assert "ValueError: n1" in ran.error
    assert "ValueError: n2" in ran.error
    assert "jupyter_durable" not in ran.error


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("add(1, 1)\nprint('ran')\nreturn 3", "SyntaxError", "'return' outside function"),
        ("add(1, 1)\nprint('ran')\nx = = 3", "SyntaxError", "invalid syntax"),
        ("add(1, 1)\nprint('ran')\n  y = 1", "IndentationError", "unexpected indent"),
        ("await fetch(1)\nprint('ran')\nbreak", "SyntaxError", "'break' outside loop"),
        ("add(1, 1); print('ran'); return 3", "SyntaxError", "'return' outside function"),
    ],
)
def test_a_cell_that_cannot_be_compiled_does_not_begin(cells, body, kind, said):
    cells.ok("%%durable whole\nadd(1, 1)")  # there is a log, whichever test comes first

    ran = cells.run(f"%%durable broken\n{body}")

    assert (ran.status, ran.reply["ename"]) == ("error", kind)
    assert said in ran.error
    assert "ran" not in ran.text
    assert ran.summary == ""
    assert "broken" not in cells.ok("%durable runs").displays[0]


def test_the_compiler_warns_as_often_as_in_a_plain_cell(cells):
    ran = cells.ok("%%durable warns\nadd(1, 1) is 2")
    plain = cells.ok("\nadd(1, 1) is 2")

    assert ran.text.count("SyntaxWarning") == plain.text.count("SyntaxWarning") > 0


def test_code_that_ipython_allows_anywhere_is_allowed(cells):
    ran = cells.ok('%%durable future\n"a docstring"\nfrom __future__ import annotations\nadd(2, 2)')

    assert ran.results == ["4"]


def test_a_cell_of_only_a_docstring_or_a_header_is_fine(cells):
    assert cells.ok("%%durable doc\n'just text'").results == ["'just text'"]
    assert cells.ok("%%durable nothing").results == []
    assert cells.ok("\n\n%%durable blank\n\nadd(3, 4)").results == ["7"]


def test_the_pragma_means_the_same(cells):
    first = cells.ok("#| label: fig\n#| durable: prag --strict\nadd(5, 6)")
    again = cells.ok("%%durable prag\nadd(5, 6)")
    bare = cells.ok("#| durable\nadd(5, 6)", "5555aaaa")

    assert first.results == ["11"]
    assert again.summary.startswith("prag · 1 step · 1 replayed")
    assert bare.summary.startswith("cell-5555aaaa · 1 step")


def test_a_run_all_stops_at_the_cell_that_failed(cells, effects):
    """G15: the reply is an error, later cells do not run, one traceback."""
    cells.ok(effects.code)
    requests = [cells.send(code) for code in ("%%durable g15\nboom('declined')", "hit('ship goods')", "hit('more')")]

    replies = [cells.collect(request) for request in requests]

    assert [ran.status for ran in replies] == ["error", "aborted", "aborted"]
    assert replies[0].error.count("declined") == 2  # in the call and as the message of one traceback
    assert effects.tags() == []


def test_cells_behind_an_awaiting_one_are_run(cells):
    """G16: nothing patches the loop, so nothing is dropped from its queue."""
    requests = [
        cells.send(code)
        for code in (
            "%%durable g16\nawait asyncio.sleep(0.2)\nprint(await fetch('one'))",
            "print('two')",
            "print('three')",
        )
    ]

    assert [cells.collect(request).text for request in requests] == ["one\n", "two\n", "three\n"]
    assert cells.ok("1").results == ["1"]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("--frsh", "`%%durable` has no flag `--frsh`. Did you mean `--fresh`?"),
        ("two names", "A run has one name"),
        ("bad/name", "letters, digits"),
        ("x --from", "`--from` needs a value"),
        ("x --fresh --branch main", "exclude each other"),
        ("x --branch nowhere", "has no branch `nowhere`"),
    ],
)
def test_a_header_that_cannot_be_meant_runs_nothing_and_says_so_in_one_sentence(cells, header, said):
    ran = cells.run(f"%%durable {header}\nprint('ran')")

    assert (ran.status, ran.reply["ename"]) == ("error", "UsageError")
    assert said in ran.reply["evalue"]
    assert ran.error == f"UsageError: {ran.reply['evalue']}"
    assert ran.text == ""


@pytest.mark.parametrize(
    "cell",
    [
        "# a comment\n%%durable late\nprint('ran')",
        "print('ran')\n%%durable late",
        "%%time\n%%durable late\nprint('ran')",
    ],
    ids=["comment", "code", "time"],
)
def test_a_header_that_is_not_first_runs_nothing(cells, cell):
    ran = cells.run(cell)

    assert (ran.status, ran.reply["ename"]) == ("error", "UsageError")
    assert "first line" in ran.error
    assert "ran\n" not in ran.text
    assert "late" not in cells.ok("%durable runs").displays[0]


def test_a_silent_execution_does_not_run_undurably(cells):
    """Its hooks are not called, so no run could be begun."""
    ran = cells.run("%%durable hush\nhushed = add(1, 1)", silent=True)

    assert ran.status == "error"
    assert "without its log" in ran.reply["evalue"]
    assert cells.value("'hushed' in globals()") is False
    cells.ok("%%durable hush --off\nhushed = 1", silent=True)
    assert cells.value("hushed") == 1


def test_off_runs_the_cell_plainly(cells):
    ran = cells.ok("%%durable offed --off\nadd(1, 2)")

    assert ran.results == ["3"]
    assert ran.displays == []
    assert "offed" not in cells.ok("%durable runs").displays[0]


def test_a_cell_run_from_inside_does_not_end_the_outer_one(cells):
    cell = (
        "%%durable outer\n"
        "a = add(1, 1)\n"
        "get_ipython().run_cell('inside = 5 + 5')\n"
        "get_ipython().run_cell('%%durable nested\\nprint(1)')\n"
        "b = add(2, 2)"
    )
    first = cells.run(cell)
    again = cells.run(cell)

    assert "a run cannot hold another one" in first.error
    assert first.summary.startswith("outer · 2 steps · 2 new")
    assert again.summary.startswith("outer · 2 steps · 2 replayed")
    assert cells.value("inside") == 10


def test_a_stop_that_the_code_swallowed_still_fails_the_cell(cells):
    """G12: a bare except must not turn a stop into success, nor let anything be executed after it."""
    cells.ok("import random\n@step\ndef pay(n): print('paid', n); return n")
    cells.ok("%%durable swallow\nsteps = [add(1, 2)]\nfor s in steps: pay(s)")
    cells.ok("steps_edited = 1")
    ran = cells.run(
        "%%durable swallow --replay-only\n"
        "try:\n    pay(7)\nexcept:\n    print('robust')\n"
        "try:\n    pay(8)\nexcept:\n    print('robust')\n"
    )

    assert ran.text == "robust\nrobust\n"
    assert (ran.status, ran.reply["ename"]) == ("error", "ReplayOnlyError")  # what stopped it, whatever caught that
    assert "stopped" in ran.summary
    assert len(ran.errors) == 1


def test_an_error_of_ours_at_a_step_shows_the_users_frames(cells):
    cells.ok("def helper(n):\n    return add(n, n)")
    ran = cells.run("%%durable only --replay-only\nx = 1\nhelper(5)")

    assert ran.reply["ename"] == "ReplayOnlyError"
    assert "----> 3 helper(5)" in ran.error
    assert "return add(n, n)" in ran.error
    assert "jupyter_durable" not in ran.error


def test_system_exit_ends_the_run_as_failed(cells):
    ran = cells.run("%%durable leaves\nadd(1, 2)\nraise SystemExit(3)")

    assert (ran.status, ran.reply["ename"]) == ("error", "SystemExit")
    assert "leaves · failed" in ran.summary


def test_all_cells_can_be_durable(cells):
    cells.ok("%durable on")
    first = cells.ok("add(30, 3)", "aaaa1111")
    plain = cells.ok("1 + 1", "aaaa2222")
    again = cells.ok("add(30, 3)", "aaaa1111")
    cells.ok("%durable off", "aaaa3333")
    after = cells.ok("add(30, 3)", "aaaa1111")

    assert first.summary.startswith("cell-aaaa1111 · 1 step · 1 new")
    assert plain.displays == []
    assert again.summary.startswith("cell-aaaa1111 · 1 step · 1 replayed")
    assert after.displays == []


def test_a_live_summary_is_shown_in_place_while_the_cell_waits(cells):
    cells.ok("gate = asyncio.Event()\n@step\nasync def waits(): await gate.wait(); return 1")
    request = cells.send(
        "%%durable shown\nadd(1, 1)\nasyncio.get_running_loop().call_later(0.5, gate.set)\nawait waits()"
    )

    live = cells.collect(request, lambda ran: bool(ran.displays))
    rest = cells.collect(request)

    assert live.displays[0].startswith("shown · running: waits · 2 steps")
    assert rest.of("display_data") == []
    assert rest.displays[-1].startswith("shown · 2 steps · 2 new")


def test_nothing_of_ours_is_left_after_a_cell(start_kernel):
    look = (
        "[__import__('signal').getsignal(2).__name__, len(get_ipython().custom_exceptions), "
        "'write' in vars(__import__('sys').stdout), 'publish' in vars(get_ipython().display_pub), "
        "asyncio.get_running_loop().get_task_factory() is None, "
        "threading.Thread.start.__module__, asyncio.sleep.__module__, "
        "__import__('jupyter_durable.engine.context', fromlist=['x']).current() is None]"
    )
    kernel = start_kernel()
    kernel.ok(STEPS)
    before = kernel.value(look)

    kernel.ok("%%durable tidy\nadd(1, 2)")
    kernel.ok("%%durable tidy2\nawait fetch(1)")
    kernel.run("%%durable tidy3\nboom('x')")
    kernel.run("%%durable --frsh")

    assert kernel.value(look) == before


def test_loading_twice_is_harmless_and_unloading_restores(start_kernel):
    kernel = start_kernel(setup="")
    look = (
        "[len(get_ipython().input_transformers_cleanup), len(get_ipython().ast_transformers), "
        "[len(c) for c in get_ipython().events.callbacks.values()], "
        "sorted(n for k in get_ipython().magics_manager.magics.values() for n in k if 'durable' in n)]"
    )
    before = kernel.value(look)
    kernel.ok("%load_ext jupyter_durable\n%reload_ext jupyter_durable")
    kernel.ok("import jupyter_durable; jupyter_durable.load_ipython_extension(get_ipython())")
    once = kernel.value(look)

    kernel.ok("%unload_ext jupyter_durable")

    assert kernel.value(look) == before
    assert once[1] == before[1] + 1
    assert once[3] == ["%durable", "durable", "durable"]
    assert "not found" in kernel.run("%%durable x\n1").text


def test_a_durable_cell_does_not_unload_what_records_it(cells):
    ran = cells.run("%%durable unloads\n%unload_ext jupyter_durable")

    assert ran.reply["ename"] == "UsageError"
    assert cells.ok("%%durable unloads2\nadd(1, 1)").results == ["2"]


def test_loading_imports_nothing_of_the_engine(start_kernel):
    kernel = start_kernel(setup="%load_ext jupyter_durable")

    loaded = kernel.value(
        "sorted(m for m in __import__('sys').modules if m.startswith(('jupyter_durable.', 'msgspec', 'duckdb')))"
    )

    assert loaded == [
        "jupyter_durable.engine",
        "jupyter_durable.engine.flags",
        "jupyter_durable.errors",
        "jupyter_durable.kernel",
        "jupyter_durable.kernel.cell",
        "jupyter_durable.kernel.extension",
        "jupyter_durable.kernel.header",
        "jupyter_durable.kernel.transform",
    ]


def test_help_is_where_ipython_looks_for_it(cells):
    ran = cells.ok("%%durable?")
    (page,) = (payload["data"]["text/plain"] for payload in ran.reply["payload"] if payload["source"] == "page")

    assert "--replay-only" in page


def test_exit_ends_the_run_in_an_orderly_way(start_kernel):
    kernel = start_kernel()
    kernel.ok(STEPS)

    ran = kernel.ok("%%durable leaving\nadd(1, 2)\nexit()")
    kernel.restart()
    kernel.ok(SETUP + STEPS)

    assert ran.summary.startswith("leaving · 1 step · 1 new")
    assert kernel.ok("%%durable leaving\nadd(1, 2)\nexit").summary.startswith("leaving · ")


def test_a_subshell_works_beside_a_durable_cell(cells):
    """Its errors are its own, its cells are not the run's, and a durable cell of its own is one."""
    waiting = "%%durable main_shell\ngo = asyncio.Event()\nprint('waiting')\nawait go.wait()"
    request = cells.run_until("waiting", waiting)
    message = cells.client.session.msg("create_subshell_request", {})
    cells.client.control_channel.send(message)
    subshell = cells.client.get_control_msg(timeout=60)["content"]["subshell_id"]

    failed = cells.run("1 / 0", subshell=subshell)
    own = cells.ok("%%durable sub_shell\nadd(4, 5)", subshell=subshell)
    refused = cells.run(waiting, subshell=subshell)
    cells.ok("get_ipython().kernel.io_loop.asyncio_loop.call_soon_threadsafe(go.set)", subshell=subshell)
    main = cells.collect(request)

    assert failed.reply["ename"] == "ZeroDivisionError"
    assert "----> 1 1 / 0" in failed.error
    assert own.results == ["9"]
    assert own.summary.startswith("sub_shell · 1 step · 1 new")
    assert refused.reply["ename"] == "BranchBusy"
    assert main.status == "ok"
    assert main.summary.startswith("main_shell · 0 steps")
