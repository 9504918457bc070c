"""How messages name steps and their states."""

from __future__ import annotations

import datetime

from jupyter_durable.entries import Entry


def listed(entries: list[Entry]) -> str:
    """Up to five steps by name, and how many more."""
    shown = ", ".join(e.label for e in entries[:5])
    return shown if len(entries) <= 5 else f"{shown} and {len(entries) - 5} more"


def state_of(entry: Entry) -> str:
    """The state of a step in words."""
    return {
        "open": "begun, end not known",
        "completed": "completed",
        "not_stored": "done, value not stored",
        "failed": "failed",
        "cancelled": "cancelled",
        "interrupted": "interrupted",
    }[entry.state]


def quoted(name: str) -> str:
    """The name of a run as it is written behind ``%%durable``.

    >>> quoted("report"), quoted("my report")
    ('report', '"my report"')
    """
    return name if all(c.isalnum() or c in "-_." for c in name) else f'"{name}"'


def wrong_name(name: str, most: int = 200) -> str:
    """What is wrong with a name that becomes a part of an address, ``RUN/CHILD/SIGNAL``; empty if nothing is.

    >>> wrong_name("page-3"), wrong_name("a/b")
    ('', 'it holds a `/`, which stands between the parts of an address')
    """
    if not name.strip():
        return "it is empty"
    if len(name) > most:
        return f"it is longer than {most} characters"
    if "/" in name:
        return "it holds a `/`, which stands between the parts of an address"
    if any(not c.isprintable() for c in name):
        return "it holds a control character"
    return ""


def moment(at: float | None) -> str:
    """A time as people read it, with its zone; empty for none."""
    if at is None:
        return ""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
