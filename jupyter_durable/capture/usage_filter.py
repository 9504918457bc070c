"""Takes out of a stream the event that exists only because we asked for usage: the user sees what a plain call sees."""

from __future__ import annotations

import msgspec

from jupyter_durable.capture.providers.base import Api

_END = b"\n\n"


class UsageFilter:
    r"""Holds back bytes until an event is whole, and hides the ones that tell usage alone.

    >>> from jupyter_durable.capture.providers.base import Api
    >>> class Asked(Api):
    ...     def is_usage_only(self, event):
    ...         return event.get("choices") == []
    >>> seen = UsageFilter(Asked())
    >>> seen.through(b'data: {"choices":[1]}\n\ndata: {"choi')
    b'data: {"choices":[1]}\n\n'
    >>> seen.through(b'ces":[],"usage":{}}\n\ndata: [DONE]\n\n')
    b'data: [DONE]\n\n'
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._held = b""
        self.hidden: list[bytes] = []
        """The events that were taken out."""

    def through(self, chunk: bytes) -> bytes:
        """The bytes that go on to the user."""
        text = self._held + chunk.replace(b"\r\n", b"\n")
        *events, self._held = text.split(_END)
        kept = [event for event in events if not self._is_hidden(event)]
        return b"".join(event + _END for event in kept)

    def rest(self) -> bytes:
        """What is still held back at the end of the stream."""
        rest, self._held = self._held, b""
        return b"" if rest and self._is_hidden(rest) else rest

    def _is_hidden(self, event: bytes) -> bool:
        data = event.lstrip().removeprefix(b"data:").strip()
        if b"usage" not in data or data[:1] != b"{":
            return False
        try:
            told = msgspec.json.decode(data)
        except msgspec.DecodeError:
            return False
        if not self._api.is_usage_only(told):
            return False
        self.hidden.append(event + _END)
        return True
