"""Stands in a salvaged value for a part that could not be stored."""

from __future__ import annotations

from typing import Any, NoReturn


class Omitted:
    """A part of a salvaged value that was not stored. It says so whenever it is used.

    >>> Omitted("_thread.lock")
    <not stored: _thread.lock>
    """

    def __init__(self, type_name: str) -> None:
        self._type_name = type_name

    def __repr__(self) -> str:
        return f"<not stored: {self._type_name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Omitted) and other._type_name == self._type_name

    def __hash__(self) -> int:
        return hash(self._type_name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pickle and copy look for hooks
            raise AttributeError(name)
        self._refuse(f"attribute `{name}`")

    def __getitem__(self, key: object) -> NoReturn:
        self._refuse("its items")

    def __call__(self, *_args: object, **_kwargs: object) -> NoReturn:
        """Refuse: there is nothing to call."""
        self._refuse("its call")

    def _refuse(self, what: str) -> NoReturn:
        raise AttributeError(
            f"This `{self.__dict__.get('_type_name', 'object')}` was not stored in the log, so {what} is not there. "
            f"Make the object inside the step that needs it."
        )
