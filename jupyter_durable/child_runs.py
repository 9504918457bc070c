"""Child runs in a history: their paths, and which of them a step lies in. Pure."""

from __future__ import annotations

from jupyter_durable.call import RUN
from jupyter_durable.entries import Entry
from jupyter_durable.history import History
from jupyter_durable.keys import inner_scope, parent_scope


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

    Args:
        children: of the history, by scope.
        scope: such as a step's.
    """
    names: list[str] = []
    while scope:
        if (child := children.get(scope)) is not None:
            names.append(child.key.name)
        scope = parent_scope(scope)
    return "/".join(reversed(names))


def inside_of(history: History, scope: str) -> list[Entry]:
    """The entries that lie in a scope, however deep."""
    return [
        entry
        for each, entries in history.scopes.items()
        if each == scope or each.startswith(f"{scope}/")
        for entry in entries
    ]
