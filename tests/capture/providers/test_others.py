"""Ollama, Cohere, Mistral, Bedrock, and services that host models."""

from __future__ import annotations

import base64
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture.providers.asking import api, ask, name, plain, sse, told, usage

OLLAMA = "http://localhost:11434/api/"
COHERE = "https://api.cohere.com/v2/"
BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/"
SONNET = "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0"
HI = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("url", "body", "expected"),
    [
        (OLLAMA + "chat", {"model": "qwen3", "messages": HI}, "chat"),
        (OLLAMA + "generate", {"model": "qwen3", "prompt": "Hi"}, "generate"),
        (OLLAMA + "embed", {"model": "e", "input": "Hi"}, "embed"),
        (OLLAMA + "embeddings", {"model": "e", "prompt": "Hi"}, "embed"),
        ("https://gpu.example.com:11434/api/chat", {"model": "qwen3", "messages": HI}, "chat"),
        ("https://app.example.com/api/chat", {"model": "qwen3", "messages": HI}, ""),
        ("http://localhost:3000/api/chat", {"text": "Hi"}, ""),
        (COHERE + "chat", {"model": "command-a", "messages": HI}, "chat"),
        (COHERE + "embed", {"model": "embed-v4.0", "texts": ["Hi"]}, "embed"),
        (COHERE + "rerank", {"model": "rerank-v3.5", "query": "q", "documents": ["d"]}, "rerank"),
        ("https://api.voyageai.com/v1/rerank", {"model": "rerank-2", "query": "q", "documents": ["d"]}, "rerank"),
        ("http://localhost:8080/rerank", {"query": "q", "texts": ["d"]}, "rerank"),
        ("https://shop.example.com/rerank", {"query": "q"}, ""),
        ("https://api.mistral.ai/v1/chat/completions", {"model": "mistral-small", "messages": HI}, "chat.completions"),
        ("https://api.mistral.ai/v1/fim/completions", {"model": "codestral", "prompt": "x"}, "fim.completions"),
        ("https://api.mistral.ai/v1/agents/completions", {"agent_id": "a"}, "agents.completions"),
        ("https://api.mistral.ai/v1/ocr", {"model": "mistral-ocr"}, "ocr"),
        ("https://api.mistral.ai/v1/conversations", {"inputs": "Hi"}, "conversations"),
        (BEDROCK + SONNET + "/invoke", {"messages": HI}, "invoke"),
        (BEDROCK + SONNET + "/converse-stream", {"messages": []}, "converse"),
        ("https://router.huggingface.co/hf-inference/models/a/b", {"inputs": "Hi"}, "inference"),
        ("https://x.us-east-1.aws.endpoints.huggingface.cloud/", {"inputs": "Hi"}, "inference"),
        ("https://huggingface.co/api/models/a/b", None, ""),
        ("https://router.huggingface.co/other", {"inputs": "Hi"}, ""),
        ("https://api.replicate.com/v1/models/a/b/predictions", {"input": {}}, "predictions"),
        ("https://api.cloudflare.com/client/v4/accounts/a/ai/run/@cf/meta/llama", {"messages": HI}, "run"),
        ("https://api.elevenlabs.io/v1/text-to-speech/voice", {"text": "Hi"}, "text-to-speech"),
    ],
)
def test_calls_are_known_by_host_path_and_body(url, body, expected):
    assert name(ask(url, body)) == expected


# Ollama

LINES = b"".join(
    json.dumps(line).encode() + b"\n"
    for line in [
        {"model": "qwen3", "message": {"role": "assistant", "content": '"done":true}'}, "done": False},
        {"model": "qwen3", "message": {"content": ""}, "done": True, "prompt_eval_count": 26, "eval_count": 298},
    ]
)


def test_ollama_streams_unless_told_not_to():
    request, whole = (ask(OLLAMA + "chat", {"model": "qwen3", **more}) for more in ({}, {"stream": False}))

    assert (api(request).streams(request), api(whole).streams(whole)) == (True, False)
    assert told(usage(request, LINES))[:2] == (26, 298)
    assert usage(request, LINES).provider == "ollama"
    limited = ask(OLLAMA + "chat", {"model": "q", "options": {"num_predict": 64}})
    assert api(limited).most_output(limited) == 64
    assert api(ask(OLLAMA + "chat", {"model": "q", "options": {"num_predict": -1}})).most_output(limited) == 64


@given(st.integers(0, len(LINES)))
def test_a_cut_stream_of_ollama_tells_all_or_nothing(cut):
    request = ask(OLLAMA + "chat", {"model": "qwen3"})

    assert told(usage(request, LINES[:cut]))[:2] in {(None, None), (26, 298)}
    assert api(request).is_over(LINES[:cut]) is (cut >= len(LINES) - 1)


# Cohere

COHERE_USAGE = {
    "billed_units": {"input_tokens": 5.0, "output_tokens": 418.0},
    "tokens": {"input_tokens": 71.0, "output_tokens": 418.0},
}
COHERE_STREAM = sse(
    {"type": "message-start", "id": "1"},
    {"type": "content-delta", "delta": {"message": {"content": {"text": "Hi"}}}},
    {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": COHERE_USAGE}},
    named=True,
)


def test_cohere_tells_what_is_billed():
    request = ask(COHERE + "chat", {"model": "command-a-03-2025", "messages": HI, "max_tokens": 9})
    first = {"is_finished": True, "event_type": "stream-end", "response": {"meta": COHERE_USAGE}}

    assert told(usage(request, plain({"usage": COHERE_USAGE})))[:2] == (5, 418)
    assert told(usage(request, plain({"meta": COHERE_USAGE})))[:2] == (5, 418)
    assert told(usage(request, COHERE_STREAM))[:2] == (5, 418)
    assert told(usage(request, json.dumps(first).encode() + b"\n"))[:2] == (5, 418)
    assert api(request).most_output(request) == 9


@given(st.integers(0, len(COHERE_STREAM)))
def test_a_cut_stream_of_cohere_tells_all_or_nothing(cut):
    request = ask(COHERE + "chat", {"model": "command-a", "stream": True})

    assert told(usage(request, COHERE_STREAM[:cut]))[:2] in {(None, None), (5, 418)}
    assert api(request).is_over(COHERE_STREAM[:cut]) is (cut >= len(COHERE_STREAM) - 1)


def test_connectors_and_conversations_of_cohere_are_not_pure():
    url = "https://api.cohere.com/v1/chat"
    pure, searching, kept = (ask(url, fields) for fields in ({}, {"connectors": [{}]}, {"conversation_id": "c"}))

    assert [api(request).is_pure(request) for request in (pure, searching, kept)] == [True, False, False]


def test_an_embedding_of_cohere_has_input_only():
    request = ask(COHERE + "embed", {"model": "embed-v4.0"})

    assert told(usage(request, plain({"meta": {"billed_units": {"input_tokens": 2}}})))[:2] == (2, None)


# Mistral


def test_an_agent_of_mistral_is_not_pure_and_filling_in_is():
    agent = ask("https://api.mistral.ai/v1/agents/completions", {"agent_id": "a", "stream": True})
    fill = ask("https://api.mistral.ai/v1/fim/completions", {"model": "codestral", "stream": True})

    assert (api(agent).is_pure(agent), api(fill).is_pure(fill)) == (False, True)
    assert api(fill).with_usage(fill) is None
    assert api(fill).provider_of(fill) == "mistral"


def test_a_conversation_of_mistral_is_paid_for_when_it_goes_on():
    url = "https://api.mistral.ai/v1/conversations"
    request, look = ask(url, {"inputs": "Hi"}), ask(url + "/c1", method="GET")
    counts = {"prompt_tokens": 10, "completion_tokens": 4, "connector_tokens": 100}
    stream = sse({"type": "message.output.delta"}, {"type": "conversation.response.done", "usage": counts}, named=True)

    assert (api(request).is_billed(request), api(look).is_billed(look)) == (True, False)
    assert not api(request).is_pure(request)
    assert told(usage(request, stream))[:2] == (110, 4)
    assert api(request).is_over(stream)


# Bedrock


def frame(kind: str, payload: object) -> bytes:
    key, value = b":event-type", kind.encode()
    headers = bytes([len(key)]) + key + b"\x07" + struct.pack(">H", len(value)) + value
    data = json.dumps(payload).encode()
    return struct.pack(">II", 16 + len(headers) + len(data), len(headers)) + b"\0" * 4 + headers + data + b"\0" * 4


def wrapped(event: object) -> bytes:
    return frame("chunk", {"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abc"})


INVOKED = b"".join(
    wrapped(event)
    for event in [
        {"type": "message_start", "message": {"usage": {"input_tokens": 11, "output_tokens": 1}}},
        {"type": "content_block_delta", "delta": {"text": "Hi"}},
        {"type": "message_delta", "usage": {"output_tokens": 6}},
        {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 11, "outputTokenCount": 6}},
    ]
)


def test_invoke_tells_counts_of_the_body_of_the_headers_or_of_the_frames():
    request = ask(BEDROCK + SONNET + "/invoke", {"max_tokens": 50})
    streamed = ask(BEDROCK + SONNET + "/invoke-with-response-stream", {})
    headers = {"x_amzn_bedrock_input_token_count": "9", "x_amzn_bedrock_output_token_count": "3"}
    metrics = wrapped(
        {"generation": "x", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 4, "outputTokenCount": 2}}
    )

    assert told(usage(request, plain({"usage": {"input_tokens": 7, "output_tokens": 5}})))[:2] == (7, 5)
    assert told(usage(request, plain({"generation": "Hi"}, **headers)))[:2] == (9, 3)
    assert told(usage(streamed, INVOKED))[:2] == (11, 6)
    assert told(usage(streamed, metrics))[:2] == (4, 2)
    found = usage(request, plain({}))
    assert (found.provider, found.model) == ("aws", "us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert api(request).most_output(request) == 50
    assert (api(request).streams(request), api(streamed).streams(streamed)) == (False, True)


@given(st.integers(0, len(INVOKED)))
def test_cut_frames_keep_their_input_and_have_no_output(cut):
    streamed = ask(BEDROCK + SONNET + "/invoke-with-response-stream", {})

    assert told(usage(streamed, INVOKED[:cut]))[:2] in {(None, None), (11, None), (11, 6)}


@given(st.binary(max_size=100))
def test_frames_that_are_none_are_read_without_harm(body):
    streamed = ask(BEDROCK + SONNET + "/converse-stream", {})

    assert told(usage(streamed, body)) == (None,) * 5


def test_converse_counts_the_cache_as_input():
    request = ask(BEDROCK + SONNET + "/converse", {"inferenceConfig": {"maxTokens": 7}})
    streamed = ask(BEDROCK + SONNET + "/converse-stream", {})
    counts = {"inputTokens": 30, "outputTokens": 8, "cacheReadInputTokens": 5, "totalTokens": 43}
    last = frame("metadata", {"usage": counts, "metrics": {}})

    assert told(usage(request, plain({"usage": counts}))) == (35, 8, 5, None, None)
    assert told(usage(streamed, frame("messageStart", {"role": "assistant"}) + last)) == (35, 8, 5, None, None)
    assert api(streamed).is_over(last)
    assert api(request).most_output(request) == 7
    system = ask(BEDROCK + SONNET + "/converse", {"toolConfig": {"tools": [{"systemTool": {"name": "x"}}]}})
    assert not api(system).is_pure(system)


# Hosted


def test_a_reranking_has_input_only():
    request = ask("https://api.voyageai.com/v1/rerank", {"model": "rerank-2", "query": "q", "documents": ["d"]})
    found = usage(request, plain({"data": [], "model": "rerank-2", "usage": {"total_tokens": 26}}))

    assert told(found)[:2] == (26, None)
    assert (found.provider, api(request).most_output(request)) == ("voyageai", 0)


def test_other_hosts_tell_what_they_can():
    hf = ask("https://router.huggingface.co/hf-inference/models/a/b", {"inputs": "Hi"})
    cf = ask("https://api.cloudflare.com/client/v4/accounts/a/ai/run/@cf/meta/llama", {"messages": HI})
    look = ask("https://api.replicate.com/v1/predictions/p1", method="GET")

    assert told(usage(hf, plain([{"generated_text": "x", "details": {"generated_tokens": 3}}])))[:2] == (None, 3)
    assert told(usage(cf, plain({"result": {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}})))[:2] == (3, 2)
    assert usage(cf, plain({})).model == "@cf/meta/llama"
    assert (api(look).is_billed(look), api(look).is_pure(look)) == (False, False)
