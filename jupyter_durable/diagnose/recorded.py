"""Examines what a log says: who signed it, which executions it has and how they stand, whether its times make sense."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jupyter_durable import clock as clocks
from jupyter_durable.diagnose.finding import FEW, Finding, counted
from jupyter_durable.errors import DurableError, LogUntrusted
from jupyter_durable.log.local import LocalLog
from jupyter_durable.values.trust import key_path, load_key

_AHEAD = 120.0
"""Seconds that the clocks of two machines may differ before it is worth a word."""


def key(log: LocalLog | None) -> Iterator[Finding]:
    """Whether the user's key is there and private, and which executions another key has signed."""
    path = key_path()
    entries = [] if log is None else list(log.look().entries.values())
    if not entries and not path.exists():
        yield Finding("ok", f"There is no key yet; the first durable cell makes it at {path}.")
        return
    try:
        own = load_key(create=False)
    except DurableError as error:
        yield Finding("problem", str(error))
        return
    yield Finding("ok", f"The key {own.id} at {path} is readable for you alone.")
    if log is not None and path.absolute().is_relative_to(log.directory.parent):
        yield Finding(
            "note",
            f"The key lies in {log.directory.parent}, beside the log that it protects.",
            "Keep it where it is not copied, mailed or put under version control together with the log.",
        )
    foreign: Counter[str] = Counter()
    for entry in entries:
        try:
            assert log is not None
            log.keys.secret_for(entry)
        except LogUntrusted:
            foreign[entry.header.key or "none"] += 1
    for name, number in foreign.items():
        yield Finding(
            "note",
            f"{counted(number, 'execution')} signed with another key ({name}): shown, and not replayed.",
            "If they are your own, bring that key here. If you know where they come from, accept each with `jupyter "
            "durable trust EXECUTION`.",
        )


def executions(log: LocalLog) -> Iterator[Finding]:
    """Torn tails, and which runs are being executed or wait to be resumed."""
    records = log.executions()
    for record in records:
        if record.torn and not record.running:
            yield Finding(
                "note",
                f"Execution {record.header.execution} of run {record.header.name} ends in a torn line of {record.torn} "
                "bytes, as the death of a machine leaves it. It is left out; every event before it counts.",
            )
    newest = {record.header.branch: record for record in records if record.header.purpose == "run"}
    gone_on = {record.header.continues for record in records}
    unfinished = []
    for record in newest.values():
        header = record.header
        name = f"Run {header.name} ({header.branch_name})"
        if record.running:
            holder = log.holder(header.branch)
            pid, host = (header.pid, header.host) if holder is None else (holder.pid, holder.host)
            yield Finding("ok", f"{name} is being executed by process {pid} on {host}.")
        elif record.outcome is None or record.outcome.status == "interrupted":
            unfinished.append(Finding("note", f"{name} was interrupted.", "Run its cell again: it resumes."))
        elif record.outcome.status == "continued" and header.branch not in gone_on:
            unfinished.append(
                Finding("note", f"{name} has handed its state on.", "Run its cell again: it begins anew with that.")
            )
        elif record.outcome.status == "stopped":
            unfinished.append(
                Finding(
                    "note", f"{name} has stopped and needs you.", "Run its cell again: it says what is to be decided."
                )
            )
    yield from unfinished[-FEW:]
    if len(unfinished) > FEW:
        yield Finding("note", f"{len(unfinished) - FEW} older branches are unfinished, too: jupyter durable runs.")


def clock(log: LocalLog) -> Iterator[Finding]:
    """Whether events lie in the future, or before what they continue."""
    records, now = log.executions(), clocks.now()
    ahead = [r for r in records if max(r.started, r.ended or 0.0) > now + _AHEAD]
    started = {record.header.execution: record.started for record in records}
    back = [
        record
        for record in records
        if record.header.head is not None
        and started.get(record.header.head.execution, record.started) > record.started + _AHEAD
    ]
    for record in ahead[:1]:
        most = max(max(r.started, r.ended or 0.0) for r in ahead) - now
        yield Finding(
            "note",
            f"{counted(len(ahead), 'execution')} up to {most:.0f} s in the future, such as {record.header.execution}.",
            "See whether this clock is right. History is ordered by numbers, so nothing is replayed wrongly.",
        )
    for record in back[:1]:
        yield Finding(
            "note",
            f"The clock went back between executions: {record.header.execution} began before the one it continues.",
            "Do not believe durations over both. History is ordered by numbers, so nothing is replayed wrongly.",
        )
    if records and not ahead and not back:
        yield Finding("ok", "The clock agrees with the log.")
