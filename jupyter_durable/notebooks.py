"""Which notebook of a log a path leads to. Pure: files are asked about by functions that are handed in.

The log remembers where each notebook was when its cells ran, and what Jupyter Server renamed since. So a renamed
notebook is found again, one that is created under the old name is new, and a copy is not taken for its original.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from jupyter_durable.event_data import ExecutionHeader


class Renamed(msgspec.Struct, frozen=True, kw_only=True):
    """A notebook, or a folder of notebooks, has another path now."""

    at: float
    """When, in seconds since the epoch."""
    before: str
    """Absolute path."""
    after: str


@dataclass(frozen=True, slots=True)
class Known:
    """What a log remembers of the notebook of one execution."""

    started: float
    header: ExecutionHeader


def owners(known: Iterable[Known], renames: Iterable[Renamed]) -> dict[str, str]:
    """Path -> id of the notebook that is there now, as far as the log can tell; in the order of their last mention.

    Args:
        known: executions, oldest first.
        renames: what was renamed, oldest first.
    """
    told: list[tuple[float, Known | Renamed]] = [(each.started, each) for each in known]
    told += [(each.at, each) for each in renames]
    told.sort(key=lambda each: each[0])
    path_of: dict[str, str] = {}  # a notebook is in one place: where it was seen last
    for _, each in told:
        if isinstance(each, Known):
            notebook, path = each.header.notebook, each.header.path
            if notebook:
                _settle(path_of, notebook, path)
        else:
            for notebook, path in list(path_of.items()):
                if path == each.before or path.startswith(each.before + os.sep):
                    _settle(path_of, notebook, each.after + path[len(each.before) :])
    return {path: notebook for notebook, path in path_of.items() if path}


def _settle(path_of: dict[str, str], notebook: str, path: str) -> None:
    for other, taken in path_of.items():
        if taken == path:
            path_of[other] = ""  # it was there before, and is no more
    path_of.pop(notebook, None)
    path_of[notebook] = path


def find_notebook(
    path: str,
    cells: Iterable[str],
    known: Sequence[Known],
    renames: Iterable[Renamed],
    exists: Callable[[str], bool],
    same_run: Callable[[ExecutionHeader], bool] = lambda _: False,
) -> tuple[str, str]:
    """Find a notebook in what the log remembers.

    Args:
        path: where it lies now.
        cells: ids of its cells.
        known: executions of the log, oldest first.
        renames: what was renamed, oldest first.
        exists: whether another path still leads to a notebook.
        same_run: whether an execution was one of a cell that this notebook has, although the cells' ids differ.

    Returns:
        Its id, empty for a notebook that is new or a copy; and the path that it had when it ran last, if that is
        another one.
    """
    where = owners(known, renames)
    last = _last_paths(known)
    if path in where:
        found = where[path]
        return found, "" if last[found] == path else last[found]
    ids = {*cells} - {""}
    for other, notebook in reversed(where.items()):
        if exists(other):
            continue
        # Renamed by somebody who does not tell, such as `mv` or git: then its cells do.
        for each in known:
            if each.header.notebook == notebook and (each.header.cell in ids or same_run(each.header)):
                return notebook, last[notebook]
    return "", ""


def _last_paths(known: Iterable[Known]) -> Mapping[str, str]:
    return {each.header.notebook: each.header.path for each in known}
