"""Large payloads, stored once by content: ``blobs/<digest>``, compressed if that helps, verified when read.

A file is ``JDB1``, one byte for the compression, then the bytes. The digest is that of the content, not of the file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from jupyter_durable import clock
from jupyter_durable.errors import LogDamaged, LogUnusable
from jupyter_durable.log import files

_MAGIC = b"JDB1"
_NONE, _ZSTD = 0, 1
_SAMPLE = 4096


class BlobStore:
    """The blobs of one log."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._flushed: dict[str, int] = {}
        """Blobs that this process has flushed -> bytes of their files."""

    def put(self, content: bytes, digest: str = "", *, durable: bool = True) -> str:
        """Store a blob, flushed if ``durable``, and return its digest. Equal content is stored once.

        Args:
            content: the bytes.
            digest: what `digest_of` says of them, if it is known: taking it costs as much as writing.
            durable: flush it.

        Raises:
            LogUnusable: the file system refused.
        """
        digest = digest or digest_of(content)
        try:
            return digest if self._have(digest, durable=durable) else self._write(content, digest, durable)
        except OSError as error:
            raise files.unusable("write a blob into", self.directory, error) from error

    def get(self, digest: str) -> bytes:
        """The content of a blob.

        Raises:
            LogDamaged: it is missing or changed.
        """
        path = self.directory / digest
        try:
            stored = path.read_bytes()
        except FileNotFoundError:
            raise self._damaged(path, "is missing") from None
        except OSError as error:
            raise files.unusable("read the blob", path, error) from error
        content = _unpack(stored)
        if content is None or digest_of(content) != digest:
            raise self._damaged(path, "is changed or cut")
        return content

    def size(self, digest: str) -> int:
        """Bytes that a blob takes on the disk; 0 if it is missing."""
        try:
            return (self.directory / digest).stat().st_size
        except OSError:
            return 0

    def _have(self, digest: str, *, durable: bool) -> bool:
        """Whether the blob is there whole; then it is flushed, too: another process may just have written it."""
        path = self.directory / digest
        if self._flushed.get(digest, -1) == self.size(digest):
            return True
        try:
            content = _unpack(path.read_bytes())
        except FileNotFoundError:
            return False
        if content is None or digest_of(content) != digest:
            return False
        if durable:
            fd = files.hooks.open(path, os.O_RDWR)
            try:
                files.hooks.fdatasync(fd)
            finally:
                os.close(fd)
            self._publish(digest)
        return True

    def _write(self, content: bytes, digest: str, durable: bool) -> str:
        temporary = self.directory / f".{os.getpid()}-{clock.token_bytes(6).hex()}.tmp"
        kind, stored = _pack(content)
        fd = files.hooks.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                files.write_all(fd, _MAGIC + bytes((kind,)))
                files.write_all(fd, stored)
                if durable:
                    files.hooks.fdatasync(fd)
            finally:
                os.close(fd)
            files.hooks.rename(temporary, self.directory / digest)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        if durable:
            self._publish(digest)
        return digest

    def _publish(self, digest: str) -> None:
        files.hooks.fsync_dir(self.directory)
        self._flushed[digest] = self.size(digest)

    def _damaged(self, path: Path, what: str) -> LogDamaged:
        return LogDamaged(
            f"The blob {path} {what}. The step that stored it cannot be replayed: put the file back from a backup, or "
            "run that step again (%durable decide).",
            file=str(path),
            digest=path.name,
        )


def digest_of(content: bytes) -> str:
    """Name of a blob: 32 hexadecimal digits of BLAKE2b.

    >>> digest_of(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return blake2b(content, digest_size=16).hexdigest()


def _pack(content: bytes) -> tuple[int, bytes]:
    """Compression and stored bytes: compressed only if a sample of the middle says that it helps."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=3)
    middle = max(0, len(content) // 2 - _SAMPLE // 2)
    sample = content[middle : middle + _SAMPLE]
    if len(compressor.compress(sample)) > 0.9 * len(sample):
        return _NONE, content
    packed = compressor.compress(content)
    return (_ZSTD, packed) if len(packed) < len(content) else (_NONE, content)


def _unpack(stored: bytes) -> bytes | None:
    """The content of a blob file; ``None`` if it is not one."""
    if stored[:4] != _MAGIC or len(stored) < 5:
        return None
    if stored[4] == _NONE:
        return stored[5:]
    if stored[4] != _ZSTD:
        raise LogUnusable(
            f"A blob is compressed in a way ({stored[4]}) that this jupyter_durable does not know. Upgrade it."
        )
    import zstandard

    try:
        return zstandard.ZstdDecompressor().decompress(stored[5:])
    except zstandard.ZstdError:
        return None
