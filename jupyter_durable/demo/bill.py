"""Counts what a model endpoint bills: every request, its tokens, and whether its answer arrived.

A request is billed in full when it is received, because that is what providers do: a caller that dies before the
answer arrives pays all the same. Such a request is marked *cut*.

The rule for tokens: one token for every four characters begun, and four more for each message of a prompt. A tool that
is offered counts as the JSON that offers it, a tool that an answer calls as its name and arguments. The answer to a
prompt is always the same, except for a number that rises with every request (``#0003``, ``call_0003_1``), so that a
call that was made twice is noticed by its answer. The number has a fixed width and is left out where the text is
chosen: the same conversation costs the same tokens, whatever numbers its answers carried.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from jupyter_durable import clock
from jupyter_durable.demo.conversation import NUMBERED, QUOTED, Conversation, ToolCall, calls_for

State = Literal["in_flight", "completed", "cut"]

_SENTENCES = (
    "Write the intent down before the effect, and the result after it.",
    "What was paid for once is read back, never bought again.",
    "A process may die at any instant; a log that was flushed may not.",
    "Recovery is reading, not guessing.",
    "The first unfinished step is the only place where work goes on.",
    "An answer that changes between two runs was asked for twice.",
    "Glue code is cheap and simply runs again.",
    "A step with an intent and no end is in doubt, and says so.",
)


def tokens_of(text: str) -> int:
    """Tokens of one text.

    >>> tokens_of(""), tokens_of("four"), tokens_of("fives")
    (0, 1, 2)
    """
    return -(-len(text) // 4)


def answer_to(
    messages: Iterable[tuple[str, str]], number: int, asked: str | None = None, results: Iterable[tuple[str, str]] = ()
) -> str:
    """The answer to a conversation, which is the same each time except for ``number``.

    >>> one = answer_to([("user", "Why keep a log?")], 1)
    >>> two = answer_to([("user", "Why keep a log?")], 2)
    >>> one == two, one.replace("#0001", "#0002") == two
    (False, True)

    Args:
        messages: role and text of each message.
        number: which request of the endpoint this is, from 1.
        asked: what it answers; the last message if not given.
        results: what tools have found, by their names; the answer tells it.
    """
    texts = [NUMBERED.sub("", text) for _, text in messages]
    digest = hashlib.sha256("\n".join(texts).encode()).digest()
    last = NUMBERED.sub("", asked) if asked is not None else texts[-1] if texts else ""
    found = "".join(f" {name} says '{_quoted(NUMBERED.sub('', text))}'." for name, text in results)
    first, second = _SENTENCES[digest[0] % len(_SENTENCES)], _SENTENCES[digest[1] % len(_SENTENCES)]
    return f"Answer #{number:04d} to '{_quoted(last)}':{found} {first} {second}"


def _quoted(text: str) -> str:
    return " ".join(text.split())[:QUOTED]


@dataclass(slots=True)
class Request:
    """One billed request."""

    id: int
    """Counts from 1 in the order of receipt."""
    at: float
    """When it was received, in seconds since 1970-01-01 UTC."""
    path: str
    prompt: str
    """Digest of the conversation, answers' numbers included: equal digests mean equal prompts, to the letter."""
    prompt_tokens: int
    completion_tokens: int
    state: State = "in_flight"
    answer: str = field(default="", repr=False)
    """The text; empty if it asks for tools instead."""
    calls: tuple[ToolCall, ...] = field(default=(), repr=False)
    """The tools that it asks for."""

    @property
    def tokens(self) -> int:
        """All tokens billed for it."""
        return self.prompt_tokens + self.completion_tokens


class Bill:
    """The requests an endpoint has received. Safe to use from several threads.

    It also holds requests open on demand, so that a caller can act (kill a kernel, say) while one is in flight.
    """

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._held: set[int] = set()
        self._closed = False
        self._changed = threading.Condition()

    def receive(self, path: str, said: Conversation) -> Request:
        """Bill a request and choose its answer."""
        prompt = "\n".join([*(f"{role}: {text}" for role, text in said.messages), *(tool.text for tool in said.tools)])
        with self._changed:
            number = len(self._requests) + 1
            calls = calls_for(said, number)
            asked = said.asked if said.results else None
            answer = "" if calls else answer_to(said.messages, number, asked, said.results)
            request = Request(
                id=number,
                at=clock.now(),
                path=path,
                prompt=hashlib.sha256(prompt.encode()).hexdigest()[:16],
                prompt_tokens=sum(4 + tokens_of(text) for _, text in said.messages)
                + sum(tokens_of(tool.text) for tool in said.tools),
                completion_tokens=tokens_of(answer)
                + sum(tokens_of(call.name) + tokens_of(call.arguments) for call in calls),
                answer=answer,
                calls=calls,
            )
            self._requests.append(request)
            self._changed.notify_all()
        return request

    def finish(self, request: Request, state: Literal["completed", "cut"]) -> None:
        """Say how a request ended; one that was thought to be answered may still turn out to be cut."""
        with self._changed:
            request.state = state
            self._changed.notify_all()

    def hold(self, *numbers: int) -> None:
        """Keep these requests open, when they come, until they are released or their client is gone."""
        with self._changed:
            self._held.update(numbers)

    def release(self, *numbers: int) -> None:
        """Let these requests be answered; all that are held, if none is named."""
        with self._changed:
            self._held.difference_update(numbers or set(self._held))
            self._changed.notify_all()

    def pause(self, request: Request, seconds: float) -> bool:
        """Wait a little for a change, on behalf of a request that may be held.

        Returns:
            Whether it is held now.
        """
        with self._changed:
            if seconds > 0:
                self._changed.wait(seconds)
            return request.id in self._held and not self._closed

    def wait_in_flight(self, number: int, timeout: float) -> State | None:
        """Block until request ``number`` has been received.

        Returns:
            Its state then; ``None`` if it did not come in time.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._requests) >= number or self._closed, timeout)
            return self._requests[number - 1].state if len(self._requests) >= number else None

    def wait_ended(self, number: int, timeout: float) -> State | None:
        """Block until request ``number`` is in flight no more.

        Returns:
            How it ended; ``None`` if it did not in time.
        """

        def ended() -> bool:
            return len(self._requests) >= number and self._requests[number - 1].state != "in_flight"

        with self._changed:
            return self._requests[number - 1].state if self._changed.wait_for(ended, timeout) else None

    @property
    def closed(self) -> bool:
        """Whether the endpoint is being stopped, which ends what is held."""
        return self._closed

    def close(self) -> None:
        """Wake everybody who waits: the endpoint is being stopped."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def requests(self) -> list[Request]:
        """A copy of all requests so far."""
        with self._changed:
            return [replace(request) for request in self._requests]

    def summary(self) -> dict[str, Any]:
        """Everything as JSON-like data: totals, and the list of requests without their answers."""
        requests = self.requests()
        listed = [asdict(request) for request in requests]
        for entry in listed:
            del entry["answer"], entry["calls"]
        return {
            "requests": len(requests),
            "in_flight": sum(request.state == "in_flight" for request in requests),
            "cut": sum(request.state == "cut" for request in requests),
            "prompt_tokens": sum(request.prompt_tokens for request in requests),
            "completion_tokens": sum(request.completion_tokens for request in requests),
            "total_tokens": sum(request.tokens for request in requests),
            "list": listed,
        }
