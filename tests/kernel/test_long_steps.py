"""Long steps and many at a time, in a real kernel: progress in the summary, workers, the stop button, SIGKILL."""

from __future__ import annotations

from collections.abc import Callable

from tests.kernel.conftest import Kernel, Ran

LOADING = """\
%%durable {name}
@step
def load(rows):
    for n in range(rows):
        durable.progress(n, rows, "rows")
        time.sleep(0.05)
    return rows
load(60)
"""


def test_progress_of_a_step_stands_in_the_summary_while_it_runs(kernel: Kernel) -> None:
    seen = []

    def reported(ran: Ran) -> bool:
        if "/60 rows" in ran.summary:
            seen.append(ran.summary)
        return bool(seen)

    request = kernel.send(LOADING.format(name="loading"))
    kernel.collect(request, reported)
    ran = kernel.collect(request)

    assert "loading · running: load " in seen[0]
    assert ran.status == "ok"
    assert "loading · 1 step · 1 new" in ran.summary


def test_progress_is_in_the_history_after_the_kernel_died(start_kernel: Callable[..., Kernel]) -> None:
    kernel = start_kernel()
    code = LOADING.format(name="cut").replace(
        "        time.sleep(0.05)", "        time.sleep(0.2)\n        print('at', n)"
    )
    kernel.run_until("at 12", code)
    kernel.restart()
    kernel.ok("%load_ext jupyter_durable")

    (table,) = kernel.ok("%durable history cut").displays

    assert "in doubt " in table
    assert "/60 rows" in table


def test_a_map_shows_how_far_it_is_and_functions_of_the_notebook_go_to_processes(
    start_kernel: Callable[..., Kernel],
) -> None:
    kernel = start_kernel()
    kernel.ok(
        "import dataclasses, multiprocessing, os\nfrom concurrent.futures import ProcessPoolExecutor\nFACTOR = 3\n"
        "@dataclasses.dataclass\nclass Page:\n    n: int\n    pid: int\n"
        "def load(n):\n    print('loaded', n)\n    return Page(n * FACTOR, os.getpid())\n"
        "def made():\n    return ProcessPoolExecutor(2, multiprocessing.get_context('spawn'))\n"
    )
    code = "%%durable pages\npages = durable.map(load, range(4), executor=made, concurrency=2)\n"

    first = kernel.ok(code)
    assert kernel.value("[page.n for page in pages]") == [0, 3, 6, 9]
    assert kernel.value("all(type(page) is Page and page.pid != os.getpid() for page in pages)") is True
    assert sorted(first.text.split("\n")) == ["", *(f"loaded {n}" for n in range(4))]
    assert "4 new" in first.summary
    again = kernel.ok(code)
    assert "4 replayed" in again.summary
    assert sorted(again.text.split("\n")) == sorted(first.text.split("\n"))


MAPPED = """\
%%durable {name}
@step
def slow(n):
    print("begun", n)
    if n >= 4:
        time.sleep(0.4)
    with open("{name}.txt", "a") as file:
        print(n, file=file)
    return n
found = {word}durable.map(slow, range(12), concurrency=4)
found
"""


def _done(kernel: Kernel, name: str) -> list[int]:
    return sorted(int(line) for line in (kernel.folder / f"{name}.txt").read_text().split())


def test_after_sigkill_in_a_map_what_was_finished_is_not_executed_again(start_kernel: Callable[..., Kernel]) -> None:
    kernel = start_kernel()
    code = MAPPED.format(name="killed", word="")
    kernel.run_until("begun 7", code)
    kernel.restart()
    kernel.ok("%load_ext jupyter_durable\nfrom jupyter_durable import durable, step\nimport time")

    ran = kernel.ok(code)

    assert ran.results == [str(list(range(12)))]
    done = _done(kernel, "killed")
    assert [n for n in done if n < 4] == [0, 1, 2, 3]
    assert set(done) == set(range(12))


def test_the_stop_button_ends_a_map_and_what_had_begun_is_recorded(start_kernel: Callable[..., Kernel]) -> None:
    kernel = start_kernel()
    for word in ("", "await "):
        name = "stopped" + word.strip()
        code = MAPPED.format(name=name, word=word)
        request = kernel.run_until("begun 7", code)
        kernel.interrupt()
        ran = kernel.collect(request)
        assert ran.status == "error"

        again = kernel.ok(code)

        assert again.results == [str(list(range(12)))]
        assert _done(kernel, name) == list(range(12)), word
