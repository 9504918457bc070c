"""The hook into tqdm: a bar inside of a durable run reports to ``durable.progress`` by itself.

All bars (``tqdm``, ``tqdm.auto``, ``tqdm.notebook``) draw themselves in ``refresh``, some ten times a second at most.
"""

from __future__ import annotations

import functools
import inspect
import os
from types import ModuleType
from typing import Any

from jupyter_durable.engine.context import current
from jupyter_durable.engine.pulse import show
from jupyter_durable.errors import CannotHook
from jupyter_durable.event_data import Progress


def install(module: ModuleType) -> None:
    """Hook into ``tqdm.std``.

    Raises:
        CannotHook: it is not as it was known.
    """
    cls = getattr(module, "tqdm", None)
    method = getattr(cls, "refresh", None)
    if cls is None or not callable(method) or list(inspect.signature(method).parameters)[:1] != ["self"]:
        raise CannotHook(
            "`tqdm` is not as it was known (tqdm.refresh() is missing), so its bars do not report to "
            "`durable.progress`. Call that yourself, or install another version of `tqdm`."
        )
    if not getattr(method, "__durable__", False):
        cls.refresh = _refresh(method)


def _refresh(original: Any) -> Any:
    @functools.wraps(original)
    def refresh(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = current()
        if frame is not None and frame.execution.pid == os.getpid():
            text = str(self.desc or "").strip().rstrip(":")
            unit = "" if self.unit == "it" else self.unit
            said = " ".join(part for part in (text, unit) if part)
            total = None if self.total is None else float(self.total)
            show(frame, Progress(done=float(self.n), total=total, text=said))
        return original(self, *args, **kwargs)

    refresh.__durable__ = True  # type: ignore[attr-defined]
    return refresh
