"""The user's key is made once, is readable by its owner only, and signs a line with all that came before it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from jupyter_durable.errors import LogUntrusted, LogUnusable
from jupyter_durable.values.trust import key_path, line_mac, load_key


def test_a_key_is_made_once_and_is_the_owners_alone(key_file):
    first = load_key(create=True)

    assert load_key(create=True) == load_key(create=False) == first
    assert len(first.secret) == 32
    assert len(first.id) == 8
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file.parent.stat().st_mode) == 0o700
    assert list(key_file.parent.iterdir()) == [key_file]


def test_a_missing_key_is_said_and_not_made(key_file):
    with pytest.raises(LogUntrusted, match="There is no key"):
        load_key(create=False)

    assert not key_file.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_key_that_others_can_read_is_refused(key_file, mode):
    load_key(create=True)
    key_file.chmod(mode)

    with pytest.raises(LogUntrusted, match="chmod 600"):
        load_key(create=True)


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_file_that_is_no_key_is_refused_and_kept(key_file, content):
    key_file.parent.mkdir(mode=0o700)
    key_file.write_bytes(content)
    key_file.chmod(0o600)

    with pytest.raises(LogUnusable, match="not a key"):
        load_key(create=True)

    assert key_file.read_bytes() == content


def test_a_path_that_cannot_be_used_is_named(key_file):
    key_file.parent.parent.mkdir(exist_ok=True)
    key_file.parent.write_text("a file where the directory should be")

    with pytest.raises(LogUnusable, match="cannot be used"):
        load_key(create=True)


def test_processes_that_race_get_one_key(key_file):
    code = "from jupyter_durable.values.trust import load_key; print(load_key(True).secret.hex())"
    processes = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(6)]
    secrets = {process.communicate()[0] for process in processes}

    assert len(secrets) == 1
    assert secrets == {f"{load_key(create=False).secret.hex()}\n"}


def test_without_hard_links_the_first_key_stays(key_file, monkeypatch):
    def no_links(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", no_links)
    first = load_key(create=True)

    assert load_key(create=True) == first


def test_the_secret_is_not_shown(key_file):
    key = load_key(create=True)

    assert key.secret.hex() not in repr(key)
    assert repr(key.secret) not in repr(key)


def test_without_a_name_in_the_environment_the_key_lies_in_the_data_directory(monkeypatch):
    monkeypatch.delenv("JUPYTER_DURABLE_KEY_FILE")

    assert key_path().parts[-2:] == ("jupyter_durable", "key")


def test_a_signature_changes_with_key_line_and_history():
    macs = {line_mac(b"k" * 32, b"p", b"l"), line_mac(b"j" * 32, b"p", b"l"), line_mac(b"k" * 32, b"q", b"l"),
            line_mac(b"k" * 32, b"p", b"m"), line_mac(b"k" * 32, b"pl", b"")}  # fmt: skip

    assert len(macs) == 5
    assert {len(mac) for mac in macs} == {12}
