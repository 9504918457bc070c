"""What users may rely on: a frozen list of names, that each exists, and that importing them costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import jupyter_durable
from jupyter_durable import errors

PUBLIC = ["connect", "durable", "errors", "load_ipython_extension", "step", "unload_ipython_extension"]
"""A name that goes away or changes its meaning here breaks somebody's notebook: it belongs into the changelog."""

SLOW = ["IPython", "cloudpickle", "duckdb", "numpy", "pandas", "zstandard"]
"""Packages that `import jupyter_durable` leaves alone; scripts on a cold machine feel each of them."""


def test_the_public_names_are_these():
    assert sorted(jupyter_durable.__all__) == PUBLIC


def test_every_public_name_is_there():
    assert [name for name in PUBLIC if not hasattr(jupyter_durable, name)] == []


def test_a_name_that_is_not_there_is_named():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = jupyter_durable.no_such_name


def test_every_error_belongs_to_one_of_the_two_trees():
    defined = [
        value for value in vars(errors).values() if isinstance(value, type) and value.__module__ == errors.__name__
    ]

    assert defined
    assert all(issubclass(value, errors.DurableError | errors.DurableControl) for value in defined)


def test_importing_the_package_imports_nothing_slow():
    code = f"import sys, jupyter_durable; print([name for name in {SLOW!r} if name in sys.modules])"

    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert answer.stdout.strip() == "[]"
