"""The words for waiting: ``durable.sleep``, ``durable.approve``, ``durable.wait_for``.

Each is one word for both worlds: called in a coroutine (or in a cell that awaits) it gives something to ``await``;
called in plain code it waits there and then.
"""

from __future__ import annotations

import asyncio
import datetime
import inspect
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from jupyter_durable import answers, clock
from jupyter_durable.engine.context import current
from jupyter_durable.engine.waiting import Asked, wait_async, wait_sync
from jupyter_durable.errors import NotInRun, Undigestable, UsageError
from jupyter_durable.event_data import WaitInfo
from jupyter_durable.retry import Duration, parse_duration
from jupyter_durable.sentences import wrong_name
from jupyter_durable.values import digest

_AWAITS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
_LONGEST = 100 * 365.25 * 86400.0
"""Seconds that may be waited for: what is much longer is a slip, and no calendar can show its end."""

_INSIDE = {"<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>", "<lambda>"}
"""Code that belongs to the function around it."""


class WaitingWords:
    """A part of the namespace ``durable``."""

    def sleep(self, duration: Duration | None = None, *, until: datetime.datetime | None = None) -> Any:
        """Wait for a length of time, or until a moment; after a crash, only for what is left of it.

        A run in which everything waits parks: its cell ends, the kernel is free, and the cell goes on from here when it
        is run again. A moment that has passed meanwhile has passed: then there is nothing to wait for.

        Args:
            duration: seconds, text such as ``"12h"`` or ``"1h30m"``, or a timedelta; counted from the first time that
                the run comes here.
            until: a moment with its time zone.

        Returns:
            Nothing; in a coroutine, or a cell that awaits, something to ``await``. Outside of a run it simply sleeps.

        Raises:
            UsageError: neither or both are given, the moment has no time zone or is more than 100 years away, or a
                step's body calls it.

        >>> from jupyter_durable import durable
        >>> durable.sleep("10ms")
        """
        __tracebackhide__ = True
        if (duration is None) == (until is None):
            raise UsageError('Give a duration, `durable.sleep("12h")`, or a moment, `durable.sleep(until=...)`.')
        seconds = 0.0 if duration is None else _length(duration, "duration")
        if until is not None and (not isinstance(until, datetime.datetime) or until.tzinfo is None):
            raise UsageError(
                "`until` is a datetime with a time zone: `datetime(2027, 1, 31, 9, tzinfo=ZoneInfo(...))`."
            )
        moment = None if until is None else until.timestamp()
        if moment is not None:
            _check_length(moment - clock.now(), "until")

        def info() -> WaitInfo:
            return WaitInfo(until=clock.now() + seconds if moment is None else moment)

        frame, awaits = current(), caller_awaits()
        if frame is None:
            left = seconds if moment is None else max(0.0, moment - clock.now())
            return asyncio.sleep(left) if awaits else clock.sleep(left)
        identity = digest([seconds if moment is None else f"until {moment}"])
        asked = Asked("timer", "durable.sleep", "sleep", identity, info, lambda _: None)
        return (wait_async if awaits else wait_sync)(frame, asked)

    def approve(
        self,
        question: str,
        *,
        show: Any = None,
        choices: Iterable[str] = (),
        timeout: Duration | None = None,
        key: Any = None,
    ) -> Any:
        """Ask a person. The request is in the log before anybody sees it, and the answer before it is acted on.

        Answered in the panel, by ``%durable approve``, ``jupyter durable approve``, or `jupyter_durable.client.answer`,
        with or without a kernel. Never by stdin. The answer holds for what was shown: if a later execution shows
        something else, it is asked again.

        Args:
            question: what is asked.
            show: what it is about: text (Markdown), a DataFrame, anything with a rich form; kept as it was shown.
            choices: what may be answered; none: yes or no.
            timeout: how long an answer is waited for, from the first time that it is asked.
            key: what identifies the thing shown, where it has no digest of its own.

        Returns:
            ``True`` or ``False``, or one of the choices; in a coroutine, something to ``await``.

        Raises:
            NotAnswered: nobody had answered in time.
            NotInRun: outside of a durable run nobody could answer.
            UsageError: the question is empty, the timeout is longer than 100 years, or a step's body calls it.

        >>> from jupyter_durable import durable
        >>> durable.approve("Send 12 mails?", show="a list of them")
        Traceback (most recent call last):
            ...
        jupyter_durable.errors.NotInRun: `durable.approve` asks a person of a durable run: use it in a %%durable cell.
        """
        __tracebackhide__ = True
        if not isinstance(question, str) or not question.strip():
            raise UsageError('`durable.approve` needs a question: `durable.approve("Send 12 mails?")`.')
        if isinstance(choices, str):
            raise UsageError('`choices` is a list of texts: `choices=["yes", "no"]`.')
        options = tuple(choices)
        if not all(isinstance(option, str) and option for option in options) or len(set(options)) < len(options):
            raise UsageError("`choices` are texts, each once, and none is empty.")
        schema = answers.schema_of_choices(options)
        shown_digest = _shown_digest(show, key)

        def info() -> WaitInfo:
            return WaitInfo(
                until=_deadline(timeout), question=question, choices=options, schema=schema,
                shown=() if show is None else (answers.snapshot(show),), shown_digest=shown_digest,
            )  # fmt: skip

        identity = digest([question, list(options)])
        accept = answers.acceptor(schema)
        asked = Asked("approval", "durable.approve", "approve", identity, info, accept, shown_digest)
        return self._wait("durable.approve", asked, timeout)

    def wait_for(self, name: str, *, schema: Any = None, timeout: Duration | None = None) -> Any:
        """Wait for a signal: a value that is sent to the run from outside.

        Sent by ``%durable signal``, ``jupyter durable signal``, the panel, or `jupyter_durable.client.send`. One that
        was sent before is kept; each is used once, the oldest first.

        Args:
            name: of the signal.
            schema: what the value must be: a pydantic model, a type that pydantic knows, or a JSON schema. What does
                not fit is refused where it is sent.
            timeout: how long it is waited for, from the first time that the run comes here.

        Returns:
            The value; as an instance of the model if there is one; in a coroutine, something to ``await``.

        Raises:
            NotAnswered: nobody had sent it in time.
            NotInRun: outside of a durable run nobody could send it.
            UsageError: no name, a schema that is none, a timeout longer than 100 years, or a step's body calls it.
        """
        __tracebackhide__ = True
        if not isinstance(name, str) or (wrong := wrong_name(name)):
            said = wrong if isinstance(name, str) else "it is no text"
            raise UsageError(
                f'A signal has a name of 1 to 200 characters, `durable.wait_for("payment")`, and this is none: {said}.'
            )
        raw = answers.schema_of(schema)
        accept = answers.acceptor(raw, schema)

        def info() -> WaitInfo:
            return WaitInfo(until=_deadline(timeout), schema=raw)

        asked = Asked("signal", "durable.wait_for", name, digest([name]), info, accept)
        return self._wait("durable.wait_for", asked, timeout)

    def wake(self, on: bool = True) -> str:
        """Let the parked cells of this kernel go on by themselves when what they wait for is over.

        Each is run as if somebody had run it again, after what is running then. Nothing is drawn in the notebook: the
        results are in the log, and running the cell shows them. The panel of JupyterLab has a switch that runs the cell
        in its place instead.

        Args:
            on: false ends it.

        Returns:
            What holds now, as a sentence.

        Raises:
            UsageError: there is no kernel with the extension.
        """
        # By name: what runs cells stands a floor above.
        answer: str = import_module("jupyter_durable.kernel.waking").wake(on)
        return answer

    def _wait(self, word: str, asked: Asked, timeout: Duration | None) -> Any:
        __tracebackhide__ = True
        if timeout is not None:
            _length(timeout, "timeout")
        frame = current()
        if frame is None:
            raise NotInRun(f"`{word}` asks a person of a durable run: use it in a %%durable cell.")
        wait: Callable[..., Any] = wait_async if caller_awaits(3) else wait_sync
        return wait(frame, asked)


def _length(value: Duration, name: str) -> float:
    seconds = parse_duration(value, name)
    _check_length(seconds, name)
    return seconds


def _check_length(seconds: float, name: str) -> None:
    if seconds > _LONGEST:
        raise UsageError(f"`{name}` is longer than 100 years; nothing was begun. Wait for a nearer moment.")


def _deadline(timeout: Duration | None) -> float | None:
    return None if timeout is None else clock.now() + parse_duration(timeout, "timeout")


def _shown_digest(show: Any, key: Any) -> str:
    if show is None and key is None:
        return ""
    try:
        return digest([show if key is None else key])
    except Undigestable as error:
        raise Undigestable(
            f"What `durable.approve` is to show has no digest, so nobody could tell whether it has changed since it "
            f"was approved: {error} Give what identifies it: `key=`.",
            **error.facts,
        ) from None


def caller_awaits(depth: int = 2) -> bool:
    """Whether the code that called a word is a coroutine's, or the own code of a cell that awaits."""
    frame = sys._getframe(depth)
    while frame.f_code.co_name in _INSIDE and frame.f_back is not None:
        frame = frame.f_back
    code = frame.f_code
    if code.co_flags & _AWAITS:
        return True
    here = None if code.co_flags & inspect.CO_NEWLOCALS else current()
    return here is not None and here.execution.spec.awaits and here.execution.spec.file == code.co_filename
