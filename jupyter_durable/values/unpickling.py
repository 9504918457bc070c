"""Loads pickles in which there are values of classes that have another version now.

Python's own unpickler in Python, because the one in C cannot be asked what it is about to build: an object of such a
class gets its recorded state through its migrations, at the moment at which it would have got it as it is.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

from jupyter_durable.errors import UnloadableValue
from jupyter_durable.values import migrated, objects, raised
from jupyter_durable.values.migrated import Old
from jupyter_durable.values.migrations import Plan

_MODEL = "__pydantic_fields_set__"


def loads(data: bytes, names: dict[tuple[str, str], Any], plans: list[tuple[Any, Plan]], by_ref: Any) -> Any:
    """The value of a pickle.

    Args:
        data: the pickle.
        names: recorded module and qualified name -> today's class, where the name has gone.
        plans: classes of today whose values were recorded at another version.
        by_ref: the function that a pickle calls for things of the notebook.

    Raises:
        UnloadableValue: a state that is no set of fields, or see `migrated.build`.
    """
    unpickler = _Unpickler(io.BytesIO(data))
    for cls, plan in plans:
        if unpickler.plans.setdefault(cls, plan) is not plan:
            raise plan.failed(
                f"the same value holds {plan.name} and {unpickler.plans[cls].name}, which are one class now"
            )
    unpickler.names, unpickler.by_ref = names, by_ref
    value = unpickler.load()
    unpickler.finish()
    return value


_Base: Any = pickle._Unpickler


class _Unpickler(_Base):  # type: ignore[misc]
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_Base.dispatch)

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.plans: dict[Any, Plan] = {}
        self.names: dict[tuple[str, str], Any] = {}
        self.by_ref: Any = None
        self.waiting: dict[int, tuple[Any, Plan, bool]] = {}
        """By address: objects that have no state yet, and whether they may do without."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self.names:
            return self.names[module, name]
        found = super().find_class(module, name)
        return self._by_ref if found is self.by_ref else found

    def _by_ref(self, module: str, name: str) -> Any:
        return self.names[module, name] if (module, name) in self.names else self.by_ref(module, name)

    def finish(self) -> None:
        """Objects without any state have fields by now, perhaps."""
        for value, plan, may in list(self.waiting.values()):
            if not may:
                raise plan.failed(f"{plan.name} was stored in a way of its own, without fields")
            self._state(value, plan, {})

    def _await(self, value: Any, *, may: bool) -> None:
        try:
            plan = self.plans.get(type(value))
        except TypeError:  # a class whose metaclass has no hash
            return
        if plan is not None:
            self.waiting[id(value)] = (value, plan, may)

    def load_newobj(self) -> None:
        cls, args = self.stack[-2:]
        plan = self.plans.get(cls)
        if plan is not None and issubclass(cls, tuple):
            del self.stack[-2:]
            self.append(migrated.build(cls, plan, Old({}, base=tuple, content=args)))
            return
        _Base.load_newobj(self)
        self._await(self.stack[-1], may=True)

    dispatch[pickle.NEWOBJ[0]] = load_newobj

    def load_newobj_ex(self) -> None:
        _Base.load_newobj_ex(self)
        self._await(self.stack[-1], may=True)

    dispatch[pickle.NEWOBJ_EX[0]] = load_newobj_ex

    def load_reduce(self) -> None:
        function = self.stack[-2]
        plan = self.plans.get(function) if isinstance(function, type) else None
        if plan is not None:
            raise plan.failed(f"{plan.name} says itself how it is pickled (`__reduce__`), so its fields are not known")
        _Base.load_reduce(self)
        if id(self.stack[-1]) not in self.waiting:
            self._await(self.stack[-1], may=function is raised.rebuild)

    dispatch[pickle.REDUCE[0]] = load_reduce

    def load_build(self) -> None:
        waiting = self.waiting.pop(id(self.stack[-2]), None)
        if waiting is None:
            _Base.load_build(self)
            return
        state = self.stack.pop()
        self._state(waiting[0], waiting[1], state)

    dispatch[pickle.BUILD[0]] = load_build

    def _state(self, value: Any, plan: Plan, state: Any) -> None:
        cls = type(value)
        if isinstance(value, BaseException):
            raised.set_attributes(value, migrated.attributes(plan, _old(cls, plan, state).fields))
        elif objects.sets_own_state(cls):
            if not isinstance(state, dict):
                raise _no_fields(plan)
            value.__setstate__(plan.apply(state))
        else:
            migrated.fill(value, plan, _old(cls, plan, state))


def _old(cls: type[Any], plan: Plan, state: Any) -> Old:
    """The fields in the state of an object, in each of the forms that Python, dataclasses and pydantic give it."""
    if isinstance(state, dict) and _MODEL in state and "__dict__" in state:
        return migrated.of_model(
            plan,
            state["__dict__"],
            state[_MODEL],
            state.get("__pydantic_extra__") or {},
            state.get("__pydantic_private__") or {},
        )
    if isinstance(state, tuple) and len(state) == 2 and all(one is None or isinstance(one, dict) for one in state):
        return Old({**(state[0] or {}), **(state[1] or {})})
    if isinstance(state, dict):
        return Old(dict(state))
    if isinstance(state, list) and len(state) == len(plan.fields) and dataclasses.is_dataclass(cls):
        return Old(dict(zip(plan.fields, state, strict=True)))  # that of a frozen one with slots
    raise _no_fields(plan)


def _no_fields(plan: Plan) -> UnloadableValue:
    return plan.failed(f"{plan.name} said itself what is stored of it (`__getstate__`), and that is no dict of fields")
