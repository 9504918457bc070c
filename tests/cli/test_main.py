"""What holds for every command line: sentences instead of tracebacks, exit codes, streams, a light start."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from jupyter_durable.cli import build_parser, commands, main
from jupyter_durable.cli.arguments import COMMANDS, WrongArguments
from jupyter_durable.errors import LogUnusable
from tests.cli.conftest import COMPLETED, DYING

HEAVY = ["IPython", "cloudpickle", "duckdb", "numpy", "pandas", "openai", "nbclient"]


def test_every_command_is_in_the_help_with_its_sentence(cli):
    answer = cli("--help")

    assert answer.code == 0
    text = " ".join(answer.out.split())
    assert [command.name for command in COMMANDS if f" {command.name} " not in text] == []
    assert [command.name for command in COMMANDS if command.summary not in text] == []
    assert [command.name for command in COMMANDS if command.name not in commands.WORDS] == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_help_of_a_command_has_its_example(cli, command):
    answer = cli(command.name, "--help")

    assert answer.code == 0
    assert answer.out.endswith(f"example:\n  {command.example}\n")


def test_no_command_is_a_wrong_command_line(cli):
    answer = cli()

    assert (answer.code, answer.out) == (2, "")
    assert "usage: jupyter durable" in answer.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["shwo"], "invalid choice: 'shwo'"),
        (["show"], "required: RUN"),
        (["runs", "--jsno"], "unrecognized arguments: --jsno"),
        (["decide", "x", "perhaps"], "invalid choice: 'perhaps'"),
        (["settle", "x", "1", "value"], "needs the value, as JSON"),
        (["settle", "x", "1", "value", "text"], "Text needs quotes of its own"),
        (["settle", "x", "1", "rerun", "7"], "takes no value"),
        (["sql", " ; "], "The query is empty"),
    ],
)
def test_a_command_line_that_cannot_be_meant_ends_with_2(cli, words, said):
    answer = cli(*words)
    as_json = cli(*words, "--json")

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err.splitlines()[-1]
    assert as_json.code == 2
    assert as_json.err == ""
    assert as_json.json["error"] == "UsageError"


def test_the_parser_alone_raises_what_ends_a_process_with_2():
    with pytest.raises(WrongArguments) as caught:
        build_parser().parse_args(["shwo"])

    assert caught.value.code == 2


def test_the_version_is_printed(cli):
    assert cli("--version").code == 0


# -- Sentences -------------------------------------------------------------------------------------------------------

TWO_NOTEBOOKS = """
from jupyter_durable.log import open_log
from jupyter_durable.engine.opening import begin
from jupyter_durable.engine.options import RunSpec
for notebook in ("a", "b"):
    begin(RunSpec("daily", notebook=notebook, path=f"{notebook}.ipynb"), open_log(".durable")).end(None)
"""


def damage(path):
    """Change one byte in the second of many lines."""
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"plan", b"plam")
    path.write_bytes(b"\n".join(lines))


def make_newer(folder, journal):
    (folder / ".durable" / "format.json").write_text('{"format": 99, "log": "x"}')


def make_journal_newer(folder, journal):
    journal().write_bytes(journal().read_bytes().replace(b'"format":1', b'"format":99', 1))


def forge(folder, journal):
    """Change a value, and put the checksums right again: only the signature tells."""
    from zlib import crc32

    lines, crc = journal().read_bytes().splitlines(), 0
    for number, line in enumerate(lines):
        rest = line[39:].replace(b'"b"', b'"z"')
        crc = crc32(rest, crc)
        lines[number] = b'{"c":"%08x"%b%b' % (crc, line[14:39].removeprefix(b'"'), rest)
    journal().write_bytes(b"\n".join([*lines, b""]))


SENTENCES = [
    pytest.param(["runs"], None, "LogUnusable", "There is no log in ", id="no log"),
    pytest.param(["show", "x"], None, "LogUnusable", "There is no log in ", id="no log to show"),
    pytest.param(["sql", "SELECT 1"], None, "LogUnusable", "There is no log in ", id="no log to query"),
    pytest.param(["fold", "--log", "/dev/null"], None, "LogUnusable", "/dev/null", id="a file for a log"),
    pytest.param(["show", "nope"], "died", "UsageError", "There is no run `nope`", id="unknown run"),
    pytest.param(["decide", "nope", "reuse"], "died", "UsageError", "There is no run `nope`", id="nothing to decide"),
    pytest.param(["show", "daily"], "two", "UsageError", "Several runs are called `daily`", id="ambiguous run"),
    pytest.param(["show", "literature-review"], "damaged", "LogDamaged", "is damaged at line 2", id="damaged"),
    pytest.param(["runs"], "newer", "LogTooNew", "Upgrade it", id="newer log"),
    pytest.param(["show", "literature-review"], "newer journal", "UsageError", "Upgrade it", id="newer journal"),
    pytest.param(["fold"], "no key", "LogUntrusted", "There is no key at ", id="no key to fold"),
    pytest.param(["decide", "literature-review", "pure"], "no key", "LogUntrusted", "There is no key at ", id="no key"),
    pytest.param(["sql", "SELEC 1"], "died", "UsageError", "DuckDB does not accept the query: Parser", id="wrong SQL"),
    pytest.param(["sql", "SELECT x FROM nope"], "died", "UsageError", "DuckDB does not accept", id="unknown table"),
]


@pytest.fixture
def state(script, folder, journal, key_file):
    """Brings a log into a state that commands must complain about."""

    def bring(name: str | None) -> None:
        if name == "two":
            script(TWO_NOTEBOOKS)
        elif name is not None:
            script(DYING, "die")
        if name == "damaged":
            damage(journal())
        elif name == "newer":
            make_newer(folder, journal)
        elif name == "newer journal":
            make_journal_newer(folder, journal)
        elif name == "forged":
            forge(folder, journal)
        elif name == "no key":
            key_file.unlink()

    return bring


@pytest.mark.parametrize(("words", "name", "kind", "said"), SENTENCES)
def test_what_cannot_be_done_is_one_sentence(cli, state, words, name, kind, said):
    state(name)

    answer = cli(*words)
    as_json = cli(*words, "--json")

    assert said in answer.sentence
    assert (as_json.code, as_json.err) == (1, "")
    assert as_json.json["error"] == kind
    assert said in as_json.json["message"]


def test_looking_makes_no_log_where_there_is_none(cli, folder):
    (folder / "photos").mkdir()

    for words in (["runs"], ["show", "x"], ["sql", "SELECT 1"], ["doctor"], ["fold"]):
        cli(*words, "--log", "photos")
        cli(*words)

    assert [path.name for path in folder.rglob("*")] == ["photos"]


def test_a_run_whose_journal_cannot_be_read_is_said_to_be_left_out(cli, script, state):
    state("newer journal")
    script("from jupyter_durable.log import open_log")

    answer = cli("runs")

    assert answer.code == 0
    assert answer.err.startswith("Left out: ")
    assert len(cli("runs", "--json").json["unreadable"]) == 1


def test_without_the_key_a_run_is_shown_and_the_reason_said(cli, state):
    state("no key")

    answer = cli("show", "literature-review")

    assert answer.code == 0
    assert "There is no key at " in answer.out
    assert "in doubt" in answer.out


def test_forged_lines_are_shown_as_unverified(cli, state):
    state("forged")

    shape = cli("show", "literature-review", "--json").json

    assert "without your key" in shape["untrusted"]
    assert cli("doctor").code == 1


def test_an_error_of_the_system_is_a_sentence(cli, script, monkeypatch):
    def refuses(args):
        raise PermissionError(13, "Permission denied", "/some/file")

    monkeypatch.setitem(commands.WORDS, "runs", refuses)

    assert cli("runs").sentence == "The system refused: Permission denied: /some/file."
    assert cli("runs", "--json").json["error"] == "PermissionError"


def test_an_error_that_nobody_foresaw_is_a_sentence_unless_a_developer_asks(cli, monkeypatch):
    def breaks(args):
        raise KeyError("x")

    monkeypatch.setitem(commands.WORDS, "runs", breaks)

    assert "met an error that nobody foresaw (KeyError: 'x')" in cli("runs").sentence
    monkeypatch.setenv("JUPYTER_DURABLE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["runs"])


def test_ctrl_c_ends_quietly(cli, monkeypatch):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setitem(commands.WORDS, "runs", interrupted)

    answer = cli("runs")

    assert (answer.code, answer.out, answer.err) == (130, "", "")


def test_a_message_over_several_lines_stays_one_line(cli, monkeypatch):
    def fails(args):
        raise LogUnusable("first\nsecond\x1b[2J\r\nthird")

    monkeypatch.setitem(commands.WORDS, "runs", fails)

    assert cli("runs").sentence == "first second\\x1b[2J third"


# -- The process -----------------------------------------------------------------------------------------------------


def test_a_process_of_its_own_says_the_same(shell, script):
    script(COMPLETED)

    assert shell("runs").out.split()[9] == "doubling"
    assert shell("show", "doubling").code == 0
    assert shell("sql", "SELECT name FROM runs", "--json").json["rows"] == [["doubling"]]
    assert "There is no run `x`" in shell("show", "x").sentence
    assert shell("shwo").code == 2


def test_a_reader_that_leaves_early_is_no_error(script, folder):
    script(COMPLETED)
    reading, writing = os.pipe()
    os.close(reading)

    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "jupyter_durable.cli", "show", "doubling"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            cwd=folder,
            check=False,
        )

    assert done.stderr == b""
    assert done.returncode == 141


def test_a_terminal_without_the_characters_shows_their_codes(shell, script):
    script(COMPLETED.replace("doubling", "報告"))

    answer = shell("runs", PYTHONIOENCODING="ascii")

    assert (answer.code, answer.err) == (0, "")
    assert r"\u5831\u544a" in answer.out


def test_starting_up_is_light(script, folder):
    script(DYING, "die")
    code = (
        "import sys\n"
        "from jupyter_durable.cli import main\n"
        "code = main(sys.argv[1:])\n"
        f"heavy = [name for name in {[*HEAVY, 'jupyter_durable.client']!r} if name in sys.modules]\n"
        "print(heavy, file=sys.stderr)\n"
    )

    def imported(*words: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=folder, capture_output=True, text=True, check=True
        )
        return json.loads(done.stderr.replace("'", '"'))

    assert imported("--help") == []
    assert imported("runs") == ["jupyter_durable.client"]
    assert imported("show", "literature-review") == ["jupyter_durable.client"]
