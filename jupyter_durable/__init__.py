"""jupyter_durable: resumable agents in Jupyter. A ``%%durable`` cell survives kill -9, and no step is paid for twice.

The public names are those of `__all__`; everything heavy is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jupyter_durable.api import durable, step
    from jupyter_durable.client import connect
    from jupyter_durable.kernel.extension import load_ipython_extension, unload_ipython_extension

__all__ = ["connect", "durable", "errors", "load_ipython_extension", "step", "unload_ipython_extension"]

_WHERE = {
    "step": "jupyter_durable.api",
    "durable": "jupyter_durable.api",
    "connect": "jupyter_durable.client",
    "load_ipython_extension": "jupyter_durable.kernel.extension",
    "unload_ipython_extension": "jupyter_durable.kernel.extension",
    # Jupyter Server asks by this name.
    "_jupyter_server_extension_points": "jupyter_durable.server.app",
}


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where the built panel lies; Jupyter asks by this name."""
    return [{"src": "labextension", "dest": "jupyter-durable"}]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "errors":
        return import_module("jupyter_durable.errors")
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'jupyter_durable' has no attribute {name!r}")
