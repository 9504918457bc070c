"""The first rows of data frames and arrays, for the eyes.

Arrow's format and numpy's hold data and no code; the libraries that read them are used if they are installed, and what
they refuse is not shown.
"""

from __future__ import annotations

import ast
import importlib
import io
import re
from base64 import b64decode
from typing import Any

from jupyter_durable.server.plain import plain
from jupyter_durable.server.shapes import TableView

_ROWS = 100
_COLUMNS = 50
_TEXT = 200
_HEADER = 4096


def array_type(inner: Any) -> str:
    """What an array says about itself, such as ``ndarray int64 (3, 4)``, read without numpy.

    >>> array_type("not base64!")
    'ndarray'
    """
    if not isinstance(inner, str):
        return "ndarray"
    try:
        head = b64decode(inner[:_HEADER])
        found = re.search(rb"\{[^{}]*\}", head)
        told = ast.literal_eval(found[0].decode("latin-1")) if found else {}
        return f"ndarray {str(told['descr'])[:40]} {str(told['shape'])[:80]}"
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        return "ndarray"


def table_of(tag: str, data: bytes) -> TableView | None:
    """The beginning of a frame or array; ``None`` if its format cannot be read here."""
    try:
        return _array(data) if tag == "nparray" else _frame(data)
    except Exception:  # a stranger's bytes, or a library that is missing
        return None


def _array(data: bytes) -> TableView | None:
    np: Any = importlib.import_module("numpy")
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if array.ndim not in {1, 2} or array.dtype.names is not None:
        return None
    two = array[:_ROWS].reshape(len(array[:_ROWS]), -1)[:, :_COLUMNS]
    return TableView(
        columns=[str(place) for place in range(two.shape[1])],
        types=[str(array.dtype)] * two.shape[1],
        rows=[[_cell(one) for one in row] for row in two.tolist()],
        total=len(array),
    )


def _frame(data: bytes) -> TableView | None:
    pa: Any = importlib.import_module("pyarrow")
    with pa.ipc.open_stream(data) as reader:
        names = [str(name)[:_TEXT] for name in reader.schema.names[:_COLUMNS]]
        types = [str(one.type)[:_TEXT] for one in list(reader.schema)[:_COLUMNS]]
        rows: list[list[Any]] = []
        total = 0
        for batch in reader:
            some = batch.slice(0, max(0, _ROWS - len(rows)))
            columns = [some.column(place).to_pylist() for place in range(len(names))]
            rows += [[_cell(one) for one in row] for row in zip(*columns, strict=True)]
            total += batch.num_rows
    return TableView(columns=names, types=types, rows=rows, total=total)


def _cell(value: Any) -> Any:
    shown = plain(value)
    if isinstance(shown, str):
        return shown[:_TEXT]
    return str(shown)[:_TEXT] if isinstance(shown, list | dict) else shown
