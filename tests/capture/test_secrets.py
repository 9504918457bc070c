"""No key is written: not from headers, not from the URL, not from a body, not from an answer that repeats it."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import openai
import pytest
import zstandard

from jupyter_durable import durable
from jupyter_durable.log.query import connect
from tests.capture.conftest import KEY

PLANTED = {
    "authorization": KEY,
    "cookie": "session-cookie-8f3a",
    "organisation header": "org-planted-77",
    "url": "AIza" + "Q" * 35,
    "body by shape": "ghp_" + "a1B2" * 9,
    "user info": "planted-password-5",
}


def every_byte(folder: Path) -> bytes:
    """All files of a log, and all of them decompressed where they are compressed."""
    found = b""
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found += data
            if data[:4] == b"\x28\xb5\x2f\xfd":
                found += zstandard.ZstdDecompressor().decompressobj().decompress(data)
    with connect(folder) as log:
        for table in ("lines", "events", "steps", "llm_calls"):
            found += str(log.sql(f"SELECT * FROM {table}").fetchall()).encode()
    return found


def test_no_planted_key_is_anywhere_in_the_log(run, provider, tmp_path):
    with run():
        with openai.OpenAI(
            base_url=f"{provider.url}/v1", api_key=KEY, organization=PLANTED["organisation header"],
            default_headers={"Cookie": f"id={PLANTED['cookie']}"},
        ) as client:  # fmt: skip
            client.chat.completions.create(
                model="gpt-4o-mini",
                messages=[{"role": "user", "content": f"my key is {PLANTED['body by shape']} and {KEY}"}],
                metadata={"long": "x" * 200_000, "again": PLANTED["body by shape"]},
            )
        address = provider.url.replace("//", f"//ada:{PLANTED['user info']}@")
        url = f"{address}/v1beta/models/gemini-2.5-flash:generateContent"
        with httpx2.Client() as http:
            body = {"contents": [{"parts": [{"text": "hello"}]}]}
            http.post(url, params={"key": PLANTED["url"]}, json=body)
    written = every_byte(tmp_path / "log")

    assert b"chat.completions" in written
    assert [what for what, secret in PLANTED.items() if secret.encode() in written] == []


def test_an_answer_that_repeats_the_key_comes_back_whole_and_is_not_written(run, ask, tmp_path, requests_made):
    with run():
        live = ask(f"repeat: {KEY}")
    with run():
        assert ask(f"repeat: {KEY}") == live

    assert KEY in live
    assert KEY.encode() not in every_byte(tmp_path / "log")
    assert requests_made() == 1


def test_a_rotated_key_buys_nothing_anew(run, ask, provider, requests_made):
    with run():
        live = ask("hello")
    with run(), openai.OpenAI(base_url=f"{provider.url}/v1", api_key="sk-test-rotated-99") as other:
        assert ask("hello", other) == live

    assert requests_made() == 1


def test_request_headers_are_not_stored(run, ask, tmp_path):
    with run():
        ask("hello")
    with connect(tmp_path / "log") as log:
        [(request,)] = log.sql("SELECT request FROM llm_calls").fetchall()

    assert "header" not in request.lower()
    assert json.loads(request)["url"].endswith("/v1/chat/completions")


def test_response_headers_are_kept_by_a_list(run, client):
    def headers():
        raw = client.chat.completions.with_raw_response.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": "hello"}]
        )
        return raw.headers

    with run():
        headers()
    with run():
        kept = headers()

    assert kept["content-type"].startswith("application/json")
    assert "set-cookie" not in kept


def test_an_error_never_shows_the_prompt(run, ask):
    class Boom(Exception):
        pass

    with pytest.raises(Boom), run():
        ask("the first secret plan")
        raise Boom
    with pytest.raises(Exception, match="request differs") as caught, run():
        ask("the other secret plan")

    assert "secret plan" not in str(caught.value)
    assert durable is not None
