"""Anthropic's messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture.providers.asking import api, ask, name, plain, sse, told, usage

URL = "https://api.anthropic.com/v1/messages"
VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/"
HI = [{"role": "user", "content": "Hi"}]
BODY = {"model": "claude-sonnet-4-5", "max_tokens": 1024, "messages": HI}
MODEL = "claude-sonnet-4-5-20250929"

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "model": MODEL,
        "usage": {
            "input_tokens": 7,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "output_tokens": 1,
        },
    },
}
STREAM = sse(
    START,
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": '{"type":"message_stop"}'}},
    {"type": "ping"},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 44, "output_tokens_details": {"thinking_tokens": 11}},
    },
    {"type": "message_stop"},
    named=True,
)


@pytest.mark.parametrize(
    ("url", "body", "expected"),
    [
        (URL, BODY, "messages"),
        (URL + "?beta=true", BODY, "messages"),
        ("http://localhost:4000/v1/messages", BODY, "messages"),
        ("https://api.deepseek.com/anthropic/v1/messages", BODY, "messages"),
        (VERTEX + "claude-sonnet-4-5@20250929:streamRawPredict", {}, "messages"),
        (URL + "/count_tokens", BODY, "messages.count_tokens"),
        (URL + "/batches", {"requests": []}, "messages.batches"),
        ("https://api.anthropic.com/v1/files", b"x", "files"),
        ("https://api.anthropic.com/v1/complete", {"prompt": "Hi"}, "complete"),
        ("https://api.openai.com/v1/threads/t/messages", {"content": "Hi"}, "threads"),
        ("https://chat.example.com/v1/messages", {"to": "you", "messages": HI}, ""),
        ("https://api.anthropic.com/api/event_logging/batch", {"events": []}, ""),
    ],
)
def test_messages_are_known_by_path_and_body(url, body, expected):
    assert name(ask(url, body)) == expected


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        (URL, "anthropic"),
        ("http://localhost:4000/v1/messages", ""),
        ("https://gw.example.com/v1/messages", "anthropic"),
        ("https://api.deepseek.com/anthropic/v1/messages", "deepseek"),
        (VERTEX + "claude-sonnet-4-5@20250929:rawPredict", "google"),
    ],
)
def test_the_provider_is_anthropic_unless_the_host_says_other(url, provider):
    request = ask(url, BODY)

    assert api(request).provider_of(request) == provider


def test_vertex_names_the_model_in_the_path():
    request = ask(VERTEX + "claude-sonnet-4-5%4020250929:rawPredict", {"max_tokens": 5})

    assert api(request).model(request) == "claude-sonnet-4-5@20250929"


def test_a_message_counts_what_the_cache_read_and_wrote_as_input():
    counts = {"input_tokens": 7, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3, "output_tokens": 5}
    found = usage(ask(URL, BODY), plain({"type": "message", "model": MODEL, "usage": counts}))

    assert told(found) == (12, 5, 2, 3, None)
    assert found.model == MODEL


def test_a_stream_adds_its_beginning_and_its_end():
    found = usage(ask(URL, BODY | {"stream": True}), STREAM)

    assert told(found) == (127, 44, 100, 20, 11)
    assert (found.provider, found.model) == ("anthropic", MODEL)


@given(st.integers(0, len(STREAM)))
def test_a_stream_that_is_cut_keeps_its_input_and_has_no_output(cut):
    request = ask(URL, BODY | {"stream": True})
    found = usage(request, STREAM[:cut])

    assert (found.input, found.output) in {(None, None), (127, None), (127, 44)}
    assert api(request).is_over(STREAM[:cut][-4096:]) is (cut >= len(STREAM) - 1)


def test_an_error_in_a_stream_leaves_the_output_unknown():
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    assert told(usage(ask(URL, BODY), sse(START, overloaded, named=True)))[:2] == (127, None)


def test_counting_is_free_and_uses_nothing():
    request = ask(URL + "/count_tokens", BODY)

    assert not api(request).is_billed(request)
    assert told(usage(request, plain({"input_tokens": 2095}))) == (None,) * 5


def test_the_limit_is_max_tokens():
    assert api(ask(URL, BODY)).most_output(ask(URL, BODY)) == 1024


@pytest.mark.parametrize(
    ("fields", "pure"),
    [
        ({}, True),
        ({"tools": [{"name": "f", "input_schema": {}}, {"type": "custom", "name": "g"}]}, True),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}, {"type": "text_editor_20250728"}]}, True),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, False),
        ({"tools": [{"type": "web_fetch_20250910"}]}, False),
        ({"tools": [{"type": "code_execution_20250825"}]}, False),
        ({"tools": [{"type": "computer_20250124"}]}, False),
        ({"mcp_servers": [{"type": "url", "url": "https://x"}]}, False),
        ({"container": "container_1"}, False),
        ({"tools": ["broken"]}, True),
    ],
)
def test_only_what_depends_on_the_request_alone_is_pure(fields, pure):
    request = ask(URL, BODY | fields)

    assert api(request).is_pure(request) is pure
