"""The user's key, which signs the lines of a log, and the signature itself.

A log travels with its notebook by git and mail; the key does not. What a line's signature does not confirm is never
loaded, because loading a pickle runs code.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from jupyter_durable import clock
from jupyter_durable.errors import LogUntrusted, LogUnusable

KEY_FILE_VARIABLE = "JUPYTER_DURABLE_KEY_FILE"
"""Environment variable that names the key file, for pods that mount it."""

SIZE = 32
"""Bytes of a key."""

MAC_SIZE = 12
"""Bytes of a line's signature: 16 characters of base64."""


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a user. Its secret is never shown, also not by ``repr``."""

    id: str
    """Eight hexadecimal digits that name the key without giving it away."""
    secret: bytes = field(repr=False)


def key_path() -> Path:
    """Where the key lies: ``$JUPYTER_DURABLE_KEY_FILE``, else in the user's data directory."""
    named = os.environ.get(KEY_FILE_VARIABLE)
    if named:
        return Path(named)
    # Imported here: most commands never need the default path, and start-up time counts.
    from platformdirs import user_data_dir

    return Path(user_data_dir("jupyter_durable")) / "key"


def load_key(create: bool) -> Key:
    """Read the user's key.

    Args:
        create: make a key if there is none. Never pass true for a log that exists already and names a key.

    Raises:
        LogUntrusted: there is no key and ``create`` is false, or others than the user can read it.
        LogUnusable: the file cannot be made or read, or is no key.
    """
    path = key_path()
    try:
        secret = _read(path)
        if secret is None:
            if not create:
                raise LogUntrusted(
                    f"There is no key at {path}, so this log cannot be verified and nothing of it is loaded. Put the "
                    f"key that wrote the log there (or name its file in {KEY_FILE_VARIABLE}), or look at the log with "
                    "`%durable trust`.",
                    file=str(path),
                )
            _create(path)
            secret = _read(path)
    except OSError as error:
        raise LogUnusable(
            f"The key file {path} cannot be used: {error.strerror or type(error).__name__}. Give yourself the right "
            f"to read it, or name another file in {KEY_FILE_VARIABLE}.",
            file=str(path),
        ) from error
    if secret is None or len(secret) != SIZE:
        raise LogUnusable(
            f"The file {path} is not a key of jupyter_durable ({len(secret or b'')} bytes instead of {SIZE}). Put the "
            "right file there; move this one away only if no log was written with it.",
            file=str(path),
        )
    return Key(blake2b(secret, digest_size=4).hexdigest(), secret)


def line_mac(secret: bytes, previous: bytes, rest: bytes) -> bytes:
    """Signature of one line of a journal.

    Args:
        secret: the secret of a `Key`.
        previous: signature of the line before (any length, also empty).
        rest: the bytes of the line that are signed.

    Returns:
        12 bytes: equal only if secret, the whole history before and this line are equal.

    >>> len(line_mac(b"k" * 32, b"", b"line"))
    12
    >>> line_mac(b"k" * 32, b"ab", b"c") == line_mac(b"k" * 32, b"a", b"bc")
    False
    """
    mac = blake2b(len(previous).to_bytes(4, "little"), digest_size=MAC_SIZE, key=secret, person=b"jd-line")
    mac.update(previous)
    mac.update(rest)
    return mac.digest()


def _read(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        # Asked of the open file, not of the path: the path may be another file a moment later.
        mode = os.fstat(file.fileno()).st_mode
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            raise LogUntrusted(
                f"The key file {path} can be read by others (mode {stat.S_IMODE(mode):04o}), so a signature made with "
                f"it proves nothing. Run `chmod 600 {path}` if you are sure that nobody has read it.",
                file=str(path),
            )
        return file.read(SIZE + 1)


def _create(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{clock.token_bytes(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(clock.token_bytes(SIZE))
            file.flush()
            os.fsync(file.fileno())
        _publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _publish(temporary: Path, path: Path) -> None:
    """Give the whole file its name, unless another process was faster; a half-written key is never visible."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError:
        # A file system without hard links: a lock makes sure that the second comer does not replace the first key.
        from filelock import FileLock

        with FileLock(f"{path}.lock"):
            if not path.exists():
                temporary.replace(path)
    if os.name == "posix":
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
