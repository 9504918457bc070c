"""The shape of the house: which file may import which, how long a file may be, what a file may be called.

Imports point to lower floors, or along the same floor; the rooms of the top floor never import each other.
ARCHITECTURE.md says why. A module that this table does not know makes the test fail, so that the table stays true.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "jupyter_durable"
ROOT = Path(__file__).resolve().parents[1] / PACKAGE

FLOORS: list[set[str]] = [
    # 0: words
    {"errors", "stored", "event_data", "events", "clock"},
    # 1: rules; they do no I/O
    {
        "values",
        "source",
        "evidence",
        "retry",
        "keys",
        "entries",
        "history",
        "call",
        "matching",
        "attempts",
        "child_runs",
        "reusing",
        "forks",
        "spoken",
        "comparing",
        "stops",
        "replay",
        "patches",
        "branches",
        "notebooks",
        "sentences",
        "answers",
    },
    # 2: the log
    {"log"},
    # 3: acting
    {
        "engine",
        "running",
        "person",
        "comparisons",
        "sampled",
        "listings",
        "cancelling",
        "settling",
        "undoing",
        "client",
        "answering",
        "spending",
        "planning",
        "diagnose",
    },
    # 4: model and tool calls become steps
    {"capture", "integrations", "stepping", "waiting", "working", "stopping", "undo_words", "versions", "lives", "api"},
    # 5: rooms that never import each other
    {"kernel", "server", "widget", "cli", "demo", "testing"},
]
ROOF = len(FLOORS)
"""The floor of ``jupyter_durable/__init__.py``: everything below, and nothing in the package imports it."""

LAZY_NEIGHBOURS = {("cli", "demo"), ("widget", "server"), ("widget", "kernel")}
"""Rooms of the top floor that may be used from another one, inside a function: `jupyter durable demo`; the widget
answers by the server's table of routes, and asks the kernel which notebook it is."""

LONGEST = 400
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
NEVER_AT_MODULE_LEVEL = {"duckdb", "numpy", "pandas", "pydantic", "openai", "cloudpickle"}
"""Slow to import, or not there for everybody: `import jupyter_durable` and `%load_ext` must stay quick."""


@dataclass(frozen=True)
class Import:
    """One import of one module by another."""

    importer: str
    imported: str
    line: int
    lazy: bool
    """Inside a function: it runs when the function does."""
    typing: bool
    """Under ``if TYPE_CHECKING``: it never runs."""


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str
    """Dotted, from the package's name on; a package stands for its ``__init__.py``."""
    path: Path
    tree: ast.Module


def read_modules(root: Path) -> dict[str, Module]:
    """All modules under a package's folder, by name."""
    modules = {}
    for path in sorted(root.rglob("*.py")):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
    return modules


def imports_of(module: Module, known: set[str]) -> Iterator[Import]:
    """Every import in a module; ``from package import name`` names the module ``name`` if there is one."""

    def walk(node: ast.AST, *, lazy: bool, typing: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module.name, alias.name, node.lineno, lazy, typing)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node)
            submodules = {name for alias in node.names if (name := f"{base}.{alias.name}") in known}
            # Names that are not modules come from the module itself: once is enough.
            if len(submodules) < len(node.names):
                submodules.add(base)
            for name in sorted(submodules):
                yield Import(module.name, name, node.lineno, lazy, typing)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                yield from walk(child, lazy=lazy, typing=True)
            for child in node.orelse:
                yield from walk(child, lazy=lazy, typing=typing)
        else:
            inner = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for child in ast.iter_child_nodes(node):
                yield from walk(child, lazy=inner, typing=typing)

    def absolute(node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        here = module.name.split(".")
        # A package's own name is its __init__: one dot there means the package itself.
        up = node.level - (1 if module.path.name == "__init__.py" else 0)
        base = here[: len(here) - up] if up else here
        return ".".join([*base, *([node.module] if node.module else [])])

    yield from walk(module.tree, lazy=False, typing=False)


def room_of(name: str) -> str:
    """The first name under the package: ``jupyter_durable.log.journal`` -> ``log``; ``cli_show`` belongs to ``cli``."""
    parts = name.split(".")
    if len(parts) == 1:
        return ""
    return "cli" if parts[1].startswith("cli_") else parts[1]


def floor_of(name: str) -> int | None:
    """The floor of a module; ``None`` if the table does not know it."""
    room = room_of(name)
    if not room:
        return ROOF
    return next((number for number, rooms in enumerate(FLOORS) if room in rooms), None)


def wrong_floors(modules: dict[str, Module]) -> list[str]:
    """Imports that point upwards, or into a neighbour's room."""
    wrong = []
    package = next(iter(modules)).split(".")[0]
    for module in modules.values():
        floor = floor_of(module.name)
        if floor is None:
            wrong.append(f"{module.name} stands on no floor: add it to FLOORS")
            continue
        for imported in imports_of(module, set(modules)):
            if imported.imported.split(".")[0] != package:
                continue
            place = f"{module.name}:{imported.line} imports {imported.imported}"
            other = floor_of(imported.imported)
            if other is None or imported.imported not in modules:
                wrong.append(f"{place}, which is not in the table or not there")
            elif other > floor:
                wrong.append(f"{place}, which is on a higher floor ({other} > {floor})")
            elif floor == ROOF - 1 == other and room_of(module.name) != room_of(imported.imported):
                pair = (room_of(module.name), room_of(imported.imported))
                if not (pair in LAZY_NEIGHBOURS and imported.lazy):
                    wrong.append(f"{place}, which is a neighbour's room")
    return wrong


def cycles(modules: dict[str, Module]) -> list[str]:
    """Rings of imports that run when a module is imported."""
    edges = {
        name: sorted(
            {
                found.imported
                for found in imports_of(module, set(modules))
                if not found.lazy and not found.typing and found.imported in modules and found.imported != name
            }
        )
        for name, module in modules.items()
    }
    found: list[str] = []
    finished: set[str] = set()

    def visit(name: str, trail: list[str]) -> None:
        if name in trail:
            found.append(" -> ".join([*trail[trail.index(name) :], name]))
        elif name not in finished:
            for other in edges[name]:
                visit(other, [*trail, name])
            finished.add(name)

    for name in sorted(edges):
        visit(name, [])
    return found


def heavy_imports(modules: dict[str, Module]) -> list[str]:
    """Imports of slow or optional packages that run when a module is imported."""
    return [
        f"{module.name}:{found.line} imports {found.imported} when it is imported"
        for module in modules.values()
        for found in imports_of(module, set(modules))
        if not found.lazy and not found.typing and found.imported.split(".")[0] in NEVER_AT_MODULE_LEVEL
    ]


def wrong_files(modules: dict[str, Module]) -> list[str]:
    """Files that are too long, without a docstring, or named after nothing."""
    wrong = []
    for module in modules.values():
        lines = len(module.path.read_text(encoding="utf-8").splitlines())
        if lines > LONGEST:
            wrong.append(f"{module.name} has {lines} lines; past {LONGEST}, split it by idea")
        if not ast.get_docstring(module.tree):
            wrong.append(f"{module.name} has no docstring")
        if FORBIDDEN_NAMES & set(module.name.split(".")):
            wrong.append(f"{module.name} is named after nothing")
    return wrong


def listed(found: list[str]) -> str:
    """The complaints, one a line, which pytest would shorten."""
    return "\n" + "\n".join(found)


@pytest.fixture(scope="module")
def house() -> dict[str, Module]:
    """The modules of the real package."""
    return read_modules(ROOT)


def test_imports_point_downwards_and_rooms_do_not_know_each_other(house):
    found = wrong_floors(house)

    assert not found, listed(found)


def test_no_module_imports_itself_through_others(house):
    found = cycles(house)

    assert not found, listed(found)


def test_slow_and_optional_packages_are_imported_where_they_are_used(house):
    found = heavy_imports(house)

    assert not found, listed(found)


def test_files_are_short_named_and_introduced(house):
    found = wrong_files(house)

    assert not found, listed(found)


# -- The guard itself is guarded: a check that finds nothing anywhere would pass for ever. ---------------------------


def build(folder: Path, files: dict[str, str]) -> dict[str, Module]:
    """A small package with these files, read as the real one is."""
    root = folder / PACKAGE
    for name, source in {"__init__.py": '"""Roof."""\n', **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return read_modules(root)


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"errors.py": "from jupyter_durable import running", "running.py": ""}, "higher floor (3 > 0)"),
        ({"log/__init__.py": "", "log/journal.py": "from ..running import Running", "running.py": ""}, "higher floor"),
        ({"log/__init__.py": "def f():\n    import jupyter_durable.running", "running.py": ""}, "higher floor (3 > 2)"),
        ({"running.py": "from jupyter_durable import step"}, "higher floor (6 > 3)"),
        ({"running.py": "from . import step"}, "higher floor (6 > 3)"),
        ({"kernel/__init__.py": "import jupyter_durable.server", "server/__init__.py": ""}, "neighbour"),
        ({"cli.py": "from jupyter_durable import demo", "demo/__init__.py": ""}, "neighbour"),
        ({"cli_show.py": "from jupyter_durable import kernel", "kernel/__init__.py": ""}, "neighbour"),
        ({"demo/__init__.py": "def f():\n    from jupyter_durable import cli", "cli.py": ""}, "neighbour"),
        ({"brand_new.py": ""}, "stands on no floor"),
        ({"running.py": "import jupyter_durable.gone"}, "not in the table"),
    ],
)
def test_a_wrong_import_is_found(tmp_path, files, complaint):
    found = wrong_floors(build(tmp_path, files))

    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    "files",
    [
        {"running.py": "from jupyter_durable import errors\nfrom .errors import E", "errors.py": ""},
        {"running.py": "from jupyter_durable.client import current", "client.py": ""},
        {
            "cli.py": "def demo():\n    from jupyter_durable.demo import main_job",
            "demo/__init__.py": "",
            "demo/main_job.py": "",
        },
        {"cli/__init__.py": "from jupyter_durable.cli import show", "cli/show.py": "", "running.py": "import json"},
        {"__init__.py": "from jupyter_durable.kernel import load", "kernel/__init__.py": ""},
        {"cli.py": "from jupyter_durable.client import connect", "client.py": ""},
    ],
)
def test_a_right_import_is_not_complained_about(tmp_path, files):
    assert wrong_floors(build(tmp_path, files)) == []


def test_a_ring_of_imports_is_found_unless_a_part_of_it_is_lazy(tmp_path):
    ring = {"client.py": "import jupyter_durable.running", "running.py": "from jupyter_durable import client"}
    lazy = ring | {"running.py": "def f():\n    from jupyter_durable import client"}
    typed = ring | {"running.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import client"}

    assert len(cycles(build(tmp_path / "ring", ring))) == 1
    assert cycles(build(tmp_path / "lazy", lazy)) == []
    assert cycles(build(tmp_path / "typed", typed)) == []


def test_a_slow_import_is_found_unless_it_is_lazy(tmp_path):
    modules = build(
        tmp_path,
        {
            "running.py": "import numpy as np\ntry:\n    from pandas import DataFrame\nexcept ImportError:\n    pass",
            "client.py": "def connect():\n    import duckdb",
        },
    )

    assert [line.split(":")[0] for line in heavy_imports(modules)] == [f"{PACKAGE}.running"] * 2


def test_long_nameless_and_silent_files_are_found(tmp_path):
    modules = build(
        tmp_path,
        {
            "running.py": '"""Long."""\n' + "x = 1\n" * LONGEST,
            "log/utils.py": '"""Drawer."""\n',
            "log/__init__.py": "x = 1\n",
        },
    )

    assert [line.split()[0] for line in wrong_files(modules)] == [
        f"{PACKAGE}.log",
        f"{PACKAGE}.log.utils",
        f"{PACKAGE}.running",
    ]
