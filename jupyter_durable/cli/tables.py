"""Text for a terminal: aligned tables, times, sizes, and foreign words that cannot steer the terminal.

A log may come from anybody, and a name in it may hold an escape sequence that clears the screen, retitles the window
or hides what follows. `inert` shows such characters as their codes; everything printed for people passes it.
"""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

WIDEST = 60
"""Columns that a cell of a table takes at most; what is longer is cut, and in ``--json`` it is whole."""


def inert(text: object, limit: int = 0) -> str:
    r"""A text on one line in which no character does anything but stand there.

    Args:
        text: what to show.
        limit: cut after so many columns; 0 keeps everything.

    >>> inert("\x1b[2Jreport\n\u202egpj")
    '\\x1b[2Jreport\\n\\u202egpj'
    >>> inert("a very long name", 10)
    'a very lo…'
    """
    raw = str(text)
    if limit and len(raw) > 4 * limit:  # a name of megabytes is not looked at character by character
        raw = raw[: 4 * limit]
    shown = raw if raw.isprintable() else "".join(char if char.isprintable() else _code(char) for char in raw)
    if not limit or width(shown) <= limit:
        return shown
    kept, columns = [], 0
    for char in shown:
        columns += _columns(char)
        if columns > limit - 1:
            break
        kept.append(char)
    return "".join(kept) + "…"


def _code(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii") if not "\ud800" <= char <= "\udfff" else f"\\u{ord(char):04x}"


def sentence(text: str) -> str:
    r"""A message on one line, without the drawing that DuckDB puts under a query.

    >>> sentence("Parser Error: syntax error\n\nLINE 1: selec 1\n        ^^^^^")
    'Parser Error: syntax error LINE 1: selec 1'
    """
    return inert(" ".join(text.split()).rstrip("^").rstrip())


def width(text: str) -> int:
    """Columns that a printable text takes in a terminal.

    >>> width("naïve"), width("報告")
    (5, 4)
    """
    return len(text) if text.isascii() else sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def table(names: Sequence[str], rows: Iterable[Sequence[Any]], *, widest: int = WIDEST) -> str:
    """A table with a head; columns of numbers stand to the right.

    Args:
        names: the head.
        rows: the cells, as many in a row as there are names; ``None`` is shown as nothing.
        widest: columns that a cell takes at most.

    >>> print(table(["STEP", "NAME"], [[1, "search"], [12, "write"]]))
    STEP  NAME
       1  search
      12  write
    """
    rows = [list(row) for row in rows]
    shown = [[inert(name, widest) for name in names]]
    shown += [["" if cell is None else inert(cell, widest) for cell in row] for row in rows]
    columns = range(len(names))
    widths = [max(width(line[i]) for line in shown) for i in columns]
    right = [any(row[i] is not None for row in rows) and all(_number(row[i]) for row in rows) for i in columns]
    lines = []
    for line in shown:
        padded = [
            (" " * (widths[i] - width(cell)) + cell) if right[i] else (cell + " " * (widths[i] - width(cell)))
            for i, cell in enumerate(line)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _number(cell: Any) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and values below each other, without those that are empty.

    >>> print(facts([("run", "report"), ("notebook", ""), ("status", "completed")]))
    run     report
    status  completed
    """
    kept = [(name, inert(value)) for name, value in pairs if value not in ("", None)]
    left = max((len(name) for name, _ in kept), default=0)
    return "\n".join(f"{name:<{left}}  {value}" for name, value in kept)


def moment(seconds: float | None) -> str:
    """A time of the log in local time, to the second; empty if there is none, or if it is no time at all."""
    if seconds is None:
        return ""
    try:
        return datetime.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "?"


def duration(seconds: float | None) -> str:
    """How long something took.

    >>> duration(0.0004), duration(0.0042), duration(6.21), duration(200), duration(90_000)
    ('0.4 ms', '4 ms', '6.2 s', '3 min 20 s', '25 h 0 min')
    """
    if seconds is None:
        return ""
    if seconds < 0.00095:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> count(1, "branch", "branches"), count(2, "step")
    ('1 branch', '2 steps')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


__all__ = ["count", "duration", "facts", "inert", "moment", "sentence", "table", "width"]
