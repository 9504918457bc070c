"""Model calls that capture cannot record: websockets, gRPC, and what ``botocore`` sends to Bedrock.

Nothing of them is changed. One in the glue code of a run is told about, once in an execution; under ``--replay-only``
it is refused. Inside of a step it is in good hands, and nothing is said.
"""

from __future__ import annotations

import inspect
import os
import re
from functools import wraps
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from jupyter_durable.capture.inside import INSIDE
from jupyter_durable.capture.model_hosts import is_model_host
from jupyter_durable.capture.providers.base import Ask
from jupyter_durable.capture.settings import SETTINGS
from jupyter_durable.capture.state import CaptureState
from jupyter_durable.engine.context import current
from jupyter_durable.errors import CannotHook, ReplayOnlyError, RunStopped

_REALTIME = re.compile(r"/realtime\b|/live\b|BidiGenerateContent|/listen$|/speak$|/stream-input$", re.IGNORECASE)
"""Paths of websockets that speak with a model."""

_MODEL_SERVICE = re.compile(
    r"/google\.(ai\.generativelanguage|cloud\.(aiplatform|speech|texttospeech|language|translation|vision))\."
    r"|/xai_api\.|GenerativeService/|PredictionService/|/inference\.GRPCInferenceService/|/nvidia\.riva\.",
)
"""Methods of gRPC that ask a model, wherever it runs."""


def tell(what: str) -> None:
    """Say that a call which is made now is not recorded.

    Args:
        what: the call, such as ``A websocket to api.openai.com``.

    Raises:
        RunStopped: the run may not spend anything.
    """
    frame = current()
    if frame is None or frame.step is not None or INSIDE.get():
        return
    execution = frame.execution
    if execution.ended or execution.pid != os.getpid():
        return
    if execution.spec.flags.replay_only:
        raise RunStopped(
            ReplayOnlyError(
                f"{execution.place_of_run()}: `--replay-only` promises to spend nothing. {what} is not recorded, so it "
                f"cannot be replayed, and it was refused. Put it into a function with `@step`, and run the cell once "
                f"without `--replay-only`.",
                **execution.where,
            )
        )
    CaptureState.of(execution).say_once(
        f"unseen {what}", -1,
        f"{what} is not recorded: each re-run pays for it again. Put it into a function with `@step`, and what that "
        f"returns is recorded.",
    )  # fmt: skip


def socket_opened(host: str, path: str) -> None:
    """A websocket is about to be opened."""
    if is_model_host(host) or _REALTIME.search(path):
        tell(f"A websocket to {host}")


def websockets(module: ModuleType) -> None:
    """Look at the connections of a client module of ``websockets``: where it reads a URI, before there is a socket."""
    original = getattr(module, "parse_uri", None)
    if original is None or list(inspect.signature(original).parameters) != ["uri"]:
        raise CannotHook("`websockets` is not as it was known, so its connections to models are not told about.")

    @wraps(original)
    def parse_uri(uri: Any) -> Any:
        parsed = original(uri)
        if current() is not None:
            socket_opened(parsed.host, parsed.path)
        return parsed

    module.parse_uri = parse_uri  # type: ignore[attr-defined]


def grpc(module: ModuleType) -> None:
    """Look at the calls of ``grpc._channel`` and of ``grpc.aio._channel``; the method tells what is asked."""
    found = [cls for name, cls in vars(module).items() if name.endswith("MultiCallable") and _is_own(cls, module)]
    ways = [(cls, way) for cls in found for way in ("__call__", "with_call", "future") if way in vars(cls)]
    if not ways:
        raise CannotHook("`grpc` is not as it was known, so its calls of models are not told about.")
    for cls, way in ways:
        setattr(cls, way, _looked_at(getattr(cls, way)))


def _is_own(cls: Any, module: ModuleType) -> bool:
    return isinstance(cls, type) and cls.__module__ == module.__name__


def _looked_at(original: Any) -> Any:
    @wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is not None:
            method = getattr(self, "_method", b"")
            method = method.decode() if isinstance(method, bytes) else str(method)
            if _MODEL_SERVICE.search(method):
                tell(f"A call of {method.rpartition('.')[2]} over gRPC")
        return original(self, *args, **kwargs)

    return call


def botocore(module: ModuleType) -> None:
    """Look at the requests of ``botocore.httpsession``."""
    session = getattr(module, "URLLib3Session", None)
    original = getattr(session, "send", None)
    if session is None or original is None:
        raise CannotHook("`botocore` is not as it was known, so its calls of models are not told about.")

    @wraps(original)
    def send(self: Any, request: Any) -> Any:
        if current() is not None and not INSIDE.get():
            url = urlsplit(request.url)
            host = (url.hostname or "").lower()
            ask = Ask(request.method.upper(), url.scheme, host, url.port, url.path)
            if SETTINGS.api_for(ask) is not None or is_model_host(host):
                tell(f"A call of {host} through botocore")
        return original(self, request)

    session.send = send
