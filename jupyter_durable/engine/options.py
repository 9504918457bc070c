"""What a run is asked to be: everything an execution must know before it begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from jupyter_durable.engine.flags import Flags
from jupyter_durable.retry import parse_duration

if TYPE_CHECKING:
    import asyncio  # `%load_ext` reads this file, and IPython itself imports it only when a cell awaits


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
    file: str = ""
    """What the cell's compiled code calls its file; empty outside of a cell."""
    awaits: bool = False
    """The cell's own code awaits somewhere. IPython compiles each statement alone, so none of them shows it."""
    namespace: Mapping[str, Any] | MutableMapping[str, Any] = msgspec.field(default_factory=dict)
    reads: frozenset[str] = frozenset()
    """Global names that the cell reads."""
    binds: frozenset[str] = frozenset()
    """Global names that the cell's own code binds or changes."""
    causes: tuple[str, ...] = ()
    """Nondeterministic calls in the cell's glue code."""
    flags: Flags = msgspec.field(default_factory=Flags)
    sample_number: int = 1
    """Which of the samples this is, if the cell is sampled."""
    sample_first: str = ""
    """Id of the branch that is the first sample of the set; empty for that one itself."""
    after: str = ""
    """Id of the branch that has just ended, to go on anew with what it has handed on; empty: none has."""
    pass_id: str = ""
    """The pass that this belongs to, if nobody sits in front of it."""
    loop: asyncio.AbstractEventLoop | None = None
    notebook_budget: str = ""
    """The most that all runs of the notebook together may spend."""
    spent_elsewhere: Callable[[str], tuple[float, int]] | None = None
    """Gives the dollars and tokens that the notebook's other branches than this one have spent."""
    patience: float = 60.0
    """Seconds for which a run that waits for somebody stays in its kernel, unless a flag says it."""
    capture_outputs: bool = False
    """Record what steps write to stdout, stderr and the display, and write it again on replay."""

    @property
    def grace(self) -> float:
        """Seconds after which a run parks in which everything waits."""
        return parse_duration(self.flags.grace, "grace") if self.flags.grace else self.patience

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
