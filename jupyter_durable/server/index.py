"""One branch as the panel needs it: its `History`, extended as its journals grow, and beside each entry what a row
tells and where its events lie.

Nothing is read twice: a poll of a run of 100,000 steps costs what has come since the last one. Values are dropped as
they are read; of each a digest stays, to compare it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice

import msgspec

from jupyter_durable import clock
from jupyter_durable.call import RUN
from jupyter_durable.comparing import NO_DIGEST, digest
from jupyter_durable.entries import Entry
from jupyter_durable.errors import LogError, LogTooNew, LogUntrusted
from jupyter_durable.event_data import ExecutionHeader, Head, Notice, Progress, RequestInfo
from jupyter_durable.events import (
    AnyEvent,
    AttemptFailed,
    ExecutionStarted,
    Noticed,
    Progressed,
    Recorded,
    Replayed,
    StepAdopted,
    StepBeat,
    StepBilled,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepNotStored,
    StepOutput,
    StepSettled,
    StepStarted,
    WaitStarted,
)
from jupyter_durable.history import PATCHED, History
from jupyter_durable.keys import Key, inner_scope, parent_scope
from jupyter_durable.log import folded
from jupyter_durable.log.line import decode_event
from jupyter_durable.log.listing import Entry as Listed
from jupyter_durable.log.local import LocalLog
from jupyter_durable.log.reader import JournalReader
from jupyter_durable.server.thin import slim, slim_adopted
from jupyter_durable.server.tracks import Segment, Sum, Track, raw_state

_SOME = 2000
"""Events that are read from the database between two looks at the clock."""

_ENDS = (StepCompleted, StepNotStored, StepFailed, StepCancelled, StepInterrupted)


class BranchIndex:
    """See the module's docstring. Not safe for several threads at once: `logs.LogView` holds its lock meanwhile."""

    def __init__(self, log: LocalLog, branch: str) -> None:
        self.log = log
        self.branch = branch
        self._clear()

    def _clear(self) -> None:
        self.segments: list[Segment] = []
        self.history = History()
        self.tracks: dict[int, Track] = {}
        """By number, in order of starts."""
        self.changes: list[tuple[int, Track]] = []
        """Every event that concerns a step, in order of seq."""
        self.states: dict[str, int] = {}
        self.open: dict[int, Track] = {}
        self.begun = 0
        """Child runs that have no end, and in which nothing waits."""
        self.spent, self.saved = Sum(), Sum()
        self.notices: list[Notice] = []
        self.progress: Progress | None = None
        """How far the cell's own code said that it is, in its newest execution."""
        self.untrusted = ""
        self.damaged = ""
        self._stuck = ""
        self._inner: dict[str, int] = {}
        self._cell = ""

    @property
    def head(self) -> int:
        """Seq of the last event that was read; -1 if there is none."""
        return self.history.seq

    # Reading ---------------------------------------------------------------------------------------------------------

    def update(self, segments: list[tuple[Listed, Head | None]], enough: float | None = None) -> bool:
        """Read what is new.

        Args:
            segments: the branch, as the listing has it now.
            enough: monotonic time after which to leave the rest for the next time.

        Returns:
            Whether everything was read.
        """
        if not self._fits(segments):
            self._clear()
        self.damaged = self._stuck
        if self._stuck:
            return True
        for place, (entry, upto) in enumerate(segments):
            if place < len(self.segments):
                segment = self.segments[place]
                segment.entry, segment.upto = entry, upto
            else:
                segment = Segment(entry, upto, self._secret(entry))
                self.segments.append(segment)
            if segment.whole:
                continue
            try:
                if not self._read(segment, enough):
                    return False
            except (LogError, KeyError, OSError) as error:
                self.damaged = str(error) if isinstance(error, LogError) else _broken(entry, error)
                if isinstance(error, KeyError | LogTooNew):
                    self._stuck = self.damaged  # what follows cannot be understood either
                return True
            if not segment.whole and place + 1 < len(segments):
                self.damaged = _broken(entry, None)
                return True
        return True

    def _fits(self, segments: list[tuple[Listed, Head | None]]) -> bool:
        """Whether what was read is still the beginning of the branch."""
        if len(segments) < len(self.segments):
            return False
        for known, (entry, upto) in zip(self.segments, segments, strict=False):
            if known.execution != entry.header.execution or (upto is not None and known.last > upto.seq):
                return False
            if entry.stub is None and known.position is not None and entry.size < known.position.offset:
                return False
        return True

    def _secret(self, entry: Listed) -> bytes | None:
        try:
            return self.log.keys.secret_for(entry)
        except (LogUntrusted, LogError) as error:
            self.untrusted = self.untrusted or str(error)
            return None

    def _read(self, segment: Segment, enough: float | None) -> bool:
        if segment.entry.stub is not None:
            return self._read_folded(segment, enough)
        until = None if segment.upto is None else segment.upto.seq
        reader = JournalReader(segment.entry.path, segment.secret, segment.position)
        try:
            for batch in reader.batches():
                segment.places.note(batch)
                pairs = zip(range(batch.start.seq, batch.start.seq + len(batch.lines)), batch.lines, strict=True)
                self._take(segment, (Recorded(seq, _decoded(segment, seq, line)) for seq, line in pairs), until)
                segment.position = reader.position
                if until is not None and segment.last >= until:
                    return True
                if enough is not None and clock.monotonic() > enough:
                    return False
        except LogUntrusted as error:
            if segment.secret is None:
                raise
            # Shown all the same, and said so: to look runs nothing.
            self.untrusted, segment.secret = str(error), None
            return self._read(segment, enough)
        return True

    def _read_folded(self, segment: Segment, enough: float | None) -> bool:
        part = (segment.entry, segment.upto, segment.secret)
        events = folded.read_on(self.log.directory, part, segment.last, check=not segment.checked)
        try:
            while some := list(islice(events, _SOME)):
                segment.checked = True
                self._take(segment, some)
                if enough is not None and clock.monotonic() > enough:
                    return segment.whole
        except LogUntrusted as error:
            if segment.secret is None:
                raise
            self.untrusted, segment.secret = str(error), None
            return self._read_folded(segment, enough)
        finally:
            events.close()
        return True

    def _take(self, segment: Segment, events: Iterable[Recorded], until: int | None = None) -> None:
        for recorded in events:
            if recorded.seq <= segment.last:
                continue
            if until is not None and recorded.seq > until:
                return
            if segment.first < 0:
                segment.first = recorded.seq
            self._apply(recorded.seq, recorded.event)
            segment.last = recorded.seq

    # Taking in -------------------------------------------------------------------------------------------------------

    def _apply(self, seq: int, event: AnyEvent) -> None:
        history = self.history
        if isinstance(event, StepStarted | WaitStarted):
            self._started(seq, event)
            return
        if isinstance(event, StepAdopted):
            self._begun_before(event)
            history.apply(seq, slim_adopted(event))
            track = self._track(history.by_seq[seq], seq, event.at)
            track.began = track.ended = event.at
            track.seconds = -1.0
            track.value = digest(event.data.payload, event.kind)
            if event.data.usage is not None:
                track.provider, track.model = event.data.usage.provider, event.data.usage.model
            return
        step = getattr(event, "step", -1)
        entry = history.by_seq.get(step)
        if entry is None:
            if isinstance(event, Replayed):
                self.saved.calls += event.data.calls
                for usage in event.data.models:
                    self.saved.add(usage, 0)
                history.seq = seq
                return
            if isinstance(event, ExecutionStarted):
                self._cell = event.data.cell
                if event.data.purpose == "run":
                    self.progress = None
            elif isinstance(event, Noticed):
                self.notices.append(event.data)
            elif isinstance(event, Progressed) and step < 0:
                self.progress = event.data
            elif not isinstance(step, int) or step >= 0:
                raise KeyError(step)
            history.apply(seq, event)
            return
        self._about(seq, event, entry)

    def _started(self, seq: int, event: StepStarted | WaitStarted) -> None:
        self._begun_before(event)
        self.history.apply(seq, event)
        track = self._track(self.history.by_seq[seq], seq, event.at)
        track.began, track.ended, track.seconds, track.told, track.value = event.at, -1.0, -1.0, False, NO_DIGEST
        track.missed = ""
        track.cell = self._cell
        if isinstance(event.data, RequestInfo):
            track.line, track.provider, track.model = event.data.line, event.data.provider, event.data.model

    def _begun_before(self, event: StepStarted | StepAdopted | WaitStarted) -> None:
        key = Key(event.scope, event.name, event.digest, event.n)
        known = self.history.patches.get(key.digest) if event.kind == PATCHED else self.history.entries.get(key)
        if known is not None:
            self._leave(self.tracks[known.begun])

    def _track(self, entry: Entry, seq: int, at: float) -> Track:
        """The track of an entry that has just begun, entered among those that have changed."""
        track = self.tracks.get(entry.begun)
        if track is None:
            track = self.tracks[entry.begun] = Track(entry, self._cell, at, at, self._parent(entry.key.scope))
            self._inner[inner_scope(entry.key)] = entry.begun
        self._enter(track, seq)
        return track

    def _parent(self, scope: str) -> int:
        while scope:
            found = self._inner.get(scope)
            if found is not None:
                return found
            scope = parent_scope(scope)
        return -1

    def _about(self, seq: int, event: AnyEvent, entry: Entry) -> None:
        """An event about a step that has begun."""
        track = self.tracks[entry.begun]
        self._leave(track)
        if not isinstance(event, Noticed | StepOutput):
            track.missed = ""
        if isinstance(event, StepOutput):
            track.outputs += len(event.data)
            self.history.seq = seq
        else:
            self.history.apply(seq, slim(event))
        if isinstance(event, _ENDS):
            track.ended, track.seconds = event.at, max(0.0, event.at - track.began)
            if isinstance(event, StepCompleted):
                track.value = digest(event.data, entry.kind)
                self.spent.unknown += entry.kind == "model" and not track.told
        elif isinstance(event, Noticed):
            track.missed = event.data.message if "heartbeat" in event.data.names else track.missed
        elif isinstance(event, AttemptFailed):
            track.began = event.at + event.data.retry_in
            track.told = False
        elif isinstance(event, StepBilled):
            track.told = True
            track.model = event.data.model or track.model
            self.spent.add(event.data)
        elif isinstance(event, StepSettled):
            track.ended = event.at
            track.value = digest(event.data.payload, entry.kind)
        self._enter(track, seq, tells=not isinstance(event, StepBeat | Progressed))

    def _count(self, track: Track, more: int) -> None:
        if track.entry.kind != RUN:  # a child run is no step
            word = raw_state(track)
            self.states[word] = self.states.get(word, 0) + more

    def _leave(self, track: Track) -> None:
        self._count(track, -1)
        self.open.pop(track.entry.begun, None)
        if track.entry.waits:
            self._waits_inside(track, -1, self.head)

    def _enter(self, track: Track, seq: int, *, tells: bool = True) -> None:
        self._count(track, 1)
        if track.entry.kind != RUN and raw_state(track) == "open":
            self.open[track.entry.begun] = track
        track.changed = seq
        if tells:  # a sign of life moves the row, and there may be thousands
            track.events += (seq,)
        self.changes.append((seq, track))
        if track.entry.waits:
            self._waits_inside(track, 1, seq)

    def _waits_inside(self, track: Track, more: int, seq: int) -> None:
        """A wait has begun or ended: the child runs around it stand otherwise now."""
        while (around := self.tracks.get(track.parent)) is not None:
            track = around
            if track.entry.kind == RUN:
                track.waits += more
                track.changed = seq
                self.changes.append((seq, track))

    # Asking ----------------------------------------------------------------------------------------------------------

    def since(self, after: int, limit: int) -> tuple[list[Track], int, bool]:
        """The steps that have changed after a seq, in order of that; up to where; and whether there are more."""
        found: list[Track] = []
        changes = self.changes
        for place in range(bisect_right(changes, after, key=lambda change: change[0]), len(changes)):
            seq, track = changes[place]
            if track.changed != seq:
                continue
            if len(found) >= limit and (not found or found[-1].changed != seq):
                return found, found[-1].changed if found else after, True
            found.append(track)
        return found, self.head, False

    def segment_of(self, seq: int) -> Segment | None:
        """The execution that wrote an event."""
        return next((segment for segment in self.segments if segment.first <= seq <= segment.last), None)

    def header_of(self, execution: str) -> ExecutionHeader | None:
        """The first line of one of its executions."""
        return next((s.entry.header for s in self.segments if s.execution == execution), None)


def _decoded(segment: Segment, seq: int, line: bytes) -> AnyEvent:
    try:
        return decode_event(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LogTooNew(
            f"Event {seq} of execution {segment.execution} is of a kind that this version of jupyter_durable does not "
            f"know ({type(error).__name__}). Upgrade it (pip install -U jupyter_durable)."
        ) from error


def _broken(entry: Listed, error: BaseException | None) -> str:
    what = "it ends too early" if error is None else f"its events do not fit together ({type(error).__name__})"
    return (
        f"Execution {entry.header.execution} of run {entry.header.name} cannot be read to its end: {what}. "
        "`jupyter durable doctor` says more."
    )
