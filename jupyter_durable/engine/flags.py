"""The flags of a cell. A file of its own: it is all that loading the extension needs of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jupyter_durable.errors import UsageError


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of ``%%durable`` and of ``durable.run``."""

    fresh: bool = False
    """Start a new branch with nothing reused."""
    from_step: str = ""
    """Keep what is before this step (its name, ``name#n`` or number) and execute the rest again, on a new branch."""
    strict: bool = False
    """Make any difference an error instead of a branch."""
    replay_only: bool = False
    """Execute nothing: raise where history has no result."""
    reuse: Literal["", "all", "pure", "none"] = ""
    """What to do with finished steps after a difference; empty: ask."""
    shared: bool = False
    """Join the run of this name with those of other notebooks of the same log."""
    off: bool = False
    """Run the cell plainly, without a log."""
    branch: str = ""
    """Name of the branch to take up; empty: the one that fits."""
    durability: Literal["power", "process"] = "power"
    budget: str = ""
    """The most that the branch may spend: ``2usd``, ``50k tokens``, ``40 steps``, or several with commas."""
    grace: str = ""
    """How long a run in which everything waits stays in its kernel before it parks, such as ``10m`` or ``0s``."""
    sample: int = 0
    """How many independent samples of the cell there are to be; 0: the cell simply runs."""
    plan: bool = False
    """Say what the cell would replay and buy, and run nothing of it; never recorded."""

    def __post_init__(self) -> None:
        if self.budget:
            from jupyter_durable.engine.budget import parse_budget

            parse_budget(self.budget)
        if self.grace:
            from jupyter_durable.retry import parse_duration

            parse_duration(self.grace, "--grace")
        if self.fresh and self.from_step:
            raise UsageError("`--fresh` and `--from` exclude each other: one reuses nothing, the other a beginning.")
        if self.fresh and self.replay_only:
            raise UsageError("`--fresh` and `--replay-only` exclude each other: a fresh branch has nothing to replay.")

    def as_text(self) -> dict[str, str]:
        """The flags that are set, as they are written into the log."""
        named = {
            "fresh": "1" if self.fresh else "",
            "from": self.from_step,
            "strict": "1" if self.strict else "",
            "replay-only": "1" if self.replay_only else "",
            "reuse": self.reuse,
            "shared": "1" if self.shared else "",
            "branch": self.branch,
            "budget": self.budget,
            "sample": str(self.sample) if self.sample else "",
        }
        return {name: value for name, value in named.items() if value}
