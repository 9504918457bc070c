"""Examines a log, the machine under it and the installation, and says what to do: ``doctor``.

Nothing is changed, except for probe files that are made and removed; no value is loaded and no user code runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jupyter_durable.diagnose import machine, recorded, storage
from jupyter_durable.diagnose.finding import Finding, Level
from jupyter_durable.errors import DurableError
from jupyter_durable.log import files
from jupyter_durable.log.local import LocalLog


def doctor(directory: Path | str) -> list[Finding]:
    """Examine a log directory and everything that it depends on.

    Args:
        directory: the log directory; it need not be there.

    Returns:
        The findings, those about the log first. None of them is an exception: what cannot be examined is a finding.
    """
    path = Path(directory).absolute()
    findings: list[Finding] = []
    parts = (_log, machine.disk, machine.packages, machine.extension)
    for part in parts:
        try:
            findings.extend(part(path))
        except DurableError as error:
            findings.append(Finding("problem", str(error)))
        except OSError as error:
            findings.append(Finding("problem", str(files.unusable("examine", path, error))))
    return findings


def _log(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield Finding(
            "note",
            f"There is no log at {path} yet; the first durable cell makes it.",
            "If runs were recorded before, see whether the disk is mounted, and what JUPYTER_DURABLE_LOG says.",
        )
        yield from recorded.key(None)
        return
    log = LocalLog(path, create=False)  # a newer format, or no log at all: its own sentence
    yield Finding("ok", f"The log {path} is there, and its format is known.")
    yield from storage.writable(path)
    yield from recorded.key(log)
    yield from storage.journals(log)
    yield from storage.blobs(log)
    yield from storage.database(log)
    yield from recorded.executions(log)
    yield from recorded.clock(log)


__all__ = ["Finding", "Level", "doctor"]
