"""The words of the operator: look at runs and steps, decide, settle, query, examine. Nothing here runs user code.

Everything works on a log alone, with or without a kernel, also while a kernel writes it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_durable import errors
from jupyter_durable.cancelling import cancel, find_resumed, resume
from jupyter_durable.comparisons import diff, diff_frame
from jupyter_durable.engine.forking import fork, switch
from jupyter_durable.listings import (
    ChildView,
    RunStatus,
    RunView,
    StepView,
    children,
    find_branch,
    find_child,
    find_run,
    runs,
    steps,
    views_of,
)
from jupyter_durable.log import open_log
from jupyter_durable.log.base import EventLog
from jupyter_durable.person import who
from jupyter_durable.running import log_directory
from jupyter_durable.sampled import samples
from jupyter_durable.settling import decide, settle
from jupyter_durable.undoing import UndoPlan, UndoRow, plan_undo

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "ChildView", "RunStatus", "RunView", "StepView", "UndoPlan", "UndoRow", "cancel", "children", "connect",
    "decide", "diff", "diff_frame", "directory", "existing_log", "find_branch", "find_child", "find_resumed",
    "find_run", "fork", "plan_undo", "resume", "runs", "samples", "settle", "sql", "steps", "switch", "views_of", "who",
]  # fmt: skip


def directory(path: str | os.PathLike[str] | None = None) -> str:
    """The log directory that is meant: the given one, a folder that holds ``.durable``, or the default."""
    if path is None:
        return log_directory()
    given = Path(path)
    if (given / ".durable").is_dir():
        return str(given / ".durable")
    return str(given)


def existing_log(path: str | os.PathLike[str] | None = None) -> EventLog:
    """Open a log that must be there already.

    Raises:
        LogUnusable: there is none.
    """
    return open_log(directory(path), create=False)


def connect(path: str | os.PathLike[str] | None = None) -> duckdb.DuckDBPyConnection:
    """Query a log with DuckDB: everything recorded so far, in the views ``runs``, ``branches``, ``executions``,
    ``events`` and ``steps``.

    Args:
        path: the log directory, or the folder that holds ``.durable``; default: that of the current folder.

    Returns:
        A connection of your own. Close it soon: while it is open, other processes cannot fold.
    """
    from jupyter_durable.log.query import connect as connect_to

    existing_log(path)
    return connect_to(directory(path))


def sql(path: str | os.PathLike[str] | None, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run one query over a log.

    Args:
        path: the log directory, or the folder that holds ``.durable``.
        query: SQL over the views ``runs``, ``branches``, ``executions``, ``events``, ``steps``.

    Returns:
        Column names and rows.

    Raises:
        UsageError: DuckDB does not accept the query; its words are in the message.
    """
    import duckdb

    if not query.strip(" ;\n\t"):
        raise errors.UsageError("The query is empty. Try `SELECT * FROM steps`.")
    with connect(path) as connection:
        try:
            cursor = connection.execute(query)
            names = [column[0] for column in cursor.description or ()]
            return names, cursor.fetchall()
        except duckdb.Error as error:
            raise errors.UsageError(f"DuckDB does not accept the query: {error}") from None
