"""`%durable undo` in a real kernel: the list, the deed, a kernel killed in its middle, and the cell after it."""

from __future__ import annotations

from typing import Any

STEPS = """
%load_ext jupyter_durable
from jupyter_durable import durable, step
import os, time
def note(what):
    with open('effects.txt', 'a') as file: file.write(what + '\\n')
def cancel(ticket, what):
    note(f'cancel {ticket}')
    if what == 'hotel' and not os.path.exists('gate'):
        print('stuck at hotel', flush=True); time.sleep(600)
@step(compensate=cancel)
def book(what):
    note(f'book {what}'); return f'{what} 17'
@step
def look(what): return what
"""
CELL = "%%durable trip\nbook('train'); book('hotel'); look('x'); book('car')"


def effects(kernel: Any) -> list[str]:
    text: str = (kernel.folder / "effects.txt").read_text()
    return text.splitlines()


def test_an_undo_is_listed_killed_in_its_middle_resumed_and_closes_the_branch(start_kernel: Any) -> None:
    kernel = start_kernel()
    kernel.ok(STEPS)
    kernel.ok(CELL)

    (listed,) = kernel.ok("%durable undo trip").displays
    assert "nothing was undone yet: `%durable undo trip --yes` does it" in listed
    rows = [line for line in listed.splitlines() if line.lstrip()[:1].isdigit()]
    assert ["to be undone" in row for row in rows] == [True, False, True, True]
    assert "stays" in rows[1]
    assert len(effects(kernel)) == 3

    kernel.run_until("stuck at hotel", "%durable undo trip --yes")
    kernel.restart()

    # The new kernel knows nothing yet: nothing is undone before it does.
    kernel.ok("%load_ext jupyter_durable")
    missing = kernel.run("%durable undo trip --yes")
    assert "does not know what undoes `book`" in missing.error
    kernel.ok(STEPS)
    stopped = kernel.run(CELL)
    assert "BranchClosed" in stopped.error
    assert "is not finished" in stopped.error

    (kernel.folder / "gate").touch()
    (done,) = kernel.ok("%durable undo trip --yes").displays

    assert "2 steps undone just now" in done
    assert effects(kernel)[3:] == ["cancel car 17", "cancel hotel 17", "cancel hotel 17", "cancel train 17"]
    again = kernel.run(CELL)
    assert "was undone by" in again.error
    assert "`%%durable trip --fresh` starts again" in again.error
    assert len(effects(kernel)) == 7
    (runs,) = kernel.ok("%durable").displays
    (row,) = [line for line in runs.splitlines() if line.lstrip().startswith("trip ")]
    assert row.split()[1] == "undone"


def test_coroutines_are_awaited_by_the_magic_and_by_a_cell(start_kernel: Any) -> None:
    kernel = start_kernel()
    kernel.ok(STEPS.replace("def cancel", "async def cancel").replace("what == 'hotel'", "False"))
    kernel.ok("%%durable a\nbook('car')")
    kernel.ok("%%durable b\nbook('boat')")

    kernel.ok("%durable undo a --yes")
    ran = kernel.ok("await durable.undo('b')")

    assert effects(kernel)[2:] == ["cancel car 17", "cancel boat 17"]
    assert ran.results == ["['`book` (step 1)']"]
    assert "Say `%durable undo RUN" in kernel.run("%durable undo").error
