"""The cases G01 to G31, and where each is.

They were given to developers before there was code: public bug reports, each as an input, an action and a right
outcome. Every case within the first issue is a test named after its id, in a real kernel, with a real SIGKILL, with
effects that are counted in an outside file; beside it stand variants of the same kind.

Left to later issues, with what they wait for:

* G31: the LangGraph checkpointer

Cases of the panel, in a real browser, are in ``tests/browser``: G25, and the panel's side of G18.

G22 has a part in ``tests/server``, too: an answer by REST beside another one. Where a case sleeps durably only to be
killed there, a step that waits for a file stands in its place (``conftest.STAND``).
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

LATER = {"g31"}
BROWSER = {"g18", "g25"}
HERE = sorted({f"g{number:02}" for number in range(1, 32)} - LATER)
FOLDER = Path(__file__).parent


def names_in(folder: Path) -> list[str]:
    return [
        node.name
        for path in folder.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]


@pytest.mark.parametrize("case", sorted({*HERE} - {"g25"}))
def test_the_case_has_tests_that_bear_its_id(case):
    assert [name for name in names_in(FOLDER) if name.startswith(f"test_{case}_")]


@pytest.mark.parametrize("case", sorted(BROWSER))
def test_the_case_has_tests_in_a_browser_that_bear_its_id(case):
    assert [name for name in names_in(FOLDER.parent / "browser") if name.startswith(f"test_{case}_")]


def test_no_case_is_skipped_or_expected_to_fail_and_no_file_is_too_long():
    for path in FOLDER.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 400, path.name
        assert re.search(r"mark\.(?:xfail|skip)|pytest\.(?:skip|xfail)\(", text) is None or path.name == "test_given.py"
