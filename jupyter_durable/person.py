"""Who says something, for the record of it."""

from __future__ import annotations

import getpass
import socket


def who() -> str:
    """The person at this machine, for the record of a decision."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):
        return socket.gethostname()
