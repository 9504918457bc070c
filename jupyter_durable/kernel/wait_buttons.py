"""What tells front ends of ours that a cell waits, so that they draw buttons into its output.

Only ids, no question and no value: whoever draws them asks the log, which knows what is asked and whether it still is.
"""

from __future__ import annotations

from typing import Any

from jupyter_durable.engine.execution import Execution

MIME = "application/vnd.jupyter-durable.waits+json"
"""Type of the entry in the bundle of a cell's summary. Other front ends leave it out."""

FORMAT = 1
"""Version of the shape. A field never changes its meaning; new ones may come."""


def waits_entry(execution: Execution) -> dict[str, Any]:
    """The entry for what a cell waits for; empty when nobody is to answer anything.

    Args:
        execution: of the cell; one that waits, or that is parked.

    Returns:
        By `MIME`: ``format``, ``run`` (id), ``name`` (of the run), and ``requests`` (ids, in the order of asking).
    """
    if execution.parked is not None:
        requests = list(execution.parked.facts["requests"])
    elif execution.outcome is None and execution.room is not None:
        requests = [wait.info.request for wait in list(execution.room.waits) if wait.call.kind != "timer"]
    else:
        requests = []
    if not requests:
        return {}
    header = execution.header
    return {MIME: {"format": FORMAT, "run": header.run, "name": header.name, "requests": requests}}
