"""The list of runs as text and as simple HTML: what stays of a panel where no widget is drawn."""

from __future__ import annotations

import datetime
from html import escape
from typing import Any

from jupyter_durable.errors import DurableError
from jupyter_durable.widget.answering import Desk, place

_MOST = 20
_COLUMNS = ("run", "status", "branch", "replayed", "new", "began")


def both(desk: Desk, notebook: str) -> tuple[str, str]:
    """Text and HTML of the runs of a notebook, the last one first."""
    try:
        title, rows, more = _told(desk, notebook)
    except (DurableError, OSError) as error:
        return f"Durable cells: {error}", f"<p>Durable cells: {escape(str(error))}</p>"
    if not rows:
        return title, f"<p>{escape(title)}</p>"
    widths = [max(len(row[i]) for row in [_COLUMNS, *rows]) for i in range(len(_COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [_COLUMNS, *rows]]
    text = "\n".join([title, *(line.rstrip() for line in lines), *more])
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in _COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    note = "".join(f"<p>{escape(line)}</p>" for line in more)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return text, f"<div><p>{escape(title)}</p>{table}{note}</div>"


def _told(desk: Desk, notebook: str) -> tuple[str, list[tuple[str, ...]], list[str]]:
    from jupyter_durable.server import listing

    where = place(notebook)
    found = listing.runs(desk.logs.find(where), where)
    runs: list[Any] = [item for item in found.runs if item.here] if where.file is not None else list(found.runs)
    if not runs:
        return "Durable cells: no run yet. Begin a cell with %%durable.", [], []
    rows: list[tuple[str, ...]] = [
        (
            item.name,
            item.status,
            item.branch_name,
            "" if item.replayed is None else str(item.replayed),
            "" if item.live is None else str(item.live),
            datetime.datetime.fromtimestamp(item.started).astimezone().strftime("%Y-%m-%d %H:%M:%S"),
        )
        for item in runs[:_MOST]
    ]
    title = f"Durable cells: {len(runs)} run{'s' * (len(runs) != 1)}, as of {_now()}"
    return title, rows, [f"and {len(runs) - _MOST} more"] if len(runs) > _MOST else []


def _now() -> str:
    from jupyter_durable import clock

    return datetime.datetime.fromtimestamp(clock.now()).astimezone().strftime("%Y-%m-%d %H:%M:%S")
