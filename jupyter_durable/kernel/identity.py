"""Which notebook and which run a cell belongs to. The decisions are pure functions; `Notebook` asks the world.

A run is known by its notebook and its name. The name is the user's, else that of the cell's id, else that of the code.
A notebook is known by its path; how it is found again under another one is in `notebooks`.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_durable import clock, notebooks
from jupyter_durable.errors import UsageError
from jupyter_durable.event_data import ExecutionHeader
from jupyter_durable.kernel import header as headers_of_cells

SESSION = "JPY_SESSION_NAME"
logger = logging.getLogger("jupyter_durable")


@dataclass(frozen=True, slots=True)
class CellFacts:
    """What is known of a cell when it is about to run."""

    id: str
    """Stable id in the notebook file; empty where the front end sends none."""
    handle: str
    """An id that holds only as long as the notebook is open (VS Code)."""
    name: str
    """Name that the cell gives its run; empty if it gives none."""
    code: str
    """Digest of the code."""


@dataclass(slots=True)
class NotebookFacts:
    """What is known of the notebook around it."""

    sources: Mapping[str, str] | None = None
    """Cell id -> source, as the file was saved last; ``None`` if there is no file to read."""
    seen: dict[str, str] = field(default_factory=dict)
    """Cell id (or handle) -> name of the run that it was in this kernel."""
    deleted: set[str] = field(default_factory=set)
    """Cells that the front end has reported as deleted."""


# The run ------------------------------------------------------------------------------------------------------------


def run_name(cell: CellFacts, notebook: NotebookFacts, known: Sequence[ExecutionHeader]) -> str:
    """The name of the run of a cell that gives it none.

    Args:
        cell: the cell.
        notebook: what is known of its notebook.
        known: first lines of the notebook's executions, oldest first.
    """
    if cell.id:
        own = f"cell-{cell.id[:8]}"
        if any(header.name == own for header in known):
            return own
        return _same_code_elsewhere(cell, notebook, known) or own
    if cell.handle:
        if cell.handle in notebook.seen:
            return notebook.seen[cell.handle]
        taken = set(notebook.seen.values())
        for header in known:
            if header.code == cell.code and _is_automatic(header.name) and header.name not in taken:
                return header.name
        return numbered(f"code-{cell.code[:8]}", taken)
    return f"code-{cell.code[:8]}"


def _same_code_elsewhere(cell: CellFacts, notebook: NotebookFacts, known: Sequence[ExecutionHeader]) -> str:
    """The run of a cell with the same code whose id is gone: it was split, or its front end gave it a new id."""
    for header in reversed(known):
        same = header.code == cell.code and bool(header.cell) and header.cell != cell.id
        if same and _is_automatic(header.name) and _is_gone(header.cell, cell, notebook):
            return header.name
    return ""


def _is_automatic(name: str) -> bool:
    return name.startswith(("cell-", "code-"))


def _is_gone(other: str, cell: CellFacts, notebook: NotebookFacts) -> bool:
    """Whether another cell has certainly left the notebook.

    A file that was saved before this cell was made says nothing: the other one may be its original.
    """
    if other in notebook.deleted:
        return True
    if other in notebook.seen or notebook.sources is None:
        return False
    if not notebook.sources:  # an old format without ids: front ends give new ones each time
        return True
    return cell.id in notebook.sources and other not in notebook.sources


def numbered(name: str, taken: Iterable[str]) -> str:
    """The name with a number behind it, if others have it.

    >>> numbered("code-x", ["code-x", "code-x-2"]), numbered("code-x", [])
    ('code-x-3', 'code-x')
    """
    used, number, free = set(taken), 1, name
    while free in used:
        number += 1
        free = f"{name}-{number}"
    return free


def other_owner(cell: CellFacts, notebook: NotebookFacts, known: Sequence[ExecutionHeader]) -> str:
    """Another cell of the notebook that gives its run the same name; empty if there is none.

    Args:
        cell: a cell that names its run.
        notebook: what is known of its notebook.
        known: first lines of the executions of that run.
    """
    for other, name in notebook.seen.items():
        if name == cell.name and other not in (cell.id, cell.handle) and other not in notebook.deleted:
            saved = None if notebook.sources is None else notebook.sources.get(other)
            if saved is None and notebook.sources and cell.id in notebook.sources:
                continue  # saved since, without it
            return other
    for other in {header.cell for header in known} - {"", cell.id} - notebook.deleted:
        if notebook.sources is not None and _names(notebook.sources.get(other, "")) == cell.name:
            return other
    return ""


def refuse_two_owners(cell: CellFacts, other: str) -> None:
    """Stop a run whose name two cells give.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        f"Run `{cell.name}` belongs to another cell of this notebook (`{other[:8]}`), so this cell was not run: it "
        f"would continue the other's history. Give it a name of its own. If the other cell is gone, save the notebook "
        f"first.",
        run=cell.name,
        cell=other,
    )


def _names(source: str) -> str:
    """The name that the header of a cell gives; empty if none."""
    found = headers_of_cells.find(source.splitlines())
    if found is None:
        return ""
    try:
        return headers_of_cells.parse(found[1]).name
    except UsageError:
        return ""


# The world ----------------------------------------------------------------------------------------------------------


class Notebook:
    """The notebook of this kernel, as far as it can be known."""

    def __init__(self, shell: Any, environment: Mapping[str, str] = os.environ) -> None:
        self._shell = shell
        self._session = _own_session(environment)
        self._notes = _notes_of(shell) if self._session else None
        self._told: tuple[tuple[int, int], list[tuple[str, str]]] = ((0, 0), [])
        self._ids: dict[str, str] = {}
        self._read: tuple[str, float, dict[str, str]] | None = None
        self._seen: dict[str, str] = {}
        self._deleted: set[str] = set()

    @property
    def path(self) -> str:
        """Absolute path of the notebook; empty if the kernel is not told."""
        given = self._shell.user_ns.get("__vsc_ipynb_file__")
        if isinstance(given, str) and given:
            return given
        path = self._session
        for before, after in self._renamed():
            if path == before:
                path = after
        return path

    def _renamed(self) -> list[tuple[str, str]]:
        """What the server says of the notebook's path since this kernel was started; read again when it has changed."""
        if self._notes is None:
            return []
        try:
            now = self._notes.stat()
            if self._told[0] != (now.st_mtime_ns, now.st_size):
                lines = self._notes.read_bytes().splitlines()
                told = [(each["before"], each["after"]) for each in map(json.loads, lines)]
                self._told = ((now.st_mtime_ns, now.st_size), told)
        except OSError:
            return []  # nobody has renamed it
        except (ValueError, TypeError, KeyError):
            logger.warning("%s cannot be read, so this kernel may use an old name of its notebook.", self._notes)
            return []
        return self._told[1]

    def facts(self) -> NotebookFacts:
        """What is known now. The file is read again only when it has changed."""
        return NotebookFacts(self._sources(), self._seen, self._deleted)

    def note_deleted(self, ids: Iterable[str]) -> None:
        """The front end says that these cells are gone."""
        self._deleted.update(ids)

    def note_run(self, cell: CellFacts, name: str) -> None:
        """A cell runs in this kernel, as this run."""
        key = cell.id or cell.handle
        if key:
            self._seen[key] = name
            self._deleted.discard(key)

    def id(
        self,
        cell: CellFacts,
        known: Callable[[], Sequence[notebooks.Known]],
        renames: Callable[[], Sequence[notebooks.Renamed]],
        folder: Path,
    ) -> tuple[str, str]:
        """The durable id of the notebook, and the path that it had before it was renamed.

        Args:
            cell: the cell that is about to run.
            known: gives all executions in the log.
            renames: gives what the log remembers as renamed.
            folder: the folder that the log lies in.
        """
        path = self.path
        if not path:
            return "", ""
        if path in self._ids:
            return self._ids[path], ""

        def exists(other: str) -> bool:
            beside = folder / Path(other).name  # the folder as a whole may have moved, with its log
            return Path(other).exists() or (str(beside) != path and beside.exists())

        def same_run(old: ExecutionHeader) -> bool:
            return bool(cell.name) and old.name == cell.name and old.code == cell.code

        cells = {*(self._sources() or ()), cell.id}
        found, before = notebooks.find_notebook(path, cells, known(), renames(), exists, same_run)
        self._ids[path] = found or clock.token_bytes(6).hex()
        return self._ids[path], before

    def _sources(self) -> dict[str, str] | None:
        path = self.path
        try:
            changed = Path(path).stat().st_mtime
            if self._read is None or self._read[:2] != (path, changed):
                self._read = (path, changed, _cells_of(Path(path)))
        except (OSError, ValueError, TypeError, AttributeError):
            return None  # not saved yet, or not a notebook file
        return self._read[2]


def _cells_of(path: Path) -> dict[str, str]:
    notebook = json.loads(path.read_bytes())
    return {
        cell["id"]: source if isinstance(source := cell.get("source", ""), str) else "".join(source)
        for cell in notebook.get("cells", ())
        if "id" in cell
    }


def _notes_of(shell: Any) -> Path | None:
    """Where Jupyter Server tells this kernel about a new path of its notebook; see `server.renaming`."""
    connection = getattr(getattr(getattr(shell, "kernel", None), "parent", None), "abs_connection_file", "")
    if not connection:
        return None
    return Path(connection).parent / "jupyter_durable" / f"{Path(connection).stem}.jsonl"


def _own_session(environment: Mapping[str, str]) -> str:
    """The notebook that the server names, unless the name was inherited from a kernel that started this one."""
    name = environment.get(SESSION, "")
    if not Path(name).is_absolute():
        return ""
    if sys.platform == "linux":
        try:
            parent = Path(f"/proc/{os.getppid()}/environ").read_bytes()
        except OSError:
            return name
        if f"{SESSION}={name}".encode() in parent.split(b"\0"):
            return ""
    return name


def cell_ids(given: str | None) -> tuple[str, str]:
    """Stable id and handle of a cell from what a front end sends.

    VS Code sends an address whose last part counts cells anew each time the notebook is opened.

    >>> cell_ids("30224dcf"), cell_ids("vscode-notebook-cell:/nb.ipynb#W0sZmlsZQ=="), cell_ids(None)
    (('30224dcf', ''), ('', 'vscode-notebook-cell:/nb.ipynb#W0sZmlsZQ=='), ('', ''))
    """
    if not given:
        return "", ""
    return ("", given) if ":" in given else (given, "")
