"""What may be used again after a difference, and about what nobody needs to be asked. Pure."""

from __future__ import annotations

from jupyter_durable.call import HELPERS, RUN, WAITS, Call, Reuse
from jupyter_durable.entries import Entry


def keeps(entry: Entry, call: Call, reuse: Reuse, changed: bool) -> bool | None:
    """Whether a recorded result is used after a difference.

    Args:
        entry: the result.
        call: the call that asks for it.
        reuse: what a person, or a flag, said about steps of this name.
        changed: the code that the step depends on is another now.

    Returns:
        ``None``: a person must say.
    """
    if call.rerun == "always" or reuse == "none":
        return False
    if not entry.finished:
        return None if reuse == "ask" else False
    if reuse == "all" or call.rerun == "reuse":
        return True
    if call.pure:
        return not changed
    return False if reuse == "pure" else None


def needs_nobody(entry: Entry, reuse: Reuse) -> bool:
    """Whether nobody needs to be asked about an entry after a difference.

    Args:
        entry: what is recorded.
        reuse: what a person, or a flag, said about steps of its name.
    """
    if entry.kind in HELPERS or entry.kind in WAITS or entry.kind == RUN or entry.state in ("failed", "cancelled"):
        return True
    return reuse != "ask" or (entry.pure and entry.finished)
