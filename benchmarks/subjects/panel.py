"""The panel of JupyterLab with a long run: a real server, a real kernel, and the Chromium of the system.

The run is made by the kernel of the page, then the page is loaded anew and the panel opened in it. What is measured is
measured in the page, by its own clock; the memory is the page's JavaScript heap after a collection, with
and without the panel's history, and the resident memory of the server.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, Numbers

BUILT = ROOT / "jupyter_durable" / "labextension"
TOKEN = "a-token-of-the-benchmark"
SETUP = "%load_ext jupyter_durable\nfrom jupyter_durable import step\n\n@step\ndef note(n):\n    return n\n"
MANY = "%%durable many --durability process\nfor i in range({n}):\n    note(i)\n"

# Scrolls through the whole tree, a fiftieth at each frame, down and up, and tells what each frame took (ms).
SCROLL = """async () => {
  const tree = document.querySelector('#jupyter-durable-panel [role=tree]');
  const took = [];
  let last = await new Promise(requestAnimationFrame);
  for (let i = 1; i <= 200; i++) {
    const part = i <= 100 ? i / 100 : 2 - i / 100;
    tree.scrollTop = (tree.scrollHeight - tree.clientHeight) * part;
    const now = await new Promise(requestAnimationFrame);
    took.push(now - last);
    last = now;
  }
  return took.sort((a, b) => a - b);
}"""

# Opens the notebook beside the open panel; notes when there was a first row, and when the tree was as high as all steps
# are (ms, by the page's clock).
MARKS = """n => {
  window.durableMarks = {};
  const look = () => {
    const panel = document.querySelector('#jupyter-durable-panel');
    const marks = window.durableMarks;
    if (panel && panel.querySelectorAll('[role=treeitem]').length > 1) marks.first ??= performance.now();
    const tree = panel && panel.querySelector('[role=tree]');
    if (tree && tree.scrollHeight >= n * 24) marks.whole ??= performance.now();
    if (!marks.whole) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  window.jupyterapp.commands.execute('docmanager:open', { path: 'many.ipynb' });
}"""


# When the panel asked its first question about the notebook (ms).
ASKED = """() => Math.min(...performance.getEntriesByType('resource')
  .filter(each => each.name.includes('jupyter-durable/v1') && each.name.includes('many.ipynb'))
  .map(each => each.startTime))"""


@contextmanager
def serving(directory: Path) -> Iterator[tuple[str, Path, int]]:
    """A Jupyter server with the panel: its address, its root folder, and its process."""
    root, home = directory / "notebooks", directory / "home"
    root.mkdir()
    (home / "share" / "labextensions").mkdir(parents=True)
    (home / "share" / "labextensions" / "jupyter-durable").symlink_to(BUILT)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folders = {"CONFIG_DIR": "config", "DATA_DIR": "data", "RUNTIME_DIR": "runtime", "PATH": "share"}
    environment = {
        **os.environ,
        **{f"JUPYTER_{name}": str(home / folder) for name, folder in folders.items()},
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={root}",
        f"--IdentityProvider.token={TOKEN}", "--ServerApp.jpserver_extensions={'jupyter_durable': True}",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}/"
    with (directory / "server.log").open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            ends = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(f"{url}api/status?token={TOKEN}", timeout=5).close()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > ends:
                        raise
                    time.sleep(0.1)
            yield url, root, process.pid
        finally:
            process.terminate()
            process.wait(30)


def resident(pid: int) -> float:
    """MB that a process occupies."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) / 1024


def heap(page: Any) -> float:
    """MB of JavaScript objects that are still in use."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    used: float = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    session.detach()
    return used


def wait_idle(page: Any) -> None:
    """Wait until the notebook is there and its kernel answers."""
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
    page.wait_for_function(
        "() => { const kernel = window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;"
        " return kernel?.connectionStatus === 'connected' && ['idle', 'starting'].includes(kernel.status); }"
    )


def execute(page: Any, name: str) -> None:
    """Execute a command of the lab."""
    page.evaluate("name => { window.jupyterapp.commands.execute(name); }", name)


def browse(params: dict[str, Any]) -> Numbers:
    """Open, scroll and filter a run of ``n`` steps."""
    import nbformat
    from playwright.sync_api import sync_playwright

    n = params["n"]
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with serving(Path(params["directory"])) as (url, root, server), sync_playwright() as playwright:
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(SETUP), nbformat.v4.new_code_cell(MANY.format(n=n))]
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(book, root / "many.ipynb")
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(f"{url}lab/tree/many.ipynb?token={TOKEN}&reset")
        wait_idle(page)
        without = heap(page)
        execute(page, "notebook:run-all-cells")
        asking = urllib.request.Request(
            f"{url}jupyter-durable/v1/runs?notebook=many.ipynb", headers={"Authorization": f"token {TOKEN}"}
        )
        while True:
            with urllib.request.urlopen(asking) as answer:
                if any(each["status"] == "completed" for each in json.load(answer)["runs"]):
                    break
            time.sleep(0.5)
        page.goto(f"{url}lab?reset")
        page.wait_for_selector(".jp-Launcher")
        execute(page, "jupyter-durable:open")
        page.get_by_text("Open a notebook to see").wait_for()
        page.evaluate(MARKS, n)
        page.wait_for_function("() => window.durableMarks.whole")
        marks = page.evaluate("() => window.durableMarks")
        asked = page.evaluate(ASKED)
        frames = page.evaluate(SCROLL)
        rows = page.locator("#jupyter-durable-panel [role=treeitem]").count()
        began = time.perf_counter()
        page.get_by_role("searchbox", name="Filter steps").fill("note")
        page.get_by_text(f"{n} steps match").wait_for()
        searched = time.perf_counter() - began
        used = heap(page)
        browser.close()
        return {
            "first": (marks["first"] - asked) / 1e3,
            "whole": (marks["whole"] - asked) / 1e3,
            "frame": frames[len(frames) // 2],
            "frame95": frames[int(len(frames) * 0.95)],
            "worst": frames[-1],
            "filter": searched,
            "rows": rows,
            "heap": used - without,
            "server": resident(server),
        }
