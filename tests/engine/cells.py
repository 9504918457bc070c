"""A kernel in miniature: cells with source, over the real engine and a log in memory.

Each `Kernel` has a namespace of its own, as a new process has; setup cells run plainly, durable cells as runs. (Real
kernels are in ``tests/kernel``.)
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import itertools
import linecache
import textwrap
from typing import Any

from jupyter_durable import durable, step
from jupyter_durable.engine.context import CURRENT, Frame
from jupyter_durable.engine.flags import Flags
from jupyter_durable.engine.opening import begin
from jupyter_durable.engine.options import RunSpec
from jupyter_durable.errors import DurableControl
from jupyter_durable.source import cell_digest, names_bound, names_mutated, names_read, uses_nondeterminism
from tests.engine.harness import Died, MortalLog, Result, World

_number = itertools.count()


class Kernel:
    """One process' worth of notebook."""

    def __init__(self, log: MortalLog, world: World, setup: str = "") -> None:
        self.log = log
        self.namespace: dict[str, Any] = {
            "__name__": "__main__",
            "step": step,
            "durable": durable,
            "asyncio": asyncio,
            "world": world,
        }
        self.plain(setup)

    def plain(self, source: str) -> None:
        """Run an ordinary cell."""
        exec(self._compile(textwrap.dedent(source)), self.namespace)

    def durable(self, source: str, die_after: int | None = None, pass_id: str = "", **flags: Any) -> Result:
        """Run a durable cell as the run ``p``; what it raises is in the result, its last expression its value."""
        source = textwrap.dedent(source)
        spec = RunSpec(
            name="p",
            code=cell_digest(source),
            source=source,
            namespace=self.namespace,
            reads=frozenset(names_read(source)),
            binds=frozenset(names_bound(source) | names_mutated(source)),
            causes=tuple(uses_nondeterminism(source)),
            flags=Flags(**flags),
            pass_id=pass_id,
        )

        async def main() -> Result:
            result = Result()
            spec.loop = asyncio.get_running_loop()
            self.log.left, self.log.appended = die_after, 0
            execution = None
            try:
                execution = result.execution = begin(spec, self.log)
                CURRENT.set(Frame(execution, execution.root))
                result.value = await self._run(source)
            except Died:
                result.died = True
            except (Exception, DurableControl, BaseExceptionGroup) as error:
                result.error = error
            finally:
                try:
                    if execution is not None:
                        execution.end(result.error)
                except Died:
                    result.died = True
                self.log.left = None
                result.events = self.log.appended
                if execution is not None:
                    execution.writer.close()
            return result

        return asyncio.run(main())

    async def _run(self, source: str) -> Any:
        tree = ast.parse(source)
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            tree.body[-1] = ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value)
        self.namespace["_"] = None
        code = self._compile(source, ast.fix_missing_locations(tree))
        made = eval(code, self.namespace)
        if inspect.iscoroutine(made):
            await made
        return self.namespace["_"]

    def _compile(self, source: str, tree: ast.Module | None = None) -> Any:
        filename = f"<cell {next(_number)}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        return compile(tree if tree is not None else source, filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
