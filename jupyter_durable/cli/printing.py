"""How the words of the command line answer: one JSON object for programs, or a text for people."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from jupyter_durable.cli.tables import sentence

Arguments = argparse.Namespace


class Failed(Exception):
    """A command could not do its work for a reason that is not one of our errors; the text is a sentence.

    Attributes:
        kind: name of the class of the reason.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def answer(args: Arguments, shape: dict[str, Any], text: Callable[[], str]) -> None:
    """Print the shape as JSON, or the text that is made of it."""
    if args.json:
        print(json.dumps(shape, indent=2))
    else:
        print(text())


def remark(text: str) -> None:
    """Say something beside the answer, on stderr, so that it does not mix with what programs read."""
    print(sentence(text), file=sys.stderr)
