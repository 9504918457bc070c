"""A cell that goes on anew: after ``durable.continue_as_new`` its body is executed again, in the same execution of it.

IPython executes the statements of a cell one after the other in `run_ast_nodes`. While a durable cell runs, that method
is ours: when the branch has ended to go on anew, it executes the same statements again, on the branch after it. So the
cell is compiled, shown and interrupted as ever, whatever it is made of.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from jupyter_durable.kernel.cell import as_sentence
from jupyter_durable.kernel.header import Header
from jupyter_durable.kernel.live import LiveCell

if TYPE_CHECKING:
    from jupyter_durable.kernel.cell import Hooks

_running: dict[int, Repeated] = {}
"""Id of what IPython tells of a cell -> the cell, while it runs; with subshells, several."""


class Repeated:
    """A durable cell between its two hooks, on one branch after the other."""

    def __init__(self, hooks: Hooks, info: Any, source: str, header: Header, *, quiet: bool) -> None:
        """Begin its run; arguments as of `LiveCell`."""
        self._hooks, self._info, self._source, self._header, self._quiet = hooks, info, source, header, quiet
        self._live: LiveCell | None = LiveCell(hooks, info, source, header, quiet=quiet)
        _running[id(info)] = self
        _take_over(hooks.shell)

    def tree(self, tree: ast.Module) -> ast.Module:
        """What runs of the cell: all of it."""
        return tree

    def end(self, result: Any) -> None:
        """The cell has ended. Raises nothing."""
        _running.pop(id(self._info), None)
        if not _running:
            _give_back(self._hooks.shell)
        left = self.goes_on()
        live, self._live = self._live, None
        if live is not None:
            if left:  # a shell that executes cells in a way of its own
                live.execution.stats.notices.append("the branch has handed its state on: run the cell again to go on")
            live.end(result)

    def goes_on(self) -> bool:
        """Whether the branch has ended, to go on anew."""
        execution = None if self._live is None else self._live.execution
        return execution is not None and execution.continued is not None and not execution.interrupted

    def next(self) -> None:
        """End the branch, and begin the one after it.

        Raises:
            DurableError: that cannot be done; the cell ends.
            KeyboardInterrupt: the stop button was pressed in between.
        """
        live, self._live = self._live, None
        assert live is not None
        live.close()
        spec = live.execution.spec
        flags = replace(spec.flags, branch="")  # it named the first one
        spec = msgspec.structs.replace(spec, after=live.execution.header.branch, flags=flags)
        self._live = LiveCell(self._hooks, self._info, self._source, self._header, quiet=self._quiet, spec=spec)
        self._live.summary.take_place_of(live.summary)


def _take_over(shell: Any) -> None:
    """Execute the statements of durable cells as often as they go on anew."""
    execute = shell.run_ast_nodes
    if hasattr(execute, "durable_before"):
        return

    async def run_ast_nodes(nodelist: list[ast.AST], *args: Any, **kwargs: Any) -> bool:
        result = kwargs.get("result")
        cell = _running.get(id(getattr(result, "info", None)))
        while True:
            failed = bool(await execute(list(nodelist), *args, **kwargs))
            if result is None or cell is None or not cell.goes_on():
                return failed
            result.error_in_exec = None
            try:
                cell.next()
            except BaseException as error:
                as_sentence(error)
                result.error_in_exec = error
                shell.showtraceback((type(error), error, None))
                return True

    run_ast_nodes.durable_before = vars(shell).get("run_ast_nodes")  # type: ignore[attr-defined]
    shell.run_ast_nodes = run_ast_nodes


def _give_back(shell: Any) -> None:
    """Leave the shell as it was, unless somebody else has taken the method over since."""
    ours = vars(shell).get("run_ast_nodes")
    if not hasattr(ours, "durable_before"):
        return
    if ours.durable_before is None:
        del shell.run_ast_nodes
    else:
        shell.run_ast_nodes = ours.durable_before
