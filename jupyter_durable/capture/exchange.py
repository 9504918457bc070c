"""One model call in a durable run: whether its answer comes from history, and the recording of one that comes live.

The hooks of the HTTP libraries drive it; a synchronous and an asynchronous hook differ only in how they wait::

    exchange = exchange_for(ask, is_async=False)       None: not a model call, or not in a durable run
    if exchange.is_recorded:
        answer = exchange.recorded()                   or `await exchange.recorded_async()`
    exchange.flush()                                   or `await exchange.flush_async()`; then the request is sent
    exchange.refused(status, headers, body)            an answer of 400 or more
    exchange.failed(error)                             no answer
    exchange.answered(status, headers)                 an answer; then, as its body is read,
    exchange.chunk(bytes)
    exchange.finished() / .left() / .failed(error)     and `await exchange.shown()` in asynchronous code

Every error that must stop the run leaves as `RunStopped`: SDKs take any other exception for a broken connection.
"""

from __future__ import annotations

import os
import warnings

from jupyter_durable import clock, errors
from jupyter_durable.call import Adopt, Call, Execute
from jupyter_durable.call import Recorded as FromHistory
from jupyter_durable.capture import answers
from jupyter_durable.capture.asked import difference_from, line_of, request_info
from jupyter_durable.capture.prices import warm
from jupyter_durable.capture.providers.base import Api, Ask
from jupyter_durable.capture.providers.finding import problems
from jupyter_durable.capture.purse import at_most
from jupyter_durable.capture.recording import Recording, stopping
from jupyter_durable.capture.replayed import Replayed
from jupyter_durable.capture.retrying import is_retry
from jupyter_durable.capture.settings import SETTINGS
from jupyter_durable.capture.state import Refusal
from jupyter_durable.capture.usage_filter import UsageFilter
from jupyter_durable.engine import payloads
from jupyter_durable.engine.attempt import Attempt
from jupyter_durable.engine.context import Frame, current
from jupyter_durable.engine.critical import critical
from jupyter_durable.engine.elsewhere import Far
from jupyter_durable.engine.execution import Execution
from jupyter_durable.engine.handing_out import failure_of, note, wait_for_turn
from jupyter_durable.engine.pulse import refuse_late
from jupyter_durable.engine.steps import StepSpec, placed
from jupyter_durable.retry import RetryPolicy
from jupyter_durable.sentences import quoted

_TAIL = 4096
"""Bytes at the end of a stream in which its last event is looked for."""

_ONCE = RetryPolicy()


def exchange_for(ask: Ask, *, is_async: bool) -> Exchange | None:
    """Begin a call, if the request is made in a durable run and asks a model.

    Args:
        ask: the request, body included.
        is_async: whether a loop must not be blocked.

    Raises:
        RunStopped: the run cannot go on, and says why; nothing was sent.
    """
    frame = current()
    api = SETTINGS.api_for(ask) if frame is not None else None
    if frame is None or api is None:
        return None
    if frame.execution.pid != os.getpid():
        _in_child(frame.execution, api)
        return None
    with stopping():
        refuse_late(frame)
        exchange = Exchange(frame, api, ask, is_async=is_async)
        for problem in problems():
            exchange.say_once(problem)
        return exchange


def _in_child(execution: Execution | Far, api: Api) -> None:
    message = (
        f"A model was asked ({api.name}) in a child process of {execution.place_of_run()}. A child process never "
        f"writes the log: the call is not recorded, its cost not counted, and a replay would pay it again. Ask it in "
        f"the kernel's process, or call what starts the child as a step."
    )
    if isinstance(execution, Far):
        execution.unrecorded.append(api.name)
    if execution.spec.flags.replay_only:
        raise errors.RunStopped(errors.ReplayOnlyError(f"`--replay-only` promises to spend nothing. {message}"))
    warnings.warn(message, RuntimeWarning, stacklevel=5)


class Exchange(Recording):
    """See the module.

    Attributes:
        ask: the request as the program makes it.
        body: the body to be sent, if it is not that of `ask`.
        headers: headers to be added.
        is_recorded: the answer, or the refusal, comes from history.
        is_of_loop: it was begun in the thread of the cell.
    """

    def __init__(self, frame: Frame, api: Api, ask: Ask, *, is_async: bool) -> None:
        super().__init__(frame, api, ask)
        self.body: bytes | None = None
        self.headers: dict[str, str] = {}
        self._is_async = is_async
        self._verdict: FromHistory | Adopt | None = None
        self._refusal: Refusal | None = None
        if self.execution.ended:
            raise errors.RunEnded(
                f"A model was asked ({api.name}) after the execution of {self.execution.place_of_run()} had ended; "
                f"nothing was sent. Await or join what the cell starts before the cell ends.",
                step=api.name,
            )
        refusal = self._state.refusals.pop(self._where, None)
        if refusal is not None and is_retry(ask, refusal.frames):
            self._retry(refusal)
        else:
            self._begin()

    # What is to be done ----------------------------------------------------------------------------------------------

    @property
    def is_recorded(self) -> bool:
        """See the class."""
        return self._verdict is not None or self._refusal is not None

    def say_once(self, problem: str) -> None:
        """Tell the user something about capture, once in an execution."""
        self._state.say_once(problem, -1, problem)

    def _begin(self) -> None:
        name = self.api.name
        place, n = placed(self._frame, name, self._identity)
        log, ask, secrets = self.execution.log, self.ask, self.secrets
        call = Call(
            place, name, self._identity, n, kind="model", pure=self.api.is_pure(ask),
            rerun="always" if ask.method == "GET" else "ask",  # a poll has no answer of its own to keep
            differs=lambda entry: difference_from(entry, ask, secrets, log),
        )  # fmt: skip
        try:
            verdict = self.execution.ask(call)
        except errors.ReplayOnlyError as error:
            warm()
            *tokens, usd = at_most(self.api, ask)
            error.facts.update(tokens=sum(tokens), usd=usd, model=self.api.model(ask))
            raise
        self._call = call
        if isinstance(verdict, Execute):
            self._go_live(call, verdict)
        else:
            assert isinstance(verdict, FromHistory | Adopt)
            self._verdict = verdict

    @critical
    def _go_live(self, call: Call, verdict: Execute) -> None:
        self._reserve()
        execution = self.execution
        line = line_of(self._frames, execution.spec.file)
        where = (id(self._frame.place), self.api.name)
        body, remember = self._state.conversations.written(where, self.ask, self.secrets, execution.writer)
        call.request = request_info(self.api, self.ask, self.secrets, body, line)
        spec = StepSpec(
            _nothing, self.api.name, _no_arguments, self._is_async, _ONCE, pure=call.pure, kind="model", outputs=False
        )
        self._attempt = Attempt(execution, spec, call, verdict, [], [])
        self._attempt.intend()
        remember(self._attempt.seq)
        self._prepare(call)

    def _retry(self, refusal: Refusal) -> None:
        """The SDK makes a refused request again by itself."""
        self._call = refusal.call
        if refusal.attempt is not None:
            self._tell_of_multiplying(refusal.attempt)
            self._reserve()
            self._attempt = refusal.attempt
            refusal.attempt.again()
            self._prepare(refusal.call)
        elif refusal.left > 0:
            refusal.left -= 1
            self._refusal = self._state.refusals[self._where] = refusal
        else:
            assert refusal.entry is not None
            why = f"tried again: attempt {refusal.entry.attempts} failed"
            self._go_live(refusal.call, Execute(why, refusal.entry))

    def _reserve(self) -> None:
        """Hold back from the budget what the call may cost at most; stops the run if that is too much."""
        warm()
        purse = self._state.purse
        if purse is not None and self.api.is_billed(self.ask):
            self._reserved = purse.reserve(self.api, self.ask)

    def _prepare(self, call: Call) -> None:
        self._state.opened(self)
        self.body = self.api.with_usage(self.ask)
        if self.body is not None:
            self._filter = UsageFilter(self.api)
        if SETTINGS.idempotency_header:
            self.headers[SETTINGS.idempotency_header] = self.execution.idempotency_key(call.key)

    def _tell_of_multiplying(self, attempt: Attempt) -> None:
        """Say once that the retries of a step and those of the SDK inside it are multiplied."""
        for outer in list(self.execution.in_flight.values()):
            retries = outer.spec.policy.retries
            if outer.body is self._frame and retries:
                self._state.say_once(
                    f"retries of {outer.call.name}", attempt.seq,
                    f"step `{outer.call.name}` is tried up to {retries + 1} times by its own `retries={retries}`, and "
                    f"inside of each try the SDK tries the model again by itself. Keep one of the two: `retries=0`, or "
                    f"the client's `max_retries=0`.",
                )  # fmt: skip

    # From history ----------------------------------------------------------------------------------------------------

    def recorded(self) -> Replayed:
        """The answer that history holds.

        Raises:
            RunStopped: it cannot come back.
            Exception: the error of the connection that history holds instead of an answer.
        """
        if self._verdict is not None:
            self.execution.order.in_turn(self._verdict.entry)
        return self._recorded()

    async def recorded_async(self) -> Replayed:
        """The same, at its turn."""
        if self._verdict is not None:
            await wait_for_turn(self.execution, self._verdict.entry)
        return self._recorded()

    def _recorded(self) -> Replayed:
        refusal = self._refusal
        if refusal is None:
            verdict = self._verdict
            assert verdict is not None
            assert self._call is not None
            with stopping():
                note(self.execution, self._call, verdict, {})
                refusal = self._read(self._call, verdict)
            if verdict.entry.state == "failed":
                self._state.refusals[self._where] = refusal
        if refusal.answer is None:
            assert refusal.error is not None
            raise refusal.error
        return Replayed(refusal.answer, self.secrets, self._too_short)

    def _too_short(self) -> errors.StreamNotRecorded:
        """More of a stream is asked for than the program had read when it was recorded."""
        verdict, execution = self._verdict, self.execution
        number = verdict.entry.begun if verdict is not None else "STEP"
        again = f"%%durable {quoted(execution.run_name)} --from {number}"
        error = errors.StreamNotRecorded(
            f"{execution.place_of_run()}: the program left the stream of `{self.api.name}` (step {number}) before its "
            f"end when it was recorded, and now reads on. Nothing was asked anew. `{again}` asks the model again from "
            f"there, on a new branch.",
            step=self.api.name, **execution.where,
        )  # fmt: skip
        execution.seal("more of a stream is asked for than was recorded.", error)
        return error

    def _read(self, call: Call, verdict: FromHistory | Adopt) -> Refusal:
        entry, log = verdict.entry, self.execution.log
        payload = payloads.of(entry, log) if entry.state == "completed" else None
        if payload is None and entry.error is not None:
            payload = entry.error.payload
        answer = answers.from_value(payloads.read(payload, log)) if payload is not None else None
        if answer is None and entry.state == "completed":
            raise errors.UnloadableValue(
                f"{self.execution.place_of_run()}: {entry.label} has a value that is no answer of a model. A value set "
                f"by hand cannot stand for one; `%durable settle {entry.begun} rerun` asks the model again.",
                **self.execution.where, step=entry.label,
            )  # fmt: skip
        error = failure_of(self.execution, entry) if answer is None else None
        return Refusal(call, self._frames, entry=entry, answer=answer, error=error, left=entry.attempts - 1)

    # Live ------------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Let the intent survive loss of power; the request may be sent after this."""
        with stopping():
            if self.execution.flushes:
                self.execution.flush()
        if self._attempt is not None:
            self._attempt.begun = clock.monotonic()
        if self.execution.pending_interrupt:
            self.execution.safe_point()

    async def flush_async(self) -> None:
        """The same, shared by all calls of one turn of the loop."""
        try:
            with stopping():
                await self.execution.group.together()
        except BaseException as error:
            self.failed(error)
            raise
        if self._attempt is not None:
            self._attempt.begun = clock.monotonic()


def _nothing() -> None:
    """What stands for the body of a captured call, which is somebody else's."""


def _no_arguments(_args: object, _kwargs: object) -> tuple[list[str], list[object]]:
    return [], []
