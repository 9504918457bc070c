"""Finds what looks like a key or password in text, and takes it out.

The rules know shapes, not meanings: prefixes that providers give their keys, header and assignment forms, user info
in URLs, JSON web tokens, PEM blocks. They are used on everything that is written for people to read (tracebacks, cell
sources, salvage, start values) and on what a function captures.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"
"""What stands in the place of a secret."""

_NAMES = (
    r"api[_-]?key|apikey|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?(?:access[_-]?)?key)?|private[_-]?key"
    r"|(?:access|auth|refresh|id|bearer|session|secret|api|bot|github|hf)[_-]?token|client[_-]?secret"
    r"|passw(?:or)?d|passphrase|authorization|credentials?|cookie"
)

_SHAPES = re.compile(
    r"""
      (?P<pem>-----BEGIN[ ](?:[A-Z ]+[ ])?PRIVATE[ ]KEY-----.*?(?:-----END[ ](?:[A-Z ]+[ ])?PRIVATE[ ]KEY-----|\Z))
    | (?<![A-Za-z0-9])(?P<key>
          sk-(?:ant|proj|or|svcacct|live|test)-[A-Za-z0-9_-]{6,}
        | sk-(?=[A-Za-z0-9_-]{0,100}\d)[A-Za-z0-9_-]{8,}
        | (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}
        | (?:AKIA|ASIA)[A-Z0-9]{16}
        | gh[pousr]_[A-Za-z0-9]{16,} | github_pat_[A-Za-z0-9_]{16,} | glpat-[A-Za-z0-9_-]{16,}
        | xox[a-z]-[A-Za-z0-9-]{10,} | AIza[A-Za-z0-9_-]{30,} | hf_[A-Za-z0-9]{20,} | gsk_[A-Za-z0-9]{20,}
        | eyJ[A-Za-z0-9_-]{8,1000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{4,}
      )
    | (?P<scheme>\b(?:Bearer|Basic)[ ]+)(?=[A-Za-z0-9._~+/=-]{0,100}[\d._~+/=-])[A-Za-z0-9._~+/-]{8,}=*
    | (?P<url>\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@'"]{0,128}:)[^\s/@'"]{1,256}(?=@)
    """,
    re.VERBOSE | re.DOTALL,
)

# Every repetition at the start of a rule is bounded: megabytes of base64 would take the square of their length.
_ASSIGNED = re.compile(
    rf"""
      (?P<left>(?<![A-Za-z0-9])(?:[A-Za-z0-9]{{1,32}}[_-]){{0,6}}(?:{_NAMES})["']?\s*(?::\s*\w+\s*=|=|:)\s*)
      (?:
          (?P<quote>\\?["'])(?P<text>(?:(?!(?P=quote)).){{3,2000}}?)(?P=quote)
        | (?=[A-Za-z0-9_+/.-]{{0,100}}\d)(?=[A-Za-z0-9_+/.-]{{0,100}}[A-Za-z])
          (?P<bare>[A-Za-z0-9_+/-]{{12,}}={{0,2}})(?![\w.(\[])
      )
    """,
    re.VERBOSE | re.IGNORECASE,
)


# What must be there for a rule to match at all. Looking for it is a hundred times cheaper than the rules are, and
# nearly every text that is written has none of it.
_HINTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("k_", ("sk_", "rk_", "pk_")), ("sk-", ()), ("IA", ("AKIA", "ASIA")),
    ("gh", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    ("pat", ("github_pat_", "glpat-")), ("xox", ()), ("AIza", ()), ("hf_", ()), ("eyJ", ()), ("Bearer ", ()),
    ("Basic ", ()), ("PRIVATE KEY-----", ()),
)  # fmt: skip
"""What is looked for first, and then, if that is there, in its place."""
_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("key", ("api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "private_key", "private-key",
             "privatekey")),
    ("pass", ("passw", "passphrase")), ("secret", ()), ("authorization", ()), ("credential", ()), ("cookie", ()),
)  # fmt: skip
_OF_TOKENS = ("access", "auth", "refresh", "id", "bearer", "session", "secret", "api", "bot", "github", "hf")


def _has_any(text: str, hints: tuple[tuple[str, tuple[str, ...]], ...]) -> bool:
    for first, then in hints:  # noqa: SIM110 - half the time that `any` takes, and this is asked about every request
        if first in text and (not then or any(each in text for each in then)):
            return True
    return False


def _may_have_shape(text: str) -> bool:
    return _has_any(text, _HINTS) or ("://" in text and "@" in text)


def _may_be_assigned(text: str) -> bool:
    lower = text.lower()
    if _has_any(lower, _WORDS):
        return True
    at = lower.find("token")
    while at >= 0:  # every request to a model says "max_tokens"; that is none
        if lower[max(0, at - 10) : at].rstrip("_-").endswith(_OF_TOKENS):
            return True
        at = lower.find("token", at + 5)
    return False


def redact(text: str) -> str:
    """Replace what looks like a secret by ``[redacted]``.

    Args:
        text: any text: a traceback, the source of a cell, JSON.

    Returns:
        The text without the secrets; names, quotes and everything else stay.

    >>> redact('client = OpenAI(api_key="sk-live-8842-zzz")')
    'client = OpenAI(api_key="[redacted]")'
    >>> redact("postgres://ada:lovelace@db/x")
    'postgres://ada:[redacted]@db/x'
    """
    if _may_have_shape(text):
        text = _SHAPES.sub(_shaped, text)
    return _ASSIGNED.sub(_assigned, text) if _may_be_assigned(text) else text


def has_secret(text: str) -> bool:
    """Whether `redact` would change the text.

    >>> has_secret("api_key = os.environ['KEY']"), has_secret("Authorization: Bearer abc.def-123")
    (False, True)
    """
    if _may_have_shape(text) and _SHAPES.search(text) is not None:
        return True
    return _may_be_assigned(text) and any(found["text"] != REDACTED for found in _ASSIGNED.finditer(text))


def _shaped(found: re.Match[str]) -> str:
    return (found["scheme"] or found["url"] or "") + REDACTED


def _assigned(found: re.Match[str]) -> str:
    quote = found["quote"] or ""
    return f"{found['left']}{quote}{REDACTED}{quote}"
