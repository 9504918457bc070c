"""A real Jupyter server with token, XSRF and a base URL, a real kernel, and a real Chromium."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

from jupyter_durable.demo.endpoint import Endpoint

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "jupyter_durable" / "labextension"
AXE = ROOT / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
TOKEN = "a-token-of-the-tests"
BASE = "/user/ana/"

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

MODEL = "a-model"


def chromium() -> str | None:
    """The browser: the system's own, so that nothing is downloaded."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


def missing() -> str:
    """What is not here and would be needed, as a sentence; empty if everything is."""
    if not (BUILT / "package.json").exists():
        return "The panel is not built: python3 dev.py panel"
    for name in ("playwright", "jupyterlab", "notebook"):
        if importlib.util.find_spec(name) is None:
            return f"`{name}` is not installed: pip install 'jupyter_durable[browser]'"
    return "" if chromium() else "There is no Chromium: apt install chromium"


@pytest.fixture(scope="session")
def whole() -> None:
    """Everything that a browser test needs; where it must not be missing, as on the build machine, it fails."""
    reason = missing()
    if reason and os.environ.get("JUPYTER_DURABLE_BROWSER") == "required":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A model endpoint that counts what it bills."""
    with Endpoint() as serving:
        yield serving


@dataclass
class Jupyter:
    """A running server."""

    url: str
    """With the base URL, without the token."""
    root: Path
    log: Path
    command: list[str]
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        wait_until_up(self)

    def stop(self) -> None:
        """Stop it with its kernels."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def restart(self) -> None:
        """Stop it and start it again, at the same address."""
        self.stop()
        self.start()

    def ask(self, path: str) -> Any:
        """GET something of the REST API."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"token {TOKEN}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def run(self, notebook: str, name: str) -> str:
        """The id of a run."""
        runs = self.ask(f"jupyter-durable/v1/runs?notebook={notebook}")["runs"]
        return next(each["run"] for each in runs if each["here"] and each["name"] == name)

    def kernel_pid(self, notebook: str) -> int:
        """The process of the kernel that a notebook has: a direct child of the server with its connection file."""
        session = next(each for each in self.ask("api/sessions") if each["path"] == notebook)
        kernel = session["kernel"]["id"]
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes().decode(errors="replace")
                except OSError:
                    continue
                if kernel in command and "ipykernel" in command:
                    return int(entry.name)
        raise AssertionError(f"no process of kernel {kernel}")

    def kill_kernel(self, notebook: str) -> None:
        """Kill it as the out-of-memory killer does."""
        os.kill(self.kernel_pid(notebook), signal.SIGKILL)

    def notebook(self, name: str, *sources: str) -> str:
        """Write a notebook; returns its path for the server."""
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(source) for source in sources]
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(book, self.root / name)
        return name


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def theme() -> str:
    """The theme that the user has chosen; tests may parametrize it, and who wants pictures may name another."""
    return os.environ.get("JUPYTER_DURABLE_THEME", "JupyterLab Light")


@pytest.fixture
def enabled() -> bool:
    """Whether the server extension is enabled; tests may parametrize it."""
    return True


@pytest.fixture
def jupyter(
    whole: None, tmp_path: Path, key_file: Path, endpoint: Endpoint, theme: str, enabled: bool
) -> Iterator[Jupyter]:
    """A server of the test's own, with the extension installed, and settings that belong to nobody else."""
    root, home = tmp_path / "notebooks", tmp_path / "home"
    root.mkdir()
    (home / "share" / "labextensions").mkdir(parents=True)
    (home / "share" / "labextensions" / "jupyter-durable").symlink_to(BUILT)
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    # Their question about news lies over the lower right corner.
    (settings / "notification.jupyterlab-settings").write_text(
        json.dumps({"fetchNews": "false", "checkForUpdates": False})
    )
    (settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}))
    port = free_port()
    environment = {
        **os.environ,
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTER_PATH": str(home / "share"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "OPENAI_API_KEY": "sk-of-the-tests",
        "OPENAI_BASE_URL": endpoint.url,
        "OPENAI_MODEL": MODEL,
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.base_url={BASE}",
        f"--ServerApp.root_dir={root}",
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.jpserver_extensions={{'jupyter_durable': {enabled}, 'notebook': True}}",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]
    server = Jupyter(f"http://127.0.0.1:{port}{BASE}", root, tmp_path / "server.log", command, environment)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def wait_until_up(server: Jupyter) -> None:
    """Wait until the server answers."""
    end = time.monotonic() + 60
    while True:
        try:
            server.ask("api/status")
            return
        except OSError:
            if (server.process and server.process.poll() is not None) or time.monotonic() > end:
                raise AssertionError(f"The server does not answer:\n{server.log.read_text()[-4000:]}") from None
            time.sleep(0.1)  # there is no event to wait for: nobody tells when a port begins to answer


@pytest.fixture
def browser(whole: None) -> Iterator[Any]:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where pictures of the faces go, to be looked at: a folder of the test's own, unless somebody names one."""
    path = Path(os.environ.get("JUPYTER_DURABLE_PICTURES") or tmp_path / "pictures")
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture
def page(browser: Any, request: pytest.FixtureRequest, pictures: Path) -> Iterator[Any]:
    """A page that leaves a picture behind when the test fails, and fails it for errors of ours in the console."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    opened = context.new_page()
    opened.set_default_timeout(30_000)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    opened.screenshot(path=str(pictures / f"{request.node.name}.png"))
    context.close()
    ours = [error for error in errors if "durable" in error.lower()]
    assert not ours
