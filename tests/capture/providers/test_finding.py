"""Who knows a request is found by entry points, quickly, and whatever a foreign package does."""

from __future__ import annotations

import re
import sys
import time
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from jupyter_durable.capture.providers import finding
from jupyter_durable.capture.providers.base import Api
from tests.capture.providers.asking import api, ask, name

CHAT = "https://api.openai.com/v1/chat/completions"
ROOT = Path(__file__).resolve().parents[3]


class Mine(Api):
    name = "mine"
    path = re.compile(r"/chat/completions$|/invent$")


class Raising(Api):
    name = "raising"

    def recognises(self, ask):
        raise ZeroDivisionError


@pytest.fixture(autouse=True)
def _anew():
    finding.forget()
    yield
    finding.forget()


@pytest.fixture
def foreign(monkeypatch):
    """Adds entry points of a package that is not ours."""
    module = ModuleType("foreign_package")
    module.APIS, module.ONE, module.NUMBER, module.RAISING = (Mine(),), Mine(), 7, (Raising(),)
    monkeypatch.setitem(sys.modules, "foreign_package", module)
    real = finding.entry_points(finding.GROUP)

    def install(value: str, *, alone: bool = False) -> None:
        entry = EntryPoint(name="acme", value=value, group=finding.GROUP)
        found = [entry] if alone else [*real, entry]
        monkeypatch.setattr(finding, "entry_points", lambda group: found)
        finding.forget()

    return install


def test_every_file_of_apis_is_an_entry_point():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][finding.GROUP]
    folder = ROOT / "jupyter_durable" / "capture" / "providers"
    # Those of openai_stored come with openai.
    files = {path.stem for path in folder.glob("*.py") if "\nAPIS: " in path.read_text()} - {"openai_stored"}

    assert set(declared) == files
    assert all(value == f"jupyter_durable.capture.providers.{name}:APIS" for name, value in declared.items())


def test_nothing_of_ours_is_a_problem_and_every_api_has_a_name():
    assert finding.problems() == ()
    assert all(found.name for found in finding.apis())


@pytest.mark.parametrize("value", ["foreign_package:APIS", "foreign_package:ONE"])
def test_a_foreign_api_goes_first(foreign, value):
    assert name(ask(CHAT)) == "chat.completions"

    foreign(value)

    assert name(ask(CHAT)) == "mine"
    assert name(ask("https://x.example.com/invent")) == "mine"
    assert name(ask("https://api.openai.com/v1/embeddings", {})) == "embeddings"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("foreign_package:GONE", "AttributeError"),
        ("no_such_package:APIS", "ModuleNotFoundError"),
        ("foreign_package:NUMBER", "no tuple of `Api` objects"),
    ],
)
def test_a_broken_foreign_package_gets_one_sentence_and_harms_nobody(foreign, value, reason):
    foreign(value)

    assert name(ask(CHAT)) == "chat.completions"
    (sentence,) = finding.problems()
    assert reason in sentence
    assert value in sentence


def test_an_api_that_raises_is_left_out_and_told_about_once(foreign):
    foreign("foreign_package:RAISING")

    assert [name(ask(CHAT)) for _ in range(3)] == ["chat.completions"] * 3
    (sentence,) = finding.problems()
    assert "Raising` raised ZeroDivisionError" in sentence


def test_an_installation_without_entry_points_says_so(foreign):
    foreign("foreign_package:APIS", alone=True)

    assert "Install it again" in finding.problems()[0]


def test_an_api_can_be_added_for_this_process():
    assert name(ask("https://x.example.com/invent")) == ""

    finding.add(Mine())

    assert api(ask("https://x.example.com/invent")).name == "mine"


def test_an_url_that_is_no_model_call_costs_microseconds():
    request = ask("https://pypi.org/simple/numpy/", method="GET")
    finding.api_for(request)

    def took() -> float:
        begin = time.perf_counter()
        for _ in range(1000):
            finding.api_for(request)
        return (time.perf_counter() - begin) / 1000

    # Measured: 0.2 µs. The bound leaves room for a machine that is busy.
    assert min(took() for _ in range(5)) < 20e-6
