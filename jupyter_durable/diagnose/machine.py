"""Examines what a log depends on: the disk and file system under it, the installed packages, the IPython extension."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from jupyter_durable.diagnose.finding import Finding

_LOW, _SCARCE = 1 << 30, 100 << 20
"""Bytes free on the disk that are worth a word, and that are a problem."""

_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|ceph|lustre|beegfs|gpfs|glusterfs|davfs\d?|ncpfs|"
    r"fuse\.(sshfs|s3fs|gcsfuse|rclone|ceph|glusterfs|juicefs|davfs\d?|goofys|mount-s3|blobfuse2?)"
)

_NEEDED = ("duckdb", "ipython", "ipykernel", "msgspec", "cloudpickle", "zstandard", "filelock", "platformdirs")
"""What the package needs, for a checkout that is not installed and so has no metadata."""

_LOAD = """
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
config = Config()
config.HistoryManager.enabled = False
print(InteractiveShell(config=config).extension_manager.load_extension("jupyter_durable") or "loaded")
"""


def disk(path: Path) -> Iterator[Finding]:
    """Free space, and what kind of file system it is."""
    place = next(folder for folder in (path, *path.parents) if folder.exists())
    usage = shutil.disk_usage(place)
    free = f"{usage.free / (1 << 30):.1f} GiB" if usage.free >= _LOW else f"{usage.free >> 20} MiB"
    if usage.free < _LOW:
        advice = "Free some; a run whose log cannot be written stops."
        yield Finding("problem" if usage.free < _SCARCE else "note", f"Only {free} are free on the disk.", advice)
    elif hasattr(os, "statvfs") and os.statvfs(place).f_files > 0 and os.statvfs(place).f_favail < 100:
        yield Finding("problem", "The disk has no room for new files (inodes).", "Remove files that are not needed.")
    else:
        yield Finding("ok", f"{free} are free on the disk.")
    kind = file_system(place)
    if _NETWORK.fullmatch(kind):
        yield Finding(
            "note",
            f"The log lies on a network file system ({kind}): whether a lock holds between two machines, and a flush "
            "reaches a disk, is up to its server.",
            "Run a notebook on one machine at a time, or keep the log on a local disk (JUPYTER_DURABLE_LOG).",
        )
    elif kind in {"tmpfs", "ramfs"}:
        advice = "Keep the log on a disk."
        yield Finding("note", f"The log lies in memory ({kind}): it is gone when the machine restarts.", advice)
    elif kind == "overlay":
        yield Finding(
            "note",
            "The log lies in the container's own layer (overlay): it goes with the container.",
            "Mount a volume for it, and name it in JUPYTER_DURABLE_LOG.",
        )


def file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Type of the file system that a path lies on, as Linux calls it; empty where that is not known."""
    real = Path(os.path.realpath(path))
    best, found = -1, ""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        if len(fields := before.split(" ")) < 5 or not after:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4]))
        if real.is_relative_to(point) and len(point.parts) >= best:  # the last of equal ones lies on top
            best, found = len(point.parts), after.split(" ")[0]
    return found


def packages(path: Path) -> Iterator[Finding]:
    """Versions of this package and of those that it needs."""
    del path
    wanted = dict.fromkeys(_NEEDED, "")
    try:
        own = metadata.version("jupyter_durable")
        for requirement in metadata.requires("jupyter_durable") or ():
            match = re.fullmatch(r"([\w.-]+)\s*>=\s*([\d.]+)", requirement)  # those of extras say more, and are not it
            if match is not None:
                wanted[match[1].lower()] = match[2]
    except metadata.PackageNotFoundError:
        own = "not installed (a checkout)"
    found = []
    for name, least in wanted.items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding("problem", f"The package {name} is not installed.", f"pip install {name!r}")
            continue
        found.append(f"{name} {version}")
        if _numbers(version) < _numbers(least):
            told = f"{name} {version} is installed, and {least} or newer is needed."
            yield Finding("problem", told, f"pip install -U '{name}>={least}'")
    yield Finding("ok", f"jupyter_durable {own}, Python {sys.version.split()[0]}, {', '.join(found)}.")


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, to compare.

    >>> _numbers("2.0.1rc1") < _numbers("2.1"), _numbers("10") > _numbers("9.5"), _numbers("")
    (True, True, ())
    """
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def extension(path: Path) -> Iterator[Finding]:
    """Whether ``%load_ext jupyter_durable`` works: known in a kernel that has done it, else tried in a new process."""
    del path
    if _loaded_here():
        yield Finding("ok", "The extension is loaded in this kernel.")
        return
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory(prefix="jupyter-durable-doctor-", ignore_cleanup_errors=True) as own:
        environment = {**os.environ, "IPYTHONDIR": own, "PYTHONPATH": str(root)}
        try:
            # -P: a folder that came by mail may hold a module of any name, and nothing of it may run here.
            answer = subprocess.run(
                [sys.executable, "-P", "-c", _LOAD],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=60,
                check=False,
                env=environment,
                cwd=own,
            )
        except (OSError, subprocess.SubprocessError) as error:
            yield Finding("note", f"The IPython extension could not be tried: {error}.")
            return
    lines = (answer.stdout.strip() or answer.stderr.strip()).splitlines() or ["nothing was said"]
    if answer.returncode == 0 and lines[-1] == "loaded":
        yield Finding("ok", "IPython can load the extension (%load_ext jupyter_durable).")
        return
    yield Finding(
        "problem",
        f"IPython cannot load the extension: {lines[-1]}.",
        "Run `%load_ext jupyter_durable` in a notebook to see where it fails.",
    )


def _loaded_here() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "jupyter_durable" in shell.extension_manager.loaded
