"""What users may rely on: a frozen list of names, that each exists, and that importing them costs nothing."""

from __future__ import annotations

import subprocess
import sys

import jupyter_durable
from jupyter_durable import errors

PUBLIC = [
    "BranchBusy",
    "DecisionNeeded",
    "DurableControl",
    "DurableError",
    "HiddenEffectError",
    "InDoubtError",
    "LogDamaged",
    "LogError",
    "LogTooNew",
    "LogUntrusted",
    "LogUnusable",
    "NondeterminismError",
    "NotInRun",
    "ReplayError",
    "ReplayOnlyError",
    "RunEnded",
    "RunSealed",
    "StepTimeout",
    "Undigestable",
    "UnloadableValue",
    "UnstorableValue",
    "UsageError",
    "ValueBoundaryError",
    "ValueNotStored",
    "connect",
    "durable",
    "load_ipython_extension",
    "step",
]
"""A name that goes away or changes its meaning here breaks somebody's notebook: it belongs into the changelog."""

SLOW = ["IPython", "cloudpickle", "duckdb", "numpy", "pandas", "zstandard"]
"""Packages that `import jupyter_durable` leaves alone; scripts on a cold machine feel each of them."""


def test_the_public_names_are_these():
    assert sorted(jupyter_durable.__all__) == PUBLIC


def test_every_public_name_is_there_and_is_listed_by_dir():
    assert [name for name in PUBLIC if not hasattr(jupyter_durable, name)] == []
    assert set(PUBLIC) <= set(dir(jupyter_durable))


def test_every_error_is_public():
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, BaseException) and not name.startswith("_")
    }

    assert defined <= set(PUBLIC)


def test_importing_the_package_imports_nothing_slow():
    code = f"import sys, jupyter_durable; print([name for name in {SLOW!r} if name in sys.modules])"

    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert answer.stdout.strip() == "[]"
