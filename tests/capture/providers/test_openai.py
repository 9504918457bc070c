"""OpenAI's protocol, at OpenAI, at those who speak it too, and at local servers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable.capture.providers import openai
from tests.capture.providers.asking import api, ask, form, name, plain, sse, told, usage

CHAT = "https://api.openai.com/v1/chat/completions"
RESPONSES = "https://api.openai.com/v1/responses"
AZURE = "https://x.openai.azure.com/openai/deployments/mine/chat/completions?api-version=2025-01-01"
HI = [{"role": "user", "content": "Hi"}]
IMPURE_TOOLS = (
    "web_search web_search_preview_2025_03_11 file_search code_interpreter mcp computer_use_preview shell of_tomorrow"
).split()
COUNTS = {
    "prompt_tokens": 19,
    "completion_tokens": 31,
    "total_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 16, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 12, "accepted_prediction_tokens": 0},
}


def chat(**more):
    return {"model": "gpt-5-mini", "messages": HI, **more}


def chunk(text: str, **more):
    choices = [{"index": 0, "delta": {"content": text}, "finish_reason": None}]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-5-mini-2025-08-07"} | {
        "choices": choices,
        **more,
    }


STREAM = sse(
    chunk("Hel", usage=None),
    chunk("lo", usage=None),
    chunk("", usage=None),
    chunk("", choices=[], usage=COUNTS),
    "[DONE]",
)


@pytest.mark.parametrize(
    ("url", "body", "expected"),
    [
        (CHAT, chat(), "chat.completions"),
        ("http://localhost:8000/v1/chat/completions", chat(), "chat.completions"),
        (AZURE, {}, "chat.completions"),
        ("https://gw.example.com/v1/acct/gw/openai/chat/completions", chat(), "chat.completions"),
        ("https://dbc-1.cloud.databricks.com/serving-endpoints/dbrx/invocations", {"messages": HI}, "chat.completions"),
        ("https://api.openai.com/v1/completions", {"model": "m", "prompt": "Hi"}, "completions"),
        ("https://gw.example.com/v1/completions", {"model": "m", "prompt": "Hi"}, "completions"),
        (RESPONSES, {"model": "gpt-5", "input": "Hi"}, "responses"),
        ("http://127.0.0.1:4000/responses", {"model": "gpt-5", "input": "Hi"}, "responses"),
        ("https://api.openai.com/v1/responses/compact", {"model": "gpt-5", "input": "Hi"}, "responses.compact"),
        ("https://api.openai.com/v1/responses/input_tokens", {"model": "gpt-5", "input": "Hi"}, "responses.poll"),
        ("https://api.openai.com/v1/responses/resp_1/cancel", None, "responses.poll"),
        ("https://api.openai.com/v1/embeddings", {"model": "m", "input": "Hi"}, "embeddings"),
        ("https://api.voyageai.com/v1/multimodalembeddings", {"model": "m", "inputs": []}, "embeddings"),
        ("https://api.openai.com/v1/moderations", {"input": "Hi"}, "moderations"),
        ("https://api.openai.com/v1/images/generations", {"prompt": "A cat"}, "images"),
        ("https://api.openai.com/v1/audio/speech", {"model": "tts-1", "input": "Hi"}, "audio"),
        ("https://api.openai.com/v1/batches", {"input_file_id": "f"}, "batches"),
        ("https://api.openai.com/v1/conversations/conv_1/items", {"items": []}, "conversations"),
        ("https://api.openai.com/v1/threads/t_1/runs", {"assistant_id": "a"}, "threads"),
        ("https://x.openai.azure.com/openai/files", None, "files"),
    ],
)  # fmt: skip
def test_a_model_call_is_known_by_its_path_and_body(url, body, expected):
    assert name(ask(url, body)) == expected


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("GET", "https://api.openai.com/v1/models", None),
        ("POST", "https://api.openai.com/v1/traces/ingest", {"data": []}),
        ("POST", "https://api.smith.langchain.com/runs/batch", {"post": []}),
        ("POST", "https://api.smith.langchain.com/otel/v1/traces", {}),
        ("POST", "http://localhost:4318/v1/traces", {"resourceSpans": []}),
        ("POST", "http://localhost:4318/v1/metrics", {}),
        ("POST", "http://localhost:4318/v1/logs", {}),
        ("POST", "https://us.i.posthog.com/batch/", {"batch": []}),
        ("POST", "https://o1.ingest.sentry.io/api/2/envelope/", {}),
        ("POST", "https://api.helicone.ai/custom/v1/log", {"model": "gpt-4o", "input": "x"}),
        ("POST", "https://logfire-api.pydantic.dev/v1/traces", {}),
        ("POST", "https://cloud.langfuse.com/api/public/ingestion", {"batch": []}),
        ("POST", "https://www.example.com/files", {"model": "x"}),
        ("POST", "https://www.example.com/v1/batches", {}),
        ("POST", "https://www.example.com/v1/threads", {"model": "x"}),
        ("POST", "https://api.typeform.com/forms/f/responses", {"answers": []}),
        ("GET", "https://api.typeform.com/forms/f/responses/abc", None),
        ("POST", "https://www.example.com/v1/embeddings", {"vector": [1.0]}),
        ("POST", "https://mail.example.com/v1/messages", {"to": "a@example.com"}),
    ],
)
def test_telemetry_and_other_services_are_not_known(method, url, body):
    assert name(ask(url, body, method)) == ""


@pytest.mark.parametrize(
    ("host", "model", "provider"),
    [
        ("https://api.openai.com", "gpt-4o", "openai"),
        ("https://eu.api.openai.com", "gpt-4o", "openai"),
        ("https://mine.openai.azure.com/openai", "gpt-4o", "azure"),
        ("https://openrouter.ai/api", "anthropic/claude-sonnet-4-5", "openrouter"),
        ("https://api.groq.com/openai", "llama-3.3-70b-versatile", "groq"),
        ("https://api.x.ai", "grok-4", "x-ai"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com/openai", "openai.gpt-oss-20b-1:0", "aws"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", "google"),
        ("https://router.huggingface.co", "openai/gpt-oss-20b:groq", "huggingface_groq"),
        ("https://router.huggingface.co/together", "x", "huggingface_together"),
        ("http://localhost:11434", "gpt-4o", ""),
        ("http://127.0.0.1:4000", "openai/gpt-4o", ""),
        ("http://litellm:4000", "openai/gpt-4o", ""),
        ("https://llm.example.com", "gpt-4o", ""),
        ("https://llm.example.com", "openai/gpt-4o", "openai"),
        ("https://llm.example.com", "openai/gpt-oss-20b", ""),
        ("https://llm.example.com", "google/gemma-3-27b", ""),
        ("https://api.openai.com.example.com", "gpt-4o", ""),
    ],
)
def test_the_provider_is_that_of_the_host_and_never_a_guess(host, model, provider):
    path = "/chat/completions" if "/together" in host or "/v1beta" in host else "/v1/chat/completions"
    request = ask(host + path, chat(model=model))

    assert api(request).provider_of(request) == provider


def test_azure_names_the_model_in_the_path_and_in_the_answer():
    request = ask("https://x.openai.azure.com/openai/deployments/mine/chat/completions", {"messages": HI})

    assert api(request).model(request) == "mine"
    assert usage(request, plain({"model": "gpt-4o-2024-08-06", "usage": COUNTS})).model == "gpt-4o-2024-08-06"


def test_a_plain_chat_tells_all_counts():
    found = usage(ask(CHAT, chat()), plain({"model": "gpt-5-mini-2025-08-07", "choices": [], "usage": COUNTS}))

    assert told(found) == (19, 31, 16, None, 12)
    assert (found.provider, found.model) == ("openai", "gpt-5-mini-2025-08-07")


def test_a_streamed_chat_tells_them_in_its_last_chunk():
    found = usage(ask(CHAT, chat(stream=True)), STREAM)

    assert told(found) == (19, 31, 16, None, 12)


def test_a_stream_without_usage_is_unknown_and_names_the_model():
    found = usage(ask(CHAT, chat(stream=True)), sse(chunk("Hello"), "[DONE]"))

    assert told(found) == (None,) * 5
    assert found.model == "gpt-5-mini-2025-08-07"


@given(st.integers(0, len(STREAM)))
def test_a_stream_that_is_cut_tells_all_or_nothing(cut):
    found = usage(ask(CHAT, chat(stream=True)), STREAM[:cut])

    assert told(found) in {(None,) * 5, (19, 31, 16, None, 12)}


@given(st.binary(max_size=200))
def test_an_answer_that_is_anything_is_read_without_harm(body):
    for url, fields in ((CHAT, chat()), (RESPONSES, {"input": "Hi"}), ("https://api.openai.com/v1/embeddings", {})):
        assert told(usage(ask(url, fields), body)) == (None,) * 5


def test_dialects_of_usage_are_understood():
    deepseek = usage(
        ask("https://api.deepseek.com/chat/completions", chat()),
        plain({"usage": {"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 8}}),
    )
    xai = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 33}
    xai["completion_tokens_details"] = {"reasoning_tokens": 20}
    grok = usage(ask("https://api.x.ai/v1/chat/completions", chat()), plain({"usage": xai}))
    groq = usage(
        ask("https://api.groq.com/openai/v1/chat/completions", chat(stream=True)),
        sse(chunk("a"), chunk("", x_groq={"usage": {"prompt_tokens": 5, "completion_tokens": 6}}), "[DONE]"),
    )
    router = usage(
        ask("https://openrouter.ai/api/v1/chat/completions", chat()),
        plain({"usage": {"prompt_tokens": 9, "completion_tokens": 4, "cost": 0.00014}}),
    )

    assert told(deepseek)[:3] == (9, 4, 8)
    assert told(grok) == (9, 24, None, None, 20)
    assert told(groq)[:2] == (5, 6)
    assert (router.cost, router.prices) == (0.00014, "told by openrouter")


@pytest.mark.parametrize(
    ("fields", "most"),
    [
        ({}, None),
        ({"max_tokens": 100}, 100),
        ({"max_completion_tokens": 100, "n": 3}, 300),
        ({"max_tokens": 100, "n": None}, 100),
        ({"max_tokens": "many"}, None),
    ],
)
def test_the_most_output_counts_every_choice(fields, most):
    request = ask(CHAT, chat(**fields))

    assert api(request).most_output(request) == most


def test_old_completions_count_prompts_and_the_best_of_many():
    request = ask(
        "https://api.openai.com/v1/completions", {"model": "m", "prompt": ["a", "b"], "max_tokens": 5} | {"best_of": 4}
    )

    assert api(request).most_output(request) == 40


@pytest.mark.parametrize(
    ("url", "fields", "pure"),
    [
        (CHAT, chat(tools=[{"type": "function", "function": {"name": "f"}}]), True),
        (CHAT, chat(store=True, seed=1), True),
        (CHAT, chat(web_search_options={}), False),
        (CHAT, chat(web_search_options={"search_context_size": "low"}), False),
        (CHAT, chat(model="gpt-4o-search-preview"), False),
        ("https://api.perplexity.ai/chat/completions", chat(model="sonar-pro"), False),
        ("https://api.groq.com/openai/v1/chat/completions", chat(model="groq/compound-mini"), False),
        ("https://api.groq.com/openai/v1/chat/completions", chat(tools=[{"type": "browser_search"}]), False),
        ("https://openrouter.ai/api/v1/chat/completions", chat(model="openai/gpt-4o:online"), False),
        ("https://openrouter.ai/api/v1/chat/completions", chat(plugins=[{"id": "web"}]), False),
        (RESPONSES, {"model": "gpt-5", "input": "Hi", "store": True}, True),
        (RESPONSES, {"model": "gpt-5", "input": "Hi", "tools": [{"type": "image_generation"}]}, True),
        (RESPONSES, {"model": "gpt-5", "input": "Hi", "previous_response_id": "resp_1"}, False),
        (RESPONSES, {"model": "gpt-5", "input": "Hi", "conversation": "conv_1"}, False),
        (RESPONSES, {"model": "gpt-5", "input": "Hi", "background": True}, False),
        (RESPONSES, {"input": "Hi", "prompt": {"id": "pmpt_1"}}, False),
        (RESPONSES, {"input": "Hi", "prompt": {"id": "pmpt_1", "version": "3"}}, True),
        (RESPONSES, {"model": "o3-deep-research", "input": "Hi"}, False),
        *((RESPONSES, {"model": "gpt-5", "input": "Hi", "tools": [{"type": kind}]}, False) for kind in IMPURE_TOOLS),
        ("https://api.openai.com/v1/files", {}, False),
    ],
)
def test_only_what_depends_on_the_request_alone_is_pure(url, fields, pure):
    request = ask(url, fields)

    assert api(request).is_pure(request) is pure


def test_a_poll_is_known_not_pure_and_not_billed():
    request = ask("https://api.openai.com/v1/responses/resp_1", method="GET")
    found = api(request)

    assert (found.name, found.is_pure(request), found.is_billed(request)) == ("responses.poll", False, False)
    assert name(ask("http://localhost:9/v1/responses/resp_1", method="GET")) == "responses.poll"


def test_usage_is_wished_for_only_in_streams_at_hosts_that_allow_it(monkeypatch):
    def wish(url, fields):
        request = ask(url, fields)
        return api(request).with_usage(request)

    wished = wish(CHAT, chat(stream=True))
    mixed = wish(CHAT, chat(stream=True, stream_options={"include_obfuscation": False}))

    assert json.loads(wished) == chat(stream=True, stream_options={"include_usage": True})
    assert json.loads(mixed)["stream_options"] == {"include_obfuscation": False, "include_usage": True}
    assert wish(CHAT, chat()) is None
    assert wish(CHAT, chat(stream=True, stream_options={"include_usage": False})) is None
    assert json.loads(wish(CHAT, chat(stream=True, stream_options=None)))["stream_options"] == {"include_usage": True}
    assert wish(RESPONSES, {"model": "m", "input": "Hi", "stream": True}) is None
    assert wish("http://localhost:8000/v1/chat/completions", chat(stream=True)) is None
    azure = "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version="
    assert wish(azure + "2024-06-01", chat(stream=True)) is None
    assert wish(azure + "2025-01-01-preview", chat(stream=True)) is not None

    monkeypatch.setattr(openai, "ALLOWS_USAGE", openai.ALLOWS_USAGE | {"localhost"})
    assert wish("http://localhost:8000/v1/chat/completions", chat(stream=True)) is not None


def test_only_the_chunk_that_was_wished_for_is_hidden():
    found = api(ask(CHAT, chat(stream=True)))

    assert found.is_usage_only(chunk("", choices=[], usage=COUNTS))
    assert not found.is_usage_only(chunk("", choices=[], prompt_filter_results=[]))
    assert not found.is_usage_only(chunk("x", usage=COUNTS))
    assert not found.is_usage_only([])


# Responses


RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "gpt-5-2025-08-07",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "x" * 5000}]}],
    "usage": {
        "input_tokens": 36,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "output_tokens": 87,
        "output_tokens_details": {"reasoning_tokens": 64},
        "total_tokens": 123,
    },
    "user": None,
    "metadata": {},
}
EVENTS = sse(
    {"type": "response.created", "response": RESPONSE | {"status": "in_progress", "usage": None, "output": []}},
    {"type": "response.output_text.delta", "delta": 'data: {"type":"response.completed"}\n"usage":{"input_tokens":1}'},
    {"type": "response.completed", "response": RESPONSE, "sequence_number": 9},
    named=True,
)


def test_a_response_tells_all_counts_plain_and_streamed():
    request = ask(RESPONSES, {"model": "gpt-5", "input": "Hi"})

    for answer in (plain(RESPONSE), plain(EVENTS)):
        assert told(usage(request, answer)) == (36, 87, 4, 2, 64)
        assert usage(request, answer).model == "gpt-5-2025-08-07"


def test_a_response_in_the_background_tells_nothing_yet():
    queued = RESPONSE | {"status": "queued", "usage": None}

    assert told(usage(ask(RESPONSES, {"input": "Hi", "background": True}), plain(queued))) == (None,) * 5


@given(st.integers(0, len(EVENTS)))
def test_responses_that_are_cut_tell_all_or_nothing_and_are_over_at_their_end_only(cut):
    request = ask(RESPONSES, {"model": "gpt-5", "input": "Hi", "stream": True})
    part = EVENTS[:cut]

    assert told(usage(request, part)) in {(None,) * 5, (36, 87, 4, 2, 64)}
    assert api(request).is_over(part[-4096:]) is (cut == len(EVENTS))


@pytest.mark.parametrize("kind", ["completed", "failed", "incomplete"])
def test_a_short_last_event_ends_a_response(kind):
    over = api(ask(RESPONSES, {"input": "Hi"})).is_over

    assert over(sse({"type": f"response.{kind}", "response": {}}))
    assert not over(sse({"type": "response.in_progress", "response": {}}))


def test_a_chat_is_over_with_done():
    over = api(ask(CHAT, chat())).is_over

    assert over(STREAM[-4096:])
    assert not over(STREAM[: -len("data: [DONE]\n\n")])
    assert not over(sse(chunk("data: [DONE]")))


# Embeddings, audio, images


def test_embeddings_have_input_and_no_output():
    request = ask("https://api.openai.com/v1/embeddings", {"model": "text-embedding-3-small", "input": "Hi"})
    answer = {"data": [], "model": "text-embedding-3-small", "usage": {"prompt_tokens": 8, "total_tokens": 8}}

    assert told(usage(request, plain(answer))) == (8, None, None, None, None)
    assert api(request).most_output(request) == 0
    assert told(usage(request, plain({"usage": {"total_tokens": 10}})))[0] == 10


def test_a_form_names_its_model_and_whether_it_streams():
    request = form("https://api.openai.com/v1/audio/transcriptions", {"model": "gpt-4o-transcribe", "stream": "true"})
    found = api(request)

    assert (found.name, found.model(request), found.streams(request)) == ("audio", "gpt-4o-transcribe", True)


def test_a_transcript_tells_tokens_or_seconds():
    request = form("https://api.openai.com/v1/audio/transcriptions", {"model": "gpt-4o-transcribe"})
    tokens = {"text": "Hi", "usage": {"type": "tokens", "input_tokens": 14, "output_tokens": 45, "total_tokens": 59}}
    done = {"type": "transcript.text.done", "text": "Hi", "usage": tokens["usage"]}
    streamed = sse({"type": "transcript.text.delta", "delta": "Hi"}, done)

    assert told(usage(request, plain(tokens)))[:2] == (14, 45)
    assert told(usage(request, streamed))[:2] == (14, 45)
    assert api(request).is_over(streamed)
    assert told(usage(request, plain({"text": "Hi", "usage": {"type": "duration", "seconds": 9}}))) == (None,) * 5


def test_an_image_tells_tokens():
    request = ask("https://api.openai.com/v1/images/generations", {"model": "gpt-image-1", "prompt": "A cat"})
    answer = {
        "data": [{"b64_json": "AAAA"}],
        "usage": {"input_tokens": 50, "output_tokens": 4160, "total_tokens": 4210},
    }

    assert told(usage(request, plain(answer)))[:2] == (50, 4160)
