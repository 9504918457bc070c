"""Where an edited cell first differs from the recorded one, and which recorded steps were asked before that. Pure.

The main flow of a cell runs its statements one after the other. So what was asked by a statement in front of the first
difference will be asked again just so, and of what comes later that cannot be known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher

import msgspec

from jupyter_durable.entries import Entry
from jupyter_durable.source import Statement


class Edit(msgspec.Struct):
    """What differs between the recorded cell and that of today."""

    old: list[Statement]
    first: int
    """Index of the first recorded statement that differs, or that reads what differs; their number if none does."""
    names: frozenset[str]
    """Names that are defined, bound or changed by what differs."""
    what: str
    """The difference in words; empty if there is none."""

    @property
    def nothing(self) -> bool:
        """Whether no statement differs: every recorded one is still there, and at most some follow."""
        return self.first >= len(self.old) > 0


def edit_of(old: list[Statement], new: list[Statement], inputs: Iterable[str] = ()) -> Edit:
    """Compare two versions of a cell.

    Definitions and imports ask nothing by themselves: what differs there counts from the first statement on that
    mentions it.

    Args:
        old: the recorded statements.
        new: those of today.
        inputs: notebook variables and functions whose values differ.
    """
    first, what = len(old), ""
    names: set[str] = set()
    changed_definitions = set(inputs)
    matcher = SequenceMatcher(None, [s.text for s in old], [s.text for s in new], autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            continue
        differing = [*old[i1:i2], *new[j1:j2]]
        for statement in differing:
            names |= statement.binds
            if statement.defines:
                changed_definitions |= statement.binds
        if not what and i1 <= first and not all(statement.defines for statement in differing):
            first = i1
            what = f"line {new[j1].first} is new or changed" if j1 < j2 else f"line {old[i1].first} is gone"
    touched = _closure(changed_definitions, [*old, *new])
    for index, statement in enumerate(old[:first]):
        if not statement.defines and (met := sorted(statement.names & touched)):
            first, what = index, f"line {statement.first} reads `{met[0]}`, which changed"
            break
    return Edit(old, first, frozenset(names | touched), what)


def _closure(names: set[str], every: list[Statement]) -> set[str]:
    """These names, and those of definitions that mention them."""
    found = set(names)
    more = True
    while more:
        reached = {n for s in every if s.defines and s.names & found for n in s.binds}
        more = not reached <= found
        found |= reached
    return found


class Sight(msgspec.Struct):
    """What helps to find the statement that asked a step."""

    lines: dict[int, int] = msgspec.field(default_factory=dict)
    """Id of an entry -> index of its statement, for model calls of which the line is known."""
    variables: dict[str, set[str]] = msgspec.field(default_factory=dict)
    """Name of a step -> names by which the notebook calls it."""
    asynchronous: frozenset[str] = frozenset()
    """Names of asynchronous steps: where they are not awaited at once, they begin later than they are called."""
    reached: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    """Name of a notebook function -> names of functions that it calls, directly or not."""


def asked_before(edit: Edit, entries: list[Entry], sight: Sight) -> set[int]:
    """Which entries were certainly asked by statements in front of the first difference.

    Args:
        edit: the difference.
        entries: recorded steps in the order in which they began, those inside of steps left out.
        sight: what is known of them.

    Returns:
        Their ids.
    """
    if edit.nothing:
        return {id(entry) for entry in entries}
    if edit.first == 0:
        return set()
    candidates: dict[int, list[int]] = {}
    """Id of an entry -> indexes of the statements that may have asked it, in order; absent where nobody knows."""
    by_name: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if id(entry) in sight.lines:
            candidates[id(entry)] = _of_line(edit.old, sight.lines[id(entry)], sight)
        else:
            by_name[entry.key.name].append(entry)
    for name, named in by_name.items():
        candidates.update(_of_name(edit.old, name, named, sight))
    found: set[int] = set()
    bound = len(edit.old) - 1
    """The last statement that may have been running when the entry began: none behind that of a later entry."""
    for entry in reversed(entries):
        possible = [index for index in candidates.get(id(entry), ()) if index <= bound]
        latest = possible[-1] if possible else bound
        if latest < edit.first:
            found.add(id(entry))
        if not entry.key.scope:  # a task goes on beside later statements
            bound = latest
    return found


def _of_line(old: list[Statement], index: int, sight: Sight) -> list[int]:
    """The statement of a line. If that only defines a function: those that call the function."""
    statement = old[index]
    if not statement.defines:
        return [index]
    return [i for i, _ in _using(set(statement.binds), old, sight) or ()]


def _of_name(old: list[Statement], name: str, named: list[Entry], sight: Sight) -> dict[int, list[int]]:
    words = sight.variables.get(name, set()) | {name, name.rpartition(".")[2]}
    using = _using(words, old, sight)
    if using is None or (name in sight.asynchronous and any(lead & old[i].unawaited for i, lead in using)):
        return {}
    found: dict[int, list[int]] = {}
    waiting = list(named)
    for at, (index, leading) in enumerate(using):
        if not leading <= words & old[index].calls.keys():
            # In a loop, or by way of a function: any number of times.
            return found | {id(entry): [i for i, _ in using[at:]] for entry in waiting}
        count = sum(old[index].calls[word] for word in leading)
        found.update((id(entry), [index]) for entry in waiting[:count])
        del waiting[:count]
    return found


def _using(words: set[str], old: list[Statement], sight: Sight) -> list[tuple[int, set[str]]] | None:
    """Statements that call one of these words, directly or by way of functions, and the names by which they do.

    Returns:
        ``None`` if one of them is handed to somebody, who may call it at any time after that.
    """
    found = [(i, _leading_to(words, s, old, sight)) for i, s in enumerate(old) if not s.defines]
    found = [(i, leading) for i, leading in found if leading]
    return None if any(not leading <= old[i].called for i, leading in found) else found


def _leading_to(words: set[str], statement: Statement, old: list[Statement], sight: Sight) -> set[str]:
    """Names in a statement by which one of these words is reached."""
    every = statement.names | statement.attributes
    return {name for name in every if words & _reached([name], old, sight)}


def _reached(names: list[str], old: list[Statement], sight: Sight) -> set[str]:
    """These names, and those that the functions among them mention."""
    definitions: Mapping[str, Statement] = {name: s for s in old if s.defines for name in s.binds}
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += sight.reached.get(name, ())
        if name in definitions:
            waiting += definitions[name].names | definitions[name].attributes
    return found
