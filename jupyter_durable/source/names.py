"""Which global names code reads and binds, by following the order in which it runs.

Of two mistakes the smaller is chosen. A loop counts as entered, and ``a and (b := ...)`` as evaluated to its end:
``for q in qs: r = ask(q)`` and then ``r`` does not read an older ``r``; otherwise every second run of such a cell in
one kernel would see a changed input, its own.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Container, Iterable, Iterator
from typing import Any

from jupyter_durable.source.canonical import is_step_decorator, parse, version_of

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

_GIVEN = frozenset(dir(builtins)) | {"get_ipython", "display", "exit", "quit"}
"""Names that need no variable of the notebook."""

_INTERPOLATED = re.compile(r"\$(\w+)|\$?\{([^{}]+)\}")
"""``$name`` and ``{expression}`` in the text of a shell command or magic."""


def names_read(code: str | ast.AST, namespace: Container[str] = ()) -> set[str]:
    r"""Global names that code reads and has not certainly assigned before.

    A function that the code defines reads when it is used, not when it is defined. Of a function's own tree only
    the body counts: its decorators, defaults and annotations were read when it was made.

    Args:
        code: a cell, or the tree of a cell, function, lambda or class.
        namespace: the notebook's variables; names of builtins are left out unless they are among them.

    >>> sorted(names_read("total = 0\nfor x in xs:\n    total += len(x) + bonus"))
    ['bonus', 'xs']
    >>> sorted(names_read("def f(): return y\ny = 1\nf()"))
    []
    >>> sorted(names_read("input[0]", namespace={"input": ["my own"]}))
    ['input']
    """
    tree = parse(code)
    try:
        reads = _reads(tree)
    except RecursionError:  # a chain of hundreds of `elif`; whatever is loaded and never bound
        reads = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - names_bound(tree)
    return {name for name in reads if name in namespace or not (name in _GIVEN or _is_dunder(name))}


def names_bound(code: str | ast.AST) -> set[str]:
    r"""Names that code binds in its own scope, whether certainly or not.

    >>> sorted(names_bound("import a.b\nfor i in x: (y := i)\ndef f(): z = 1"))
    ['a', 'f', 'i', 'y']
    """
    tree = parse(code)
    return set(_bound([tree.body] if isinstance(tree, ast.Lambda) else getattr(tree, "body", [tree])))


def dotted_reads(code: str | ast.AST) -> set[str]:
    """Names with the attributes taken from them, as written; to find functions of modules.

    >>> sorted(dotted_reads("helpers.text.clean(x).y"))
    ['helpers.text', 'helpers.text.clean']
    """
    return {dotted for node in ast.walk(parse(code)) if isinstance(node, ast.Attribute) and (dotted := path_of(node))}


def path_of(node: ast.AST) -> str | None:
    """``a.b.c`` for such an expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else None


def local_names(function: FunctionNode) -> set[str]:
    """Names that are local to a function: its parameters and what its body binds, without ``global`` ones."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    declared = {name for node in _own(body) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    type_parameters = {each.name for each in getattr(function, "type_params", ())}
    return (parameters(function) | set(_bound(body)) | type_parameters) - declared


def parameters(function: FunctionNode) -> set[str]:
    """Names of all parameters."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {each.arg for each in every if each is not None}


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of one scope: not what lies inside functions, classes and lambdas."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*_FUNCTION, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    inside: set[int] = set()  # targets of comprehensions are their own scope's
    for node in _own(nodes):
        match node:
            case ast.comprehension(target=target):
                inside.update(id(each) for each in ast.walk(target))
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in inside:
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (alias.asname or alias.name.split(".")[0] for alias in aliases if alias.name != "*")
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name


def _reads(tree: ast.AST) -> set[str]:
    if isinstance(tree, _FUNCTION):
        return _free(tree)
    flow = _Flow()
    flow.visit(tree)
    flow.finish()
    return flow.reads


def _free(function: FunctionNode) -> set[str]:
    flow = _Flow(local_names(function))
    for node in [function.body] if isinstance(function, ast.Lambda) else function.body:
        flow.visit(node)
    return flow.reads


class _Flow(ast.NodeVisitor):
    """Walks one scope in the order of execution. ``assigned`` holds what is certainly assigned where it stands."""

    def __init__(self, local: set[str] | None = None) -> None:
        self.reads: set[str] = set()
        self.in_function = local is not None
        self.assigned: set[str] = set(local or ())
        self.ended = False  # the code at this place is not reached: after return, raise, break
        self.leaps: list[list[set[str]]] = []  # for each open loop, the states in which it is left or repeated
        self.later: dict[str, set[str]] = {}  # functions and classes not used yet -> what they will read
        self.methods: set[str] | None = None

    def read(self, name: str) -> None:
        if name not in self.assigned:
            self.reads.add(name)
        for inner in self.later.pop(name, ()):
            self.read(inner)

    def finish(self) -> None:
        """Read what the functions read that nobody has used; a later cell may."""
        for name in list(self.later):
            for inner in self.later.pop(name, ()):
                self.read(inner)

    def _each(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _paths(self, *paths: Iterable[ast.AST]) -> None:
        """Walk alternatives, each from here; afterwards only what all of them assign is assigned."""
        start, ends = set(self.assigned), []
        for path in paths:
            self.assigned, self.ended = set(start), False
            self._each(path)
            if not self.ended:
                ends.append(self.assigned)
        self._join(ends)

    def _join(self, ends: list[set[str]]) -> None:
        self.ended = not ends
        if ends:
            self.assigned = set.intersection(*ends)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.assigned.add(node.id)
            return
        self.read(node.id)
        if isinstance(node.ctx, ast.Del) and not self.in_function:
            self.assigned.discard(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._each([node.value, *node.targets])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read(node.target.id)
        self._each([node.value, node.target])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._each([node.annotation, node.value])
        if node.value is not None or not isinstance(node.target, ast.Name):
            self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._each([node.value, node.target])

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.assigned.update(_bound([node]))

    visit_ImportFrom = visit_Import

    def visit_TypeAlias(self, node: Any) -> None:  # Python 3.12; its value is evaluated when somebody asks
        self.assigned.add(node.name.id)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython"))):
                for text in (each.value for each in node.args if isinstance(each, ast.Constant)):
                    self._interpolated(str(text))

    def _interpolated(self, text: str) -> None:
        for name, expression in _INTERPOLATED.findall(text):
            try:
                self.visit(ast.parse(name or expression.strip(), mode="eval").body)
            except SyntaxError:
                continue  # a brace of the shell's own, such as `mv a.{txt,md}`

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self._paths([node.body], [node.orelse])

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._paths(node.body, node.orelse)

    def visit_Return(self, node: ast.Return | ast.Raise) -> None:
        self.generic_visit(node)
        self.ended = True

    visit_Raise = visit_Return

    def visit_Break(self, node: ast.Break | ast.Continue) -> None:  # noqa: ARG002 - the visitor's signature
        if self.leaps:
            self.leaps[-1].append(set(self.assigned))
        self.ended = True

    visit_Continue = visit_Break

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        self._loop(node.body, node.orelse, endless)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self._each([node.iter, node.target])
        self._loop(node.body, node.orelse, endless=False)

    visit_AsyncFor = visit_For

    def _loop(self, body: list[ast.stmt], orelse: list[ast.stmt], endless: bool) -> None:
        self.leaps.append([])
        self._each(body)
        leaps = self.leaps.pop()
        own_end = [] if self.ended or endless else [self.assigned]
        self._join(own_end + leaps)
        self._each(orelse)

    def visit_Try(self, node: Any) -> None:
        start = set(self.assigned)
        self._each([*node.body, *node.orelse])
        ends = [] if self.ended else [self.assigned]
        for handler in node.handlers:
            self.assigned, self.ended = set(start), False
            self._each([handler.type])
            self.assigned |= {handler.name} if handler.name else set()
            self._each(handler.body)
            if not self.ended:
                ends.append(self.assigned - ({handler.name} - start if handler.name else set()))
        self._join(ends)
        ended, self.ended = self.ended, False
        self._each(node.finalbody)
        self.ended = self.ended or ended

    visit_TryStar = visit_Try

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        open_end = not any(
            isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and not case.guard
            for case in node.cases
        )
        self._paths(*([case] for case in node.cases), *([()] if open_end else []))

    def visit_match_case(self, node: ast.match_case) -> None:
        self.visit(node.pattern)
        self.assigned.update(_bound([node.pattern]))
        self._each([node.guard, *node.body])

    def visit_ListComp(self, node: Any) -> None:
        first = node.generators[0]
        self.visit(first.iter)
        before = set(self.assigned)
        targets = {name for each in node.generators for name in _bound([each.target])}
        for each in node.generators:
            if each is not first:
                self.visit(each.iter)
            self.assigned.update(_bound([each.target]))
            self._each([each.target, *each.ifs])
        self._each([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self.assigned = before | (self.assigned - targets)  # names bound by `:=` belong to the outer scope

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._signature(node)
        for name in _free(node):
            self.read(name)

    def _signature(self, node: FunctionNode) -> None:
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        generic = {each.name for each in getattr(node, "type_params", ())}
        before, self.assigned = self.assigned, self.assigned | generic
        self._each([*given.defaults, *given.kw_defaults])
        self._each(each.annotation for each in every if each is not None)
        self._each([getattr(node, "returns", None)])
        self.assigned = before

    def _decorators(self, decorators: list[ast.expr]) -> None:
        self._each(version_of(each) if is_step_decorator(each) else each for each in decorators)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._decorators(node.decorator_list)
        self._signature(node)
        reads = _free(node)
        if self.methods is not None:
            self.methods |= reads
        elif self.in_function:
            for name in reads:
                self.read(name)
        else:
            self.later[node.name] = reads
        self.assigned.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._decorators(node.decorator_list)
        before, outer = set(self.assigned), self.methods
        self.assigned |= {each.name for each in getattr(node, "type_params", ())}
        self._each([*node.bases, *node.keywords])
        self.methods = set()
        self._each(node.body)
        reads, self.methods, self.assigned = self.methods - {node.name}, outer, before
        self.assigned.add(node.name)
        if outer is not None:
            outer |= reads
        elif self.in_function:
            for name in reads:
                self.read(name)
        else:
            self.later[node.name] = reads
