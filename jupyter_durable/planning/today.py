"""What today's notebook says of the steps that history holds: their options, and whether their code is the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from jupyter_durable.call import Call, Place
from jupyter_durable.engine.steps import StepSpec
from jupyter_durable.entries import Entry
from jupyter_durable.evidence import EvidenceBook
from jupyter_durable.planning.edits import Sight

CHANGED = "changed"
"""Stands for evidence that is not that of history, where it cannot be computed before the cell has run."""


class Today:
    """See the module.

    Args:
        namespace: the notebook's variables.
        book: evidence, as an execution that began now would see it.
        binds: names that the cell itself binds or changes.
    """

    def __init__(self, namespace: Mapping[str, Any], book: EvidenceBook, binds: frozenset[str]) -> None:
        self._book = book
        self._binds = binds
        self._specs: dict[str, StepSpec] = {}
        self._variables: dict[str, set[str]] = {}
        self.changed: frozenset[str] = frozenset()
        """Names that an edit of the cell gives another meaning."""
        self.not_seen: dict[str, None] = {}
        """Steps whose code is taken as unchanged, since it cannot be seen before the cell runs."""
        for names, spec in _steps_in(namespace):
            self._specs[spec.name] = spec
            self._variables.setdefault(spec.name, set()).update(names)
        self._functions = {
            name: value for name, value in list(namespace.items()) if isinstance(value, FunctionType)
        }  # fmt: skip

    def sight(self) -> Sight:
        """What helps to find the statements that asked recorded steps."""
        functions = self._functions.items()
        return Sight(
            variables=self._variables,
            asynchronous=frozenset(name for name, spec in self._specs.items() if spec.is_async),
            reached={name: _functions_of(self._book, value) for name, value in functions if _is_plain(value)},
        )

    def call(self, entry: Entry, place: Place) -> Call:
        """The call that would ask for an entry again."""
        key, spec = entry.key, self._specs.get(entry.key.name)
        if entry.kind != "step" or spec is None:
            evidence = self._of_cell(entry) if entry.evidence else ""
            return Call(place, key.name, key.digest, key.n, evidence, entry.kind, entry.pure)
        evidence = self._evidence(entry, spec)
        return Call(
            place, key.name, key.digest, key.n, evidence, entry.kind, spec.pure, spec.at_most_once, spec.rerun,
            spec.on_code_change,
        )  # fmt: skip

    def _of_cell(self, entry: Entry) -> str:
        """Evidence of a step that the notebook does not know (yet), or of a framework's tool."""
        name = entry.key.name.partition(".")[0]
        if name in self.changed:
            return CHANGED
        self.not_seen[entry.key.name] = None
        return entry.evidence

    def _evidence(self, entry: Entry, spec: StepSpec) -> str:
        variables = self._variables[spec.name]
        if variables & self._binds:  # the cell defines it: what lies there is of an earlier execution
            if variables & self.changed:
                return CHANGED
            return entry.evidence
        evidence = self._book.of(spec.fn)
        digest = f"{evidence.digest}@{spec.version}" if spec.version else evidence.digest
        if not evidence.of_cell or digest == entry.evidence:
            return digest
        if evidence.of_cell & self.changed:
            return CHANGED
        self.not_seen[entry.key.name] = None
        return entry.evidence


def _steps_in(namespace: Mapping[str, Any]) -> Iterator[tuple[set[str], StepSpec]]:
    """The steps of a notebook, and the names by which code calls them."""
    for name, value in list(namespace.items()):
        spec = _spec_of(value)
        if spec is not None:
            yield {name}, spec
        elif isinstance(value, ModuleType | type) and not name.startswith("_"):
            for attribute, inner in list(vars(value).items()):
                inner_spec = _spec_of(inner)
                if inner_spec is not None:
                    yield {attribute}, inner_spec


def _spec_of(value: Any) -> StepSpec | None:
    if not isinstance(value, FunctionType):
        return None
    spec = value.__dict__.get("__durable_spec__")
    return spec if isinstance(spec, StepSpec) else None


def _is_plain(value: FunctionType) -> bool:
    return value.__dict__.get("__durable_spec__") is None and value.__globals__.get("__name__") in (None, "__main__")


def _functions_of(book: EvidenceBook, function: FunctionType) -> frozenset[str]:
    """Names of functions that a notebook function reaches."""
    parts = book.of(function).parts
    return frozenset(part.removeprefix("fn:").rpartition(".")[2] for part in parts if part.startswith("fn:"))
