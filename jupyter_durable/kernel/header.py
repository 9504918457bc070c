"""The first line of a durable cell: ``%%durable [NAME] [flags]`` or ``#| durable: NAME [flags]``. Pure.

`FLAGS` is the one table of flags: the parser, the help of ``%durable?`` and the documentation read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jupyter_durable.engine.flags import Flags
from jupyter_durable.errors import UsageError

MAGIC = "%%durable"

LONGEST_NAME = 200

MOST_SAMPLES = 1000


@dataclass(frozen=True, slots=True)
class FlagRule:
    """One flag of a durable cell."""

    field: str
    """The field of `Flags` that it sets."""
    argument: str
    """What stands after it, as help shows it; empty for a switch."""
    help: str
    choices: tuple[str, ...] = ()
    """The only values that it takes; empty for any."""
    units: tuple[str, ...] = ()
    """Words that may follow the value and belong to it."""


FLAGS: dict[str, FlagRule] = {
    "--fresh": FlagRule("fresh", "", "start a new branch with nothing reused"),
    "--from": FlagRule(
        "from_step", "STEP", "keep what comes before this step (name, name#n or number), execute the rest again"
    ),
    "--strict": FlagRule("strict", "", "make any difference an error instead of a branch"),
    "--replay-only": FlagRule("replay_only", "", "execute nothing: an error where history has no result"),
    "--reuse": FlagRule(
        "reuse", "all|pure|none", "after an edit: which finished steps keep their results", ("all", "pure", "none")
    ),
    "--shared": FlagRule("shared", "", "join the run of this name with those of other notebooks of the same log"),
    "--off": FlagRule("off", "", "run the cell plainly, without a log"),
    "--branch": FlagRule("branch", "NAME", "take up this branch"),
    "--durability": FlagRule(
        "durability",
        "power|process",
        "what recorded steps survive: loss of power (the default), or only the death of the kernel",
        ("power", "process"),
    ),
    "--budget": FlagRule(
        "budget",
        "LIMIT",
        "stop before the branch spends more: 2usd, 50k tokens, 40 steps",
        units=("usd", "tokens", "steps"),
    ),
    "--grace": FlagRule(
        "grace", "DURATION", "how long a run that waits for somebody keeps its cell running: 10m, 0s; then it parks"
    ),
    "--sample": FlagRule("sample", "K", "run the cell as K independent samples, each a branch of its own"),
    "--plan": FlagRule("plan", "", "say what the cell would replay and what it would buy; run nothing of it"),
}
"""Flag -> what it does, in the order in which help shows them."""

_CONTRADICTIONS = (
    ("--branch", "--fresh", "one takes up a branch that is there, the other makes a new one"),
    ("--branch", "--from", "one takes up a branch that is there, the other makes a new one"),
    ("--from", "--replay-only", "one executes steps again, the other executes nothing"),
    ("--sample", "--from", "each sample is fresh, and keeps nothing of another branch"),
    ("--sample", "--branch", "each sample is a branch of its own"),
    ("--sample", "--reuse", "each sample is fresh, and has nothing to reuse"),
    ("--sample", "--plan", "plan the cell without `--sample`: each sample that is not there yet buys all of it"),
    ("--plan", "--off", "a cell without a log has no history to plan from"),
    ("--reuse", "--fresh", "a fresh branch has nothing to reuse"),
)

_TOKEN = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+|\S+""")
_QUOTED = re.compile(r""""([^"]*)"|'([^']*)'""")
_PRAGMA = re.compile(r"#\|\s*durable\s*(?::(?P<text>.*))?$")


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line of a durable cell says."""

    name: str
    """Name of the run; empty if the cell gives none."""
    flags: Flags


def find(lines: Sequence[str]) -> tuple[int, str] | None:
    """Find the header of a cell.

    Args:
        lines: lines of the cell, with or without their line feeds.

    Returns:
        The index of its line, and what it says after ``%%durable``; ``None`` for an ordinary cell.

    >>> find(["", "%%durable report --fresh", "x = 1"])
    (1, 'report --fresh')
    >>> find(["#| label: fig", "#| durable: report", "x = 1"])
    (1, 'report')
    >>> find(["# a comment", "%%durable report"]), find(["%%durable?"])
    (None, None)
    """
    for index, line in enumerate(lines):
        text = line.strip()
        if not text:
            continue
        if text.startswith(MAGIC):
            rest = text.removeprefix(MAGIC)
            return (index, rest.strip()) if not rest or rest[0].isspace() else None
        if not text.startswith("#|"):
            return None
        pragma = _PRAGMA.match(text)
        if pragma is not None:
            return index, (pragma["text"] or "").strip()
    return None


def parse(text: str) -> Header:
    """Read what a header says.

    Args:
        text: the line without ``%%durable``.

    Raises:
        UsageError: an unknown flag, a bad name, a contradiction; the message lists the flags.

    >>> parse("report --from search#2").flags.from_step
    'search#2'
    >>> parse("'my report' --reuse=pure").name
    'my report'
    """
    names: list[str] = []
    given: dict[str, Any] = {}
    tokens = _tokens(text)
    while tokens:
        token = tokens.pop(0)
        if token.startswith("#"):
            break
        if token.startswith("-"):
            _flag(token, tokens, given)
        else:
            names.append(_name(token))
    if len(names) > 1:
        raise UsageError(
            f"A run has one name; here are {len(names)}: {_listed(names)}. Put a name with spaces in quotes."
        )
    _refuse_contradictions(given, names)
    values = {FLAGS[flag].field: value for flag, value in given.items()}
    if "sample" in values:
        values["sample"] = _samples(values["sample"])
    return Header(names[0] if names else "", Flags(**values))


def flags_help(indent: str = "    ") -> str:
    """The table of flags as text.

    >>> print(flags_help().splitlines()[0])
        --fresh                    start a new branch with nothing reused
    """
    width = max(len(_usage(flag)) for flag in FLAGS)
    return "\n".join(f"{indent}{_usage(flag):<{width}} {rule.help}" for flag, rule in FLAGS.items())


def nearest(word: str, known: Sequence[str]) -> str:
    """A hint at the word that was probably meant, with a blank before it; empty if none is near.

    >>> nearest("--frsh", ["--fresh", "--off"])
    ' Did you mean `--fresh`?'
    """
    from difflib import get_close_matches

    found = get_close_matches(word, known, 1)
    return f" Did you mean `{found[0]}`?" if found else ""


def _tokens(text: str) -> list[str]:
    tokens: list[str] = _TOKEN.findall(text)
    for token in tokens:
        if _QUOTED.sub("", token).count('"') + _QUOTED.sub("", token).count("'"):
            raise UsageError(f"A quotation mark of `{MAGIC} {text}` has no partner.")
    return tokens


def _flag(token: str, rest: list[str], given: dict[str, Any]) -> None:
    flag, equals, value = token.partition("=")
    rule = FLAGS.get(flag)
    if rule is None:
        raise UsageError(
            f"`{MAGIC}` has no flag `{flag}`.{nearest(flag, list(FLAGS))} Its flags: {', '.join(map(_usage, FLAGS))}."
        )
    if flag in given:
        raise UsageError(f"`{flag}` is given twice.")
    if not rule.argument:
        if equals:
            raise UsageError(f"`{flag}` takes no value.")
        given[flag] = True
        return
    if not equals:
        value = rest.pop(0) if rest and not rest[0].startswith(("--", "# ")) else ""
    while rule.units and rest and (value.endswith(",") or rest[0].rstrip(",") in rule.units):
        value = f"{value} {rest.pop(0)}"
    value = _unquoted(value)
    if not value:
        raise UsageError(f"`{flag}` needs a value: `{_usage(flag)}` ({rule.help}).")
    if rule.choices and value not in rule.choices:
        raise UsageError(f"`{flag}` is one of {_listed(rule.choices)}, not `{value}`.{nearest(value, rule.choices)}")
    given[flag] = value


def _samples(text: str) -> int:
    if not re.fullmatch("[0-9]{1,4}", text, re.ASCII) or not 1 <= int(text) <= MOST_SAMPLES:
        raise UsageError(f"`--sample` takes a number of samples from 1 to {MOST_SAMPLES}, not `{text}`.")
    return int(text)


def _name(token: str) -> str:
    name = _unquoted(token)
    quoted = name != token
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"The name of a run is 1 to {LONGEST_NAME} printable characters.")
    if not quoted and not all(c.isalnum() or c in "-_." for c in name):
        raise UsageError(
            f"`{name}` cannot be the name of a run as it stands: letters, digits, `-`, `_` and `.` need no quotes, "
            f'anything else does: `{MAGIC} "{name}"`.'
        )
    return name


def _refuse_contradictions(given: dict[str, Any], names: list[str]) -> None:
    for one, other, why in _CONTRADICTIONS:
        if one in given and other in given:
            raise UsageError(f"`{one}` and `{other}` exclude each other: {why}.")
    if "--shared" in given and not names:
        raise UsageError(f"`--shared` joins runs by their name, so it needs one: `{MAGIC} NAME --shared`.")


def _unquoted(text: str) -> str:
    return _QUOTED.sub(lambda found: found[1] if found[1] is not None else found[2], text)


def _usage(flag: str) -> str:
    argument = FLAGS[flag].argument
    return f"{flag} {argument}" if argument else flag


def _listed(words: Sequence[str], quote: Callable[[str], str] = "`{}`".format) -> str:
    return ", ".join(quote(word) for word in words)
