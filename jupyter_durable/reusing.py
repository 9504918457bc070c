"""What may be used again after a difference, and about what nobody needs to be asked. Pure."""

from __future__ import annotations

from jupyter_durable.call import HELPERS, ORDINARY, RUN, WAITS, Call, Reuse
from jupyter_durable.entries import Entry


def keeps(entry: Entry, call: Call, reuse: Reuse, changed: bool, *, said_now: bool = False) -> bool | None:
    """Whether a recorded result is used after a difference.

    Args:
        entry: the result.
        call: the call that asks for it.
        reuse: what a person, or a flag, said about steps of this name.
        changed: the code that the step depends on is another now.
        said_now: a person said it for this execution, which goes before what the step's author has said.

    Returns:
        ``None``: a person must say.
    """
    declared = call.on_code_change if changed else None
    if reuse == "none" or (call.rerun == "always" and declared is None):
        return False
    if not entry.finished:
        return None if reuse == "ask" else False
    if declared == "rerun" and not (reuse == "all" and said_now):
        return False
    if reuse == "all" or (call.rerun == "reuse" and declared is None):
        return True
    if call.pure:
        return not changed
    return False if reuse == "pure" else None


REUSED = 'its code changed, and `on_code_change="reuse"` uses its result all the same'
"""Why a recorded result is used although the step's code is another now."""


def is_changed(entry: Entry, call: Call) -> bool:
    """Whether the code that a step depends on is another than recorded."""
    return bool(call.evidence and entry.evidence and call.evidence != entry.evidence and entry.kind in ORDINARY)


def is_let_pass(entry: Entry, call: Call) -> bool:
    """Whether the author of a finished step has said that changes of its code do not matter.

    Another ``version=`` matters: it says that the meaning has changed.
    """
    same_version = entry.evidence.partition("@")[2] == call.evidence.partition("@")[2]
    return call.on_code_change == "reuse" and entry.finished and same_version


def needs_nobody(entry: Entry, reuse: Reuse) -> bool:
    """Whether nobody needs to be asked about an entry after a difference.

    Args:
        entry: what is recorded.
        reuse: what a person, or a flag, said about steps of its name.
    """
    if entry.kind in HELPERS or entry.kind in WAITS or entry.kind == RUN or entry.state in ("failed", "cancelled"):
        return True
    return reuse != "ask" or (entry.pure and entry.finished)
