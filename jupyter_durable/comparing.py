"""Two branches of a run, step by step: which step of one is which of the other, and what differs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from jupyter_durable import errors
from jupyter_durable.branches import BranchView
from jupyter_durable.entries import Entry
from jupyter_durable.event_data import Payload
from jupyter_durable.spoken import said

Verdict = Literal["equal", "value", "status", "arguments", "only_a", "only_b"]

WORDS: dict[Verdict, str] = {
    "equal": "equal",
    "value": "other value",
    "status": "other end",
    "arguments": "other arguments",
    "only_a": "only in A",
    "only_b": "only in B",
}
"""A verdict as people read it."""

NO_DIGEST = b""
"""Where there is no value."""


class Step(Protocol):
    """A step of a branch, with what tells its value from others."""

    @property
    def entry(self) -> Entry:
        """The step as history knows it."""

    @property
    def value(self) -> bytes:
        """Its digest."""


S = TypeVar("S", bound=Step)


class Pair(msgspec.Struct, Generic[S], frozen=True):
    """A step of one branch and its like in the other."""

    a: S | None
    b: S | None
    verdict: Verdict


def digest(payload: Payload | None, kind: str = "") -> bytes:
    """What tells stored values apart: equal values have equal texts, or equal blobs; models have said the same.

    Args:
        payload: the stored value.
        kind: of the step; ``model`` for an answer of a model.

    >>> digest(Payload(data=msgspec.Raw(b"1"))) == digest(Payload(data=msgspec.Raw(b"2")))
    False
    """
    if payload is None:
        return NO_DIGEST
    if isinstance(payload.data, msgspec.Raw):
        text = bytes(payload.data)
        return blake2b((kind == "model" and said(text).encode()) or text, digest_size=12).digest()
    return (payload.blob or "").encode()


def text_of(payload: Payload | None, limit: int = 60, kind: str = "") -> str:
    """A stored value as its JSON text, an answer of a model as what it said; cut where it is long. Loads nothing.

    >>> text_of(Payload(data=msgspec.Raw(b'["a", "b"]'))), text_of(Payload(blob="7f", size=70_000))
    ('["a", "b"]', '(70000 bytes)')
    """
    if payload is None:
        return ""
    if not isinstance(payload.data, msgspec.Raw):
        return f"({payload.size} bytes)"
    data = bytes(payload.data)
    text = (" ".join(said(data).split()) if kind == "model" else "") or data.decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def origin_of(branch: BranchView, branches: list[BranchView]) -> BranchView:
    """The branch that another is compared with unasked: the one that it comes from, else the one before it.

    Raises:
        UsageError: there is no other.
    """
    origin = branch.first.origin
    others = [each for each in branches if each.branch != branch.branch]
    found = next((each for each in others if origin is not None and each.branch == origin.branch), None)
    if found is None and others:
        earlier = branches[: branches.index(branch)]
        found = earlier[-1] if earlier else others[-1]
    if found is None:
        raise errors.UsageError("The run has only one branch, so there is nothing to compare it with.")
    return found


def pair(a: Sequence[S], b: Sequence[S]) -> list[Pair[S]]:
    """The steps of both branches, matched: by key, then by name at the same place; in order of ``b``.

    Args:
        a: the steps of one branch in order of their starts.
        b: those of the other.
    """
    by_key = {step.entry.key: step for step in a}
    matched: dict[int, S] = {}
    taken: set[int] = set()
    for step in b:
        same = by_key.get(step.entry.key)
        if same is not None:
            matched[step.entry.begun] = same
            taken.add(same.entry.begun)
    waiting: dict[tuple[str, str, str], list[S]] = defaultdict(list)
    for step in reversed(a):
        if step.entry.begun not in taken:
            waiting[_place(step)].append(step)
    for step in b:
        if step.entry.begun not in matched and (rest := waiting.get(_place(step))):
            found = rest.pop()
            matched[step.entry.begun] = found
            taken.add(found.entry.begun)
    return _in_order(a, b, matched, taken)


def _place(step: Step) -> tuple[str, str, str]:
    """What a call of other arguments has in common with one: the tasks and steps around it by name, and its name."""
    scope = "/".join(element.partition(":")[0] for element in step.entry.key.scope.split("/"))
    return scope, step.entry.key.name, step.entry.kind


def _in_order(a: Sequence[S], b: Sequence[S], matched: dict[int, S], taken: set[int]) -> list[Pair[S]]:
    alone = [step for step in a if step.entry.begun not in taken]
    found: list[Pair[S]] = []
    place = 0
    for step in b:
        same = matched.get(step.entry.begun)
        while same is not None and place < len(alone) and alone[place].entry.begun < same.entry.begun:
            found.append(Pair(alone[place], None, "only_a"))
            place += 1
        found.append(Pair(same, step, "only_b" if same is None else _verdict(same, step)))
    return found + [Pair(step, None, "only_a") for step in alone[place:]]


def _verdict(a: Step, b: Step) -> Verdict:
    if a.entry.key != b.entry.key:
        return "arguments"
    if a.entry.state != b.entry.state:  # an adopted step has the state that it had where it comes from
        return "status"
    return "equal" if a.value == b.value else "value"
