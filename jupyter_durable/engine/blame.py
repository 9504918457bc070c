"""What an error is about: the steps it came out of (only these are tried again on resume), what a call differs in."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from jupyter_durable.call import Branch, Execute, Stop, Verdict
from jupyter_durable.entries import Entry


def with_difference(verdict: Verdict, differs: Callable[[Entry], str]) -> Verdict:
    """A verdict that says in what a call of the same name had asked for something else.

    Args:
        verdict: what replay said.
        differs: gives a sentence about a recorded entry; empty if nothing can be said.
    """
    if isinstance(verdict, Stop) and verdict.entries and (said := differs(verdict.entries[-1])):
        return msgspec.structs.replace(verdict, message=f"{verdict.message} {said}")
    if isinstance(verdict, Branch) and verdict.entry is not None and (said := differs(verdict.entry)):
        return msgspec.structs.replace(verdict, reason=f"{verdict.reason}: {said.rstrip('.')}")
    if isinstance(verdict, Execute) and verdict.instead_of is not None and (said := differs(verdict.instead_of)):
        return msgspec.structs.replace(verdict, why=f"{verdict.why}: {said.rstrip('.')}")
    return verdict


def mark_failure(error: BaseException, seq: int) -> None:
    """Remember on an exception which step it came out of first."""
    if not hasattr(error, "__durable_step__"):
        try:
            error.__durable_step__ = seq  # type: ignore[attr-defined]
        except AttributeError:
            return  # an exception class with slots: its failure is then tried again like one nobody owns


def causes(error: BaseException) -> list[int]:
    """Steps (seq of their intent) whose failure is this exception: itself, its explicit cause, members of a group.

    The implicit ``__context__`` never counts: it is what was being handled, not what failed.
    """
    found: list[int] = []
    seen: set[int] = set()
    todo: list[BaseException] = [error]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        seq = getattr(one, "__durable_step__", None)
        if seq is not None:
            found.append(seq)
        if one.__cause__ is not None:
            todo.append(one.__cause__)
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions
    return sorted(found)
