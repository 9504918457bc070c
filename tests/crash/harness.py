"""Worlds in which programs live and die, and what must hold of them; used by every test of the crash suite."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from tests.crash.layers import ROOT, Spec
from tests.crash.server import Job, Report

COMMAND = [sys.executable, "-W", "error", "-m", "tests.crash.server"]
ROW = ("execution", "seq", "type", "step", "scope", "name", "digest", "n", "data")
_NONCE = re.compile(r"~[0-9a-f]{8}|#\d{4,}")


@dataclass
class Step:
    """What the log says of one step."""

    name: str
    scope: str
    state: str = "open"
    intents: list[int] = field(default_factory=list)
    end: int = -1


@dataclass
class History:
    """What lies in the log: read as plain JSON and by plain DuckDB, not by the product."""

    steps: dict[str, Step]
    """By idempotency key."""
    events: int
    executions: int

    def may_fail_again(self, step: Step) -> bool:
        """Whether nothing was begun after a failure in its scope or around it: then nobody has caught it yet."""
        later = [other.scope for other in self.steps.values() if max(other.intents) > step.end]
        return not any(step.scope == scope or step.scope.startswith(f"{scope}/") or not scope for scope in later)


class Server:
    """A process that forks lives; see `tests.crash.server`."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = {**os.environ, **environment, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
        self._process = self._begin()

    def _begin(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=self.environment)

    def ask(self, job: Job) -> Report:
        """Have a job done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(job) + b"\n")
            self._process.stdin.flush()
            return msgspec.json.decode(self._process.stdout.readline(), type=Report)
        except BaseException:  # the time of the test is over: an answer that comes later must not be the next job's
            self._process.kill()
            self.close()
            self._process = self._begin()
            raise

    def once(self, job: Job) -> Report:
        """The same job in a Python process of its own."""
        done = subprocess.run(
            [*COMMAND, "--once"],
            input=msgspec.json.encode(job) + b"\n",
            cwd=ROOT,
            env=self.environment,
            check=False,
            timeout=50,
        )
        if done.returncode < 0:
            return Report(signal=-done.returncode)
        return msgspec.json.decode((Path(job.world) / "report").read_bytes(), type=Report)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


class World:
    """One log, and what lies outside of it."""

    def __init__(self, server: Server, path: Path) -> None:
        self.server = server
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    @property
    def log(self) -> Path:
        """The directory of the log."""
        return self.path / "log"

    def job(self, program: str, layer: Spec | None = None, **fields: Any) -> Job:
        """A job in this world."""
        return Job(world=str(self.path), program=program, layer=layer or Spec(), **fields)

    def run(self, program: str, layer: Spec | None = None, **fields: Any) -> Report:
        """One life of a program, until its end or its death."""
        report = self.server.ask(self.job(program, layer, **fields))
        assert report.error != "Harness", report.message
        return report

    def finish(self, program: str, **fields: Any) -> Report:
        """A life that must come to its end."""
        report = self.run(program, **fields)
        assert not report.error, report.trace
        assert report.signal == 0
        return report

    def lines(self, name: str) -> list[str]:
        """Lines of a file of the outside."""
        path = self.path / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def effects(self) -> list[tuple[str, str]]:
        """Idempotency key and tag of every effect, in order."""
        found = []
        for line in self.lines("effects"):
            key, _, ticket = line.partition(" ")
            found.append((key, ticket.rpartition("~")[0]))
        return found

    def counts(self) -> Counter[str]:
        """Effects by tag."""
        return Counter(tag for _, tag in self.effects())

    def said(self) -> str:
        """What the lives have written to stdout and stderr."""
        return "\n".join(self.lines("said"))

    def history(self) -> History:
        """What the log holds now."""
        return read_history(self.log)

    def rows(self) -> Counter[tuple[str, int]]:
        """Rows of ``log.duckdb`` by execution and seq, by plain DuckDB on a copy."""
        return Counter((execution, seq) for execution, seq, *_ in read_rows(self.log))

    def copy(self, path: Path) -> World:
        """Another world that is like this one."""
        shutil.copytree(self.path, path)
        return World(self.server, path)

    def remove(self) -> None:
        """Make room."""
        shutil.rmtree(self.path)


def plain(result: Any) -> Any:
    """A result without nonces of tickets and numbers of answers."""
    return json.loads(_NONCE.sub("", json.dumps(result)))


def whole_lines(journal: Path) -> list[dict[str, Any]]:
    """The events of a journal, up to a torn tail."""
    *whole, _ = journal.read_bytes().split(b"\n")
    return [json.loads(line) for line in whole]


def read_rows(log: Path) -> list[tuple[Any, ...]]:
    """Execution, seq and event of all rows of the database, read from a copy: looking must not change what is there."""
    if not (log / "log.duckdb").exists():
        return []
    copy = log.parent / "looking"
    copy.mkdir()
    try:
        for file in log.glob("log.duckdb*"):
            shutil.copy(file, copy)
        connection = duckdb.connect(str(copy / "log.duckdb"))
        try:
            tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            if ("lines",) not in tables:
                return []
            return connection.execute(f"SELECT {', '.join(ROW)} FROM lines").fetchall()
        finally:
            connection.close()
    finally:
        shutil.rmtree(copy)


def read_history(log: Path) -> History:
    """The steps of all executions (these tests have one branch), as their idempotency keys tell them apart."""
    events: dict[int, tuple[str, dict[str, Any]]] = {}
    executions = set()
    for journal in (log / "journal").glob("*.jsonl"):
        for event in whole_lines(journal):
            events[event["seq"]] = (journal.stem, event)
            executions.add(journal.stem)
    if any((log / "journal").glob("*.folded")):
        for execution, seq, kind, step, scope, name, digest, n, data in read_rows(log):
            row = {"seq": seq, "type": kind, "step": step, "scope": scope, "name": name, "digest": digest, "n": n}
            event = {key: value for key, value in row.items() if value is not None}
            events.setdefault(seq, (execution, event | ({} if data is None else {"data": json.loads(data)})))
            executions.add(execution)
    steps: dict[str, Step] = {}
    by_seq: dict[int, Step] = {}
    header: dict[str, Any] = {}
    assert sorted(events) == list(range(len(events))), "the events of a branch are numbered without a gap"
    for seq, (_, event) in sorted(events.items()):
        kind = event["type"]
        if kind == "execution_started":
            header = event["data"]
        elif kind == "step_started":
            scope, name, n = event.get("scope", ""), event["name"], event.get("n", 0)
            parts = (
                header["run"],
                header["root"],
                str(header.get("generation", 0)),
                scope,
                name,
                event["digest"],
                str(n),
            )
            key = blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
            step = by_seq[seq] = steps.setdefault(key, Step(name, scope))
            step.intents.append(seq)
            step.state, step.end = "open", -1
        elif kind in {"step_completed", "step_failed", "step_cancelled", "step_interrupted", "step_not_stored"}:
            by_seq[event["step"]].state = kind.removeprefix("step_")
            by_seq[event["step"]].end = seq
    return History(steps, len(events), len(executions))


@dataclass
class Reference:
    """One uninterrupted life of a program."""

    program: str
    result: Any
    counts: Counter[str]
    events: int
    ops: list[str]
    requests: int = 0


def refer(world: World, program: str, **fields: Any) -> Reference:
    """Run a program to its end, uninterrupted, and see that it replays without effects."""
    first = world.finish(program, **fields)
    counts = world.counts()

    again = world.finish(program, **fields)

    assert first.live > 0
    assert again.live == 0
    assert world.counts() == counts
    assert plain(again.result) == plain(first.result)
    return Reference(program, plain(first.result), counts, first.events, first.ops)


class Watch:
    """Follows one world through deaths and resumes, and says what may happen again."""

    def __init__(self, reference: Reference, world: World) -> None:
        self.reference = reference
        self.world = world
        self.doubts: Counter[str] = Counter()
        """Tag -> how often the step may be executed once more than in the reference."""
        self.ended: set[str] = set()
        self.before: Counter[str] = Counter()

    def died(self) -> History:
        """After a death: note what is in doubt. Each effect so far has its intent in the log."""
        history = self.world.history()
        tags = self._tags()
        for key, tag in tags.items():
            assert key in history.steps, f"{tag} was executed and has no intent in the log"
            step = history.steps[key]
            again = step.state in {"open", "interrupted"} or (step.state == "failed" and history.may_fail_again(step))
            self.doubts[tag] += int(again)
        self.ended = {tags[key] for key, step in history.steps.items() if key in tags and self._is_over(history, step)}
        self.before = self.world.counts()
        return history

    def _is_over(self, history: History, step: Step) -> bool:
        if step.state in {"completed", "cancelled"}:
            return True
        return step.state == "failed" and not history.may_fail_again(step)

    def _tags(self) -> dict[str, str]:
        """Key -> tag. A step has one idempotency key in all its lives, and no two steps have the same."""
        pairs = set(self.world.effects())
        assert len({key for key, _ in pairs}) == len({tag for _, tag in pairs}) == len(pairs)
        return dict(pairs)

    def resumed(self) -> None:
        """After any further life: what had an end was not executed again."""
        counts = self.world.counts()
        for tag in self.ended:
            assert counts[tag] == self.before[tag], f"{tag} had an end in the log and was executed again"
        shown: dict[str, str] = {}
        for ticket in self.world.lines("seen"):
            tag, _, nonce = ticket.rpartition("~")
            assert shown.setdefault(tag, nonce) == nonce, f"the program was shown two values of {tag}"

    def finished(self, report: Report) -> None:
        """After the life that came to its end: right values, nothing twice but what was in doubt; then replay."""
        self.resumed()
        assert report.error == "", report.trace
        assert plain(report.result) == self.reference.result
        counts = self.world.counts()
        assert set(counts) == set(self.reference.counts), set(counts) ^ set(self.reference.counts)
        for tag, count in counts.items():
            usual = self.reference.counts[tag]
            assert usual <= count <= usual + self.doubts[tag], f"{tag}: {count} times, {self.doubts[tag]} in doubt"

    def replays(self, **fields: Any) -> None:
        """One more life has no effect and the same result."""
        counts = self.world.counts()

        report = self.world.finish(self.reference.program, **fields)

        assert report.live == 0
        assert plain(report.result) == self.reference.result
        assert self.world.counts() == counts
        self.resumed()
