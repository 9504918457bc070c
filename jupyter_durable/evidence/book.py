"""The evidence of step functions, as one execution sees it.

A global is looked at once, at its first use in the execution: what steps themselves change (a counter, a cache) must
not make their next call look edited, for on replay they will not have changed it. Only what the cell's own code
assigns is looked at anew on each call, for the cell assigns it again on replay.
"""

from __future__ import annotations

import builtins
import functools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

import msgspec

from jupyter_durable.evidence.own import Own, globals_of, of_class, of_function, short
from jupyter_durable.evidence.place import Place, is_code, is_ours, layers, name_of, step_function
from jupyter_durable.source import text_digest
from jupyter_durable.values.digest import comparable, digest

_MOST_ITEMS = 100
"""Functions are looked for in global lists, tuples and dicts of up to this many items, such as ``TOOLS``."""


class Evidence(msgspec.Struct, frozen=True):
    """What a step function depends on."""

    digest: str
    """12 characters over all parts."""
    parts: dict[str, str]
    """``code``, ``wrapper:NAME``, ``fn:NAME``, ``cls:NAME``, ``module:NAME``, ``var:NAME`` -> digest."""
    not_comparable: dict[str, str] = msgspec.field(default_factory=dict)
    """Globals that have no digest, with ``?TYPE``: worth a note, never a difference."""
    of_cell: frozenset[str] = frozenset()
    """Names that it reaches and the cell itself assigns: before the cell has run, nobody knows what they will be."""


class _Where:
    """The place of a global."""

    def __init__(self, namespace: dict[str, Any], name: str) -> None:
        self.key = (id(namespace), name)
        self.label = f"{namespace.get('__name__')}.{name}"


class _Walk(msgspec.Struct):
    """One walk over what a function reaches."""

    at_start: bool
    home: dict[str, Any] | None
    """Globals of the function itself: names of these are said without their module."""
    waiting: deque[tuple[str, Any, str]] = msgspec.field(default_factory=deque)
    parts: dict[str, str] = msgspec.field(default_factory=dict)
    not_comparable: dict[str, str] = msgspec.field(default_factory=dict)
    seen: set[int] = msgspec.field(default_factory=set)
    of_cell: set[str] = msgspec.field(default_factory=set)
    """Names of the cell that were met: if there are any, the next call must look again."""


class EvidenceBook:
    """Evidence of functions within one execution.

    Args:
        root: the folder whose modules are local; by default the working directory.
        cell: names that the cell's own code binds or changes (`source.names_bound` and `source.names_mutated`).
        left: what the last execution left of globals that only steps change: label -> (digest at its end, digest at
            its start), as given by `state`. A global that still has the digest of the end counts as that of the start.
    """

    def __init__(
        self, root: str | None = None, cell: Iterable[str] = (), left: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self.place = Place(root)
        self._cell = frozenset(cell)
        self._left = dict(left or {})
        self._own: dict[int, tuple[Any, Own]] = {}
        self._known: dict[tuple[Any, ...], tuple[list[Any], Evidence]] = {}
        self._first: dict[tuple[int, str], str] = {}
        self._changed: dict[tuple[int, str], dict[str, Any]] = {}
        self._kept: dict[tuple[int, str], tuple[Any, str]] = {}
        self._lock = threading.RLock()  # steps run in threads, and "once" means once for all of them

    def of(self, function: Callable[..., Any], at_start: bool = False) -> Evidence:
        """Evidence of a function, method, class, partial, callable object, or step wrapper.

        Args:
            function: what is called.
            at_start: leave out what the cell itself assigns: before its first line it is not there yet, or is what
                an earlier execution left.

        >>> book = EvidenceBook()
        >>> book.of(len).parts.keys()
        dict_keys(['code'])
        """
        inside = layers(function)
        # Code and globals are the key, and kept alive so that their ids stay theirs; closures may hold much data.
        anchors = [(each.__code__, each.__globals__) if isinstance(each, FunctionType) else (each,) for each in inside]
        key = (at_start, *(id(each) for anchor in anchors for each in anchor))
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                return known[1]
            walk = _Walk(at_start, _globals_of(inside[-1]))
            evidence = self._look(walk, inside)
            if not walk.of_cell:
                self._known[key] = (anchors, evidence)
            return evidence

    def _look(self, walk: _Walk, inside: list[Any]) -> Evidence:
        for each in inside[:-1]:
            name = each.__code__.co_qualname if isinstance(each, FunctionType) else name_of(each)
            self._visit(walk, f"wrapper:{name}", each)
        self._visit(walk, "code", inside[-1])
        while walk.waiting:  # the nearest first; and a stack of calls would end at Python's limit
            self._expand(walk, *walk.waiting.popleft())
        parts = dict(sorted(walk.parts.items()))
        text = "\n".join(f"{k}={v}" for k, v in parts.items())
        return Evidence(short(text), parts, walk.not_comparable, frozenset(walk.of_cell))

    def is_settled(self, function: Callable[..., Any]) -> bool:
        """Whether the evidence of a function stays as it is for the rest of this execution."""
        inside = layers(function)
        anchors = [(each.__code__, each.__globals__) if isinstance(each, FunctionType) else (each,) for each in inside]
        return (False, *(id(each) for anchor in anchors for each in anchor)) in self._known

    def changes(self, function: Callable[..., Any]) -> frozenset[str]:
        """Names of globals that the function's own code may change in place or bind anew."""
        subject = layers(function)[-1]
        if not self.place.holds(subject) or not isinstance(subject, FunctionType):
            return frozenset()
        return frozenset(self._read(subject).changes.difference(subject.__code__.co_freevars))

    def state(self) -> dict[str, tuple[str, str]]:
        """Globals that steps change, by label: digest now, and at the first use in this execution."""
        found = {}
        with self._lock:
            for where, namespace in self._changed.items():
                first = self._first.get(where)
                if first is not None and not first.startswith("?") and where[1] in namespace:
                    found[f"{namespace.get('__name__')}.{where[1]}"] = (comparable(namespace[where[1]]), first)
        return found

    def bound_digest(self, function: Callable[..., Any]) -> str | None:
        """Digest of what a callable carries with it: defaults, closure cells, a partial's arguments, an instance.

        They count as arguments, so they are looked at on each call. Only variables that the function itself changes
        (a counter in its closure, a default ``cache={}``) are looked at once.

        Returns:
            22 characters, or ``None`` if there is nothing of the kind.
        """
        if type(function) is FunctionType and not (
            function.__defaults__ or function.__kwdefaults__ or function.__closure__ or function.__dict__
        ):
            return None  # most steps, and asked for at each call
        with self._lock:
            items = list(self._bound(function, set()))
        return text_digest("\n".join(items)) if items else None

    # What is reached from a function.

    def _visit(self, walk: _Walk, key: str, value: Any, carried: str = "") -> None:
        """Note one function or class to be added, unless it was met before."""
        if id(value) not in walk.seen:
            walk.seen.add(id(value))
            walk.waiting.append((key, value, carried))

    def _expand(self, walk: _Walk, key: str, value: Any, carried: str) -> None:
        """Add one function or class, and note what it reaches."""
        local = self.place.holds(value)
        own = self._read(value) if local else Own(short(name_of(value)))
        walk.parts[key] = short(f"{own.digest}\n{carried}") if carried else own.digest
        for base in value.__bases__ if local and isinstance(value, type) else ():
            if self.place.holds(base):
                self._visit(walk, f"cls:{base.__qualname__}", base)
        namespace = _globals_of(value) if local else None
        if namespace is None:
            return
        for name in sorted(own.reads, key=lambda name: (not is_code(namespace.get(name)), name)):
            self._name(walk, namespace, name, own)  # code first, so that a function is called by its own name

    def _read(self, value: Any) -> Own:
        subject = value.__code__ if isinstance(value, FunctionType) else value
        known = self._own.get(id(subject))
        if known is None:
            own = of_function(value) if isinstance(value, FunctionType) else of_class(value)
            known = self._own[id(subject)] = (subject, own)
            namespace = _globals_of(value)
            free = value.__code__.co_freevars if isinstance(value, FunctionType) else ()
            for name in own.changes.difference(free):
                if namespace is not None:
                    self._changed[id(namespace), name] = namespace
        return known[1]

    def _name(self, walk: _Walk, namespace: dict[str, Any], name: str, own: Own) -> None:
        """Add what a global name stands for."""
        label = name if namespace is walk.home else f"{namespace.get('__name__')}.{name}"
        of_cell = name in self._cell and namespace.get("__name__") in (None, "__main__")
        if of_cell:
            walk.of_cell.add(name)
        if name not in namespace or (of_cell and walk.at_start):
            return
        value = namespace[name]
        if isinstance(value, ModuleType):
            self._module(walk, label, name, value, own)
        elif value is not getattr(builtins, name, walk):
            self._value(walk, label, value, _Where(namespace, name), look_again=of_cell)

    def _module(self, walk: _Walk, label: str, name: str, module: ModuleType, own: Own) -> None:
        if module.__name__.partition(".")[0] == __name__.partition(".")[0]:
            return
        walk.parts[f"module:{label}"] = short(module.__name__)
        if not self.place.has_module(module.__name__):
            return
        for dotted in sorted(own.dotted):
            first, *rest = dotted.split(".")
            value: Any = module
            if first == name:
                while rest and isinstance(value, ModuleType) and self.place.has_module(value.__name__):
                    holder, attribute = value, rest.pop(0)
                    value = getattr(holder, attribute, None)
                if not isinstance(value, ModuleType) and value is not None:
                    self._value(walk, f"{holder.__name__}.{attribute}", value, _Where(vars(holder), attribute))

    def _value(self, walk: _Walk, label: str, value: Any, where: _Where | None, look_again: bool = False) -> None:
        if step_function(value) is None and is_ours(value):
            return
        if is_code(value):
            carried = self._carried_first(value)
            for each in layers(value):
                self._visit(walk, ("cls:" if isinstance(each, type) else "fn:") + label, each, carried)
                label, carried = label + "'", ""  # what lies inside a wrapper
            return
        text = self._seen(value, where, look_again)
        if not text.startswith("?"):
            walk.parts[f"var:{label}"] = text
        else:
            walk.not_comparable[label] = text
        for name, each in _functions_in(value):
            self._value(walk, f"{label}{name}", each, None)
        if self.place.holds(type(value)):
            self._visit(walk, f"cls:{type(value).__qualname__}", type(value))

    def _seen(self, value: Any, where: _Where | None, look_again: bool) -> str:
        """Digest of a global: of its first use, unless the cell assigns it and no step changes it."""
        if where is None or (look_again and where.key not in self._changed):
            return comparable(value)
        text = self._first.get(where.key)
        if text is None:
            text = comparable(value)
            at_end, at_start = self._left.get(where.label, ("", ""))
            text = self._first[where.key] = at_start if text == at_end else text
        return text

    # What a function carries.

    def _carried_first(self, value: Any) -> str:
        """What a helper carries, looked at once."""
        key = (id(value), "")
        if key not in self._kept:
            self._kept[key] = (value, "")  # for a helper that reaches itself through what it carries
            self._kept[key] = (value, "\n".join(self._bound(value, set())))
        return self._kept[key][1]

    def _bound(self, value: Any, seen: set[int]) -> Iterator[str]:
        for _ in range(64):
            if id(value) in seen:
                return
            seen.add(id(value))
            inner: Any = step_function(value)
            if inner is None and isinstance(value, functools.partial):
                inner = value.func
                yield from (f"{i}={self._text(each, seen)}" for i, each in enumerate(value.args))
                yield from (f"{name}={self._text(each, seen)}" for name, each in sorted(value.keywords.items()))
            elif inner is None and isinstance(value, MethodType):
                inner = value.__func__
                yield f"self={self._text(value.__self__, seen)}"
            elif inner is None and isinstance(value, FunctionType):
                inner = value.__dict__.get("__wrapped__")
                yield from self._carried(value, inner, seen)
            elif inner is None and is_code(value):
                inner = None if isinstance(value, type) else getattr(value, "__wrapped__", None)
            elif inner is None:
                yield f"self={self._text(value, seen)}"
            if inner is None:
                return
            value = inner

    def _carried(self, function: FunctionType, wrapped: Any, seen: set[int]) -> Iterator[str]:
        """Defaults and closure cells of one function."""
        code, local = function.__code__, self.place.holds(function)
        keeps = self._read(function).keeps | self._read(function).changes if local else frozenset()
        values: dict[str, Any] = {}
        if local:
            names = code.co_varnames[: code.co_argcount]
            defaults = function.__defaults__ or ()
            values.update(zip(names[len(names) - len(defaults) :], defaults, strict=True))
            values.update(function.__kwdefaults__ or {})
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            if name != "__class__" and content is not wrapped and (local or is_code(content)):
                values[name] = content
        for name, content in sorted(values.items()):
            key = (id(function), name)
            if name not in keeps:
                yield f"{name}={self._text(content, seen)}"
            elif key in self._kept:
                yield f"{name}={self._kept[key][1]}"
            else:
                yield f"{name}={self._kept.setdefault(key, (function, self._text(content, seen)))[1]}"

    def _text(self, value: Any, seen: set[int]) -> str:
        if is_code(value):
            carried = self._bound(value, seen)
            return " ".join([self.of(value).digest, *carried])
        try:
            return digest(value)
        except Exception:  # it has no digest, or is an object that cannot even be looked at
            return f"?{type(value).__qualname__}"


def _globals_of(value: Any) -> dict[str, Any] | None:
    if isinstance(value, FunctionType):
        return value.__globals__
    return globals_of(value) if isinstance(value, type) else None


def _functions_in(value: Any) -> list[tuple[str, Any]]:
    """Functions and classes directly in a list, tuple or dict."""
    if not isinstance(value, list | tuple | dict) or len(value) > _MOST_ITEMS:
        return []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [(f"[{key!r}]", each) for key, each in items if isinstance(key, str | int) and is_code(each)]
