"""Shapes of one step in detail: its value, attempts, output, and the conversation of a model call."""

from __future__ import annotations

from typing import Any, Literal

from jupyter_durable.server.shapes.base import FORMAT, Failure, NoticeItem, Shape, UsageItem
from jupyter_durable.server.shapes.steps import StepRow


class ValueView(Shape, frozen=True, kw_only=True):
    """A stored value, inert: nothing of it was loaded, built or run."""

    type: str
    """Name of its type, as far as the stored form tells: ``dict``, ``tuple``, ``DataFrame``, ``myapp.Result``."""
    codec: str
    """``json`` or ``tagged``."""
    size: int
    """Bytes as stored, before compression, those in blobs included."""
    json: Any
    """The value where JSON means exactly it, and it is not too long; else ``null``."""
    text: str
    """The value as people read it, in the manner of Python's repr, cut where it is too long."""
    cut: bool
    """Whether `text` (or `table`) is not all."""
    table: TableView | None
    """The first rows, of a data frame or an array of at most two dimensions, where the server can read its format."""


class TableView(Shape, frozen=True, kw_only=True):
    """The beginning of a table."""

    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    total: int
    """Rows in all."""


class ErrorView(Shape, frozen=True, kw_only=True):
    """A recorded exception."""

    type: str
    message: str
    traceback: str
    """As it was formatted then; terminal colours taken out."""


class AttemptView(Shape, frozen=True, kw_only=True):
    """One try of a step."""

    number: int
    """From 1."""
    seq: int
    """Of its intent."""
    execution: str
    started: float
    ended: float | None
    status: Literal["running", "in_doubt", "completed", "failed", "cancelled", "interrupted", "not_stored"]
    error: ErrorView | None
    retry_in: float
    """Seconds until the next attempt, after a failed one."""
    usage: UsageItem | None


class OutputView(Shape, frozen=True, kw_only=True):
    """One piece of output. What is in `data` is a stranger's: pictures and plain text are harmless, HTML is not."""

    kind: Literal["stdout", "stderr", "display"]
    text: str
    data: dict[str, Any]
    """MIME bundle, for ``display``."""


class Part(Shape, frozen=True, kw_only=True):
    """One part of a message."""

    kind: Literal["text", "thinking", "image", "file", "tool_call", "tool_result", "other"]
    text: str = ""
    """The text; arguments of a tool call, or the data of what has no form here, as JSON text."""
    name: str = ""
    """Of the tool."""
    id: str = ""
    """Of the tool call."""
    media: str = ""
    """MIME type of an image or file."""
    data: str = ""
    """Base64 of an image, where the request has it; an address is in `text` and is not to be fetched."""


class Message(Shape, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: str
    """``system``, ``user``, ``assistant``, ``tool``, or what the provider calls it."""
    parts: list[Part]


class ModelCall(Shape, frozen=True, kw_only=True):
    """What a captured model call asked, and what came back. Nobody's keys are in it."""

    provider: str
    api: str
    """Kind of request, such as ``chat.completions``."""
    model: str
    method: str
    url: str
    stream: bool
    line: int
    messages: list[Message]
    """The conversation that was sent, oldest message first."""
    tools: list[str]
    """Names of the tools that were offered."""
    options: dict[str, Any]
    """The other fields of the request: temperature and so on."""
    reply: list[Message]
    """What was answered; empty where there is no answer, or none that is understood (see `answer`)."""
    stop: str
    """Why the model stopped, in the provider's word."""
    request: Any
    """The whole body of the request; ``null`` if it was no JSON, or is too long."""
    answer: Any
    """The whole body of the answer; a list of events for a stream, a text if it is no JSON; ``null`` if too long."""
    status: int | None
    """HTTP status."""
    complete: bool
    """False if the program left before the end of the answer."""
    broken: Failure | None
    """What ended the connection."""
    note: str
    """A sentence, if something of it cannot be shown."""


class NotStored(Shape, frozen=True, kw_only=True):
    """Why a value could not be stored, and what was saved of it."""

    path: str
    type: str
    reason: str
    salvage: ValueView | None


class Settled(Shape, frozen=True, kw_only=True):
    """What a person said about the step."""

    choice: Literal["rerun", "value", "fail"]
    by: str


class AdoptedFrom(Shape, frozen=True, kw_only=True):
    """The execution and event that a result was taken over from."""

    execution: str
    seq: int
    branch_name: str
    """Empty where that execution is not in the log any more."""


class AnswerItem(Shape, frozen=True, kw_only=True):
    """An answer, or a signal, that was sent."""

    by: str
    via: str
    """From where: ``panel``, ``cell``, ``command line``, ``magic`` or ``python``."""
    at: float


class WaitPart(Shape, frozen=True, kw_only=True):
    """What a step of kind ``timer``, ``signal`` or ``approval`` waits for, or waited for, and who ended it."""

    request: str
    """Id by which POST answer and GET waiting name it."""
    question: str
    choices: list[str]
    schema: Any
    """JSON schema of the answer; ``null``: any JSON."""
    shown: list[OutputView]
    """What was shown with the question: that is what was approved."""
    until: float | None
    """When the timer fires, or the request lapses."""
    receipt: AnswerItem | None
    """The answer that the run has taken; ``null`` for a timer, and while it waits."""


class CompensationItem(Shape, frozen=True, kw_only=True):
    """What undoes a step, and whether it is undone."""

    name: str
    """Of the function."""
    undone: bool
    by: str
    """Who undid it; empty: its run itself, or nobody."""
    at: float | None


class StepDetail(Shape, frozen=True, kw_only=True):
    """GET runs/RUN/branches/BRANCH/steps/NUMBER. Arguments are not here: the log keeps their digest, not them."""

    format: int = FORMAT
    log: str
    run: str
    branch: str
    branch_name: str
    row: StepRow
    digest: str
    """Of the arguments."""
    evidence: str
    """Digest of the code that it depends on."""
    pure: bool
    value: ValueView | None
    error: ErrorView | None
    not_stored: NotStored | None
    settled: Settled | None
    adopted_from: AdoptedFrom | None
    attempts: list[AttemptView]
    outputs: list[OutputView]
    notices: list[NoticeItem]
    call: ModelCall | None
    """Of a step of kind ``model``."""
    wait: WaitPart | None
    """Of a step that waits, or has waited."""
    compensation: CompensationItem | None
    """Of a step that can be undone."""
    note: str
    """A sentence, if something of it cannot be shown."""
