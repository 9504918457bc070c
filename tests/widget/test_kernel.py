"""The panel in a real kernel, spoken to as front ends do: on its main thread, and on a subshell, while a cell runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from jupyter_durable.demo.endpoint import Endpoint
from tests.kernel.conftest import PATIENCE, Kernel, start_kernel

__all__ = ["start_kernel"]

BLOCKING = """\
%%durable blocking
from openai import OpenAI

client = OpenAI()
for word in ("first", "second"):
    client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": word}])
"""

WAITING = """\
%%durable waiting
from openai import AsyncOpenAI

client = AsyncOpenAI()
for word in ("first", "second"):
    await client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": word}])
"""


class Page:
    """The page of one panel, without a page."""

    def __init__(self, kernel: Kernel, subshell: str = "") -> None:
        self.kernel = kernel
        kernel.ok("panel = durable.panel()", subshell=subshell)
        self.comm = kernel.value("panel.comm.comm_id")

    def send(self, number: int, *path: str, subshell: str = "", **parameters: Any) -> None:
        """Send a question and do not wait."""
        content = {"durable": "ask", "question": str(number), "path": path, "parameters": parameters}
        data = {"method": "custom", "content": content}
        message = self.kernel.client.session.msg("comm_msg", {"comm_id": self.comm, "data": data})
        if subshell:
            message["header"]["subshell_id"] = subshell
        self.kernel.client.shell_channel.send(message)

    def next(self, kind: str) -> dict[str, Any]:
        """The next message of this kind."""
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=max(0.1, deadline - time.monotonic()))
            if message["msg_type"] == "comm_msg" and message["content"]["comm_id"] == self.comm:
                content: dict[str, Any] = message["content"]["data"].get("content", {})
                if content.get("durable") == kind:
                    return content

    def ask(self, number: int, *path: str, subshell: str = "", **parameters: Any) -> Any:
        """Send a question and wait for its answer."""
        self.send(number, *path, subshell=subshell, **parameters)
        while (answer := self.next("answer"))["question"] != str(number):
            pass
        assert answer["status"] == 200, answer
        return json.loads(answer["answer"])


@pytest.fixture
def kernel(start_kernel: Callable[..., Kernel], endpoint: Endpoint) -> Kernel:
    """A kernel whose models are those of the endpoint."""
    return start_kernel(OPENAI_API_KEY="sk-of-the-tests", OPENAI_BASE_URL=endpoint.url)


@pytest.fixture
def endpoint() -> Any:
    """A model endpoint that can hold its answers back."""
    with Endpoint() as serving:
        yield serving


@pytest.mark.parametrize("made_there", [False, True])
def test_a_page_with_a_subshell_is_answered_while_a_cell_blocks_the_main_thread(
    kernel: Kernel, endpoint: Endpoint, made_there: bool
):
    kernel.client.control_channel.send(kernel.client.session.msg("create_subshell_request", {}))
    subshell = kernel.client.get_control_msg(timeout=PATIENCE)["content"]["subshell_id"]
    page = Page(kernel, subshell if made_there else "")
    page.ask(1, "runs", subshell=subshell)
    endpoint.bill.hold(2)
    request = kernel.send(BLOCKING, "c1")
    assert endpoint.bill.wait_in_flight(2, PATIENCE)
    page.next("hint")

    (run,) = page.ask(2, "runs", subshell=subshell)["runs"]
    found = page.ask(3, "runs", run["run"], "branches", run["branch"], "steps", subshell=subshell)

    assert run["status"] == "running"
    assert [row["status"] for row in found["rows"]] == ["completed", "running"]
    endpoint.bill.release()
    reply = kernel.client.get_shell_msg(timeout=PATIENCE)
    while reply["parent_header"]["msg_id"] != request:
        reply = kernel.client.get_shell_msg(timeout=PATIENCE)
    assert reply["content"]["status"] == "ok"
    assert page.ask(4, "runs", subshell=subshell)["runs"][0]["status"] == "completed"


def test_a_question_is_answered_while_an_asynchronous_cell_waits(kernel: Kernel, endpoint: Endpoint):
    page = Page(kernel)
    endpoint.bill.hold(2)
    kernel.send(WAITING, "c1")
    assert endpoint.bill.wait_in_flight(2, PATIENCE)

    (run,) = page.ask(1, "runs")["runs"]
    found = page.ask(2, "runs", run["run"], "branches", run["branch"], "steps", "1")

    assert (run["status"], found["row"]["status"]) == ("running", "completed")
    endpoint.bill.release()


def test_without_a_subshell_steps_come_unasked_and_the_answer_comes_after_the_cell(kernel: Kernel, endpoint: Endpoint):
    page = Page(kernel)
    page.ask(1, "runs")
    endpoint.bill.hold(2)
    kernel.send(BLOCKING, "c1")
    assert endpoint.bill.wait_in_flight(2, PATIENCE)
    page.send(2, "runs")

    rows: dict[int, str] = {}
    while sorted(rows.values()) != ["completed", "running"]:
        steps = json.loads(page.next("hint")["fresh"][2]["answer"])
        rows |= {row["number"]: row["status"] for row in steps["rows"]}
    endpoint.bill.release()

    answer = page.next("answer")
    assert answer["question"] == "2"
    assert json.loads(answer["answer"])["runs"][0]["status"] == "completed"
