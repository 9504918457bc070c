"""Child runs in a history: their paths, and which of them a step lies in. Pure."""

from __future__ import annotations

from jupyter_durable.call import RUN
from jupyter_durable.entries import Entry
from jupyter_durable.history import History
from jupyter_durable.keys import Key, inner_scope, parent_scope


def children_of(history: History) -> dict[str, Entry]:
    """The child runs of a history by the scope that each opens, in the order in which they began."""
    entries = sorted((e for e in history.entries.values() if e.kind == RUN), key=lambda e: e.begun)
    return {inner_scope(e.key): e for e in entries}


def was_cancelled(child: Entry) -> bool:
    """Whether a child run has ended because somebody cancelled it, or its parent did."""
    by_person = child.state == "failed" and child.error is not None and child.error.type.endswith("ChildCancelled")
    return by_person or child.state == "cancelled"


def path_of(children: dict[str, Entry], scope: str) -> str:
    """The path of the innermost child run that a scope is, or lies in; empty for the run itself.

    Children of one name in different tasks have the same path; those of one place are told apart by their number.

    Args:
        children: of the history, by scope.
        scope: such as a step's.
    """
    names: list[str] = []
    while scope:
        if (child := children.get(scope)) is not None:
            names.append(part_of(child.key))
        scope = parent_scope(scope)
    return "/".join(reversed(names))


def part_of(key: Key) -> str:
    """What a child run adds to a path: its name, and its number among those of one name and place.

    >>> part_of(Key("", "page", "", 0)), part_of(Key("", "page", "", 1))
    ('page', 'page#1')
    """
    return key.name if key.n == 0 else f"{key.name}#{key.n}"


def innermost(children: dict[str, Entry], scope: str) -> Entry | None:
    """The innermost child run that a scope is, or lies in."""
    while scope and scope not in children:
        scope = parent_scope(scope)
    return children.get(scope)


def inside_of(history: History, scope: str) -> list[Entry]:
    """The entries that lie in a scope, however deep."""
    return [
        entry
        for each, entries in history.scopes.items()
        if each == scope or each.startswith(f"{scope}/")
        for entry in entries
    ]
