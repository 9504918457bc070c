"""What is written down of a request, and in what a request differs from a recorded one."""

from __future__ import annotations

from types import FrameType

import msgspec

from jupyter_durable.capture.conversation import whole_body
from jupyter_durable.capture.difference import sentence
from jupyter_durable.capture.outgoing import canonical, url_of, without_secrets
from jupyter_durable.capture.providers.base import Api, Ask
from jupyter_durable.entries import Entry
from jupyter_durable.errors import LogError
from jupyter_durable.event_data import RequestInfo
from jupyter_durable.events import StepAdopted, StepCompleted, StepFailed, StepStarted
from jupyter_durable.log.base import EventLog


def request_info(api: Api, ask: Ask, secrets: tuple[str, ...], body: RequestInfo, line: int = 0) -> RequestInfo:
    """A request as it is written down, beside the intent.

    Args:
        api: what kind of call it is.
        ask: the request.
        secrets: the keys that it carries.
        body: what `conversation` says of its body.
        line: of the cell, at which it is asked.
    """
    return msgspec.structs.replace(
        body, provider=api.provider_of(ask), api=api.name, model=api.model(ask), method=ask.method,
        url=without_secrets(url_of(ask), secrets), stream=api.streams(ask), most_output=api.most_output(ask), line=line,
    )  # fmt: skip


def line_of(frames: list[FrameType], file: str) -> int:
    """Line of the cell at which a request is made; 0 where that is not known.

    Args:
        frames: the functions that are running, innermost first.
        file: what the cell's code calls its file.
    """
    if not file:
        return 0
    return next((frame.f_lineno or 0 for frame in reversed(frames) if frame.f_code.co_filename == file), 0)


def difference_from(entry: Entry, ask: Ask, secrets: tuple[str, ...], log: EventLog) -> str:
    """In what a request differs from a recorded call of the same kind, in words.

    Returns:
        Empty if nothing can be said: the recorded request is not there, or no JSON.
    """
    if entry.kind != "model":
        return ""
    found = recorded_request(entry, log)
    if found is None:
        return ""
    execution, info = found
    url = without_secrets(url_of(ask), secrets)
    if info.url != url:
        return f"The request goes to another address: recorded is `{info.url}`, asked is `{url}`."
    if info.body is None or ask.json is None:
        return ""
    try:
        recorded = whole_body(info, execution, log)
    except LogError:
        return ""
    return sentence(recorded, msgspec.json.decode(without_secrets(canonical(ask), secrets)))


def recorded_request(entry: Entry, log: EventLog) -> tuple[str, RequestInfo] | None:
    """What a recorded model call asked, and the execution that wrote it; ``None`` where the log no longer has it."""
    execution = entry.execution
    try:
        event = log.reload(execution, entry.seq).event
        if isinstance(event, StepAdopted):
            execution = event.data.execution
            end = log.reload(execution, event.data.seq).event
            if not isinstance(end, StepCompleted | StepFailed):
                return None
            event = log.reload(execution, end.step).event
    except LogError:
        return None
    return (execution, event.data) if isinstance(event, StepStarted) and event.data is not None else None
