"""Model calls through the OpenAI SDK against an endpoint on loopback, which is a process of its own.

The prices are loaded and the SDK is warm before the measurement, as both are in a kernel that has asked once. CPU time
is that of the client's process: what the endpoint does, and the waiting for it, is the same for all.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.measure import Meter, Numbers, size_of

PROMPT = "word " * 400
"""2 KB, with the answer of the endpoint and what the protocol adds."""


@contextmanager
def endpoint() -> Iterator[str]:
    """The base URL of an endpoint that runs as long as the block."""
    command = [sys.executable, "-m", "jupyter_durable.demo.endpoint", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()


def _client(url: str) -> Any:
    import openai

    return openai.OpenAI(base_url=url, api_key="any", max_retries=0)


def _asker(client: Any, *, stream: bool) -> Any:
    def ask(i: int) -> None:
        message = {"role": "user", "content": f"{i} {PROMPT}"}
        answer = client.chat.completions.create(model="counting-model-1", messages=[message], stream=stream)
        if stream:
            for _ in answer:
                pass

    return ask


def chat(params: dict[str, Any]) -> Numbers:
    """Calls without us, with our hooks in place and no run, recorded, and replayed."""
    n, mode = params["n"], params["mode"]
    with endpoint() as url:
        ask = _asker(_client(url), stream=params["stream"])
        context: Any = nullcontext
        if mode != "bare":
            from jupyter_durable import durable
            from jupyter_durable.capture.prices import priced
            from jupyter_durable.event_data import Usage

            log = str(Path(params["directory"]) / "log")
            priced(Usage(provider="openai", model="gpt-5", input=1, output=1))
            with durable.run("warm", log=log, durability="process"):
                ask(-1)
            if mode in ("record", "replay"):
                context = lambda: durable.run("bench", log=log, durability="process")  # noqa: E731
            if mode == "replay":
                with context():
                    for i in range(n + 20):
                        ask(i)
        with context():
            for i in range(20):
                ask(i)
            with Meter() as meter:
                for i in range(20, n + 20):
                    ask(i)
        return meter.per(n)


def conversation(params: dict[str, Any]) -> Numbers:
    """Turns of a conversation, each sent with all before it: bytes of the log for each byte that is new."""
    from jupyter_durable import durable

    where = Path(params["directory"]) / "log"
    messages: list[dict[str, str]] = []
    new = 0
    with endpoint() as url:
        client = _client(url)
        with durable.run("bench", log=str(where), durability="process"):
            for turn in range(params["n"]):
                text = f"{turn} {PROMPT[: params['bytes']]}"
                messages.append({"role": "user", "content": text})
                raw = client.chat.completions.with_raw_response.create(model="counting-model-1", messages=messages)
                answer = raw.parse().choices[0].message.content
                messages.append({"role": "assistant", "content": answer})
                new += len(text) + len(raw.content) + len(answer)
            journal = size_of(where)
    return {"journal": journal / new, "rest": size_of(where) / new, "new": new / params["n"]}
