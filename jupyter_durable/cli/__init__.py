"""``jupyter durable``: the words of an operator in a shell.

Whatever happens, a user sees one sentence and no traceback: on stderr with exit code 1, or 2 if the command line
itself cannot be meant. With ``--json`` the sentence is ``{"error": CLASS, "message": TEXT}`` on stdout, so that a
program always reads one JSON object there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from jupyter_durable.cli.arguments import PROGRAM, WrongArguments, build_parser

TRACEBACK_VARIABLE = "JUPYTER_DURABLE_TRACEBACK"
"""Environment variable: set, an error that nobody foresaw shows where it comes from."""

_INTERRUPTED = 130
_BROKEN_PIPE = 141
"""Exit codes of a shell for a program that SIGINT or SIGPIPE has ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        argv: the words after ``jupyter durable``; default: those of this process.

    Returns:
        The exit code: 0, 1 for an error (or for a problem that ``doctor`` found), 2 for a wrong command line.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _forgiving_streams()
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def _run(words: list[str]) -> int:
    from jupyter_durable.errors import DurableError

    as_json = "--json" in words
    try:
        parser = build_parser()
        args = parser.parse_args(words)
        if args.version:
            print(_version())
            return 0
        if args.command is None:
            parser.print_help(sys.stderr)
            return 2
        from jupyter_durable.cli.commands import WORDS
        from jupyter_durable.cli.printing import Failed
    except WrongArguments as error:
        return _wrong(error, as_json)
    except SystemExit as end:  # --help
        return end.code if isinstance(end.code, int) else 0
    try:
        return WORDS[args.command](args)
    except WrongArguments as error:
        return _wrong(error, as_json)
    except DurableError as error:
        return _fail(type(error).__name__, str(error), as_json)
    except Failed as error:
        return _fail(error.kind, str(error), as_json)
    except BrokenPipeError:
        raise
    except OSError as error:
        what = f"{error.strerror or error}: {error.filename}" if error.filename else f"{error.strerror or error}"
        return _fail(type(error).__name__, f"The system refused: {what}.", as_json)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        told = (
            f"`{PROGRAM} {args.command}` met an error that nobody foresaw ({type(error).__name__}: {error}). Please "
            f"report it; with {TRACEBACK_VARIABLE}=1 it shows where it comes from."
        )
        return _fail(type(error).__name__, told, as_json)


def _wrong(error: WrongArguments, as_json: bool) -> int:
    from jupyter_durable.cli.tables import sentence

    if as_json:
        print(json.dumps({"error": "UsageError", "message": error.message}))
    else:
        if error.usage:
            print(error.usage.rstrip(), file=sys.stderr)
        print(f"{PROGRAM}: {sentence(error.message)}", file=sys.stderr)
    return 2


def _fail(kind: str, message: str, as_json: bool) -> int:
    from jupyter_durable.cli.tables import sentence

    if as_json:
        print(json.dumps({"error": kind, "message": message}))
    else:
        print(sentence(message), file=sys.stderr)
    return 1


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("jupyter_durable")
    except metadata.PackageNotFoundError:
        return "unknown (jupyter_durable is not installed here)"


def _forgiving_streams() -> None:
    """A terminal whose encoding lacks a character shows its code instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _forget_stdout() -> None:
    """The reader has gone; what Python still wants to write at its end must not fail again."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        pass  # stdout is no file, as in a test


__all__ = ["build_parser", "main"]
