"""Digests the code of a function that is an argument, equal in every process and Python version.

The source decides, in the form that ``ast.unparse`` gives it: formatting and comments are no change. Bytecode differs
between Python versions and is never looked at. `evidence` may put a better rule in place with `use`.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

CodeText = Callable[[types.FunctionType], "str | None"]
"""Gives a text that stands for the code of a function alone (no defaults, no closure), or ``None``."""

# By address, with the code object kept alive: equal code may come from sources that are written differently.
_known: dict[int, tuple[types.CodeType, str | None]] = {}
_KNOWN_LIMIT = 2048


def source_text(function: types.FunctionType) -> str | None:
    """The canonical source of a function, or ``None`` if there is none (made by ``exec``, source file gone).

    >>> def f(x):   # a comment
    ...     return  x+1
    >>> source_text(lambda x : x+1) in (None, 'lambda x: x + 1')
    True
    """
    code = function.__code__
    if id(code) in _known:
        return _known[id(code)][1]
    if len(_known) > _KNOWN_LIMIT:
        _known.clear()
    text = _lambda_text(code) if code.co_name == "<lambda>" else _def_text(function)
    _known[id(code)] = code, text
    return text


_code_text: CodeText = source_text


def use(code_text: CodeText) -> CodeText:
    """Put another rule for the code of functions in force, and return the one before."""
    global _code_text
    before, _code_text = _code_text, code_text
    return before


def code_text(function: types.FunctionType) -> str | None:
    """The text that stands for the code of a function, by the rule in force."""
    return _code_text(function)


def _def_text(function: types.FunctionType) -> str | None:
    try:
        source = textwrap.dedent(inspect.getsource(function.__code__))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if not tree.body or not isinstance(tree.body[0], ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    return ast.unparse(_bare(tree.body[0]))


def _bare(node: Any) -> Any:
    """Without its docstring: it is words, not code."""
    body = node.body
    if len(body) > 1 and ast.get_docstring(node, clean=False) is not None:
        node.body = body[1:]
    return node


def _lambda_text(code: types.CodeType) -> str | None:
    """Two lambdas may stand on one line; the columns in the code object tell which one it is."""
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return None
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    found = [one for one in ast.walk(tree) if isinstance(one, ast.Lambda) and _begins(one, code.co_firstlineno)]
    if len(found) > 1:
        places = [(row, column) for row, _, column, _ in code.co_positions() if row is not None and column is not None]
        inside = [one for one in found if places and _holds(one.body, places)]
        # A lambda in a lambda holds the same place as the outer one; the arguments must fit too.
        found = [one for one in inside if _names(one) == code.co_varnames[: code.co_argcount]] or inside
    texts = {ast.unparse(one) for one in found}
    return texts.pop() if len(texts) == 1 else None


def _begins(node: ast.Lambda, line: int) -> bool:
    return line in (node.lineno, node.body.lineno)


def _holds(body: ast.expr, places: list[tuple[int, int]]) -> bool:
    start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    real = [place for place in places if place[1] > 0 or place[0] > body.lineno]
    return all(start <= place < end for place in real) and bool(real)


def _names(node: ast.Lambda) -> tuple[str, ...]:
    return tuple(one.arg for one in [*node.args.posonlyargs, *node.args.args])


def is_module_level(function: types.FunctionType) -> bool:
    """Whether the name alone identifies the function: it stands in an importable module."""
    module: Any = sys.modules.get(function.__module__)
    return module is not None and getattr(module, function.__qualname__, None) is function
