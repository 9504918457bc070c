"""Names what in glue code may answer differently on the next run: clocks, random numbers, the order of sets.

For messages only: the list is what people most often trip over, not proof of anything.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from jupyter_durable.source.canonical import parse
from jupyter_durable.source.names import path_of

_KNOWN = {
    "np": "numpy",
    "datetime": "datetime",
    "os": "os",
    "random": "random",
    "secrets": "secrets",
    "time": "time",
    "uuid": "uuid",
    "numpy": "numpy",
}
"""Names taken for these modules when neither the code nor the notebook says what they are."""

_ANY_OF = ("random.", "secrets.", "numpy.random.")
_HARMLESS = frozenset(
    {"random.seed", "random.setstate", "random.getstate", "numpy.random.seed", "secrets.compare_digest"}
)
_SEEDED = frozenset({"random.Random", "numpy.random.default_rng", "numpy.random.RandomState"})
"""Harmless if they are given a seed."""
_EXACT = frozenset(
    "uuid.uuid1 uuid.uuid4 time.time time.time_ns time.monotonic time.monotonic_ns time.perf_counter "
    "time.perf_counter_ns time.process_time time.localtime time.gmtime time.ctime time.strftime "
    "datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today datetime.now "
    "datetime.utcnow datetime.today date.today os.urandom os.getpid os.getrandom".split()
)
_BUILTIN = frozenset({"id", "hash", "input"})
_SHOWS_ORDER = frozenset({"list", "tuple", "enumerate", "iter", "zip", "map", "join"})
"""Functions that hand on the order of the set that they are given."""
_SET = "the order of a set"


def uses_nondeterminism(code: str | ast.AST, modules: Mapping[str, str] | None = None) -> list[str]:
    r"""Likely causes of a different answer, as a person would write them, in the order of the code.

    Args:
        code: a cell or its tree.
        modules: notebook names that stand for modules or their functions, such as ``{"rng": "random"}``.

    >>> uses_nondeterminism("import random as r\nif r.random() < 0.5: f(time.time())")
    ['random.random()', 'time.time()']
    >>> uses_nondeterminism("for x in {1, 2}: f(x)\nfor x in sorted({1, 2}): f(x)")
    ['the order of a set']
    """
    tree = parse(code)
    finder = _Finder({**_KNOWN, **(modules or {})})
    finder.visit(tree)
    return list(dict.fromkeys(finder.found))


class _Finder(ast.NodeVisitor):
    def __init__(self, aliases: dict[str, str]) -> None:
        self.aliases = aliases
        self.sets: set[str] = set()
        self.found: list[str] = []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self.aliases[alias.asname] = alias.name
            else:
                self.aliases[alias.name.split(".")[0]] = alias.name.split(".")[0]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Name):
                (self.sets.add if self._is_set(node.value) else self.sets.discard)(target.id)

    def visit_Call(self, node: ast.Call) -> None:
        cause = self._named(node.func)
        if cause is not None and not (cause in _SEEDED and node.args):
            self.found.append(cause + "()")
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if (name in _SHOWS_ORDER and any(self._is_set(each) for each in node.args)) or (
            name == "pop" and isinstance(node.func, ast.Attribute) and self._is_set(node.func.value)
        ):
            self.found.append(_SET)
        self.generic_visit(node)

    def _named(self, function: ast.expr) -> str | None:
        path = path_of(function)
        if path is None:
            return None
        root, _, rest = path.partition(".")
        if path in _BUILTIN and path not in self.aliases:
            return path
        full = self.aliases.get(root, root) + ("." + rest if rest else "")
        if full in _HARMLESS or not (full in _EXACT or full.startswith(_ANY_OF)):
            return None
        return full.removeprefix("datetime.") if full.count(".") == 2 and full.startswith("datetime.") else full

    def _iterated(self, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
        if self._is_set(node.iter):
            self.found.append(_SET)
        self.generic_visit(node)

    visit_For = visit_AsyncFor = visit_comprehension = _iterated

    def _is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name(id=name):
                return name in self.sets
            case ast.Call(func=ast.Name(id=name)):
                return name in ("set", "frozenset")
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
                return self._is_set(left) or self._is_set(right)
            case _:
                return False
