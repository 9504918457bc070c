"""Which steps an exception came out of: only these are tried again when the run is resumed."""

from __future__ import annotations


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
