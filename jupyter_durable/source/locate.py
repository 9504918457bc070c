"""Finds the tree of a function or class in the text that it was made from, be it a file or a notebook cell.

Not ``inspect.getsource``: that cuts lambdas out of their line as text, reads the wrapped function instead of its
wrapper, and knows no classes of notebooks.
"""

from __future__ import annotations

import ast
import linecache
from collections import OrderedDict
from types import CodeType

from jupyter_durable.source.canonical import parse_python
from jupyter_durable.source.names import FunctionNode

_NO_FILE = frozenset({"<string>", "<stdin>", "<unknown>"})
"""Code from ``exec``; Python 3.13 keeps the text of ``-c`` under the first name, which is another text."""

_MOST = 256

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Fields that hold statements; only there do functions and classes stand."""


class _Index:
    """The functions of one text by first line, and its classes by qualified name."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.functions: dict[int, list[FunctionNode]] = {}
        self.classes: dict[str, list[ast.ClassDef]] = {}
        self._lambdas: dict[int, list[FunctionNode]] | None = None
        try:
            self._tree = parse_python("".join(lines))
        except (SyntaxError, ValueError):  # not Python, or not the text that the code was made from
            self._tree = ast.Module([], [])
        stack: list[tuple[ast.AST, str]] = [(self._tree, "")]
        while stack:
            node, path = stack.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions.setdefault(first_line(node), []).append(node)
                path += node.name + ".<locals>."
            elif isinstance(node, ast.ClassDef):
                self.classes.setdefault(path + node.name, []).append(node)
                path += node.name + "."
            for field in _BLOCKS:
                stack.extend((child, path) for child in getattr(node, field, ()) if isinstance(child, ast.AST))

    @property
    def lambdas(self) -> dict[int, list[FunctionNode]]:
        """Lambdas by line. Found when first asked for, as they may hide in any expression."""
        if self._lambdas is None:
            self._lambdas = {}
            for node in ast.walk(self._tree):
                if isinstance(node, ast.Lambda):
                    self._lambdas.setdefault(node.lineno, []).append(node)
        return self._lambdas


_indexes: OrderedDict[str, _Index] = OrderedDict()


def first_line(node: FunctionNode) -> int:
    """The line that the compiler calls the first one: the first decorator's, if there is one."""
    decorators = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else node.lineno


def function_tree(code: CodeType) -> FunctionNode | None:
    """The tree of the function that was compiled to ``code``; ``None`` if its source is not to be had.

    >>> def area(r): return 3 * r * r
    >>> tree = function_tree(area.__code__)
    >>> tree is None or tree.name
    'area'
    """
    index = _index(code.co_filename)
    if index is None:
        return None
    if code.co_name == "<lambda>":
        found = index.lambdas.get(code.co_firstlineno, [])
    else:
        named = index.functions.get(code.co_firstlineno, [])
        found = [node for node in named if getattr(node, "name", "") == code.co_name]
    return found[0] if len(found) == 1 else _by_position(found, code)


def class_tree(filename: str, qualname: str, line: int) -> ast.ClassDef | None:
    """The tree of the class ``qualname`` in a text, around ``line``."""
    index = _index(filename)
    found = index.classes.get(qualname, []) if index else []
    return next((node for node in found if first_line_of_class(node) <= line <= (node.end_lineno or 0)), None)


def first_line_of_class(node: ast.ClassDef) -> int:
    """The line of the first decorator, or of ``class``."""
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno


def _index(filename: str) -> _Index | None:
    if filename in _NO_FILE:
        return None
    entry = linecache.cache.get(filename)
    if entry is not None and len(entry) > 1 and entry[1] is not None:  # a real file; it may have been edited
        linecache.checkcache(filename)
    lines = linecache.getlines(filename)
    if not lines:
        return None
    index = _indexes.get(filename)
    if index is None or index.lines is not lines:
        index = _indexes[filename] = _Index(lines)
        while len(_indexes) > _MOST:
            _indexes.popitem(last=False)
    return index


def _by_position(found: list[FunctionNode], code: CodeType) -> FunctionNode | None:
    """Of several lambdas on one line, the smallest that holds the most of the code's instructions."""
    places = [
        ((line, column), (end, end_column))
        for line, end, column, end_column in code.co_positions()
        if line and end and column is not None and end_column is not None and end_column > 0
    ]
    best: FunctionNode | None = None
    score = (0, 0, 0)
    for node in found:
        body = node.body if isinstance(node, ast.Lambda) else node.body[-1]
        start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
        held = sum(start <= first and last <= end for first, last in places)
        size = (held, start[0] - end[0], start[1] - end[1])
        if held and (best is None or size > score):
            best, score = node, size
    return best
