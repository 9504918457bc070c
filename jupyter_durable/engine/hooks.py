"""Hooks into libraries: calls that people already write become steps, with no code changed.

A hook is an entry point of the group ``jupyter_durable.capture``. Its name is the module it hooks into (``httpx``,
``langchain_core.tools.base``), its value a function that is called once with that module, as soon as the process has
it. The function patches what it must, once, or raises `CannotHook` if the library is not as it was known; then
nothing is patched, and every durable cell that has the library loaded says so. A new library is one file.

Hooks stay in place: outside of durable runs they cost a look at a context variable.

An entry point of the group ``jupyter_durable.begin`` is a function that is called with each execution that begins: for
what floors above the engine must know of one before its first step. Its name says what it is for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import TYPE_CHECKING, Any

from jupyter_durable.engine.plugins import entry_points
from jupyter_durable.errors import CannotHook

if TYPE_CHECKING:
    from jupyter_durable.engine.execution import Execution

GROUP = "jupyter_durable.capture"
BEGIN_GROUP = "jupyter_durable.begin"


class Hooks:
    """The hooks of this process."""

    def __init__(self) -> None:
        self._loaded = False
        self._waiting: dict[str, list[EntryPoint]] = {}
        """Module -> hooks that wait for it."""
        self.problems: list[str] = []
        """A sentence for each hook that could not be set: which calls go unrecorded."""
        self._at_begin: list[Callable[[Execution], object]] = []

    def set(self) -> None:
        """Set every hook whose library is there, and see to it that the others are when theirs is imported."""
        if self._loaded:
            return
        self._loaded = True
        for entry in entry_points(GROUP):
            self._waiting.setdefault(entry.name, []).append(entry)
        for entry in entry_points(BEGIN_GROUP):
            self._load(entry)
        if not self._waiting:
            self.problems.append(
                "the package's entry points are missing (was it installed?), so model calls are not recorded by "
                "themselves; put them into a function with `@step`"
            )
        sys.meta_path.insert(0, _Watcher(self))
        for name in list(self._waiting):
            module = sys.modules.get(name)
            if module is not None and not _being_imported(module):
                self.reached(name, module)

    def began(self, execution: Execution) -> None:
        """Tell those who want to know that an execution has begun."""
        for call in self._at_begin:
            call(execution)

    def _load(self, entry: EntryPoint) -> None:
        try:
            self._at_begin.append(entry.load())
        except Exception as error:
            self.problems.append(f"`{entry.value}` could not be loaded ({type(error).__name__}), so it does nothing")

    def waits_for(self, name: str) -> bool:
        """Whether a module that is being imported has hooks."""
        return name in self._waiting

    def reached(self, name: str, module: ModuleType) -> None:
        """Set the hooks of a module that has been imported."""
        for entry in self._waiting.pop(name, ()):
            try:
                entry.load()(module)
            except CannotHook as error:
                self.problems.append(str(error))
            except Exception as error:
                # A hook of somebody else, or a library that surprises us: the user's import must not fail of it.
                self.problems.append(
                    f"calls through `{name}` are not recorded by themselves: its hook `{entry.value}` failed "
                    f"({type(error).__name__}); put such calls into a function with `@step`"
                )


HOOKS = Hooks()
"""The ones of this process."""


def _being_imported(module: ModuleType) -> bool:
    return bool(getattr(module.__spec__, "_initializing", False))


class _Watcher(MetaPathFinder):
    """Sees modules being imported; finds none itself."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders have, with a loader that tells when the module is there."""
        if not self._hooks.waits_for(fullname):
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(fullname, path, target)) is not None:
                if spec.loader is not None:
                    spec.loader = _Telling(spec.loader, self._hooks)
                return spec
        return None


class _Telling(Loader):
    """A module's own loader, and a word to the hooks after it."""

    def __init__(self, loader: Any, hooks: Hooks) -> None:
        self._loader = loader
        self._hooks = hooks

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        module.__loader__ = self._loader
        if spec is not None:
            spec.loader = self._loader  # whoever asks for resources or source wants the real one
        self._loader.exec_module(module)
        self._hooks.reached(module.__name__, module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
