"""The results that the steps of a benchmark return: the same ones for every subject.

Text is made of random words, so that it compresses like prose; arrays are random bytes, which do not compress at all.
Every index gives another result, so that nobody gains by storing equal values once.
"""

from __future__ import annotations

import functools
import random
from typing import Any

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@functools.cache
def _prose() -> str:
    made = random.Random(7)
    words = ["".join(made.choices(_LETTERS, k=made.randint(2, 10))) for _ in range(4000)]
    return " ".join(made.choices(words, k=420_000))


@functools.cache
def _arrays() -> list[Any]:
    import numpy as np

    made = np.random.default_rng(7)
    return [made.integers(0, 256, 1 << 20, dtype=np.uint8) for _ in range(40)]


def text(i: int, size: int) -> str:
    """The i-th text of ``size`` characters."""
    prose = _prose()
    start = i * size % (len(prose) - size)
    return prose[start : start + size]


def array(i: int) -> Any:
    """The i-th array of 1 MB (there are 40)."""
    return _arrays()[i % 40]


def make(kind: str, i: int) -> Any:
    """The i-th value of a kind: ``text200``, ``text1000``, ``text10000`` or ``array``."""
    return array(i) if kind == "array" else text(i, int(kind.removeprefix("text")))


def warm(kind: str) -> None:
    """Make what the values are cut from, so that no measurement pays for it."""
    make(kind, 0)
