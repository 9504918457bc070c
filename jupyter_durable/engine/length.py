"""When a history is long, and what is said then: a loop that never ends had better begin anew from time to time."""

from __future__ import annotations

import sys

from jupyter_durable.event_data import Notice
from jupyter_durable.history import History

LONG = 50_000
"""Events of a branch from which on its history is long: 25,000 steps. Every resume reads them before it goes on, which
took 0.7 s, and replays them, which took 1.8 s: from here on people wait for it."""

NEVER = sys.maxsize

_WORD = "durable.continue_as_new"


def first_notice(own: History) -> int:
    """The seq from which on it is to be said that a branch is long; `NEVER` where that was said before."""
    return NEVER if any(_WORD in notice.names for _, notice in own.notices) else LONG


def long_notice() -> Notice:
    """What is said, once on a branch."""
    return Notice(
        kind="note",
        names=(_WORD,),
        message=(
            f"the history of this branch has {LONG:,} events, and every resume reads all of them first. A loop without "
            f"an end hands its state on with `{_WORD}(...)`, and goes on with an empty history"
        ),
    )
