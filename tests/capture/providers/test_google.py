"""Gemini, at Google's two addresses and behind gateways."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture.providers.asking import api, ask, name, plain, sse, told, usage

BASE = "https://generativelanguage.googleapis.com/v1beta/"
VERTEX = "https://us-central1-aiplatform.googleapis.com/v1beta1/projects/p/locations/us-central1/publishers/google/"
FLASH = BASE + "models/gemini-2.5-flash:generateContent"
STREAMED = BASE + "models/gemini-2.5-flash:streamGenerateContent"
HI = {"contents": [{"parts": [{"text": "Hi"}]}]}

META = {
    "promptTokenCount": 50,
    "candidatesTokenCount": 20,
    "totalTokenCount": 100,
    "thoughtsTokenCount": 30,
    "cachedContentTokenCount": 10,
}


def part(text: str, finish: str = "", **counts: int):
    candidate = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "gemini-2.5-flash"}


EVENTS = [
    part('One } ] \\" ', promptTokenCount=50, candidatesTokenCount=2, totalTokenCount=52),
    part("two", promptTokenCount=50, candidatesTokenCount=9, thoughtsTokenCount=30, totalTokenCount=89),
    part(" three", "STOP", **META),
]
STREAM = sse(*EVENTS)
ARRAY = ("[" + "\n,\r\n".join(json.dumps(event, indent=2) for event in EVENTS) + "\n]").encode()
WHOLE = (50, 50, 10, None, 30)


@pytest.mark.parametrize(
    ("method", "url", "expected"),
    [
        ("POST", FLASH, "generateContent"),
        ("POST", STREAMED + "?alt=sse", "streamGenerateContent"),
        ("POST", VERTEX + "models/gemini-2.5-pro:generateContent", "generateContent"),
        ("POST", "http://localhost:8080/v1beta/models/gemini-2.5-flash:generateContent", "generateContent"),
        ("POST", BASE + "models/gemini-embedding-001:batchEmbedContents", "batchEmbedContents"),
        ("POST", BASE + "models/gemini-2.5-flash:countTokens", "countTokens"),
        ("POST", BASE + "models/imagen-4.0-generate-001:predict", "predict"),
        ("POST", BASE + "models/veo-3.0-generate-001:predictLongRunning", "predict"),
        ("GET", BASE + "models/veo-3.0-generate-001/operations/op1", "stored"),
        ("POST", BASE + "models/gemini-2.5-flash:batchGenerateContent", "stored"),
        ("POST", BASE + "cachedContents", "stored"),
        ("POST", "https://generativelanguage.googleapis.com/upload/v1beta/files", "stored"),
        ("POST", BASE + "interactions", "interactions"),
        ("GET", BASE + "models", ""),
        ("GET", BASE + "models/gemini-2.5-flash", ""),
        ("POST", "https://oauth2.googleapis.com/token", ""),
        ("POST", "https://storage.googleapis.com/upload/storage/v1/b/x/o", ""),
        ("GET", "https://www.googleapis.com/drive/v3/files", ""),
    ],
)
def test_model_calls_are_known_and_the_rest_of_google_is_not(method, url, expected):
    assert name(ask(url, HI, method)) == expected


def test_the_model_stands_in_the_path_and_the_provider_is_google_except_nearby():
    near = ask("http://localhost:8080/v1beta/models/gemini-2.5-flash:generateContent", HI)
    tuned = ask(BASE + "tunedModels/mine:generateContent", HI)

    assert api(ask(FLASH, HI)).model(ask(FLASH, HI)) == "gemini-2.5-flash"
    assert api(tuned).model(tuned) == "mine"
    assert api(ask(FLASH, HI)).provider_of(ask(FLASH, HI)) == "google"
    assert api(near).provider_of(near) == ""


def test_thoughts_are_output_and_what_tools_brought_is_input():
    body = part("Hi", "STOP", **META, toolUsePromptTokenCount=7)

    assert told(usage(ask(FLASH, HI), plain(body))) == (57, 50, 10, None, 30)


def test_a_refused_prompt_has_no_output():
    body = {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
    }

    assert told(usage(ask(FLASH, HI), plain(body)))[:2] == (9, 0)
    assert told(usage(ask(FLASH, HI), plain({"candidates": []}))) == (None,) * 5


@pytest.mark.parametrize("body", [STREAM, ARRAY], ids=["events", "array"])
def test_the_last_event_of_a_stream_tells(body):
    found = usage(ask(STREAMED, HI), body)

    assert told(found) == WHOLE
    assert found.model == "gemini-2.5-flash"


@given(st.integers(0, len(STREAM)), st.integers(0, len(ARRAY)))
def test_a_stream_that_is_cut_keeps_its_input_and_has_no_output(cut, cut_array):
    request = ask(STREAMED, HI)

    for body in (STREAM[:cut], ARRAY[:cut_array]):
        found = usage(request, body)
        assert (found.input, found.output) in {(None, None), (50, None), (50, 50)}
    assert api(request).is_over(STREAM[:cut]) is (cut == len(STREAM))
    assert api(request).is_over(ARRAY[:cut_array]) is (cut_array == len(ARRAY))


@pytest.mark.parametrize(
    ("fields", "most"),
    [
        ({}, None),
        ({"generationConfig": {"maxOutputTokens": 100}}, 100),
        ({"generationConfig": {"maxOutputTokens": 100, "candidateCount": 3}}, 300),
        ({"generation_config": {"max_output_tokens": 100, "candidate_count": 2}}, 200),
    ],
)
def test_the_most_output_counts_every_candidate(fields, most):
    request = ask(FLASH, HI | fields)

    assert api(request).most_output(request) == most


@pytest.mark.parametrize(
    ("fields", "pure"),
    [
        ({"tools": [{"functionDeclarations": [{"name": "f"}]}]}, True),
        ({"cachedContent": "cachedContents/1"}, True),
        ({"tools": [{"googleSearch": {}}]}, False),
        ({"tools": [{"google_search": {}}]}, False),
        ({"tools": [{"functionDeclarations": []}, {"urlContext": {}}]}, False),
        ({"tools": [{"codeExecution": {}}]}, False),
        ({"tools": [{"functionDeclarations": [], "retrieval": {}}]}, False),
    ],
)
def test_only_functions_of_the_callers_keep_it_pure(fields, pure):
    request = ask(FLASH, HI | fields)

    assert api(request).is_pure(request) is pure


def test_what_google_keeps_is_never_pure_and_never_billed():
    poll = ask(BASE + "models/veo-3.0-generate-001/operations/op1", method="GET")
    count = ask(BASE + "models/gemini-2.5-flash:countTokens", HI)

    assert (api(poll).is_pure(poll), api(poll).is_billed(poll)) == (False, False)
    assert (api(count).is_pure(count), api(count).is_billed(count)) == (True, False)
    assert told(usage(count, plain({"totalTokens": 31}))) == (None,) * 5


def test_embeddings_tell_their_input_where_google_does():
    request = ask(VERTEX + "models/text-embedding-005:predict", {"instances": [{"content": "Hi"}]})
    one = {"embeddings": {"values": [0.1], "statistics": {"token_count": 4}}}

    assert told(usage(request, plain({"predictions": [one, one]})))[:2] == (8, None)
    assert told(usage(request, plain({"predictions": [one, {}]})))[0] is None
    embed = ask(BASE + "models/gemini-embedding-001:embedContent", {"content": {}})
    assert told(usage(embed, plain({"embedding": {}}))) == (None,) * 5


def test_an_interaction_tells_its_counts_and_is_never_pure():
    request = ask(BASE + "interactions", {"model": "gemini-3-pro", "input": "Hi", "stream": True})
    counts = {
        "total_input_tokens": 7,
        "total_tool_use_tokens": 3,
        "total_output_tokens": 20,
        "total_thought_tokens": 22,
    }
    done = {"event_type": "interaction.completed", "interaction": {"model": "gemini-3-pro", "usage": counts}}
    stream = sse({"event_type": "interaction.created", "interaction": {"id": "1"}}, done)

    assert told(usage(request, stream)) == (10, 42, None, None, 22)
    assert (api(request).is_pure(request), api(request).is_billed(request)) == (False, True)
    assert api(request).is_over(stream)
    assert not api(request).is_over(stream[:-10])
