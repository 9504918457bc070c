"""The main job: kill a notebook's kernel in the middle of a paid call, run it again, and compare the bills.

It takes ``notebooks/01-resume-after-a-crash.ipynb`` as it is, executes it in a real kernel against a model endpoint
that counts what it bills, kills that kernel by SIGKILL while the third of its five model calls is in flight, starts a
new kernel, and executes the notebook again. Then the same notebook runs in another folder with nothing happening to
it. The first two kernels together must have been billed for what the third one was, and for the call in flight.

With both ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY`` set, that provider is asked instead. It shows no bill, so the
counts are the log's.
"""

from __future__ import annotations

import json as json_module
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_durable import clock
from jupyter_durable.demo import ledger
from jupyter_durable.demo.kernels import NotebookRun
from jupyter_durable.demo.report import Bill, Check, Report
from jupyter_durable.errors import UsageError

if TYPE_CHECKING:
    from jupyter_durable.demo.endpoint import Endpoint

NOTEBOOK = "01-resume-after-a-crash.ipynb"
KILLED_CALL = 3
"""The model call during which the kernel is killed, from 1."""

_LOOK = 0.25  # seconds between two looks at what a kernel is doing


class NotKilled(Exception):
    """The notebook ended before the call during which its kernel was to be killed."""


def find_notebook() -> Path:
    """The notebook of the demo: in a checkout the one in ``notebooks/``, else the copy inside the package.

    Raises:
        UsageError: neither is there.
    """
    package = Path(__file__).resolve().parents[1]
    for path in (package.parent / "notebooks" / NOTEBOOK, package / "demo" / NOTEBOOK):
        if path.is_file():
            return path
    raise UsageError(f"The notebook {NOTEBOOK} is missing from this installation; name one with --notebook.")


def run(*, json: bool = False, keep: Path | None = None, notebook: Path | None = None) -> Report:
    """Do the main job and print what happened.

    Args:
        json: print the report as JSON, and nothing else on stdout.
        keep: a folder to leave the notebook, its outputs and its log in; without it they are removed.
        notebook: another notebook of at least three model calls in one durable cell.

    Returns:
        The report; its ``ok`` says whether the numbers are right.

    Raises:
        UsageError: the demo's extra packages are not installed, ``keep`` is not empty, or there is no notebook.
        NotebookFailed: a cell raised.
        NotKilled: the notebook has fewer model calls.
    """
    source = notebook or find_notebook()
    if not source.is_file():
        raise UsageError(f"There is no notebook at {source}.")
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError(f"{keep} is not an empty folder; name one that is, or a new one.")

    def tell(text: str) -> None:
        print(text, file=sys.stderr if json else sys.stdout, flush=True)

    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jupyter-durable-demo-")))
        place = work / "run" if keep is None else keep.resolve()
        if os.environ.get("OPENAI_BASE_URL") and os.environ.get("OPENAI_API_KEY"):
            report = _with_provider(source, place, work / "control", tell)
        else:
            report = _with_own_endpoint(source, place, work / "control", tell)
        if keep is not None:
            report = Report(**{name: getattr(report, name) for name in report.__slots__} | {"kept": str(place)})
    print(json_module.dumps(report.as_json(), indent=2) if json else report.as_text(), flush=True)
    return report


def _copy(source: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(source, folder / source.name))


def _until(ready: Callable[[], bool], kernel: NotebookRun) -> None:
    """Wait for the moment to kill.

    Raises:
        NotebookFailed: a cell raised.
        NotKilled: the notebook came to its end first.
    """
    while not ready():
        if not kernel.running:
            kernel.check()
            raise NotKilled(f"The notebook ended before its model call number {KILLED_CALL}: nothing could be killed.")


def _with_own_endpoint(source: Path, place: Path, control: Path, tell: Callable[[str], None]) -> Report:
    """The job against the counting endpoint, whose bills decide."""
    from jupyter_durable.demo.endpoint import Endpoint

    began = clock.monotonic()
    path = _copy(source, place)
    with Endpoint() as endpoint:
        bill = endpoint.bill
        bill.hold(KILLED_CALL)
        environment = _environment(endpoint, place)
        tell(f"1. First kernel: executes {source.name}, and dies in the middle of model call {KILLED_CALL}.")
        with NotebookRun(path, environment) as kernel:
            _until(lambda: bill.wait_in_flight(KILLED_CALL, _LOOK) == "in_flight", kernel)
            kernel.kill()
            first_ending = kernel.wait()
        bill.wait_ended(KILLED_CALL, 10)
        before = bill.requests()
        bill.release()
        tell("2. Second kernel: executes the same notebook again.")
        with NotebookRun(path, environment) as kernel:
            kernel.wait()
        requests = bill.requests()
        url = endpoint.url
    with Endpoint() as endpoint:
        tell("3. For comparison: the same notebook in another folder, uninterrupted.")
        with NotebookRun(_copy(source, control), _environment(endpoint, control)) as kernel:
            kernel.wait()
        usual = endpoint.bill.requests()

    log, quiet = ledger.read(place), ledger.read(control)
    cut = [request for request in requests if request.state == "cut"]
    answered = [request for request in before if request.state == "completed"]
    total = Bill(len(requests), sum(request.tokens for request in requests))
    in_flight = Bill(len(cut), sum(request.tokens for request in cut))
    uninterrupted = Bill(len(usual), sum(request.tokens for request in usual))
    first, second = _of_kernels(log)
    asked_again = requests[KILLED_CALL].prompt if len(requests) > KILLED_CALL else "nothing"
    checks = (
        Check("the first kernel was killed", "died", first_ending),
        Check("one request was in flight when it was killed", 1, in_flight.requests),
        Check("every other request was billed once", uninterrupted.requests, (total - in_flight).requests),
        Check("every other token was billed once", uninterrupted.tokens, (total - in_flight).tokens),
        Check("every call that was answered came back from the log", len(answered), second.replayed),
        Check("only the rest was executed", len(usual) - len(answered), second.started),
        Check("the call in flight was asked again in the same words", requests[KILLED_CALL - 1].prompt, asked_again),
        Check("the log has one execution more, the second one complete", _one_more(quiet), (len(log), second.status)),
    )
    return Report(
        notebook=source.name,
        model=url,
        counted_by="endpoint",
        finished=first.finished,
        replayed=second.replayed,
        executed=second.started,
        total=total,
        in_flight=in_flight,
        uninterrupted=uninterrupted,
        saved=Bill(len(answered), sum(request.tokens for request in answered)),
        seconds=clock.monotonic() - began,
        checks=checks,
    )


def _of_kernels(log: list[ledger.Execution]) -> tuple[ledger.Execution, ledger.Execution]:
    """What the first kernel did, and how the second one resumed it; further cells of the same run come after."""
    first, second, *_ = [*log, ledger.NOTHING, ledger.NOTHING]
    return first, second


def _one_more(quiet: list[ledger.Execution]) -> tuple[int, str]:
    """How many executions there are when one is cut short and resumed, and how the second one ends."""
    return len(quiet) + 1, "completed"


def _environment(endpoint: Endpoint, folder: Path) -> dict[str, str]:
    """What a notebook needs to ask our endpoint, whatever model and proxy the user has set."""
    from jupyter_durable.demo.protocol import MODEL

    loopback = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    model = {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "loopback", "OPENAI_MODEL": MODEL}
    return {**_log_beside(folder), **model, **loopback}


def _log_beside(folder: Path) -> dict[str, str]:
    """Keep the demo out of a log that the user has set for everything."""
    return {"JUPYTER_DURABLE_LOG": str(folder / ".durable")}


def _with_provider(source: Path, place: Path, control: Path, tell: Callable[[str], None]) -> Report:
    """The job against the provider that the user has named; the log alone tells what happened."""
    url = os.environ["OPENAI_BASE_URL"]
    began = clock.monotonic()
    path = _copy(source, place)
    tell(f"OPENAI_BASE_URL and OPENAI_API_KEY are set: {url} is asked, and may bill for about eleven calls.")
    tell(f"1. First kernel: executes {source.name}, and dies in the middle of model call {KILLED_CALL}.")
    with NotebookRun(path, _log_beside(place)) as kernel:
        _until(lambda: ledger.in_flight(place, KILLED_CALL, _LOOK), kernel)
        kernel.kill()
        first_ending = kernel.wait()
    tell("2. Second kernel: executes the same notebook again.")
    with NotebookRun(path, _log_beside(place)) as kernel:
        kernel.wait()
    tell("3. For comparison: the same notebook in another folder, uninterrupted.")
    with NotebookRun(_copy(source, control), _log_beside(control)) as kernel:
        kernel.wait()

    log = ledger.read(place)
    first, second = _of_kernels(log)
    quiet = ledger.read(control)
    usual = (quiet or [ledger.NOTHING])[0]
    total = Bill(sum(each.started for each in log), sum(each.tokens for each in log))
    in_flight = Bill(first.started - first.finished, 0)
    checks = (
        Check("the first kernel was killed", "died", first_ending),
        Check("one call was in flight when it was killed", 1, in_flight.requests),
        Check("every other call was made once", usual.started, (total - in_flight).requests),
        Check("every call that had finished came back from the log", first.finished, second.replayed),
        Check("only the rest was executed", usual.started - first.finished, second.started),
        Check("the log has one execution more, the second one complete", _one_more(quiet), (len(log), second.status)),
    )
    return Report(
        notebook=source.name,
        model=url,
        counted_by="log",
        finished=first.finished,
        replayed=second.replayed,
        executed=second.started,
        total=total,
        in_flight=in_flight,
        uninterrupted=Bill(usual.started, usual.tokens),
        saved=Bill(first.finished, first.tokens),
        seconds=clock.monotonic() - began,
        checks=checks,
    )
