"""Taking a result over from the branch of origin: the event that says so."""

from __future__ import annotations

from jupyter_durable import clock
from jupyter_durable.engine import payloads
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import Adopted
from jupyter_durable.events import StepAdopted
from jupyter_durable.keys import Key
from jupyter_durable.log.base import EventLog


def adoption(
    entry: Entry, key: Key, why: str, log: EventLog, evidence: str = "", *, undone: bool = False
) -> StepAdopted:
    """The event of taking an entry over, under a key of the new branch.

    Args:
        entry: of the branch of origin.
        key: of the new branch.
        why: it is taken over.
        log: where its value lies.
        evidence: see `Adopt`.
        undone: it was undone on the branch of origin, so there is nothing left to undo.
    """
    source = entry.adopted or Adopted(execution=entry.execution, seq=entry.end)
    payload = payloads.of(entry, log) if entry.state == "completed" else None
    compensation = None if undone else entry.compensation
    return StepAdopted(
        at=clock.now(), name=key.name, digest=key.digest, n=key.n, scope=key.scope, evidence=evidence or entry.evidence,
        kind=entry.kind, pure=entry.pure, why=why,
        data=Adopted(execution=source.execution, seq=source.seq, payload=payload, error=entry.error,
                     usage=entry.usage, wait=entry.wait, receipt=entry.receipt, compensation=compensation),
    )  # fmt: skip
