"""Turns code into a canonical text: two pieces of code with equal text do the same.

Own walk over the tree and not ``ast.dump``, whose output gains and loses fields from one Python version to the next.
"""

from __future__ import annotations

import ast
import base64
import functools
import hashlib
import warnings
from collections.abc import Iterator

_SILENT = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields that say nothing about what the code does."""

_FILE = "<jupyter_durable>"
warnings.filterwarnings("ignore", module=_FILE)  # about escapes such as "\\d"; the cell's own compilation says it once

_STEP = frozenset({"step", "durable.step", "jupyter_durable.step"})

_TRANSPARENT = frozenset({"time", "timeit", "capture", "prun"})
"""Magics whose argument is Python code, that is read as such."""


def text_digest(text: str, size: int = 22) -> str:
    """Digest of a text, as ``size`` characters of URL-safe base64 (22 are 128 bits).

    >>> text_digest("x", 12)
    'HlPCPducFhRo'
    """
    raw = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=-(-size * 6 // 8)).digest()
    return base64.urlsafe_b64encode(raw).decode("ascii")[:size]


def cell_digest(source: str) -> str:
    """Digest of a cell: 22 characters, equal for all versions of Python and for every formatting of the code.

    Raises:
        SyntaxError: the cell is not Python, not even after IPython's own syntax was taken out.

    >>> cell_digest("x = f( 1 )  # first") == cell_digest("x = f(1)")
    True
    >>> cell_digest("x = f(1)") == cell_digest("x = f(2)")
    False
    """
    return text_digest(canonical(parse(source)))


def parse(source: str | ast.AST) -> ast.AST:
    """The tree of a cell, of a piece of Python, or what already is a tree.

    ``!cmd``, ``%magic`` and ``name?`` become the calls that IPython makes of them, a first line ``%%durable``
    is ignored, and code given to ``%time``, ``%%capture`` and their like is read as code.

    Raises:
        SyntaxError: the text is not Python, not even after IPython's own syntax was taken out.
    """
    return _parsed(source) if isinstance(source, str) else source


def parse_python(text: str) -> ast.Module:
    """``ast.parse`` that warns of nothing, not even where warnings are errors."""
    try:
        return ast.parse(text, _FILE)
    except SystemError:
        # Python 3.11 counts depth for the whole process: a finalizer that formats a traceback in the middle, and parses
        # a line for that, upsets it. The next time it counts from the start.
        return ast.parse(text, _FILE)
    except SyntaxError:
        with warnings.catch_warnings():  # only here, as it is not safe among threads
            warnings.simplefilter("ignore")
            return ast.parse(text, _FILE)


@functools.lru_cache(maxsize=64)
def _parsed(source: str) -> ast.Module:
    try:
        tree = parse_python(source)
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager  # costs 0.1 s where IPython is not loaded yet

        tree = parse_python(TransformerManager().transform_cell(_without_magic_line(source)))
    body: list[ast.stmt] = []
    for statement in tree.body:
        body.extend(_opened(statement))
    tree.body = body
    return tree


def _without_magic_line(source: str) -> str:
    lines = source.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.lstrip().startswith("%%durable"):
            lines[number] = "\n"
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return "".join(lines).lstrip("\n")


def _opened(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statement, or the code that it hands to a magic such as ``%time`` as text."""
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")), attr=magic),
                args=[ast.Constant(value=str(name)), *_, ast.Constant(value=str(code))] as arguments,
            ) as call
        ) if magic in ("run_line_magic", "run_cell_magic") and name in _TRANSPARENT:
            try:
                inner = _parsed(code)
            except SyntaxError:  # options before the code, as in `%timeit -n 3 f()`
                yield statement
                return
            bare = ast.Call(func=call.func, args=arguments[:-1], keywords=[])
            yield ast.copy_location(ast.Expr(value=ast.copy_location(bare, statement)), statement)
            yield from inner.body
        case _:
            yield statement


def canonical(code: str | ast.AST) -> str:
    r"""The canonical text of code: field names and values, without positions, contexts and comments.

    Decorators ``step``, ``step(...)``, ``durable.step(...)`` are left out, except their ``version=``: how often a
    step is tried again is no change of what it does.

    >>> canonical("x=1")
    "Module(body=[Assign(targets=[Name(id='x',),],value=Constant(value=1,),),],)"
    >>> canonical("@step(retries=3)\ndef f(): ...") == canonical("def f():  # plain\n    ...")
    True
    >>> canonical("@step(version=2)\ndef f(): ...") == canonical("def f(): ...")
    False
    """
    out: list[str] = []
    stack: list[str | ast.AST] = [parse(code)]  # a stack of our own: long sums nest deeply
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
        else:
            pieces = list(_pieces(item))
            pieces.reverse()
            stack.extend(pieces)
    return "".join(out)


def _pieces(node: ast.AST) -> Iterator[str | ast.AST]:
    yield type(node).__name__ + "("
    for field in node._fields:
        value = getattr(node, field, None)
        if field in _SILENT:
            continue
        if isinstance(node, ast.Constant):
            yield from (field, "=", _atom(value), ",")
            continue
        if isinstance(value, list):
            value = _items(node, field, value)
        if value is None or value == []:  # a field that some versions do not have is empty in the others
            continue
        if field == "format_spec" and isinstance(value, ast.JoinedStr) and not _text_parts(value.values):
            continue  # f"{x:}" is f"{x}"
        yield field + "="
        if isinstance(value, list):
            yield "["
            for each in value:
                yield each if isinstance(each, ast.AST) else _atom(each)
                yield ","
            yield "]"
        else:
            yield value if isinstance(value, ast.AST) else _atom(value)
        yield ","
    yield ")"


def _items(node: ast.AST, field: str, values: list[ast.AST]) -> list[ast.AST]:
    if field == "decorator_list":
        return [kept for each in values if (kept := _decorator(each)) is not None]
    if isinstance(node, ast.JoinedStr):
        return _text_parts(values)
    return values


def _text_parts(values: list[ast.AST] | list[ast.expr]) -> list[ast.AST]:
    """Parts of an f-string with neighbouring texts joined; versions cut them differently."""
    parts: list[ast.AST] = []
    for value in values:
        last = parts[-1] if parts else None
        if isinstance(value, ast.Constant) and isinstance(last, ast.Constant):
            parts[-1] = ast.Constant(value=str(last.value) + str(value.value))
        elif not (isinstance(value, ast.Constant) and value.value == ""):
            parts.append(value)
    return parts


def is_step_decorator(node: ast.AST) -> bool:
    """Whether a decorator reads ``step``, ``step(...)``, ``durable.step`` and so on."""
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return f"{target.value.id}.{target.attr}" in _STEP
    return isinstance(target, ast.Name) and target.id in _STEP


def version_of(node: ast.AST) -> ast.expr | None:
    """The ``version=`` of a step decorator."""
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return next((keyword.value for keyword in keywords if keyword.arg == "version"), None)


def _decorator(node: ast.AST) -> ast.AST | None:
    if not is_step_decorator(node):
        return node
    version = version_of(node)
    return None if version is None else ast.keyword(arg="version", value=version)


def _atom(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 64:
        return hex(value)  # decimal text of huge numbers is refused
    return ascii(value)  # not repr: which characters are printable depends on the version's Unicode tables
