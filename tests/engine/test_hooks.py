"""Hooks: set when their library is there, told about when they cannot be, never set by half."""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import EntryPoint

import pytest

from jupyter_durable import durable
from jupyter_durable.engine import hooks as module
from jupyter_durable.engine.hooks import GROUP, Hooks
from jupyter_durable.errors import CannotHook


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library that can be imported, and a hook that marks it; both are gone after the test."""
    (tmp_path / "invented_library.py").write_text("calls = []\n")
    (tmp_path / "invented_hook.py").write_text(
        "from jupyter_durable.errors import CannotHook\n"
        "def install(library):\n    library.calls.append('hooked')\n"
        "def refuse(library):\n    raise CannotHook('invented_library 9 is not as it was known')\n"
        "def break_(library):\n    raise ZeroDivisionError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = list(sys.meta_path)
    yield "invented_library"
    sys.meta_path[:] = before
    for name in ("invented_library", "invented_hook"):
        sys.modules.pop(name, None)


@pytest.fixture
def set_hooks(monkeypatch):
    """Set hooks as if these entry points were installed."""

    def set_hooks(value: str) -> Hooks:
        found = [EntryPoint("invented_library", value, GROUP)]
        monkeypatch.setattr(module, "entry_points", lambda group: [each for each in found if each.group == group])
        hooks = Hooks()
        hooks.set()
        return hooks

    return set_hooks


def test_a_library_that_is_there_already_is_hooked_at_once(library, set_hooks):
    imported = importlib.import_module(library)
    set_hooks("invented_hook:install")

    assert imported.calls == ["hooked"]


def test_a_library_that_is_imported_later_is_hooked_then_and_keeps_its_own_loader(library, set_hooks):
    set_hooks("invented_hook:install")
    imported = importlib.import_module(library)

    assert imported.calls == ["hooked"]
    assert type(imported.__loader__).__module__ == "_frozen_importlib_external"
    assert imported.__spec__.loader is imported.__loader__


def test_a_library_is_hooked_once(library, set_hooks):
    hooks = set_hooks("invented_hook:install")
    imported = importlib.import_module(library)
    hooks.set()
    hooks.reached(library, imported)

    assert imported.calls == ["hooked"]


def test_a_library_that_changed_under_its_hook_is_told_about_in_its_words(library, set_hooks):
    hooks = set_hooks("invented_hook:refuse")
    imported = importlib.import_module(library)

    assert imported.calls == []
    assert hooks.problems == ["invented_library 9 is not as it was known"]


def test_a_hook_that_fails_breaks_no_import_and_says_which_calls_go_unrecorded(library, set_hooks):
    hooks = set_hooks("invented_hook:break_")
    importlib.import_module(library)

    assert len(hooks.problems) == 1
    assert "calls through `invented_library` are not recorded" in hooks.problems[0]
    assert "@step" in hooks.problems[0]


def test_every_run_says_what_goes_unrecorded(tmp_path, monkeypatch):
    monkeypatch.setattr(module.HOOKS, "problems", ["`httpx` 99 is not as it was known"])
    with durable.run("said", log=str(tmp_path / "log")) as begun:
        assert begun.execution.stats.notices == ["`httpx` 99 is not as it was known"]


def test_an_httpx_of_another_shape_is_not_patched_by_half():
    from types import SimpleNamespace

    from jupyter_durable.capture.httpx_client import install

    class Client:
        def _transport_for_url(self, url):
            return url

    class AsyncClient:
        def _pick_transport(self, url):
            return url

    known = dict.fromkeys(
        ("BaseTransport", "AsyncBaseTransport", "Response", "SyncByteStream", "AsyncByteStream"), object
    )
    changed = SimpleNamespace(__name__="httpx", __version__="9.0", Client=Client, AsyncClient=AsyncClient, **known)
    before = Client._transport_for_url

    with pytest.raises(CannotHook, match=r"`httpx` 9\.0 .* NOT recorded"):
        install(changed)  # type: ignore[arg-type]
    assert Client._transport_for_url is before
