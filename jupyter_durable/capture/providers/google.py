"""Google's Gemini API and Vertex AI: generating, embedding, drawing, and what Google keeps.

``promptTokenCount`` holds the cached tokens already; thoughts stand beside the candidates and are billed as output, and
what tools brought in is billed as input. Every event of a stream repeats the counts so far, so the last one tells. Only
the last has the final output: a stream that was cut keeps its input and no output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jupyter_durable.capture.providers import counts, hosts
from jupyter_durable.capture.providers.base import Answer, Api, Ask
from jupyter_durable.event_data import Usage

PURE_TOOLS = {"functionDeclarations", "function_declarations"}
"""Everything else searches, fetches or runs code at Google."""

_MODEL = re.compile(r"/(?:models|tunedModels|endpoints)/([^/:]+)(?::|$)")

_INTERACTION_OVER = re.compile(rb'\{\s*"[a-z_]+":\s*"interaction\.(?:completed?|failed|cancelled)"[^\n]*\}\r?\n')


def _field(value: Any, camel: str, snake: str) -> Any:
    """A field under either of the names that Google takes."""
    found = counts.at(value, camel)
    return counts.at(value, snake) if found is None else found


class GoogleApi(Api):
    """What Google's requests have in common: the model stands in the path."""

    provider = "google"

    def provider_of(self, ask: Ask) -> str:
        """Google behind gateways too; nobody behind a local server."""
        return hosts.provider_behind(ask.host, self.model(ask), self.provider)

    def model(self, ask: Ask) -> str:
        """Of the path."""
        found = _MODEL.search(ask.path)
        return found[1] if found else str(ask.get("model") or "").rpartition("/")[2]


class Generate(GoogleApi):
    """``:generateContent``."""

    name = "generateContent"
    path = re.compile(r":generateContent$")

    def most_output(self, ask: Ask) -> int | None:
        """The limit for one candidate, thoughts included, times the candidates."""
        config = _field(ask.json, "generationConfig", "generation_config")
        limit = counts.count(config, "maxOutputTokens", "max_output_tokens")
        return None if limit is None else limit * (counts.count(config, "candidateCount", "candidate_count") or 1)

    def is_pure(self, ask: Ask) -> bool:
        """False with any tool but functions of the caller's. Cached content never changes, so it is no obstacle."""
        if ask.method != "POST":
            return False
        return all(isinstance(tool, dict) and set(tool) <= PURE_TOOLS for tool in counts.asked_tools(ask))

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Of the last event that has counts."""
        told: Any = None
        model = ""
        over = False
        for event in self._events(answer):
            # A stream without ``alt=sse`` is an array of what would be events.
            usage = _field(event, "usageMetadata", "usage_metadata")
            told = usage if isinstance(usage, dict) else told
            model = counts.text(_field(event, "modelVersion", "model_version"), model)
            over = over or _is_finished(event)
        paid = counts.count(told, "promptTokenCount")
        thoughts = counts.count(told, "thoughtsTokenCount")
        output = counts.total(counts.count(told, "candidatesTokenCount"), thoughts)
        whole = counts.count(told, "totalTokenCount")
        if paid is not None:
            paid += counts.count(told, "toolUsePromptTokenCount") or 0
        if output is None and paid is not None and whole is not None:
            # No candidates: the prompt was refused, or all the limit went into thoughts.
            output = max(whole - paid, 0)
        return Usage(
            provider=self.provider_of(ask),
            model=model or self.model(ask),
            input=paid,
            output=output if over or not self.streams(ask) else None,
            cached=counts.count(told, "cachedContentTokenCount"),
            reasoning=thoughts,
        )

    @staticmethod
    def _events(answer: Answer) -> Iterator[Any]:
        start = answer.body.lstrip()[:1]
        if start == b"[":
            yield from counts.array_items(answer.body)
        else:
            yield from counts.objects(answer)


def _is_finished(event: Any) -> bool:
    if counts.at(event, "promptFeedback", "blockReason"):
        return True
    candidates = counts.at(event, "candidates")
    return isinstance(candidates, list) and any(counts.at(one, "finishReason") for one in candidates)


class Stream(Generate):
    """``:streamGenerateContent``, as server-sent events or, without ``alt=sse``, as one JSON array."""

    name = "streamGenerateContent"
    path = re.compile(r":streamGenerateContent$")

    def streams(self, ask: Ask) -> bool:
        """Always."""
        return True

    def is_over(self, tail: bytes) -> bool:
        """No event says that it is the last; the one with the reason for finishing and the counts is."""
        if re.search(rb"[\r\n]\]\s*\Z", tail):
            return True
        last = tail.rstrip().rpartition(b"\n")[2]
        whole = tail.endswith((b"\n\n", b"\r\n\r\n")) and last.startswith(b"data:")
        return whole and b'"finishReason"' in last and b'"usageMetadata"' in last


class WithoutOutput(GoogleApi):
    """Embedding and counting."""

    def __init__(self, verb: str, *, billed: bool = True) -> None:
        self.name = verb
        self.path = re.compile(rf":{verb}$")
        self._billed = billed

    def most_output(self, ask: Ask) -> int | None:
        """None at all."""
        return 0

    def is_billed(self, ask: Ask) -> bool:
        """Counting is free."""
        return self._billed

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Embeddings tell tokens on Vertex AI and in newer answers of Gemini."""
        told = counts.at(answer.json, "usageMetadata") if self._billed else None
        return Usage(
            provider=self.provider_of(ask), model=self.model(ask), input=counts.count(told, "promptTokenCount")
        )


class Predict(GoogleApi):
    """``:predict`` of Vertex AI and Imagen, and ``:predictLongRunning``, which begins a video."""

    name = "predict"
    path = re.compile(r":predict(?:LongRunning)?$")
    hosts = ("googleapis.com",)

    def is_pure(self, ask: Ask) -> bool:
        """What runs for long answers with an operation, which is Google's state."""
        return ask.path.endswith(":predict")

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """Embeddings tell their tokens text by text."""
        predictions = counts.at(answer.json, "predictions")
        told: list[int | None] = []
        if isinstance(predictions, list):
            told = [counts.count(counts.at(one, "embeddings", "statistics"), "token_count") for one in predictions]
        return Usage(
            provider=self.provider_of(ask),
            model=self.model(ask),
            input=None if None in told else counts.total(*told),
        )


class Interactions(GoogleApi):
    """``/interactions``: Google keeps them unless told otherwise, and its agents run there."""

    name = "interactions"
    methods = ("POST", "GET", "DELETE")
    path = re.compile(r"/v\d+\w*/interactions(?:/|$)")
    hosts = ("googleapis.com",)

    def is_billed(self, ask: Ask) -> bool:
        """A new one is; a look at one is not."""
        return ask.method == "POST" and not ask.path.endswith("/cancel")

    def is_pure(self, ask: Ask) -> bool:
        """Not claimed."""
        return False

    def usage(self, ask: Ask, answer: Answer) -> Usage:
        """The last counts that are told."""
        told: Any = None
        model = ""
        for event in counts.objects(answer):
            said = counts.at(event, "interaction") or event
            told = counts.at(said, "usage") or told
            model = counts.text(counts.at(said, "model"), model)
        thoughts = counts.count(told, "total_thought_tokens")
        paid = counts.count(told, "total_input_tokens")
        return Usage(
            provider=self.provider_of(ask),
            model=model or self.model(ask),
            input=None if paid is None else counts.total(paid, counts.count(told, "total_tool_use_tokens")),
            output=counts.total(counts.count(told, "total_output_tokens"), thoughts),
            cached=counts.count(told, "total_cached_tokens"),
            reasoning=thoughts,
        )

    def is_over(self, tail: bytes) -> bool:
        """Its last event, whole."""
        return counts.OVER.search(tail) is not None or _INTERACTION_OVER.search(tail) is not None


class Stored(GoogleApi):
    """Files, caches, batches, operations: looked at, made and deleted."""

    name = "stored"
    methods = ("POST", "GET", "DELETE", "PATCH")
    path = re.compile(
        r"/v\d+\w*/(?:projects/[^/]+/locations/[^/]+/)?(?:models/[^/]+/|publishers/google/models/[^/]+/)?"
        r"(?:files|cachedContents|batches|batchPredictionJobs|operations|fileSearchStores|tuningJobs)(?:[/:]|$)"
        r"|:(?:batchGenerateContent|asyncBatchEmbedContent|fetchPredictOperation)$"
    )
    hosts = ("generativelanguage.googleapis.com", "aiplatform.googleapis.com")

    def recognises(self, ask: Ask) -> bool:
        """At Google's hosts for models; those of Vertex AI begin with a region."""
        if ask.method not in self.methods or self.path.search(ask.path) is None:
            return False
        return ask.host.endswith(self.hosts)

    def is_billed(self, ask: Ask) -> bool:
        """Keeping a cache costs by the hour, which no answer tells."""
        return False

    def is_pure(self, ask: Ask) -> bool:
        """Never: Google's state is what it is about."""
        return False


APIS: tuple[Api, ...] = (
    Generate(),
    Stream(),
    WithoutOutput("embedContent"),
    WithoutOutput("batchEmbedContents"),
    WithoutOutput("countTokens", billed=False),
    WithoutOutput("computeTokens", billed=False),
    Predict(),
    Interactions(),
    Stored(),
)
