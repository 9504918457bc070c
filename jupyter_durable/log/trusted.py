"""Which key verifies an execution, and the explicit act of accepting one that another key has signed.

Trust is a file of its own, ``trusted/<execution>.json``: a digest of exactly the bytes that a person accepted, signed
with the person's own key. It travels with the log and means nothing to anybody else.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import msgspec

from jupyter_durable.errors import LogError, LogUntrusted
from jupyter_durable.log import files
from jupyter_durable.log.line import mac_text
from jupyter_durable.log.listing import Entry
from jupyter_durable.values.trust import Key, load_key


class _Record(msgspec.Struct, frozen=True):
    execution: str
    digest: str
    """Of the accepted bytes."""
    key: str
    """Id of the key that signed this record."""
    mac: str


class Keyring:
    """The user's key for one log, and what the user has accepted in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "trusted"
        self._key: Key | None = None

    def own(self, *, create: bool = False) -> Key:
        """The user's key.

        Raises:
            LogUntrusted: there is none, and ``create`` is not set.
        """
        if self._key is None:
            self._key = load_key(create)
        return self._key

    def known(self) -> str | None:
        """Id of the user's key, if there is one that can be used."""
        try:
            return self.own().id
        except LogError:
            return None

    def secret_for(self, entry: Entry) -> bytes | None:
        """The secret that verifies the lines of an execution; ``None`` if its bytes were accepted as they are.

        Raises:
            LogUntrusted: it was signed with another key and not accepted, or changed since it was.
        """
        key = self.own()
        record = self._read(entry.header.execution)
        accepted = record is not None and self._is_mine(record, key)
        if entry.header.key == key.id:
            # Lines that were changed by somebody without the key can be accepted, too: by a person, as they are.
            as_accepted = accepted and record is not None and record.digest == content_digest(entry)
            return None if as_accepted else key.secret
        place = f"Execution {entry.header.execution} of run {entry.header.name} ({entry.header.branch_name})"
        facts = {"file": str(entry.path), "key": entry.header.key, "execution": entry.header.execution}
        if record is None or not accepted:
            raise LogUntrusted(
                f"{place} was recorded with another key ({entry.header.key or 'none'}; yours is {key.id}), so nothing "
                "of it is loaded. If it is your own, from another machine, put that key here; if you trust where it "
                "comes from, accept it with `%durable trust`.",
                **facts,
            )
        if record.digest != content_digest(entry):
            raise LogUntrusted(
                f"{place} has changed since you accepted it, so nothing of it is loaded. Look at it, and accept it "
                "again with `%durable trust` if it is right.",
                **facts,
            )
        return None

    def accept(self, entry: Entry) -> None:
        """Record that the bytes of an execution, as they are now, are trusted."""
        key = self.own(create=True)
        execution, digest = entry.header.execution, content_digest(entry)
        record = _Record(execution, digest, key.id, self._mac(key, execution, digest))
        try:
            self.directory.mkdir(exist_ok=True)
            files.write_file(self.directory / f"{execution}.json", msgspec.json.encode(record))
        except OSError as error:
            raise files.unusable("record the trust in", self.directory, error) from error

    def _read(self, execution: str) -> _Record | None:
        try:
            return msgspec.json.decode((self.directory / f"{execution}.json").read_bytes(), type=_Record)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _is_mine(self, record: _Record, key: Key) -> bool:
        return record.key == key.id and record.mac == self._mac(key, record.execution, record.digest)

    @staticmethod
    def _mac(key: Key, execution: str, digest: str) -> str:
        return mac_text(key.secret, b"jupyter-trusted!", f"{execution} {digest}".encode()).decode()


def content_digest(entry: Entry) -> str:
    """Digest of the bytes of an execution's journal, or of its stub, which names the MAC of the folded rows."""
    return blake2b(entry.path.read_bytes(), digest_size=32).hexdigest()
