"""Names classes and functions in a payload, and finds today's class of that name when the payload is read.

A class of the notebook must come back as the class that the notebook has now. A twin of it fails ``isinstance``,
``==``, ``is`` and ``except`` without a word, and the replay then takes another way than the first run.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any, NamedTuple

from jupyter_durable.errors import UnloadableValue, UnstorableValue
from jupyter_durable.values import migrations, shapes
from jupyter_durable.values.migrations import Plan, name_at, public_name
from jupyter_durable.values.refused import type_name

Entry = dict[str, Any]
"""One class or function as a payload names it: ``m`` module, ``q`` qualified name, ``s`` shape (only of the user's
classes), ``ver`` version (unless it is 1); or ``of`` and ``args``: a generic pydantic model and its parameters, by
their places in the same table."""

WAYS_OUT = "fork before this step, or start over with `--fresh`"

# Types that builtins does not name; `types` does.
HIDDEN: dict[type[Any], str] = {
    value: name for name, value in vars(types).items() if isinstance(value, type) and value.__module__ == "builtins"
}


class Table:
    """The classes that one payload refers to, in order of first use."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._places: dict[type[Any], int] = {}

    def add(self, cls: type[Any]) -> int:
        """Place of the class in the table.

        Raises:
            UnstorableValue: the name of the class does not lead back to this very class.
        """
        place = self._places.get(cls)
        if place is None:
            entry = self._generic(cls) or reference(cls)
            place = self._places[cls] = len(self.entries)
            self.entries.append(entry)
        return place

    def add_function(self, function: types.FunctionType) -> int:
        """Place of a function that is found again by its name."""
        module, qualname = _name(function)
        entry: Entry = {"m": module, "q": qualname, "f": 1}
        if entry not in self.entries:
            self.entries.append(entry)
        return self.entries.index(entry)

    def cut(self, length: int) -> None:
        """Forget the entries past ``length``: what needed them is not stored after all."""
        del self.entries[length:]
        self._places = {cls: place for cls, place in self._places.items() if place < length}

    def _generic(self, cls: type[Any]) -> Entry | None:
        origin, args = generic_parts(cls)
        if origin is None or resolves(cls):
            return None
        return {"of": self.add(origin), "args": [self.add(one) for one in args]}


def generic_parts(cls: type[Any]) -> tuple[type[Any] | None, tuple[type[Any], ...]]:
    """A pydantic model ``Box[Item]`` as ``Box`` and ``(Item,)``; ``(None, ())`` for every other class."""
    metadata = cls.__dict__.get("__pydantic_generic_metadata__") or {}
    origin, args = metadata.get("origin"), metadata.get("args", ())
    if origin is None or not all(isinstance(one, type) for one in args):
        return None, ()
    return origin, args


def reference(cls: type[Any]) -> Entry:
    """How a payload names this class.

    Raises:
        UnstorableValue: its name does not lead back to this very class.
    """
    module, qualname = _name(cls)
    check_resolves(cls)
    entry: Entry = {"m": module, "q": qualname}
    if shapes.is_users(module):
        shape = shapes.shape(cls)
        if shape:
            entry["s"] = shape
    version = migrations.version_of(cls)
    if version is None:
        reason, advice = f"its `{migrations.ATTRIBUTE}` is no whole number from 1", "give it one, such as 2"
        raise UnstorableValue(
            f"An instance of the class {type_name(cls)} cannot be stored: {reason}. To solve it, {advice}.",
            path="",
            type=type_name(cls),
            reason=reason,
            advice=advice,
        )
    if version != 1:
        entry["ver"] = version
    return entry


def check_resolves(cls: type[Any]) -> None:
    """Make sure that the class can be found again by its name.

    Raises:
        UnstorableValue: it is defined inside a function, or the name means another class by now. Stored by value
            it would come back as a twin.
    """
    module, qualname = _name(cls)
    if "<locals>" in qualname:
        raise UnstorableValue(
            f"The class {qualname} is defined inside a function, so it cannot be found again by its name in a new "
            "kernel. Define it at the top level of a cell or module.",
            path="",
            type=type_name(cls),
            reason="its class is defined inside a function",
            advice="define the class at the top level of a cell or module",
        )
    if resolves(cls):
        return
    found = _look_up(module, qualname)
    if isinstance(found, _Missing):
        reason, advice = f"the name {module}.{qualname} does not exist", "give the class a name at top level"
    else:
        reason = f"{qualname} in {module} is another class by now: its cell or module was run again since"
        advice = "make the object again with the current class"
    raise UnstorableValue(
        f"An instance of the class {type_name(cls)} cannot be stored: {reason}. In a new kernel it would come back as "
        f"a twin that fails isinstance and ==. To solve it, {advice}.",
        path="",
        type=type_name(cls),
        reason=reason,
        advice=advice,
    )


def resolves(thing: type[Any] | types.FunctionType) -> bool:
    """Whether module and qualified name lead to this very object now."""
    module, qualname = _name(thing)
    return bool(module) and "<" not in qualname and _look_up(module, qualname) is thing


class Found(NamedTuple):
    """What the entries of a table lead to now."""

    things: list[Any]
    """Classes and functions, in the order of the table."""
    plans: dict[int, Plan]
    """Place -> how its values become values of today's class, where the version is another one."""
    names: dict[tuple[str, str], Any]
    """Recorded module and name -> today's class, of those with a plan: the name may have gone."""


def find_all(entries: list[Entry]) -> Found:
    """Today's classes for a whole table; to be asked before anything is built.

    Raises:
        UnloadableValue: one is not defined (yet), was renamed or moved, or has another shape or version, and no
            migration leads to today's.
    """
    found = Found([], {}, {})
    for place, entry in enumerate(entries):
        thing, plan = _generic(entry, found) if "of" in entry else _find(entry)
        found.things.append(thing)
        if plan is not None:
            found.plans[place] = plan
            if "q" in entry:
                found.names[entry["m"], entry["q"]] = thing
    return found


def _generic(entry: Entry, found: Found) -> tuple[Any, Plan | None]:
    origin: Any = found.things[entry["of"]]
    args = tuple(found.things[place] for place in entry["args"])
    try:
        cls = origin[args if len(args) != 1 else args[0]]
    except Exception as error:
        raise _unloadable(type_name(origin), "takes other type parameters now") from error
    plan = found.plans.get(entry["of"])
    return cls, plan and plan._replace(canonical=name_at(public_name(cls), plan.version))


def _find(entry: Entry) -> tuple[Any, Plan | None]:
    """Today's class (or function) for an entry, compared with the version and shape that were recorded."""
    module, qualname, version = entry["m"], entry["q"], entry.get("ver", 1)
    name = migrations.full_name(module, qualname)
    if entry.get("f"):
        return _present(module, qualname, name, ""), None
    step = migrations.registered(name, version)
    if step is not None:
        renamed = (step.module, step.qualname) != (module, qualname)
        label = migrations.full_name(step.module, step.qualname)
        found = _look_up(step.module, step.qualname, load=True)
        today = (migrations.version_of(found) or 0) if isinstance(found, type) else 0
        if today > version:
            return found, _plan(entry, name, found, renamed=renamed)
        if renamed and isinstance(found, _Missing):
            _present(step.module, step.qualname, label, "")
    short = qualname.rpartition(".")[2]
    hint = f' Or say what it is now: `@durable.migrate(NewName, from_version={version}, from_name="{name}")`.'
    found = _present(module, qualname, name, hint)
    if not isinstance(found, type):
        raise _unloadable(name, "is no class any more")
    today = migrations.version_of(found) or 0
    if not today:
        raise _unloadable(name, f"its `{migrations.ATTRIBUTE}` is no whole number from 1")
    if version > today:
        raise migrations.newer(name, version, today)
    if version < today:
        return found, _plan(entry, name, found, renamed=False)
    changed = shapes.difference(entry["s"], shapes.shape(found)) if "s" in entry else None
    if changed:
        meant = (
            f" Or, if the change is meant, give it `{migrations.ATTRIBUTE} = {version + 1}` and a migration: "
            f"`@durable.migrate({short}, from_version={version})`."
        )
        raise _unloadable(name, changed, "" if "members" in entry["s"] else meant)
    return found, None


def _plan(entry: Entry, name: str, cls: type[Any], *, renamed: bool) -> Plan:
    """How values of a recorded version become values of today's class."""
    version, today = entry.get("ver", 1), migrations.version_of(cls) or 0
    label = migrations.full_name(cls.__module__, cls.__qualname__)
    chain = []
    for at in range(version, today):
        own = label if at > version or not renamed else name
        step = migrations.registered(own, at)
        if step is None:
            raise migrations.not_there(name, label, version, today, at)
        chain.append(step)
    same = not renamed and cls.__qualname__ == entry["q"]
    canonical = name_at(public_name(cls) if same else f"{entry['m']}:{entry['q']}", version)
    return Plan(name, canonical, version, tuple(entry.get("s", {}).get("fields", ())), label, tuple(chain))


def _present(module: str, qualname: str, name: str, hint: str) -> Any:
    """What has this name now.

    Raises:
        UnloadableValue: nothing has.
    """
    found = _look_up(module, qualname, load=True)
    if not isinstance(found, _Missing):
        return found
    if module == "__main__":
        raise UnloadableValue(
            f"The stored value is of the notebook's {name}, and the notebook has no `{name}` (yet). Run the cell "
            f"that defines it, then this cell again; if it was renamed, put the name back.{hint} Or {WAYS_OUT}.",
            missing=name,
            reason="not defined",
        )
    raise UnloadableValue(
        f"The stored value is of {name}, which cannot be found: {found.reason}. Put the name back (an alias will "
        f"do: the old name for the new class), or {WAYS_OUT}.{hint}",
        missing=name,
        reason=found.reason,
    )


def by_ref(module: str, qualname: str) -> Any:
    """What a pickle calls to get a class or function of the notebook. Its place in this module is part of the format.

    Raises:
        UnloadableValue: there is nothing of that name.
    """
    return _present(module, qualname, migrations.full_name(module, qualname), "")


def _unloadable(name: str, reason: str, hint: str = "") -> UnloadableValue:
    return UnloadableValue(
        f"The stored value is of {name}, which has changed since: {reason}. Nothing was built from it. Put the class "
        f"back as it was, or {WAYS_OUT}.{hint}",
        missing=name,
        reason=reason,
    )


class _Missing:
    def __init__(self, reason: str) -> None:
        self.reason = reason


def _name(thing: type[Any] | types.FunctionType) -> tuple[str, str]:
    if isinstance(thing, type) and thing in HIDDEN:
        return "types", HIDDEN[thing]
    module = str(getattr(thing, "__module__", None) or "")
    top = module.partition(".")[0]
    if top != module and vars(sys.modules.get(top, types)).get(thing.__qualname__) is thing:
        # The public place stays where it is; inner modules move (`pathlib._local` is new in 3.13).
        return top, thing.__qualname__
    return module, thing.__qualname__


def _look_up(module_name: str, qualname: str, load: bool = False) -> Any:
    module: Any = sys.modules.get(module_name)
    if module is None and load:
        try:
            module = importlib.import_module(module_name)
        except Exception as error:
            return _Missing(f"the module {module_name} cannot be imported ({type(error).__name__})")
    if module is None:
        return _Missing(f"the module {module_name} is not loaded")
    found: Any = module
    for part in qualname.split("."):
        owner = found
        try:
            # The plain dict first: `getattr` on a class would bind class methods.
            found = vars(owner)[part]
        except (KeyError, TypeError):
            try:
                found = getattr(owner, part)
            except Exception:
                return _Missing(f"{module_name} has no {qualname}")
    if isinstance(found, classmethod | staticmethod):
        return found.__func__
    return found
