"""One durable cell while it runs: from what IPython tells of a cell to an execution, and to its end."""

from __future__ import annotations

import ast
import asyncio
import atexit
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from contextvars import Token
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from jupyter_durable.engine import outputs
from jupyter_durable.engine.context import CURRENT, Frame, current
from jupyter_durable.engine.flags import Flags
from jupyter_durable.engine.opening import begin
from jupyter_durable.engine.options import RunSpec, run_id
from jupyter_durable.engine.stats import StepRow
from jupyter_durable.errors import DurableError, LogError, RunCancelled, RunSealed, UsageError
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.kernel.cell import as_sentence
from jupyter_durable.kernel.display import Summary
from jupyter_durable.kernel.header import Header
from jupyter_durable.kernel.identity import (
    CellFacts,
    Notebook,
    cell_ids,
    other_owner,
    refuse_two_owners,
    run_name,
)
from jupyter_durable.kernel.interrupt import Interrupts
from jupyter_durable.kernel.passes import Passes, attended
from jupyter_durable.kernel.tracebacks import ErrorHandler
from jupyter_durable.kernel.transform import awaits
from jupyter_durable.kernel.waking import ParkedCell, Waker
from jupyter_durable.log import open_log
from jupyter_durable.log.base import EventLog, ExecutionRecord
from jupyter_durable.log.renames import read as read_renames
from jupyter_durable.notebooks import Known
from jupyter_durable.running import log_directory
from jupyter_durable.source import cell_digest, names_bound, names_mutated, names_read, uses_nondeterminism
from jupyter_durable.spending import spent_elsewhere

if TYPE_CHECKING:
    from jupyter_durable.kernel.cell import Hooks


@dataclass(frozen=True, slots=True)
class Ran:
    """What is kept of an execution after its end."""

    name: str
    branch: str
    rows: list[StepRow]
    replayed: int
    """Steps that came back."""
    stopped: DurableError | RunCancelled | None
    """What stopped it before its end."""


class Surroundings:
    """What the durable cells of one kernel share: the notebook, the log, the pass."""

    def __init__(self, hooks: Hooks) -> None:
        self.shell = hooks.shell
        self.notebook = Notebook(hooks.shell)
        self.passes = Passes()
        self.errors = ErrorHandler(hooks.shell)
        self._logs: dict[str, EventLog] = {}
        self._codes: Counter[str] = Counter()
        self.notebook_id = ""
        """Durable id of the notebook, once a durable cell has run."""
        self.last_run = ""
        """Id of the run that ran last in this kernel."""
        self.budget = ""
        """The most that all runs of the notebook may spend; empty: no limit."""
        self.waker = Waker(self)
        self.ran: dict[str, Ran] = {}
        """By run: its last execution in this kernel, for *why*."""
        atexit.register(lambda: self.passes.close(hooks.succeeded, self.records))

    @property
    def directory(self) -> str:
        """Where the log is."""
        return log_directory(self.notebook.path)

    @property
    def log_as_it_is(self) -> EventLog:
        """The same; where there is none yet, none is made, and an empty one stands for it."""
        where = self.directory
        return self.log if where.startswith("memory:") or Path(where).is_dir() else open_log("memory:")

    @property
    def log(self) -> EventLog:
        """The log beside the notebook."""
        where = self.directory
        gone = where in self._logs and ":" not in where and not (Path(where) / "format.json").exists()
        if gone or where not in self._logs:  # a folder that was deleted to start over is made anew
            self._logs[where] = open_log(where)
        return self._logs[where]

    def records(self) -> list[ExecutionRecord]:
        """All executions of the log; opens it, so it is called only where there is one."""
        return self.log.executions()

    @property
    def attended(self) -> bool:
        """Whether a person sits in front of the kernel."""
        return attended(self.shell, self.notebook.path)

    def identify(self, cell: CellFacts, flags: Flags, log: EventLog | None = None) -> tuple[str, str, list[str]]:
        """Notebook id and run name of a cell, and what to tell the user about it.

        Args:
            cell: the cell.
            flags: its flags.
            log: for a cell that is not about to run, where to look; nothing is kept of it then.

        Raises:
            UsageError: another cell of the notebook gives its run the same name.
        """
        looking, notices = log is not None, []
        log = self.log if log is None else log

        where = Path(getattr(log, "directory", self.directory)).absolute()
        notebook, before = self.notebook.id(
            cell,
            lambda: [Known(record.started, record.header) for record in log.executions()],
            lambda: read_renames(where),
            where.parent,
        )
        if before:
            notices.append(_found_again(before, self.notebook.path, where))
        facts = self.notebook.facts()
        name = cell.name
        if name and not flags.shared:
            run = run_id(notebook, name)
            other = other_owner(cell, facts, [record.header for record in log.executions(run)])
            if other:
                refuse_two_owners(cell, other)
        elif not name:
            name = run_name(cell, facts, self._automatic(cell, notebook, log))
            if not (cell.id or cell.handle or self.attended or looking):
                # The same code twice in one pass is two runs; a person who runs it twice means the same one.
                self._codes[name] += 1
                name = name if self._codes[name] == 1 else f"{name}-{self._codes[name]}"
        if not looking:
            self.notebook.note_run(cell, name)
            self.notebook_id = notebook
        return notebook, name, notices

    def _automatic(self, cell: CellFacts, notebook: str, log: EventLog) -> list[ExecutionHeader]:
        """What the log knows that may be this cell's run."""
        if not (cell.id or cell.handle):
            return []
        own = log.executions(run_id(notebook, f"cell-{cell.id[:8]}")) if cell.id else []
        records = own or [record for record in log.executions() if record.header.notebook == notebook]
        return [record.header for record in records]

    def spec(
        self, cell: CellFacts, text: str, code: str, flags: Flags, log: EventLog | None = None
    ) -> tuple[RunSpec, list[str]]:
        """What the run of a cell is asked to be, and what to tell the user about it.

        Args:
            cell: the cell.
            text: it as the user wrote it.
            code: it as Python, with an empty line in the place of the header.
            flags: its flags.
            log: see `identify`.
        """
        notebook, name, notices = self.identify(cell, flags, log)
        run = run_id("" if flags.shared else notebook, name)
        looked = self.log if log is None else log
        pass_id = ""
        if not self.attended:
            pass_id = self.passes.of(self.directory, lambda: looked.executions(run), keep=log is None)
        namespace = self.shell.user_ns
        return RunSpec(
            name=name,
            notebook=notebook,
            path=self.notebook.path,
            cell=cell.id,
            source=text,
            code=cell.code,
            namespace=namespace,
            reads=frozenset(names_read(code, namespace)),
            binds=frozenset(names_bound(code) | names_mutated(code)),
            causes=tuple(uses_nondeterminism(code, _modules(namespace))),
            flags=flags,
            pass_id=pass_id,
            notebook_budget=self.budget,
            spent_elsewhere=lambda branch: spent_elsewhere(self.directory, notebook, branch),
            patience=60.0 if self.attended else 0.0,
            capture_outputs=True,
        ), notices


class LiveCell:
    """A durable cell between its two hooks."""

    def __init__(
        self, hooks: Hooks, info: Any, source: str, header: Header, *, quiet: bool, spec: RunSpec | None = None
    ) -> None:
        """Begin its run; the cell is about to execute in this very context.

        Args:
            hooks: the shell's hooks.
            info: what IPython tells of the cell.
            source: its code as Python, with an empty line in the place of the header.
            header: what the header says.
            quiet: the cell is durable only because all are: it shows no summary if it calls no step.
            spec: what its run is asked to be, if that is known already.

        Raises:
            DurableError: the run cannot begin; nothing of the cell may run.
            KeyboardInterrupt: the stop button was pressed before it had begun.
        """
        outer = current()
        if outer is not None and not outer.execution.ended:
            raise UsageError(
                f"A durable cell was begun inside of run `{outer.execution.run_name}`: a run cannot hold another one. "
                f"Call the inner part as a step."
            )
        self._shell = shell = hooks.shell
        self._source = info.raw_cell
        self._around = hooks.surroundings
        self._interrupts = Interrupts(type(shell).run_code.__code__)
        self._interrupts.install()
        self._undo = ExitStack()
        try:
            made = self._spec(self._around, info, source, header) if spec is None else (spec, [])
            self.execution, notices = begin(made[0], self._around.log), made[1]
            try:
                self._open(self._around, notices, quiet=quiet)
            except BaseException as error:
                self._undo.close()
                self.execution.end(error)
                raise
        except BaseException:
            self._interrupts.restore()
            raise

    def _spec(self, around: Surroundings, info: Any, source: str, header: Header) -> tuple[RunSpec, list[str]]:
        try:
            loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        around.notebook.note_deleted((getattr(info, "cell_meta", None) or {}).get("deletedCells", ()))
        cell = CellFacts(*cell_ids(info.cell_id), header.name, cell_digest(source))
        spec, notices = around.spec(cell, info.raw_cell, source, header.flags)
        spec.loop = loop
        spec.awaits = awaits(source)
        shell = self._shell
        transformed = getattr(info, "transformed_cell", None) or shell.transform_cell(info.raw_cell)
        spec.file = shell.compile.get_code_name(info.raw_cell, transformed, shell.execution_count)
        return spec, notices

    def _open(self, around: Surroundings, notices: list[str], *, quiet: bool) -> None:
        execution = self.execution
        own = execution.replay.own
        around.last_run = execution.header.run
        around.waker.forget(execution.header.run)
        self.summary = Summary(
            self._shell, execution, notices, again=own.completed_branch() and around.attended, quiet=quiet
        )
        around.errors.begin(execution)
        self._undo.callback(around.errors.end, execution)
        outputs.install(self._shell)
        self._undo.callback(outputs.uninstall)
        self.summary.start()
        self._undo.callback(self.summary.stop)
        task = asyncio.current_task() if execution.loop is not None else None
        of_cell = task is not None and getattr(task.get_coro(), "__name__", "") == "run_cell_async"
        self._undo.callback(_leave, CURRENT.set(Frame(execution, execution.root)))
        self._interrupts.follow(execution, task if of_cell else None)

    def tree(self, tree: ast.Module) -> ast.Module:
        """What runs of the cell: all of it, once."""
        return tree

    def end(self, result: Any) -> None:
        """End the run: record how, move it into the database, show the last summary. Raises nothing."""
        self._interrupts.close()
        error: BaseException | None = None
        if result is not None:
            error = self._around.errors.original(self.execution, result.error_before_exec or result.error_in_exec)
        self._end(error, lambda failure: self._fail(result, failure))

    def close(self) -> None:
        """The same in the middle of a cell whose body has come to its end: what must still be said is raised."""
        self._interrupts.close()
        failures: list[BaseException] = []
        self._end(None, failures.append)
        for failure in failures:
            as_sentence(failure)
            raise failure

    def _end(self, error: BaseException | None, fail: Callable[[BaseException], None]) -> None:
        execution = self.execution
        self._undo.close()
        try:
            failure = self._record_end(error)
            if failure is not None:
                fail(failure)
            if not execution.draining and not isinstance(failure, LogError):
                try:
                    execution.log.fold()
                except LogError as refused:
                    execution.stats.notices.append(str(refused))
            header = execution.header
            self._around.ran[header.run] = Ran(
                header.name,
                header.branch_name,
                list(execution.stats.rows),
                execution.stats.replayed + execution.stats.adopted,
                execution.reason,
            )
            self.summary.finish()
            if execution.parked is not None:
                attended = self._around.attended
                self._around.waker.note(ParkedCell(header.run, self._source, header.cell, attended))
        finally:
            self._interrupts.restore()

    def _record_end(self, error: BaseException | None) -> BaseException | None:
        """Record how the run ended; return what must still be said although the cell came to its end."""
        execution = self.execution
        try:
            execution.end(error)
        except LogError as refused:
            return refused
        if execution.forgotten is not None:
            return execution.forgotten
        if error is None and execution.sealed:
            if execution.outcome is not None and execution.outcome.status == "continued":
                return None
            return (
                execution.parked
                or execution.reason
                or RunSealed(
                    f"{execution.place_of_run()} had stopped, and the cell went on over it: {execution.sealed} If your "
                    f"code caught the error with `except`, let it through.",
                    **execution.where,
                )
            )
        return None

    def _fail(self, result: Any, failure: BaseException) -> None:
        """Let a cell that came to its end count as failed, so that Run All stops."""
        as_sentence(failure)
        if result is not None:
            result.error_in_exec = failure
        self._shell.showtraceback((type(failure), failure, None))


def _found_again(before: str, now: str, log: Path) -> str:
    if Path(before).name != Path(now).name or Path(before).parent == Path(now).parent:
        text = f"the notebook was found again under its new name; it was {Path(before).name} before"
    else:
        text = f"the notebook was found again after it was moved; it was in {Path(before).parent} before"
    return text if log.parent == Path(now).parent else f"{text}, and its log is still {log}"


def _leave(token: Token[Frame | None]) -> None:
    with suppress(ValueError):  # a cell with `await` ran in a context of its own, which ended with it
        CURRENT.reset(token)


def _modules(namespace: dict[str, Any]) -> dict[str, str]:
    return {name: value.__name__ for name, value in list(namespace.items()) if isinstance(value, ModuleType)}
