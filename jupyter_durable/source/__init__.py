"""What source code says, read from its syntax tree and never from bytecode: equal on every Python version.

Needs nothing but the standard library, so that any interpreter can import it and compare digests.

- `canonical`: the form of code in which comments and formatting do not count, and its digests.
- `names`: which global names code reads, binds, calls and changes.
- `causes`: what in glue code may answer differently next time.
- `statements`: a cell statement by statement, to be compared with an earlier version.
- `locate`: from a function object or a class to its syntax tree.
"""

from __future__ import annotations

from jupyter_durable.source.canonical import canonical, cell_digest, parse, text_digest
from jupyter_durable.source.causes import uses_nondeterminism
from jupyter_durable.source.changes import names_called, names_mutated, params_mutated
from jupyter_durable.source.locate import class_tree, function_tree
from jupyter_durable.source.names import dotted_reads, names_bound, names_read
from jupyter_durable.source.statements import Statement, statements

__all__ = [
    "Statement",
    "canonical",
    "cell_digest",
    "class_tree",
    "dotted_reads",
    "function_tree",
    "names_bound",
    "names_called",
    "names_mutated",
    "names_read",
    "params_mutated",
    "parse",
    "statements",
    "text_digest",
    "uses_nondeterminism",
]
