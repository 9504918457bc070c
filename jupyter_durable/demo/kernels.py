"""Executes a notebook in a real kernel that can be killed in the middle.

The kernel is a process of its own, as under JupyterLab; nbclient plays the front end from a thread, so that the
caller can watch, and kill, while cells run.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import re
import signal
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from jupyter_durable import clock
from jupyter_durable.errors import UsageError

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

Ending = Literal["completed", "died", "failed"]


class NotebookFailed(Exception):
    """A cell of the notebook raised, or the kernel could not be used; the text is what the kernel said."""


class NotebookRun:
    """One execution of a notebook, from top to end, in a new kernel.

    The executed notebook, with its outputs, is written back to its file. Leaving the ``with`` block kills a kernel
    that still runs.

    Attributes:
        path: the notebook.
        ending: how it ended; ``None`` while it runs. *died* means that the kernel process went away.
        seconds: how long it took; 0 while it runs.
    """

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        """Prepare, without starting anything.

        Args:
            path: the notebook; its folder is where the kernel works.
            environment: variables for the kernel, on top of this process's.

        Raises:
            UsageError: the packages that execute notebooks are not installed.
        """
        try:
            import nbclient
            import nbformat
        except ImportError as error:
            raise UsageError(
                f"{error.name} is not installed, and the demo needs it to execute a notebook: "
                "pip install 'jupyter_durable[demo]'"
            ) from None
        self.path = path
        self.ending: Ending | None = None
        self.seconds = 0.0
        self._environment = {**os.environ, **environment}
        self._notebook = nbformat.read(path, as_version=4)
        self._client: Any = nbclient.NotebookClient(
            self._notebook, timeout=None, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
        )
        # nbclient reports a dead kernel as an error on stderr; here it is what was asked for.
        self._client.log = logging.getLogger(f"{__name__}.nbclient")
        self._client.log.addHandler(logging.NullHandler())
        self._client.log.propagate = False
        self._error = ""
        self._thread = threading.Thread(target=self._execute, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive():
            self.kill()
        self._thread.join(timeout=30)

    @property
    def running(self) -> bool:
        """Whether cells are still being executed."""
        return self._thread.is_alive()

    def kill(self) -> None:
        """End the kernel by SIGKILL: it gets no chance to write or say anything."""
        provisioner = getattr(self._client.km, "provisioner", None)
        pid = getattr(provisioner, "pid", None)
        if pid:
            os.kill(pid, signal.SIGKILL)

    def wait(self) -> Ending:
        """Wait for the end.

        Raises:
            NotebookFailed: a cell raised.
        """
        self._thread.join()
        self.check()
        assert self.ending is not None
        return self.ending

    def check(self) -> None:
        """Raise if the notebook has failed.

        Raises:
            NotebookFailed: a cell raised, or the kernel did not start.
        """
        if self.ending == "failed":
            raise NotebookFailed(self._error)

    def _execute(self) -> None:
        import nbformat
        from nbclient.exceptions import CellExecutionError, DeadKernelError

        began = clock.monotonic()
        ending: Ending
        # A kernel talks to its own stderr about its circumstances: of interest only if it fails.
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            try:
                # Not `execute`: that one leaves an event loop open in every thread that uses it.
                asyncio.run(self._client.async_execute(env=self._environment, stderr=said))
                ending = "completed"
            except DeadKernelError:
                ending = "died"
            except CellExecutionError as error:
                ending, self._error = "failed", _COLOURS.sub("", str(error))
            except Exception as error:
                # The kernel could not be started, or was killed between two cells, which breaks the connection.
                said.seek(0)
                ending, self._error = "failed", f"{type(error).__name__}: {error}\n{said.read()[-2_000:]}"
        # nbclient forgets to take this back where a kernel did not start, and fails on it when the process ends.
        atexit.unregister(self._client._cleanup_kernel)
        nbformat.write(self._notebook, self.path)
        self.seconds = clock.monotonic() - began
        self.ending = ending
