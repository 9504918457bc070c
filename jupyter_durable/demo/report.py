"""What the main job found: the numbers, the checks on them, and both as text and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Bill:
    """What was asked of the model and what it cost."""

    requests: int = 0
    tokens: int = 0

    def __sub__(self, other: Bill) -> Bill:
        return Bill(self.requests - other.requests, self.tokens - other.tokens)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be so."""

    fact: str
    """The fact, as a sentence."""
    expected: object
    found: object

    @property
    def ok(self) -> bool:
        """Whether it is so."""
        return self.expected == self.found


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of the main job."""

    notebook: str
    model: str
    """The base URL of the endpoint that was asked."""
    counted_by: str
    """``endpoint``: by the bills of our own endpoint. ``log``: by the log alone, because the provider shows no bill."""
    finished: int
    """Model calls that the first kernel finished before it was killed."""
    replayed: int
    """Those that the second kernel took from the log."""
    executed: int
    """Those that the second kernel made."""
    total: Bill
    """Everything that both kernels asked for."""
    in_flight: Bill
    """The part of it that was in flight when the kernel was killed; without an answer, it has to be asked again."""
    uninterrupted: Bill
    """What the same notebook costs when nothing happens to it."""
    saved: Bill
    """What the second kernel would have paid again without the log."""
    seconds: float
    checks: tuple[Check, ...] = field(default=())
    kept: str = ""
    """Folder in which the notebook and its log were left; empty if they were removed."""

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return all(check.ok for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """The report as JSON-like data."""
        return {"ok": self.ok, **asdict(self), "checks": [{"ok": check.ok, **asdict(check)} for check in self.checks]}

    def as_text(self) -> str:
        """The report for people."""
        calls = self.replayed + self.executed
        share = 100 * self.saved.tokens / self.uninterrupted.tokens if self.uninterrupted.tokens else 0.0
        rows = [
            ("", "requests", "tokens"),
            ("billed to both kernels", self.total.requests, self.total.tokens),
            ("  of it in flight at the kill", self.in_flight.requests, self.in_flight.tokens),
            ("one uninterrupted run", self.uninterrupted.requests, self.uninterrupted.tokens),
            ("saved by the log", self.saved.requests, self.saved.tokens),
        ]
        lines = [
            "",
            f"{self.notebook}, with the model at {self.model}",
            "",
            f"  first kernel     {self.finished} of {calls} calls finished, SIGKILL in the middle of the next",
            f"  second kernel    {self.replayed} calls replayed from the log, {self.executed} made",
            "",
            *(f"  {label:<32}{requests!s:>10}{tokens!s:>10}" for label, requests, tokens in rows),
            "",
        ]
        for check in self.checks:
            found = "" if check.ok else f" (expected {check.expected}, found {check.found})"
            lines.append(f"  {'ok   ' if check.ok else 'WRONG'}  {check.fact}{found}")
        if self.counted_by == "log":
            lines += [
                "",
                "  Counted by the log: this provider shows no bill. Tokens of a call in flight are not known.",
            ]
        if self.kept:
            lines += ["", f"  The notebook and its log are in {self.kept}"]
        verdict = "Nothing was paid twice" if self.ok else "THE NUMBERS ARE NOT RIGHT"
        saving = f"{self.saved.tokens} tokens ({share:.0f} % of a run) saved"
        return "\n".join([*lines, "", f"  {verdict}: {saving}, in {self.seconds:.1f} s.", ""])
