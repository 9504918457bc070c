"""Arrays and data frames as bytes: numpy's own format and Arrow IPC, never with a pickle inside.

None of these libraries is imported for the sake of asking: a value of theirs can only exist if they are loaded.
"""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any


def encode_array(value: Any) -> tuple[str, bytes] | None:
    """A numpy array or scalar as ``(tag, bytes)``; ``None`` if it is none, or holds Python objects.

    >>> encode_array([1]) is None
    True
    """
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        return None
    exact_array = type(value) is numpy.ndarray
    if not exact_array and not isinstance(value, numpy.generic):
        return None
    if value.dtype.hasobject or value.dtype.kind not in "biufcmMSUV":
        return None
    buffer = io.BytesIO()
    numpy.save(buffer, value if exact_array else numpy.asarray(value), allow_pickle=False)
    if not exact_array:
        restored = decode_array("npscalar", buffer.getvalue())
        if type(restored) is not type(value) or restored.dtype != value.dtype:
            return None
    return ("nparray" if exact_array else "npscalar"), buffer.getvalue()


def decode_array(tag: str, data: bytes) -> Any:
    """The array or scalar again."""
    np: Any = importlib.import_module("numpy")

    array = np.load(io.BytesIO(data), allow_pickle=False)
    return array if tag == "nparray" else array[()]


def encode_frame(value: object) -> tuple[str, bytes] | None:
    """A pandas, Arrow or polars frame as ``(tag, Arrow IPC)``; ``None`` if it is none or would not come back equal."""
    top = type(value).__module__.partition(".")[0]
    if top not in ("pandas", "pyarrow", "polars") or top not in sys.modules:
        return None
    try:
        if top == "polars":
            return _encode_polars(value)
        if "pyarrow" not in sys.modules:
            return None
        return _encode_pandas(value) if top == "pandas" else _encode_arrow(value)
    except Exception:
        # Arrow refuses what it has no type for (mixed columns, odd names); such a frame is pickled instead.
        return None


def decode_frame(tag: str, data: bytes) -> Any:
    """The frame again."""
    if tag == "polars":
        pl: Any = importlib.import_module("polars")
        return pl.read_ipc_stream(io.BytesIO(data))
    pa: Any = importlib.import_module("pyarrow")

    with pa.ipc.open_stream(data) as reader:
        if tag == "recordbatch":
            return reader.read_next_batch()
        table = reader.read_all()
    return table.to_pandas() if tag == "dataframe" else table


def _write(schema: Any, batches: Any) -> bytes:
    pa: Any = importlib.import_module("pyarrow")

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        for one in batches:
            writer.write(one)
    return sink.getvalue()


def _encode_arrow(value: Any) -> tuple[str, bytes] | None:
    pa: Any = importlib.import_module("pyarrow")

    if type(value) is pa.Table:
        tag, data = "arrowtable", _write(value.schema, [value])
    elif type(value) is pa.RecordBatch:
        tag, data = "recordbatch", _write(value.schema, [value])
    else:
        return None
    return (tag, data) if decode_frame(tag, data).equals(value, check_metadata=True) else None


def _encode_polars(value: Any) -> tuple[str, bytes] | None:
    pl: Any = sys.modules["polars"]

    if type(value) is not pl.DataFrame:
        return None
    sink = io.BytesIO()
    value.write_ipc_stream(sink)
    data = sink.getvalue()
    restored = decode_frame("polars", data)
    same = restored.schema == value.schema and restored.equals(value, null_equal=True)
    return ("polars", data) if same else None


def _encode_pandas(value: Any) -> tuple[str, bytes] | None:
    pd: Any = sys.modules["pandas"]
    pa: Any = importlib.import_module("pyarrow")

    if type(value) is not pd.DataFrame:
        return None
    if any(dtype.kind == "O" and dtype.name == "object" for dtype in [*value.dtypes, value.index.dtype]):
        # A column of Python objects may come back as another type that compares equal.
        return None
    table = pa.Table.from_pandas(value)
    data = _write(table.schema, [table])
    restored = decode_frame("dataframe", data)
    if restored.attrs != value.attrs or type(restored.index) is not type(value.index):
        return None
    if type(restored.columns) is not type(value.columns) or value.flags != restored.flags:
        return None
    try:
        pd.testing.assert_frame_equal(value, restored, check_exact=True, check_freq=True, check_flags=True)
    except AssertionError:
        return None
    return "dataframe", data
