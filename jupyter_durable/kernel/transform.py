"""How a durable cell stays an ordinary cell: its header becomes a *mark*, a string that does nothing. Pure.

IPython runs the input transformer of this file wherever it reads code, also to see whether a cell is complete. The
header line becomes one line, so that all other lines keep their numbers. It becomes a string and not a comment, because
a string is still there in the syntax tree: code that was marked and is about to run although no run was begun for it
(a silent execution, ``%%time`` above the header) is recognised there and refused. The tree that runs has no mark.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator

from jupyter_durable.kernel.header import MAGIC, find


def transform(lines: list[str]) -> list[str]:
    r"""The input transformer: mark a durable cell, leave any other as it is.

    >>> transform(["%%durable report\n", "x = 1\n"])
    ["'%%durable report'\n", 'x = 1\n']
    >>> transform(["x = 1\n"])
    ['x = 1\n']
    """
    found = find(lines)
    if found is None:
        return lines
    index, text = found
    line = lines[index]
    if line.startswith(MAGIC) and sys._getframe(1).f_code.co_name == "check_complete":
        return lines  # a terminal asks whether the cell is whole: IPython knows that for what begins with %%
    end = line[len(line.rstrip("\r\n")) :]
    body = lines[index + 1 :]
    first = next((number for number, each in enumerate(body) if each.strip()), 0)
    if body and body[first].startswith("%%"):
        # Another cell magic below the header: IPython looks for one in the first line only.
        from IPython.core.inputtransformer2 import cell_magic

        body = [*body[:first], *cell_magic(body[first:])]
    return [*lines[:index], mark(text) + end, *body]


def mark(text: str) -> str:
    """The line that stands for a header.

    >>> mark("report --fresh")
    "'%%durable report --fresh'"
    """
    return repr(f"{MAGIC} {text}".strip())


def marked(tree: ast.AST) -> str | None:
    r"""What the header of a marked cell says; ``None`` for a tree without a mark.

    >>> marked(ast.parse("'%%durable report'\nx = 1"))
    'report'
    >>> marked(ast.parse("x = 1")) is None
    True
    """
    body = getattr(tree, "body", None)
    if not isinstance(body, list) or not body:
        return None
    match body[0]:
        case ast.Expr(value=ast.Constant(value=str(text))) if text == MAGIC or text.startswith(MAGIC + " "):
            return text.removeprefix(MAGIC).strip()
    return None


def without_mark(tree: ast.Module) -> ast.Module:
    """The tree that is to run."""
    return ast.Module(body=tree.body[1:], type_ignores=tree.type_ignores)


def blanked(source: str) -> str:
    r"""The code of a marked cell with an empty line in the place of the mark.

    >>> blanked("#| label: x\n'%%durable report'\nx = 1")
    '#| label: x\n\nx = 1'
    """
    lines = source.splitlines(keepends=True)
    index = next(i for i, line in enumerate(lines) if line.startswith(("'" + MAGIC, '"' + MAGIC)))
    lines[index] = "\n"
    return "".join(lines)


def is_misplaced(tree: ast.AST) -> bool:
    r"""Whether a cell has ``%%durable`` below other code, where IPython takes it for a line magic named ``%durable``.

    >>> is_misplaced(ast.parse("x = 1\nget_ipython().run_line_magic('%durable', 'report')"))
    True
    """
    for statement in getattr(tree, "body", ()):
        match statement:
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(attr="run_line_magic"), args=[ast.Constant(value=name), *_])
            ):
                if name == MAGIC[1:]:
                    return True
    return False


def parsed(source: str) -> ast.Module | None:
    """The tree of a cell; ``None`` if it is not Python. Warns of nothing: IPython, who parses it next, will."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except SyntaxError:
            return None


def awaits(source: str) -> bool:
    r"""Whether the own code of a cell awaits, outside of the functions in it.

    >>> awaits("x = 1\nawait f(x)"), awaits("async def f():\n    await g()")
    (True, False)
    """
    waiting: list[ast.AST] = [tree] if (tree := parsed(source)) is not None else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) or getattr(node, "is_async", False):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return False


def first_error(tree: ast.Module, filename: str, flags: int) -> ast.Module | None:
    """The statement that does not compile, as a tree of its own; ``None`` if all do.

    IPython compiles a cell statement by statement, each when its turn comes. A durable cell must not begin to pay
    for steps above a statement that can never run.

    Args:
        tree: the cell.
        filename: of the cell, for messages.
        flags: of the compiler.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in _statements(tree):
            try:
                compile(part, filename, "exec", flags, dont_inherit=True)
            except SyntaxError:
                return part
    return None


def _statements(tree: ast.Module) -> Iterator[ast.Module]:
    for statement in tree.body:
        yield ast.Module(body=[statement], type_ignores=[])
