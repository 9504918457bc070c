"""Real kernels for the tests of the cell."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

PATIENCE = 60.0
"""Seconds after which a kernel that says nothing counts as hanging; nothing waits that long when all is well."""

SETUP = """\
%load_ext jupyter_durable
from jupyter_durable import step, durable
import asyncio, time, threading
"""


@dataclass
class Ran:
    """What a kernel said about one cell."""

    reply: dict[str, Any] = field(default_factory=dict)
    outputs: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def status(self) -> str:
        """``ok``, ``error`` or ``aborted``."""
        return str(self.reply["status"])

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The messages of one kind."""
        return [content for each, content in self.outputs if each == kind]

    @property
    def results(self) -> list[str]:
        """``Out[n]``."""
        return [content["data"]["text/plain"] for content in self.of("execute_result")]

    @property
    def text(self) -> str:
        """What was printed."""
        return "".join(content["text"] for content in self.of("stream"))

    @property
    def displays(self) -> list[str]:
        """Displays as plain text, in their last form."""
        shown: dict[str, str] = {}
        for kind in ("display_data", "update_display_data"):
            for number, content in enumerate(self.of(kind)):
                name = content.get("transient", {}).get("display_id") or f"{kind} {number}"
                shown[name] = content["data"].get("text/plain", "")
        return list(shown.values())

    @property
    def summary(self) -> str:
        """The summary of a durable cell, in its last form."""
        return next((text for text in reversed(self.displays) if " step" in text and "·" in text), "")

    @property
    def errors(self) -> list[str]:
        """Tracebacks, without colours."""
        return [plain("\n".join(content["traceback"])) for content in self.of("error")]

    @property
    def error(self) -> str:
        """The one traceback; a second one would be a mistake."""
        (one,) = self.errors
        return one


def plain(text: str) -> str:
    """A text without the codes of a terminal's colours."""
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class Kernel:
    """A kernel in a process of its own, spoken to as a front end does."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.start()

    def start(self) -> None:
        """Start a new process."""
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(self.folder), env={**os.environ, **self.environment})
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)

    def end(self, *, now: bool = True) -> None:
        """End the process: at once, or by the message that a front end sends."""
        with contextlib.suppress(RuntimeError):
            self.manager.shutdown_kernel(now=now)
        self.client.stop_channels()
        self.manager.cleanup_resources()

    def kill(self) -> None:
        """SIGKILL, as the out-of-memory killer does."""
        os.kill(self.pid, signal.SIGKILL)

    def restart(self, **environment: str) -> None:
        """A new process after the old one is gone; setup cells are to be run again."""
        self.kill()
        self.end()
        self.environment |= environment
        self.start()

    @property
    def connection(self) -> Path:
        """The connection file."""
        return Path(self.manager.connection_file)

    @property
    def pid(self) -> int:
        """The process."""
        pid: int = self.manager.provisioner.pid
        return pid

    def interrupt(self) -> None:
        """The stop button."""
        self.manager.interrupt_kernel()

    def send(
        self,
        code: str,
        cell: str = "",
        *,
        silent: bool = False,
        stdin: bool = True,
        subshell: str = "",
        **metadata: Any,
    ) -> str:
        """Ask for a cell and do not wait.

        Args:
            code: the cell.
            cell: its id, as JupyterLab sends it.
            silent: as front ends do for their own purposes.
            stdin: whether a person could be asked for input.
            subshell: id of the subshell that is to run it.
            metadata: more of the request's metadata.

        Returns:
            The id of the request.
        """
        content = {
            "code": code, "silent": silent, "store_history": not silent, "user_expressions": {}, "allow_stdin": stdin,
            "stop_on_error": True,
        }  # fmt: skip
        if cell:
            metadata["cellId"] = cell
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        if subshell:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def collect(self, request: str, until: Callable[[Ran], bool] | None = None) -> Ran:
        """Gather what the kernel says about a request.

        Args:
            request: its id.
            until: stop gathering when this is true; default: when the cell is over.
        """
        ran = Ran()
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self.client.get_iopub_msg(timeout=max(0.1, deadline - time.monotonic()))
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind not in ("status", "execute_input"):
                ran.outputs.append((kind, content))
                if until is not None and until(ran):
                    return ran
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE)
            if reply["parent_header"]["msg_id"] == request:
                ran.reply = reply["content"]
                return ran

    def run(self, code: str, cell: str = "", **options: Any) -> Ran:
        """Run a cell to its end."""
        return self.collect(self.send(code, cell, **options))

    def run_until(self, text: str, code: str, cell: str = "", **options: Any) -> str:
        """Start a cell and wait until it has printed a text; return the id of the request."""
        request = self.send(code, cell, **options)
        ran = self.collect(request, lambda ran: text in ran.text)
        assert text in ran.text, ran
        return request

    def ok(self, code: str, cell: str = "", **options: Any) -> Ran:
        """Run a cell that must come to its end."""
        ran = self.run(code, cell, **options)
        assert ran.status == "ok", ran.errors
        return ran

    def value(self, expression: str) -> Any:
        """The value of an expression, which must be made of literals."""
        import ast

        (result,) = self.ok(expression).results
        return ast.literal_eval(result)


@pytest.fixture
def start_kernel(tmp_path: Path, key_file: Path) -> Iterator[Callable[..., Kernel]]:
    """Starts kernels of this test alone, in its own folder: for crashes, and for whatever a neighbour could see."""
    started: list[Kernel] = []

    def start(folder: Path | None = None, setup: str = SETUP, **environment: str) -> Kernel:
        kernel = Kernel(folder or tmp_path, {"JUPYTER_DURABLE_KEY_FILE": str(key_file), **environment})
        started.append(kernel)
        if setup:
            kernel.ok(setup)
        return kernel

    yield start
    for kernel in started:
        kernel.end()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel for tests that leave nothing but runs of their own behind: starting one takes a second."""
    folder = tmp_path_factory.mktemp("kernel")
    shared = Kernel(folder, {"JUPYTER_DURABLE_KEY_FILE": str(folder / "durable.key"), "JUPYTER_DURABLE_LOG": ""})
    shared.ok(SETUP)
    yield shared
    shared.end()
