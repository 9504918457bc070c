"""The most input tokens that a request can have."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_durable.capture.estimate import NAMED_FILE, PICTURE, PICTURE_MINI, input_at_most, is_whole
from tests.capture.providers.asking import ask, form

URL = "https://api.openai.com/v1/chat/completions"
MEGABYTE = base64.b64encode(b"\x89PNG" * 250_000).decode()


def chat(content: object, model: str = "gpt-5", **more: object):
    return ask(URL, {"model": model, "messages": [{"role": "user", "content": content}], **more})


@given(st.text(max_size=300))
def test_a_text_counts_at_least_a_token_for_each_byte(text):
    assert input_at_most(chat(text)) >= len(text.encode()) + 20


def test_a_text_counts_not_much_more():
    words = "The quick brown fox jumps over the lazy dog. " * 100

    assert input_at_most(chat(words)) < len(words) + 250


def test_escapes_do_not_count_as_text():
    assert len(json.dumps("é" * 1000)) == 6002
    assert input_at_most(chat("é" * 1000)) < 2250


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{MEGABYTE}"}}]}]},
        {"messages": [{"content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]},
        {"input": [{"content": [{"type": "input_image", "image_url": f"data:image/png;base64,{MEGABYTE}"}]}]},
        {"messages": [{"content": [{"type": "image", "source": {"media_type": "image/png", "data": MEGABYTE}}]}]},
        {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": MEGABYTE}}]}]},
        {"messages": [{"content": [{"image": {"format": "png", "source": {"bytes": MEGABYTE}}}]}]},
        {"messages": [{"content": "Look", "images": [MEGABYTE]}]},
    ],
    ids=["openai", "address", "responses", "anthropic", "gemini", "bedrock", "ollama"],
)  # fmt: skip
def test_a_picture_counts_as_a_picture_whatever_its_bytes(body):
    assert PICTURE <= input_at_most(ask(URL, {"model": "m", **body})) <= PICTURE + 300


def test_two_pictures_count_twice_and_some_models_count_many_times():
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{MEGABYTE}"}}

    assert 2 * PICTURE <= input_at_most(chat([picture, picture])) < 2 * PICTURE + 400
    assert input_at_most(chat([picture], model="gpt-4o-mini")) >= PICTURE_MINI


def test_sound_counts_by_its_length_and_a_document_by_its_pages():
    sound = input_at_most(chat([{"type": "input_audio", "input_audio": {"data": MEGABYTE, "format": "mp3"}}]))
    paper = {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{MEGABYTE}"}}

    assert 30_000 < sound < 40_000
    assert 250_000 < input_at_most(chat([paper])) < 260_000


def test_what_is_only_named_counts_as_something_large():
    assert input_at_most(chat([{"type": "file", "file": {"file_id": "file-1"}}])) > NAMED_FILE


def test_text_in_a_field_that_elsewhere_carries_bytes_is_text():
    words = "All work and no play. " * 50
    source = {"type": "text", "media_type": "text/plain", "data": words}

    assert len(words) < input_at_most(chat([{"type": "document", "source": source}])) < len(words) + 400


def test_a_form_counts_its_file_by_its_length_in_time():
    request = form("https://api.openai.com/v1/audio/transcriptions", {"model": "w"}, file=b"x" * 1_000_000)

    assert 30_000 < input_at_most(request) < 40_000


@given(st.binary(max_size=300))
def test_any_body_has_an_estimate(body):
    assert input_at_most(ask(URL, body)) >= 0
    assert is_whole(ask(URL, body)) in {True, False}


@pytest.mark.parametrize(
    ("fields", "whole"),
    [
        ({}, True),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, True),
        ({"tools": [{"name": "f", "input_schema": {}}, {"functionDeclarations": [{"name": "f"}]}]}, False),
        ({"tools": [{"functionDeclarations": [{"name": "f"}]}]}, True),
        ({"tools": [{"type": "web_search"}]}, False),
        ({"tools": [{"googleSearch": {}}]}, False),
        ({"conversation": "conv_1"}, False),
        ({"cachedContent": "cachedContents/1"}, False),
    ],
)
def test_it_is_told_whether_the_provider_adds_input(fields, whole):
    assert is_whole(chat("Hi", **fields)) is whole
