"""What a step depends on: which edits are seen, which are not, and that steps' own changes are no edits."""

from __future__ import annotations

import functools
import linecache
import sys
import threading
import time
from pathlib import Path
from textwrap import dedent
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from jupyter_durable.evidence import EvidenceBook, explain, inputs, step_function
from jupyter_durable.source import names_bound, names_mutated, names_read


class Notebook:
    """Runs cells as a kernel does: one namespace, each cell's text known to linecache under a name of its own."""

    count = 0

    def __init__(self, *cells: str) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        for cell in cells:
            self.run(cell)

    def run(self, cell: str) -> None:
        Notebook.count += 1
        name = f"<cell {Notebook.count}>"
        text = dedent(cell)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), self.namespace)

    def __getitem__(self, name: str) -> Any:
        return self.namespace[name]


class Step:
    """A wrapper as `step` makes it, as far as evidence knows one."""

    def __init__(self, function: Any) -> None:
        self.__durable_step__ = function

    def __call__(self, *args: Any) -> Any:
        return self.__durable_step__(*args)


def parts(cell: str, name: str = "f") -> dict[str, str]:
    """Evidence of a function of a notebook of one cell."""
    return EvidenceBook().of(Notebook(cell)[name]).parts


def why(old: str, new: str, name: str = "f") -> str:
    """What evidence says about an edit."""
    return explain(parts(old, name), parts(new, name))


# Own code


def test_comments_and_formatting_are_no_change():
    assert why("def f(x): return x+1", "\n# a comment\ndef f( x ):\n    return x + 1  # one\n") == ""


def test_an_edited_body_is_a_change():
    assert why("def f(x): return x + 1", "def f(x): return x + 2") == "its own body changed"


def test_options_of_the_step_are_no_change_and_its_version_is():
    step = "def step(*a, **k): return lambda f: f\n"

    assert why(step + "@step(retries=1)\ndef f(): ...", step + "@step(retries=2)\ndef f(): ...") == ""
    assert (
        why(step + "@step(version=1)\ndef f(): ...", step + "@step(version=2)\ndef f(): ...") == "its own body changed"
    )


def test_the_digest_has_12_characters_and_covers_all_parts():
    one, two = (EvidenceBook().of(Notebook(f"P = {n}\ndef f(): return P")["f"]) for n in (1, 2))

    assert len(one.digest) == 12
    assert one.digest != two.digest
    assert one.parts["code"] == two.parts["code"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("async def f(x): return x", "async def f(x): return -x"),
        ("f = lambda x: x", "f = lambda x: -x"),
        ("class A:\n    def g(self): return 1\nf = A().g", "class A:\n    def g(self): return 2\nf = A().g"),
        ("class A:\n    @classmethod\n    def g(cls): return 1\nf = A.g",
         "class A:\n    @classmethod\n    def g(cls): return 2\nf = A.g"),
        ("class f:\n    def g(self): return 1", "class f:\n    def g(self): return 2"),
        ("class A:\n    def __call__(self): return 1\nf = A()", "class A:\n    def __call__(self): return 2\nf = A()"),
        ("import functools\ndef g(x): return 1\nf = functools.partial(g, 1)",
         "import functools\ndef g(x): return 2\nf = functools.partial(g, 1)"),
        ("import functools\n@functools.cache\ndef f(x): return 1",
         "import functools\n@functools.cache\ndef f(x): return 2"),
        ("f = len", "f = max"),
        ("import json\nf = json.dumps", "import json\nf = json.loads"),
    ],
)  # fmt: skip
def test_every_kind_of_callable_has_evidence(old, new):
    assert why(old, old) == ""
    assert "code" in {part for part in parts(new) if parts(old).get(part) != parts(new)[part]}


def test_lambdas_on_one_line_are_told_apart():
    book = EvidenceBook()
    lambdas = Notebook("fs = [lambda x: x + 1, lambda x: x + 2, lambda x: (lambda y: y + 1)]; g = lambda x: x + 1")

    digests = [book.of(each).digest for each in lambdas["fs"]]

    assert len(set(digests)) == 3
    assert book.of(lambdas["g"]).digest == digests[0]
    assert book.of(lambdas["fs"][2](0)).digest not in digests


def test_a_function_without_source_is_known_by_its_compiled_form():
    def made(text: str) -> Any:
        namespace: dict[str, Any] = {"helper": 1}
        exec(text, namespace)
        return EvidenceBook().of(namespace["f"])

    assert made("def f(x): return x - helper").parts.keys() == {"code", "var:helper"}
    assert made("def f(x): return x in {'a', 'b'}").digest == made("def f(x): return x in {'b', 'a'}").digest
    assert made("def f(x): return x - 1").digest != made("def f(x): return x + 1").digest
    assert made("def f(x): return [i - 1 for i in x]").digest != made("def f(x): return [i - 2 for i in x]").digest


def test_a_wrapper_and_what_it_wraps_both_count():
    cell = """
        import functools
        def timed(fn):
            @functools.wraps(fn)
            def wrapper(*args): return fn(*args) + {}
            return wrapper
        @timed
        def f(x): return x + {}
    """

    assert why(cell.format(0, 1), cell.format(0, 2)) == "its own body changed"
    assert why(cell.format(0, 1), cell.format(1, 1)) == "`timed.<locals>.wrapper` changed"
    assert EvidenceBook().bound_digest(Notebook(cell.format(0, 1))["f"]) is None


def test_functions_of_real_cells_have_evidence():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    digests = []
    for body in ("x + 1", "x + 1  # one", "x + 2"):
        shell.run_cell(f"def clean(x): return {body}\ndef f(x): return clean(x)", silent=True)
        digests.append(EvidenceBook().of(shell.user_ns["f"]).parts)

    assert explain(digests[0], digests[1]) == ""
    assert explain(digests[0], digests[2]) == "the body of `clean` changed"


def test_names_are_said_without_module_although_the_wrapper_has_another(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "local_wrappers.py").write_text(
        "import functools\nLIMIT = 1\ndef timed(fn):\n    @functools.wraps(fn)\n"
        "    def wrapper(): return fn() + LIMIT\n    return wrapper\n",
        encoding="utf-8",
    )

    found = parts("from local_wrappers import timed\nPROMPT = 'x'\n@timed\ndef f(): return PROMPT")

    assert found.keys() == {"code", "wrapper:timed.<locals>.wrapper", "var:PROMPT", "var:local_wrappers.LIMIT"}


# What is reached


def test_local_helpers_count_however_deep():
    cell = "def trim(x): return x[:{}]\ndef clean(x): return trim(x)\ndef f(x): return clean(x)"

    assert parts(cell.format(1)).keys() == {"code", "fn:clean", "fn:trim"}
    assert why(cell.format(1), cell.format(2)) == "the body of `trim` changed"


def test_a_chain_of_helpers_may_be_longer_than_pythons_stack():
    cell = "def h0(): return {}\n" + "".join(f"def h{n}(): return h{n - 1}()\n" for n in range(1, 1200))

    assert why(cell.format(1), cell.format(2), "h1199") == "the body of `h0` changed"


def test_functions_that_call_each_other_have_evidence():
    cell = "def f(n): return n and g(n - 1)\ndef g(n): return n and f(n - {})"

    assert why(cell.format(1), cell.format(2)) == "the body of `g` changed"


def test_helpers_in_nested_functions_comprehensions_and_f_strings_count():
    cell = """
        def a(): return {0}
        def b(): return {0}
        def c(): return {0}
        def f(xs):
            def inner(): return a()
            return [b() for x in xs], f"{{c()}}", inner
    """

    assert (
        why(cell.format(1), cell.format(2))
        == "the body of `a` changed, the body of `b` changed, the body of `c` changed"
    )


def test_a_step_called_by_a_step_counts():
    old, new = (Notebook(f"def inner(x): return x + {n}\ndef f(x): return inner(x)") for n in (1, 2))
    for each in (old, new):
        each.namespace["inner"] = Step(each["inner"])

    assert (
        explain(EvidenceBook().of(old["f"]).parts, EvidenceBook().of(new["f"]).parts) == "the body of `inner` changed"
    )


def test_functions_in_a_global_list_count():
    cell = "def search(x): return {}\nTOOLS = [search]\ndef f(x): return TOOLS[0](x)"

    assert "the body of `TOOLS[0]` changed" in why(cell.format(1), cell.format(2))


def test_a_local_class_counts_with_its_methods_and_bases():
    cell = """
        class Base:
            def g(self): return {}
        class Tool(Base):
            def run(self, q): return q
        tool = Tool()
        def f(q): return tool.run(q)
    """

    assert why(cell.format(1), cell.format(2)) == "class `Base` changed"


@pytest.mark.parametrize(
    "cell",
    [
        "import dataclasses\n@dataclasses.dataclass\nclass T:\n    x: int = {}",
        "import enum\nclass T(enum.Enum):\n    A = {}",
        "class T:\n    limit = {}",
        "import pydantic\nclass T(pydantic.BaseModel):\n    x: int = {}",
    ],
)
def test_a_class_without_methods_counts_by_its_fields(cell):
    use = "\ndef f(): return T"

    assert why(cell.format(1) + use, cell.format(1) + use) == ""
    assert why(cell.format(1) + use, cell.format(2) + use) == "class `T` changed"


def test_installed_code_counts_by_name_only():
    found = parts(
        "import json, os\nfrom json import dumps as write\ndef f(x): return write(x), json.loads, os.getcwd()"
    )

    assert found.keys() == {"code", "fn:write", "module:json", "module:os"}
    assert why("from json import dumps as w\ndef f(): w()", "from pickle import dumps as w\ndef f(): w()") != ""


def test_our_own_words_are_no_evidence():
    assert parts("from jupyter_durable.clock import now\ndef f(): return now()").keys() == {"code"}


def test_functions_of_a_local_module_count(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    for number, limit in enumerate((1, 1, 2)):
        name = f"local_module_{number}"
        (tmp_path / f"{name}.py").write_text(
            f"LIMIT = {limit}\ndef trim(x): return x[:LIMIT]\ndef clean(x): return trim(x)", encoding="utf-8"
        )
        evidence = EvidenceBook().of(Notebook(f"import {name} as m\ndef f(x): return m.clean(x)")["f"])
        seen.append({key.replace(name, "m"): digest for key, digest in evidence.parts.items() if key != "module:m"})
        del sys.modules[name]

    assert seen[0].keys() == {"code", "fn:m.clean", "fn:m.trim", "var:m.LIMIT"}
    assert explain(seen[0], seen[1]) == ""
    assert explain(seen[0], seen[2]) == "`m.LIMIT` changed"


def test_a_module_of_site_packages_under_the_folder_is_not_local(tmp_path: Path, monkeypatch):
    folder = tmp_path / ".venv" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "installed_thing.py").write_text("def g(): return 1", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(folder)

    found = EvidenceBook().of(Notebook("from installed_thing import g\ndef f(): return g()")["f"]).parts

    assert set(EvidenceBook().of(sys.modules["installed_thing"].g).parts) == {"code"}
    assert found.keys() == {"code", "fn:g"}


def test_an_edited_and_reloaded_module_is_read_anew(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "reloaded.py"
    digests = []
    for text in ("def f(): return 1\n", "# a longer text\n\ndef f(): return 22\n"):
        path.write_text(text, encoding="utf-8")
        module = ModuleType("reloaded")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "reloaded", module)
        exec(compile(text, str(path), "exec"), vars(module))
        digests.append(EvidenceBook().of(vars(module)["f"]).digest)

    assert digests[0] != digests[1]


# Globals


def test_a_global_that_is_read_counts_by_value():
    cell = "PROMPT = {!r}\nOTHER = {!r}\ndef f(x): return PROMPT + x"

    assert why(cell.format("a", "b"), cell.format("A", "B")) == "`PROMPT` changed"


def test_a_global_of_builtins_name_counts_where_the_notebook_has_its_own():
    assert "var:input" in parts("input = 'text'\ndef f(): return input, max")


def test_what_cannot_be_compared_is_named_and_is_no_evidence():
    notebook = Notebook("import threading\nlock = threading.Lock()\ndef f():\n    with lock: pass")

    evidence = EvidenceBook().of(notebook["f"])

    assert evidence.parts.keys() == {"code"}
    assert evidence.not_comparable == {"lock": "?lock"}


def test_what_a_step_changes_does_not_change_its_evidence():
    notebook = Notebook("state = {'n': 0}\ncount = 0\ndef f():\n    global count\n    count += 1\n    state['n'] += 1")
    book = EvidenceBook()
    before = book.of(notebook["f"])

    notebook["f"]()

    assert book.of(notebook["f"]) == before
    assert before.parts.keys() == {"code", "var:count", "var:state"}


def test_what_the_cell_assigns_is_looked_at_on_each_call():
    notebook = Notebook("def f(x): return PROMPT + x")
    cell = "PROMPT = 'a'"
    book = EvidenceBook(cell=names_bound(cell))
    at_start = book.of(notebook["f"], at_start=True)
    notebook.run(cell)
    first = book.of(notebook["f"])

    notebook.run("PROMPT = 'b'")

    assert "var:PROMPT" not in at_start.parts
    assert explain(first.parts, book.of(notebook["f"]).parts) == "`PROMPT` changed"


def test_what_both_the_cell_and_a_step_change_is_looked_at_once():
    cell = "state = {'n': 0}"
    notebook = Notebook("def f(): state['n'] += 1")
    book = EvidenceBook(cell=names_bound(cell) | names_mutated(cell))
    notebook.run(cell)
    before = book.of(notebook["f"])

    notebook["f"]()

    assert book.of(notebook["f"]) == before


def test_a_helper_that_the_cell_defines_is_found_once_it_is_defined():
    notebook = Notebook("def f(x): return helper(x)")
    book = EvidenceBook(cell={"helper"})
    assert book.of(notebook["f"]).parts.keys() == {"code"}

    notebook.run("def helper(x): return x")

    assert book.of(notebook["f"]).parts.keys() == {"code", "fn:helper"}


def test_what_the_last_execution_left_counts_as_what_it_began_with():
    notebook = Notebook("state = {'n': 0}\ndef f(): state['n'] += 1")
    first = EvidenceBook()
    before = first.of(notebook["f"])
    notebook["f"]()
    left = first.state()

    assert left.keys() == {"__main__.state"}
    assert EvidenceBook(left=left).of(notebook["f"]) == before
    notebook["f"]()
    assert EvidenceBook(left=left).of(notebook["f"]) != before


def test_new_function_objects_of_one_code_share_their_evidence():
    notebook = Notebook("def make(data):\n    return lambda: len(data)")
    book = EvidenceBook()

    assert book.of(notebook["make"]([1])) is book.of(notebook["make"]([2]))


def test_evidence_is_equal_in_all_threads():
    notebook = Notebook("state = {'n': 0}\ndef g(): state['n'] += 1\ndef f(): g()")
    book = EvidenceBook()
    found = []
    threads = [threading.Thread(target=lambda: found.append(book.of(notebook["f"]).digest)) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(found)) == 1


def test_the_first_look_at_a_small_function_is_quick():
    cell = (
        "PROMPT = 'x'\ndef clean(x): return x.strip()\ndef f(q):\n    text = PROMPT + clean(q)\n    return {'t': text}"
    )
    times = []
    for _ in range(5):
        notebook = Notebook(cell)
        book = EvidenceBook()
        begun = time.perf_counter()
        book.of(notebook["f"])
        times.append(time.perf_counter() - begun)

    assert min(times) < 0.01  # 2 ms are promised; machines that run tests are slow


# What a function carries


def test_a_function_that_carries_nothing_has_no_digest_for_it():
    assert EvidenceBook().bound_digest(Notebook("def f(x): return x")["f"]) is None


@pytest.mark.parametrize(
    "cell",
    [
        "def f(x, n={}): return n",
        "def f(x, *, n={}): return n",
        "def make(n):\n    return lambda: n\nf = make({})",
        "def make(n):\n    def f(): return n\n    return f\nf = make([{}])",
        "import functools\nf = functools.partial(max, {})",
        "import functools\nf = functools.partial(max, default={})",
        "import dataclasses\n@dataclasses.dataclass\nclass A:\n    n: int\n    def g(self): return self.n\nf = A({}).g",
        "import dataclasses as d\n@d.dataclass\nclass A:\n    n: int\n    def __call__(self): return self.n\nf = A({})",
        "def make(g):\n    return lambda: g()\nf = make(lambda: {})",
    ],
)
def test_what_a_callable_carries_has_a_digest(cell):
    one, same, other = (EvidenceBook().bound_digest(Notebook(cell.format(n))["f"]) for n in (1, 1, 2))

    assert one is not None
    assert len(one) == 22
    assert one == same != other


def test_what_a_callable_carries_is_looked_at_on_each_call():
    notebook = Notebook("def make():\n    n = [0]\n    def f(): return n[0]\n    return f, n\nf, n = make()")
    book = EvidenceBook()
    before = book.bound_digest(notebook["f"])

    notebook["n"][0] = 1

    assert book.bound_digest(notebook["f"]) != before


@pytest.mark.parametrize(
    "cell",
    [
        "def make():\n    n = 0\n    def f():\n        nonlocal n\n        n += 1\n    return f\nf = make()",
        "def make():\n    seen = []\n    def f(): seen.append(1)\n    return f\nf = make()",
        "def f(cache={}): cache[len(cache)] = 1",
    ],
)
def test_what_a_function_itself_changes_is_looked_at_once(cell):
    notebook = Notebook(cell)
    book = EvidenceBook()
    before = book.bound_digest(notebook["f"])

    notebook["f"]()

    assert book.bound_digest(notebook["f"]) == before


def test_what_cannot_be_digested_counts_by_its_type():
    cell = "import threading\ndef make(lock):\n    return lambda: lock\nf = make({})"
    one, same, other = (
        EvidenceBook().bound_digest(Notebook(cell.format(made))["f"])
        for made in ("threading.Lock()", "threading.Lock()", "threading.Event()")
    )

    assert one == same != other


def test_functions_that_carry_each_other_have_a_digest():
    cell = """
        def make():
            def even(n): return n == 0 or odd(n - 1)
            def odd(n): return n != 0 and even(n - {})
            return even
        f = make()
    """
    one, same, other = (EvidenceBook().bound_digest(Notebook(cell.format(n))["f"]) for n in (1, 1, 2))

    assert one == same != other


def test_super_in_a_method_is_nothing_carried():
    notebook = Notebook("class A:\n    def g(self): return super().__repr__()\nf = A.g")

    assert EvidenceBook().bound_digest(notebook["f"]) is None


# Inputs of a cell


def test_inputs_are_digests_of_what_the_cell_reads():
    notebook = Notebook(
        """
        import json, threading
        from json import dumps
        topic = "a"
        messages = []
        lock = threading.Lock()
        def clean(x): return x
        class Tool:
            def run(self): ...
        """
    )
    names = names_read("json, dumps, topic, messages, lock, clean, Tool, missing, len")

    digests, mutable = inputs(notebook.namespace, names, EvidenceBook())

    assert digests.keys() == {"json", "dumps", "topic", "messages", "lock", "clean", "Tool"}
    assert digests["json"] == "module:json"
    assert digests["lock"] == "?lock"
    assert mutable == {"messages": []}
    assert mutable["messages"] is notebook["messages"]


def test_a_step_among_the_inputs_counts_by_its_function():
    notebooks = [Notebook(f"def f(x): return x + {n}") for n in (1, 1, 2)]
    for each in notebooks:
        each.namespace["f"] = Step(each["f"])

    one, same, other = (inputs(each.namespace, {"f"}, EvidenceBook())[0] for each in notebooks)

    assert one == same != other


def test_inputs_leave_out_what_the_cell_assigns_itself():
    digests = []
    for stale in ("PROMPT = 'left by an earlier run'", "pass"):
        notebook = Notebook(stale, "def f(): return PROMPT")
        digests.append(inputs(notebook.namespace, {"f"}, EvidenceBook(cell={"PROMPT"}))[0])

    assert digests[0] == digests[1]


def test_our_own_words_and_builtins_are_no_inputs():
    namespace = {"now": __import__("jupyter_durable.clock").clock.now, "len": len, "max": min}

    assert inputs(namespace, {"now", "len", "max"}, EvidenceBook())[0].keys() == {"max"}


def test_only_what_can_change_in_place_is_mutable():
    notebook = Notebook(
        """
        import dataclasses, enum, datetime
        @dataclasses.dataclass
        class Box: n: int = 1
        @dataclasses.dataclass(frozen=True)
        class Fixed: n: int = 1
        values = dict(a=1, b="x", c=(1, 2), d=None, e=Fixed(), f=datetime.date(2026, 1, 1), g=frozenset({1}),
                      t=[1], u={}, v={1}, w=bytearray(b"x"), x=Box(), y=([],))
        """
    )

    mutable = inputs(notebook["values"], notebook["values"], EvidenceBook())[1]

    assert mutable.keys() == set("tuvwxy")


def test_a_mock_that_answers_to_every_name_is_no_step():
    class Anything:
        def __getattr__(self, name: str) -> Any:
            return Anything()

    assert step_function(Anything()) is None
    assert step_function(SimpleNamespace(__durable_step__=len)) is len
    assert step_function(functools.partial(len)) is None


# Words


def test_explain_says_at_most_a_few_things():
    old = {f"var:V{n}": "a" for n in range(9)}

    assert explain(old, dict.fromkeys(old, "b")) == "`V0` changed, `V1` changed, `V2` changed, and 6 more"
    assert explain({"cls:A": "1"}, {"cls:A": "2", "var:B": "3"}) == "class `A` changed, `B` is newly used"
    assert explain({"var:B": "3"}, {}) == "`B` is no longer used"
    assert explain(old, old) == ""
