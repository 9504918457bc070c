"""G23: which model calls are captured. G24: retries of an SDK inside of retries of a step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.capture.provider import Provider

SAVED_BEFORE = """
import openai, anthropic
client = openai.OpenAI(base_url={url!r} + "/v1", api_key="sk-fake", max_retries=0)
claude = anthropic.Anthropic(base_url={url!r}, api_key="sk-ant-fake", max_retries=0)
saved = client.chat.completions.create
"""

SETUP = """
from pydantic import BaseModel
class City(BaseModel):
    name: str
    inhabitants: int
@step
def fail_once():
    if not os.path.exists("go"):
        raise ValueError("the last step fails")
said = [{"role": "user", "content": "hello"}]
chat = dict(model="gpt-4o-mini", messages=said)
message = dict(model="claude-sonnet-4-5", max_tokens=64, messages=said)
"""

SURFACES = """\
%%durable surfaces
found = {}
found["create"] = client.chat.completions.create(**chat)
found["saved"] = saved(model="gpt-4o-mini", messages=[{"role": "user", "content": "by a saved method"}])
found["parse"] = client.chat.completions.parse(**chat, response_format=City)
with client.chat.completions.stream(**chat) as events:
    found["stream"] = [type(event).__name__ for event in events]
found["raw"] = client.chat.completions.with_raw_response.create(**chat)
found["responses"] = client.responses.create(model="gpt-5-mini", input="hello")
found["responses.parse"] = client.responses.parse(model="gpt-5-mini", input="hello", text_format=City)
found["post"] = client.post("/chat/completions", body=chat, cast_to=object)
found["messages"] = claude.messages.create(**message)
with claude.messages.stream(**message) as events:
    found["messages.stream"] = list(events.text_stream)
found["messages.parse"] = claude.messages.parse(**message, output_format=City)
found["beta"] = claude.beta.messages.create(**message)
header = found["raw"].headers["content-type"]
fail_once()
print({name: type(value).__name__ for name, value in found.items()}, header, found["raw"].parse().id)
"""

TYPES = {
    "create": "ChatCompletion", "saved": "ChatCompletion", "stream": "list", "raw": "LegacyAPIResponse",
    "responses": "Response", "post": "dict", "messages": "Message", "messages.stream": "list", "beta": "BetaMessage",
}  # fmt: skip


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


def asked(provider: Provider) -> int:
    return len(provider.desk.seen())


def test_g23_no_surface_of_an_sdk_is_bought_again(case, provider):
    """A method saved before `%load_ext`, helpers, raw responses: none goes unseen."""
    before = SAVED_BEFORE.format(url=provider.url)
    case.open(f"{before}\n{SETUP}")
    first = case.kernel.run(SURFACES)
    live = asked(provider)
    ran = case.rerun(SURFACES)

    assert first.reply["ename"] == "ValueError"
    assert ran.status == "ok", ran.errors
    assert live == 12
    assert asked(provider) == live
    for name, kind in TYPES.items():
        assert f"{name!r}: {kind!r}" in ran.text


def test_g23_a_method_that_was_saved_before_the_extension_was_loaded_is_captured(start_kernel, case, provider):
    kernel = start_kernel(folder=case.folder, setup="")
    kernel.ok(SAVED_BEFORE.format(url=provider.url))
    kernel.ok("%load_ext jupyter_durable")
    cell = "%%durable saved\nsaved(model='gpt-4o-mini', messages=[{'role': 'user', 'content': 'hello'}]).id"
    first = kernel.ok(cell).results

    assert kernel.ok(cell).results == first
    assert asked(provider) == 1


RETRIED = """
import openai
client = openai.OpenAI(base_url={url!r} + "/v1", api_key="sk-fake"{more})
@step(retries=3, backoff=0.001)
def ask():
    return client.chat.completions.create(model="gpt-4o-mini", messages=[{{"role": "user", "content": "q"}}]).id
"""

GUARDED = "%%durable guarded\nask()"


def test_g24_the_log_shows_every_request_and_the_user_is_told_that_retries_multiply(case, provider):
    provider.desk.fail_next(20, 500, retry_after_ms="1")
    case.open(RETRIED.format(url=provider.url, more=""))
    ran = case.kernel.run(GUARDED)
    steps = {each["name"]: each for each in case.json("show", "guarded")["steps"]}

    assert ran.reply["ename"] == "InternalServerError"
    assert asked(provider) == 12
    assert steps["ask"]["attempts"] == 4
    assert steps["chat.completions"]["attempts"] == 12
    assert ran.summary.count("max_retries=0") == 1


def test_g24_with_the_sdks_retries_off_there_are_as_many_requests_as_the_step_says(case, provider):
    provider.desk.fail_next(20, 500, retry_after_ms="1")
    case.open(RETRIED.format(url=provider.url, more=", max_retries=0"))
    ran = case.kernel.run(GUARDED)

    assert ran.reply["ename"] == "InternalServerError"
    assert asked(provider) == 4
    assert "max_retries" not in ran.summary


def test_g24_an_idempotency_key_is_equal_on_every_attempt(case, provider):
    provider.desk.fail_next(2, 500, retry_after_ms="1")
    case.open(RETRIED.format(url=provider.url, more=""))
    case.kernel.ok("durable.capture(idempotency_header='Idempotency-Key')")
    case.kernel.ok(GUARDED)
    keys = {seen.headers.get("idempotency-key") for seen in provider.desk.seen()}

    assert asked(provider) == 3
    assert len(keys) == 1
    assert None not in keys


def test_g24_attempts_go_on_counting_after_a_kill(case, provider):
    """A variant: the kernel dies between two requests of an SDK; the answer is asked for once more, not three times."""
    provider.desk.fail_next(1, 500, retry_after_ms="1")
    provider.desk.hold(2)
    case.open(RETRIED.format(url=provider.url, more=""))
    case.kernel.send(GUARDED)
    assert provider.desk.wait_open(2)
    case.kill()
    provider.desk.release()
    ran = case.rerun(GUARDED)

    assert ran.status == "ok", ran.errors
    assert asked(provider) == 3
    assert case.statuses("guarded") == [("ask", "completed"), ("chat.completions", "completed")]
