"""Which names code may rebind or change in place, and which it calls.

Read from the tree alone. Aliases are not followed: ``a = b; a.append(1)`` changes ``a``. A call of a method counts as
a possible change unless the method is known to leave lists, dicts and strings alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from jupyter_durable.source.canonical import parse
from jupyter_durable.source.names import FunctionNode, local_names, names_bound, parameters

_COPIES = frozenset(
    "casefold capitalize center copy count decode encode endswith expandtabs find format format_map index isalnum "
    "isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust "
    "lower lstrip partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split "
    "splitlines startswith strip swapcase title translate upper zfill hex difference intersection isdisjoint "
    "issubset issuperset symmetric_difference union model_dump model_dump_json model_copy".split()
)
"""Methods that change nothing and answer something new."""

_LOOKS = frozenset({"get", "keys", "values", "items"})
"""Methods that change nothing, but hand out what is inside."""

_CHANGES = frozenset(
    "append appendleft extend extendleft insert remove pop popleft popitem clear update setdefault add discard sort "
    "reverse rotate difference_update intersection_update symmetric_difference_update".split()
)
"""Methods of lists, dicts, sets and deques that change them."""

_CHANGERS = frozenset(
    "shuffle heapify heappush heappop heapreplace heappushpop insort insort_left insort_right setattr delattr".split()
)
"""Functions that change their first argument."""


def names_called(code: str | ast.AST) -> set[str]:
    """Global names that code calls directly.

    >>> sorted(names_called("a(b, c.d())"))
    ['a']
    """
    return _walked(code).called


def names_mutated(code: str | ast.AST, certain: bool = False) -> set[str]:
    r"""Global names that code may change in place or rebind; for a function also names of its closure.

    That a cell itself assigns a name (``x = 1``) does not count: it does so again on every run.

    Args:
        code: a cell, or the tree of a cell, function, lambda or class.
        certain: only what plainly changes something: stores, ``del``, ``x += 1``, ``global x``, and methods such as
            ``append``; not any method of anything.

    >>> sorted(names_mutated("a[0] = 1; b.c += 2; d.append(3); e.get(4); f.run(5)"))
    ['a', 'b', 'd', 'f']
    >>> sorted(names_mutated("def g():\n    global n\n    n = f.run()", certain=True))
    ['n']
    """
    walked = _walked(code)
    return set(walked.certain if certain else walked.certain | walked.possible)


def params_mutated(function: FunctionNode) -> set[str]:
    """Parameters that the body of a function may change in place. Advice only, as aliases are not followed.

    >>> tree = ast.parse("def f(a, b, c): a.append(b); c = 1").body[0]
    >>> sorted(params_mutated(tree))
    ['a']
    """
    return _walked(function).in_place & parameters(function)


def _walked(code: str | ast.AST) -> _Changes:
    tree = parse(code)
    walker = _Changes()
    try:
        walker.visit(tree)
    except RecursionError:  # a chain of hundreds of `elif`; anything may be changed
        walker.possible.update(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return walker


class _Changes(ast.NodeVisitor):
    """Walks code with the local names of the functions around each place; those of the outermost are ``scopes[0]``."""

    def __init__(self) -> None:
        self.scopes: list[set[str]] = []
        self.declared: list[set[str]] = []  # names that each function declares global or nonlocal
        self.called: set[str] = set()
        self.certain: set[str] = set()
        self.possible: set[str] = set()
        self.in_place: set[str] = set()  # the same for local names of the outermost function

    def _owner(self, name: str) -> int:
        """Index of the scope that a name belongs to; -1 if it is global."""
        return next((i for i in reversed(range(len(self.scopes))) if name in self.scopes[i]), -1)

    def _changed(self, name: str | None, certain: bool = True) -> None:
        if name is None:
            return
        owner = self._owner(name)
        if owner == -1:
            (self.certain if certain else self.possible).add(name)
        elif owner == 0:
            self.in_place.add(name)

    def visit_Name(self, node: ast.Name) -> None:
        rebinds = any(node.id in declared for declared in self.declared[-1:])
        deleted = isinstance(node.ctx, ast.Del) and not self.scopes
        if deleted or (rebinds and not isinstance(node.ctx, ast.Load)):
            self._changed(node.id)

    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._changed(_root(node.value))
        self.generic_visit(node)

    visit_Subscript = visit_Attribute

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._changed(node.target.id)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Name) and self._owner(function.id) == -1:
            self.called.add(function.id)
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _CHANGERS and node.args:
            self._changed(_root(node.args[0]))
        if isinstance(function, ast.Attribute) and name not in _COPIES | _LOOKS:
            self._changed(_root(function.value), certain=name in _CHANGES)
        self.generic_visit(node)

    def _function(self, node: FunctionNode) -> None:
        outside: list[ast.AST] = [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
        self._each([*outside, *getattr(node, "decorator_list", [])])
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        self.scopes.append(local_names(node))
        self.declared.append(_declared(body))
        self._each(body)
        self.scopes.pop()
        self.declared.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._each([*node.decorator_list, *node.bases, *node.keywords])
        own = names_bound(node)
        for each in node.body:
            # Methods do not see the names of their class.
            hidden = not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            if hidden:
                self.scopes.append(own)
                self.declared.append(set())
            self.visit(each)
            if hidden:
                self.scopes.pop()
                self.declared.pop()

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        targets = {
            each.id
            for generator in node.generators
            for each in ast.walk(generator.target)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        self.scopes.append(targets)
        self.generic_visit(node)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def _each(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)


def _declared(body: list[ast.stmt] | list[ast.expr]) -> set[str]:
    """Names declared ``global`` or ``nonlocal`` by a function itself."""
    found: set[str] = set()
    stack: list[ast.AST] = [*body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            stack.extend(ast.iter_child_nodes(node))
    return found


def _root(node: ast.AST) -> str | None:
    """The name whose value an expression is part of: ``a`` for ``a.b[0].get(1).c``."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _COPIES:
            node = node.func.value
        else:
            return None
    return node.id
