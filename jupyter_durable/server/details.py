"""One step in detail: its value, errors, attempts, output, and what a model call asked and was answered."""

from __future__ import annotations

from typing import Any

import msgspec

from jupyter_durable.call import RUN
from jupyter_durable.capture.answers import Recorded, from_value
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import OutputItem, Payload, RequestInfo, WaitInfo
from jupyter_durable.events import (
    AnyEvent,
    AttemptFailed,
    StepAdopted,
    StepCompleted,
    StepFailed,
    StepNotStored,
    StepOutput,
    StepSettled,
    StepStarted,
    StepUndone,
)
from jupyter_durable.log.listing import Listing
from jupyter_durable.server import inert, messages, replies
from jupyter_durable.server.attempts import attempts, error_view, plain_text
from jupyter_durable.server.index import BranchIndex
from jupyter_durable.server.inert import NotShown
from jupyter_durable.server.logs import LogView, branch_of, branches_of, records_of
from jupyter_durable.server.pages import notices, row
from jupyter_durable.server.place import NotHere
from jupyter_durable.server.reading import Events, events_of
from jupyter_durable.server.shapes import (
    AdoptedFrom,
    AnswerItem,
    CompensationItem,
    ErrorView,
    Failure,
    ModelCall,
    NotStored,
    OutputView,
    Settled,
    StepDetail,
    WaitPart,
)
from jupyter_durable.server.tracks import Track

_EVENTS = 2000
"""Events of one step that are read."""
_OUTPUT = 100_000
_SHOWN = 512 * 1024
"""Bytes of what is shown with one question."""
_BODY = 1_000_000
"""Bytes of a body that is sent whole."""


def detail(view: LogView, run: str, branch: str, number: int) -> StepDetail:
    """Answer to GET steps/NUMBER."""
    with view.looking() as listing:
        found = branch_of(branches_of(records_of(listing, run)), branch)
        running = found.newest.header.execution if found.newest.running else ""
        with view.branch(listing, found.branch) as (index, _):
            track = index.tracks.get(number)
            if track is None:
                raise NotHere(f"Branch {found.name} has no step {number}.")
            with events_of(index) as events:
                parts = _Parts(index, track, events)
                entry = track.entry
                return StepDetail(
                    log=view.name,
                    run=run,
                    branch=found.branch,
                    branch_name=found.name,
                    row=row(track, running),
                    digest=entry.key.digest,
                    evidence=entry.evidence,
                    pure=entry.pure,
                    value=parts.value(),
                    error=parts.error(),
                    not_stored=parts.not_stored(),
                    settled=None
                    if entry.settlement is None
                    else Settled(choice=entry.settlement.choice, by=entry.settlement.by),
                    adopted_from=parts.adopted_from(listing),
                    attempts=[] if entry.kind == RUN else attempts(parts.events, running),
                    outputs=parts.outputs(),
                    notices=notices(entry.notices),
                    call=parts.call() if entry.kind == "model" else None,
                    wait=wait_part(entry),
                    compensation=parts.compensation(),
                    note=parts.note,
                )


class _Parts:
    """The events of one step, and what they say."""

    def __init__(self, index: BranchIndex, track: Track, events: Events) -> None:
        self._index, self._track, self._read = index, track, events
        self.trusted = not index.untrusted
        self.note = ""
        self.events: list[tuple[str, int, AnyEvent]] = []
        """Execution, seq and event, in order."""
        seqs = track.events if len(track.events) <= _EVENTS else (track.events[0], *track.events[1 - _EVENTS :])
        if len(seqs) < len(track.events):
            self.note = f"It has {len(track.events):,} events; the first and the last {_EVENTS:,} are shown."
        for seq in seqs:
            segment = index.segment_of(seq)
            if segment is None:
                continue
            try:
                self.events.append((segment.execution, seq, events.get(segment.execution, seq)))
            except NotShown as error:
                self.note = self.note or str(error)

    def _last(self, *kinds: type[Any]) -> Any:
        """The last event of some kinds, of those since the newest intent."""
        since = self._track.entry.seq
        return next((e for _, seq, e in reversed(self.events) if isinstance(e, kinds) and seq >= since), None)

    def payload(self) -> Payload | None:
        """The stored value."""
        if self._track.entry.state != "completed":
            return None
        event = self._last(StepCompleted, StepAdopted, StepSettled)
        if isinstance(event, StepAdopted | StepSettled):
            return event.data.payload
        return event.data if isinstance(event, StepCompleted) else None

    def value(self) -> Any:
        """The value for the eyes."""
        payload = self.payload()
        return None if payload is None else inert.view(self._read.log, payload, trusted=self.trusted)

    def error(self) -> ErrorView | None:
        """The error of a failed step, or of the last attempt of an open one."""
        if self._track.entry.error is None:
            return None
        event = self._last(StepFailed, AttemptFailed, StepAdopted)
        if isinstance(event, StepAdopted):
            return error_view(event.data.error)
        return None if event is None else error_view(event.data.error)

    def not_stored(self) -> NotStored | None:
        """Why the value could not be stored."""
        event = self._last(StepNotStored)
        if event is None:
            return None
        salvage = event.data.salvage
        return NotStored(
            path=event.data.path,
            type=event.data.value_type,
            reason=event.data.reason,
            salvage=None if salvage is None else inert.view(self._read.log, salvage, trusted=self.trusted),
        )

    def adopted_from(self, listing: Listing) -> AdoptedFrom | None:
        """Where an adopted result comes from."""
        adopted = self._track.entry.adopted
        if adopted is None:
            return None
        origin = listing.entries.get(adopted.execution)
        name = "" if origin is None else origin.header.branch_name
        return AdoptedFrom(execution=adopted.execution, seq=adopted.seq, branch_name=name)

    def compensation(self) -> CompensationItem | None:
        """What undoes it, and who has: a person, or a step of the same branch."""
        entry, history = self._track.entry, self._index.history
        if entry.compensation is None:
            return None
        told = self._last(StepUndone)
        step = history.undone.get(entry.compensation.id)
        ended = None if step is None else self._index.tracks[step.begun].ended
        return CompensationItem(
            name=entry.compensation.name,
            undone=history.is_undone(entry),
            by="" if told is None else told.data.by,
            at=told.at if told is not None else ended,
        )

    def outputs(self) -> list[OutputView]:
        """What it wrote, up to a length."""
        found: list[OutputView] = []
        left = _OUTPUT * 20
        for _, _, event in self.events:
            if isinstance(event, StepOutput):
                for item in event.data:
                    shown = output_view(item, left)
                    if shown is None:
                        self.note = self.note or "It wrote more than is shown here."
                        return found
                    left -= len(item.text) + (len(bytes(item.data)) if isinstance(item.data, msgspec.Raw) else 0)
                    found.append(shown)
        return found

    # Model calls -----------------------------------------------------------------------------------------------------

    def call(self) -> ModelCall | None:
        """What a model call asked, and what came back."""
        note = ""
        try:
            found = self._request()
        except NotShown as error:
            self.note = self.note or f"What it asked cannot be shown. {error}"
            return None
        if found is None:
            return None
        execution, info = found
        body: Any = None
        try:
            body = self._read.body(info, execution)
        except NotShown as error:
            note = f"The request cannot be shown. {error}"
        answer = self._answer()
        told = None if answer is None else _told(answer)
        said, stop = replies.reply(told)
        return ModelCall(
            provider=info.provider,
            api=info.api,
            model=info.model,
            method=info.method,
            url=info.url,
            stream=info.stream,
            line=info.line,
            messages=messages.conversation(body),
            tools=messages.tools(body),
            options=messages.options(body),
            reply=said,
            stop=stop,
            request=_short(body),
            answer=_short(told),
            status=None if answer is None else answer.status,
            complete=answer is None or answer.complete,
            broken=None
            if answer is None or answer.broken is None
            else Failure(type=answer.broken[0], message=answer.broken[1]),
            note=note,
        )

    def _request(self) -> tuple[str, RequestInfo] | None:
        """The newest request, and the execution that wrote it."""
        adopted = self._last(StepAdopted)
        if adopted is not None:
            execution = adopted.data.execution
            end = self._read.get(execution, adopted.data.seq)
            began = self._read.get(execution, getattr(end, "step", -1))
            return (execution, began.data) if isinstance(began, StepStarted) and began.data is not None else None
        return next(
            (
                (execution, event.data)
                for execution, _, event in reversed(self.events)
                if isinstance(event, StepStarted) and event.data is not None
            ),
            None,
        )

    def _answer(self) -> Recorded | None:
        payload = self.payload()
        if payload is None or payload.codec != "json":
            return None
        try:
            return from_value(inert.tree_of(inert.text_of(self._read.log, payload)))
        except (NotShown, msgspec.ValidationError) as error:
            self.note = self.note or f"What it answered cannot be shown. {error}"
            return None


def _told(answer: Recorded) -> Any:
    """The body of an answer: JSON, a list of events, or a text."""
    if answer.data:
        return f"{len(answer.data) * 3 // 4:,} bytes that are no text"
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return replies.events_of(answer.body) or answer.body


def _short(body: Any) -> Any:
    try:
        return body if body is None or len(msgspec.json.encode(body)) <= _BODY else None
    except RecursionError:
        return None


def output_view(item: OutputItem, left: int) -> OutputView | None:
    """One piece of output as it is shown; ``None`` if it is larger than what is left.

    Args:
        item: the output.
        left: bytes that it may have.
    """
    data: dict[str, Any] = {}
    if isinstance(item.data, msgspec.Raw):
        if len(bytes(item.data)) > left:
            return None
        try:
            read = inert.tree_of(bytes(item.data))
        except NotShown:
            read = {}
        data = read if isinstance(read, dict) else {}
    if len(item.text) > left:
        return None
    return OutputView(kind=item.kind, text=plain_text(item.text[:_OUTPUT]), data=data)


def wait_part(entry: Entry) -> WaitPart | None:
    """What a step waits for, or waited for; ``None`` for any other step."""
    info, receipt = entry.wait, entry.receipt
    if info is None:
        return None
    return WaitPart(
        request=info.request,
        question=info.question,
        choices=list(info.choices),
        schema=schema_of(info),
        shown=shown_with(info),
        until=info.until,
        receipt=None if receipt is None else AnswerItem(by=receipt.by, via=receipt.via, at=receipt.sent),
    )


def schema_of(info: WaitInfo) -> Any:
    """The JSON schema of the answer; ``None``: any JSON."""
    return inert.tree_of(bytes(info.schema)) if isinstance(info.schema, msgspec.Raw) else None


def shown_with(info: WaitInfo) -> list[OutputView]:
    """What was shown with a question, up to a length."""
    left, shown = _SHOWN, list[OutputView]()
    for item in info.shown:
        output = output_view(item, left)
        if output is not None:
            left -= len(bytes(item.data)) if isinstance(item.data, msgspec.Raw) else 0
            shown.append(output)
    return shown
