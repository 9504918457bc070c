"""The hooks of IPython around every cell: which one is durable, when its run begins, what of it runs, when it ends.

Kept light: an ordinary cell costs a look at its first line. What works on a durable cell is in `live`, imported when
the first one runs.
"""

from __future__ import annotations

import ast
import threading
from typing import TYPE_CHECKING, Any

from jupyter_durable.errors import DurableControl, DurableError, UsageError
from jupyter_durable.kernel import header as headers
from jupyter_durable.kernel.transform import blanked, first_error, is_misplaced, marked, parsed, without_mark

if TYPE_CHECKING:
    from jupyter_durable.kernel.live import Surroundings
    from jupyter_durable.kernel.repeating import Repeated
    from jupyter_durable.kernel.sampling import Sampler

COMMANDS = ("%durable", "%load_ext", "%reload_ext", "%unload_ext")
"""Cells that begin so are not durable even after ``%durable on``."""


class Opened:
    """A cell between its two hooks."""

    __slots__ = ("broken", "error", "info", "live", "planned")

    def __init__(self, info: Any) -> None:
        self.info = info
        self.live: Repeated | Sampler | None = None
        """Its durable run, if one was begun."""
        self.error: BaseException | None = None
        """Why none could be begun: the cell raises this instead of running."""
        self.broken: ast.Module | None = None
        """The statement that does not compile: it alone runs, to be reported by IPython as ever."""
        self.planned = False
        """It was only planned: nothing of it runs."""

    @property
    def decided(self) -> bool:
        """It is durable, and what runs of it is known."""
        return self.planned or self.live is not None or self.error is not None or self.broken is not None


class _OfThread(threading.local):
    """Cells of one thread: subshells of a kernel run theirs at the same time."""

    def __init__(self) -> None:
        self.stack: list[Opened] = []
        """Cells that have begun and not ended; an inner one belongs to a nested ``run_cell``."""
        self.pending: Opened | None = None
        """The cell whose tree comes next."""


class Hooks:
    """What IPython calls. Also its AST transformer: `visit`."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.all_cells = False
        """``%durable on``."""
        self.succeeded = True
        """How the last cell ended."""
        self._mine = _OfThread()
        self._surroundings: Surroundings | None = None

    @property
    def surroundings(self) -> Surroundings:
        """The notebook, its log and its pass; found out when first asked for."""
        if self._surroundings is None:
            from jupyter_durable.kernel.live import Surroundings

            self._surroundings = Surroundings(self)
        return self._surroundings

    # The hooks --------------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a durable cell of this thread is running."""
        return any(opened.live is not None for opened in self._mine.stack)

    def pre_run_cell(self, info: Any) -> None:
        """Begin the run of a durable cell. What goes wrong becomes an error of the cell: a hook's would be ignored."""
        opened = Opened(info)
        self._mine.stack.append(opened)
        self._mine.pending = opened
        try:
            self._open(opened)
        except BaseException as error:
            opened.error = error

    def _open(self, opened: Opened) -> None:
        if not (self.all_cells or "durable" in opened.info.raw_cell):
            return
        source = getattr(opened.info, "transformed_cell", None)
        if source is None:  # an IPython that does not tell it
            source = self.shell.transform_cell(opened.info.raw_cell)
        tree = parsed(source)
        if tree is None:
            return  # IPython reports it, and nothing runs
        text = marked(tree)
        if text is None and (not self.all_cells or opened.info.raw_cell.lstrip().startswith(COMMANDS)):
            return
        header = headers.parse(text or "")
        if header.flags.off:
            return
        if text is not None:
            tree = without_mark(tree)
        compiler = self.shell.compile
        flags = compiler.flags | (ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if self.shell.autoawait else 0)
        opened.broken = first_error(tree, "<cell>", flags)
        if opened.broken is None:
            from jupyter_durable.kernel.repeating import Repeated

            code = source if text is None else blanked(source)
            if header.flags.plan:
                from jupyter_durable.kernel.planned import show_plan_of_cell

                opened.planned = True
                show_plan_of_cell(self, opened.info, code, header)
                return
            if header.flags.sample:
                from jupyter_durable.kernel.sampling import Sampler

                opened.live = Sampler(self, opened.info, code, header)
                return
            opened.live = Repeated(self, opened.info, code, header, quiet=text is None)

    def visit(self, tree: ast.Module) -> ast.Module:
        """Decide what of a cell runs. Only looks: the statements stay as they are."""
        opened, self._mine.pending = self._mine.pending, None
        text = marked(tree)
        if opened is not None and opened.decided:
            if opened.error is not None:
                return refusal(opened.error)
            if opened.broken is not None:
                return opened.broken
            if opened.planned:
                return ast.Module(body=[], type_ignores=tree.type_ignores)
            tree = tree if text is None else without_mark(tree)
            return tree if opened.live is None else opened.live.tree(tree)
        if text is not None:
            return self._unbegun(tree, text)
        if is_misplaced(tree):
            return refusal(UsageError(MISPLACED))
        return tree

    def _unbegun(self, tree: ast.Module, text: str) -> ast.Module:
        try:
            off = headers.parse(text).flags.off
        except UsageError as error:
            return refusal(error)
        return without_mark(tree) if off else refusal(UsageError(UNBEGUN))

    def post_run_cell(self, result: Any) -> None:
        """End the run of a durable cell."""
        opened = self._closed(result)
        if opened is not None and opened.live is not None:
            opened.live.end(result)
        if result is not None:
            self.succeeded = bool(result.success)

    def _closed(self, result: Any) -> Opened | None:
        """Pair the hooks: which cell has ended."""
        stack = self._mine.stack
        self._mine.pending = None
        if not stack:
            return None  # the cell that loaded the extension
        for index in reversed(range(len(stack))):
            if result is not None and stack[index].info is result.info:
                opened = stack[index]
                del stack[index:]
                return opened
        # No result, or one that was made for an exception that got past IPython: it is the newest cell.
        if result is None or stack[-1].info.raw_cell == result.info.raw_cell:
            return stack.pop()
        return None


# Refusing -----------------------------------------------------------------------------------------------------------

MISPLACED = (
    "`%%durable` is not on the first line of the cell, so nothing of the cell was run. Put it above everything else, "
    "comments too."
)
UNBEGUN = (
    "This durable cell was about to run without its log (a silent execution, or another magic above `%%durable`), so "
    "it was not run at all. Put `%%durable` on the first line and run the cell in the ordinary way; `%%durable --off` "
    "runs it plainly."
)

_refused: dict[int, BaseException] = {}


def refusal(error: BaseException) -> ast.Module:
    """A cell that does nothing but raise an error; one that was raised on purpose is shown as a sentence."""
    key = id(error)
    _refused[key] = error
    if isinstance(error, DurableError | DurableControl):
        as_sentence(error)
    return ast.parse(f"raise __import__({__name__!r}, fromlist=['refused']).refused({key})")


def refused(key: int) -> BaseException:
    """The error behind a `refusal`."""
    return _refused.pop(key)


def as_sentence(error: BaseException) -> None:
    """Let IPython show an error by its message alone, without frames."""

    def render() -> list[str]:
        return [f"{type(error).__name__}: {error}"]

    error._render_traceback_ = render  # type: ignore[attr-defined]
