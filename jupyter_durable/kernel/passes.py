"""Which pass a cell belongs to: one execution of a notebook from top to end with nobody in front of it.

A person who runs a completed cell again wants its results back. A scheduler that runs a notebook again wants new ones,
unless the last time was cut short: then it wants the rest. So an execution without a person belongs to a pass. A pass
is open until a kernel that came to its clean end closes it; an open pass is resumed, after a closed one begins a new
one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from jupyter_durable import clock
from jupyter_durable.errors import LogError, UsageError
from jupyter_durable.log.base import ExecutionRecord

VARIABLE = "JUPYTER_DURABLE_PASS"
"""Names the pass from outside, such as the date of a scheduled execution: the same value is the same pass."""

_NAME = re.compile(r"[\w.:+-]{1,100}")


def attended(shell: Any, path: str) -> bool:
    """Whether a person sits in front of the kernel.

    Args:
        shell: IPython's shell.
        path: the notebook, if the kernel knows it; only front ends for people tell it.
    """
    if path or not hasattr(shell, "kernel"):
        return True
    content = (shell.get_parent() or {}).get("content", {})
    return bool(content.get("allow_stdin", False))


def choose(records: Iterable[ExecutionRecord], is_closed: Callable[[str], bool]) -> str | None:
    """The pass to resume.

    Args:
        records: executions of the run that the kernel executes first.
        is_closed: whether a pass is closed.

    Returns:
        The newest pass that this run is part of; ``None`` if it is closed or there is none.
    """
    newest = max((r for r in records if r.header.pass_id), key=lambda r: r.started, default=None)
    return None if newest is None or is_closed(newest.header.pass_id) else newest.header.pass_id


def left_open(records: Iterable[ExecutionRecord], name: str) -> bool:
    """Whether a pass has a branch that is still to be resumed, by this notebook or with other parameters.

    A branch that was given up for an edited one, which then came to its end, is not.
    """
    newest: dict[str, ExecutionRecord] = {}
    origins: dict[str, str] = {}
    gone_on: set[str] = set()
    for record in records:
        header = record.header
        if header.pass_id == name:
            if header.purpose == "run":
                newest[header.branch] = record
            if header.origin is not None:
                origins[header.branch] = header.origin.branch
            gone_on.add(header.continues)
    done = {
        b
        for b, r in newest.items()
        if r.outcome is not None
        and (r.outcome.status == "completed" or (r.outcome.status == "continued" and b in gone_on))
    }
    given_up = {
        origins[b] for b in done if b in origins and newest[b].header.code != _code(newest, origins[b])
    }  # fmt: skip
    return any(branch not in done and branch not in given_up for branch in newest)


def _code(newest: Mapping[str, ExecutionRecord], branch: str) -> str:
    return newest[branch].header.code if branch in newest else ""


class Passes:
    """The one pass of this kernel."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._named = environment.get(VARIABLE, "")
        self._pass = ""
        self._folder: Path | None = None
        self._pid = os.getpid()

    def of(self, directory: str, records: Callable[[], Iterable[ExecutionRecord]], *, keep: bool = True) -> str:
        """The id of the pass; the first cell that asks decides which it is.

        Args:
            directory: of the log.
            records: gives the executions of the run that asks.
            keep: the run begins; else it only looks.

        Raises:
            UsageError: the name that the environment gives cannot be one.
        """
        if self._named:
            if not _NAME.fullmatch(self._named):
                raise UsageError(
                    f"{VARIABLE}={self._named!r} cannot name a pass: use up to 100 letters, digits and `-_.:+`."
                )
            return self._named
        if not self._pass:
            self._folder = None if directory.startswith("memory:") else Path(directory) / "passes"
            chosen = (
                choose(records(), self._is_closed) or f"{int(clock.now() * 1000):012x}-{clock.token_bytes(4).hex()}"
            )
            if not keep:
                return chosen
            self._pass = chosen
        return self._pass

    def close(self, succeeded: bool, records: Callable[[], Iterable[ExecutionRecord]]) -> None:
        """The kernel ends in an orderly way: close the pass if all went well, else leave it to be resumed.

        Args:
            succeeded: whether the last cell did.
            records: gives all executions of the log.
        """
        if not (self._pass and succeeded and self._folder and os.getpid() == self._pid):
            return
        try:
            if left_open(records(), self._pass):
                return
            self._folder.mkdir(exist_ok=True)
            self._marker(self._pass).touch()
        except (OSError, LogError):
            return  # stays open: the next execution replays what this one has completed, and pays for nothing twice

    def _marker(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{name}.closed"

    def _is_closed(self, name: str) -> bool:
        return self._folder is not None and self._marker(name).exists()
