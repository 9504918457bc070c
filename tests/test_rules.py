"""The thirty rules of replay that are easy to get wrong: a test that would see it broken names each, as *Rule N*."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

NAMED = re.compile(r"Rules? (\d+)(?: and (\d+))?")


@cache
def rules_named() -> dict[int, list[str]]:
    """Number of a rule -> the tests whose first words name it."""
    found: dict[int, list[str]] = {}
    for path in Path(__file__).parent.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for numbers in NAMED.findall(ast.get_docstring(node) or ""):
                    for number in filter(None, numbers):
                        found.setdefault(int(number), []).append(node.name)
    return found


@pytest.mark.parametrize("number", range(1, 31))
def test_the_rule_is_named_by_a_test(number: int) -> None:
    assert rules_named().get(number)
