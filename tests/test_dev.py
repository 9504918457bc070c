"""The developers' script: what each word stands for, and that a failure is not lost."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "dev.py"


@pytest.fixture
def dev(monkeypatch):
    """The script as a module of the test's own, with an environment that is there already."""
    spec = importlib.util.spec_from_file_location("dev_under_test", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "prepare", lambda word: None)
    monkeypatch.setattr(sys, "argv", ["dev.py"])
    return module


def test_an_old_python_can_read_it_far_enough_to_be_refused():
    ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 7))


def test_every_word_is_explained_and_has_parts(dev):
    for word in dev.EXTRAS:
        assert f"\n    {word} " in dev.__doc__
        if word != "bench" or (SCRIPT.parent / "benchmarks" / "__main__.py").exists():
            assert dev.parts_of(word, [])


def test_all_is_check_the_panel_and_the_whole_suite(dev):
    every = dev.parts_of("all", [])
    check = dev.parts_of("check", [])

    panel = [name for name, _ in every if name.startswith("panel")]

    assert panel == ["panel check", "panel build:prod"], "it is built before the browser opens it"
    suite = dev.parts_of("test", [])
    assert [part for part in every[: -len(suite)] if part[0] not in panel] == check[:-1]
    assert every[-len(suite) :] == suite
    assert not set(dev.GUARDS) & set(every[-1][1]), "the suite is run whole"


def test_arguments_reach_the_program_behind_the_word(dev):
    assert dev.parts_of("test", ["-k", "torn"])[0][1][-2:] == ["-k", "torn"]
    assert dev.parts_of("demo", ["--json"])[0][1][-2:] == ["demo", "--json"]


def test_a_word_that_takes_no_arguments_says_so(dev, capsys):
    assert dev.main(["all", "-k", "torn"]) == 1
    assert "dev.py test -k torn" in capsys.readouterr().out


def parts(*codes: int) -> list[tuple[str, list[str]]]:
    return [(f"part {i}", [sys.executable, "-c", f"raise SystemExit({code})"]) for i, code in enumerate(codes)]


def test_the_first_failing_part_gives_the_exit_code_and_the_others_run_all_the_same(dev, monkeypatch, capsys):
    monkeypatch.setattr(dev, "parts_of", lambda word, arguments: parts(0, 5, 0, 7))

    assert dev.main(["all"]) == 5

    lines = capsys.readouterr().out.splitlines()
    assert sum(" in " in line and line.startswith("== part") for line in lines) == 4
    assert lines[-1].startswith("== all: FAILED: part 1, part 3 (4 parts in ")


@pytest.fixture
def suite(dev, monkeypatch, tmp_path):
    """A suite whose tests are in a file of their own; called with the file's text, it gives the exit code of `test`."""

    def whole(text: str) -> int:
        file = tmp_path / "test_it.py"
        file.write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", f"--rootdir={tmp_path}", str(file)]
        monkeypatch.setattr(dev, "parts_of", lambda word, arguments: [("tests", command)])
        monkeypatch.setattr(dev, "ROOT", tmp_path)
        monkeypatch.setattr(dev, "FAILED_TESTS", tmp_path / ".pytest_cache" / "v" / "cache" / "lastfailed")
        return dev.main(["test"])

    return whole


UNSTEADY = """
import pathlib
mark = pathlib.Path(__file__).with_name("mark")
def test_second_time_lucky():
    before = mark.exists()
    mark.touch()
    assert before
def test_sound():
    pass
"""


def test_a_test_that_fails_once_and_passes_alone_is_named_as_unsteady(suite, capfd):
    assert suite(UNSTEADY) == 0

    out = capfd.readouterr().out
    assert "== tests: UNSTEADY, failed and then passed alone: test_it.py::test_second_time_lucky" in out
    assert "1 passed" in out.split("what failed once more")[1], "the others are not run again"


def test_a_test_that_fails_twice_fails_the_suite(suite, capfd):
    assert suite("def test_wrong():\n    assert False\n") == 1
    assert "UNSTEADY" not in capfd.readouterr().out


def test_many_failures_are_no_bad_minute(suite, capfd):
    assert suite(UNSTEADY + "".join(f"def test_{i}():\n    assert mark.exists() is None\n" for i in range(3))) == 1
    assert "what failed once more" not in capfd.readouterr().out


def test_when_everything_passes_it_says_so(dev, monkeypatch, capsys):
    monkeypatch.setattr(dev, "parts_of", lambda word, arguments: parts(0, 0))

    assert dev.main(["check"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("== check: everything passed (2 parts in ")


def test_a_part_that_dies_of_a_signal_fails(dev, monkeypatch):
    kill = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr(dev, "parts_of", lambda word, arguments: [("part", kill)])

    assert dev.main(["test"]) == 137


def test_told_to_stop_it_stops_its_part_and_waits_for_it(dev, monkeypatch, tmp_path):
    ended = tmp_path / "ended"
    code = (
        "import os, signal, sys, time, pathlib\n"
        f"def end(*_): pathlib.Path({str(ended)!r}).touch(); sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "os.kill(os.getppid(), signal.SIGTERM)\n"
        "time.sleep(60)\n"
    )
    monkeypatch.setattr(dev, "parts_of", lambda word, arguments: [("part", [sys.executable, "-c", code])])

    assert dev.main(["test"]) == 130
    assert ended.exists()


def test_for_a_program_its_own_lines_stand_aside(dev, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["dev.py", "demo", "--json"])
    monkeypatch.setattr(dev, "parts_of", lambda word, arguments: [("demo", [sys.executable, "-c", "print('{}')"])])

    assert dev.main(["demo", "--json"]) == 0
    assert capfd.readouterr().out == "{}\n"


def test_the_environment_is_made_again_when_what_it_was_made_from_changes(dev, monkeypatch, tmp_path):
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text("one", encoding="utf-8")
    before = dev.stamp_of("3.12", {"demo"})

    assert dev.stamp_of("3.12", {"demo"}) == before
    assert dev.stamp_of("3.13", {"demo"}) != before
    assert dev.stamp_of("3.12", {"demo", "test"}) != before
    (tmp_path / "pyproject.toml").write_text("two", encoding="utf-8")
    assert dev.stamp_of("3.12", {"demo"}) != before


def test_an_environment_of_another_folder_does_not_serve(dev, monkeypatch, tmp_path):
    monkeypatch.setattr(dev, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(dev, "PYTHON", Path(sys.executable))
    assert dev.version_inside() is None

    monkeypatch.setattr(dev, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    assert dev.version_inside() is None


@pytest.mark.skipif(os.name == "nt", reason="a file mode of POSIX")
def test_ci_calls_the_same_command():
    script = SCRIPT.parent / ".ci" / "run"

    assert os.access(script, os.X_OK)
    assert script.read_text(encoding="utf-8").rstrip().endswith("exec python3 dev.py all")
