"""What a digest sees of arrays and data frames: types, shape and content, never how memory happens to be laid out."""

from __future__ import annotations

import sys
from hashlib import blake2b
from typing import Any


def frame_parts(value: Any) -> list[Any] | None:
    """The parts of a numpy, pandas, Arrow or polars value, as bytes or as further values; ``None`` if it is none."""
    top = type(value).__module__.partition(".")[0]
    if top not in ("numpy", "pandas", "pyarrow", "polars") or top not in sys.modules:
        return None
    if top == "numpy":
        return _numpy(value)
    if top == "pandas":
        return _pandas(value)
    if top == "polars":
        frame = type(value).__name__
        if frame not in ("DataFrame", "Series"):
            return None
        columns = value.get_columns() if frame == "DataFrame" else [value]
        return [b"polars" + frame.encode(), *([one.name, str(one.dtype), one.to_list()] for one in columns)]
    return _arrow(value)


def _numpy(value: Any) -> list[Any] | None:
    numpy: Any = sys.modules["numpy"]
    if isinstance(value, numpy.dtype):
        return [b"dtype", value.descr if value.names else value.str]
    if isinstance(value, numpy.generic):
        if value.dtype.hasobject:
            return None
        return [b"npscalar", type(value).__name__, _dtype(value.dtype), _bytes(numpy, numpy.asarray(value))]
    if not isinstance(value, numpy.ndarray):
        return None
    kind = type(value).__name__.encode()
    if isinstance(value, numpy.ma.MaskedArray):
        return [kind, _plain(numpy, value.filled()), _plain(numpy, numpy.ma.getmaskarray(value))]
    return [b"array" if type(value) is numpy.ndarray else kind, *_array(numpy, value)]


def _array(numpy: Any, value: Any) -> list[Any]:
    plain = numpy.asarray(value)
    if plain.dtype.hasobject or plain.dtype.kind not in "biufcmMSUV":
        return [_dtype(plain.dtype), list(plain.shape), plain.ravel().tolist()]
    return [_dtype(plain.dtype), list(plain.shape), _bytes(numpy, plain)]


def _plain(numpy: Any, value: Any) -> list[Any]:
    return _array(numpy, numpy.asarray(value))


def _dtype(dtype: Any) -> Any:
    return [list(one) for one in dtype.descr] if dtype.names else dtype.str


def _bytes(numpy: Any, value: Any) -> bytes:
    if value.dtype.kind in "fc":
        # Every nan is one value, whatever bits it has.
        nan = numpy.isnan(value)
        if nan.any():
            value = numpy.where(nan, numpy.array(numpy.nan, dtype=value.dtype), value)
    return blake2b(numpy.ascontiguousarray(value).tobytes(), digest_size=32).digest()


def _pandas(value: Any) -> list[Any] | None:
    pandas: Any = sys.modules["pandas"]
    if isinstance(value, pandas.DataFrame):
        columns = [_column(pandas, value.iloc[:, place]) for place in range(value.shape[1])]
        return [b"DataFrame", _index(pandas, value.columns), _index(pandas, value.index), columns, dict(value.attrs)]
    if isinstance(value, pandas.Series):
        return [b"Series", value.name, _index(pandas, value.index), _column(pandas, value), dict(value.attrs)]
    if isinstance(value, pandas.Index):
        return [b"Index", _index(pandas, value)]
    if isinstance(value, pandas.api.extensions.ExtensionArray):
        return [b"array", _column(pandas, pandas.Series(value))]
    if value is pandas.NA or value is pandas.NaT:
        return [b"NA" if value is pandas.NA else b"NaT"]
    return None


def _index(pandas: Any, index: Any) -> list[Any]:
    if isinstance(index, pandas.MultiIndex):
        levels = [_index(pandas, index.get_level_values(place)) for place in range(index.nlevels)]
        return ["multi", list(index.names), levels]
    if isinstance(index, pandas.RangeIndex):
        return ["range", index.name, index.start, index.stop, index.step]
    return ["index", index.name, _column(pandas, index.to_series())]


def _column(pandas: Any, column: Any) -> list[Any]:
    numpy: Any = sys.modules["numpy"]
    dtype = column.dtype
    if isinstance(dtype, numpy.dtype):
        return [str(dtype), *_array(numpy, column.to_numpy())]
    if isinstance(dtype, pandas.CategoricalDtype):
        codes = _array(numpy, numpy.asarray(column.cat.codes).astype("int64"))
        return ["category", bool(dtype.ordered), _index(pandas, dtype.categories), codes]
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return [str(dtype), *_array(numpy, column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())]
    missing = column.isna().tolist()
    values = [None if gone else one for gone, one in zip(missing, column.tolist(), strict=True)]
    return [str(dtype), values]


def _arrow(value: Any) -> list[Any] | None:
    pyarrow: Any = sys.modules["pyarrow"]
    if isinstance(value, pyarrow.Table | pyarrow.RecordBatch):
        columns = [value.column(place) for place in range(value.num_columns)]
        names = value.schema.names
        schema = [[str(one.type), one.nullable] for one in value.schema]
        metadata = dict(value.schema.metadata or {})
        return [type(value).__name__.encode(), names, schema, metadata, [one.to_pylist() for one in columns]]
    if isinstance(value, pyarrow.Array | pyarrow.ChunkedArray):
        return [b"array", str(value.type), value.to_pylist()]
    if isinstance(value, pyarrow.Scalar):
        return [b"scalar", str(value.type), value.as_py()]
    if isinstance(value, pyarrow.DataType | pyarrow.Schema):
        return [b"type", str(value)]
    return None
