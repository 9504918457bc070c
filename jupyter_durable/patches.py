"""Code that must differ for old histories: whether it is the new code that runs. Pure.

A history that has gone past a place without the marker goes on with the old code; any other takes the new. There is one
answer for an id on a branch, whoever asks. It has no place: it is never missed, and stands in nobody's order.
"""

from __future__ import annotations

from typing import NamedTuple

from jupyter_durable.call import Place
from jupyter_durable.entries import Entry
from jupyter_durable.replay import Replay

WORD = "durable.patched"


class Answer(NamedTuple):
    """What is true of an id."""

    entry: Entry | None
    """Where it is recorded: on this branch, or on that of origin; ``None``: nowhere yet."""
    adopts: bool
    """It is recorded on the branch of origin, and holds for this one."""
    new: bool
    """Where nothing is recorded: whether the new code runs."""


def answer(replay: Replay, place: Place, digest: str) -> Answer:
    """Say which code runs.

    Args:
        replay: of the execution.
        place: where it is asked.
        digest: of the id.
    """
    own = replay.own.patches.get(digest)
    if own is not None and own.finished:
        return Answer(own, False, True)
    source = replay.source
    theirs = source.patches.get(digest) if source is not None else None
    if theirs is not None and theirs.finished and not replay.anew.comes_before(theirs):
        return Answer(theirs, True, True)
    if place.tainted:
        return Answer(None, False, True)
    histories = [replay.own] if source is None else [replay.own, source]
    return Answer(None, False, not any(replay.match.has_more(history, place) for history in histories))
