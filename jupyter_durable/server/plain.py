"""Values of DuckDB, Arrow and numpy as JSON has them."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

_SAFE = 2**53
"""JavaScript holds whole numbers exactly up to this."""


def plain(value: Any) -> Any:
    """A value as JSON has it. What JSON, or a browser, cannot say without loss becomes text.

    >>> plain(decimal.Decimal("1.50")), plain(datetime.timedelta(minutes=2)), plain({"a": (1, float("nan"))})
    (1.5, 120.0, {'a': [1, 'nan']})
    >>> plain(2**60)
    '1152921504606846976'
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -_SAFE <= value <= _SAFE else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, decimal.Decimal):
        return float(value) if value.is_finite() and decimal.Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)
