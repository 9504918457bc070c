"""A log in memory, for tests of the engine and of users: the same contract, nothing on the disk.

Events go through the line format as in a journal, so a payload that a disk could not hold fails here, too.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import msgspec

from jupyter_durable import clock
from jupyter_durable.errors import BranchMoved, LogDamaged, LogUnusable
from jupyter_durable.event_data import ExecutionHeader, Head, Signal
from jupyter_durable.events import AnyEvent, ExecutionEnded, ExecutionStarted, Recorded
from jupyter_durable.log import lease
from jupyter_durable.log.base import ExecutionRecord, Holder
from jupyter_durable.log.blobs import digest_of
from jupyter_durable.log.line import Chain, decode_event, encode_line, header_start

_SECRET = bytes(32)


class _Execution(msgspec.Struct):
    header: ExecutionHeader
    started: float
    first: int
    lines: list[bytes] = msgspec.field(default_factory=list)
    chains: list[Chain] = msgspec.field(default_factory=list)
    open: bool = True

    def recorded(self, index: int) -> Recorded:
        return Recorded(self.first + index, decode_event(self.lines[index]))

    def head(self, index: int) -> Head:
        return Head(execution=self.header.execution, seq=self.first + index, chain=self.chains[index].text)


class MemoryWriter:
    """The writer of one execution of a `MemoryLog`."""

    def __init__(self, log: MemoryLog, into: _Execution) -> None:
        self._log = log
        self._into = into
        self._seq, self._chain = header_start(into.header)
        self.append(ExecutionStarted(at=into.started, data=into.header))

    @property
    def execution(self) -> str:
        """Its id."""
        return self._into.header.execution

    @property
    def head(self) -> Head:
        """The last line written."""
        return self._into.head(len(self._into.lines) - 1)

    def append(self, event: AnyEvent) -> int:
        """See `log.base.Writer.append`."""
        with self._log.lock:
            if not self._into.open:
                raise LogUnusable(f"Execution {self.execution} has ended; it takes no more events.")
            line, self._chain = encode_line(event, self._seq, self._chain, _SECRET)
            self._into.lines.append(line)
            self._into.chains.append(self._chain)
            self._seq += 1
            return self._seq - 1

    def flush(self) -> None:
        """Nothing to do: nothing here survives the process."""

    def put_blob(self, content: bytes, digest: str = "") -> str:
        """See `log.base.Writer.put_blob`."""
        digest = digest or digest_of(content)
        self._log.blobs[digest] = bytes(content)
        return digest

    def close(self) -> None:
        """Release the branch. Idempotent."""
        self._into.open = False


class MemoryLog:
    """A log that lives as long as this object."""

    def __init__(self, name: str = "") -> None:
        self.lock = threading.RLock()
        self.blobs: dict[str, bytes] = {}
        self._name = name
        self._inbox: list[Signal] = []
        self._executions: dict[str, _Execution] = {}

    @property
    def location(self) -> str:
        """``memory:`` and its name."""
        return f"memory:{self._name}"

    def executions(self, run: str | None = None) -> list[ExecutionRecord]:
        """See `log.base.EventLog.executions`."""
        with self.lock:
            tips = set(map(id, self._tips().values()))
            return [
                self._record(each, id(each) in tips)
                for each in self._executions.values()
                if run is None or each.header.run == run
            ]

    def damage(self) -> list[str]:
        """Nothing: memory is not damaged."""
        return []

    def history(self, branch: str) -> Iterator[Recorded]:
        """See `log.base.EventLog.history`."""
        with self.lock:
            segments: list[tuple[_Execution, int]] = []
            each = self._tips().get(branch)
            count = len(each.lines) if each is not None else 0
            while each is not None:
                segments.append((each, count))
                head = each.header.head
                if head is None:
                    break
                each = self._executions[head.execution]
                count = head.seq - each.first + 1
                if each.head(count - 1) != head:
                    raise LogDamaged(f"Event {head.seq} of execution {head.execution} is not what was continued.")
        return (each.recorded(index) for each, count in reversed(segments) for index in range(count))

    def reload(self, execution: str, seq: int) -> Recorded:
        """See `log.base.EventLog.reload`."""
        each, index = self._at(execution, seq)
        return each.recorded(index)

    def point(self, execution: str, seq: int) -> Head:
        """See `log.base.EventLog.point`."""
        each, index = self._at(execution, seq)
        return each.head(index)

    def begin(self, header: ExecutionHeader) -> MemoryWriter:
        """See `log.base.EventLog.begin`."""
        with self.lock:
            if header.execution in self._executions:
                raise LogUnusable(f"There is an execution {header.execution} already.")
            holder = self.holder(header.branch)
            if holder is not None:
                raise lease.busy(header.name, header.branch_name, holder)
            tip = self._tips().get(header.branch)
            if tip is not None and tip.head(len(tip.lines) - 1) != header.head:
                raise BranchMoved(
                    f"Branch {header.branch_name} of run {header.name} has gone on since it was read. Nothing was "
                    "executed here; run the cell again.",
                    branch=header.branch_name,
                    pid=tip.header.pid,
                    host=tip.header.host,
                    notebook=tip.header.path,
                    since=tip.started,
                )
            if header.head is not None:
                self._at(header.head.execution, header.head.seq)
            header = msgspec.structs.replace(header, key="memory")
            into = _Execution(header, clock.now(), header_start(header)[0])
            self._executions[header.execution] = into
            return MemoryWriter(self, into)

    def holder(self, branch: str) -> Holder | None:
        """See `log.base.EventLog.holder`."""
        with self.lock:
            for each in self._executions.values():
                if each.open and each.header.branch == branch:
                    notebook = each.header.path or each.header.notebook
                    return Holder(os.getpid(), socket.gethostname(), notebook, each.started)
        return None

    def read_blob(self, digest: str) -> bytes:
        """See `log.base.EventLog.read_blob`."""
        try:
            return self.blobs[digest]
        except KeyError:
            raise LogDamaged(f"The blob {digest} is missing.", file=digest, line=1, readable=0) from None

    def post(self, signal: Signal) -> bool:
        """See `log.base.EventLog.post`."""
        with self.lock:
            if any(each.id == signal.id and each.run == signal.run for each in self._inbox):
                return False
            self._inbox.append(signal)
            return True

    def signals(self, run: str) -> list[Signal]:
        """See `log.base.EventLog.signals`."""
        with self.lock:
            return sorted((each for each in self._inbox if each.run == run), key=lambda each: each.sent)

    def posted(self, run: str) -> int:
        """See `log.base.EventLog.posted`."""
        return sum(each.run == run for each in self._inbox)

    def fold(self) -> int:
        """Nothing to do: memory is queried as it is."""
        return 0

    def crash(self) -> None:
        """Let go of everything as the death of the process would: no writer takes an event any more."""
        with self.lock:
            for each in self._executions.values():
                each.open = False

    def _tips(self) -> dict[str, _Execution]:
        continued = {
            each.header.head.execution
            for each in self._executions.values()
            if each.header.head is not None
            and self._executions[each.header.head.execution].header.branch == each.header.branch
        }
        return {each.header.branch: each for name, each in self._executions.items() if name not in continued}

    def _at(self, execution: str, seq: int) -> tuple[_Execution, int]:
        each = self._executions.get(execution)
        index = seq - each.first if each is not None else -1
        if each is None or not 0 <= index < len(each.lines):
            raise LogDamaged(f"There is no event {seq} in an execution {execution}.", file="", line=1, readable=0)
        return each, index

    def _record(self, each: _Execution, tip: bool) -> ExecutionRecord:
        last = each.recorded(len(each.lines) - 1).event
        ended = last if isinstance(last, ExecutionEnded) else None
        return ExecutionRecord(
            header=each.header,
            started=each.started,
            last=each.head(len(each.lines) - 1),
            outcome=None if ended is None else ended.data,
            ended=None if ended is None else ended.at,
            running=tip and ended is None and each.open,
            folded=False,
        )
