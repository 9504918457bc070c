"""Signals to runs, posted from outside: a small signed file each, ``inbox/<run>/<digest of its id>.json``.

The owner of a branch alone writes its journal, so whoever answers a request leaves the answer here, and the run takes
it from here and records that it did. A file is written whole or not at all, and never changed.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from jupyter_durable.errors import LogUntrusted, UsageError
from jupyter_durable.event_data import Signal
from jupyter_durable.log import files
from jupyter_durable.log.line import ROOT, mac_text
from jupyter_durable.log.trusted import Keyring

_FILE = re.compile(r"[0-9a-f]{16}\.json", re.ASCII)
_RUN = re.compile(r"[0-9a-f]{16}", re.ASCII)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Signal).decode


class Inbox:
    """The signals of one log."""

    def __init__(self, directory: Path, keys: Keyring) -> None:
        self.directory = directory / "inbox"
        self._keys = keys
        self._read: dict[str, dict[str, Signal | None]] = {}
        """Run -> file name -> what it holds; ``None`` for what is not signed with the user's key."""

    def post(self, signal: Signal) -> bool:
        """See `log.base.EventLog.post`."""
        if not _RUN.fullmatch(signal.run):
            raise UsageError(f"`{signal.run[:40]}` is not the id of a run.")
        folder = self.directory / signal.run
        digest = blake2b(signal.id.encode(), digest_size=8).hexdigest()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            text = _encode(signal).replace(b"\n", b" ")
            mac = mac_text(self._keys.own(create=False).secret, ROOT.mac, text)
            return files.write_new(folder / f"{digest}.json", mac + b"\n" + text + b"\n")
        except OSError as error:
            raise files.unusable("write to the inbox of", self.directory.parent, error) from error

    def signals(self, run: str) -> list[Signal]:
        """See `log.base.EventLog.signals`."""
        known = self._read.setdefault(run, {})
        with suppress(OSError):
            names = sorted(path.name for path in (self.directory / run).iterdir() if _FILE.fullmatch(path.name))
            for name in names:
                if name not in known:
                    known[name] = self._load(self.directory / run / name)
            mine = [signal for name in names if (signal := known[name]) is not None and signal.run == run]
            return sorted(mine, key=lambda signal: (signal.sent, signal.id))
        return []

    def posted(self, run: str) -> int:
        """See `log.base.EventLog.posted`."""
        try:
            # The time alone is too coarse: what is posted within the same tick as a look would never be seen.
            return hash((os.stat(self.directory / run).st_mtime_ns, len(os.listdir(self.directory / run))))
        except OSError:
            return 0

    def damage(self) -> list[str]:
        """Sentences about signals that are not used."""
        said = []
        for folder in sorted(self.directory.iterdir()) if self.directory.is_dir() else ():
            if _RUN.fullmatch(folder.name):
                self.signals(folder.name)
                said += [
                    f"{folder / name} is not used: it is damaged, or signed with another key than yours."
                    for name, signal in self._read[folder.name].items()
                    if signal is None
                ]
        return said

    def _load(self, path: Path) -> Signal | None:
        """A signal, if the user's key has signed it."""
        mac, _, text = path.read_bytes().rstrip(b"\n").partition(b"\n")
        try:
            if mac != mac_text(self._keys.own().secret, ROOT.mac, text):
                return None
            return _decode(text)
        except (LogUntrusted, msgspec.DecodeError, UnicodeDecodeError):
            return None
