"""What became of a whole family of scenarios, made once for all tests that look at it.

The imports of the SDKs cost more than the scenarios, so a family shares its processes. Test processes of one session
share the outcome as well: who comes first makes it, under a lock, and the others read it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock, Timeout

from tests.capture.processes import Bench, Results, bench, kill
from tests.capture.scenarios import FAMILIES, SECRETS, Scenario, scenarios

RECORDING, REPLAY = "recording", "replay"


def skip_if_missing(family: str) -> None:
    """Skip the test where an SDK of the family is not installed."""
    for module in FAMILIES[family].needs:
        pytest.importorskip(module)


def of_family(family: str) -> list[Scenario]:
    """Its scenarios, in the order in which a process runs them."""
    return sorted((one for one in scenarios().values() if one.family == family), key=lambda one: one.is_async)


def can_be_killed(one: Scenario) -> bool:
    """Whether a death between its first two requests is tried: they must follow each other, and mean something."""
    return one.requests >= 2 and one.one_by_one and not one.faulty


@dataclass
class Matrix:
    """A family run plainly and recorded in one process, and replayed in another."""

    plain: Results
    recorded: Results
    replayed: Results
    requests: dict[str, dict[str, int]]
    """By pass and scenario: how many model requests there were."""
    others: dict[str, dict[str, int]]
    """By pass and path: requests that are no model calls."""
    effects: dict[str, int]
    """By pass: tool calls that had an effect; the recording includes the plain pass."""
    secrets: list[str]
    """Files of the log that hold a key or a cookie."""


@dataclass
class Deaths:
    """A family, each scenario of which was killed while its second request was open, and then finished."""

    outputs: Results
    requests: dict[str, list[list[str]]]
    """By scenario: the path and body of every request that was made, over all processes."""
    effects: int


class Outcomes:
    """What the test processes of this session have made so far, and what they will need."""

    def __init__(self, shared: Path, wanted: list[tuple[str, str]]) -> None:
        self.shared = shared
        self.wanted = wanted
        """Kind and family of everything that a test of this session asks for."""

    def matrix(self, family: str) -> Matrix:
        """The family, run plainly, recorded and replayed."""
        return Matrix(**self._outcome("matrix", family))

    def deaths(self, family: str) -> Deaths:
        """The family, killed."""
        return Deaths(**self._outcome("deaths", family))

    def _outcome(self, kind: str, family: str) -> dict[str, Any]:
        if not self._make(kind, family):
            # Another test process is at it. Do something else that will be asked for, instead of waiting.
            for other in self.wanted:
                if not self._file(kind, family).exists():
                    self._make(*other)
            self._make(kind, family, patience=-1)
        read: dict[str, Any] = json.loads(self._file(kind, family).read_text(encoding="utf-8"))
        if "failed" in read:
            pytest.fail(read["failed"], pytrace=False)
        return dict(read["made"])

    def _file(self, kind: str, family: str) -> Path:
        return self.shared / f"{kind}-{family}" / "outcome.json"

    def _make(self, kind: str, family: str, patience: float = 0) -> bool:
        """Make an outcome, if nobody is making it; says whether it is there now."""
        file = self._file(kind, family)
        if file.exists():
            return True
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(file.with_name("lock"), timeout=patience):
                if file.exists():
                    return True
                # A failure is an outcome: the other tests of the family would only wait for the same one.
                try:
                    made = {"made": asdict(_MAKERS[kind](family, file.parent))}
                except Exception as error:
                    made = {"failed": f"{type(error).__name__}: {error}"}
                fresh = file.with_suffix(".new")
                fresh.write_text(json.dumps(made), encoding="utf-8")
                fresh.rename(file)
        except Timeout:
            return False
        return True


def _matrix(family: str, directory: Path) -> Matrix:
    chosen = of_family(family)
    names = [one.name for one in chosen]
    with bench(directory, with_mcp=family == "mcp") as made:
        recording = made.run(names, "--plain-first", "--keep-journals")
        between, others, effects = made.requests(), _others(made), made.effect_count()
        secrets = _files_with_secrets(made.log)  # now, while all that was written is readable text
        replay = made.run(names)
        after = made.requests() - between
        return Matrix(
            plain=recording["plain"],
            recorded=recording["durable"],
            replayed=replay["durable"],
            requests={
                "plain": {name: between[f"plain-{name}"] for name in names},
                RECORDING: {name: between[f"durable-{name}"] for name in names},
                REPLAY: {name: after[f"durable-{name}"] for name in names},
            },
            others={
                RECORDING: {path: count for path, count in others.items() if path.startswith("durable-")},
                REPLAY: dict(_others(made) - others),
            },
            effects={RECORDING: effects, REPLAY: made.effect_count() - effects},
            secrets=secrets,
        )


def _others(made: Bench) -> Counter[str]:
    seen = [*made.desk.seen("plain"), *made.desk.seen("telemetry")]
    return Counter(f"{one.chapter} {one.path}" for one in seen)


def _files_with_secrets(log: Path) -> list[str]:
    files = [path for path in log.rglob("*") if path.is_file()]
    assert files, "nothing was recorded"
    return [path.name for path in files if any(secret.encode() in path.read_bytes() for secret in SECRETS)]


def _deaths(family: str, directory: Path) -> Deaths:
    """Each process finishes the scenario that killed the one before, and dies in the next: one more than scenarios."""
    chosen = [one for one in of_family(family) if can_be_killed(one)]
    names = [one.name for one in chosen]
    with bench(directory, with_mcp=family == "mcp") as made:
        for name in names:
            chapter = f"durable-{name}"
            made.desk.hold_from(2, chapter)
            process = made.start(names)
            arrived = made.desk.wait_open(2, chapter)
            kill(process)
            made.desk.release()
            assert arrived, f"{name}: the second request did not come\n{made.errors()}"
        outputs = made.run(names)["durable"]
        requests = {
            name: [[one.path, _body_of(one)] for one in made.desk.seen("model", f"durable-{name}")] for name in names
        }
        return Deaths(outputs, requests, made.effect_count())


def _body_of(one: Any) -> str:
    kind, _, boundary = one.headers.get("content-type", "").partition("boundary=")
    body: str = one.body.decode("latin-1")
    return body.replace(boundary, "BOUNDARY") if kind.startswith("multipart") else body


_MAKERS: dict[str, Callable[[str, Path], Any]] = {"matrix": _matrix, "deaths": _deaths}
