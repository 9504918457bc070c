"""What a run is asked to be: the flags of a cell, and everything an execution must know before it begins."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from jupyter_durable.errors import UsageError

if TYPE_CHECKING:
    import asyncio  # `%load_ext` reads this file, and IPython itself imports it only when a cell awaits


class Flags(msgspec.Struct, frozen=True):
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

    def __post_init__(self) -> None:
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
        }
        return {name: value for name, value in named.items() if value}


class RunSpec(msgspec.Struct):
    """One execution to begin: which run, of what code, with which inputs."""

    name: str
    """Name of the run as people say it."""
    notebook: str = ""
    """Durable id of the notebook; empty where it is not known."""
    path: str = ""
    cell: str = ""
    source: str = ""
    """Source of the cell, for people."""
    code: str = ""
    """Digest of the cell's canonical AST."""
    namespace: Mapping[str, Any] | MutableMapping[str, Any] = msgspec.field(default_factory=dict)
    reads: frozenset[str] = frozenset()
    """Global names that the cell reads."""
    binds: frozenset[str] = frozenset()
    """Global names that the cell's own code binds or changes."""
    causes: tuple[str, ...] = ()
    """Nondeterministic calls in the cell's glue code."""
    flags: Flags = msgspec.field(default_factory=Flags)
    pass_id: str = ""
    """The pass that this belongs to, if nobody sits in front of it."""
    loop: asyncio.AbstractEventLoop | None = None
    capture_outputs: bool = False
    """Record what steps write to stdout, stderr and the display, and write it again on replay."""

    @property
    def run(self) -> str:
        """Id of the run: 16 hexadecimal digits, stable for notebook and name."""
        return run_id("" if self.flags.shared else self.notebook, self.name)


def run_id(notebook: str, name: str) -> str:
    """The id of a run.

    Args:
        notebook: durable id of the notebook; empty for a run that is shared or belongs to no notebook.
        name: name of the run.

    >>> run_id("", "report") == run_id("", "report") != run_id("a1b2", "report")
    True
    """
    return blake2b(f"{notebook}\0{name}".encode(), digest_size=8).hexdigest()
