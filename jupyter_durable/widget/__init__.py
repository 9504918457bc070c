"""The panel in an output cell: the same view as in JupyterLab, for VS Code, Colab, marimo and all other front ends.

``durable.panel()`` comes here. The page asks the kernel by messages of the widget instead of the Jupyter server by
REST; both are answered by the table of routes in `jupyter_durable.server.routes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_durable.errors import UsageError

if TYPE_CHECKING:
    from jupyter_durable.widget.output import Panel

EXTRA = 'pip install "jupyter_durable[widget]"'
LOWEST, HIGHEST = 200, 4000
"""Pixels."""


def panel(run: str = "", height: int = 480) -> Panel:
    """See `jupyter_durable.api.Durable.panel`."""
    if isinstance(height, bool) or not isinstance(height, int) or not LOWEST <= height <= HIGHEST:
        raise UsageError(
            f"`height` is a number of pixels from {LOWEST} to {HIGHEST}, such as `durable.panel(height=600)`."
        )
    if not isinstance(run, str):
        raise UsageError('`run` is the name or the id of a run: `durable.panel("report")`.')
    try:
        from jupyter_durable.widget.output import make
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"anywidget", "ipywidgets"}:
            raise
        raise UsageError(
            f"`durable.panel()` is drawn by anywidget, and `{error.name}` is not installed in this kernel's "
            f"environment. Install it with `{EXTRA}`, then restart the kernel. `%durable history` shows the same "
            "steps as text."
        ) from None
    return make(run, height)
