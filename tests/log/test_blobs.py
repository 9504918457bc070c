"""Large payloads by content."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_durable.errors import LogDamaged, LogUnusable
from jupyter_durable.log import files
from jupyter_durable.log.blobs import BlobStore, digest_of


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    """An empty store."""
    return BlobStore(tmp_path)


@settings(max_examples=30)
@given(st.binary(max_size=2000), st.integers(0, 400))
def test_content_comes_back_compressed_or_not(tmp_path_factory, unit: bytes, times: int) -> None:
    store = BlobStore(tmp_path_factory.mktemp("blobs"))
    content = unit * times

    digest = store.put(content)

    assert digest == digest_of(content)
    assert store.get(digest) == content


def test_only_what_shrinks_is_compressed(blobs: BlobStore) -> None:
    noise = os.urandom(300_000)

    assert blobs.size(blobs.put(noise)) == 300_005
    assert blobs.size(blobs.put(b"text " * 60_000)) < 1000


def test_equal_content_is_written_once(blobs: BlobStore) -> None:
    for content in (os.urandom(500_000), os.urandom(1000)):
        digest = blobs.put(content)
        path = blobs.directory / digest
        before = path.stat()

        assert blobs.put(content) == digest
        assert BlobStore(blobs.directory).put(content) == digest

        assert path.stat().st_mtime_ns == before.st_mtime_ns
        assert path.stat().st_ino == before.st_ino
    assert len(list(blobs.directory.iterdir())) == 2


def test_a_blob_is_flushed_before_its_name_and_its_directory_after(blobs: BlobStore) -> None:
    done: list[str] = []

    class Watch(files.FileLayer):
        def fdatasync(self, fd: int) -> None:
            done.append("flush")
            super().fdatasync(fd)

        def rename(self, source: Path, target: Path) -> None:
            done.append("rename")
            super().rename(source, target)

        def fsync_dir(self, path: Path) -> None:
            done.append("directory")
            super().fsync_dir(path)

    with files.use(Watch()):
        blobs.put(os.urandom(300_000))
        blobs.put(os.urandom(300_000), durable=False)

    assert done == ["flush", "rename", "directory", "rename"]


@pytest.mark.parametrize(
    "spoil", [lambda b: b[:-1], lambda b: b[:3], lambda b: b[:10] + bytes([b[10] ^ 1]) + b[11:], lambda b: b""]
)
@pytest.mark.parametrize("content", [bytes(range(256)) * 4, b"a" * 5000])
def test_a_changed_or_cut_blob_is_damage_and_is_written_anew(blobs: BlobStore, content: bytes, spoil) -> None:
    digest = blobs.put(content)
    path = blobs.directory / digest
    path.write_bytes(spoil(path.read_bytes()))
    store = BlobStore(blobs.directory)

    with pytest.raises(LogDamaged, match="changed or cut"):
        store.get(digest)

    store.put(content)
    assert store.get(digest) == content


def test_a_refused_write_leaves_nothing(blobs: BlobStore) -> None:
    class Full(files.FileLayer):
        def write(self, fd: int, data: bytes | memoryview) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with files.use(Full()), pytest.raises(LogUnusable, match="the disk is full"):
        blobs.put(os.urandom(300_000))

    assert list(blobs.directory.iterdir()) == []


def test_an_unknown_compression_asks_for_an_upgrade(blobs: BlobStore) -> None:
    (blobs.directory / ("0" * 32)).write_bytes(b"JDB1\x07abc")

    with pytest.raises(LogUnusable, match="Upgrade it"):
        blobs.get("0" * 32)
