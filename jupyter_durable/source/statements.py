"""The statements of a cell, one by one, as they are compared with those of an earlier version of it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jupyter_durable.source.canonical import canonical, parse
from jupyter_durable.source.changes import names_mutated
from jupyter_durable.source.names import names_bound

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_NOT_ONCE = (
    ast.For, ast.AsyncFor, ast.While, ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.TryStar, ast.Match, ast.ListComp,
    ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
"""What lies inside of these runs any number of times."""
_LATER = (*_DEFINITIONS, ast.Lambda)
"""What lies inside of these runs when somebody calls it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement at the top level of a cell, or several that share a line."""

    first: int
    last: int
    """Its lines, counted as the kernel does: from 1, empty lines in front of the cell left out."""
    text: str
    """Its canonical text: equal for equal code."""
    defines: bool
    """It does nothing but define functions, classes or names of modules."""
    binds: frozenset[str]
    """Global names that it binds or changes."""
    names: frozenset[str]
    """Names that it mentions anywhere."""
    attributes: frozenset[str]
    """Attributes that it mentions anywhere."""
    called: frozenset[str] = frozenset()
    """Names and attributes that it mentions in no other way than by calling them: it hands them to nobody."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """Those of them whose every call is made exactly once -> number of calls."""
    unawaited: frozenset[str] = frozenset()
    """Names and attributes with a call outside of any ``await``."""


def statements(source: str) -> list[Statement]:
    r"""The statements of a cell, in their order.

    Args:
        source: the cell as the user wrote it, or as IPython has transformed it.

    Raises:
        SyntaxError: it is not Python, not even after IPython's own syntax was taken out.

    >>> [(s.first, s.defines, sorted(s.names)) for s in statements("%%durable x\ndef f(): ...\ny = f(1)")]
    [(2, True, []), (3, False, ['f', 'y'])]
    """
    kept = _with_lines_kept(source)
    if kept is None:
        return [_statement(list(getattr(parse(source), "body", ())), 1, source.count("\n") + 1)]
    groups: list[list[ast.stmt]] = []
    end = 0
    for node in getattr(parse(kept), "body", ()):
        # What a magic such as `%time` was given counts its lines anew: it is a part of the magic's statement.
        if groups and (_first(node) <= end or _is_cell_magic(groups[-1][0])):
            groups[-1].append(node)
        else:
            groups.append([node])
        end = max(end, node.end_lineno or node.lineno)
    return [_statement(group, _first(group[0]), group[0].end_lineno or group[0].lineno) for group in groups]


def _with_lines_kept(source: str) -> str | None:
    """The source with its header as a comment; ``None`` if it is the text of another cell magic."""
    lines = source.splitlines()
    while lines and not lines[0].strip():
        del lines[0]
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("%%durable", "'%%durable", '"%%durable')):
            lines[number] = "#"
        elif line.lstrip().startswith("%%"):
            return None
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return "\n".join(lines)


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _is_cell_magic(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "run_cell_magic"


def _statement(nodes: list[ast.stmt], first: int, last: int) -> Statement:
    module = ast.Module(body=nodes, type_ignores=[])
    every = [node for each in nodes for node in ast.walk(each)]
    names = Counter(node.id for node in every if isinstance(node, ast.Name))
    attributes = Counter(node.attr for node in every if isinstance(node, ast.Attribute))
    calls: Counter[str] = Counter()
    once: Counter[str] = Counter()
    unawaited: set[str] = set()
    for name, is_once, awaited in _calls(nodes):
        calls[name] += 1
        once[name] += is_once
        if not awaited:
            unawaited.add(name)
    mentioned = names + attributes
    return Statement(
        first,
        last,
        canonical(module),
        all(isinstance(node, _DEFINITIONS) for node in nodes),
        frozenset(names_bound(module) | names_mutated(module)),
        frozenset(names),
        frozenset(attributes),
        frozenset(name for name, count in calls.items() if count == mentioned[name]),
        {name: count for name, count in once.items() if count == mentioned[name]},
        frozenset(unawaited),
    )


def _calls(nodes: list[ast.stmt]) -> Iterator[tuple[str, bool, bool]]:
    """Calls by name, whether they are made exactly once, and whether they lie inside of an ``await``."""
    stack: list[tuple[ast.AST, bool, bool]] = [(node, True, False) for node in nodes]
    while stack:
        node, once, awaited = stack.pop()
        if isinstance(node, _LATER):
            continue
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, once, awaited
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr, once, awaited
        once = once and not isinstance(node, _NOT_ONCE)
        awaited = awaited or isinstance(node, ast.Await)
        stack.extend((child, once, awaited) for child in ast.iter_child_nodes(node))
