"""The recording of a live answer: its body as it is read, its use, its end. The second half of an `Exchange`."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from jupyter_durable import clock, errors
from jupyter_durable.call import Call
from jupyter_durable.capture import answers, outgoing
from jupyter_durable.capture.guarded import Guarded
from jupyter_durable.capture.prices import priced
from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.capture.purse import NOTHING, Reserved
from jupyter_durable.capture.retrying import stack
from jupyter_durable.capture.state import CaptureState, Refusal
from jupyter_durable.capture.usage_filter import UsageFilter
from jupyter_durable.engine import payloads
from jupyter_durable.engine.attempt import Attempt
from jupyter_durable.engine.context import Frame
from jupyter_durable.engine.critical import critical
from jupyter_durable.engine.execution import Execution
from jupyter_durable.event_data import ErrorInfo, Notice, Payload, Usage

_TAIL = 4096
"""Bytes at the end of a stream in which its last event is looked for."""


@contextmanager
def stopping() -> Iterator[None]:
    """Let our own errors out in a form that no SDK swallows."""
    try:
        yield
    except errors.DurableError as error:
        raise errors.RunStopped(error) from None


class Recording:
    """See the module.

    Attributes:
        ask: the request as the program makes it.
        api: what kind of call it is.
        secrets: the keys that the request carries.
        is_of_loop: it was begun in the thread of the cell.
    """

    def __init__(self, frame: Frame, api: Api, ask: Ask) -> None:
        self.ask = ask
        self.api = Guarded(api)
        self.execution: Execution = frame.execution
        self.secrets = outgoing.secrets_of(ask)
        self.is_of_loop = threading.get_ident() == self.execution.thread
        self._frame = frame
        self._state = CaptureState.of(self.execution)
        self._identity = outgoing.identity(ask)
        self._where = (id(frame.place), threading.get_ident(), api.name, self._identity)
        self._frames = stack()
        self._attempt: Attempt | None = None
        self._call: Call | None = None
        self._reserved: Reserved | None = None
        self._done = False
        self._status = 0
        self._response_headers: Mapping[str, str] = {}
        self._chunks: list[bytes] = []
        self._filter: UsageFilter | None = None

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """An answer below 400 has begun.

        Args:
            status: HTTP status.
            headers: names in lower case, without those of a content encoding that the hook undoes.
        """
        self._status, self._response_headers = status, headers

    @critical
    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """An answer of 400 or more: an attempt, no result. Its SDK may try again, or raise."""
        attempt = self._close()
        if attempt is None:
            return
        self._settle(NOTHING)
        kept = answers.record(status, headers, [body], self.secrets)
        with stopping():
            encoded = payloads.encoded_json(msgspec.json.encode(kept))
            payload = payloads.write(encoded, self.execution.writer)
            attempt.refused(ErrorInfo(type=f"HTTP {status}", message=f"the model answered {status}", payload=payload))
        assert self._call is not None
        self._state.refusals[self._where] = Refusal(self._call, self._frames, attempt)

    def note_hidden_attempts(self, count: int, by: str) -> None:
        """Record that requests were made that could not be seen one by one.

        Args:
            count: how many failed before the one that was answered.
            by: who has repeated them.
        """
        attempt = self._attempt
        if attempt is not None and not attempt.dead:
            message = f"`{self.api.name}`: {count} more request{'s' * (count > 1)} failed before, repeated by {by}"
            self.execution.notice(attempt.seq, Notice(kind="note", message=message))

    def chunk(self, data: bytes) -> bytes:
        """Take a piece of the body, content encoding undone; return what the user is to see of it."""
        if self._filter is not None:
            data = self._filter.through(data)
        if data:
            self._chunks.append(data)
        return data

    def rest(self) -> bytes:
        """What the user is to see after the last piece."""
        data = self._filter.rest() if self._filter is not None else b""
        if data:
            self._chunks.append(data)
        return data

    def finished(self) -> None:
        """The body was read to its end."""
        self._end(complete=True)

    @property
    def is_being_streamed(self) -> bool:
        """Whether an answer has begun that was asked for as a stream."""
        return self._status > 0 and self.api.streams(self.ask)

    def left(self) -> None:
        """The program leaves the body where it is; what it has read is its value."""
        active = sys.exception()
        if isinstance(active, asyncio.CancelledError | KeyboardInterrupt):
            self.failed(active)  # it does not leave, it is cut: what was not read is no answer
        if not self._done:
            self._end(complete=self.api.is_over(b"".join(self._chunks)[-_TAIL:]))

    @critical
    def failed(self, error: BaseException) -> None:
        """No answer came, or its body broke off."""
        attempt = self._close()
        if attempt is None:
            return
        with stopping():
            if isinstance(error, asyncio.CancelledError) and self._chunks and not self.execution.interrupted:
                # The program cancels its reader: it has seen what was read, and on replay must see it again.
                self._bill(attempt, complete=False)
                attempt.completed_with(self._written(complete=False, broken=(answers.CANCELLED, "")), clock.monotonic())
                return
            if self._status and isinstance(error, Exception) and not isinstance(error, errors.DurableError):
                broken = (type(error).__name__, str(error))
                self._bill(attempt, complete=False)
                payload = self._written(complete=False, broken=broken)
                attempt.refused(ErrorInfo(type=broken[0], message="the stream broke off", payload=payload))
            else:
                self._settle(None)
                attempt.failed(error)
        assert self._call is not None
        if isinstance(error, Exception):
            self._state.refusals[self._where] = Refusal(self._call, self._frames, attempt)

    async def shown(self) -> None:
        """After an end in asynchronous code: wait for what must be flushed before the program sees it."""
        attempt, group = self._attempt, self.execution.group
        if attempt is not None and (attempt.shown or group.returning):
            with stopping():
                await group.return_in_order(flush=attempt.shown)

    @critical
    def _end(self, *, complete: bool) -> None:
        attempt = self._close()
        if attempt is None:
            return
        with stopping():
            returned = clock.monotonic()
            self._bill(attempt, complete=complete)
            attempt.completed_with(self._written(complete=complete), returned)

    def _written(self, *, complete: bool, broken: tuple[str, str] | None = None) -> Payload:
        """The answer, as far as it was read, in its stored form."""
        kept = answers.record(
            self._status, self._response_headers, self._chunks, self.secrets, complete=complete, broken=broken
        )
        return payloads.write(payloads.encoded_json(msgspec.json.encode(kept)), self.execution.writer)

    def _bill(self, attempt: Attempt, *, complete: bool) -> None:
        if not self.api.is_billed(self.ask):
            return
        hidden = self._filter.hidden if self._filter is not None else []
        answer = Answer(self._status, self._response_headers, b"".join([*self._chunks, *hidden]), complete)
        usage = priced(self.api.usage(self.ask, answer))
        for problem in self.api.problems:
            self._state.say_once(problem, attempt.seq, problem)
        self._settle(usage)
        attempt.billed(usage)

    def _close(self) -> Attempt | None:
        """The attempt, if its end has not been told yet."""
        if self._done:
            return None
        self._done = True
        self._state.closed(self)
        attempt = self._attempt
        return attempt if attempt is not None and not attempt.dead else None

    def _settle(self, usage: Usage | None) -> None:
        """Give back to the budget what the call did not cost."""
        if self._reserved is not None and self._state.purse is not None:
            self._state.purse.settle(self._reserved, usage)
            self._reserved = None
