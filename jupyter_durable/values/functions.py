"""Digests the code of a function that is an argument, equal in every process and Python version.

The source decides, in canonical form: formatting and comments are no change. Bytecode differs between Python versions
and is never looked at.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from jupyter_durable.source import canonical, function_tree

# By address, with the code object kept alive: equal code may come from sources that are written differently.
_known: dict[int, tuple[types.CodeType, str | None]] = {}
_KNOWN_LIMIT = 2048


def code_text(function: types.FunctionType) -> str | None:
    """The text that stands for the code of a function alone (no defaults, no closure).

    Returns:
        ``None`` if the function has no source (made by ``exec``, source file gone).
    """
    code = function.__code__
    if id(code) in _known:
        return _known[id(code)][1]
    if len(_known) > _KNOWN_LIMIT:
        _known.clear()
    tree = function_tree(code)
    text = None if tree is None else canonical(tree)
    _known[id(code)] = code, text
    return text


def is_module_level(function: types.FunctionType) -> bool:
    """Whether the name alone identifies the function: it stands in an importable module."""
    module: Any = sys.modules.get(function.__module__)
    return module is not None and getattr(module, function.__qualname__, None) is function
