"""What source says: digests that only code changes, and the names that code reads, binds and changes."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable import source
from jupyter_durable.source import (
    canonical,
    cell_digest,
    names_bound,
    names_called,
    names_mutated,
    names_read,
    params_mutated,
    uses_nondeterminism,
)

ROOT = Path(__file__).resolve().parents[1]

PIECES = [
    "x = f(1, *a, k=2, **b)",
    "total += sum(i * i for i in xs if i % 2) - -1",
    'print(f"{x!r:>{width}} of {y=} {z:}" "and more")',
    "with open(p) as f, g() as (a, b): data = f.read()",
    "async def ask(q: str, /, *, n=3) -> list[int]:\n    return [await one(q) async for _ in many(n)]",
    "class A(B, metaclass=M):\n    '''Words.'''\n    x: int = 1\n    def f(self): return self.x",
    "match cmd:\n    case {'go': [d, *rest], **other} if d: pass\n    case A(x=1) | None: pass\n    case _: y = 2",
    "try:\n    f()\nexcept* (E, F) as e:\n    raise G from e\nfinally:\n    del x[0], y.z",
    "while (n := next(it)) is not None:\n    if n > 3: break\n    continue\nelse:\n    z = lambda *a, k=1: (yield)",
    "def g():\n    global n\n    n = 1e10j + 0x1F + True + ... + b'\\xff'\n    assert n, 'not \\u20ac \\U0001fae9'",
    "@step(retries=3)\n@other(1)\ndef h(): ...",
    "from . import a as b; import c.d",
    "v = await w",
]


def digests_of(cells: list[str]) -> list[str]:
    return [cell_digest(cell) for cell in cells]


# Digests


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4))
def test_formatting_never_changes_a_digest(pieces):
    text = "\n".join(pieces)

    assert cell_digest(ast.unparse(ast.parse(text))) == cell_digest(text)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4), st.data())
def test_comments_and_blank_lines_never_change_a_digest(pieces, data):
    comment = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=9)
    noisy = "\n".join(f"{piece}  # {data.draw(comment)}\n\n    # {data.draw(comment)}" for piece in pieces)

    assert cell_digest(noisy) == cell_digest("\n".join(pieces))


@given(st.sampled_from(PIECES), st.sampled_from(PIECES))
def test_different_code_has_different_digests(one, other):
    assert (cell_digest(one) == cell_digest(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 'a'", "x = b'a'"),
        ("x = None", "x = ..."),
        ("f(a, b)", "f(b, a)"),
        ("f(*a)", "f(a)"),
        ("{**a}", "{None: a}"),
        ("a - b", "a + b"),
        ("a < b", "a > b"),
        ("def f(a, b): pass", "def f(a, *, b): pass"),
        ("def f(a, b): pass", "def f(a, /, b): pass"),
        ("x: int", "x: str"),
        ("import a", "import a as a2"),
        ("from a import b", "from .a import b"),
        ("f'{x!r}'", "f'{x!s}'"),
        ("f'{x:>3}'", "f'{x}'"),
        ("async def f(): pass", "def f(): pass"),
        ("[x for x in y]", "(x for x in y)"),
        ("'''a'''", "'''b'''"),
        ("global x", "global y"),
        ("x[1:2]", "x[1:]"),
        ("x[:1]", "x[1:]"),
        ("@cache\ndef f(): ...", "def f(): ..."),
    ],
)
def test_a_change_of_the_code_changes_the_digest(one, other):
    assert cell_digest(one) != cell_digest(other)


def test_a_digest_is_22_characters_that_can_stand_in_a_file_name():
    digest = cell_digest("x = 1")

    assert len(digest) == 22
    assert digest.replace("-", "").replace("_", "").isalnum()


def test_digests_of_released_versions_stay_what_they_were():
    # Old histories name cells by it: if this fails, the canonical text has changed, and every cell counts as edited.
    assert cell_digest("\n".join(PIECES)) == "k5RsO3a1sXi2n4qCRcv338"


@pytest.mark.parametrize(
    "decorator", ["step", "step(retries=3, timeout='9s')", "durable.step", "jupyter_durable.step()"]
)
def test_options_of_a_step_are_not_its_code(decorator):
    assert canonical(f"@{decorator}\ndef f(): return 1") == canonical("def f(): return 1")


def test_the_version_of_a_step_is_its_code():
    plain, one, two = (
        canonical(f"@step({v})\ndef f(): ...") for v in ("retries=1", "version=1", "version=2, retries=5")
    )

    assert len({plain, one, two}) == 3


def test_syntax_of_ipython_is_code_too():
    cell = "files = !ls {folder}\n%matplotlib inline\nname?\nx = 1"

    assert cell_digest(cell) == cell_digest(cell.replace("x = 1", "x  =  1  # one"))
    assert cell_digest(cell) != cell_digest(cell.replace("ls", "rm"))


def test_the_line_of_the_durable_magic_is_not_code():
    assert cell_digest("%%durable name --fresh\nx = 1") == cell_digest("# %%durable\nx = 1") == cell_digest("x = 1")


def test_code_given_to_a_timing_magic_is_read_as_code():
    assert cell_digest("%%time\nx = f( y )  # slow") == cell_digest("%%time\nx = f(y)")
    assert cell_digest("%%time\nx = f(y)") != cell_digest("x = f(y)")
    assert names_read("%time x = f(y)") == {"f", "y"}


def test_a_cell_that_is_not_python_is_a_syntax_error():
    with pytest.raises(SyntaxError):
        cell_digest("def def def")


def test_reading_code_warns_of_nothing_even_where_warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert len(cell_digest(r"x = '\d'")) == 22


def test_deeply_nested_code_is_read():
    deep = "if a: x = 1\n" + "elif b: y.f()\n" * 400 + " + ".join("x" * 400)

    assert len(cell_digest(deep)) == 22
    assert names_read(deep) >= {"a", "b", "y"}
    assert "y" in names_mutated(deep)


def other_pythons() -> list[str]:
    """Other interpreters on this machine; pyenv's are found although they are not on the path."""
    found = []
    for minor in (11, 12, 13, 14):
        places = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
        python = str(places[0]) if places else shutil.which(f"python3.{minor}")
        works = python and not subprocess.run([python, "-V"], capture_output=True, check=False).returncode
        if python and works and minor != sys.version_info[1]:  # pyenv's shims fail for versions not chosen
            found.append(python)
    return found


@pytest.mark.parametrize("python", other_pythons() or [pytest.param("", marks=pytest.mark.skip("no other Python"))])
def test_every_python_gives_the_same_digests_and_names(python):
    library = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("jupyter_durable/*/*.py"))[:30]]
    cells = [*PIECES, *library]
    program = """
        import json, sys
        from jupyter_durable.source import cell_digest, names_read, names_mutated, uses_nondeterminism
        assert "msgspec" not in sys.modules and "IPython" not in sys.modules
        print(json.dumps([
            [cell_digest(c), sorted(names_read(c)), sorted(names_mutated(c)), uses_nondeterminism(c)]
            for c in json.load(sys.stdin)
        ]))
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}

    done = subprocess.run(
        [python, "-c", dedent(program)],
        input=json.dumps(cells),
        env=environment,
        text=True,
        capture_output=True,
        check=True,
    )

    assert json.loads(done.stdout) == [
        [cell_digest(c), sorted(names_read(c)), sorted(names_mutated(c)), uses_nondeterminism(c)] for c in cells
    ]


# Names


@pytest.mark.parametrize(
    ("cell", "reads"),
    [
        ("x = 1\ny = x + z", {"z"}),
        ("x += 1", {"x"}),
        ("x: int = y", {"y"}),
        ("x: A", {"A"}),
        ("del x", {"x"}),
        ("x = 1\ndel x\nx", {"x"}),
        ("if a: x = 1\nx", {"a", "x"}),
        ("if a: x = 1\nelse: x = 2\nx", {"a"}),
        ("if a: x = 1\nelse: raise E\nx", {"a", "E"}),
        ("x = 1 if a else y", {"a", "y"}),
        ("for i in xs: r = i\nr, i", {"xs"}),
        ("for i in xs:\n    best = max(best, i)", {"xs", "best"}),
        ("while True:\n    if c: break\n    x = 1\nx", {"c", "x"}),
        ("while True:\n    x = 1\n    if c: break\nx", {"c"}),
        ("while (s := f()) != 'done': seen.append(s)\ns", {"f", "seen"}),
        ("if a and (m := f(a)): m", {"a", "f"}),
        ("try: a = f()\nexcept E: a = g()\na", {"f", "E", "g"}),
        ("try: a = f()\nexcept E: pass\na", {"f", "E", "a"}),
        ("try: a = f()\nexcept E as e: raise g(e)\na", {"f", "E", "g"}),
        ("try: f()\nexcept E as e: pass\ne", {"f", "E", "e"}),
        ("with f(q) as (a, b): a, b, c", {"f", "q", "c"}),
        ("import os.path as p, sys\np, sys, os", {"os"}),
        ("match x:\n    case [a, *b]: a, b\n    case {'k': v, **r}: v, r\n    case C(n): n", {"x", "C"}),
        ("match x:\n    case 1: y = 1\n    case _: y = 2\ny", {"x"}),
        ("match x:\n    case 1: y = 1\ny", {"x", "y"}),
        ("[a + b for a in xs if c]\na", {"b", "xs", "c", "a"}),
        ("[(last := a) for a in xs]\nlast", {"xs"}),
        ("{k: v for k in ks for v in vs[k]}", {"ks", "vs"}),
        ("x = [x for x in x]", {"x"}),
        ("f'{a} {b!r:{c}}'", {"a", "b", "c"}),
        ("g = lambda a, b=d: a + b + e", {"d", "e"}),
        ("def f(a: A = d) -> R: return a + g\n", {"A", "d", "R", "g"}),
        ("def f(): return y\ny = 1\nf()", set()),
        ("def f(): return y\nf()\ny = 1", {"y"}),
        ("def f(): return g()\ndef g(): return f() + z\nf()", {"z"}),
        ("def f():\n    def g(): return a + b\n    a = 1\n    return g", {"b"}),
        ("def f():\n    global n\n    n += 1", {"n"}),
        ("def f():\n    global n\n    n = 1\n    return n", set()),
        ("class A(B):\n    x = y\n    def f(self): return x + z", {"B", "y", "x", "z"}),
        ("class A:\n    x = 1\n    y = x\n    def f(self): return A()", set()),
        ("@deco(k)\ndef f(): ...", {"deco", "k"}),
        ("@step(retries=N)\ndef f(): ...", set()),
        ("@step(version=V)\ndef f(): ...", {"V"}),
        ("await ask(q)", {"ask", "q"}),
        ("async for x in y: x\nasync with z as w: w", {"y", "z"}),
        ("print(len(x))", {"x"}),
        ("!python train.py --lr {lr * 2} $data", {"lr", "data"}),
        ("a.b = c[d]", {"a", "c", "d"}),
        ("__name__", set()),
    ],
)
def test_a_cell_reads_what_it_has_not_certainly_assigned(cell, reads):
    assert names_read(cell) == reads


def test_builtins_count_only_where_the_notebook_has_its_own():
    assert names_read("f(input, id)", namespace={"input": "my text"}) == {"f", "input"}


def test_of_a_function_only_the_body_reads():
    tree = ast.parse("@deco\ndef f(a: A = d, *rest):\n    return a + helper(rest) + f(1)").body[0]

    assert names_read(tree) == {"helper", "f"}


def test_type_parameters_are_no_globals():
    if sys.version_info < (3, 12):
        pytest.skip("Python 3.12 brought them")

    assert names_read("def f[T](x: T) -> T: return g(x)\nclass A[S](B[S]): ...\ntype L[U] = list[U]") == {"g", "B"}


def test_names_that_a_cell_binds_are_found_however_it_binds_them():
    cell = """
        import a.b, c as d
        from e import f, g as h
        for i, (j, *k) in x: (m := 1)
        with n as o: p: int = 1
        def q(): r = 1
        class s: t = 1
        [u for u in x if (v := u)]
        try: ...
        except E as w: ...
        match x:
            case {"k": y, **z}: ...
    """

    assert names_bound(dedent(cell)) == set("a d f h i j k m o p q s v w y z".split())


def test_direct_calls_are_found():
    assert names_called("def f(g): return g(h(1))\nx.y(z())\nf(k=map(w, v))") == {"h", "z", "f", "map"}


@pytest.mark.parametrize(
    ("cell", "changes"),
    [
        ("x[0] = 1", {"x"}),
        ("x.a.b[1].c = 1", {"x"}),
        ("x += [1]", {"x"}),
        ("del x[0], y.a, z", {"x", "y", "z"}),
        ("x.append(1); x.sort()", {"x"}),
        ("x.get('a').append(1)", {"x"}),
        ("x.copy().append(1); x.split().pop()", set()),
        ("x.get(1); x.keys(); x.items(); ' '.join(x); x.index(2); x.format(3)", set()),
        ("x.run()", {"x"}),
        ("x = 1; y = [2]; for_ = x", set()),
        ("for x[0] in y: pass", {"x"}),
        ("with f() as x.a: pass", {"x"}),
        ("random.shuffle(deck); heapq.heappush(heap, 1); setattr(o, 'a', 1)", {"random", "heapq", "deck", "heap", "o"}),
        ("def f(a):\n    a[0] = 1\n    b = []\n    b.append(c)\n    d.append(1)", {"d"}),
        ("def f():\n    global n, m\n    n = 1\n    m.x()", {"n", "m"}),
        ("def f():\n    def g(): x.append(1); y.append(2)\n    x = []", {"y"}),
        ("class A:\n    xs = []\n    xs.append(1)\n    def f(self): xs.append(1); self.n += 1", {"xs"}),
        ("[x.pop() for x in y]", set()),
        ("(lambda x: x.pop() and y.pop())", {"y"}),
    ],
)
def test_code_changes_what_it_stores_into_or_calls_methods_of(cell, changes):
    assert names_mutated(cell) == changes


def test_a_certain_change_is_more_than_any_method():
    cell = "client.run(q); cache[q] = 1; seen.add(q); n.m.update(q)"

    assert names_mutated(cell, certain=True) == {"cache", "seen", "n"}


def test_parameters_that_a_body_changes_are_found():
    tree = ast.parse("def f(a, b, *c, d=None, **e):\n    a.append(b)\n    b = 1\n    d += 1\n    e['x'] = c").body[0]

    assert params_mutated(tree) == {"a", "d", "e"}


def test_a_parameter_of_an_inner_function_is_another_name():
    tree = ast.parse("def f(a, b):\n    def g(a): a.append(1); b.append(1)\n    g([])").body[0]

    assert params_mutated(tree) == {"b"}


# Causes


@pytest.mark.parametrize(
    ("cell", "causes"),
    [
        ("import random\nrandom.random()", ["random.random()"]),
        ("import random as r\nr.choice(xs)", ["random.choice()"]),
        ("from random import shuffle as mix\nmix(xs)", ["random.shuffle()"]),
        ("import uuid\nuuid.uuid4(), uuid.uuid5(a, b)", ["uuid.uuid4()"]),
        ("from time import time\ntime()", ["time.time()"]),
        ("time.perf_counter()", ["time.perf_counter()"]),
        ("import datetime as dt\ndt.datetime.now(), dt.date.today()", ["datetime.now()", "date.today()"]),
        ("from datetime import datetime\ndatetime.utcnow()", ["datetime.utcnow()"]),
        ("os.urandom(8), os.getpid(), os.path.join(a)", ["os.urandom()", "os.getpid()"]),
        ("secrets.token_hex()", ["secrets.token_hex()"]),
        ("import numpy as np\nnp.random.rand(3)", ["numpy.random.rand()"]),
        ("np.random.default_rng(7), np.random.default_rng()", ["numpy.random.default_rng()"]),
        ("random.seed(1)", []),
        ("id(x), hash(y), input()", ["id()", "hash()", "input()"]),
        ("for x in set(xs): f(x)", ["the order of a set"]),
        ("s = {1, 2}\n[f(x) for x in s | t]", ["the order of a set"]),
        ("list(frozenset(xs)), ' '.join({'a'})", ["the order of a set"]),
        ("s = {1}\ns.pop()", ["the order of a set"]),
        ("sorted(set(xs)), len({1}), 1 in {1}", []),
        ("x.random(); t = x.time()", []),
    ],
)
def test_likely_causes_of_another_answer_are_named(cell, causes):
    assert uses_nondeterminism(cell) == causes


def test_the_notebooks_own_aliases_are_followed():
    assert uses_nondeterminism("rng.random(); now()", {"rng": "random", "now": "datetime.datetime.now"}) == [
        "random.random()",
        "datetime.now()",
    ]


def test_every_public_name_of_source_exists():
    assert all(hasattr(source, name) for name in source.__all__)
