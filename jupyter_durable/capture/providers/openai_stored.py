"""What providers of OpenAI's protocol keep: files, batches, conversations, assistants and their threads.

Recorded, so that a replay finds the same ids again; never reused after an edit, and not billed here: a batch or a run
costs what its parts cost, which no answer to these requests tells. Their paths are words that any web service may use,
so they count only at hosts that are known to have them.
"""

from __future__ import annotations

import re

from jupyter_durable.capture.providers.base import Api, Ask
from jupyter_durable.capture.providers.openai_words import provider_of

HOSTS = (
    "api.openai.com",
    "openai.azure.com",
    "cognitiveservices.azure.com",
    "services.ai.azure.com",
)
HOSTS_OF_FILES = (
    *HOSTS,
    "api.groq.com",
    "api.together.xyz",
    "api.fireworks.ai",
    "api.mistral.ai",
    "api.x.ai",
    "api.moonshot.ai",
)
"""Those who took over files and batches, and keep nothing else under these names."""

KINDS = tuple("uploads conversations assistants threads vector_stores containers evals videos agents skills".split())
KINDS_OF_FILES = ("files", "batches", "batch", "fine_tuning")


class Stored(Api):
    """A request about something that the provider keeps."""

    methods: tuple[str, ...] = ("POST", "GET", "DELETE")

    def __init__(self, kind: str, hosts: tuple[str, ...] = HOSTS) -> None:
        self.name = kind
        self.hosts = hosts
        self.path = re.compile(rf"/(?:v\d+|openai)/{kind}(?:/|$)")

    def provider_of(self, ask: Ask) -> str:
        """By the host, which is always known here."""
        return provider_of(ask, "")

    def is_billed(self, ask: Ask) -> bool:
        """A video is paid for when it is asked for; nothing else is."""
        return self.name == "videos" and ask.method == "POST"

    def is_pure(self, ask: Ask) -> bool:
        """Never: the provider's state is what it is about."""
        return False


class Kept(Stored):
    """Looking at, listing and deleting chat completions that were stored."""

    methods = ("GET", "DELETE")

    def __init__(self) -> None:
        super().__init__("chat/completions")
        self.name = "chat.completions.stored"


APIS: tuple[Api, ...] = (
    *(Stored(kind) for kind in KINDS),
    *(Stored(kind, HOSTS_OF_FILES) for kind in KINDS_OF_FILES),
    Kept(),
)
