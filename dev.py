#!/usr/bin/env python3
"""Everything a developer does here, as eight words: ``python3 dev.py WORD [ARGUMENTS]``.

    demo    run the main job: kill a kernel in the middle of a notebook, resume it, and compare the bills
    fmt     format the code and repair what ruff can repair
    check   formatting, lint, types, and the architecture and public-name tests
    test    the whole test suite, on two processes
    docs    doctests, notebooks, and every command and example of README and docs
    panel   build the panel of JupyterLab and Notebook 7, or run a script of labextension/package.json
    bench   the benchmarks, side by side with peers
    all     everything that must pass before a change is merged: check, the panel, and the whole suite

Arguments go to the program behind the word: ``python3 dev.py test -k torn``, ``python3 dev.py demo --json``.
The first use makes a virtual environment in ``.venv`` beside this file and installs the package into it (editable,
with what the word needs); later uses take it as it is until ``pyproject.toml`` changes. Needs nothing but Python.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "dev-stamp.json"

# Which extras of pyproject.toml a word needs; the demo on a fresh machine should not wait for pandas.
EXTRAS = {
    "demo": {"demo"},
    "fmt": {"demo", "test"},
    "check": {"demo", "test", "sdks"},
    "test": {"demo", "test", "sdks", "browser", "hub"},
    "docs": {"demo", "test", "sdks"},
    "panel": {"panel"},
    "bench": {"demo", "test", "bench", "browser"},
    "all": {"demo", "test", "sdks", "browser", "hub", "panel"},
}

# Where pytest keeps the names of the tests that failed.
FAILED_TESTS = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
SUITE = {"tests", "browser"}
UNSTEADY = 3
"""More failures than this are no bad minute."""

# The guards of the house run alone in `check`, and with everything else in `test` and `all`.
GUARDS = ["tests/test_architecture.py", "tests/test_public_api.py"]
DOCUMENTS = ["jupyter_durable", "tests/test_docs.py", "tests/test_notebooks.py"]


class Failed(Exception):
    """A part could not be run at all; the text says what to do."""


def say(text: str) -> None:
    """Print a line of our own, in order with what the parts print; beside it, if that is meant for a program."""
    print(text, file=sys.stderr if "--json" in sys.argv else sys.stdout, flush=True)


def run(name: str, command: list[str]) -> int:
    """Run one part with its output shown as it comes, and print a closing line with its seconds.

    Returns:
        The exit code of the part.
    """
    shown = " ".join(Path(word).stem if word.startswith(str(BIN)) else word for word in command)
    say(f"\n== {name}: {shown}")
    began = time.monotonic()
    # The environment's commands come first on the path: `jupyter durable` is found by its name, as users find it.
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}", "VIRTUAL_ENV": str(VENV)}
    environment.pop("PYTHONHOME", None)
    code = wait_for(subprocess.Popen(command, cwd=ROOT, env=environment))
    end = "ok" if code == 0 else f"FAILED (exit code {code})"
    say(f"== {name}: {end} in {time.monotonic() - began:.1f} s")
    # A part that died of a signal has a negative code, which a shell cannot return.
    return code if code >= 0 else 128 - code


def wait_for(part: subprocess.Popen[bytes]) -> int:
    """Wait for a part to end, and let it end by itself when we are told to stop: it has things to tidy up.

    Returns:
        Its exit code.

    Raises:
        KeyboardInterrupt: we were told to stop, by Ctrl-C or by SIGTERM; the part has ended.
    """

    def on_term(_number: int, _frame: object) -> None:
        part.terminate()  # Ctrl-C reaches the part from the terminal, SIGTERM only us
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, on_term)
    try:
        return part.wait()
    except KeyboardInterrupt:
        try:
            part.wait(timeout=30)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            part.kill()
            part.wait()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def again(name: str, command: list[str]) -> int:
    """Run the few tests of a part that failed once more, one after the other, and tell which are unsteady.

    A suite with hundreds of real kernels, servers and kills on two cores has its bad minutes; a test that fails twice,
    the second time alone, is wrong. One that passes then is named in the closing lines: it is a fault to look for.

    Returns:
        The exit code: 0 if they pass now.
    """
    failed = failed_tests()
    if not 0 < len(failed) <= UNSTEADY:
        return 1
    alone = [word for word in command if word not in {"-n", "2"}]
    code = run(f"{name}, what failed once more", [*alone, "--last-failed", "--last-failed-no-failures=none"])
    if code == 0:
        say(f"\n== {name}: UNSTEADY, failed and then passed alone: {', '.join(failed)}")
    return code


def failed_tests() -> list[str]:
    """The names of the tests that failed in the last run."""
    try:
        return sorted(json.loads(FAILED_TESTS.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return []


def stamp_of(version: str, extras: set[str]) -> dict[str, object]:
    """What an environment was made from: if any of it changes, the package is installed again."""
    return {
        "pyproject": hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest(),
        "root": str(ROOT),
        "python": version,
        "extras": sorted(extras),
    }


def read_stamp() -> dict[str, object]:
    """The stamp of the last whole installation; empty if there is none."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def version_inside() -> str | None:
    """The version of the environment's Python, such as ``3.12``.

    Returns:
        ``None`` if there is no environment, or none that serves: too old, or copied or moved from another folder.
    """
    question = "import sys; print(sys.prefix); print(*sys.version_info[:2], sep='.')"
    try:
        answer = subprocess.run([str(PYTHON), "-c", question], capture_output=True, text=True, check=False)
    except OSError:
        return None
    lines = answer.stdout.split("\n")
    if answer.returncode or lines[0] != str(VENV):
        return None
    return lines[1] if tuple(int(part) for part in lines[1].split(".")) >= OLDEST else None


def prepare(word: str) -> None:
    """Make or refresh the environment so that it serves ``word``.

    Raises:
        Failed: it cannot be made or installed.
    """
    began = time.monotonic()
    version = version_inside()
    stamp = read_stamp() if version else {}
    had = stamp.get("extras")
    # An environment keeps what other words have put into it.
    extras = EXTRAS[word] | (set(had) if isinstance(had, list) else set())
    if version and stamp == stamp_of(version, extras):
        return
    if version is None:
        say(f"== environment: making {VENV.name} with Python {sys.version.split()[0]}")
        make = [sys.executable, "-m", "venv", "--clear", str(VENV)]
        made = subprocess.run(make, cwd=ROOT, check=False).returncode == 0
        version = version_inside() if made else None
        if version is None:
            shutil.rmtree(VENV, ignore_errors=True)
            raise Failed(
                "The virtual environment could not be made. Debian and Ubuntu keep the module apart: "
                "install it with `apt install python3-venv` and try again."
            )
    STAMP.unlink(missing_ok=True)
    say(f"== environment: installing the package with its extras {', '.join(sorted(extras))} (takes a minute or two)")
    install = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # The panel is a part of its own here: somebody who tests the Python code does not wait for Node and its packages.
    environment = {**os.environ, "JUPYTER_DURABLE_PANEL": "skip"}
    command = [*install, "-e", f".[{','.join(sorted(extras))}]"]
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
        raise Failed("The package could not be installed; pip says above why. Is there a network, or a package index?")
    STAMP.write_text(json.dumps(stamp_of(version, extras), indent=1) + "\n", encoding="utf-8")
    say(f"== environment: ready in {time.monotonic() - began:.1f} s")


def parts_of(word: str, arguments: list[str]) -> list[tuple[str, list[str]]]:
    """The parts that a word stands for, each a name and a command.

    Raises:
        Failed: the word takes no arguments, or has nothing to run yet.
    """
    python = str(PYTHON)
    pytest = [python, "-m", "pytest"]
    parallel = ["-n", "2"]
    check = [
        ("format", [python, "-m", "ruff", "format", "--check", "."]),
        ("lint", [python, "-m", "ruff", "check", "."]),
        ("types", [python, "-m", "mypy"]),
    ]
    # A browser, its server and its kernel are three programs that share the cores already, so their tests come alone.
    browser = "tests/browser"
    suite = [("tests", [*pytest, *parallel, f"--ignore={browser}"]), ("browser", [*pytest, browser])]
    if arguments and word in {"fmt", "check", "all"}:
        raise Failed(f"`{word}` takes no arguments. To choose tests: python3 dev.py test {' '.join(arguments)}")
    if word == "demo":
        return [("demo", [str(BIN / "jupyter"), "durable", "demo", *arguments])]
    if word == "fmt":
        return [
            ("format", [python, "-m", "ruff", "format", "."]),
            ("repair", [python, "-m", "ruff", "check", "--fix", "."]),
        ]
    if word == "check":
        return [*check, ("guards", [*pytest, *GUARDS])]
    if word == "test":
        # Somebody who chooses tests, or a number of processes, wants to be heard: theirs come last.
        return [("tests", [*pytest, *parallel, *arguments])] if arguments else suite
    if word == "docs":
        return [("docs", [*pytest, *parallel, *DOCUMENTS, *arguments])]
    if word == "panel":
        return [("panel", [python, "hatch_build.py", *arguments])]
    if word == "bench":
        if not (ROOT / "benchmarks" / "__main__.py").exists():
            raise Failed("There are no benchmarks yet: benchmarks/__main__.py is missing.")
        return [("benchmarks", [python, "-m", "benchmarks", *arguments])]
    # The panel is built before the suite, which opens it in a browser.
    panel = [(f"panel {script}", [python, "hatch_build.py", script]) for script in ("check", "build:prod")]
    # The suite holds the guards, the doctests, the notebooks and the documents too: each runs once.
    return [*check, *panel, *suite]


def main(words: list[str]) -> int:
    """Run one word and return the exit code of the first part that failed, or 0."""
    parser = argparse.ArgumentParser(
        prog="dev.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, add_help=False
    )
    parser.add_argument("word", choices=sorted(EXTRAS), nargs="?")
    if not words or words[0] in {"-h", "--help", "help"}:
        say(__doc__ or "")
        return 0 if words else 2
    word = parser.parse_args(words[:1]).word
    try:
        parts = parts_of(word, words[1:])
        prepare(word)
    except Failed as error:
        say(f"dev.py: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    began = time.monotonic()
    results: list[tuple[str, int]] = []
    for name, command in parts:
        try:
            code = run(name, command)
            # Somebody who chooses tests looks at them; the whole suite is looked at by a machine.
            if code == 1 and name in SUITE and not words[1:]:
                code = again(name, command)
            results.append((name, code))
        except KeyboardInterrupt:
            return 130
    # A failing part does not stop the next: one run tells everything that is wrong.
    failed = [(name, code) for name, code in results if code]
    if len(results) > 1:
        verdict = f"FAILED: {', '.join(name for name, _ in failed)}" if failed else "everything passed"
        say(f"\n== {word}: {verdict} ({len(results)} parts in {time.monotonic() - began:.1f} s)")
    return failed[0][1] if failed else 0


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit(
            "dev.py needs Python {}.{} or newer; this is Python {}. Try python3.11, python3.12 or python3.13.".format(
                *OLDEST, sys.version.split()[0]
            )
        )
    sys.exit(main(sys.argv[1:]))
