"""What capture must know about one kind of request: how to recognise it, and how to read it and its answer. Pure.

A provider is one file with one or more `Api` objects in a tuple, named by an entry point of the group
``jupyter_durable.providers``. Nothing here does I/O; the hooks of the HTTP libraries do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from jupyter_durable.event_data import Usage


class Ask(msgspec.Struct, dict=True):
    """A request as an HTTP library is about to send it."""

    method: str
    """Upper case."""
    scheme: str
    host: str
    """Lower case, without port."""
    port: int | None
    path: str
    """Path of the URL, still encoded."""
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    """Names in lower case."""
    body: bytes = b""

    @cached_property
    def json(self) -> Any:
        """The body as JSON; ``None`` if it is none."""
        if self.body.lstrip()[:1] not in (b"{", b"["):
            return None
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def get(self, name: str, default: Any = None) -> Any:
        """A field of the body, if that is a JSON object."""
        return self.json.get(name, default) if isinstance(self.json, dict) else default


class Answer(msgspec.Struct, dict=True):
    """An answer, whole or as far as it was read; content encodings are undone."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    complete: bool = True
    """False if the reader left before the end."""

    @cached_property
    def json(self) -> Any:
        """The body as JSON; ``None`` if it is none."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def events(self) -> Iterator[Any]:
        """The JSON objects of a stream: server-sent events, or one a line. What is no JSON (``[DONE]``) is left out."""
        for line in self.body.split(b"\n"):
            text = line.strip()
            if text.startswith(b"data:"):
                text = text[5:].strip()
            if text[:1] not in (b"{", b"["):
                continue
            try:
                yield msgspec.json.decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # the end of a stream that was left in the middle of an event


class Api:
    """One kind of request. Subclasses say how to recognise and read it; every method has a sane default.

    Attributes:
        provider: id of the provider, as genai-prices names it where it knows it (``openai``, ``anthropic``,
            ``google``); empty if many providers speak it, and `provider_of` tells by the host.
        name: kind of request, such as ``chat.completions``; with the provider it names the step.
        methods: HTTP methods.
        path: matched against the path of the URL with ``search``.
            A request whose method, path or host does not fit is never asked about further (`finding.api_for`), unless
            there is no path at all: then `recognises` alone decides.
        hosts: where it lives; a host matches if it is equal or ends with ``.`` and this. Empty: anywhere, so that
            gateways and local servers count.
    """

    provider: str = ""
    name: str = ""
    methods: tuple[str, ...] = ("POST",)
    path: re.Pattern[str] = re.compile(r"(?!)")
    hosts: tuple[str, ...] = ()

    def recognises(self, ask: Ask) -> bool:
        """Whether a request is of this kind; must be quick, since every request of a durable cell is asked about."""
        if ask.method not in self.methods or self.path.search(ask.path) is None:
            return False
        return not self.hosts or any(ask.host == host or ask.host.endswith("." + host) for host in self.hosts)

    def provider_of(self, ask: Ask) -> str:
        """Id of the provider behind the host, by which the call is priced; empty where nobody can tell, as at a local
        server.
        """
        return self.provider

    def model(self, ask: Ask) -> str:
        """The model that is asked."""
        return str(ask.get("model") or "")

    def streams(self, ask: Ask) -> bool:
        """Whether the answer is asked for as a stream."""
        return ask.get("stream") is True

    def most_output(self, ask: Ask) -> int | None:
        """Largest number of output tokens that the request allows, all choices together; ``None``: no limit set."""
        return None

    def is_billed(self, ask: Ask) -> bool:
        """Whether the request uses tokens or other things that cost: a poll or a count does not."""
        return True

    def is_pure(self, ask: Ask) -> bool:
        """Whether the answer depends on the request alone: no conversation kept by the provider, no web search, no code
        that runs there, no poll. Only such answers are reused after an edit.
        """
        return ask.method == "POST"

    def with_usage(self, ask: Ask) -> bytes | None:
        """The body with a wish for usage in the stream, if the provider sends none unasked and the host is known to
        allow it; else ``None``.
        """
        return None

    def is_usage_only(self, event: Any) -> bool:
        """Whether an event of a stream exists only because of `with_usage`, and is hidden from the user."""
        return False

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """What an answer says it used; fields that it does not tell stay ``None``."""
        return Usage(provider=self.provider_of(ask), model=self.model(ask))

    def is_over(self, tail: bytes) -> bool:
        """Whether the last bytes of a stream (up to 4,096) hold its last event: clients may stop reading there."""
        return False
