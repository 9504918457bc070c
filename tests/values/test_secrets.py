"""What looks like a key is taken out of text, and ordinary text is left alone."""

from __future__ import annotations

import pytest

from jupyter_durable.values import redact
from jupyter_durable.values.secrets import has_secret

SECRETS = {
    "openai": "sk-proj-abcdefGHIJ1234567890",
    "short": "sk-live-8842-zzz",
    "anthropic": "sk-ant-api03-abcdEFGH1234",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "github": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github fine": "github_pat_11ABCDEFG0abcdefghijkl",
    "slack": "xoxb-1234567890-abcdef",
    "google": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVm",
    "stripe": "sk_live_abcdefgh12345678",
}


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("around", ["{}", "key {} end", '"{}"', "x={};", "f('{}')"])
def test_a_key_is_taken_out_wherever_it_stands(kind, around):
    text = around.format(SECRETS[kind])

    assert has_secret(text)
    assert SECRETS[kind] not in redact(text)
    assert redact(text) == around.format("[redacted]")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc.def-12345", "Authorization: Bearer [redacted]"),
        ('api_key="hunter2"', 'api_key="[redacted]"'),
        ("{'api_key': 'hunter2'}", "{'api_key': '[redacted]'}"),
        ('{"client_secret": "abc def"}', '{"client_secret": "[redacted]"}'),
        ("OPENAI_API_KEY = 'plainword'", "OPENAI_API_KEY = '[redacted]'"),
        ("OPENAI_API_KEY=abcdef1234567890", "OPENAI_API_KEY=[redacted]"),
        ("api_key: str = 'hunter2'", "api_key: str = '[redacted]'"),
        ("postgres://ada:pw@host/db", "postgres://ada:[redacted]@host/db"),
        ("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----", "[redacted]"),
    ],
)
def test_assigned_and_sent_secrets_are_taken_out(text, clean):
    assert redact(text) == clean
    assert has_secret(text)
    assert redact(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "", "api_key=os.environ['KEY']", "api_key = load_key()", "task-management-system", "max_tokens=100",
        "the bearer of news", "https://example.org/a?b=c", "token: 'hello'", "def f(password): ...", "risk-12345678",
        "client = OpenAI(api_key=API_KEY)", "Basic usage of the tool",
    ],
)  # fmt: skip
def test_ordinary_text_is_left_alone(text):
    assert redact(text) == text
    assert not has_secret(text)
    assert not has_secret(redact("api_key='hunter2'"))
