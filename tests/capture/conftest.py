"""What the tests of capture share: a provider on loopback, a log of their own, clients that ask it."""

from __future__ import annotations

import openai
import pytest

from jupyter_durable import durable
from jupyter_durable.capture.prices import forget_prices
from jupyter_durable.capture.providers.openai import ALLOWS_USAGE
from jupyter_durable.capture.settings import SETTINGS
from tests.capture.provider import Provider

KEY = "sk-test-4711-invented"


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


@pytest.fixture
def requests_made(provider):
    """How many model requests have come in so far."""
    return lambda: sum(seen.kind == "model" for seen in provider.desk.seen())


@pytest.fixture
def client(provider):
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY, max_retries=0) as client:
        yield client


@pytest.fixture
def patient(provider):
    """A client that tries again by itself, twice."""
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY, max_retries=2) as client:
        yield client


@pytest.fixture
def ask(client):
    """Ask for a plain answer, and return its text."""

    def ask(content: str, using=client, **more) -> str:
        message = {"role": "user", "content": content}
        answer = using.chat.completions.create(model="gpt-4o-mini", messages=[message], **more)
        return answer.choices[0].message.content

    return ask


@pytest.fixture
def run(tmp_path):
    """Begin an execution of a run on the log of this test."""

    def run(name: str = "agent", **flags):
        return durable.run(name, log=str(tmp_path / "log"), **flags)

    return run


@pytest.fixture(autouse=True)
def _as_delivered():
    """What a test says about capture holds for that test."""
    allowed = set(ALLOWS_USAGE)
    yield
    SETTINGS.reset()
    forget_prices()
    ALLOWS_USAGE.clear()
    ALLOWS_USAGE.update(allowed)
